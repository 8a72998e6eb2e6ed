"""The answers of Langfuse when something is wrong, in the shapes its clients parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from evals.embedded.langfuse import jsonvalues

Issue = dict[str, Any]

INVALID_CREDENTIALS = "Invalid credentials. Confirm that you've configured the correct host."
UNAVAILABLE = (
    "This endpoint is not available on deployments running in Langfuse v4 events_only mode. "
    "Learn more about Langfuse v4 at: https://langfuse.com/docs/v4"
)
_NOT_FOUND_PAGE = (
    '<!DOCTYPE html><html lang="en"><head><meta charSet="utf-8"/><title>404: not found</title></head>'
    "<body><h1>404</h1><p>This page could not be found.</p></body></html>"
)


class JsonResponse(Response):
    """JSON with the content type Langfuse sends."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200) -> None:
        super().__init__(
            jsonvalues.dumps(content).encode(), status_code, {"content-type": "application/json; charset=utf-8"}
        )


class HtmlResponse(Response):
    """A page."""

    def __init__(self, page: str, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(page.encode(), status_code, {"content-type": "text/html; charset=utf-8", **(headers or {})})


class ApiError(Exception):
    """A request that is answered with an error; `response` is the whole answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


def unauthorized(message: str) -> ApiError:
    """401."""
    return ApiError(JsonResponse({"message": message}, 401))


def invalid(issues: Sequence[Issue]) -> ApiError:
    """400: the request does not have the shape that the endpoint asks for."""
    return ApiError(JsonResponse({"message": "Invalid request data", "error": list(issues)}, 400))


def invalid_request(message: str) -> ApiError:
    """400: the request is well formed and makes no sense."""
    return ApiError(JsonResponse({"message": message, "error": "InvalidRequestError"}, 400))


def not_found(message: str) -> ApiError:
    """404: the endpoint exists and the thing does not."""
    return ApiError(JsonResponse({"message": message, "error": "LangfuseNotFoundError"}, 404))


def conflict(message: str) -> ApiError:
    """409."""
    return ApiError(JsonResponse({"message": message, "error": "LangfuseConflictError"}, 409))


def method_not_allowed() -> ApiError:
    """405."""
    return ApiError(JsonResponse({"message": "Method not allowed", "error": "MethodNotAllowedError"}, 405))


def plain(message: str, status_code: int) -> ApiError:
    """A bare text without a content type: what the web framework below Langfuse says itself."""
    return ApiError(Response(message.encode(), status_code))


def unavailable() -> ApiError:
    """404: an endpoint that Langfuse 4 no longer has."""
    return ApiError(JsonResponse({"message": UNAVAILABLE}, 404))


def unknown_route() -> HtmlResponse:
    """404 as a page."""
    return HtmlResponse(_NOT_FOUND_PAGE, 404)
