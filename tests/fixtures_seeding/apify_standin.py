"""The endpoints of Apify's API v2 that the families use, as its documentation describes them.

Objects come in ``{"data": …}``, refusals in ``{"error": {"type", "message"}}``. Lists of tasks show neither input nor
options; names are unique whatever their case; a schedule's actions get ids.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

HELLO_WORLD = "E2jjCZBezvAZnX8Rb"
_KEYS = {
    "actor-tasks": {"actId", "name", "title", "options", "input", "actorStandby"},
    "schedules": {
        "name",
        "title",
        "description",
        "cronExpression",
        "timezone",
        "isEnabled",
        "isExclusive",
        "actions",
        "notifications",
    },
}
_TAKEN = {"actor-tasks": "actor-task-name-not-unique", "schedules": "schedule-name-not-unique"}


@dataclass
class Apify:
    """One account."""

    token: str
    kept: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {"actor-tasks": {}, "schedules": {}})
    requests: list[tuple[str, str]] = field(default_factory=list)

    def names(self, kind: str) -> list[str]:
        return sorted(one["name"] for one in self.kept[kind].values())

    def add(self, kind: str, name: str, **more: Any) -> str:
        """Put something there; returns its id."""
        identifier = secrets.token_urlsafe(12).replace("-", "x").replace("_", "y")
        created = {"id": identifier, "userId": "u1", "name": name, "createdAt": "2026-01-01T00:00:00.000Z", **more}
        if kind == "schedules":
            self._give_ids(created)
        self.kept[kind][identifier] = created
        return identifier

    def writes(self) -> list[tuple[str, str]]:
        return [one for one in self.requests if one[0] != "GET"]

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v2/acts/{actor}", self._actor),
                Route("/v2/{kind:str}", self._collection, methods=["GET", "POST"]),
                Route("/v2/{kind:str}/{id}", self._one, methods=["GET", "PUT", "DELETE"]),
            ]
        )

    def _refusal(self, request: Request) -> Response | None:
        self.requests.append((request.method, request.url.path))
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _error(401, "user-or-token-not-found", "User was not found or authentication token is not valid")
        if request.path_params.get("kind", "schedules") not in self.kept:
            return _error(404, "page-not-found", "We have bad news: there is no API endpoint at this URL.")
        return None

    async def _actor(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        if request.path_params["actor"] != "apify~hello-world":
            return _error(404, "record-not-found", "Actor was not found")
        return JSONResponse({"data": {"id": HELLO_WORLD, "name": "hello-world", "username": "apify"}})

    async def _collection(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        kind = request.path_params["kind"]
        if request.method == "POST":
            return self._create(kind, await request.json())
        offset, limit = int(request.query_params.get("offset", 0)), int(request.query_params.get("limit", 1000))
        everything = list(self.kept[kind].values())
        items = [
            {key: value for key, value in one.items() if key not in ("input", "options")}
            for one in everything[offset : offset + min(limit, 1000)]
        ]
        page = {"total": len(everything), "offset": offset, "limit": limit, "desc": False, "count": len(items)}
        return JSONResponse({"data": {**page, "items": items}})

    def _create(self, kind: str, body: Mapping[str, Any]) -> Response:
        if (refusal := self._invalid(kind, body, None)) is not None:
            return refusal
        return JSONResponse({"data": self.kept[kind][self.add(kind, **body)]}, 201)

    def _invalid(self, kind: str, body: Mapping[str, Any], own: str | None) -> Response | None:
        unknown = sorted(set(body) - _KEYS[kind])
        if unknown or (own is not None and "actId" in body):
            return _error(400, "invalid-input", f"Input is not valid: {', '.join(unknown) or 'actId'} is not allowed")
        if kind == "actor-tasks" and own is None and body.get("actId") != HELLO_WORLD:
            return _error(404, "actor-not-found", "Actor was not found")
        for action in body.get("actions", ()):
            if action["type"] == "RUN_ACTOR_TASK" and action["actorTaskId"] not in self.kept["actor-tasks"]:
                return _error(400, "schedule-actor-task-not-found", "Actor task was not found")
        for identifier, one in self.kept[kind].items():
            if identifier != own and one["name"].lower() == str(body.get("name")).lower():
                return _error(409, _TAKEN[kind], f'Some other one already has this name ("{body.get("name")}").')
        return None

    @staticmethod
    def _give_ids(schedule: dict[str, Any]) -> None:
        schedule["actions"] = [{"id": secrets.token_hex(6), **one} for one in schedule.get("actions", ())]

    async def _one(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        kind, identifier = request.path_params["kind"], request.path_params["id"]
        found = self.kept[kind].get(identifier)
        if found is None:
            return _error(404, "record-not-found", "It was not found")
        if request.method == "DELETE":
            del self.kept[kind][identifier]
            return Response(status_code=204)
        if request.method == "PUT":
            body = await request.json()
            if (refusal := self._invalid(kind, body, identifier)) is not None:
                return refusal
            found.update(body)
            if "actions" in body:
                self._give_ids(found)
        return JSONResponse({"data": found})


def _error(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": {"type": kind, "message": message}}, status)
