"""A judgement by one model: observed, in bounded time, and an error where there is no vote."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evals.conversation import Conversation
from evals.judges import JudgeError, Judgement, Vote
from evals.judges.tracing import Observed, observed
from evals.scoring.judge import JudgeRequest, judge_request


async def judge_by(
    model: str,
    vote_on: Callable[[JudgeRequest, Observed], Awaitable[Vote]],
    query: str,
    reference: str,
    conversation: Conversation,
    *,
    public_key: str | None,
    time_limit: float,
) -> Judgement:
    """The judgement that a model's vote is.

    vote_on: has the model vote; raises JudgeError when it does not. public_key: as `observed` takes it. time_limit:
    seconds it may take in all.
    """
    request = judge_request(query, reference, conversation)
    with observed(public_key, model, query, reference) as observation:
        try:
            async with asyncio.timeout(time_limit):
                vote = await vote_on(request, observation)
        except TimeoutError:
            raise JudgeError(f"the judge {model} gave no verdict within {time_limit:g} s") from None
        observation.voted(vote)
    return Judgement(vote.verdict, vote.reason, (vote,))
