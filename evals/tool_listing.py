"""What tools the servers have: one connection for each distinct launch, before anything is spent."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from evals.connections import open_in
from evals.errors import TwogateError
from evals.items import Item
from evals.target import Launch, Target

# What Claude Code writes as "_" in a tool's name; the Messages API takes no other characters.
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


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
        return f"mcp__{self.server}__{_UNFIT.sub('_', self.name)}"


@dataclass(frozen=True)
class ToolList:
    """The tools of every launch the items need."""

    by_launch: dict[Launch, tuple[Tool, ...]]
    failed: dict[Launch, str] = field(default_factory=dict)
    """The launches that did not connect, with the cause."""

    def failure(self, target: Target, tools: Sequence[str] | None = None) -> str | None:
        """Why an item with these families cannot be tried: the causes of the servers that did not connect."""
        causes = [self.failed[launch] for launch in target.launches(tools) if launch in self.failed]
        return "; ".join(causes) or None

    def of(self, target: Target, tools: Sequence[str] | None = None, *, under_test: bool = True) -> tuple[Tool, ...]:
        """The tools an item with these families sees on the servers under test (or on all)."""
        servers = target.under_test if under_test else target.servers
        return tuple(tool for server in servers for tool in self.by_launch.get(server.launch(tools), ()))


async def list_tools(launch: Launch) -> tuple[Tool, ...]:
    """Every tool of a server, all pages. Raises TwogateError when it does not connect in time."""
    stack = AsyncExitStack()
    try:
        _, listed = await open_in(stack, launch)
    finally:
        with suppress(Exception):  # it has told what it was asked for
            await stack.aclose()
    return tuple(_tool(launch.server, one) for one in listed)


def start_slots() -> asyncio.Semaphore:
    """As many as there are processors: starting a server, or Claude Code with its servers, is work for them alone.

    Eight at once on two cores made each so slow that a server ran into its time limit, which is nobody's failure.
    """
    return asyncio.Semaphore(max(2, os.cpu_count() or 2))


async def list_all(target: Target, families: Iterable[Sequence[str] | None]) -> ToolList:
    """Connect once for each distinct launch of these families; what does not connect is noted with its cause."""
    launches = list(dict.fromkeys(launch for tools in families for launch in target.launches(tools)))
    slots = start_slots()

    async def listed(launch: Launch) -> tuple[Tool, ...]:
        async with slots:
            return await list_tools(launch)

    results = await asyncio.gather(*map(listed, launches), return_exceptions=True)
    failed: dict[Launch, str] = {}
    found: dict[Launch, tuple[Tool, ...]] = {}
    for launch, result in zip(launches, results, strict=True):
        if isinstance(result, TwogateError):
            failed[launch] = "; ".join(result.lines)
        elif isinstance(result, BaseException):
            raise result
        else:
            found[launch] = result
    return ToolList(found, failed)


@dataclass(frozen=True)
class Preflight:
    """The tool lists, and what is worth a warning."""

    tools: ToolList
    warnings: tuple[str, ...]


async def preflight(
    target: Target, items: Sequence[Item], builtin_tools: Collection[str], *, mcp_tools_only: bool = False
) -> Preflight:
    """Check the items against the live target before any model is called.

    mcp_tools_only: no item gets the built-in tools, as the run's option says.

    Raises TwogateError when an item's `tools` cannot reach any server, when none of an item's expected tools exists, or
    when one does not exist that it wants to fail: then the case is wrong, not the model. Some missing is a warning, and
    so is one whose errors are expected. The items of a server that does not connect are left to the run, which reports
    them as never completed.
    """
    families = list(dict.fromkeys(item.metadata.tools for item in items))
    unreachable = [
        f"{item.id}: metadata.tools: no server of {target.source.name} has a tools_arg to pass them by; "
        'add one, e.g. tools_arg = "--tools={tools}"'
        for item in items
        if item.metadata.tools and not target.takes_tools
    ]
    if unreachable:
        raise TwogateError(unreachable)
    listed = await list_all(target, families)
    problems: list[str] = []
    warnings = _indistinct(listed)
    for item in items:
        if listed.failure(target, item.metadata.tools) is not None:
            continue
        there = {tool.name for tool in listed.of(target, item.metadata.tools)}
        if not there:
            servers = ", ".join(server.name for server in target.under_test)
            problems.append(f"{item.id}: the target ({servers}) lists no tools{_for(item)}; see twogate doctor")
            continue
        known = there if mcp_tools_only or item.metadata.mcp_tools_only else there | set(builtin_tools)
        missing = [name for name in item.expected_tools if name not in known]
        if missing and len(missing) == len(item.expected_tools):
            problems.append(
                f"{item.id}: metadata.expectedTools: the target has no {' and no '.join(missing)}; "
                f"it has {', '.join(sorted(there)) or 'no tools'}"
            )
        elif missing:
            warnings.append(f"{item.id}: metadata.expectedTools: the target has no {', '.join(missing)}")
        fail_tools = set(item.metadata.fail_tools or ())
        if unknown := sorted(fail_tools - there):
            problems.append(
                f"{item.id}: metadata.failTools: the target has no {' and no '.join(unknown)}, so nothing would fail; "
                f"it has {', '.join(sorted(there)) or 'no tools'}"
            )
        if unknown := sorted(set(item.metadata.expected_errors or ()) - there - fail_tools):
            warnings.append(f"{item.id}: metadata.expectedErrors: the target has no {', '.join(unknown)}")
    if problems:
        raise TwogateError(problems)
    return Preflight(listed, tuple(warnings))


def _for(item: Item) -> str:
    return f" for {', '.join(item.metadata.tools)}" if item.metadata.tools else ""


def _indistinct(listed: ToolList) -> list[str]:
    """A warning for each name that Claude Code gives to several tools of a launch: a call of it may be any of them."""
    lines: dict[str, None] = {}
    for tools in listed.by_launch.values():
        by_name: dict[str, list[str]] = {}
        for tool in tools:
            by_name.setdefault(tool.client_name, []).append(tool.name)
        for name, own in by_name.items():
            if len(own) > 1:
                lines[
                    f"the tools {' and '.join(own)} are both {name} to Claude Code, which sees one of them; rename one"
                ] = None
    return list(lines)


def _tool(server: str, listed: Any) -> Tool:
    annotations = listed.annotations
    return Tool(
        server=server,
        name=listed.name,
        description=listed.description or "",
        input_schema=dict(listed.input_schema or {}),
        read_only=bool(annotations and annotations.read_only_hint),
    )
