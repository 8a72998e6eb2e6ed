"""From Claude Agent SDK messages to a `Conversation`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    ResultMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from evals.agents import AgentError
from evals.agents.hooks import Ran
from evals.conversation import TURN_LIMIT, Conversation, ConversationBuilder, Usage

# What Claude Code answers in place of a result that it does not pass on; it does not call that an error.
_TOO_LARGE = re.compile(r"Error: result \([^)]*\) exceeds maximum allowed tokens")


class Folder:
    """Takes the messages of one session as they arrive. Of subagents' only the calls to servers are kept.

    denied: ids of the calls the harness refused. ran: when calls ran, by their ids, where that is known; else the
    times at which messages arrive stand for it. Both may grow while messages arrive. tools: what the servers call
    their tools, by Claude Code's names of them.
    """

    def __init__(
        self,
        query: str,
        servers: tuple[str, ...],
        denied: Collection[str] = (),
        ran: Mapping[str, Ran] | None = None,
        tools: Mapping[str, str] | None = None,
    ) -> None:
        self._builder = ConversationBuilder(query, servers, datetime.now(UTC), tools)
        self._denied = denied
        self._ran = {} if ran is None else ran
        self._model: str | None = None
        self.result: ResultMessage | None = None
        self.api_error: str | None = None
        """What Claude Code says of a failed API request, in its words."""
        self.subagents = 0
        """Messages of subagents seen."""

    def add(self, message: Message) -> None:
        """Take one message."""
        now = datetime.now(UTC)
        if isinstance(message, ResultMessage):
            self.result = message
        elif isinstance(message, AssistantMessage | UserMessage) and message.parent_tool_use_id:
            self.subagents += 1
            self._subagent(message, message.parent_tool_use_id, now)
        elif isinstance(message, AssistantMessage):
            self._assistant(message, now)
        elif isinstance(message, UserMessage):
            self._results(message, now)

    def _assistant(self, message: AssistantMessage, now: datetime) -> None:
        if message.error is not None:
            # A notice Claude Code writes in the model's place; it is not the model's answer.
            texts = [block.text for block in message.content if isinstance(block, TextBlock)]
            self.api_error = " ".join([str(message.error), *texts])
            return
        self._model = message.model
        turn = message.message_id or message.uuid or f"turn-{now.isoformat()}"
        for block in message.content:
            if isinstance(block, TextBlock):
                self._builder.add_text(turn, block.text, now)
            elif isinstance(block, ThinkingBlock):
                self._builder.add_thinking(turn, block.thinking, now)
            elif isinstance(block, ToolUseBlock):
                self._builder.add_call(turn, block.id, block.name, block.input, now)

    def _subagent(self, message: AssistantMessage | UserMessage, parent: str, now: datetime) -> None:
        if isinstance(message, UserMessage):
            self._results(message, now)
            return
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                self._builder.add_delegated_call(parent, block.id, block.name, block.input, now)

    def _results(self, message: UserMessage, now: datetime) -> None:
        if isinstance(message.content, str):
            return
        for block in message.content:
            if not isinstance(block, ToolResultBlock):
                continue
            ran = self._ran.get(block.tool_use_id)
            self._builder.add_result(
                block.tool_use_id,
                result_text(block.content),
                is_error=bool(block.is_error) or _TOO_LARGE.match(result_text(block.content)) is not None,
                denied=block.tool_use_id in self._denied,
                at=ran.ended_at if ran else now,
                called_at=ran.started_at if ran else None,
            )

    def conversation(self) -> Conversation:
        result = self.result
        return self._builder.build(
            ended_at=datetime.now(UTC),
            model=self._model,
            usage=_usage(result.usage) if result is not None and result.usage else None,
            cost_usd=result.total_cost_usd if result is not None else None,
            stop=result.subtype if result is not None else None,
        )


def check_ending(folder: Folder, conversation: Conversation) -> None:
    """Raise AgentError unless the session ended by an answer or by the limit of turns."""
    result = folder.result
    if result is None:
        raise AgentError("Claude Code ended without a result", conversation)
    if result.subtype == TURN_LIMIT:
        return
    if folder.api_error is not None or result.is_error or result.subtype != "success":
        status = f" {result.api_error_status}" if result.api_error_status else ""
        said = folder.api_error or "; ".join(result.errors or []) or result.result or result.subtype
        raise AgentError(f"the model's API failed{status}: {said}", conversation)


def result_text(content: str | list[dict[str, Any]] | None) -> str:
    """A tool result as text; an image or a resource as a short description of itself."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        if block.get("type") == "text":
            parts.append(str(block.get("text", "")))
        elif block.get("type") == "image":
            source = block.get("source") or {}
            data = source.get("data") or block.get("data") or ""
            kind = source.get("media_type") or block.get("mimeType") or "image"
            parts.append(f"[{kind}, {len(data)} base64 characters]")
        else:
            parts.append(json.dumps(block, ensure_ascii=False))
    return "\n".join(parts)


def _usage(reported: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=reported.get("input_tokens") or 0,
        output_tokens=reported.get("output_tokens") or 0,
        cache_read_tokens=reported.get("cache_read_input_tokens") or 0,
        cache_write_tokens=reported.get("cache_creation_input_tokens") or 0,
    )
