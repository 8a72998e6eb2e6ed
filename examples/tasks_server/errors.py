"""What the service refuses, with a type that programs can match and a text that tells people what to do."""

from __future__ import annotations

from typing import ClassVar

SUPPORT_URL = "https://tasks.example.com/support"


class TasksError(Exception):
    """A refusal: ``type`` is a stable slug, ``message`` says what is wrong, ``advice`` what to do next."""

    status: ClassVar[int] = 400
    """The HTTP status code of the REST API's answer."""

    def __init__(self, error_type: str, message: str, advice: str) -> None:
        self.type = error_type
        self.message = message
        self.advice = advice
        super().__init__(f"[{error_type}] {message} {advice}")

    def tool_text(self) -> str:
        """The text of an MCP tool's error result: type, message, advice, and how to report a problem."""
        return (
            f"[{self.type}] {self.message} {self.advice}\n"
            f"If this looks like a fault of the service, report it at {SUPPORT_URL} and quote the type "
            f"{self.type}."
        )


class InvalidError(TasksError):
    """The request breaks a rule that does not depend on state."""


class UnauthorizedError(TasksError):
    """The request has no valid token."""

    status = 401


class ForbiddenError(TasksError):
    """The resource, or the whole server, is read-only."""

    status = 403


class NotFoundError(TasksError):
    """No such resource."""

    status = 404


class ConflictError(TasksError):
    """The state of a resource forbids the change."""

    status = 409


class BusyError(TasksError):
    """Another process held the database for too long."""

    status = 503
