"""The items against the live target, before any model is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals.errors import TwogateError
from evals.items import Item
from evals.target import Target
from evals.tool_definitions import not_shown, unlike_listed
from evals.tool_listing import ToolList, list_all


@dataclass(frozen=True)
class Preflight:
    """The tool lists, and what is worth a warning."""

    tools: ToolList
    warnings: tuple[str, ...]


async def preflight(
    target: Target, items: Sequence[Item], builtin_tools: Collection[str], *, mcp_tools_only: bool = False
) -> Preflight:
    """Check the items against the live target.

    mcp_tools_only: no item gets the built-in tools, as the run's option says.

    Raises TwogateError when an item's `tools` cannot reach any server, when none of an item's expected tools exists, or
    when one does not exist that it wants to fail: then no model could pass. Some missing is a warning, and so is one
    whose errors are expected. A tool that Claude Code does not show to the model counts as missing. The items of a
    server that does not connect are left to the run, which reports them as never completed.
    """
    unreachable = [
        f"{item.id}: metadata.tools: no server of {target.source.name} has a tools_arg to pass them by; "
        'add one, e.g. tools_arg = "--tools={tools}"'
        for item in items
        if item.metadata.tools and not target.takes_tools
    ]
    if unreachable:
        raise TwogateError(unreachable)
    listed = await list_all(target, dict.fromkeys(item.metadata.tools for item in items))
    problems: list[str] = []
    warnings = [*_indistinct(listed), *unlike_listed(tool for tools in listed.by_launch.values() for tool in tools)]
    for item in items:
        if listed.failure(target, item.metadata.tools) is None:
            builtin = () if mcp_tools_only or item.metadata.mcp_tools_only else builtin_tools
            wrong, odd = _check(item, target, listed, builtin)
            problems += [f"{item.id}: {line}" for line in wrong]
            warnings += [f"{item.id}: {line}" for line in odd]
    if problems:
        raise TwogateError(problems)
    return Preflight(listed, tuple(warnings))


def _check(item: Item, target: Target, listed: ToolList, builtin: Iterable[str]) -> tuple[list[str], list[str]]:
    """What is wrong with an item, and what is odd about it."""
    tools = listed.of(target, item.metadata.tools)
    hidden = {tool.name: why for tool in tools if (why := not_shown(tool)) is not None}
    there = {tool.name for tool in tools} - set(hidden)
    if not there:
        servers = ", ".join(server.name for server in target.under_test)
        families = f" for {', '.join(item.metadata.tools)}" if item.metadata.tools else ""
        what = "no tool that Claude Code shows to the model" if hidden else "no tools"
        return [f"the target ({servers}) lists {what}{families}; see twogate doctor"], []
    has = f"it has {', '.join(sorted(there))}"
    problems: list[str] = []
    warnings: list[str] = []
    known = there.union(builtin)
    missing = [name for name in item.expected_tools if name not in known]
    if missing and len(missing) == len(item.expected_tools):
        problems.append(f"metadata.expectedTools: {_absent(missing, hidden)}; {has}")
    elif missing:
        warnings.append(f"metadata.expectedTools: {_absent(missing, hidden)}")
    fail_tools = set(item.metadata.fail_tools or ())
    if unknown := sorted(fail_tools - there):
        problems.append(f"metadata.failTools: {_absent(unknown, hidden)}, so nothing would fail; {has}")
    if unknown := sorted(set(item.metadata.expected_errors or ()) - there - fail_tools):
        warnings.append(f"metadata.expectedErrors: {_absent(unknown, hidden)}")
    return problems, warnings


def _absent(names: Sequence[str], hidden: Mapping[str, str]) -> str:
    none = [name for name in names if name not in hidden]
    said = [f"the target has no {' and no '.join(none)}"] if none else []
    said += [f"Claude Code does not show {name} to the model ({hidden[name]})" for name in names if name in hidden]
    return ", and ".join(said)


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
