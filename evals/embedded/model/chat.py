"""OpenAI chat completions, with what OpenRouter adds to them (usage.cost, reasoning).

Source: https://platform.openai.com/docs/api-reference/chat and https://openrouter.ai/docs/use-cases/usage-accounting
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evals.embedded.model.conversations import Said
from evals.embedded.model.faults import Refusal, refusal
from evals.embedded.model.messages import RefusedError, Understood, bad, dump
from evals.embedded.model.replies import Reply, Size, pieces

#: Answers carry a fixed time, so that the same request gets the same bytes.
_CREATED = 1_700_000_000

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises RefusedError when there is no key; any key is a good one."""
    if not headers.get("authorization"):
        raise RefusedError(refusal(401, "You didn't provide an API key."))


def understand(body: Any, length: int) -> Understood:
    """Read a request of ``length`` characters. Raises RefusedError for what the API refuses too."""
    if not isinstance(body, dict):
        raise bad("We could not parse the JSON body of your request: it must be an object.")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad("you must provide a model parameter")
    said, new = _read_messages(body.get("messages"))
    tools = _read_tools(body.get("tools"))
    options = body.get("stream_options")
    return Understood(
        model=model,
        said=said,
        tools=tools,
        size=Size(length, new, caches=False),
        stream=body.get("stream") is True,
        answer_tool=_answer_tool(body.get("tool_choice"), tools),
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def _read_messages(messages: Any) -> tuple[tuple[Said, ...], int]:
    if not isinstance(messages, list) or not messages:
        raise bad("Invalid 'messages': a non-empty array is required.")
    said: list[Said] = []
    open_calls: dict[str, None] = {}
    answerable: set[str] = set()
    chars = 0
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "developer", "user", "assistant", "tool"):
            raise bad(f"Invalid value for 'messages[{number}].role': {role!r}.")
        texts = _texts(message.get("content"), number)
        if role == "tool":
            identifier = message.get("tool_call_id")
            if identifier not in answerable:
                raise bad(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message "
                    f"with 'tool_calls' (messages[{number}], tool_call_id {identifier!r})."
                )
            open_calls.pop(str(identifier), None)
            chars += sum(map(len, texts))
            said.append(Said("user", (), (), has_results=True))
            continue
        _check_answered(open_calls)
        if role == "assistant":
            calls = _call_ids(message.get("tool_calls"), number)
            if not calls and message.get("content") is None:
                raise bad(f"Invalid value for 'content' of messages[{number}]: expected a string, got null.")
            open_calls = dict.fromkeys(calls)
            answerable = set(calls)
            chars = 0
            said.append(Said("assistant", texts, calls))
        else:
            chars += sum(map(len, texts))
            said.append(Said("user" if role == "user" else "system", texts))
    _check_answered(open_calls)
    return tuple(said), chars


def _check_answered(open_calls: dict[str, None]) -> None:
    if open_calls:
        raise bad(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(open_calls)
        )


def _texts(content: Any, number: int) -> tuple[str, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (content,)
    if not isinstance(content, list):
        raise bad(f"Invalid type for 'messages[{number}].content': expected a string or an array.")
    return tuple(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _call_ids(calls: Any, number: int) -> tuple[str, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and isinstance(call.get("id"), str) for call in calls
    ):
        raise bad(f"Invalid 'messages[{number}].tool_calls': each needs an id.")
    return tuple(call["id"] for call in calls)


def _read_tools(tools: Any) -> tuple[str, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list) or not tools:
        raise bad("Invalid 'tools': a non-empty array is required.")
    names: list[str] = []
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise bad(f"Missing required parameter: 'tools[{number}].function.name'.")
        names.append(function["name"])
    return tuple(names)


def _answer_tool(choice: Any, tools: tuple[str, ...]) -> str | None:
    if not isinstance(choice, dict):
        return None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if name not in tools:
        raise bad(f"Invalid value for 'tool_choice': no tool named {name!r} in 'tools'.")
    return str(name)


def error_body(answer: Refusal, request_id: str) -> bytes:
    """The API's error as JSON."""
    code = answer.type if answer.status == 429 else None
    error = {"message": answer.message, "type": answer.type, "param": None, "code": code}
    return dump({"error": error, "request_id": request_id})


def error_event(answer: Refusal, request_id: str) -> bytes:
    """An error in the middle of a stream, as OpenRouter sends it."""
    return _data({"error": {"message": answer.message, "type": answer.type, "code": answer.status}})


def _usage(reply: Reply) -> dict[str, Any]:
    counts = reply.counts
    prompt = counts.input + counts.cache_read + counts.cache_creation
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": counts.output,
        "total_tokens": prompt + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    if counts.cost is not None:
        usage["cost"] = counts.cost
    return usage


def as_json(reply: Reply) -> bytes:
    """The whole answer as JSON."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.thinking is not None:
        message["reasoning"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{call.stem}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
            }
            for call in reply.calls
        ]
    elif reply.text is None:
        message["content"] = ""
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _FINISH[reply.stop_reason],
    }
    return dump(
        {
            "id": f"chatcmpl-{reply.id}",
            "object": "chat.completion",
            "created": _CREATED,
            "model": reply.model,
            "choices": [choice],
            "usage": _usage(reply),
        }
    )


def as_events(reply: Reply, *, include_usage: bool) -> list[bytes]:
    """The answer as server-sent events, one element an event, ended by ``[DONE]``."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.thinking is not None:
        deltas += [{"reasoning": piece} for piece in pieces(reply.thinking)]
    if reply.text is not None:
        deltas += [{"content": piece} for piece in pieces(reply.text)]
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": f"call_{call.stem}", "type": "function", "function": function}
        deltas.append({"tool_calls": [start]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces(json.dumps(call.input, ensure_ascii=False))
        ]
    events = [_chunk(reply, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    finish = {"index": 0, "delta": {}, "finish_reason": _FINISH[reply.stop_reason]}
    events.append(_chunk(reply, [finish]))
    if include_usage:
        events.append(_chunk(reply, [], _usage(reply)))
    return [*(_data(event) for event in events), b"data: [DONE]\n\n"]


def _chunk(reply: Reply, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    chunk: dict[str, Any] = {
        "id": f"chatcmpl-{reply.id}",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": reply.model,
        "choices": choices,
    }
    if usage is not None:
        chunk["usage"] = usage
    return chunk


def _data(value: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % dump(value)
