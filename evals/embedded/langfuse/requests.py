"""What every endpoint needs of a request: who asks, what the body is, and where the routes' slashes are."""

from __future__ import annotations

import base64
import binascii
import hmac
import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evals.embedded.langfuse import errors, jsonvalues
from evals.embedded.langfuse.settings import StoreSettings

BODY_LIMIT = int(4.5 * 1024 * 1024)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class RawPath:
    """Route on the path as it was sent, so that ``%2F`` in a name is not a slash between names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].split(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


class Endpoint:
    """A route with a handler a method; other methods are 405, said the way Langfuse says it.

    Each handler authenticates for itself: some refuse the body, or exist no longer, before that.
    """

    def __init__(self, settings: StoreSettings, methods: Mapping[str, Handler]) -> None:
        self._settings = settings
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            method = "GET" if request.method == "HEAD" else request.method
            handler = self._methods.get(method)
            if handler is None:
                authenticate(request, self._settings)
                raise errors.method_not_allowed()
            response = await handler(request)
        except errors.ApiError as error:
            response = error.response
        except RecursionError:
            response = errors.plain("Invalid JSON", 400).response
        except sqlite3.Error as error:
            # A full disk, or another process that keeps the file locked: clients send it again after a 503.
            message = f"The store cannot be used right now: {error}"
            response = errors.JsonResponse({"message": message, "error": "ServiceUnavailableError"}, 503)
        await response(scope, receive, send)


def segment(request: Request, name: str) -> str:
    """A part of the path, decoded."""
    return unquote(request.path_params[name])


def authenticate(request: Request, settings: StoreSettings) -> None:
    """Raises the 401 unless the request carries the store's keys (Basic: public key, secret key)."""
    problem = credentials_problem(request, settings)
    if problem:
        raise errors.unauthorized(problem)


def credentials_problem(request: Request, settings: StoreSettings) -> str | None:
    """Why the keys are not accepted; None when they are."""
    header = request.headers.get("authorization")
    if not header:
        return "No authorization header"
    scheme, _, encoded = header.partition(" ")
    try:
        public, _, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return errors.INVALID_CREDENTIALS
    expected = f"{settings.public_key}:{settings.secret_key}".encode()
    if scheme.lower() == "basic" and hmac.compare_digest(f"{public}:{secret}".encode(), expected):
        return None
    return errors.INVALID_CREDENTIALS


async def read_body(request: Request, limit: int = BODY_LIMIT) -> bytes:
    """The whole body. Raises the 413 as soon as it is known to be longer than `limit` bytes."""
    chunks: list[bytes] = []
    length = 0
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_long(limit)
    async for chunk in request.stream():
        length += len(chunk)
        if length > limit:
            raise _too_long(limit)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_json(request: Request) -> Any:
    """The body as Next.js parses it: JSON and forms by content type, anything else is a text."""
    raw = await read_body(request)
    kind = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if kind in ("application/json", "application/ld+json"):
        if not raw:
            return {}
        try:
            return jsonvalues.loads(raw)
        except ValueError:
            raise errors.plain("Invalid JSON", 400) from None
    text = raw.decode("utf-8", "replace")
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(text))
    return text


def _too_long(limit: int) -> errors.ApiError:
    return errors.plain(f"Body exceeded {limit / 1024 / 1024:g}mb limit", 413)
