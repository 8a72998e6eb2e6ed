"""Scripted faults: which request meets one, and what it looks like on the wire."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from evals.embedded.model.script import Fault

#: Scope key under which the application keeps the server's own ``send`` (see `Wire.drop`).
RAW_SEND = "twogate.raw_send"


def transport_of(send: Send | None) -> asyncio.Transport | None:
    """The transport under a server's ``send``; None for a server that does not show it.

    ASGI has no way to it. uvicorn's ``send`` is a method of the object that holds the transport.
    """
    transport: asyncio.Transport | None = getattr(getattr(send, "__self__", None), "transport", None)
    return transport


def send_at_once(send: Send) -> None:
    """Turn Nagle's algorithm off for a connection.

    asyncio does so only for sockets made with an explicit protocol number. Without it an answer's body waits for the
    client's acknowledgement of its head: 45 ms a request where 1 ms was measured otherwise.
    """
    transport = transport_of(send)
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error answer: HTTP status, the API's error type, the message, and Retry-After in seconds."""

    status: int
    type: str
    message: str
    retry_after: float | None = None


# https://platform.claude.com/docs/en/api/errors
_ERRORS: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "Scripted fault: invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    529: ("overloaded_error", "Overloaded"),
}


def refusal(status: int, message: str | None = None, retry_after: float | None = None) -> Refusal:
    """The API's error for a status of `_ERRORS`."""
    kind, usual = _ERRORS[status]
    return Refusal(status, kind, message or usual, retry_after)


def refusal_of(fault: Fault) -> Refusal | None:
    """The error answer a fault stands for; None for faults that are not one."""
    status = fault.kind.removesuffix("_midstream")
    return refusal(int(status), fault.message, fault.retry_after) if status.isdigit() else None


class FaultQueue:
    """The faults of one entry, consumed in order by the requests on it. Owned by the server's event loop."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._left: list[tuple[Fault, int | None]] = [
            (fault, None if fault.times == "always" else fault.times) for fault in faults
        ]

    def take(self, turn: int) -> Fault | None:
        """The fault this request meets, if any: the first one left that is for every turn or for this one."""
        for position, (fault, left) in enumerate(self._left):
            if fault.turn is not None and fault.turn != turn:
                continue
            if left == 1:
                del self._left[position]
            elif left is not None:
                self._left[position] = (fault, left - 1)
            return fault
        return None


class Wire:
    """One exchange at ASGI level: waiting that ends when the client leaves, and connections that break."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, closing: asyncio.Event) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._closing = closing

    async def body(self) -> bytes:
        """The request's body. Raises ClientDisconnect when the client leaves before its end."""
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)

    async def pause(self, seconds: float | None) -> bool:
        """Wait (for ever when None); False as soon as the client has left or the server closes."""
        if seconds is not None and seconds <= 0:
            return True
        left = asyncio.ensure_future(self._receive())
        closed = asyncio.ensure_future(self._closing.wait())
        try:
            done, _ = await asyncio.wait((left, closed), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return not done
        finally:
            left.cancel()
            closed.cancel()
            await asyncio.gather(left, closed, return_exceptions=True)

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the status line and headers."""
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes, *, more: bool) -> None:
        """Send a part of the answer's body."""
        message: Message = {"type": "http.response.body", "body": data, "more_body": more}
        await self._send(message)

    async def drop(self) -> None:
        """Close the connection as it is, answered or not.

        Once the connection is gone, uvicorn takes an unfinished answer in silence.
        """
        transport = transport_of(self.scope.get(RAW_SEND))
        if transport is None:
            raise RuntimeError("a scripted drop needs uvicorn's own transport, and this server has none")
        transport.close()
        # Only until connection_lost has been called, on the loop's next turn.
        await self._receive()
