"""What a run is asked for, and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.gate import DEFAULT_THRESHOLD, GateResult
from evals.items import Gate
from evals.passk import AtK, ItemTrials, estimate
from evals.recording.scores import Recorded
from evals.runs.trial import COST, TrialResult

DEFAULT_CONCURRENCY = 8
DEFAULT_TRIAL_TIMEOUT = {"tool-call": 180.0, "agent": 900.0}
"""Seconds one trial may take, by kind."""


@dataclass(frozen=True)
class RunRequest:
    """Everything a run can be asked for."""

    gate: Gate | None = "pr"
    dataset: str | None = None
    id_regex: str | None = None
    category: str | None = None
    agent_model: str = "claude-haiku-4-5"
    iterations: int = 1
    concurrency: int = DEFAULT_CONCURRENCY
    threshold: Fraction = DEFAULT_THRESHOLD
    tool_timeout: float = 60.0
    trial_timeout: float | None = None
    mcp_tools_only: bool = False
    subscription: bool = False
    fresh_sessions: bool = False
    """A Claude Code of its own for every tool-call trial, instead of rewound ones."""
    embedded: bool = False
    script: Path | None = None
    """The script of a scripted model; None: the real one."""
    judge_models: tuple[str, ...] = ()
    """Models that judge agent items, each with a vote; empty for the default."""
    claude_judge: bool = False
    strict_sweep: bool = False
    """An unexpected row of the sweep fails the run."""
    fixtures: tuple[str, ...] = ()
    """Families of fixtures to seed before the run and clean after it."""
    target: Path | None = None
    claude_code: Path | None = None
    summary_json: Path | None = None
    command: tuple[str, ...] = ()
    """The command line, for the record."""


class RunRecord(BaseModel):
    """``run.json``: what was asked."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    run: str
    started_at: datetime
    command: tuple[str, ...]
    gate: str
    """`pr`, `merge` or `qa`."""
    dataset: str
    items: tuple[str, ...]
    iterations: int
    requested: int
    threshold: str
    experiment_id: str
    metadata: dict[str, str]
    """As recorded in Langfuse: models, versions, target, flags."""


class TrialNote(BaseModel):
    """A trial that did not pass, in a summary."""

    model_config = ConfigDict(frozen=True)

    item: str
    iteration: int
    reason: str
    trace_id: str | None = None


class SweepNote(BaseModel):
    """What the sweep found."""

    model_config = ConfigDict(frozen=True)

    errors: int
    unexpected: tuple[str, ...]
    lines: tuple[str, ...] = ()
    """As the console shows it."""
    problem: str | None = None
    """Why it could not be made, if so."""


class AtKNote(BaseModel):
    """Estimates for one k, the mean over the items."""

    model_config = ConfigDict(frozen=True)

    k: int
    pass_at_k: float
    """At least one of k trials passes."""
    pass_hat_k: float
    """All of k trials pass."""


class ItemNote(BaseModel):
    """One item's trials, counted, with its estimates for k = 1…n."""

    model_config = ConfigDict(frozen=True)

    item: str
    passed: int
    failed: int
    error: int
    not_run: int
    at: tuple[AtKNote, ...]


class Repeats(BaseModel):
    """What repeated trials say (see `evals.passk`)."""

    model_config = ConfigDict(frozen=True)

    mean: tuple[AtKNote, ...]
    interval_95: tuple[float, float]
    """The 95 % Wilson interval of passed over requested."""
    flaky: tuple[str, ...]
    """Items that both passed and failed."""
    items: tuple[ItemNote, ...]


class RunSummary(BaseModel):
    """``summary.json``: what came out."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    run: str
    gate: str
    dataset: str
    passed: int
    failed: int
    error: int
    not_run: int
    requested: int
    pass_rate: float
    threshold: float
    met: bool
    line: str
    """The verdict in words, as the console shows it."""
    failures: tuple[TrialNote, ...]
    never_completed: tuple[TrialNote, ...]
    total_tokens: int | None
    """None when no trial reported its tokens."""
    cost_usd: float | None
    """Of the agent and the judge, as far as they reported it."""
    repeats: Repeats | None
    """None for a single iteration, and for a run that was interrupted."""
    started_at: datetime
    ended_at: datetime
    experiment_id: str
    url: str | None
    trials_recorded: int
    trials_expected: int
    scores_recorded: int
    scores_expected: int
    scripted: bool
    embedded: bool
    interrupted: bool
    sweep: SweepNote | None = None
    """None where no sweep was made."""
    strict_sweep: bool = False
    """Whether an unexpected row fails the run."""
    metadata: dict[str, str]

    @property
    def swept(self) -> bool:
        """False when the sweep was strict and found something, or could not be made."""
        sweep = self.sweep
        return not self.strict_sweep or (sweep is not None and not sweep.unexpected and sweep.problem is None)


@dataclass(frozen=True)
class RunOutcome:
    """A finished run: its folder, its summary, and how its recording went."""

    folder: Path
    summary: RunSummary
    recorded: Recorded

    @property
    def met(self) -> bool:
        """What the exit code says: the threshold is met, and a strict sweep found nothing."""
        return self.summary.met and self.summary.swept


def never_completed(items: Sequence[str], iterations: int, results: Sequence[TrialResult]) -> list[TrialNote]:
    """The trials without a verdict: those that ended in an error, and those that were never run."""
    notes = [
        TrialNote(item=result.item, iteration=result.iteration, reason=result.reason, trace_id=result.trace_id)
        for result in results
        if result.outcome == "error"
    ]
    done = {(result.item, result.iteration) for result in results}
    notes += [
        TrialNote(item=item, iteration=iteration, reason="not run")
        for item in items
        for iteration in range(1, iterations + 1)
        if (item, iteration) not in done
    ]
    return sorted(notes, key=lambda note: (note.item, note.iteration))


def repeats(record: RunRecord, results: Sequence[TrialResult]) -> Repeats:
    """pass@k and pass^k per item and over the run; trials without a verdict count as not passed."""
    by_item: dict[str, Counter[str]] = {item: Counter() for item in record.items}
    for result in results:
        by_item[result.item][result.outcome] += 1
    estimated = estimate(
        ItemTrials(
            item=item,
            passed=counts["passed"],
            failed=counts["failed"],
            error=counts["error"],
            not_run=record.iterations - counts.total(),
        )
        for item, counts in by_item.items()
    )
    return Repeats(
        mean=tuple(map(_at_k, estimated.mean)),
        interval_95=estimated.interval,
        flaky=estimated.flaky,
        items=tuple(
            ItemNote(
                item=one.trials.item,
                passed=one.trials.passed,
                failed=one.trials.failed,
                error=one.trials.error,
                not_run=one.trials.not_run,
                at=tuple(map(_at_k, one.at)),
            )
            for one in estimated.items
        ),
    )


def _cost(result: TrialResult) -> float | None:
    """US dollars, the judges' too where there were any."""
    scored = next((float(score.value) for score in result.scores if score.name == COST), None)
    return scored if scored is not None or result.conversation is None else result.conversation.cost_usd


def _at_k(at: AtK) -> AtKNote:
    return AtKNote(k=at.k, pass_at_k=float(at.pass_at), pass_hat_k=float(at.pass_hat))


def summarise(
    record: RunRecord,
    results: Sequence[TrialResult],
    *,
    gate_result: GateResult,
    recorded: Recorded,
    ended_at: datetime,
    url: str | None,
    scripted: bool,
    embedded: bool,
    interrupted: bool,
    sweep: SweepNote | None = None,
    strict_sweep: bool = False,
) -> RunSummary:
    """Fold the journal's trials into a summary."""
    counts = Counter(result.outcome for result in results)
    missing = never_completed(record.items, record.iterations, results)
    conversations = [result.conversation for result in results if result.conversation is not None]
    tokens = [one.usage.total_tokens for one in conversations if one.usage is not None]
    costs = [cost for result in results if (cost := _cost(result)) is not None]
    return RunSummary(
        run=record.run,
        gate=record.gate,
        dataset=record.dataset,
        passed=counts["passed"],
        failed=counts["failed"],
        error=counts["error"],
        not_run=record.requested - len(results),
        requested=record.requested,
        pass_rate=float(gate_result.pass_rate),
        threshold=float(gate_result.threshold),
        met=gate_result.met,
        line=gate_result.line(),
        failures=tuple(
            TrialNote(item=result.item, iteration=result.iteration, reason=result.reason, trace_id=result.trace_id)
            for result in sorted(results, key=lambda one: (one.item, one.iteration))
            if result.outcome == "failed"
        ),
        never_completed=tuple(missing),
        total_tokens=sum(tokens) if tokens else None,
        cost_usd=sum(costs) if costs else None,
        # Trials that were cut off say nothing of how steady an item is.
        repeats=repeats(record, results) if record.iterations > 1 and not interrupted else None,
        started_at=record.started_at,
        ended_at=ended_at,
        experiment_id=record.experiment_id,
        url=url,
        trials_recorded=recorded.trials,
        trials_expected=recorded.trials_expected,
        scores_recorded=recorded.scores,
        scores_expected=recorded.scores_expected,
        scripted=scripted,
        embedded=embedded,
        interrupted=interrupted,
        sweep=sweep,
        strict_sweep=strict_sweep,
        metadata=record.metadata,
    )
