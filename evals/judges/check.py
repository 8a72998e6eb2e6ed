"""Hold a judge to labelled conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.conversation import Usage
from evals.judges import Judge, JudgeError, Vote
from evals.judges.labelled import LabelledConversation
from evals.scoring.agreement import Agreement
from evals.scoring.judge import Verdict


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class CheckedVote(_Frozen):
    """One model's vote."""

    model: str
    verdict: Verdict
    reason: str
    cost_usd: float | None
    usage: Usage | None

    @classmethod
    def of(cls, vote: Vote) -> CheckedVote:
        return cls(model=vote.model, verdict=vote.verdict, reason=vote.reason, cost_usd=vote.cost_usd, usage=vote.usage)


class Checked(_Frozen):
    """One conversation: what people said and what the judge said."""

    id: str
    label: Verdict
    verdict: Verdict | None
    """None when there was no verdict."""
    reason: str
    """The judge's; without a verdict, why there is none."""
    note: str
    """The people's."""
    tags: tuple[str, ...]
    votes: tuple[CheckedVote, ...]

    @property
    def agrees(self) -> bool:
        return self.verdict == self.label


class TagAgreement(_Frozen):
    """How a tag's conversations fared."""

    tag: str
    agreed: int
    total: int


class Confusion(_Frozen):
    """Counts of label and verdict."""

    pass_pass: int
    pass_fail: int
    """Labelled PASS, judged FAIL: too strict."""
    fail_pass: int
    """Labelled FAIL, judged PASS: too lenient."""
    fail_fail: int


class CheckReport(_Frozen):
    """What a check came to; also the JSON it is written as."""

    version: Literal[1] = 1
    file: str
    models: tuple[str, ...]
    scripted: str | None
    """The script that answered in place of the models; None: the models themselves."""
    total: int
    judged: int
    not_judged: int
    agreed: int
    agreement: float
    """agreed / total: what was not judged counts as not agreed."""
    kappa: float | None
    """Cohen's kappa over what was judged; None where it is not defined."""
    confusion: Confusion
    tags: tuple[TagAgreement, ...]
    cost_usd: float | None
    total_tokens: int | None
    results: tuple[Checked, ...]

    @property
    def disagreements(self) -> tuple[Checked, ...]:
        return tuple(one for one in self.results if one.verdict is not None and not one.agrees)

    @property
    def without_verdict(self) -> tuple[Checked, ...]:
        return tuple(one for one in self.results if one.verdict is None)


async def check_judge(
    judge: Judge,
    conversations: Sequence[LabelledConversation],
    *,
    concurrency: int,
    finished: Callable[[Checked], None] = lambda one: None,
) -> tuple[Checked, ...]:
    """Have every conversation judged, `concurrency` at a time; results in the conversations' order.

    finished: called after each, in the order they end.
    """
    slots = asyncio.Semaphore(concurrency)

    async def one(labelled: LabelledConversation) -> Checked:
        async with slots:
            verdict: Verdict | None = None
            votes: tuple[Vote, ...]
            try:
                judgement = await judge.judge(labelled.query, labelled.reference, labelled.conversation())
            except JudgeError as error:
                reason, votes = error.cause, error.votes
            else:
                verdict, reason, votes = judgement.verdict, judgement.reason, judgement.votes
        checked = Checked(
            id=labelled.id,
            label=labelled.label,
            verdict=verdict,
            reason=reason,
            note=labelled.note,
            tags=labelled.tags,
            votes=tuple(map(CheckedVote.of, votes)),
        )
        finished(checked)
        return checked

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(labelled)) for labelled in conversations]
    return tuple(task.result() for task in tasks)


def report(results: Sequence[Checked], *, file: str, models: tuple[str, ...], scripted: str | None) -> CheckReport:
    """Fold the results into a report."""
    agreement = Agreement.of((one.label, one.verdict) for one in results)
    votes = [vote for one in results for vote in one.votes]
    costs = [vote.cost_usd for vote in votes if vote.cost_usd is not None]
    tokens = [vote.usage.total_tokens for vote in votes if vote.usage is not None]
    tags = dict.fromkeys(tag for one in results for tag in one.tags)
    return CheckReport(
        file=file,
        models=models,
        scripted=scripted,
        total=agreement.total,
        judged=agreement.judged,
        not_judged=agreement.not_judged,
        agreed=agreement.agreed,
        agreement=float(agreement.share),
        kappa=None if agreement.kappa is None else float(agreement.kappa),
        confusion=Confusion(
            pass_pass=agreement.pass_pass,
            pass_fail=agreement.pass_fail,
            fail_pass=agreement.fail_pass,
            fail_fail=agreement.fail_fail,
        ),
        tags=tuple(
            TagAgreement(
                tag=tag,
                agreed=sum(one.agrees for one in results if tag in one.tags),
                total=sum(tag in one.tags for one in results),
            )
            for tag in sorted(tags)
        ),
        cost_usd=sum(costs) if costs else None,
        total_tokens=sum(tokens) if tokens else None,
        results=tuple(results),
    )
