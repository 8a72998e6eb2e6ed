"""Running a command without a shell: bounded in time and output, and with nothing of it left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from evals.errors import TwogateError
from evals.workspace.sandbox import why_not_started

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
# What the supervisor may take beyond the command's timeout: its start, and killing what the command left.
_GRACE_SECONDS: Final = 20.0
_LAST_OUTPUT_SECONDS: Final = 1.0

DEFAULT_OUTPUT_BYTES: Final = 1024 * 1024

OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


class RunCancelledError(Exception):
    """The caller asked for the run to end; nothing of it is left."""


@dataclass(frozen=True)
class Captured:
    """The first bytes a stream wrote, up to the limit, and how many it wrote in all."""

    content: bytes
    total: int

    @property
    def truncated(self) -> bool:
        """Whether there was more than was kept."""
        return self.total > len(self.content)


@dataclass(frozen=True)
class CommandResult:
    """How a run ended. One of `exit_status`, `signal` (its name), `timed_out` or `error` (it could not be started)
    says why. `clean` is False when a process could not be killed. `duration` is in seconds."""

    exit_status: int | None
    signal: str | None
    timed_out: bool
    error: str | None
    duration: float
    clean: bool
    stdout: Captured
    stderr: Captured


def run_command(
    argv: tuple[str, ...],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    launcher: tuple[str, ...] = (),
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES,
    on_output: OnOutput | None = None,
    cancel: threading.Event | None = None,
) -> CommandResult:
    """Run `argv` in `cwd` with exactly the environment `env`, standard input empty, for at most `timeout` seconds.

    The command gets a process group of its own, killed whole at the timeout and also after a normal end; on Linux
    whatever left the group is killed as well (see `evals.workspace.supervisor`). Output past `max_output_bytes` a
    stream is read and dropped, so that the command never waits for a reader; `on_output` gets all of it as it comes,
    called on this thread with a stream's name and its next bytes.

    With a `launcher` (`evals.workspace.sandbox`) it is bubblewrap that starts the command, and is told apart from it.

    Raises `RunCancelledError` when `cancel` is set meanwhile, `TwogateError` when the supervising process was lost.
    """
    result_read, result_write = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(result_write,),
            env={},
            # Ctrl-C in a terminal must reach this process alone; it then tells the supervisor.
            start_new_session=True,
        )
    except BaseException:
        os.close(result_read)
        raise
    finally:
        os.close(result_write)
    try:
        assert process.stdin is not None
        request = {
            "argv": argv,
            "launcher": launcher,
            "cwd": cwd,
            "env": dict(env),
            "timeout": timeout,
            "result": result_write,
        }
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        streams = _Streams(process, result_read, max_output_bytes, on_output)
        streams.drain(time.monotonic() + timeout + _GRACE_SECONDS, cancel)
        return _result(streams, argv[0])
    finally:
        _end(process)
        os.close(result_read)


class _Streams:
    """Reads standard output, standard error and the outcome at once, keeping what the limit allows."""

    def __init__(self, process: subprocess.Popen[bytes], outcome: int, limit: int, on_output: OnOutput | None) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._limit = limit
        self._on_output = on_output
        self._give_up = float("inf")
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray(), "outcome": bytearray()}
        self._total = dict.fromkeys(self._kept, 0)
        self._selector = selectors.DefaultSelector()
        for name, descriptor in (
            ("stdout", process.stdout.fileno()),
            ("stderr", process.stderr.fileno()),
            ("outcome", outcome),
        ):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)

    def drain(self, deadline: float, cancel: threading.Event | None) -> None:
        """Read until every stream has ended, or `deadline`."""
        with self._selector:
            while self._selector.get_map():
                if cancel is not None and cancel.is_set():
                    raise RunCancelledError
                if time.monotonic() > min(deadline, self._give_up):
                    return
                for key, _ in self._selector.select(0.1):
                    self._read(key)

    def _read(self, key: selectors.SelectorKey) -> None:
        try:
            chunk = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(key.fd)
            if key.data == "outcome":
                # The supervisor is done: what still holds a stream open got away from it.
                self._give_up = time.monotonic() + _LAST_OUTPUT_SECONDS
            return
        kept = self._kept[key.data]
        self._total[key.data] += len(chunk)
        if key.data == "outcome":
            kept += chunk
            return
        kept += chunk[: max(0, self._limit - len(kept))]
        if self._on_output is not None:
            self._on_output(key.data, chunk)

    def captured(self, name: str) -> Captured:
        """What one stream wrote."""
        return Captured(bytes(self._kept[name]), self._total[name])

    @property
    def outcome(self) -> dict[str, Any]:
        """What the supervisor told last; the process id alone when it was lost."""
        lines = bytes(self._kept["outcome"]).splitlines()
        told: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return told


def _result(streams: _Streams, program: str) -> CommandResult:
    outcome = streams.outcome
    if "duration" not in outcome and "error" not in outcome:
        if "pid" in outcome:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(outcome["pid"], signal.SIGKILL)
        lost = streams.captured("stderr").content[-300:].decode("utf-8", "replace").strip()
        raise TwogateError(
            f"the process that supervises the command was killed; it may have left processes; last words: {lost!r}"
        )
    if not outcome.get("started", True):
        said = streams.captured("stderr").content.decode("utf-8", "replace")
        outcome |= {"exit_status": None, "error": f"cannot start {program!r}: {why_not_started(program, said)}"}
    return CommandResult(
        exit_status=outcome.get("exit_status"),
        signal=outcome.get("signal"),
        timed_out=outcome.get("timed_out", False),
        error=outcome.get("error"),
        duration=outcome.get("duration", 0.0),
        clean=outcome.get("clean", True),
        stdout=streams.captured("stdout"),
        stderr=streams.captured("stderr"),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the supervisor kill what is left and end; kill it when it does not."""
    with contextlib.suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.close()
    streams: list[IO[bytes] | None] = [process.stdout, process.stderr]
    for stream in streams:
        if stream is not None:
            stream.close()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
