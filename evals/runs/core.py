"""The part of a run that spends: from the run's folder to its verdict. The same for every kind of case."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from evals.conversation import TURN_LIMIT
from evals.errors import TwogateError
from evals.gate import DEFAULT_THRESHOLD, GateResult
from evals.recording.client import Recorder, log_to
from evals.recording.experiment import experiment_id, experiment_url, project_id, run_experiment
from evals.recording.scores import PlacedScore, Recorded, read_back, write_score
from evals.recording.sweep import sweep_experiment
from evals.recording.trace import record_conversation
from evals.redact import Redactor
from evals.runs.journal import RUN_FILE, SUMMARY_FILE, Journal, create_run_folder, write_json
from evals.runs.models import DEFAULT_CONCURRENCY, RunOutcome, RunRecord, RunSummary, SweepNote, summarise
from evals.runs.output import task_output
from evals.runs.trial import IDENTITY, Case, TrialResult, run_trial
from evals.scoring import Score

TURN_LIMIT_REACHED = "the limit of turns was reached; what was done until then is judged"


class Reporter(Protocol):
    """What shows a run to people while it goes on."""

    def note(self, line: str) -> None:
        """A line of its own: a step, a warning."""

    def started(self, record: RunRecord) -> None: ...

    def trial_finished(self, result: TrialResult) -> None: ...

    def finished(self, outcome: RunOutcome) -> None: ...


@dataclass(frozen=True)
class RunPlan:
    """What to run and how it is recorded."""

    name: str
    """The run's name; a number is added when a folder of that name is there."""
    gate: str
    dataset: str
    dataset_id: str | None
    """The Langfuse dataset's id; None for cases that live in a file."""
    cases: Sequence[tuple[Case, Any]]
    """Each case with its data: the Langfuse SDK's dataset item, or a dict with input and expected_output."""
    metadata: dict[str, str]
    agent: str
    """What answers, the name of its observations."""
    time_limit: float
    """Seconds one trial may take."""
    iterations: int = 1
    concurrency: int = DEFAULT_CONCURRENCY
    threshold: Fraction = DEFAULT_THRESHOLD
    sweep: bool = False
    """Look for ERROR observations that nothing explains, after the run."""
    strict_sweep: bool = False
    under_test: tuple[str, ...] = ()
    """The servers whose failed calls the sweep counts."""
    rate_score: str = "pass_rate"
    """The name of the run's own score: passed over requested."""
    scripted: bool = False
    command: tuple[str, ...] = ()
    summary_json: Path | None = None
    redactor: Redactor = field(default_factory=lambda: Redactor(()))

    @property
    def requested(self) -> int:
        return len(self.cases) * self.iterations


def run_plan(plan: RunPlan, recorder: Recorder, reporter: Reporter, state: Path) -> RunOutcome:
    """Run every trial of a plan, record it, and come to a verdict.

    state: the folder that holds ``runs/``. Blocks; must be called from a thread without a running event loop. An
    interrupt (Ctrl-C, SIGTERM) ends the trials that run and still reports what is finished.
    """
    return _Run(plan, recorder, reporter, state).go()


class _Run:
    def __init__(self, plan: RunPlan, recorder: Recorder, reporter: Reporter, state: Path) -> None:
        self._plan = plan
        self._recorder = recorder
        self._reporter = reporter
        # The Langfuse SDK hands back the data object alone.
        self._case_of = {id(data): case for case, data in plan.cases}
        self._iterations_started: dict[str, int] = {}
        self._results: list[TrialResult] = []
        self._placed: list[PlacedScore] = []
        self._project = project_id(recorder)
        try:
            self._folder = create_run_folder(state / "runs", plan.name)
        except OSError as error:
            raise TwogateError(f"{state / 'runs'}: a folder cannot be made there: {error.strerror}") from None
        run = self._folder.name
        self._record = RunRecord(
            run=run,
            started_at=datetime.now(UTC),
            command=tuple(map(plan.redactor.text, plan.command)),
            gate=plan.gate,
            dataset=plan.dataset,
            items=tuple(case.id for case, _ in plan.cases),
            iterations=plan.iterations,
            requested=plan.requested,
            threshold=str(plan.threshold),
            experiment_id=experiment_id(self._project, plan.dataset_id or plan.dataset, run),
            metadata=plan.metadata,
        )

    def go(self) -> RunOutcome:
        write_json(self._folder / RUN_FILE, self._record)
        self._reporter.started(self._record)
        interrupted = False
        plan = self._plan
        # Whole rounds: a run that is cut short has tried every item about as often.
        data = [data for _ in range(plan.iterations) for _, data in plan.cases]
        with log_to(self._folder / "langfuse.log"):
            with Journal(self._folder) as journal, _terminate_as_interrupt():
                try:
                    run_experiment(
                        self._recorder,
                        run=self._record.run,
                        experiment=self._record.experiment_id,
                        data=data,
                        task=lambda one: self._trial(self._case_of[id(one)], journal),
                        concurrency=plan.concurrency,
                        metadata=plan.metadata,
                        description=f"twogate {plan.gate} on {plan.dataset}",
                    )
                except KeyboardInterrupt:
                    interrupted = True
                except Exception as error:
                    # What is finished is still told; what was not run keeps the gate from being met.
                    self._reporter.note(f"warning: the run broke off: {type(error).__name__}: {error}")
            return self._finish(interrupted)

    async def _trial(self, case: Case, journal: Journal) -> Any:
        iteration = self._iterations_started[case.id] = self._iterations_started.get(case.id, 0) + 1
        client = self._recorder.client
        result = await run_trial(
            case,
            run=self._record.run,
            iteration=iteration,
            time_limit=self._plan.time_limit,
            trace_id=client.get_current_trace_id(),
            observation_id=client.get_current_observation_id(),
        )
        try:
            # Which trial it is stays readable: an item's id may hold a word that is also a variable's value.
            result = self._plan.redactor.model(result, IDENTITY)
        except Exception as error:
            reason = f"the result cannot be written down: {type(error).__name__}"
            result = result.model_copy(
                update={"outcome": "error", "reason": reason, "scores": (), "conversation": None, "judgement": None}
            )
        self._write(lambda: journal.append(result), "this trial is not in the journal")
        self._results.append(result)
        self._write_trace(result)
        self._reporter.trial_finished(result)
        return task_output(result)

    def _write_trace(self, result: TrialResult) -> None:
        """Langfuse never changes an outcome: the journal has the trial, the read-back tells what is missing."""
        try:
            error = result.reason if result.outcome == "error" else None
            if result.conversation is not None:
                warning = TURN_LIMIT_REACHED if result.conversation.stop == TURN_LIMIT else None
                record_conversation(
                    self._recorder,
                    result.conversation,
                    agent=self._plan.agent,
                    error=error,
                    warning=warning,
                    under_test=self._plan.under_test or None,
                )
                if warning is not None and error is None:
                    self._recorder.client.update_current_span(level="WARNING", status_message=warning)
            if error is not None:
                self._recorder.client.update_current_span(level="ERROR", status_message=error)
            for score in result.scores:
                self._place(PlacedScore(score, trace_id=result.trace_id, observation_id=result.observation_id))
        except Exception as error_:
            self._reporter.note(f"warning: {result.item}: not recorded in Langfuse: {error_}")

    def _write(self, write: Callable[[], None], otherwise: str) -> None:
        """A full disk or a folder that is gone costs what it costs, and not the verdict."""
        try:
            write()
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else None
            self._reporter.note(f"warning: {said or error}: {otherwise}")

    def _place(self, placed: PlacedScore) -> None:
        self._placed.append(placed)
        write_score(self._recorder, placed)

    def _finish(self, interrupted: bool) -> RunOutcome:
        plan, record = self._plan, self._record
        passed = sum(result.outcome == "passed" for result in self._results)
        gate_result = GateResult(passed, plan.requested, plan.threshold)
        rate = Score(name=plan.rate_score, value=float(gate_result.pass_rate), comment=gate_result.line())
        self._place(PlacedScore(rate, experiment_id=record.experiment_id))
        # First without what Langfuse has of it: reading that back may take minutes, and this process may not have them.
        unread = Recorded(0, len(self._results), 0, len(self._placed), problem="not read back")
        with _uninterrupted():
            summary = self._summarise(gate_result, unread, None, interrupted)
            self._write(lambda: write_json(self._folder / SUMMARY_FILE, summary), "there is no summary.json")
        sweep = None
        if self._recorder.flush():
            recorded = read_back(
                self._recorder,
                experiment_id=record.experiment_id,
                since=record.started_at,
                trials=len(self._results),
                trace_ids=[result.trace_id for result in self._results if result.trace_id],
                scores=self._placed,
            )
            sweep = self._sweep()
        else:
            problem = "Langfuse did not take in time what was sent to it"
            recorded = replace(unread, problem=problem)
            if plan.sweep and self._results:
                sweep = SweepNote(errors=0, unexpected=(), problem=problem)
        summary = self._summarise(gate_result, recorded, sweep, interrupted)
        self._write(lambda: write_json(self._folder / SUMMARY_FILE, summary), "there is no summary.json")
        if plan.summary_json is not None:
            path = plan.summary_json
            self._write(lambda: write_json(path, summary), f"there is no {path}")
        outcome = RunOutcome(folder=self._folder, summary=summary, recorded=recorded)
        self._reporter.finished(outcome)
        return outcome

    def _summarise(
        self, gate_result: GateResult, recorded: Recorded, sweep: SweepNote | None, interrupted: bool
    ) -> RunSummary:
        embedded = self._recorder.server.embedded
        return summarise(
            self._record,
            self._results,
            gate_result=gate_result,
            recorded=recorded,
            ended_at=datetime.now(UTC),
            url=None if embedded else experiment_url(self._recorder, self._project, self._record.experiment_id),
            scripted=self._plan.scripted,
            embedded=embedded,
            interrupted=interrupted,
            sweep=sweep,
            strict_sweep=self._plan.strict_sweep,
        )

    def _sweep(self) -> SweepNote | None:
        if not self._plan.sweep or not self._results:
            return None
        try:
            sweep = sweep_experiment(
                self._recorder,
                self._project,
                name=self._record.run,
                since=self._record.started_at,
                under_test=self._plan.under_test,
            )
        except TwogateError as error:
            return SweepNote(errors=0, unexpected=(), problem="; ".join(error.lines), lines=())
        if sweep.trials < len(self._results):
            problem = f"only {sweep.trials} of {len(self._results)} trials could be read"
            return SweepNote(errors=sweep.errors, unexpected=(), problem=problem)
        return SweepNote(
            errors=sweep.errors,
            unexpected=tuple(row.line() for row in sweep.unexpected),
            lines=tuple(sweep.lines()),
        )


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no Ctrl-C cut into the block, which must be short: who presses it three times still wants the summary."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    arrived: list[int] = []
    before = [signal.signal(one, lambda number, frame: arrived.append(number)) for one in signals]
    try:
        yield
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """CI cancels a job by SIGTERM, a closed terminal sends SIGHUP: both are taken for Ctrl-C, so that what is finished
    is still reported.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    ends = [signal.SIGTERM]
    # A terminal that is closed; a run under nohup goes on.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    before = [signal.signal(one, interrupt) for one in ends]
    # A shell that starts a command in the background has it ignore SIGINT, and with it what SIGTERM is turned into.
    before_interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for one, handler in zip(ends, before, strict=True):
            signal.signal(one, handler)
        signal.signal(signal.SIGINT, before_interrupt)
