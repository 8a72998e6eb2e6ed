"""What an agent produced: turns, tool calls with their results, usage. Pydantic only; no SDK, no files.

A `ConversationBuilder` takes what arrives in the order it arrives (content blocks one at a time, results of parallel
calls in any order) and folds it: blocks that share a message id are one turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

TURN_LIMIT = "error_max_turns"
"""How a conversation that ran into its limit of turns ended (`Conversation.stop`)."""


def encodable(text: str) -> str:
    """The same text; half of a surrogate pair, which no file and no request can carry, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _encodable_value(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable_value(key): _encodable_value(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_encodable_value(one) for one in value]
    return value


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Usage(_Frozen):
    """Tokens of a conversation. `input_tokens` excludes what was read from or written to the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class ToolCall(_Frozen):
    """One call the model asked for."""

    id: str
    name: str
    """As the client named it, e.g. `mcp__repository__read_file`."""
    server: str | None = None
    """The MCP server it belongs to; None for a built-in tool or one that does not exist."""
    server_tool: str | None = None
    """The name as the server gives it, where that is not what the client made of it."""
    arguments: dict[str, Any] = {}
    parent: str | None = None
    """Id of the call that started the subagent which made this one; None when the agent made it itself."""
    called_at: datetime
    result: str | None = None
    """The result's text; None when none came back."""
    is_error: bool = False
    denied: bool = False
    """Refused by the harness before it could run."""
    returned_at: datetime | None = None

    @property
    def tool(self) -> str:
        """The name as the server gives it, without the client's prefix."""
        if self.server_tool is not None:
            return self.server_tool
        return self.name.removeprefix(f"mcp__{self.server}__") if self.server else self.name

    @property
    def executed(self) -> bool:
        """A result came back that is not an error: the tool really ran."""
        return self.result is not None and not self.is_error and not self.denied


class Turn(_Frozen):
    """One answer of the model: its text, thinking and calls."""

    message_id: str
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    started_at: datetime
    ended_at: datetime


class Conversation(_Frozen):
    """A whole conversation about one query."""

    query: str
    turns: tuple[Turn, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    """None when the agent did not report it."""
    cost_usd: float | None = None
    started_at: datetime
    ended_at: datetime
    stop: str | None = None
    """How it ended, in the agent's own word: `success`, `error_max_turns`, …"""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every call in block order, which is the order the model asked in.

        A subagent's calls to a server follow the call that started the subagent.
        """
        return tuple(call for turn in self.turns for call in turn.calls)

    @property
    def answers(self) -> tuple[str, ...]:
        """What the agent said to the user: the texts of turns that made no call."""
        return tuple(turn.text for turn in self.turns if turn.text.strip() and not turn.calls)

    @property
    def final_answer(self) -> str | None:
        """The last turn's text when that turn made no call."""
        if self.turns and not self.turns[-1].calls:
            return self.turns[-1].text or None
        return None


class _Draft:
    """A turn that may still grow."""

    def __init__(self, message_id: str, at: datetime) -> None:
        self.message_id = message_id
        self.started_at = at
        self.ended_at = at
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.calls: list[str] = []


class ConversationBuilder:
    """Folds what arrives from an agent into a `Conversation`.

    servers: names of the MCP servers attached; a call's `mcp__<server>__` prefix is told from theirs, the longest
    that fits, since a server's name may itself contain `__`. tools: what the servers themselves call a tool, by the
    client's name of it; a client replaces characters that models' APIs do not take.
    """

    def __init__(
        self,
        query: str,
        servers: tuple[str, ...],
        started_at: datetime,
        tools: Mapping[str, str] | None = None,
    ) -> None:
        self._tools = tools or {}
        self._query = query
        self._servers = sorted(servers, key=len, reverse=True)
        self._started_at = started_at
        self._last = started_at
        self._drafts: dict[str, _Draft] = {}
        self._calls: dict[str, ToolCall] = {}
        self._started_by: dict[str, str] = {}  # a subagent's call -> the agent's own call it goes back to

    def _draft(self, message_id: str, at: datetime) -> _Draft:
        draft = self._drafts.get(message_id)
        if draft is None:
            # A turn starts when the model was asked, which is when the last thing before it arrived.
            draft = self._drafts[message_id] = _Draft(message_id, self._last)
        draft.ended_at = self._last = max(at, self._last)
        return draft

    def add_text(self, message_id: str, text: str, at: datetime) -> None:
        self._draft(message_id, at).text.append(encodable(text))

    def add_thinking(self, message_id: str, text: str, at: datetime) -> None:
        self._draft(message_id, at).thinking.append(encodable(text))

    def add_call(
        self, message_id: str, call_id: str, name: str, arguments: Mapping[str, Any], at: datetime
    ) -> ToolCall:
        """A call in block order; a block that is repeated (same call id) counts once."""
        draft = self._draft(message_id, at)
        if call_id not in self._calls:
            draft.calls.append(call_id)
            self._calls[call_id] = self._call(call_id, name, arguments, at)
        return self._calls[call_id]

    def add_delegated_call(
        self, parent_id: str, call_id: str, name: str, arguments: Mapping[str, Any], at: datetime
    ) -> None:
        """A subagent's call. What it asks of a server is the agent's doing; its built-in tools are its own affair.

        parent_id: the call that started the subagent, which may itself be a subagent's.
        """
        own = self._started_by.get(parent_id, parent_id)
        self._started_by[call_id] = own
        draft = next((one for one in self._drafts.values() if own in one.calls), None)
        call = self._call(call_id, name, arguments, at).model_copy(update={"parent": own})
        if draft is None or call.server is None or call_id in self._calls:
            return
        self._calls[call_id] = call
        last = max(place for place, one in enumerate(draft.calls) if own in (one, self._calls[one].parent))
        draft.calls.insert(last + 1, call_id)

    def _call(self, call_id: str, name: str, arguments: Mapping[str, Any], at: datetime) -> ToolCall:
        server = next((one for one in self._servers if name.startswith(f"mcp__{one}__")), None)
        call = ToolCall(
            id=call_id,
            name=encodable(name),
            server=server,
            arguments=_encodable_value(dict(arguments)),
            called_at=at,
        )
        own = self._tools.get(name)
        return call if own in (None, call.tool) else call.model_copy(update={"server_tool": own})

    def add_result(
        self,
        call_id: str,
        result: str,
        *,
        is_error: bool,
        at: datetime,
        denied: bool = False,
        called_at: datetime | None = None,
    ) -> ToolCall | None:
        """The result of a call; None when no such call was seen (of a subagent's built-in tool).

        called_at: when the call really started, where that is known better than by its arrival.
        """
        call = self._calls.get(call_id)
        if call is None:
            return None
        self._last = max(at, self._last)
        update: dict[str, Any] = {
            "result": encodable(result),
            "is_error": is_error,
            "denied": denied,
            "returned_at": at,
            "called_at": called_at or call.called_at,
        }
        call = self._calls[call_id] = call.model_copy(update=update)
        return call

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, in block order."""
        return tuple(self._calls[one] for draft in self._drafts.values() for one in draft.calls)

    def build(
        self,
        *,
        ended_at: datetime,
        model: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        stop: str | None = None,
    ) -> Conversation:
        turns = tuple(
            Turn(
                message_id=draft.message_id,
                text="\n\n".join(draft.text),
                thinking="\n\n".join(draft.thinking),
                calls=tuple(self._calls[one] for one in draft.calls),
                started_at=draft.started_at,
                ended_at=draft.ended_at,
            )
            for draft in self._drafts.values()
        )
        return Conversation(
            query=self._query,
            turns=turns,
            model=model,
            usage=usage,
            cost_usd=cost_usd,
            started_at=self._started_at,
            ended_at=ended_at,
            stop=stop,
        )
