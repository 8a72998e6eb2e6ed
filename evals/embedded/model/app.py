"""The scripted model as an ASGI application: from a request to its entry, its fault and its answer."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from evals.embedded.model import chat, messages
from evals.embedded.model.conversations import Asked, Matcher
from evals.embedded.model.faults import RAW_SEND, FaultQueue, Refusal, Wire, refusal, refusal_of
from evals.embedded.model.messages import RefusedError, Understood
from evals.embedded.model.records import Records, RequestRecord
from evals.embedded.model.replies import (
    Reply,
    agent_reply,
    judge_reply,
    plain_reply,
    tokens,
)
from evals.embedded.model.script import Fault, Script, shorten

#: Between two events of a ``slow_stream`` fault that does not say.
SLOW_STREAM_MS = 250
#: The name Claude Code gets when it asks for a session's title.
SESSION_TITLE = '{"title":"Scripted session"}'


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


class Numbers:
    """Counts the conversations of an entry. A number whose client left unanswered is given out again."""

    def __init__(self) -> None:
        self._next = 0
        self._returned: list[int] = []

    def peek(self) -> int:
        """The number `take` would give."""
        return self._returned[0] if self._returned else self._next

    def take(self) -> int:
        """The lowest number not in use."""
        if self._returned:
            return heapq.heappop(self._returned)
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """Return a number that was not used after all."""
        heapq.heappush(self._returned, number)


@dataclass(frozen=True, slots=True)
class Plan:
    """A reply, what delays it, and the number to give back when the client does not wait for it."""

    reply: Reply
    latency_ms: int
    chunk_delay_ms: int
    conversation: int
    past_end: bool = False
    numbers: Numbers | None = None


class Service:
    """All state of the scripted model. It lives on the server's event loop and nowhere else."""

    def __init__(self, script: Script, records: Records, *, record_bodies: bool) -> None:
        self._script = script
        self._records = records
        self._record_bodies = record_bodies
        self._matcher = Matcher(script)
        self._conversations: dict[int, Numbers] = {}
        self._judgements: dict[tuple[int, str], Numbers] = {}
        self._agent_faults = [FaultQueue(entry.faults) for entry in script.agent]
        self._judge_faults = [FaultQueue(entry.faults) for entry in script.judge]
        self._requests = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing = asyncio.Event()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Remember the loop, so that another thread can close the service."""
        self._loop = asyncio.get_running_loop()
        yield

    def close(self) -> None:
        """End every wait, from any thread: a hanging answer must not hold the server up."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.closing.set)

    async def answer(self, api: Api, wire: Wire) -> None:
        """Answer one request for a model's turn."""
        path = wire.scope["path"]
        request_id = self._request_id()
        try:
            raw = await wire.body()
        except ClientDisconnect:
            return
        body: Any = None
        try:
            api.check_headers(Headers(scope=wire.scope))
            body = _parse(raw)
            request = api.understand(body, raw)
        except RefusedError as refused:
            self._note("invalid", path, body, status=refused.answer.status)
            await self._refuse(api, wire, refused.answer, request_id)
            return
        noted = {"model": request.model, "stream": request.stream}
        if request.side is not None:
            self._note(request.side, path, body, **noted, status=200)
            text = SESSION_TITLE if request.side == "title" else "."
            stop = "end_turn" if request.side == "title" else "max_tokens"
            reply = plain_reply(
                text, model=request.model, size=request.size, reply_id=self._reply_id(), stop_reason=stop
            )
            await self._send(api, wire, request, Plan(reply, 0, 0, 0), request_id)
            return
        asked = self._matcher.find(request.said, request.model)
        noted |= {"query": asked.query, "turn": asked.turn}
        if asked.kind == "unmatched":
            self._note("unmatched", path, body, **noted, status=400)
            await self._refuse(api, wire, self._unmatched(asked.query), request_id)
            return
        fault = self._fault(asked)
        plan = self._plan(asked, request, faulted=fault is not None and fault.kind != "slow_stream")
        noted |= {"entry": max(asked.index, 0), "conversation": plan.conversation, "past_end": plan.past_end}
        noted |= {"fault": fault.kind if fault else None, "status": _status(fault, request)}
        self._note(asked.kind, path, body, **noted)
        # The parsed body is not needed while the answer waits.
        del body, raw
        if not await wire.pause(plan.latency_ms / 1000):
            if plan.numbers is not None:
                plan.numbers.give_back(plan.conversation)
            await wire.drop()
            return
        if fault is None:
            await self._send(api, wire, request, plan, request_id)
        else:
            await self._send_fault(api, wire, request, plan, fault, request_id)

    async def count_tokens(self, wire: Wire) -> None:
        """Answer POST /v1/messages/count_tokens."""
        request_id = self._request_id()
        try:
            raw = await wire.body()
        except ClientDisconnect:
            return
        body: Any = None
        try:
            messages.check_headers(Headers(scope=wire.scope))
            body = _parse(raw)
            request = messages.understand(body, len(raw), caches=False, counting=True)
        except RefusedError as refused:
            self._note("invalid", wire.scope["path"], body, status=refused.answer.status)
            await self._refuse(MESSAGES, wire, refused.answer, request_id)
            return
        self._note("count_tokens", wire.scope["path"], body, model=request.model, status=200)
        answer = b'{"input_tokens":%d}' % tokens(len(raw))
        await _send_whole(wire, 200, answer, "application/json", request_id)

    async def models(self, wire: Wire) -> None:
        """Answer GET /v1/models in the shape of both APIs: the models that entries name, or one named scripted."""
        entries = (*self._script.agent, *self._script.judge)
        names = list(dict.fromkeys(entry.model for entry in entries if entry.model)) or ["scripted"]
        data = [
            {
                "type": "model",
                "object": "model",
                "id": name,
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
                "created": 1767225600,
                "owned_by": "scripted",
            }
            for name in names
        ]
        answer = {
            "object": "list",
            "data": data,
            "has_more": False,
            "first_id": names[0],
            "last_id": names[-1],
        }
        self._note("models", wire.scope["path"], None, status=200)
        await _send_whole(wire, 200, messages.dump(answer), "application/json", self._request_id())

    async def not_found(self, wire: Wire) -> None:
        """Answer anything else."""
        self._note("other", wire.scope["path"], None, status=404)
        await self._refuse(MESSAGES, wire, refusal(404), self._request_id())

    def _request_id(self) -> str:
        self._requests += 1
        return f"req_scripted_{self._requests:08d}"

    def _reply_id(self) -> str:
        return f"scripted_{self._requests:08d}"

    def _note(self, kind: Any, path: str, body: Any, **fields: Any) -> None:
        kept = body if self._record_bodies else None
        self._records.add(RequestRecord(kind=kind, path=path, body=kept, **fields))

    def _unmatched(self, query: str) -> Refusal:
        where = ", ".join(self._script.files) or "the script"
        if not query:
            return refusal(400, f"scripted model: the request asks nothing that an entry of {where} could match")
        return refusal(
            400,
            f"scripted model: no entry of {where} matches the query {shorten(query, 300)}; add one to the script",
        )

    def _fault(self, asked: Asked) -> Fault | None:
        if asked.kind == "default":
            return None
        queues = self._judge_faults if asked.kind == "judge" else self._agent_faults
        return queues[asked.index].take(asked.turn)

    def _plan(self, asked: Asked, request: Understood, *, faulted: bool) -> Plan:
        if asked.kind == "judge":
            return self._plan_judge(asked, request, faulted=faulted)
        numbers: Numbers | None = None
        conversation = asked.conversation
        if asked.turn == 0:
            numbers = self._conversations.setdefault(asked.index, Numbers())
            conversation = numbers.peek() if faulted else numbers.take()
        if conversation is None:
            # An answer without calls or thinking carries no mark to read the number from.
            conversation = 0
        entry = None if asked.kind == "default" else self._script.agent[asked.index]
        default = self._script.default
        turns = entry.turns_of(conversation) if entry is not None else default.turns if default else ()
        reply = agent_reply(
            turns,
            entry=asked.index,
            conversation=conversation,
            turn=asked.turn,
            tools=request.tools,
            model=request.model,
            size=request.size,
            reply_id=self._reply_id(),
        )
        past_end = asked.turn >= len(turns)
        own_latency = None if past_end else turns[asked.turn].latency_ms
        shared = entry.latency_ms if entry is not None else None
        return Plan(
            reply,
            latency_ms=(own_latency if own_latency is not None else shared) or 0,
            chunk_delay_ms=(entry.chunk_delay_ms if entry is not None else None) or 0,
            conversation=conversation,
            past_end=past_end,
            numbers=None if faulted else numbers,
        )

    def _plan_judge(self, asked: Asked, request: Understood, *, faulted: bool) -> Plan:
        entry = self._script.judge[asked.index]
        # Models of a panel that share an entry each hear its answers from the first on.
        numbers = self._judgements.setdefault((asked.index, request.model), Numbers())
        number = numbers.peek() if faulted else numbers.take()
        answer = entry.answer(number)
        reply = judge_reply(
            answer,
            entry=asked.index,
            number=number,
            tool=request.answer_tool,
            model=request.model,
            size=request.size,
            reply_id=self._reply_id(),
        )
        latency = answer.latency_ms if answer.latency_ms is not None else entry.latency_ms
        return Plan(
            reply,
            latency_ms=latency or 0,
            chunk_delay_ms=entry.chunk_delay_ms or 0,
            conversation=number,
            numbers=None if faulted else numbers,
        )

    async def _refuse(self, api: Api, wire: Wire, answer: Refusal, request_id: str) -> None:
        await _send_whole(
            wire,
            answer.status,
            api.error_body(answer, request_id),
            "application/json",
            request_id,
            answer.retry_after,
        )

    async def _send(self, api: Api, wire: Wire, request: Understood, plan: Plan, request_id: str) -> None:
        delay = plan.chunk_delay_ms / 1000
        if not request.stream:
            await _send_whole(wire, 200, api.as_json(plan.reply), "application/json", request_id)
            return
        events = api.as_events(plan.reply, request)
        if not delay:
            await _send_whole(wire, 200, b"".join(events), _EVENT_STREAM, request_id)
            return
        await wire.start(200, _headers(_EVENT_STREAM, request_id))
        for event in events:
            await wire.write(event, more=True)
            if not await wire.pause(delay):
                await wire.drop()
                return
        await wire.write(b"", more=False)

    async def _send_fault(
        self, api: Api, wire: Wire, request: Understood, plan: Plan, fault: Fault, request_id: str
    ) -> None:
        error = refusal_of(fault)
        if fault.kind == "slow_stream":
            delay = SLOW_STREAM_MS if fault.delay_ms is None else fault.delay_ms
            await self._send_slowly(api, wire, request, plan.reply, delay / 1000, request_id)
        elif fault.kind == "hang":
            await wire.pause(None)
            await wire.drop()
        elif fault.kind == "drop":
            await wire.drop()
        elif fault.kind == "malformed":
            await self._send_malformed(api, wire, request, plan.reply, request_id)
        elif error is not None and not (fault.kind == "529_midstream" and request.stream):
            await self._refuse(api, wire, error, request_id)
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
            await wire.start(200, _headers("application/json", request_id, len(data)))
            await wire.write(data[: len(data) // 2], more=True)
            await wire.drop()

    async def _send_slowly(
        self, api: Api, wire: Wire, request: Understood, reply: Reply, delay: float, request_id: str
    ) -> None:
        if request.stream:
            parts = api.as_events(reply, request)
            await wire.start(200, _headers(_EVENT_STREAM, request_id))
        else:
            data = api.as_json(reply)
            step = max(1, len(data) // 10)
            parts = [data[start : start + step] for start in range(0, len(data), step)]
            await wire.start(200, _headers("application/json", request_id, len(data)))
        for part in parts:
            await wire.write(part, more=True)
            if not await wire.pause(delay):
                await wire.drop()
                return
        await wire.write(b"", more=False)

    async def _send_malformed(self, api: Api, wire: Wire, request: Understood, reply: Reply, request_id: str) -> None:
        if request.stream:
            # The event is well framed, its data is JSON cut short.
            first = api.as_events(reply, request)[0].rstrip(b"\n")
            await _send_whole(wire, 200, first[: len(first) // 2] + b"\n\n", _EVENT_STREAM, request_id)
        else:
            data = api.as_json(reply)
            await _send_whole(wire, 200, data[: len(data) // 2], "application/json", request_id)


_EVENT_STREAM = "text/event-stream; charset=utf-8"


def _parse(raw: bytes) -> Any:
    try:
        return from_json(raw)
    except ValueError as error:
        raise messages.bad(f"The request body is not valid JSON: {error}") from None


def _status(fault: Fault | None, request: Understood) -> int | None:
    if fault is None or fault.kind in ("slow_stream", "malformed", "drop_midstream"):
        return 200
    if fault.kind == "529_midstream":
        return 200 if request.stream else 529
    return int(fault.kind) if fault.kind.isdigit() else None


def _headers(kind: str, request_id: str, length: int | None = None) -> list[tuple[str, str]]:
    headers = [("content-type", kind), ("request-id", request_id), ("x-request-id", request_id)]
    if length is not None:
        headers.append(("content-length", str(length)))
    return headers


async def _send_whole(
    wire: Wire, status: int, data: bytes, kind: str, request_id: str, retry_after: float | None = None
) -> None:
    headers = _headers(kind, request_id, len(data))
    if retry_after is not None:
        headers.append(("retry-after", f"{retry_after:g}"))
    await wire.start(status, headers)
    await wire.write(data, more=False)


class _Endpoint:
    """An ASGI application around a handler: Starlette leaves instances alone, so the wire stays reachable."""

    def __init__(self, service: Service, handle: Callable[[Wire], Any]) -> None:
        self._service = service
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._handle(Wire(scope, receive, send, self._service.closing))


def build_app(service: Service) -> ASGIApp:
    """The application; it needs a server that lets a connection be dropped (uvicorn)."""

    def endpoint(handle: Callable[[Wire], Any]) -> _Endpoint:
        return _Endpoint(service, handle)

    answer_messages = endpoint(lambda wire: service.answer(MESSAGES, wire))
    answer_chat = endpoint(lambda wire: service.answer(CHAT, wire))
    starlette = Starlette(
        routes=[
            Route("/v1/messages", answer_messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", endpoint(service.count_tokens), methods=["POST"]),
            Route("/v1/chat/completions", answer_chat, methods=["POST"]),
            Route("/chat/completions", answer_chat, methods=["POST"]),
            Route("/v1/models", endpoint(service.models), methods=["GET"]),
            Route("/{path:path}", endpoint(service.not_found)),
        ],
        lifespan=service.lifespan,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette wraps send; a drop needs the server's own.
        scope[RAW_SEND] = send
        await starlette(scope, receive, send)

    return app
