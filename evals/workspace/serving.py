"""Running the repository server over standard input and output, or over HTTP."""

from __future__ import annotations

import hmac
import ipaddress
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from evals.embedded.serving import bind
from evals.errors import TwogateError
from evals.workspace.safe import SafeWorkspace
from evals.workspace.sandbox import find_bwrap
from evals.workspace.server import RepositoryServer
from evals.workspace.task import Task, load_task
from evals.workspace.verifier import Options

TOKEN_VARIABLE: Final = "TWOGATE_SERVE_TOKEN"  # noqa: S105  a variable's name
MIN_TOKEN_CHARS: Final = 16
MCP_PATH: Final = "/mcp"


@dataclass(frozen=True)
class Http:
    """Where to listen. `allowed_hosts` are further names (``name`` or ``name:port``) clients may reach it by; `token`
    is the bearer token asked of every request, if any."""

    host: str
    port: int
    token: str | None
    allowed_hosts: tuple[str, ...] = ()


def load_tasks(paths: Sequence[str]) -> list[Task]:
    """The tasks an operator named. Raises `TwogateError` with every problem of all of them."""
    problems: list[str] = []
    tasks: dict[str, Task] = {}
    for path in paths:
        try:
            task = load_task(path)
        except TwogateError as error:
            problems += error.lines
            continue
        if task.task_id in tasks:
            problems.append(f"{path}: task_id: {task.task_id!r} is taken by another --task; give each its own")
        tasks[task.task_id] = task
    if problems:
        raise TwogateError(problems)
    return list(tasks.values())


def serve(root: str, tasks: Sequence[str], options: Options, http: Http | None) -> None:
    """Serve until the client or the operator ends it. Raises `TwogateError` before anything is served."""
    if http is not None:
        check_http(http)
    if options.sandbox == "bwrap":
        find_bwrap()
    loaded = load_tasks(tasks)
    with SafeWorkspace(root) as workspace:
        server = RepositoryServer(workspace, loaded, options)
        if http is None:
            with _ends_on_signal(server):
                server.mcp.run("stdio")
        else:
            _run_http(server, http)


def check_http(http: Http) -> None:
    """Refuse an address that would be served without the protection it needs."""
    problems: list[str] = []
    loopback = is_loopback(http.host)
    if http.token is None and not loopback:
        problems.append(
            f"--host {http.host}: is not a loopback address, so a bearer token is required; set {TOKEN_VARIABLE}"
        )
    if http.token is not None and (len(http.token) < MIN_TOKEN_CHARS or not http.token.isascii()):
        problems.append(
            f"{TOKEN_VARIABLE}: must be {MIN_TOKEN_CHARS} ASCII characters or more; `openssl rand -hex 32` makes one"
        )
    if http.host in ("0.0.0.0", "::") and not http.allowed_hosts:  # noqa: S104  compared, not bound
        problems.append(
            f"--host {http.host}: stands for every address, so name what clients call it with --allow-host NAME"
        )
    if problems:
        raise TwogateError(problems)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_app(server: RepositoryServer, http: Http, port: int) -> ASGIApp:
    """Streamable HTTP at ``/mcp``; `port` is the one that clients see. Host and Origin are checked on every request."""
    names = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(http.host) else [_bracketed(http.host)]
    hosts = [f"{name}:{port}" for name in names]
    for name in http.allowed_hosts:
        hosts += [name, f"{name}:{port}"]
    if port == 80:
        hosts += names
    app: ASGIApp = server.mcp.streamable_http_app(
        streamable_http_path=MCP_PATH,
        host=http.host,
        transport_security=TransportSecuritySettings(
            allowed_hosts=hosts,
            allowed_origins=[f"{scheme}://{name}" for name in hosts for scheme in ("http", "https")],
        ),
    )
    return app if http.token is None else BearerToken(app, http.token)


class BearerToken:
    """Answers 401 to every HTTP request that does not carry the token (RFC 6750, Authorization header only)."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scheme, _, credentials = Headers(scope=scope).get("authorization", "").partition(" ")
            given = f"{scheme.capitalize()} {credentials.strip()}".encode()
            if not hmac.compare_digest(given, self._expected):
                response = PlainTextResponse(
                    "A bearer token is required.\n", 401, headers={"WWW-Authenticate": "Bearer"}
                )
                await response(scope, receive, send)
                return
        elif scope["type"] != "lifespan":
            raise RuntimeError(f"not served: {scope['type']}")
        await self._app(scope, receive, send)


def _run_http(server: RepositoryServer, http: Http) -> None:
    sock = bind(http.host, http.port)
    port = sock.getsockname()[1]
    config = uvicorn.Config(
        http_app(server, http, port),
        log_level="warning",
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    sys.stderr.write(f"serving {server.mcp.name} at http://{_bracketed(http.host)}:{port}{MCP_PATH}\n")
    sys.stderr.flush()
    listener = _Listener(config)

    def end(*_: object) -> None:
        # A second signal does not wait for the answers under way.
        listener.force_exit = listener.should_exit
        listener.should_exit = True
        server.stop()

    with _on_signal(end):
        listener.run(sockets=[sock])
    server.stop()


class _Listener(uvicorn.Server):
    """A server that leaves signals alone: uvicorn would raise them again at its end, before the clean-up is done."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _ends_on_signal(server: RepositoryServer) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the process once running verifications are stopped.

    The thread that waits for standard input cannot be woken, so the ordinary way out would wait for the client.
    """

    def end(number: int, _: object) -> None:
        server.stop()
        os._exit(128 + number)

    with _on_signal(end):
        yield
    server.stop()


@contextmanager
def _on_signal(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
