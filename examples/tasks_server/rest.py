"""The REST API: the same state as the MCP server's, in the style of a product's public API.

Success is ``{"data": …}``, failure ``{"error": {"type": slug, "message": text}}``. Lists take ``offset``, ``limit``
(at most 1,000), ``desc`` and filters. ``{task}`` and ``{schedule}`` are names or ids.

====================================  ====================================================
``GET POST /v1/tasks``                 list, create
``GET PUT DELETE /v1/tasks/{task}``    read, change the given fields, delete (``?force=true``)
``POST /v1/tasks/{task}/publish``      and ``/unpublish``
``GET POST /v1/tasks/{task}/runs``     list, run now
``GET /v1/tasks/{task}/runs/{number}`` read; ``last`` is the latest
``GET POST /v1/schedules``             list, create
``GET PUT DELETE /v1/schedules/{…}``   read, change the given fields, delete
====================================  ====================================================
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.tasks_server.errors import ForbiddenError, InvalidError, TasksError, UnauthorizedError
from examples.tasks_server.models import NewRun, NewSchedule, NewTask, ScheduleChanges, Slice, TaskChanges
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService
from examples.tasks_server.validation import describe_problems

LIMIT_DEFAULT = 100
LIMIT_MAX = 1000
BODY_MAX_BYTES = 65_536
_SQLITE_MAX = 2**63 - 1
_logger = logging.getLogger(__name__)
_Model = TypeVar("_Model", bound=BaseModel)
_Handler = Callable[[Request], Awaitable[Response]]


def build_rest(
    tasks: TaskService, schedules: ScheduleService, *, token: str | None = None, read_only: bool = False
) -> Starlette:
    """The application. With a token every request needs ``Authorization: Bearer <token>``."""

    def guarded(handler: _Handler) -> _Handler:
        async def handle(request: Request) -> Response:
            _check_token(request, token)
            if read_only and request.method not in {"GET", "HEAD"}:
                raise ForbiddenError("server-is-read-only", "This server is read-only.", "Use one that takes changes.")
            return await handler(request)

        return handle

    async def list_tasks(request: Request) -> Response:
        query = _Query(request, "search", "action", "published")
        which = query.slice()
        page = await run_in_threadpool(
            tasks.list,
            which,
            search=query.text("search"),
            action=query.text("action"),
            published=query.flag("published"),
            highest_limit=LIMIT_MAX,
        )
        return _page(which, page.items, page.total)

    async def create_task(request: Request) -> Response:
        task = await run_in_threadpool(tasks.create, await _body(request, NewTask))
        return _data(task, 201, {"Location": f"/v1/tasks/{task.id}"})

    async def get_task(request: Request) -> Response:
        return _data(await run_in_threadpool(tasks.get, request.path_params["task"]))

    async def update_task(request: Request) -> Response:
        changes = await _body(request, TaskChanges)
        return _data(await run_in_threadpool(tasks.update, request.path_params["task"], changes))

    async def delete_task(request: Request) -> Response:
        force = _Query(request, "force").flag("force") or False
        await run_in_threadpool(tasks.delete, request.path_params["task"], force=force)
        return Response(status_code=204)

    async def publish_task(request: Request) -> Response:
        return _data(await run_in_threadpool(tasks.publish, request.path_params["task"]))

    async def unpublish_task(request: Request) -> Response:
        return _data(await run_in_threadpool(tasks.unpublish, request.path_params["task"]))

    async def list_runs(request: Request) -> Response:
        query = _Query(request, "status")
        which = query.slice()
        page = await run_in_threadpool(
            tasks.list_runs,
            which,
            task=request.path_params["task"],
            status=query.text("status"),
            highest_limit=LIMIT_MAX,
        )
        return _page(which, page.items, page.total)

    async def run_task(request: Request) -> Response:
        run = await run_in_threadpool(
            tasks.run, request.path_params["task"], await _body(request, NewRun, optional=True)
        )
        return _data(run, 201, {"Location": f"/v1/tasks/{run.task_id}/runs/{run.number}"})

    async def get_run(request: Request) -> Response:
        number: int = request.path_params["number"]
        return _data(await run_in_threadpool(tasks.get_run, request.path_params["task"], number))

    async def get_last_run(request: Request) -> Response:
        return _data(await run_in_threadpool(tasks.get_run, request.path_params["task"]))

    async def list_schedules(request: Request) -> Response:
        query = _Query(request, "search", "task", "enabled")
        which = query.slice()
        page = await run_in_threadpool(
            schedules.list,
            which,
            task=query.text("task"),
            search=query.text("search"),
            enabled=query.flag("enabled"),
            highest_limit=LIMIT_MAX,
        )
        return _page(which, page.items, page.total)

    async def create_schedule(request: Request) -> Response:
        schedule = await run_in_threadpool(schedules.create, await _body(request, NewSchedule))
        return _data(schedule, 201, {"Location": f"/v1/schedules/{schedule.id}"})

    async def get_schedule(request: Request) -> Response:
        return _data(await run_in_threadpool(schedules.get, request.path_params["schedule"]))

    async def update_schedule(request: Request) -> Response:
        changes = await _body(request, ScheduleChanges)
        return _data(await run_in_threadpool(schedules.update, request.path_params["schedule"], changes))

    async def delete_schedule(request: Request) -> Response:
        await run_in_threadpool(schedules.delete, request.path_params["schedule"])
        return Response(status_code=204)

    routes: list[tuple[str, str, _Handler]] = [
        ("GET", "/v1/tasks", list_tasks),
        ("POST", "/v1/tasks", create_task),
        ("GET", "/v1/tasks/{task}", get_task),
        ("PUT", "/v1/tasks/{task}", update_task),
        ("DELETE", "/v1/tasks/{task}", delete_task),
        ("POST", "/v1/tasks/{task}/publish", publish_task),
        ("POST", "/v1/tasks/{task}/unpublish", unpublish_task),
        ("GET", "/v1/tasks/{task}/runs", list_runs),
        ("POST", "/v1/tasks/{task}/runs", run_task),
        ("GET", "/v1/tasks/{task}/runs/last", get_last_run),
        ("GET", "/v1/tasks/{task}/runs/{number:int}", get_run),
        ("GET", "/v1/schedules", list_schedules),
        ("POST", "/v1/schedules", create_schedule),
        ("GET", "/v1/schedules/{schedule}", get_schedule),
        ("PUT", "/v1/schedules/{schedule}", update_schedule),
        ("DELETE", "/v1/schedules/{schedule}", delete_schedule),
    ]
    return Starlette(
        routes=_routes([(method, path, guarded(handler)) for method, path, handler in routes]),
        # A web page must not reach the loopback service through a name of its own (DNS rebinding).
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)],
        exception_handlers={
            TasksError: _on_refusal,
            HTTPException: _on_http,
            Exception: _on_crash,
        },
    )


def _routes(entries: list[tuple[str, str, _Handler]]) -> list[Route]:
    """One route a path, so that a wrong method is answered with 405 and every allowed one."""
    by_path: dict[str, dict[str, _Handler]] = {}
    for method, path, handler in entries:
        by_path.setdefault(path, {})[method] = handler

    def endpoint(handlers: Mapping[str, _Handler]) -> _Handler:
        async def handle(request: Request) -> Response:
            return await handlers["GET" if request.method == "HEAD" else request.method](request)

        return handle

    return [Route(path, endpoint(handlers), methods=list(handlers)) for path, handlers in by_path.items()]


def _check_token(request: Request, token: str | None) -> None:
    if token is None:
        return
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer":
        raise UnauthorizedError(
            "token-missing", "The request has no token.", "Send the header Authorization: Bearer <token>."
        )
    if not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise UnauthorizedError("token-invalid", "The token is not valid.", "Check the token.")


async def _body(request: Request, model: type[_Model], *, optional: bool = False) -> _Model:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_MAX_BYTES:
            raise HTTPException(413, f"The body may have {BODY_MAX_BYTES} bytes.")
    if optional and not content:
        return model()
    # A form on a web page can post text/plain anywhere, JSON only with the server's consent.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON with the header Content-Type: application/json.")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidError("invalid-json", "The body is not valid JSON.", "Send a JSON object.") from None
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = "; ".join(describe_problems(error))
        raise InvalidError(
            "invalid-body", f"The body does not fit: {problems}.", f"It takes {', '.join(model.model_fields)}."
        ) from None


class _Query:
    """The query parameters of a request; the common ones of a list are always known."""

    def __init__(self, request: Request, *known: str) -> None:
        self._values = request.query_params
        allowed = (*known, "offset", "limit", "desc")
        unknown = sorted({name for name in self._values if name not in allowed})
        if unknown:
            raise InvalidError(
                "unknown-parameter",
                f"There is no parameter {', '.join(map(repr, unknown))}.",
                f"Use {', '.join(allowed)}.",
            )

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def flag(self, name: str) -> bool | None:
        value = self._values.get(name)
        if value is None:
            return None
        if value.lower() not in {"1", "0", "true", "false"}:
            raise InvalidError("invalid-parameter", f"{name} is {value!r}.", "Use true or false.")
        return value.lower() in {"1", "true"}

    def number(self, name: str, default: int) -> int:
        value = self._values.get(name)
        if value is None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) <= _SQLITE_MAX):
            raise InvalidError("invalid-parameter", f"{name} is {value!r}.", "Use a number that is not negative.")
        return int(value)

    def slice(self) -> Slice:
        return Slice(
            limit=self.number("limit", LIMIT_DEFAULT),
            offset=self.number("offset", 0),
            oldest_first=not (self.flag("desc") or False),
        )


def _data(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"data": model.model_dump(mode="json")}, status_code=status, headers=headers)


def _page(which: Slice, items: list[Any], total: int) -> Response:
    return JSONResponse(
        {
            "data": {
                "total": total,
                "offset": which.offset,
                "limit": which.limit,
                "desc": not which.oldest_first,
                "count": len(items),
                "items": [item.model_dump(mode="json") for item in items],
            }
        }
    )


def _error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"type": kind, "message": message}}, status_code=status, headers=headers)


async def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, TasksError)
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
    if error.status == 503:
        headers = {"Retry-After": "1"}
    return _error(error.status, error.type, f"{error.message} {error.advice}", headers)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "page-not-found", 405: "method-not-allowed", 413: "body-too-large", 415: "not-json"}
    return _error(error.status_code, kinds.get(error.status_code, "http-error"), error.detail, error.headers)


async def _on_crash(request: Request, error: Exception) -> Response:
    # Starlette raises it again after this answer, and uvicorn logs it.
    return _error(500, "internal-error", "The service failed for a reason of its own. Trying again may help.")
