"""A product's REST API in memory, with the styles, delays and troubles that real ones have, and a log of requests."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

BASE_FAMILY: dict[str, Any] = {
    "description": "Widgets.",
    "resource": "widget",
    "base_url": "http://unused",
    "list": {"path": "widgets", "items": "items"},
    "get": {"path": "widgets/{id}"},
    "create": {"path": "widgets"},
    "update": {"path": "widgets/{id}"},
    "delete": {"path": "widgets/{id}"},
}


@dataclass
class Product:
    """Widgets with an id and a name. Attributes may be changed while it serves."""

    paging: str = "none"
    most_per_page: int = 1000
    ignores_paging: bool = False
    unique_names: bool = True
    faults: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answered first, one request each: status and headers."""
    hidden_lists: int = 0
    """So many lists show neither what was created nor that something was deleted."""
    refuse_deletion_of: set[str] = field(default_factory=set)
    on_list: Callable[[Product], None] | None = None
    """Called after each list was answered, as if somebody else did something then."""
    keep: Callable[[dict[str, Any]], dict[str, Any]] = dict
    widgets: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    _ids: Any = field(default_factory=lambda: itertools.count(1))
    _shown: list[dict[str, Any]] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *names: str, **more: Any) -> None:
        for name in names:
            identifier = f"w{next(self._ids)}"
            self.widgets[identifier] = {"id": identifier, "name": name, **more}

    def names(self) -> list[str]:
        return sorted(widget["name"] for widget in self.widgets.values())

    def writes(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path in self.requests if method != "GET"]

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/widgets", self._collection, methods=["GET", "POST", "DELETE"]),
                Route("/api/widgets/{id}", self._one, methods=["GET", "PUT", "DELETE"]),
                Route("/api/widgets/{id}/lock", self._lock_one, methods=["POST"]),
            ]
        )

    def _trouble(self, request: Request) -> Response | None:
        self.requests.append((request.method, request.url.path))
        self.authorizations.append(request.headers.get("authorization", ""))
        if self.faults:
            status, headers = self.faults.pop(0)
            return JSONResponse({"error": {"type": "trouble", "message": "Not now."}}, status, headers)
        return None

    async def _collection(self, request: Request) -> Response:
        with self._lock:
            if (trouble := self._trouble(request)) is not None:
                return trouble
            if request.method == "DELETE":
                self.widgets.clear()
                return Response(status_code=204)
            if request.method == "POST":
                body = await request.json()
                self.bodies.append(body)
                if self.unique_names and body["name"] in self.names():
                    return JSONResponse({"error": {"type": "taken", "message": "Taken."}}, 409)
                self._freeze()
                identifier = f"w{next(self._ids)}"
                self.widgets[identifier] = {"id": identifier, **self.keep(body)}
                return JSONResponse(self.widgets[identifier], 201)
            answer = self._page(request)
            if self.on_list is not None:
                self.on_list(self)
            return JSONResponse(answer)

    def _freeze(self) -> None:
        if self.hidden_lists and self._shown is None:
            self._shown = [dict(widget) for widget in self.widgets.values()]

    def _page(self, request: Request) -> Any:
        shown = list(self.widgets.values())
        if self._shown is not None:
            shown = self._shown
            self.hidden_lists -= 1
            if self.hidden_lists == 0:
                self._shown = None
        query = request.query_params
        if self.paging == "none" or self.ignores_paging:
            return {"items": shown}
        limit = min(int(query.get("limit", query.get("per_page", 1000))), self.most_per_page)
        if self.paging == "page":
            start = (int(query["page"]) - 1) * limit
            return {"items": shown[start : start + limit], "pages": -(-len(shown) // limit)}
        start = int(query.get("offset", query.get("cursor", "0")))
        following = start + limit
        return {
            "items": shown[start:following],
            "total": len(shown),
            "next": str(following) if following < len(shown) else None,
        }

    async def _one(self, request: Request) -> Response:
        with self._lock:
            if (trouble := self._trouble(request)) is not None:
                return trouble
            identifier = request.path_params["id"]
            widget = self.widgets.get(identifier)
            if widget is None:
                return JSONResponse({"error": {"type": "not-found", "message": "No such widget."}}, 404)
            if request.method == "GET":
                return JSONResponse(widget)
            if request.method == "PUT":
                body = await request.json()
                self.bodies.append(body)
                widget.update(self.keep(body))
                return JSONResponse(widget)
            if widget["name"] in self.refuse_deletion_of or widget.get("locked"):
                return JSONResponse({"error": {"type": "in-use", "message": "It is in use."}}, 409)
            self._freeze()
            del self.widgets[identifier]
            return Response(status_code=204)

    async def _lock_one(self, request: Request) -> Response:
        with self._lock:
            if (trouble := self._trouble(request)) is not None:
                return trouble
            widget = self.widgets.get(request.path_params["id"])
            if widget is None:
                return JSONResponse({"error": {"type": "not-found", "message": "No such widget."}}, 404)
            content = await request.body()
            widget["locked"] = json.loads(content)["locked"] if content else True
            return JSONResponse(widget)
