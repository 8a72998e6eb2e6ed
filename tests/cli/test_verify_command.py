"""``twogate verify`` as a process: its output, its exit codes, its one-line errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from evals.shipped import shipped

FOLDER = shipped("fixtures", "tasks", "rounding-bug")
TASK = str(FOLDER / "task.json")


def verify(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evals", "verify", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=120,
        check=False,
    )


def test_the_broken_workspace_fails_with_the_checks_named() -> None:
    done = verify(TASK, str(FOLDER / "workspace"))
    assert done.returncode == 1
    assert done.stdout.startswith("task rounding-bug: FAILED\n")
    assert "FAIL  required_pattern invoicing/money.py 'ROUND_HALF_UP': not found" in done.stdout
    assert "FAIL  forbidden_pattern invoicing/money.py 'round(': found in line 9" in done.stdout
    assert "FAIL  command: exit status 1 in run 1; 2 of 2 runs failed" in done.stdout
    assert done.stderr == ""


def test_the_mended_workspace_passes() -> None:
    done = verify(TASK, str(FOLDER / "mended"))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("task rounding-bug: passed\n")
    assert "FAIL" not in done.stdout


@pytest.mark.parametrize(("workspace", "code"), [("workspace", 1), ("mended", 0)])
def test_json_is_the_report_alone(workspace: str, code: int) -> None:
    done = verify(TASK, str(FOLDER / workspace), "--json")
    assert done.returncode == code
    report = json.loads(done.stdout)
    assert report["schema_version"] == 1
    assert report["passed"] is (code == 0)


def test_every_problem_of_a_task_is_one_line_and_there_is_no_traceback(tmp_path: Path) -> None:
    task = tmp_path / "task.json"
    task.write_text('{"task_id": "t", "command": "make", "repeat_count": 0}')
    done = verify(str(task), str(tmp_path))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert [line.split(": ")[:3] for line in lines] == [
        ["error", str(task), "command"],
        ["error", str(task), "repeat_count"],
    ]


def test_a_missing_task_or_workspace_is_one_line(tmp_path: Path) -> None:
    for arguments in ((str(tmp_path / "none.json"), str(tmp_path)), (TASK, str(tmp_path / "none"))):
        done = verify(*arguments)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that takes nothing")
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_output_that_cannot_be_written_is_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evals", "verify", TASK, str(FOLDER / "mended"), *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "error: standard output: the report cannot be written: No space left on device\n"


def test_a_reader_that_has_gone_away_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "evals", "verify", TASK, str(FOLDER / "mended")],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_characters_that_standard_output_cannot_take_are_escaped(tmp_path: Path) -> None:
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"task_id": "t", "command": ["true"], "required_files": ["š.txt"]}))
    (tmp_path / "š.txt").touch()
    done = verify(str(task), str(tmp_path), PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert "pass  required_file \\u0161.txt: is there" in done.stdout


def test_wrong_usage_is_exit_code_2() -> None:
    assert verify().returncode == 2
    assert verify(TASK, ".", "--sandbox", "docker").returncode == 2


def test_variables_pass_by_name_only(tmp_path: Path) -> None:
    task = tmp_path / "task.json"
    code = "import os; print(os.environ.get('CHOSEN'), os.environ.get('SECRET'))"
    task.write_text(json.dumps({"task_id": "t", "command": [sys.executable, "-c", code], "repeat_count": 1}))
    done = verify(str(task), str(tmp_path), "--json", "--pass-env", "CHOSEN", CHOSEN="yes", SECRET="no")
    assert json.loads(done.stdout)["runs"][0]["stdout"] == "yes None\n"
    missing = verify(str(task), str(tmp_path), "--pass-env", "NOT_SET_1", "--pass-env", "NOT_SET_2")
    assert missing.returncode == 1
    assert len(missing.stderr.splitlines()) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_verification_that_is_ended_leaves_neither_processes_nor_copies(
    tmp_path: Path, number: signal.Signals
) -> None:
    scratch, root = tmp_path / "scratch", tmp_path / "root"
    scratch.mkdir()
    root.mkdir()
    task = tmp_path / "task.json"
    code = "import os, time\nos.fork()\nopen('../begun', 'w').close()\ntime.sleep(600)"
    task.write_text(json.dumps({"task_id": "t", "command": [sys.executable, "-c", code], "timeout_seconds": 300}))
    process = subprocess.Popen(
        [sys.executable, "-m", "evals", "verify", str(task), str(root)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 30
        while not any(scratch.glob("*/begun")):
            assert time.monotonic() < deadline, "the command did not begin"
            time.sleep(0.05)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 2
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode not in (0, None)
    assert "Traceback" not in errors
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in below)
    assert list(scratch.iterdir()) == []
