"""The observations of a trial: an agent, a generation with tokens and cost, a tool a call, with their real times."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from langfuse import LangfuseAgent, LangfuseGeneration, LangfuseTool
from opentelemetry import trace as otel

from evals.conversation import Conversation, ToolCall
from evals.recording.client import Recorder

RESULT_LIMIT = 512 * 1024
"""Bytes (UTF-8) of a tool's result above which it is left off with its size noted."""
UNDER_TEST = "under_test"
"""In a tool observation's metadata: whether its server is under test."""
_STATUS_LENGTH = 500  # characters


def record_conversation(
    recorder: Recorder,
    conversation: Conversation,
    *,
    agent: str,
    error: str | None = None,
    warning: str | None = None,
    under_test: Collection[str] | None = None,
) -> None:
    """Write a conversation's observations under the current one.

    agent: what answered, e.g. `claude-code`. error: why the trial could not be measured, if so. warning: what was
    unusual about it, if anything. under_test: the servers whose failed calls are the trial's; None says nothing of it.
    """
    message = error or warning
    span = recorder.tracer.start_span(agent, start_time=_ns(conversation.started_at))
    root = LangfuseAgent(
        otel_span=span,
        langfuse_client=recorder.client,
        input=conversation.query,
        output=conversation.final_answer,
        level="ERROR" if error else "WARNING" if warning else None,
        status_message=message[:_STATUS_LENGTH] if message else None,
        metadata={"stop": conversation.stop} if conversation.stop else None,
    )
    with otel.use_span(span, end_on_exit=False):
        _generation(recorder, conversation)
        for call in conversation.calls:
            _tool(recorder, call, conversation.ended_at, under_test)
    root.end(end_time=_ns(conversation.ended_at))


def _generation(recorder: Recorder, conversation: Conversation) -> None:
    usage = conversation.usage
    first = conversation.turns[0].started_at if conversation.turns else conversation.started_at
    generation = LangfuseGeneration(
        otel_span=recorder.tracer.start_span("model", start_time=_ns(first)),
        langfuse_client=recorder.client,
        input=conversation.query,
        output=[_turn(turn.text, turn.thinking, turn.calls) for turn in conversation.turns],
        model=conversation.model,
        usage_details={
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
        }
        if usage
        else None,
        cost_details={"total": conversation.cost_usd} if conversation.cost_usd is not None else None,
    )
    generation.end(end_time=_ns(conversation.ended_at))


def _turn(text: str, thinking: str, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    """Narration, thinking and the names of the calls; their arguments and results live in the tool observations."""
    turn: dict[str, Any] = {}
    if thinking:
        turn["thinking"] = thinking
    if text:
        turn["text"] = text
    if calls:
        turn["calls"] = [call.tool for call in calls]
    return turn


def _tool(recorder: Recorder, call: ToolCall, ended_at: datetime, under_test: Collection[str] | None) -> None:
    failed = call.is_error or call.denied
    unanswered = call.result is None and not failed
    if call.denied:
        message = call.result or "denied before it could run"
    else:
        message = call.result if call.result is not None else "no result came back"
    tool = LangfuseTool(
        otel_span=recorder.tracer.start_span(call.tool, start_time=_ns(call.called_at)),
        langfuse_client=recorder.client,
        input=call.arguments,
        output=limited(call.result),
        level="ERROR" if failed else "WARNING" if unanswered else None,
        status_message=message[:_STATUS_LENGTH] if failed or unanswered else None,
        metadata=_tool_metadata(call, under_test),
    )
    tool.end(end_time=_ns(call.returned_at or ended_at))


def _tool_metadata(call: ToolCall, under_test: Collection[str] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "server": call.server or "",
        "name": call.name,
        "call_id": call.id,
        "denied": call.denied,
    }
    if under_test is not None:
        metadata[UNDER_TEST] = call.server in under_test
    if call.parent is not None:
        metadata["subagent_of"] = call.parent
    return metadata


def limited(result: str | None) -> Any:
    """A result as it is recorded: JSON parsed, and what is over `RESULT_LIMIT` replaced by its size."""
    if result is None:
        return None
    size = len(result.encode("utf-8", errors="replace"))
    if size > RESULT_LIMIT:
        return {"left_off": f"result of {size} bytes, over the {RESULT_LIMIT} recorded"}
    try:
        parsed = json.loads(result)
    except ValueError:
        return result
    return parsed if isinstance(parsed, dict | list) else result


def _ns(moment: datetime) -> int:
    """Nanoseconds since the epoch."""
    return int(moment.timestamp() * 1_000_000) * 1_000
