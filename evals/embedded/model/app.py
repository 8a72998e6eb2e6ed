"""The scripted model as an ASGI application: from a request to its entry, its fault and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from evals.embedded.model import messages
from evals.embedded.model.conversations import Matcher
from evals.embedded.model.delivery import CHAT, JSON, MESSAGES, Api, refuse, send, send_fault, send_whole
from evals.embedded.model.faults import RAW_SEND, Refusal, Wire, refusal, send_at_once
from evals.embedded.model.messages import RefusedError, Understood
from evals.embedded.model.planning import Plan, Planner
from evals.embedded.model.records import Records, RequestRecord
from evals.embedded.model.replies import plain_reply, tokens
from evals.embedded.model.script import Fault, Script, shorten

#: The name Claude Code gets when it asks for a session's title.
SESSION_TITLE = '{"title":"Scripted session"}'


class Service:
    """All state of the scripted model. It lives on the server's event loop and nowhere else."""

    def __init__(self, script: Script, records: Records, *, record_bodies: bool) -> None:
        self._script = script
        self._records = records
        self._record_bodies = record_bodies
        self._matcher = Matcher(script)
        self._planner = Planner(script)
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
        reply_id = request_id.removeprefix("req_")
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
            await refuse(api, wire, refused.answer, request_id)
            return
        noted = {"model": request.model, "stream": request.stream}
        if request.side is not None:
            self._note(request.side, path, body, **noted, status=200)
            text = SESSION_TITLE if request.side == "title" else "."
            stop = "end_turn" if request.side == "title" else "max_tokens"
            reply = plain_reply(text, model=request.model, size=request.size, reply_id=reply_id, stop_reason=stop)
            await send(api, wire, request, Plan(reply, 0, 0, 0), request_id)
            return
        asked = self._matcher.find(request.said, request.model, may_judge=request.may_judge)
        noted |= {"query": asked.query, "turn": asked.turn}
        if asked.kind == "unmatched":
            self._note("unmatched", path, body, **noted, status=400)
            await refuse(api, wire, self._unmatched(asked.query), request_id)
            return
        fault = self._planner.take_fault(asked)
        plan = self._planner.plan(asked, request, reply_id, faulted=fault is not None and fault.kind != "slow_stream")
        noted |= {
            "entry": None if asked.kind == "default" else asked.index,
            "conversation": plan.conversation,
            "past_end": plan.past_end,
        }
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
            await send(api, wire, request, plan, request_id)
        else:
            await send_fault(api, wire, request, plan, fault, request_id)

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
            await refuse(MESSAGES, wire, refused.answer, request_id)
            return
        self._note("count_tokens", wire.scope["path"], body, model=request.model, status=200)
        answer = b'{"input_tokens":%d}' % tokens(len(raw))
        await send_whole(wire, 200, answer, JSON, request_id)

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
        await send_whole(wire, 200, messages.dump(answer), JSON, self._request_id())

    async def not_found(self, wire: Wire) -> None:
        """Answer anything else."""
        self._note("other", wire.scope["path"], None, status=404)
        await refuse(MESSAGES, wire, refusal(404), self._request_id())

    def _request_id(self) -> str:
        self._requests += 1
        return f"req_scripted_{self._requests:08d}"

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
        if scope["type"] == "http":
            send_at_once(send)
        await starlette(scope, receive, send)

    return app
