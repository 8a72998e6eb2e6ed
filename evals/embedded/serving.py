"""Serve an ASGI application on a thread of this process, for as long as a ``with`` block lasts."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

import uvicorn
from starlette.types import ASGIApp

from evals.errors import TwogateError


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises TwogateError when the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol must be named: asyncio turns Nagle's algorithm off for sockets that say TCP alone, and with it on
    # each request of a kept connection waits 40 ms for the peer's delayed acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(256)
    except OSError as error:
        sock.close()
        raise TwogateError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    return sock


class LoopbackServer:
    """An ASGI application served by uvicorn on a daemon thread with an event loop of its own."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """``http://host:port`` without a trailing slash; valid inside the ``with`` block."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def __enter__(self) -> LoopbackServer:
        sock = bind(self._host, self._port)
        self._port = sock.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,
            lifespan="auto",
            timeout_graceful_shutdown=2,
        )
        self._server = server = uvicorn.Server(config)
        started = threading.Event()
        original_startup = server.startup

        async def startup(sockets: list[socket.socket] | None = None) -> None:
            await original_startup(sockets=sockets)
            started.set()

        server.startup = startup  # type: ignore[method-assign]

        def serve() -> None:
            try:
                server.run(sockets=[sock])
            finally:
                started.set()

        self._thread = threading.Thread(target=serve, name="twogate-loopback", daemon=True)
        self._thread.start()
        started.wait(timeout=30)
        if not server.started:
            raise TwogateError(f"the embedded server on {self.url} did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(timeout=10)
