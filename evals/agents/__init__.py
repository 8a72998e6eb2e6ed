"""Agents: what answers a query. The only part that talks to a model under test; a new agent is one new file."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from evals.conversation import Conversation

_PARTIAL: ContextVar[list[Callable[[], Conversation]] | None] = ContextVar("partial", default=None)


def collect_partial() -> list[Callable[[], Conversation]]:
    """A list that gets, from the agent that works in this context, a way to read what there is so far."""
    collected: list[Callable[[], Conversation]] = []
    _PARTIAL.set(collected)
    return collected


def partial_conversation(read: Callable[[], Conversation]) -> None:
    """Offer a way to read the conversation so far, for a trial that is cut off at its time limit."""
    collected = _PARTIAL.get()
    if collected is not None:
        collected.append(read)


class AgentError(Exception):
    """The trial could not be measured: the harness, a service or the server under test failed, not the model.

    conversation: what there was until then, for the trace.
    """

    def __init__(self, cause: str, conversation: Conversation | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.conversation = conversation
