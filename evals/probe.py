"""Probes: call a tool of the target directly, to learn how the platform behaves before a case relies on it.

No model is involved. What a probe saw can be kept as evidence beside a case.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
import statistics
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from evals import __version__
from evals.connections import open_in, root_cause
from evals.errors import TwogateError
from evals.redact import Redactor
from evals.settings import Settings
from evals.target import Launch, Target, load_target
from evals.versions import slug, version_of

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English and JSON; real tokenizers differ by a third and more."""
DEFAULT_TOOL_TIMEOUT = 60.0
_SLUG = re.compile(r"\s*\[(?P<slug>[A-Za-z0-9][A-Za-z0-9_.-]*)\]")


class ProbeCall(BaseModel):
    """One call and what came back."""

    model_config = ConfigDict(frozen=True)

    started_at: datetime
    seconds: float
    """Wall time of the call alone, without the server's start."""
    outcome: Literal["result", "error", "refused", "no-answer"]
    """`error`: a result marked as one. `refused`: an error of the protocol. `no-answer`: timed out, or hung up."""
    text: str
    """The text blocks of the result, a newline between them; or the exact text of the error."""
    error_type: str | None
    """The type slug: ``[slug]`` at the start of an error text, or a `type` or `code` in an error that is JSON."""
    result: Any
    """The whole result as JSON; None where there is none."""
    characters: int
    """Of `text`."""
    text_bytes: int
    """Of `text` in UTF-8."""
    json_bytes: int
    """Of the whole result as compact JSON in UTF-8; 0 where there is none."""

    @property
    def approximate_tokens(self) -> int:
        return -(-self.characters // CHARACTERS_PER_TOKEN)


class ProbeReport(BaseModel):
    """What was called, when, on what, and what came back: the evidence that `--save` keeps."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    tool: str
    arguments: dict[str, Any]
    server: str
    target: str
    """How the server was started or reached, as configured: variables not filled in."""
    server_version: str
    """As the server names itself."""
    versions: dict[str, str]
    calls: tuple[ProbeCall, ...]

    @property
    def answered(self) -> bool:
        return all(call.outcome != "no-answer" for call in self.calls)

    @property
    def distinct(self) -> list[list[int]]:
        """The numbers (from 1) of the calls that came back the same, in order of their first."""
        groups: dict[str, list[int]] = {}
        for number, call in enumerate(self.calls, start=1):
            same = json.dumps([call.outcome, call.result, call.text], sort_keys=True)
            groups.setdefault(same, []).append(number)
        return list(groups.values())

    def timing(self) -> str:
        """Seconds in words: the one call's, or the spread over all."""
        seconds = [call.seconds for call in self.calls]
        if len(seconds) == 1:
            return f"{seconds[0]:.3f} s"
        return (
            f"{min(seconds):.3f} to {max(seconds):.3f} s, median {statistics.median(seconds):.3f} s, "
            f"standard deviation {statistics.stdev(seconds):.3f} s"
        )


@dataclass(frozen=True)
class _Connection:
    launch: Launch
    client: Any
    tools: tuple[str, ...]
    server_version: str


class Prober:
    """Open connections to the target's servers. Made by `open_prober`; valid inside its block."""

    def __init__(
        self, connections: Sequence[_Connection], redactor: Redactor, timeout: float, broken: Sequence[str]
    ) -> None:
        self._connections = connections
        self._redactor = redactor
        self._timeout = timeout
        self._broken = broken

    @property
    def broken(self) -> tuple[str, ...]:
        """A line for each connection that broke instead of closing in order; complete once the block has ended."""
        return tuple(map(self._redactor.text, self._broken))

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> ProbeCall:
        """Call a tool once; secrets in what comes back are masked. Raises TwogateError for an unknown tool."""
        connection = self._connection(tool)
        limit = connection.launch.tool_timeout or self._timeout
        call = await _call(connection.client, tool, dict(arguments or {}), limit)
        return self._redactor.model(call)

    async def report(self, tool: str, arguments: Mapping[str, Any], repeat: int = 1) -> ProbeReport:
        """Call a tool so many times, one after the other, on one connection."""
        connection = self._connection(tool)
        calls = [await self.call(tool, arguments) for _ in range(repeat)]
        report = ProbeReport(
            tool=tool,
            arguments=dict(arguments),
            server=connection.launch.server,
            target=connection.launch.label,
            server_version=connection.server_version,
            versions={"twogate": __version__, "mcp_sdk": version_of("mcp")},
            calls=tuple(calls),
        )
        return self._redactor.model(report)

    def _connection(self, tool: str) -> _Connection:
        having = [one for one in self._connections if tool in one.tools]
        if len(having) == 1:
            return having[0]
        if having:
            names = ", ".join(one.launch.server for one in having)
            raise TwogateError(f"{tool}: several servers have this tool: {names}; choose one by --server")
        known = sorted({name for one in self._connections for name in one.tools})
        near = difflib.get_close_matches(tool, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known) or 'no tools'}"
        raise TwogateError(f"{tool}: the target has no such tool; {hint}")


@asynccontextmanager
async def open_prober(
    settings: Settings,
    *,
    target: Path | None = None,
    server: str | None = None,
    tools: Sequence[str] | None = None,
    tool_timeout: float = DEFAULT_TOOL_TIMEOUT,
) -> AsyncGenerator[Prober, None]:
    """Connect to the target's servers, or to the one named, for the length of the block.

    tools: the families of tools to launch with. tool_timeout: seconds one call may take, where the server has no
    tool_timeout of its own.

    A connection that breaks later raises nothing: calls on it have no answer, and `Prober.broken` says why.

    Raises TwogateError that names every server that does not connect.
    """
    loaded = load_target(settings.root, settings.variables, target, only=server)
    _check(loaded, server, tools)
    launches = [one.launch(tools) for one in loaded.servers if server in (None, one.name)]
    redactor = loaded.redactor(settings)
    connections: list[_Connection] = []
    problems: list[str] = []
    broken: list[str] = []
    async with AsyncExitStack() as stack:
        for launch in launches:
            try:
                client, listed = await stack.enter_async_context(_held(launch, broken))
            except TwogateError as error:
                problems += map(redactor.text, error.lines)
            else:
                info = client.server_info
                version = f"{info.name} {info.version}".strip()
                connections.append(_Connection(launch, client, tuple(one.name for one in listed), version))
        if problems:
            raise TwogateError(problems)
        yield Prober(connections, redactor, tool_timeout, broken)


@asynccontextmanager
async def _held(launch: Launch, broken: list[str]) -> AsyncGenerator[tuple[Any, list[Any]], None]:
    """A connected client and every tool its server lists, as `open_in` gives them, held by a task of its own.

    The task groups of a client whose transport fails cancel the task that opened it and raise when it closes. In a
    task of its own that neither ends the block nor hides what was answered; it becomes a line of `broken`.
    """
    opened: asyncio.Future[tuple[Any, list[Any]]] = asyncio.get_running_loop().create_future()
    finished = asyncio.Event()

    async def hold() -> None:
        try:
            async with AsyncExitStack() as stack:
                opened.set_result(await open_in(stack, launch))
                await finished.wait()
        except Exception as error:
            if not opened.done():
                opened.set_exception(error)
            elif not opened.cancelled():
                cause = root_cause(error)
                broken.append(f"server {launch.server!r}: the connection broke: {cause}")
        finally:
            opened.cancel()

    holder = asyncio.create_task(hold())
    try:
        yield await opened
    finally:
        finished.set()
        if opened.cancelled():
            holder.cancel()
        await asyncio.wait({holder})


def type_slug(text: str) -> str | None:
    """The type of an error by its text: ``[slug] …``, or JSON with `type` or `code`, perhaps inside `error`."""
    found = _SLUG.match(text)
    if found is not None:
        return found["slug"]
    try:
        value = json.loads(text)
    except ValueError:
        return None
    for part in (value, value.get("error") if isinstance(value, dict) else None):
        if isinstance(part, dict):
            for key in ("type", "code"):
                if isinstance(part.get(key), str | int) and not isinstance(part[key], bool):
                    return str(part[key])
    return None


def parse_arguments(text: str) -> dict[str, Any]:
    """Arguments as JSON, or ``@FILE`` that holds them. Raises TwogateError when they are no JSON object."""
    source = "--args"
    if text.startswith("@"):
        source = f"--args {text}"
        try:
            text = Path(text[1:]).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise TwogateError(f"{source}: cannot be read: {error}") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TwogateError(f'{source}: is not valid JSON: {error}; write e.g. {{"name": "value"}}') from None
    if not isinstance(value, dict):
        raise TwogateError(f'{source}: is {type(value).__name__}; must be a JSON object, e.g. {{"name": "value"}}')
    return value


def save_report(report: ProbeReport, path: Path) -> Path:
    """Write the evidence to a new file; in a folder under a name of its own. Returns the file.

    Raises TwogateError when the file is there already: evidence is not overwritten.
    """
    if path.is_dir():
        path = path / f"probe-{slug(report.tool)}-{report.calls[0].started_at:%Y%m%dT%H%M%SZ}.json"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(report.model_dump_json(indent=2) + "\n")
    except FileExistsError:
        raise TwogateError(
            f"--save {path}: is there already; evidence is not overwritten, choose another name"
        ) from None
    except OSError as error:
        raise TwogateError(f"--save {path}: cannot be written: {error.strerror}") from None
    return path


def _check(target: Target, server: str | None, tools: Sequence[str] | None) -> None:
    names = [one.name for one in target.servers]
    problems = []
    if server is not None and server not in names:
        near = difflib.get_close_matches(server, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
        problems.append(f"--server {server!r}: {target.source.name} has no such server; {hint}")
    asked = [one for one in target.servers if server in (None, one.name)]
    if tools and asked and not any(one.config.tools_arg for one in asked):
        problems.append(f"--tools: no server asked has a tools_arg in {target.source.name} to pass them by; add one")
    if problems:
        raise TwogateError(problems)


async def _call(client: Any, tool: str, arguments: dict[str, Any], limit: float) -> ProbeCall:
    from mcp.shared.exceptions import MCPError
    from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    started_at = datetime.now(UTC)
    started = time.perf_counter()
    result: Any = None
    outcome: Literal["result", "error", "refused", "no-answer"]
    error_type: str | None = None
    try:
        # The client's own limit tells the server to give up; this one is for a client that hangs.
        async with asyncio.timeout(limit + 5):
            answer = await client.call_tool(tool, arguments, read_timeout_seconds=limit)
        seconds = time.perf_counter() - started
        result = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        outcome = "error" if answer.is_error else "result"
        if answer.is_error:
            error_type = type_slug(text)
    except Exception as error:
        seconds = time.perf_counter() - started
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
            outcome, text = "no-answer", f"{tool} did not answer within {limit:g} s"
        elif isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            outcome, text, error_type = "refused", str(error), str(error.code)
        else:
            outcome, text = "no-answer", root_cause(error)
    whole = "" if result is None else json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    return ProbeCall(
        started_at=started_at,
        seconds=round(seconds, 6),
        outcome=outcome,
        text=text,
        error_type=error_type,
        result=result,
        characters=len(text),
        text_bytes=len(text.encode("utf-8", "replace")),
        json_bytes=len(whole.encode("utf-8", "replace")),
    )
