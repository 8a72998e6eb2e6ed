"""What `twogate qa` writes and where, in whole runs. The model is scripted; the server is real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab, clean_environment

from evals.qa.report import QaReport

ODD = REPOSITORY / "tests" / "agents" / "odd_server.py"
ANSWER = {"text": "<response>plain</response>"}


@pytest.fixture
def words(lab: Lab) -> list[str]:
    """A run of one question that passes."""
    (lab.root / "mine.xml").write_text(
        "<evaluation><qa_pair><question>Which?</question><answer>plain</answer></qa_pair></evaluation>",
        encoding="utf-8",
    )
    lab.script([{"query": "Which?", "turns": [{"calls": [{"name": "text"}]}, ANSWER]}])
    return ["mine.xml", "-c", sys.executable, "-a", str(ODD), "stdio", "--scripted", "script.json"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-o mine.xml", "--output mine.xml: is the question file, which it would overwrite"),
        ("--json mine.xml", "--json mine.xml: is the question file"),
        ("--json script.json", "--json script.json: is the script"),
        ("-o twogate.toml", "--output twogate.toml: is this folder's settings"),
        ("--json x -o ./x", "--json x: is the same file as --output x; name two"),
        ("--json /proc/foo", "--json /proc/foo: cannot be written"),
        (f"-o {ODD}", "is an argument of the server"),
    ],
)
def test_an_output_that_would_destroy_is_refused_before_anything_is_spent(
    lab: Lab, words: list[str], options: str, says: str
) -> None:
    before = {path: path.read_bytes() for path in (*lab.root.glob("*.*"), ODD)}
    done = lab.twogate("qa", *words, *options.split())
    assert done.returncode == 1
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert lab.runs() == []
    assert {path: path.read_bytes() for path in before} == before


def test_a_full_disk_behind_the_report_loses_nothing_else(lab: Lab, words: list[str]) -> None:
    (lab.root / "real.json").write_text("{}", encoding="utf-8")
    (lab.root / "link.json").symlink_to("real.json")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evals", "qa", *words, "--json", "link.json"],
            cwd=lab.root,
            env=clean_environment(PYTHONPATH=str(REPOSITORY)),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: standard output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr
    assert (lab.root / "link.json").is_symlink()
    assert QaReport.model_validate_json((lab.root / "real.json").read_text(encoding="utf-8")).correct == 1
    assert (lab.runs()[-1] / "report.md").is_file()


def test_a_report_that_cannot_be_written_any_more_is_printed(lab: Lab, words: list[str]) -> None:
    (lab.root / "out").mkdir()
    gone = "import os, shutil, sys; shutil.rmtree('out', ignore_errors=True); os.execv(sys.executable, sys.argv[1:])"
    # The server takes the folder away when it starts: the check has passed by then.
    server = ["-a", "--", "-c", gone, sys.executable, str(ODD), "stdio"]
    done = lab.twogate("qa", *words[:3], "--scripted", "script.json", "-o", "out/r.md", "--json", "r.json", *server)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: out/r.md: cannot be written: No such file or directory"
    assert "- **Accuracy**: 1/1" in done.stdout
    assert QaReport.model_validate_json((lab.root / "r.json").read_text(encoding="utf-8")).correct == 1


def test_standard_output_by_its_path_keeps_what_was_there(lab: Lab, words: list[str]) -> None:
    path = lab.root / "all.txt"
    path.write_text("before\n", encoding="utf-8")
    with path.open("ab") as appended:
        done = subprocess.run(
            [sys.executable, "-m", "evals", "qa", *words, "-o", f"/proc/self/fd/{1}"],
            cwd=lab.root,
            env=clean_environment(PYTHONPATH=str(REPOSITORY)),
            stdout=appended,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n# Evaluation report: mine.xml\n")
    assert os.path.samestat(path.stat(), path.lstat())
