"""Answers on their way out: whole, streamed, slowed down, or broken as a fault wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evals.embedded.model import chat, messages
from evals.embedded.model.faults import Refusal, Wire, refusal_of
from evals.embedded.model.messages import Understood
from evals.embedded.model.planning import Plan
from evals.embedded.model.replies import Reply
from evals.embedded.model.script import Fault

#: Between two events of a ``slow_stream`` fault that does not say.
SLOW_STREAM_MS = 250
JSON = "application/json"
_EVENT_STREAM = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Api:
    """What tells the two APIs apart once a request has been understood."""

    check_headers: Callable[[Mapping[str, str]], None]
    understand: Callable[[Any, bytes], Understood]
    as_json: Callable[[Reply], bytes]
    as_events: Callable[[Reply, Understood], list[bytes]]
    error_body: Callable[[Refusal, str], bytes]
    error_event: Callable[[Refusal, str], bytes]


def _caches(raw: bytes) -> bool:
    # Inside a JSON string the closing quote would be escaped, so this finds keys only.
    return b'"cache_control"' in raw


MESSAGES = Api(
    check_headers=messages.check_headers,
    understand=lambda body, raw: messages.understand(body, len(raw), _caches(raw)),
    as_json=messages.as_json,
    as_events=lambda reply, _: messages.as_events(reply),
    error_body=messages.error_body,
    error_event=messages.error_event,
)
CHAT = Api(
    check_headers=chat.check_headers,
    understand=lambda body, raw: chat.understand(body, len(raw)),
    as_json=chat.as_json,
    as_events=lambda reply, request: chat.as_events(reply, include_usage=request.include_usage),
    error_body=chat.error_body,
    error_event=chat.error_event,
)


async def refuse(api: Api, wire: Wire, answer: Refusal, request_id: str) -> None:
    await send_whole(
        wire,
        answer.status,
        api.error_body(answer, request_id),
        JSON,
        request_id,
        answer.retry_after,
    )


async def send(api: Api, wire: Wire, request: Understood, plan: Plan, request_id: str) -> None:
    delay = plan.chunk_delay_ms / 1000
    if not request.stream:
        await send_whole(wire, 200, api.as_json(plan.reply), JSON, request_id)
        return
    events = api.as_events(plan.reply, request)
    if not delay:
        await send_whole(wire, 200, b"".join(events), _EVENT_STREAM, request_id)
        return
    await wire.start(200, _headers(_EVENT_STREAM, request_id))
    for event in events:
        await wire.write(event, more=True)
        if not await wire.pause(delay):
            await wire.drop()
            return
    await wire.write(b"", more=False)


async def send_fault(api: Api, wire: Wire, request: Understood, plan: Plan, fault: Fault, request_id: str) -> None:
    error = refusal_of(fault)
    if fault.kind == "slow_stream":
        delay = SLOW_STREAM_MS if fault.delay_ms is None else fault.delay_ms
        await _send_slowly(api, wire, request, plan.reply, delay / 1000, request_id)
    elif fault.kind == "hang":
        await wire.pause(None)
        await wire.drop()
    elif fault.kind == "drop":
        await wire.drop()
    elif fault.kind == "malformed":
        await _send_malformed(api, wire, request, plan.reply, request_id)
    elif error is not None and not (fault.kind == "529_midstream" and request.stream):
        await refuse(api, wire, error, request_id)
    elif request.stream:
        events = api.as_events(plan.reply, request)
        half = b"".join(events[: max(1, len(events) // 2)])
        await wire.start(200, _headers(_EVENT_STREAM, request_id))
        if error is not None:
            await wire.write(half + api.error_event(error, request_id), more=False)
            return
        await wire.write(half, more=True)
        await wire.drop()
    else:
        data = api.as_json(plan.reply)
        await wire.start(200, _headers(JSON, request_id, len(data)))
        await wire.write(data[: len(data) // 2], more=True)
        await wire.drop()


async def _send_slowly(api: Api, wire: Wire, request: Understood, reply: Reply, delay: float, request_id: str) -> None:
    if request.stream:
        parts = api.as_events(reply, request)
        await wire.start(200, _headers(_EVENT_STREAM, request_id))
    else:
        data = api.as_json(reply)
        step = max(1, len(data) // 10)
        parts = [data[start : start + step] for start in range(0, len(data), step)]
        await wire.start(200, _headers(JSON, request_id, len(data)))
    for part in parts:
        await wire.write(part, more=True)
        if not await wire.pause(delay):
            await wire.drop()
            return
    await wire.write(b"", more=False)


async def _send_malformed(api: Api, wire: Wire, request: Understood, reply: Reply, request_id: str) -> None:
    if request.stream:
        # The event is well framed, its data is JSON cut short.
        first = api.as_events(reply, request)[0].rstrip(b"\n")
        await send_whole(wire, 200, first[: len(first) // 2] + b"\n\n", _EVENT_STREAM, request_id)
    else:
        data = api.as_json(reply)
        await send_whole(wire, 200, data[: len(data) // 2], JSON, request_id)


def _headers(kind: str, request_id: str, length: int | None = None) -> list[tuple[str, str]]:
    headers = [("content-type", kind), ("request-id", request_id), ("x-request-id", request_id)]
    if length is not None:
        headers.append(("content-length", str(length)))
    return headers


async def send_whole(
    wire: Wire, status: int, data: bytes, kind: str, request_id: str, retry_after: float | None = None
) -> None:
    headers = _headers(kind, request_id, len(data))
    if retry_after is not None:
        headers.append(("retry-after", f"{retry_after:g}"))
    await wire.start(status, headers)
    await wire.write(data, more=False)
