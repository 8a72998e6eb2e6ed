"""Agents: what answers a query. The only part that talks to a model under test; a new agent is one new file."""

from __future__ import annotations

from evals.conversation import Conversation


class AgentError(Exception):
    """The trial could not be measured: the harness, a service or the server under test failed, not the model.

    conversation: what there was until then, for the trace.
    """

    def __init__(self, cause: str, conversation: Conversation | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.conversation = conversation
