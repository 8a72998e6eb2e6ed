"""`twogate qa lint` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evals.cli.main import cli
from evals.errors import TwogateError
from evals.shipped import shipped

TWO = """<evaluation lang="en">
<qa_pair><question>Who is currently on call?</question><answer>Ada</answer></qa_pair>
<qa_pair><question>When did it start?</question><answer>2024-03-05</answer></qa_pair>
</evaluation>"""


def lint(*words: str) -> Result:
    return CliRunner().invoke(cli, ["qa", "lint", *words])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.xml"
    path.write_text(TWO, encoding="utf-8")
    return path


def test_findings_are_lines_and_the_exit_code_is_1(file: Path) -> None:
    result = lint(str(file))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == f"note: {file}: attributes are left out: lang (1)"
    assert lines[1].startswith(f"{file}: the file: error [few-questions]: has 2 pairs;")
    assert lines[2].startswith(f"{file}: pair 1 (line 2): error [relative-time]: 'currently' makes")
    assert lines[3].startswith(f"{file}: pair 2 (line 3): error [format-unstated]: ")
    assert lines[4] == "2 pairs: 3 errors, 0 warnings"


def test_findings_as_json(file: Path) -> None:
    result = lint(str(file), "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert (document["pairs"], document["errors"], document["warnings"]) == (2, 3, 0)
    assert [(one["code"], one["pair"], one["line"]) for one in document["findings"]] == [
        ("few-questions", None, None),
        ("relative-time", 1, 2),
        ("format-unstated", 2, 3),
    ]
    assert all(one["why"] and one["fix"] for one in document["findings"])


def test_codes_can_be_left_out(file: Path) -> None:
    result = lint(str(file), "--ignore", "few-questions", "relative-time", "--ignore", "format-unstated")
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "2 pairs: nothing to mend"
    assert lint("--ignore", "few-questions", str(file)).exit_code == 1


def test_a_code_that_is_none_is_a_mistake_of_usage(file: Path) -> None:
    result = lint(str(file), "--ignore", "few-question")
    assert result.exit_code == 2
    assert "few-question is no code; the codes are few-questions," in result.output


@pytest.mark.parametrize("name", ["repository.xml", "tasks.xml"])
def test_the_shipped_files_pass(name: str) -> None:
    result = lint(str(shipped("fixtures", "qa", name)))
    assert result.exit_code == 0
    assert result.output == "12 pairs: nothing to mend\n"


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    result = lint(str(tmp_path / "none.xml"))
    assert isinstance(result.exception, TwogateError)
