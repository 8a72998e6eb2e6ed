"""Work that a hostile regular expression could stretch for ever, in a process that is killed when its time is up.

The worker is this same interpreter with ``-I -S`` (about 30 ms to start), one request a process: nothing a pattern
does to it outlives the answer. The root travels as an open descriptor, so that the worker sees the very directory its
parent opened.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from evals.errors import TwogateError
from evals.workspace.paths import Reason, WorkspaceError, shown

if TYPE_CHECKING:
    from evals.workspace.safe import SafeWorkspace

_WORKER: Final = Path(__file__).with_name("worker.py")


class PatternTimeoutError(TwogateError):
    """A pattern or a search took longer than its time limit; nothing of it is still running."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"{shown(pattern)}: the search took too long and was stopped")


class WorkerCrashError(RuntimeError):
    """The worker ended without an answer: a defect of Twogate's, or memory ran out."""


def in_worker(
    operation: Literal["search", "match"], request: dict[str, Any], time_limit: float, directory: SafeWorkspace
) -> dict[str, Any]:
    """The worker's answer to one request; both are JSON objects.

    Raises `WorkspaceError` as the worker did, `PatternTimeoutError` at the limit (seconds).
    """
    with directory.open_directory(".") as root:
        message = {
            "operation": operation,
            "root": root,
            "root_path": str(directory.root),
            "limits": asdict(directory.limits),
            "seconds": time_limit,
            **request,
        }
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(_WORKER)],
                input=json.dumps(message).encode(),
                capture_output=True,
                timeout=time_limit,
                pass_fds=(root,),
                env={},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PatternTimeoutError(_pattern_of(request)) from None
    if not done.stdout:
        raise WorkerCrashError(f"the search worker ended with status {done.returncode}: {done.stderr[-500:]!r}")
    answer = json.loads(done.stdout)
    if "refused" in answer:
        refused = answer["refused"]
        reason: Reason = refused["reason"]
        raise WorkspaceError(reason, refused["path"], refused["message"])
    result: dict[str, Any] = answer["answer"]
    return result


def _pattern_of(request: dict[str, Any]) -> str:
    return str((request.get("query") or request["pattern"])["text"])
