"""The process between the verifier and one run of a task's command: it starts it, times it, and leaves nothing behind.

On Linux it is the reaper of everything the command starts (PR_SET_CHILD_SUBREAPER, prctl(2)): a process that detaches
itself with setsid or a double fork becomes this process's child when its parent ends, so "no child is left" is a
fact the kernel tells, not a guess. Elsewhere it kills the command's process group, and what left the group is missed.

Protocol: one line of JSON on standard input; the end of that input means that the caller is gone or wants no more.
The answer is JSON lines on the descriptor named in the request: the command's process id, then the outcome. Standard
output and error are the command's.
Started by its path under ``python -I -S``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 10.0


def main() -> None:
    """Serve one request."""
    request = json.loads(_read_line(0))
    become_reaper()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    answer(request, run(request, wake_read))


def answer(request: dict[str, Any], line: dict[str, Any]) -> None:
    """Write one line of the answer; in vain when the caller is gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(request["result"], json.dumps(line).encode() + b"\n")


def run(request: dict[str, Any], wake: int) -> dict[str, Any]:
    """Run the command to its end, its timeout or the caller's; then kill what is left of it."""
    started = time.monotonic()
    argv, status_read, status_write = request["argv"], -1, -1
    if launcher := request["launcher"]:
        status_read, status_write = os.pipe()
        os.set_blocking(status_read, False)
        argv = [launcher[0], "--json-status-fd", str(status_write), *launcher[1:], *argv]
    try:
        child = subprocess.Popen(
            argv,
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(status_write,) if launcher else (),
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return {"error": f"cannot start {argv[0]!r}: {reason}"}
    if launcher:
        os.close(status_write)
    answer(request, {"pid": child.pid})
    deadline = started + request["timeout"]
    timed_out = cancelled = False
    early: int | None = None
    while True:
        done, early = ended(child.pid)
        if done:
            break
        left = deadline - time.monotonic()
        if left <= 0:
            timed_out = True
            break
        ready, _, _ = select.select([0, wake], [], [], left)
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready and not os.read(0, 4096):
            cancelled = True
            break
    duration = time.monotonic() - started
    status, clean = kill_all(child.pid)
    status = early if status is None else status
    outcome: dict[str, Any] = {
        "timed_out": timed_out,
        "cancelled": cancelled,
        "duration": duration,
        "clean": clean,
        "exit_status": None,
        "signal": None,
    }
    if status is not None and not timed_out:
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            outcome["exit_status"] = code
        else:
            outcome["signal"] = _signal_name(-code)
    if launcher and outcome["exit_status"] is not None:
        outcome["started"] = was_started(status_read)
    return outcome


def was_started(status: int) -> bool:
    """Whether bubblewrap, which has ended, started the command: only then it tells of an exit code
    (--json-status-fd, bwrap(1)). Its own exit status is 1 when it did not, as many commands' is."""
    told = b""
    # Everything that could write there has ended; BlockingIOError if what could not be killed holds it open.
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(status, 65536):
            told += chunk
    return b'"exit-code"' in told


def become_reaper() -> None:
    """Adopt every orphan among the descendants. No effect outside Linux."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def ended(pid: int) -> tuple[bool, int | None]:
    """Whether the child has ended, and its wait status if it had to be reaped to know.

    Where the system can tell without reaping, the child stays, so that its process group's number stays its own.
    """
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, None
    reaped, status = os.waitpid(pid, os.WNOHANG)
    return reaped == pid, status if reaped == pid else None


def kill_all(pid: int) -> tuple[int | None, bool]:
    """Kill the command's group and every descendant; its wait status, and whether nothing is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    status: int | None = None
    deadline = time.monotonic() + _KILL_SECONDS
    while True:
        left = descendants(os.getpid())
        # Stopped first: what runs could fork between the look and the kill.
        for sent in (signal.SIGSTOP, signal.SIGKILL):
            for each in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, sent)
        try:
            while True:
                reaped, wait_status = os.waitpid(-1, os.WNOHANG)
                if reaped == 0:
                    break
                if reaped == pid:
                    status = wait_status
        except ChildProcessError:
            return status, True
        if time.monotonic() > deadline:
            return status, False
        time.sleep(0.005)


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, from /proc; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    proc = Path("/proc")
    if not proc.is_dir():
        return []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            content = (entry / "stat").read_bytes()
        except OSError:
            continue
        # The name, in parentheses, may hold anything; the state and the parent follow its last one.
        fields = content[content.rindex(b")") + 2 :].split()
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    pending = [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read_line(descriptor: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(descriptor, 65536)
        if not chunk:
            raise SystemExit(1)
        line += chunk
    return line


if __name__ == "__main__":
    main()
