"""Scoring of an agent trial's tool calls: none to a server under test may have failed unexpectedly. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evals.conversation import Conversation, ToolCall
from evals.items import Item

_SHOWN = 200  # characters of a failed call's message shown in a reason


@dataclass(frozen=True)
class ToolErrorsScore:
    """Whether every failed call was an expected one, why, and the calls that were not, in their order."""

    passed: bool
    reason: str
    unexpected: tuple[ToolCall, ...]


def score_tool_errors(conversation: Conversation, item: Item, servers_under_test: Collection[str]) -> ToolErrorsScore:
    """Look for failed calls that the item's expectedErrors do not explain.

    A call failed when its result is an error or it was refused before it could run (failTools stands for the server's
    own failure). Calls to the servers under test count, of tools that only read as well as of those that change
    something, and calls to a tool such a server does not have. Built-in tools and auxiliary servers do not count: their
    failures say nothing of the server under test.

    servers_under_test: their names, as the target has them.
    """
    counted = [call for call in conversation.calls if call.server in servers_under_test]
    failed = [call for call in counted if call.is_error or call.denied]
    expected = frozenset(item.metadata.expected_errors or ())
    unexpected = tuple(call for call in failed if call.tool not in expected)
    if unexpected:
        what = "; ".join(_described(call) for call in unexpected)
        return ToolErrorsScore(False, f"{_calls(len(unexpected))} failed unexpectedly: {what}", unexpected)
    if failed:
        tools = ", ".join(dict.fromkeys(call.tool for call in failed))
        return ToolErrorsScore(True, f"only expected errors: {_calls(len(failed))} of {tools}", ())
    if not counted:
        return ToolErrorsScore(True, "no call to a server under test", ())
    return ToolErrorsScore(True, f"none of {_calls(len(counted))} failed", ())


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"


def _described(call: ToolCall) -> str:
    said = " ".join((call.result or "").split()) or "no message"
    return f"{call.tool}: {said if len(said) <= _SHOWN else said[: _SHOWN - 1] + '…'}"
