"""The Anthropic Messages API: what a request says, which requests it refuses, and answers as JSON or as a stream.

Source: https://platform.claude.com/docs/en/api/messages and .../build-with-claude/streaming
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evals.embedded.model.conversations import Said
from evals.embedded.model.faults import Refusal, refusal
from evals.embedded.model.replies import Reply, Size, pieces
from evals.tool_definitions import PROPERTY_NAME, odd_properties, schema_error

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
#: The tool through which Claude Code takes structured output (``output_format`` of the Agent SDK).
STRUCTURED_OUTPUT = "StructuredOutput"


@dataclass(frozen=True, slots=True)
class Understood:
    """A valid request, as far as an answer depends on it."""

    model: str
    said: tuple[Said, ...]
    tools: tuple[str, ...]
    size: Size
    stream: bool
    answer_tool: str | None = None
    side: Literal["title", "quota"] | None = None
    include_usage: bool = True

    @property
    def may_judge(self) -> bool:
        """A judge has no tools to work with, except the one its answer goes through."""
        return not self.tools or self.answer_tool is not None


class RefusedError(Exception):
    """The request is one the API would not take."""

    def __init__(self, answer: Refusal) -> None:
        super().__init__(answer.message)
        self.answer = answer


def bad(message: str) -> RefusedError:
    """An invalid_request_error."""
    return RefusedError(refusal(400, message))


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises RefusedError when the key or the version is missing; any key is a good one."""
    if not headers.get("x-api-key") and not headers.get("authorization"):
        raise RefusedError(refusal(401, "x-api-key header is required"))
    if not headers.get("anthropic-version"):
        raise bad("anthropic-version: header is required")


def understand(body: Any, length: int, caches: bool, *, counting: bool = False) -> Understood:
    """Read a request of ``length`` characters. Raises RefusedError for what the API refuses too.

    ``caches``: the body has cache_control somewhere. ``counting``: it is for count_tokens, which needs no max_tokens.
    """
    if not isinstance(body, dict):
        raise bad("the body must be a JSON object")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad("model: Field required" if model is None else "model: Input should be a valid string")
    limit = body.get("max_tokens")
    if not counting:
        if limit is None:
            raise bad("max_tokens: Field required")
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise bad("max_tokens: Input should be a valid integer")
        if limit < 1:
            raise bad("max_tokens: Input should be greater than or equal to 1")
    said, new = _read_messages(body.get("messages"))
    tools = _read_tools(body.get("tools"))
    return Understood(
        model=model,
        said=said,
        tools=tools,
        size=Size(length, new, caches),
        stream=body.get("stream") is True,
        answer_tool=_answer_tool(body.get("tool_choice"), tools),
        side=_side_request(body, tools, limit),
    )


def _read_messages(messages: Any) -> tuple[tuple[Said, ...], int]:
    """(what was said, characters since the last answer)."""
    if not isinstance(messages, list):
        raise bad("messages: Field required" if messages is None else "messages: Input should be a valid array")
    if not messages:
        raise bad("messages: at least one message is required")
    said: list[Said] = []
    used: set[str] = set()
    open_calls: dict[str, None] = {}
    answerable: set[str] = set()
    previous = ""
    chars = 0
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if not isinstance(message, dict):
            raise bad(f"{where}: Input should be an object")
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            raise bad(f"{where}.role: Input should be 'user' or 'assistant'")
        texts, marks, calls, results, length = _read_content(message.get("content"), where)
        if role == "assistant":
            if previous != "assistant":
                _check_answered(open_calls, number)
                answerable.clear()
            chars = 0
            for call in calls:
                if call in used:
                    raise bad(f"{where}: `tool_use` ids must be unique: {call}")
                used.add(call)
                open_calls[call] = None
                answerable.add(call)
        else:
            chars += length
            for result in results:
                if result not in answerable:
                    raise bad(
                        f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {result}. Each "
                        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                    )
                open_calls.pop(result, None)
        if role != "system":
            if not previous and role != "user":
                raise bad("messages: first message must use the user role")
            previous = role
        said.append(Said(role, texts, marks, bool(results)))
    _check_answered(open_calls, len(messages))
    return tuple(said), chars


def _check_answered(open_calls: dict[str, None], number: int) -> None:
    if open_calls:
        raise bad(
            f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(open_calls)}. Each `tool_use` block must have a corresponding `tool_result` block in "
            "the next message."
        )


def _read_content(
    content: Any, where: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    """(texts, marks, ids of calls, ids of results, characters)."""
    if isinstance(content, str):
        if not content:
            raise bad(f"{where}: content must be non-empty")
        return (content,), (), (), (), len(content)
    if not isinstance(content, list):
        raise bad(f"{where}.content: Input should be a valid string or array")
    texts: list[str] = []
    marks: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    chars = 0
    for position, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            raise bad(f"{where}.content.{position}.type: Field required")
        if kind == "text":
            text = block.get("text")
            if not isinstance(text, str):
                raise bad(f"{where}.content.{position}.text: Field required")
            if not text:
                raise bad("messages: text content blocks must be non-empty")
            texts.append(text)
            chars += len(text)
        elif kind == "tool_use":
            identifier = block.get("id")
            if not isinstance(identifier, str) or not isinstance(block.get("name"), str):
                raise bad(f"{where}.content.{position}: `tool_use` needs an id and a name")
            if not isinstance(block.get("input"), dict):
                raise bad(f"{where}.content.{position}.tool_use.input: Input should be a valid dictionary")
            calls.append(identifier)
            marks.append(identifier)
        elif kind == "tool_result":
            identifier = block.get("tool_use_id")
            if not isinstance(identifier, str):
                raise bad(f"{where}.content.{position}.tool_result.tool_use_id: Field required")
            results.append(identifier)
            chars += _result_length(block.get("content"))
        elif kind == "thinking" and isinstance(block.get("signature"), str):
            marks.append(block["signature"])
    return tuple(texts), tuple(marks), tuple(calls), tuple(results), chars


def _result_length(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    if not isinstance(content, list):
        return 0
    return sum(len(part.get("text") or "") for part in content if isinstance(part, dict))


def _read_tools(tools: Any) -> tuple[str, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise bad("tools: Input should be a valid array")
    names: list[str] = []
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise bad(f"tools.{number}: Input should be an object")
        name = tool.get("name")
        if not isinstance(name, str):
            # server-side toolsets (type mcp_toolset) have no name
            if isinstance(tool.get("type"), str) and tool["type"] != "custom":
                continue
            raise bad(f"tools.{number}.custom.name: Field required")
        if not _TOOL_NAME.match(name):
            raise bad(f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool.get("type", "custom") == "custom":
            _check_schema(tool.get("input_schema"), f"tools.{number}.custom.input_schema")
        names.append(name)
    if len(set(names)) != len(names):
        raise bad("tools: Tool names must be unique.")
    return tuple(names)


def _check_schema(schema: Any, where: str) -> None:
    if not isinstance(schema, dict):
        raise bad(f"{where}: Field required" if schema is None else f"{where}: Input should be an object")
    if schema.get("type") != "object":
        if "type" not in schema:
            raise bad(f"{where}.type: Field required")
        raise bad(f"{where}.type: Input should be 'object'")
    if any(key in schema for key in ("oneOf", "allOf", "anyOf")):
        raise bad(f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if odd_properties(schema):
        raise bad(f"{where}.properties: Property keys should match pattern '{PROPERTY_NAME}'")
    if schema_error(schema) is not None:
        raise bad(f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12")


def _answer_tool(choice: Any, tools: tuple[str, ...]) -> str | None:
    """The tool a structured answer goes through, if the request wants it so."""
    if isinstance(choice, dict) and choice.get("type") == "tool":
        name = choice.get("name")
        if name not in tools:
            raise bad(f"tool_choice: Tool '{name}' not found in provided tools")
        return str(name)
    return STRUCTURED_OUTPUT if STRUCTURED_OUTPUT in tools else None


def _side_request(body: dict[str, Any], tools: tuple[str, ...], limit: Any) -> Literal["title", "quota"] | None:
    """Claude Code's own requests beside the conversation: naming the session, and asking for its quota."""
    if tools:
        return None
    config = body.get("output_config")
    if isinstance(config, dict) and isinstance(config.get("format"), dict):
        schema = config["format"].get("schema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict) and list(properties) == ["title"]:
            return "title"
    if limit == 1 and body["messages"][-1].get("content") == "quota":
        return "quota"
    return None


def error_body(answer: Refusal, request_id: str) -> bytes:
    """The API's error as JSON."""
    return dump(_error(answer, request_id))


def _error(answer: Refusal, request_id: str) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": answer.type, "message": answer.message},
        "request_id": request_id,
    }


def error_event(answer: Refusal, request_id: str) -> bytes:
    """The API's error in the middle of a stream."""
    return _event(_error(answer, request_id))


def _usage(reply: Reply, output: int) -> dict[str, Any]:
    counts = reply.counts
    usage: dict[str, Any] = {
        "input_tokens": counts.input,
        "cache_creation_input_tokens": counts.cache_creation,
        "cache_read_input_tokens": counts.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counts.cache_creation,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }
    if counts.cost is not None:
        usage["cost"] = counts.cost
    return usage


def _message(reply: Reply, content: list[dict[str, Any]], stop: str | None, output: int) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(reply, output),
    }


def as_json(reply: Reply) -> bytes:
    """The whole answer as JSON."""
    content: list[dict[str, Any]] = []
    if reply.thinking is not None:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": reply.mark})
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    content += [
        {"type": "tool_use", "id": f"toolu_{call.stem}", "name": call.name, "input": call.input} for call in reply.calls
    ]
    return dump(_message(reply, content, reply.stop_reason, reply.counts.output))


def as_events(reply: Reply) -> list[bytes]:
    """The answer as server-sent events, one element an event."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(reply, [], None, 1)},
        {"type": "ping"},
    ]
    index = 0
    if reply.thinking is not None:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.thinking)]
        deltas.append({"type": "signature_delta", "signature": reply.mark})
        events += _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        index += 1
    if reply.text is not None:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(reply.text)]
        events += _block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for call in reply.calls:
        start = {"type": "tool_use", "id": f"toolu_{call.stem}", "name": call.name, "input": {}}
        parts = ["", *pieces(json.dumps(call.input, ensure_ascii=False))]
        events += _block(index, start, ({"type": "input_json_delta", "partial_json": part} for part in parts))
        index += 1
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop_reason, "stop_sequence": None},
            "usage": _usage(reply, reply.counts.output),
        }
    )
    events.append({"type": "message_stop"})
    return [_event(event) for event in events]


def _block(index: int, start: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _event(data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (data["type"].encode(), dump(data))


def dump(value: Any) -> bytes:
    """Compact JSON."""
    # In ASCII: half of a surrogate pair, which UTF-8 cannot hold, goes over the wire as the escape it was scripted as.
    return json.dumps(value, separators=(",", ":")).encode()
