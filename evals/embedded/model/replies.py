"""The model's answer before it has a wire format: blocks, stop reason, usage."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evals.embedded.model.conversations import issued_mark, resolve_tool
from evals.embedded.model.script import Answer, Turn, Usage

#: Token counts are lengths divided by this: about four characters of English text to a token.
CHARS_PER_TOKEN = 4
#: What a warm cache leaves of the input: the API bills the tokens after the last cache breakpoint only.
UNCACHED_TOKENS = 3

PAST_END = "[scripted model] The script for this query ends after {count} turn(s); nothing is scripted here."


@dataclass(frozen=True, slots=True)
class Size:
    """Lengths of a request in characters: all of it, its messages since the last answer, and whether it caches."""

    total: int
    new: int
    caches: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens as the Messages API counts them: ``input`` excludes both cache numbers. ``cost`` is in US dollars."""

    input: int
    output: int
    cache_read: int = 0
    cache_creation: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call with the stem of its id; each API puts its own prefix to it."""

    stem: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: thinking, then text, then calls. ``mark`` signs the thinking block."""

    id: str
    model: str
    stop_reason: str
    counts: Counts
    text: str | None = None
    thinking: str | None = None
    calls: tuple[ToolUse, ...] = ()
    mark: str = ""


def tokens(chars: int) -> int:
    """Characters as tokens, rounded up."""
    return math.ceil(chars / CHARS_PER_TOKEN)


def count(size: Size, output_chars: int, override: Usage | None) -> Counts:
    """Plausible and deterministic usage of a request.

    With ``cache_control`` in the request the cache counts as warm: all that came before the newest messages is read
    from it, the newest messages are written to it. Without, everything is plain input.
    """
    total, new, output = tokens(size.total), tokens(min(size.new, size.total)), max(1, tokens(output_chars))
    if size.caches:
        counts = Counts(UNCACHED_TOKENS, output, max(0, total - new - UNCACHED_TOKENS), new)
    else:
        counts = Counts(total, output)
    if override is None:
        return counts

    def chosen(scripted: int | None, computed: int) -> int:
        return computed if scripted is None else scripted

    return Counts(
        chosen(override.input_tokens, counts.input),
        chosen(override.output_tokens, counts.output),
        chosen(override.cache_read_input_tokens, counts.cache_read),
        chosen(override.cache_creation_input_tokens, counts.cache_creation),
        override.cost,
    )


def agent_reply(
    turns: Sequence[Turn],
    *,
    entry: int,
    conversation: int,
    turn: int,
    tools: Sequence[str],
    model: str,
    size: Size,
    reply_id: str,
) -> Reply:
    """The scripted turn, or the honest text that the script has no more of them."""
    scripted = turns[turn] if turn < len(turns) else Turn(text=PAST_END.format(count=len(turns)))
    mark = issued_mark(entry + 1, conversation, turn)
    calls = tuple(
        ToolUse(f"{mark}_c{number}", resolve_tool(call.name, tools), call.input)
        for number, call in enumerate(scripted.calls)
    )
    chars = len(scripted.text or "") + len(scripted.thinking or "")
    chars += sum(len(call.name) + len(json.dumps(call.input)) for call in calls)
    return Reply(
        id=reply_id,
        model=model,
        stop_reason=scripted.stop_reason or ("tool_use" if calls else "end_turn"),
        counts=count(size, chars, scripted.usage),
        text=scripted.text or None,
        thinking=scripted.thinking,
        calls=calls,
        mark=mark,
    )


def judge_reply(
    answer: Answer, *, entry: int, number: int, tool: str | None, model: str, size: Size, reply_id: str
) -> Reply:
    """A judge's answer: a call of ``tool`` when the request wants its structured output so, else text.

    ``raw`` text that is not a JSON object cannot be a tool's input and is always sent as text.
    """
    if answer.raw is not None:
        text = answer.raw
    elif answer.output is not None:
        text = json.dumps(answer.output, ensure_ascii=False)
    else:
        text = json.dumps({"verdict": answer.verdict, "reason": answer.reason or ""}, ensure_ascii=False)
    calls: tuple[ToolUse, ...] = ()
    if tool is not None:
        value = _json_object(text)
        if value is not None:
            calls = (ToolUse(f"scripted_j{entry + 1}_n{number}", tool, value),)
    return Reply(
        id=reply_id,
        model=model,
        stop_reason="tool_use" if calls else "end_turn",
        counts=count(size, len(text), answer.usage),
        text=None if calls else text or None,
        calls=calls,
    )


def plain_reply(text: str, *, model: str, size: Size, reply_id: str, stop_reason: str = "end_turn") -> Reply:
    """A text that is no entry's: answers to an agent's side requests."""
    return Reply(reply_id, model, stop_reason, count(size, len(text), None), text=text)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def pieces(text: str, size: int = 64) -> list[str]:
    """A text in the pieces a stream sends; at least one, which may be empty."""
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
