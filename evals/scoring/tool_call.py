"""Scoring of a tool-call trial: the first call that is not ToolSearch, against what the item expects."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from evals.conversation import ToolCall
from evals.items import Item
from evals.scoring.json_equality import json_equal

TOOL_SEARCH = "ToolSearch"
_SHOWN = 200  # characters of a value shown in a reason
_BEFORE = 20  # of them before the place where two values that look alike differ


@dataclass(frozen=True)
class ToolCallScore:
    """Whether the measured call is a right one, and why, showing expected and actual."""

    passed: bool
    reason: str


def measured_call(calls: Iterable[ToolCall]) -> ToolCall | None:
    """The first call in block order that is not ToolSearch (which only loads deferred tools)."""
    return next((call for call in calls if call.name != TOOL_SEARCH), None)


def score_tool_call(
    item: Item,
    call: ToolCall | None,
    *,
    servers_under_test: Collection[str],
    tools_under_test: Collection[str],
    builtin_tools: Collection[str],
    mcp_tools_only: bool = False,
) -> ToolCallScore:
    """Compare a measured call with the item's expectedTools and expectedArgs.

    servers_under_test: their names; a call of an auxiliary server is no right call, whatever its tool is named.
    tools_under_test: the names the servers under test listed. builtin_tools: names of Claude Code's own tools.
    mcp_tools_only: the session had none of those, whatever the item says.
    """
    mcp_tools_only = mcp_tools_only or bool(item.metadata.mcp_tools_only)
    expected = " or ".join(item.expected_tools)
    if call is None:
        return ToolCallScore(False, f"expected a call of {expected}, the model made no call")
    where = f" of the server {call.server!r}" if call.server and call.tool not in tools_under_test else ""
    if call.tool not in item.expected_tools:
        # Of auxiliary servers' tools nothing is known here.
        exists = call.tool in tools_under_test or call.server not in servers_under_test
        return ToolCallScore(
            False,
            f"expected {expected}, the model called {call.tool}{where}({_brief(call.arguments)})"
            + _hint(call, exists, builtin_tools, mcp_tools_only),
        )
    if call.server is not None and call.server not in servers_under_test:
        return ToolCallScore(
            False,
            f"expected {expected} of a server under test, the model called that of {call.server!r}, an auxiliary one",
        )
    if call.server is None and call.name in builtin_tools and mcp_tools_only:
        return ToolCallScore(False, f"the model called {call.name}, a built-in tool that this session does not have")
    if call.server is None and call.name not in builtin_tools:
        return ToolCallScore(False, f"the model called {call.name}, without the server's prefix: no such tool exists")
    wrong = _differences(item.metadata.expected_args or {}, call.arguments)
    if wrong:
        return ToolCallScore(False, f"{call.tool} was called with other arguments: {'; '.join(wrong)}")
    with_arguments = f" with {_brief(item.metadata.expected_args)}" if item.metadata.expected_args else ""
    return ToolCallScore(True, f"{call.tool}{with_arguments}")


def _hint(call: ToolCall, exists: bool, builtin_tools: Collection[str], mcp_tools_only: bool) -> str:
    if call.server is not None:
        return "" if exists else "; the server has no such tool"
    if call.name not in builtin_tools:
        return "; no such tool exists"
    if mcp_tools_only:
        return "; a built-in tool of Claude Code"
    return "; a built-in tool of Claude Code: set mcpToolsOnly where only the server's tools are a right answer"


def _differences(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in expected.items():
        if key not in actual:
            lines.append(f"{key}: expected {_brief(value)}, missing")
        elif not json_equal(value, actual[key]):
            lines.append(f"{key}: {_unlike(value, actual[key])}")
    return lines


def _unlike(expected: Any, got: Any) -> str:
    """Both values, so that one can see how they differ."""
    left, right = (_readable(value)[:_SHOWN] for value in (expected, got))
    if _visible(left) != _visible(right):
        return f"expected {_brief(expected)}, got {_brief(got)}"
    # They look the same: only beyond what is shown, or in how their characters are written, do they differ.
    left, right = (json.dumps(value, sort_keys=True, default=str) for value in (expected, got))
    ends = zip_longest(left, right)
    place = next((at for at, (one, other) in enumerate(ends) if one != other), 0)
    start = max(0, place - _BEFORE)
    cut = "…" if start else ""
    left, right = left[start : start + _SHOWN], right[start : start + _SHOWN]
    return f"expected {cut}{left}, got {cut}{right} from character {place}"


def _brief(value: Any) -> str:
    text = _readable(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _readable(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _visible(text: str) -> str:
    """What one sees of a text: no matter how its characters are composed, and without those that have no width."""
    return "".join(one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf")
