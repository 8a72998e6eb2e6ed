"""Hooks around a tool call: what is refused before it can run, and when what did run ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from claude_agent_sdk import HookMatcher
from claude_agent_sdk.types import HookEvent

from evals.scoring.tool_call import TOOL_SEARCH

Hooks = dict[HookEvent, list[HookMatcher]]

# Claude Code's event after all calls of a message have their results, before the model is asked again. The SDK passes
# on any name, but its type does not list this one.
_AFTER_CALLS = cast(HookEvent, "PostToolBatch")

_DENIED = "This session ends at its first tool call; nothing is run."


class DenyAll:
    """Refuses every call but ToolSearch and ends the turn at the first refusal.

    ToolSearch only loads deferred tools: refused, the agent would never see the tools under test. Ending the turn
    saves the model's second answer, half the tokens of a trial. Calls that Claude Code answers itself, unseen by
    PreToolUse (a tool that does not exist, a built-in with arguments that it does not take), end it by PostToolBatch.
    """

    def __init__(self) -> None:
        self.denied: set[str] = set()
        """Ids of the calls it refused. PreToolUse does not see every call, and sees parallel ones in any order."""

    async def refuse(self, hook_input: Any, tool_use_id: str | None, context: Any) -> Any:
        if hook_input.get("tool_name") == TOOL_SEARCH:
            return {}
        if tool_use_id:
            self.denied.add(tool_use_id)
        return {
            "continue_": False,
            "stopReason": _DENIED,
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": _DENIED,
            },
        }

    async def end(self, hook_input: Any, tool_use_id: str | None, context: Any) -> Any:
        if all(call.get("tool_name") == TOOL_SEARCH for call in hook_input.get("tool_calls", ())):
            return {}
        return {"continue_": False, "stopReason": _DENIED}

    def hooks(self) -> Hooks:
        # on_failure: a hook that fails must not let the call through.
        return {
            "PreToolUse": [HookMatcher(matcher=None, hooks=[self.refuse], on_failure="block")],
            _AFTER_CALLS: [HookMatcher(matcher=None, hooks=[self.end], on_failure="block")],
        }


class FailTools:
    """Refuses the calls of some tools before they reach their server, in words that read like the server's failure.

    messages: what the failure says, by Claude Code's name of the tool.
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        self.denied: set[str] = set()
        self._messages = dict(messages)

    @property
    def tools(self) -> frozenset[str]:
        """Claude Code's names of the tools that fail."""
        return frozenset(self._messages)

    async def __call__(self, hook_input: Any, tool_use_id: str | None, context: Any) -> Any:
        message = self._messages.get(str(hook_input.get("tool_name")))
        if message is None:
            return {}
        if tool_use_id:
            self.denied.add(tool_use_id)
        # Asked for with nobody there to answer, the call is refused with the message alone; of a "deny" the model is
        # told that a hook did it.
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "ask",
                "permissionDecisionReason": message,
            },
        }

    def hooks(self) -> Hooks:
        return {"PreToolUse": [HookMatcher(matcher=None, hooks=[self], on_failure="block")]} if self._messages else {}


@dataclass(frozen=True)
class Ran:
    """When a call ran."""

    started_at: datetime
    ended_at: datetime


class CallClock:
    """When each call ran, by the duration Claude Code measured itself.

    The times at which a call and its result arrive here are no measure of it: on a busy machine both are read in one
    go, and a call of a second took no time at all.
    """

    def __init__(self) -> None:
        self.ran: dict[str, Ran] = {}
        """By the call's id. A refused call, or one that Claude Code answered itself, is not in it."""

    async def __call__(self, hook_input: Any, tool_use_id: str | None, context: Any) -> Any:
        duration = hook_input.get("duration_ms")
        if tool_use_id and isinstance(duration, int | float):
            ended = datetime.now(UTC)
            self.ran[tool_use_id] = Ran(ended - timedelta(milliseconds=duration), ended)
        return {}

    def hooks(self) -> Hooks:
        matchers = [HookMatcher(matcher=None, hooks=[self])]
        return {"PostToolUse": matchers, "PostToolUseFailure": matchers}
