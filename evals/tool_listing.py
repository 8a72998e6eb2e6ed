"""What tools the servers have: one connection for each distinct launch, before anything is spent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from evals.connections import open_in
from evals.errors import TwogateError
from evals.target import Launch, Target
from evals.tool_definitions import MAX_TEXT, fit_name, units, unlike_listed


class Tool(BaseModel):
    """A tool as a server lists it."""

    model_config = ConfigDict(frozen=True)

    server: str
    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    read_only: bool = False

    @property
    def client_name(self) -> str:
        """As Claude Code names it to the model: `files.read` of the server `disk` is `mcp__disk__files_read`."""
        return f"mcp__{self.server}__{fit_name(self.name)}"


@dataclass(frozen=True)
class ToolList:
    """The tools of every launch the items need."""

    by_launch: dict[Launch, tuple[Tool, ...]]
    failed: dict[Launch, str] = field(default_factory=dict)
    """The launches that did not connect, with the cause."""
    notices: dict[Launch, tuple[str, ...]] = field(default_factory=dict)
    """What is worth a warning about the launches that did."""

    def failure(self, target: Target, tools: Sequence[str] | None = None) -> str | None:
        """Why an item with these families cannot be tried: the causes of the servers that did not connect."""
        causes = [self.failed[launch] for launch in target.launches(tools) if launch in self.failed]
        return "; ".join(causes) or None

    def of(self, target: Target, tools: Sequence[str] | None = None, *, under_test: bool = True) -> tuple[Tool, ...]:
        """The tools an item with these families sees on the servers under test (or on all)."""
        servers = target.under_test if under_test else target.servers
        return tuple(tool for server in servers for tool in self.by_launch.get(server.launch(tools), ()))

    def auxiliary(self, target: Target, tools: Sequence[str] | None = None) -> dict[str, str]:
        """The names of the tools such an item sees on servers not under test, with their servers."""
        under_test = {server.name for server in target.under_test}
        seen = self.of(target, tools, under_test=False)
        return {tool.name: tool.server for tool in seen if tool.server not in under_test}


async def list_tools(launch: Launch) -> tuple[Tool, ...]:
    """Every tool of a server, all pages. Raises TwogateError when it does not connect in time."""
    tools, _ = await _look(launch)
    return tools


async def _look(launch: Launch) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """A server's tools, and what is worth a warning."""
    stack = AsyncExitStack()
    asked: set[str] = set()
    try:
        client, listed = await open_in(stack, launch, asked)
        instructions = str(client.instructions or "")
    finally:
        with suppress(Exception):  # it has told what it was asked for
            await stack.aclose()
    tools = tuple(_tool(launch.server, one) for one in listed)
    notices = unlike_listed(tools)
    if (length := units(instructions)) > MAX_TEXT:
        notices.append(
            f"Claude Code cuts its instructions after {MAX_TEXT:,} of their {length:,} characters; shorten them"
        )
    if "roots" in asked and not launch.roots:
        notices.append(
            "it asks which folders it may use (roots), and is offered an empty one in each trial; name them by "
            'roots = ["…"]'
        )
    return tools, tuple(notices)


def start_slots() -> asyncio.Semaphore:
    """As many as there are processors: starting a server, or Claude Code with its servers, is work for them alone.

    Eight at once on two cores made each so slow that a server ran into its time limit, which is nobody's failure.
    """
    return asyncio.Semaphore(max(2, os.cpu_count() or 2))


async def list_all(target: Target, families: Iterable[Sequence[str] | None]) -> ToolList:
    """Connect once for each distinct launch of these families; what does not connect is noted with its cause."""
    launches = list(dict.fromkeys(launch for tools in families for launch in target.launches(tools)))
    slots = start_slots()

    async def listed(launch: Launch) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        async with slots:
            return await _look(launch)

    results = await asyncio.gather(*map(listed, launches), return_exceptions=True)
    failed: dict[Launch, str] = {}
    found: dict[Launch, tuple[Tool, ...]] = {}
    notices: dict[Launch, tuple[str, ...]] = {}
    for launch, result in zip(launches, results, strict=True):
        if isinstance(result, TwogateError):
            failed[launch] = "; ".join(result.lines)
        elif isinstance(result, BaseException):
            raise result
        else:
            found[launch], notices[launch] = result
    return ToolList(found, failed, notices)


def _tool(server: str, listed: Any) -> Tool:
    annotations = listed.annotations
    return Tool(
        server=server,
        name=listed.name,
        description=listed.description or "",
        input_schema=dict(listed.input_schema or {}),
        read_only=bool(annotations and annotations.read_only_hint),
    )
