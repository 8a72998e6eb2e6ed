"""Verification from the task to the report."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evals.shipped import shipped
from evals.workspace import Check, Options, SafeWorkspace, VerificationReport, load_task, parse_task, verify

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "verification-report.schema.json").read_text())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.py").write_text("import decimal\nx = round(1.5)\n")
    return folder


def verified(root: Path, options: Options | None = None, **task: Any) -> VerificationReport:
    """The report on a task, which must also fit the published schema."""
    with SafeWorkspace(root) as workspace:
        report = verify(parse_task({"task_id": "t", "command": ["true"], **task}), workspace, options)
    jsonschema.validate(json.loads(report.to_json()), SCHEMA)
    assert report.to_text().startswith(f"task t: {'passed' if report.passed else 'FAILED'}")
    return report


def python(code: str) -> dict[str, Any]:
    return {"command": ["python", "-c", code]}


def check(report: VerificationReport, kind: str) -> Check:
    (found,) = [each for each in report.checks if each.kind == kind]
    return found


QUANTIZE = r"^[^#\n]*\.quantize\([^#()]*(?:\([^#()]*\)[^#()]*)*\bROUND_HALF_UP\b"


def test_the_reference_task_fails_broken_and_passes_mended() -> None:
    folder = shipped("fixtures", "tasks", "rounding-bug")
    task = load_task(folder / "task.json")
    assert task.repeat_count == 2
    with SafeWorkspace(folder / "workspace") as workspace:
        broken = verify(task, workspace)
    failed = [
        (each.kind, each.file, each.pattern.text if each.pattern else None) for each in broken.checks if not each.passed
    ]
    assert failed == [
        ("required_pattern", "invoicing/money.py", r"^from decimal import .*\bDecimal\b"),
        ("required_pattern", "invoicing/money.py", "ROUND_HALF_UP"),
        ("required_pattern", "invoicing/money.py", QUANTIZE),
        ("forbidden_pattern", "invoicing/money.py", "round("),
        ("forbidden_pattern", "invoicing/money.py", "float("),
        ("command", None, None),
    ]
    assert broken.deterministic is True
    assert [run.exit_status for run in broken.runs] == [1, 1]
    with SafeWorkspace(folder / "mended") as workspace:
        assert verify(task, workspace).passed


WRONG_MONEY = """
from decimal import Decimal, ROUND_HALF_UP  # .quantize(CENT, ROUND_HALF_UP)
def round_amount(amount): return "wrong"
def line_total(unit_price, quantity): return "wrong"
def add_tax(net, rate_percent): return "wrong"
"""
HONEST_TESTS = shipped("fixtures", "tasks", "rounding-bug", "mended", "tests", "test_money.py").read_text()
QUOTES = '"""'
TESTS = {
    "none": "# 2.675\n",
    "in a comment": "".join(f"# {line}\n" for line in HONEST_TESTS.splitlines()),
    "in a text": f"import unittest\n{QUOTES}\n{HONEST_TESTS}\n{QUOTES}\n",
    "skipped": HONEST_TESTS.replace("class ", "@unittest.skip('later')\nclass "),
    "expected to fail": HONEST_TESTS.replace("    def test", "    @unittest.expectedFailure\n    def test"),
    "not loaded": f"{HONEST_TESTS}\n\ndef load_tests(*_): return unittest.TestSuite()\n",
    "no test cases": HONEST_TESTS.replace("unittest.TestCase", "object"),
    "ended before": f"import sys\nsys.exit(0)\n{HONEST_TESTS}",
    "ended hard": f"import os\nos._exit(0)\n{HONEST_TESTS}",
    "as they were": HONEST_TESTS,
}


@pytest.mark.parametrize("tests", TESTS)
def test_wrong_code_does_not_pass_the_reference_task_by_changing_its_tests(tmp_path: Path, tests: str) -> None:
    folder = shipped("fixtures", "tasks", "rounding-bug")
    root = tmp_path / "root"
    shutil.copytree(folder / "mended", root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "invoicing" / "money.py").write_text(WRONG_MONEY)
    (root / "tests" / "test_money.py").write_text(TESTS[tests])
    with SafeWorkspace(root) as workspace:
        report = verify(load_task(folder / "task.json"), workspace)
    # By its command and by its code, whatever the tests are made to look like.
    assert not check(report, "command").passed
    assert not next(each for each in report.checks if each.pattern and each.pattern.text == QUANTIZE).passed


@pytest.mark.parametrize(
    "code",
    [
        "Decimal(amount).quantize(CENT, rounding=ROUND_HALF_UP)",
        "Decimal(amount).quantize(CENT, ROUND_HALF_UP)",
        "Decimal(amount).quantize(Decimal('0.01'), ROUND_HALF_UP)",
        "Decimal(amount).quantize(\n        Decimal('0.01'),\n        rounding=ROUND_HALF_UP,\n    )",
    ],
)
def test_the_reference_task_passes_however_rounding_half_up_is_written(tmp_path: Path, code: str) -> None:
    folder = shipped("fixtures", "tasks", "rounding-bug")
    root = tmp_path / "root"
    shutil.copytree(folder / "mended", root, ignore=shutil.ignore_patterns("__pycache__"))
    money = root / "invoicing" / "money.py"
    changed = money.read_text().replace("Decimal(amount).quantize(CENT, rounding=ROUND_HALF_UP)", code)
    assert code in changed
    money.write_text(changed)
    with SafeWorkspace(root) as workspace:
        report = verify(load_task(folder / "task.json"), workspace)
    assert report.passed, report.to_text()


@pytest.mark.parametrize(
    ("name", "file"),
    [("currency-migration", "tests/test_currency.py"), ("settings-defaults", "tests/test_settings.py")],
)
def test_the_other_tasks_fail_too_when_no_test_runs(tmp_path: Path, name: str, file: str) -> None:
    root = tmp_path / "root"
    shutil.copytree(shipped("fixtures", "repository"), root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / file).write_text("# nothing\n")
    with SafeWorkspace(root) as workspace:
        report = verify(load_task(shipped("fixtures", "tasks", name, "task.json")), workspace)
    assert not check(report, "command").passed
    assert {each.passed for each in report.checks if each.file == file and each.kind == "required_pattern"} == {False}


def test_the_currency_task_passes_once_the_code_is_moved_and_not_by_a_comment(tmp_path: Path) -> None:
    task = load_task(shipped("fixtures", "tasks", "currency-migration", "task.json"))
    root = tmp_path / "root"
    shutil.copytree(shipped("fixtures", "repository"), root, ignore=shutil.ignore_patterns("__pycache__"))
    changed = [root / "invoicing" / "reports" / "monthly.py", root / "invoicing" / "exports" / "csv_export.py"]
    for file in changed:
        text = file.read_text().replace("legacy_currency import convert_currency", "currency import CurrencyRates")
        file.write_text(text.replace("convert_currency(", "RATES.convert("))
    with SafeWorkspace(root) as workspace:
        report = verify(task, workspace)
        assert report.passed, report.to_text()
        for file in changed:
            file.write_text("# CurrencyRates, .convert(\n")
        assert not verify(task, workspace).passed
        for file in changed:
            file.write_text("import nothing_like_it\nCurrencyRates.convert()\n")
        assert not check(verify(task, workspace), "command").passed


@pytest.mark.parametrize(
    ("name", "passes"), [("rounding-bug", False), ("currency-migration", False), ("settings-defaults", True)]
)
def test_the_shipped_tasks_mean_something_in_the_shipped_repository(name: str, passes: bool) -> None:
    task = load_task(shipped("fixtures", "tasks", name, "task.json"))
    assert task.task_id == name
    with SafeWorkspace(shipped("fixtures", "repository")) as workspace:
        report = verify(task, workspace)
    assert report.passed is passes
    # Every file a task names is there: it fails for what is in them.
    assert not any("no such file" in each.detail for each in report.checks)


@pytest.mark.parametrize(
    "code",
    ["import random; print(random.random())", "import time; print(time.time_ns())", "import os; print(os.getpid())"],
)
def test_output_that_varies_is_nondeterministic_and_the_line_is_shown(root: Path, code: str) -> None:
    report = verified(root, **python(f"print('same'); {code}"))
    assert not report.passed
    assert report.deterministic is False
    assert report.first_difference is not None
    assert (report.first_difference.stream, report.first_difference.line) == ("stdout", 2)
    assert "nondeterministic: run 2 differs from run 1 in stdout line 2" in check(report, "determinism").detail
    assert report.runs[0].output_digest != report.runs[1].output_digest
    # The command itself did succeed.
    assert check(report, "command").passed


def test_an_exit_status_that_varies_is_nondeterministic(root: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    code = f"import pathlib, sys; p = pathlib.Path({str(counter)!r}); n = p.exists(); p.touch(); sys.exit(n)"
    report = verified(root, **python(code))
    assert report.deterministic is False
    assert report.first_difference is not None
    assert report.first_difference.stream == "exit status"
    assert [run.exit_status for run in report.runs] == [0, 1]


def test_a_sets_order_is_the_same_for_the_hash_seed_is_fixed(root: Path) -> None:
    report = verified(root, repeat_count=4, **python("print({str(n) for n in range(100)})"))
    assert report.passed
    assert report.deterministic is True


def test_each_repeat_gets_a_fresh_copy_and_the_workspace_stays_as_it_is(root: Path) -> None:
    code = "import os; print(os.listdir()); open('left', 'w').write('x'); os.remove('a.py')"
    report = verified(root, repeat_count=3, **python(code))
    assert report.passed
    assert report.runs[0].stdout == "['a.py']\n"
    assert [file.name for file in root.iterdir()] == ["a.py"]


def test_the_environment_is_fixed_and_holds_no_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    code = "import json, os, time; print(json.dumps(dict(os.environ))); print(time.tzname[0])"
    # Not `python`: what stands for it may be a script that adds variables of its own, such as pyenv's.
    report = verified(root, Options(environment={"CHOSEN": "yes"}), command=[sys.executable, "-c", code])
    first, second = report.runs[0].stdout.splitlines()
    seen = json.loads(first)
    assert set(seen) == {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "PYTHONHASHSEED", "CHOSEN"}
    assert (seen["LC_ALL"], seen["TZ"], seen["PYTHONHASHSEED"]) == ("C.UTF-8", "UTC", "0")
    assert second == "UTC"
    assert seen["HOME"] == "<scratch folder>/home"
    assert report.normalised == ("path of the scratch folder",)


def test_what_is_put_aside_is_named(root: Path) -> None:
    report = verified(
        root, **python("import os, random; print(os.getcwd()); print(f'Ran 1 test in {random.random()}s')")
    )
    assert report.passed
    assert report.runs[0].stdout == "<workspace>\nRan 1 test in <elapsed>s\n"
    assert report.normalised == ("path of the workspace", "unittest elapsed time")


def test_a_timeout_is_a_failed_check(root: Path) -> None:
    report = verified(
        root, timeout_seconds=0.5, repeat_count=1, **python("import time; print('begun', flush=True); time.sleep(60)")
    )
    assert not report.passed
    assert report.deterministic is None
    assert report.runs[0].timed_out
    assert report.runs[0].stdout == "begun\n"
    assert check(report, "command").detail == "timed out after 0.5 s in run 1; 1 of 1 runs failed"


def test_a_command_that_does_not_exist_is_a_failed_check(root: Path) -> None:
    report = verified(root, command=["no-such-program-here"])
    assert not report.passed
    assert "cannot start 'no-such-program-here'" in check(report, "command").detail


def test_truncated_output_is_told(root: Path) -> None:
    report = verified(root, Options(max_output_bytes=10), **python("print('x' * 100)"))
    assert report.runs[0].truncated
    assert report.runs[0].stdout == "x" * 10


RANDOM = "random.random(), 'x' * random.randint(1, 99999)"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("varies", [RANDOM, "random.random()"], ids=["size", "content"])
def test_output_that_varies_past_the_kept_part_is_nondeterministic(root: Path, stream: str, varies: str) -> None:
    code = f"import random, sys; sys.{stream}.write('a' * (1 << 20)); print({varies}, file=sys.{stream})"
    report = verified(root, **python(code))
    assert not report.passed
    assert report.deterministic is False
    assert [run.truncated for run in report.runs] == [True, True]
    assert report.runs[0].output_digest != report.runs[1].output_digest
    assert report.first_difference is not None
    assert (report.first_difference.stream, report.first_difference.line) == (stream, None)
    detail = check(report, "determinism").detail
    assert f"nondeterministic: run 2 differs from run 1 in {stream}: 'past the part that is kept: 1" in detail


def test_what_is_put_aside_is_put_aside_past_the_kept_part_too(root: Path) -> None:
    code = "import os, random\nfor _ in range(50_000): print(f'Ran 1 test in {random.random() * 20:.3f}s', os.getcwd())"
    report = verified(root, **python(code))
    assert report.passed, report.to_text()
    assert [run.truncated for run in report.runs] == [True, True]
    assert len({run.output_digest for run in report.runs}) == 1


def test_every_pattern_is_reported_with_where_it_is(root: Path) -> None:
    report = verified(
        root,
        required_files=["a.py", "none.py"],
        required_patterns={"a.py": ["round(", {"regex": "^x = "}, "absent"], "none.py": ["x"]},
        forbidden_patterns={"a.py": ["round(", {"regex": r"\bfloat\b"}], "none.py": ["x"]},
    )
    assert [(each.kind, each.file, each.passed, each.detail) for each in report.checks[:-2]] == [
        ("required_file", "a.py", True, "is there"),
        ("required_file", "none.py", False, "no such file or directory"),
        ("required_pattern", "a.py", True, "found in line 2"),
        ("required_pattern", "a.py", True, "found in line 2"),
        ("required_pattern", "a.py", False, "not found"),
        ("required_pattern", "none.py", False, "could not be checked: 'none.py': no such file or directory"),
        ("forbidden_pattern", "a.py", False, "found in line 2"),
        ("forbidden_pattern", "a.py", True, "not found, as it should be"),
        ("forbidden_pattern", "none.py", False, "could not be checked: 'none.py': no such file or directory"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_hide_nothing_from_a_pattern(root: Path, end: str) -> None:
    (root / "a.py").write_bytes(end.encode().join([b"import re", b"import os", b""]))
    patterns = {"a.py": [{"regex": "^import os$"}, "import re\nimport os\n"]}
    report = verified(root, forbidden_patterns=patterns, required_patterns=patterns)
    found = {(each.kind, each.passed, each.detail) for each in report.checks[:4]}
    assert found == {
        (kind, kind == "required_pattern", f"found in line {line}")
        for kind in ("required_pattern", "forbidden_pattern")
        for line in (1, 2)
    }


def test_a_required_file_that_links_outside_is_not_there(root: Path) -> None:
    (root / "out.py").symlink_to("/etc/passwd")
    report = verified(root, required_files=["out.py"], required_patterns={"out.py": ["root"]})
    assert [each.passed for each in report.checks[:2]] == [False, False]
    assert [each.path for each in report.not_copied] == ["out.py"]


def test_the_json_is_stable_but_for_durations(root: Path) -> None:
    def without_durations(report: VerificationReport) -> str:
        data = json.loads(report.to_json())
        for run in data["runs"]:
            del run["duration_seconds"]
        return json.dumps(data)

    one, two = (verified(root, **python("print('é', chr(0xD800).encode('utf-8', 'replace'))")) for _ in range(2))
    assert without_durations(one) == without_durations(two)
    assert list(json.loads(one.to_json())) == SCHEMA["required"]
    one.to_json().encode("ascii")


def test_a_command_cannot_steer_the_terminal_that_shows_its_report(root: Path) -> None:
    report = verified(root, **python(r"import sys; print('\x1b[2Jé\x07'); sys.exit(1)"))
    assert "\x1b" not in report.to_text()
    assert r"\x1b[2Jé\x07" in report.to_text()


def test_nothing_is_left_in_the_temporary_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    code = "import os; os.mkdir('locked'); open('locked/f', 'w'); os.chmod('locked', 0)"
    assert verified(root, **python(code)).passed
    assert list(scratch.iterdir()) == []
