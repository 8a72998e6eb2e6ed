"""One trial: one run of one item, from the query to an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.agents import AgentError, collect_partial
from evals.conversation import Conversation
from evals.scoring import Score

COST = "cost_usd"
"""The score of what a trial cost, agent and judges together, in US dollars."""

Outcome = Literal["passed", "failed", "error", "not_run"]
TrialKind = Literal["tool-call", "agent", "qa"]


class VoteNote(BaseModel):
    """One judge's vote."""

    model_config = ConfigDict(frozen=True)

    model: str
    verdict: Literal["PASS", "FAIL"]
    reason: str
    cost_usd: float | None = None


class JudgeNote(BaseModel):
    """What the judge made of a conversation, in the journal."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["PASS", "FAIL"]
    reason: str
    votes: tuple[VoteNote, ...] = ()


class TrialResult(BaseModel):
    """What a trial came to. One line of the journal; `version` changes when a key changes its meaning."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    run: str
    item: str
    iteration: int
    """1 for the first trial of the item."""
    kind: TrialKind
    query: str = ""
    """What was asked; a trial that failed before it has no conversation to tell it."""
    category: str
    outcome: Outcome
    reason: str
    """Why: expected and actual for a failure, the cause for an error."""
    scores: tuple[Score, ...] = ()
    conversation: Conversation | None = None
    judgement: JudgeNote | None = None
    """agent: the judge's verdict; the trial passes only if its tools did not fail unexpectedly besides."""
    trace_id: str | None = None
    observation_id: str | None = None
    started_at: datetime
    ended_at: datetime

    @property
    def seconds(self) -> float:
        """How long the conversation took, or without one the trial: waiting for a session to start does not count."""
        timed = self.conversation or self
        return (timed.ended_at - timed.started_at).total_seconds()


IDENTITY = frozenset(
    ["run", "item", "iteration", "kind", "category", "outcome", "trace_id", "observation_id", "started_at", "ended_at"]
)
"""The fields of a `TrialResult` that say which trial it is and how it ended."""


@dataclass(frozen=True)
class Verdict:
    """What a scorer makes of a conversation."""

    passed: bool
    reason: str
    scores: tuple[Score, ...]
    judgement: JudgeNote | None = None


@dataclass(frozen=True)
class Measured:
    """A conversation and its verdict."""

    conversation: Conversation
    verdict: Verdict


class UnjudgedError(AgentError):
    """There is a conversation, but no verdict.

    scores: what was measured all the same, the votes of a panel without a majority among it.
    """

    def __init__(self, cause: str, conversation: Conversation, scores: tuple[Score, ...]) -> None:
        super().__init__(cause, conversation)
        self.scores = scores


@dataclass(frozen=True)
class Case:
    """What a trial is a trial of, with the way to measure it."""

    id: str
    kind: TrialKind
    category: str
    measure: Callable[[], Awaitable[Measured]]
    """Have it answered and scored once; raises AgentError when it could not be measured."""
    query: str = ""
    """What is asked."""


async def run_trial(
    case: Case,
    *,
    run: str,
    iteration: int,
    time_limit: float,
    trace_id: str | None = None,
    observation_id: str | None = None,
) -> TrialResult:
    """Run one trial. It always returns: what goes wrong around the model is the outcome `error`, never a miss.

    time_limit: seconds the whole trial may take.
    """
    started_at = datetime.now(UTC)
    conversation: Conversation | None = None
    scores: tuple[Score, ...] = ()
    judgement: JudgeNote | None = None
    outcome: Outcome = "error"
    partial = collect_partial()
    limit = asyncio.timeout(time_limit)
    try:
        async with limit:
            measured = await case.measure()
        conversation = measured.conversation
        outcome = "passed" if measured.verdict.passed else "failed"
        reason = measured.verdict.reason
        scores = measured.verdict.scores
        judgement = measured.verdict.judgement
    except AgentError as error:
        reason = error.cause
        conversation = error.conversation
        scores = error.scores if isinstance(error, UnjudgedError) else ()
    except TimeoutError as error:
        if partial:
            conversation = partial[-1]()
        reason = (
            f"did not finish within {time_limit:g} s (--trial-timeout)"
            if limit.expired()
            else f"unexpected TimeoutError: {error}"
        )
    except Exception as error:
        reason = f"unexpected {type(error).__name__}: {error}"
    if conversation is not None and conversation.usage is not None:
        scores = (*scores, Score(name="total_tokens", value=float(conversation.usage.total_tokens)))
    spent = conversation.cost_usd if conversation is not None and case.kind == "agent" else None
    if spent is not None and not any(score.name == COST for score in scores):
        scores = (*scores, Score(name=COST, value=spent))
    return TrialResult(
        run=run,
        item=case.id,
        iteration=iteration,
        kind=case.kind,
        query=case.query,
        category=case.category,
        outcome=outcome,
        reason=" ".join(reason.split()),
        scores=scores,
        conversation=conversation,
        judgement=judgement,
        trace_id=trace_id,
        observation_id=observation_id,
        started_at=started_at,
        ended_at=datetime.now(UTC),
    )
