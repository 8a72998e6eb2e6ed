"""Commands: bounded, captured, with a fixed environment, and nothing of them left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evals.errors import TwogateError
from evals.workspace.command import CommandResult, RunCancelledError, run_command

LINUX = sys.platform.startswith("linux")


@pytest.fixture
def mark() -> Iterator[str]:
    """A word that only this test's processes carry in their environment; whatever is left is ended and told."""
    word = f"mark-{uuid.uuid4().hex}"
    yield word
    for process in marked(word):
        process.kill()


def marked(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TWOGATE_TEST_MARK") == word and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def run(code: str, mark: str = "", timeout: float = 30.0, **options: object) -> CommandResult:
    return run_command(
        (sys.executable, "-c", code),
        cwd=str(Path.cwd()),
        env={"TWOGATE_TEST_MARK": mark, "PATH": os.environ["PATH"]},
        timeout=timeout,
        **options,  # type: ignore[arg-type]
    )


FORKS = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.fork()
        {leave}
        time.sleep(600)
{then}
"""
DAEMON = "os.setsid() if os.getpid() != os.getpgrp() else None\n        if os.fork(): os._exit(0)\n        os.setsid()"


def test_exit_status_and_both_streams_are_captured() -> None:
    result = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (result.exit_status, result.signal, result.timed_out, result.error) == (3, None, False, None)
    assert (result.stdout.content, result.stderr.content) == (b"out\n", b"err\n")
    assert result.clean


def test_death_by_a_signal_is_told_by_name() -> None:
    result = run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (result.exit_status, result.signal) == (None, "SIGSEGV")


def test_a_command_that_cannot_be_started_says_why() -> None:
    result = run_command(("no-such-program-here",), cwd="/", env={"PATH": "/usr/bin"}, timeout=5)
    assert result.error == "cannot start 'no-such-program-here': No such file or directory"


def test_no_shell_reads_the_command() -> None:
    result = run_command(("echo", "$HOME;", "`id`", "*"), cwd="/", env={"PATH": os.environ["PATH"]}, timeout=5)
    assert result.stdout.content == b"$HOME; `id` *\n"


def test_standard_input_is_empty() -> None:
    assert run("import sys; print(repr(sys.stdin.read()))").stdout.content == b"''\n"


def test_the_environment_is_exactly_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    result = run_command(
        (sys.executable, "-c", "import os; print(sorted(os.environ))"), cwd="/", env={"ONLY": "1"}, timeout=10
    )
    # LC_CTYPE is Python's own doing (PEP 538) where no locale is set.
    assert result.stdout.content in (b"['LC_CTYPE', 'ONLY']\n", b"['ONLY']\n")


def test_children_are_gone_after_the_timeout(mark: str) -> None:
    result = run(FORKS.format(leave="", then="time.sleep(600)"), mark, timeout=1.0)
    assert result.timed_out
    assert result.clean
    assert (result.exit_status, result.signal) == (None, None)
    assert marked(mark) == []


def test_children_are_gone_after_a_normal_end(mark: str) -> None:
    result = run(FORKS.format(leave="", then="time.sleep(0.3)"), mark)
    assert result.exit_status == 0
    assert marked(mark) == []


@pytest.mark.skipif(not LINUX, reason="adopting detached processes is Linux's PR_SET_CHILD_SUBREAPER")
@pytest.mark.parametrize("then", ["time.sleep(600)", "time.sleep(0.5)"], ids=["timeout", "normal end"])
def test_children_that_leave_the_group_and_the_session_are_gone_too(mark: str, then: str) -> None:
    result = run(FORKS.format(leave=DAEMON, then=then), mark, timeout=1.5)
    assert result.clean
    assert marked(mark) == []


@pytest.mark.skipif(not LINUX, reason="adopting detached processes is Linux's PR_SET_CHILD_SUBREAPER")
def test_children_that_ignore_signals_and_fork_on_are_gone(mark: str) -> None:
    code = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.2)
            os._exit(0)
        time.sleep(0.005)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except ChildProcessError: pass
time.sleep(0.5)
"""
    assert run(code, mark).clean
    assert marked(mark) == []


def test_output_past_the_limit_is_dropped_and_never_blocks_the_command() -> None:
    code = "import sys\nfor _ in range(300): sys.stdout.write('x' * 100_000)\nsys.stderr.write('done')"
    result = run(code, max_output_bytes=1000)
    assert result.exit_status == 0
    assert result.stdout.content == b"x" * 1000
    assert result.stdout.total == 30_000_000
    assert result.stdout.truncated
    assert result.stderr.content == b"done"
    assert not result.stderr.truncated


def test_a_cancelled_run_ends_at_once_and_leaves_nothing(mark: str) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.7, cancel.set)
    timer.start()
    started = time.monotonic()
    with pytest.raises(RunCancelledError):
        run(FORKS.format(leave="", then="time.sleep(600)"), mark, timeout=300, cancel=cancel)
    assert time.monotonic() - started < 60
    assert marked(mark) == []


def test_nothing_is_left_when_the_process_that_asked_is_killed(mark: str) -> None:
    code = (
        "import os\nfrom evals.workspace.command import run_command\n"
        "run_command(('sleep', '600'), cwd='/', env=dict(os.environ), timeout=600)"
    )
    caller = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TWOGATE_TEST_MARK": mark})
    try:
        wait_for(lambda: any(process.name() == "sleep" for process in marked(mark)))
    finally:
        caller.send_signal(signal.SIGKILL)
        caller.wait()
    wait_for(lambda: not marked(mark))


@pytest.mark.skipif(not LINUX, reason="needs /proc to tell which process supervises")
def test_a_command_that_kills_its_supervisor_is_an_error_and_leaves_no_group(mark: str) -> None:
    # The first process alone: its child's parent is itself, and once it is gone whoever adopts the child.
    code = "import os, signal, time\nif os.fork(): os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)"
    with pytest.raises(TwogateError, match="supervises the command was killed"):
        run(code, mark)
    wait_for(lambda: not marked(mark))


def wait_for(condition: object, seconds: float = 30.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.05)
