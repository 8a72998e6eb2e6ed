"""Isolation with bubblewrap, the real one."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Literal

import pytest

from evals.errors import TwogateError
from evals.workspace import Options, SafeWorkspace, VerificationReport, parse_task, verify
from evals.workspace.sandbox import find_bwrap

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
SANDBOXED = Options(sandbox="bwrap")


def run(root: Path, code: str, timeout: float = 30) -> VerificationReport:
    task = {"task_id": "t", "command": ["python", "-c", code], "timeout_seconds": timeout, "repeat_count": 1}
    with SafeWorkspace(root) as workspace:
        return verify(parse_task(task), workspace, SANDBOXED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("inside")
    return folder


@needs_bwrap
def test_the_copy_is_there_and_writable_and_the_path_is_put_aside(root: Path) -> None:
    report = run(root, "import os; print(open('a.txt').read(), os.getcwd()); open('b.txt', 'w').write('x')")
    assert report.passed, report.to_text()
    assert report.runs[0].stdout == "inside <workspace>\n"
    assert report.sandbox == "bwrap"


@needs_bwrap
def test_nothing_else_is_writable_or_even_there(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    # Names that nobody else's files have.
    places = [
        folder / f"x-{uuid.uuid4().hex}" for folder in (Path("/usr"), Path("/etc"), Path("/"), Path.home(), tmp_path)
    ]
    code = f"""
import os
for path in ({str(secret)!r}, {str(root / "a.txt")!r}, "/etc/shadow"):
    try:
        print("READ", open(path).read())
    except OSError as error:
        print(path == "/etc/shadow" or "other", error.strerror)
for path in {[str(place) for place in places]!r}:
    try:
        open(path, "w").write("x")
        print("WROTE", path)
    except OSError:
        pass
"""
    report = run(root, code)
    assert "READ" not in report.runs[0].stdout
    assert not any(place.exists() for place in places)
    assert report.runs[0].stderr == ""


@needs_bwrap
def test_there_is_no_network(root: Path) -> None:
    code = """
import socket
print([name for _, name in socket.if_nameindex() if name != "lo"])
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as error:
    print(type(error).__name__, error.strerror)
"""
    assert run(root, code).runs[0].stdout == "[]\nOSError Network is unreachable\n"


@needs_bwrap
def test_other_processes_are_not_seen_and_nothing_is_left_after_the_timeout(root: Path) -> None:
    code = """
import os, time
print(max(int(name) for name in os.listdir("/proc") if name.isdigit()) < 20, flush=True)
if os.fork() == 0:
    os.setsid()
time.sleep(7357)
"""
    report = run(root, code, timeout=1.5)
    assert report.runs[0].timed_out
    assert report.runs[0].error is None
    assert report.runs[0].stdout == "True\n"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert b"time.sleep(7357)" not in command


@needs_bwrap
@pytest.mark.parametrize("sandbox", ["none", "bwrap"])
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such-program-here", "No such file or directory"),
        ("./no-such-program-here", "No such file or directory"),
        ("./a.txt", "Permission denied"),
    ],
)
def test_a_program_that_cannot_be_started_says_so_in_the_sandbox_as_without(
    root: Path, sandbox: Literal["none", "bwrap"], program: str, reason: str
) -> None:
    with SafeWorkspace(root) as workspace:
        report = verify(parse_task({"task_id": "t", "command": [program, "x"]}), workspace, Options(sandbox=sandbox))
    assert [run.error for run in report.runs] == [f"cannot start {program!r}: {reason}"] * 2
    assert [run.exit_status for run in report.runs] == [None, None]
    (check,) = [each for each in report.checks if each.kind == "command"]
    assert check.detail == f"cannot start {program!r}: {reason} in run 1; 2 of 2 runs failed"


@needs_bwrap
@pytest.mark.parametrize("code", ["import sys; sys.exit(1)", "print('bwrap: execvp x: No such file'); sys.exit(1)"])
def test_a_command_that_was_started_and_fails_is_told_by_its_own_status(root: Path, code: str) -> None:
    report = run(root, code)
    assert (report.runs[0].exit_status, report.runs[0].error) == (1, None)


@needs_bwrap
def test_a_command_gets_no_more_open_files_in_the_sandbox_than_the_standard_three(root: Path) -> None:
    code = """
import os
for descriptor in range(3, 100):
    try:
        print(descriptor, os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        pass
"""
    assert run(root, code).runs[0].stdout == ""


def test_without_bubblewrap_the_sandbox_is_refused_in_one_clear_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TwogateError, match="bubblewrap is not installed; install it") as caught:
        run(root, "print('must not run')")
    assert len(caught.value.lines) == 1


def test_a_bubblewrap_that_cannot_isolate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(TwogateError, match="No permissions to create new namespace"):
        find_bwrap()
