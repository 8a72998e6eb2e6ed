"""Answers that fail on purpose, so that clients of the REST API can be tested against a service in trouble."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass(frozen=True)
class Fault:
    """The next ``count`` requests are answered with ``status``; ``retry_after`` in seconds."""

    status: int
    count: int
    retry_after: int = 1


def parse_fault(text: str) -> Fault:
    """``429:3`` or ``503:2:5`` (status, count, Retry-After in seconds). Raises ValueError that names the fault."""
    parts = text.split(":")
    if len(parts) not in {2, 3} or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not STATUS:COUNT or STATUS:COUNT:RETRY_AFTER, such as 429:3")
    fault = Fault(*(int(part) for part in parts))
    if not 400 <= fault.status <= 599:
        raise ValueError(f"{text!r}: the status must be 400 to 599")
    return fault


class FaultyApp:
    """Wraps an ASGI application: the first requests get the faults, in order, and never reach it."""

    def __init__(self, app: ASGIApp, faults: Sequence[Fault]) -> None:
        self._app = app
        self._pending = [fault for fault in faults for _ in range(fault.count)]
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = None
        if scope["type"] == "http":
            with self._lock:
                fault = self._pending.pop(0) if self._pending else None
        if fault is None:
            await self._app(scope, receive, send)
            return
        kind = "rate-limit-exceeded" if fault.status == 429 else "injected-fault"
        answer = JSONResponse(
            {"error": {"type": kind, "message": f"This answer fails on purpose ({fault.status}). Try again."}},
            status_code=fault.status,
            headers={"Retry-After": str(fault.retry_after)} if fault.status in {429, 503} else None,
        )
        await answer(scope, receive, send)
