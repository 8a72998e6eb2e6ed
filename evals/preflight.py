"""The items against the live target, before any model is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals.errors import TwogateError
from evals.items import Item
from evals.target import Target
from evals.tool_definitions import shown_and_hidden
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
    under_test = {server.name for server in target.under_test}
    told = [
        f"server {launch.server!r}: {line}"
        for launch, lines in listed.notices.items()
        if launch.server in under_test
        for line in lines
    ]
    warnings = list(dict.fromkeys(told))
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
    shown, hidden = shown_and_hidden(listed.of(target, item.metadata.tools))
    there = {tool.name for tool in shown}
    if not there:
        names = ", ".join(server.name for server in target.under_test)
        families = f" for {', '.join(item.metadata.tools)}" if item.metadata.tools else ""
        what = "no tool that Claude Code shows to the model" if hidden else "no tools"
        return [f"the target ({names}) lists {what}{families}; see twogate doctor"], []
    has = f"it has {', '.join(sorted(there))}"
    auxiliary = listed.auxiliary(target, item.metadata.tools)
    absent = {name: f"{name} is a tool of the auxiliary server {server}" for name, server in auxiliary.items()}
    absent |= {name: f"Claude Code does not show {name} to the model ({why})" for name, why in hidden.items()}
    problems: list[str] = []
    warnings = [
        f"metadata.expectedTools: {name} is a tool of {' and of '.join(servers)}; a call of either passes"
        for name in item.expected_tools
        if len(servers := list(dict.fromkeys(tool.server for tool in shown if tool.name == name))) > 1
    ]
    known = there.union(builtin)
    missing = [name for name in item.expected_tools if name not in known]
    if missing and len(missing) == len(item.expected_tools):
        problems.append(f"metadata.expectedTools: {_absent(missing, absent)}; {has}")
    elif missing:
        warnings.append(f"metadata.expectedTools: {_absent(missing, absent)}")
    fail_tools = set(item.metadata.fail_tools or ())
    if unknown := sorted(fail_tools - there):
        problems.append(f"metadata.failTools: {_absent(unknown, absent)}, so nothing would fail; {has}")
    if unknown := sorted(set(item.metadata.expected_errors or ()) - there - fail_tools):
        warnings.append(f"metadata.expectedErrors: {_absent(unknown, absent)}")
    return problems, warnings


def _absent(names: Sequence[str], known: Mapping[str, str]) -> str:
    """known: of names that the target has and that cannot be used, why."""
    none = [name for name in names if name not in known]
    said = [f"the target has no {' and no '.join(none)}"] if none else []
    return ", and ".join([*said, *(known[name] for name in names if name in known)])
