"""Verifications that run on threads for an asynchronous server, and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import anyio
import anyio.to_thread

from evals.workspace.report import VerificationReport

MAX_AT_ONCE: Final = 2
_STOP_SECONDS: Final = 30.0


class Verifications:
    """At most `MAX_AT_ONCE` at a time; the rest wait. A cancelled call's command is killed."""

    def __init__(self) -> None:
        self._slots = anyio.CapacityLimiter(MAX_AT_ONCE)
        self._lock = threading.Lock()
        self._running: dict[threading.Event, threading.Event] = {}

    async def run(self, work: Callable[[threading.Event], VerificationReport]) -> VerificationReport:
        """The result of ``work(cancel)``, which runs on a thread and ends early when `cancel` is set."""
        cancel, finished = threading.Event(), threading.Event()

        def on_thread() -> VerificationReport:
            with self._lock:
                self._running[cancel] = finished
            try:
                return work(cancel)
            finally:
                with self._lock:
                    del self._running[cancel]
                finished.set()

        try:
            return await anyio.to_thread.run_sync(on_thread, abandon_on_cancel=True, limiter=self._slots)
        finally:
            cancel.set()

    def stop(self) -> None:
        """Cancel what runs and wait until its processes and copies are gone. May be called from a signal handler."""
        with self._lock:
            running = dict(self._running)
        for cancel in running:
            cancel.set()
        deadline = time.monotonic() + _STOP_SECONDS
        for finished in running.values():
            finished.wait(max(0.0, deadline - time.monotonic()))
