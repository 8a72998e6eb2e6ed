"""A panel: several judges vote, the majority decides."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from evals.conversation import Conversation
from evals.judges import Judge, JudgeError, Judgement
from evals.scoring.judge import Verdict


@dataclass(frozen=True)
class Panel:
    """Asks its judges at the same time. A verdict needs the votes of more than half of the panel.

    Half of the whole panel, not of those who answered: a judge that gives no verdict is missing from both sides. So a
    tie, and votes too few to decide, are a JudgeError `no majority`; an even panel is allowed and ties more easily.
    """

    judges: tuple[Judge, ...]

    def __post_init__(self) -> None:
        if not self.judges:
            raise ValueError("a panel needs a judge")

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model for judge in self.judges for model in judge.models)

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        async def ask(judge: Judge) -> Judgement | JudgeError:
            try:
                return await judge.judge(query, reference, conversation)
            except JudgeError as error:
                return error

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(judge)) for judge in self.judges]
        results = [task.result() for task in tasks]
        given = [one for one in results if isinstance(one, Judgement)]
        missing = [one for one in results if isinstance(one, JudgeError)]
        votes = tuple(vote for one in results for vote in one.votes)
        for verdict in _VERDICTS:
            agreeing = [one for one in given if one.verdict == verdict]
            if 2 * len(agreeing) > len(self.judges):
                return Judgement(verdict, _reason(verdict, agreeing, given, missing, len(self.judges)), votes)
        passes = sum(one.verdict == "PASS" for one in given)
        count = f"{passes} PASS, {len(given) - passes} FAIL of {len(self.judges)} judges"
        why = "".join(f"; {error.cause}" for error in missing)
        raise JudgeError(f"no majority: {count}{why}", votes)


_VERDICTS: tuple[Verdict, ...] = ("PASS", "FAIL")


def _reason(
    verdict: Verdict, agreeing: list[Judgement], given: list[Judgement], missing: list[JudgeError], size: int
) -> str:
    """The count first, then what each judge said, the majority before the others."""
    parts = [f"{verdict} by {len(agreeing)} of {size}"]
    ordered = [*agreeing, *(one for one in given if one.verdict != verdict)]
    parts += [f"{vote.model} {vote.verdict}: {vote.reason}" for one in ordered for vote in one.votes]
    parts += [f"no vote: {error.cause}" for error in missing]
    return "; ".join(parts)
