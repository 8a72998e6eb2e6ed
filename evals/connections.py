"""Connections to MCP servers: how each kind is opened, and what is said of one that does not open."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from pydantic import ValidationError

from evals.errors import TwogateError
from evals.redact import Redactor
from evals.secret_parts import value_secrets
from evals.settings import AGENT_VARIABLES
from evals.target import Launch

LAST_WORDS = "; it said: "
CUT = "… "
"""What stands before a server's last words where there were more of them."""
_ANSWERED = "HTTP "
_STDERR_SHOWN = 300  # characters of a server's last words in an error line


async def open_in(stack: AsyncExitStack, launch: Launch, asked: set[str] | None = None) -> tuple[Any, list[Any]]:
    """A connected client, which the stack closes, and every tool its server lists.

    asked: takes up "roots" when the server asks for them.

    Raises TwogateError, with the server's last words, when that takes longer than the launch's connect_timeout or does
    not work.
    """
    problem = ""
    try:
        async with AsyncExitStack() as own:
            stderr = own.enter_context(_temporary_text())
            try:
                async with asyncio.timeout(launch.connect_timeout):
                    client = await own.enter_async_context(connect(launch, stderr, asked))
                    listed = await _all_pages(client)
            except TimeoutError:
                cause = f"did not connect within {launch.connect_timeout:g} s (connect_timeout)"
                problem = _with_last_words(launch, cause, stderr)
            except Exception as error:
                problem = _with_last_words(launch, f"does not connect: {root_cause(error)}", stderr)
            else:
                await stack.enter_async_context(own.pop_all())
                return client, listed
    except Exception as error:
        # Closed while nothing is raised: an error on its way out would come wrapped in groups of its tasks.
        problem = problem or _with_name(launch, f"does not connect: {root_cause(error)}")
    raise TwogateError(problem)


@contextmanager
def _temporary_text() -> Iterator[TextIO]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        yield cast(TextIO, file)


async def _all_pages(client: Any) -> list[Any]:
    listed: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        page = await client.list_tools(cursor=cursor)
        listed += page.tools
        cursor = page.next_cursor
        if not cursor or cursor in seen:
            return listed
        seen.add(cursor)


@asynccontextmanager
async def connect(
    launch: Launch, stderr: TextIO | None = None, asked: set[str] | None = None
) -> AsyncGenerator[Any, None]:
    """An initialised `mcp.Client` for a launch; its server process ends with the block.

    It can do what Claude Code says that it can: servers keep tools from clients that can't. It offers the launch's
    roots, and cancels what a server would have a user fill in, as happens in a trial.
    """
    import httpx2
    from mcp import Client, StdioServerParameters, types
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async def roots(_: Any) -> types.ListRootsResult:
        if asked is not None:
            asked.add("roots")
        return types.ListRootsResult(roots=[types.Root(uri=Path(root).as_uri()) for root in launch.roots])

    async def cancel(_: Any, __: Any) -> types.ElicitResult:
        return types.ElicitResult(action="cancel")

    able: Any = {"list_roots_callback": roots, "elicitation_callback": cancel}
    if launch.transport == "stdio":
        # The whole environment, as Claude Code hands it on: else a server starts here and not there, or the other way.
        environment = {**os.environ, **dict.fromkeys(AGENT_VARIABLES, ""), **dict(launch.env)}
        parameters = StdioServerParameters(command=launch.command, args=list(launch.args), env=environment)
        transport = stdio_client(parameters, errlog=stderr) if stderr is not None else stdio_client(parameters)
        async with Client(transport, **able) as client:
            yield client
    elif launch.transport == "sse":
        async with Client(sse_client(launch.url, headers=dict(launch.headers)), **able) as client:
            yield client
    else:
        refusals: list[str] = []

        async def remember(response: httpx2.Response) -> None:
            # 405 is how a server without a stream of its own answers a GET
            if response.status_code >= 400 and response.status_code != 405:
                refusals.append(f"{_ANSWERED}{response.status_code} {response.reason_phrase}".strip())

        try:
            async with (
                httpx2.AsyncClient(
                    headers=dict(launch.headers),
                    timeout=httpx2.Timeout(30, read=300),
                    event_hooks={"response": [remember]},
                ) as http,
                Client(streamable_http_client(launch.url, http_client=http), **able) as client,
            ):
                yield client
        except Exception as error:
            # The SDK says no more than that the server returned an error.
            if refusals:
                error.add_note(refusals[-1])
            raise


def root_cause(error: BaseException) -> str:
    """The innermost error of an exception group, with what the server answered where that is known, in one line."""
    notes: list[str] = getattr(error, "__notes__", [])
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
        notes = [*notes, *getattr(error, "__notes__", [])]
    said = "".join(f" ({note})" for note in dict.fromkeys(notes) if note.startswith(_ANSWERED))
    if isinstance(error, ValidationError):
        places = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        text = f"its answer ({error.title}) breaks the protocol: {'; '.join(places)}"
    else:
        text = f"{type(error).__name__}: {error}"
    if isinstance(error, UnicodeDecodeError):
        said += "; the standard output of a server is for messages in UTF-8 alone"
    return " ".join(f"{text}{said}".split())


def _with_last_words(launch: Launch, cause: str, stderr: IO[str]) -> str:
    """What went wrong with a server, in one line, with the end of what it wrote to its standard error.

    What it was given by its environment and headers is left out of its words: it may be a secret.
    """
    stderr.seek(0)
    parts = value_secrets(value for _, value in (*launch.env, *launch.headers))
    # A path is none, and is what a traceback tells.
    redactor = Redactor(one for one in parts if not os.path.exists(one))  # noqa: PTH110  pathlib's raises on a long text
    words = redactor.text(" ".join(stderr.read().split()))
    if len(words) > _STDERR_SHOWN:
        # From a whole word on: half of a secret would not be known for one where secrets are taken out.
        words = CUT + words[-_STDERR_SHOWN:].partition(" ")[2]
    said = LAST_WORDS + words if words else ""
    return f"{_with_name(launch, cause)}{said}"


def _with_name(launch: Launch, cause: str) -> str:
    label = f" ({launch.label})" if launch.label else ""
    return f"server {launch.server!r}{label} {cause}"
