"""A whole run: dataset, checks, trials, recording, verdict."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Protocol

from evals import __version__
from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.errors import TwogateError
from evals.gate import GateResult
from evals.items import DEFAULT_DATASETS, KIND_OF_GATE, Gate, Item, gate_of_dataset, parse_items, select
from evals.recording.client import Recorder, log_to, open_recorder
from evals.recording.dataset import Dataset, fetch_dataset
from evals.recording.experiment import experiment_id, experiment_url, project_id, run_experiment
from evals.recording.scores import PlacedScore, read_back, write_score
from evals.recording.server import open_server, reach_loopback_directly
from evals.recording.trace import record_conversation
from evals.redact import Redactor
from evals.runs.journal import RUN_FILE, SUMMARY_FILE, Journal, create_run_folder, write_json
from evals.runs.measures import tool_call_measure
from evals.runs.models import DEFAULT_TRIAL_TIMEOUT, RunOutcome, RunRecord, RunRequest, summarise
from evals.runs.output import task_output
from evals.runs.trial import Measure, TrialResult, run_trial
from evals.scoring import Score
from evals.settings import ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, Settings
from evals.target import Target, load_target
from evals.tool_listing import preflight
from evals.versions import claude_code_version, git_branch, git_commit, slug, version_of

AGENT_NAME = "claude-code"


class Reporter(Protocol):
    """What shows a run to people while it goes on."""

    def note(self, line: str) -> None:
        """A line of its own: a step, a warning."""

    def started(self, record: RunRecord) -> None: ...

    def trial_finished(self, result: TrialResult) -> None: ...

    def finished(self, outcome: RunOutcome) -> None: ...


def execute(request: RunRequest, settings: Settings, reporter: Reporter) -> RunOutcome:
    """Run a gate. Blocks; must be called from a thread without a running event loop.

    Raises TwogateError when the run cannot be set up: nothing has been spent then.
    """
    with ExitStack() as stack:
        credentials = _credentials(request, settings, stack)
        target = load_target(settings.root, settings.variables, request.target)
        server = stack.enter_context(open_server(settings, embedded=request.embedded))
        recorder = stack.enter_context(open_recorder(server))
        dataset, gate, items = _items(request, recorder)
        checked = asyncio.run(preflight(target, items, BUILTIN_TOOLS))
        for warning in checked.warnings:
            reporter.note(f"warning: {warning}")
        agent = ClaudeCode(
            target=target,
            tools=checked.tools,
            model=request.agent_model,
            credentials=credentials,
            subscription=request.subscription,
            mcp_tools_only=request.mcp_tools_only,
            tool_timeout=request.tool_timeout,
        )
        secrets = [*settings.secrets, *(one for server_ in target.servers for one in server_.secret_values())]
        run = _Run(request, settings, reporter, recorder, dataset, gate, items, target, Redactor(secrets))
        return run.go(tool_call_measure(agent))


def _credentials(request: RunRequest, settings: Settings, stack: ExitStack) -> dict[str, str]:
    """What the agent needs to reach its model, starting the scripted one where it is asked for.

    Raises TwogateError that lists every variable missing, those of Langfuse too.
    """
    problems: list[str] = []
    if not request.embedded:
        try:
            settings.langfuse()
        except TwogateError as error:
            problems += error.lines
    if request.script is None and not request.subscription and settings.missing([ANTHROPIC_API_KEY]):
        problems.append(
            f"{ANTHROPIC_API_KEY} is not set; set it (see .env.example), use your login by --subscription, "
            "or run without a key: twogate run --scripted SCRIPT, or twogate demo"
        )
    if problems:
        raise TwogateError(problems)
    if request.script is not None:
        from evals.embedded.model import ScriptedModel, load_script

        reach_loopback_directly()
        model = stack.enter_context(ScriptedModel(load_script(request.script)))
        return {ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: model.base_url}
    names = (ANTHROPIC_BASE_URL,) if request.subscription else (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL)
    return {name: value for name in names if (value := settings.get(name))}


def _items(request: RunRequest, recorder: Recorder) -> tuple[Dataset, Gate, list[Item]]:
    name = request.dataset or DEFAULT_DATASETS[request.gate or "pr"]
    gate = request.gate if request.dataset is None else request.gate or gate_of_dataset(name)
    dataset = fetch_dataset(recorder, name)
    items = parse_items(dataset.raw_items(), gate)
    if gate is None and items:
        gate = next(one for one, kind in KIND_OF_GATE.items() if kind == items[0].kind)
    chosen = select(items, request.id_regex, request.category)
    if gate != "pr":
        raise TwogateError(f"{name}: agent items cannot be run yet; choose a dataset of tool-call items")
    return dataset, gate, chosen


class _Run:
    """The part of a run that spends: from the run's folder to its verdict."""

    def __init__(
        self,
        request: RunRequest,
        settings: Settings,
        reporter: Reporter,
        recorder: Recorder,
        dataset: Dataset,
        gate: Gate,
        items: Sequence[Item],
        target: Target,
        redactor: Redactor,
    ) -> None:
        self._request = request
        self._reporter = reporter
        self._recorder = recorder
        self._dataset = dataset
        self._items = items
        self._redactor = redactor
        self._by_id = {item.id: item for item in items}
        self._iterations_started: dict[str, int] = {}
        self._results: list[TrialResult] = []
        self._placed: list[PlacedScore] = []
        started_at = datetime.now(UTC)
        branch = git_branch(settings.root, settings.variables)
        name = f"{slug(branch)}-{slug(request.agent_model)}-{started_at:%Y%m%dT%H%M%SZ}"
        self._project = project_id(recorder)
        self._folder = create_run_folder(settings.state / "runs", name)
        run = self._folder.name
        self._record = RunRecord(
            run=run,
            started_at=started_at,
            command=tuple(map(redactor.text, request.command)),
            gate=gate,
            dataset=dataset.name,
            items=tuple(item.id for item in items),
            iterations=request.iterations,
            requested=len(items) * request.iterations,
            threshold=str(request.threshold),
            experiment_id=experiment_id(self._project, dataset.id, run),
            metadata=_metadata(request, settings, target, gate, branch),
        )

    def go(self, measure: Measure) -> RunOutcome:
        write_json(self._folder / RUN_FILE, self._record)
        self._reporter.started(self._record)
        interrupted = False
        by_id = {item.id: item for item in self._dataset.items}
        data = [by_id[item.id] for _ in range(self._request.iterations) for item in self._items]
        with log_to(self._folder / "langfuse.log"):
            with Journal(self._folder) as journal, _terminate_as_interrupt():
                try:
                    run_experiment(
                        self._recorder,
                        run=self._record.run,
                        experiment=self._record.experiment_id,
                        data=data,
                        task=lambda dataset_item: self._trial(dataset_item, measure, journal),
                        concurrency=self._request.concurrency,
                        metadata=self._record.metadata,
                        description=f"twogate {self._record.gate} gate on {self._dataset.name}",
                    )
                except KeyboardInterrupt:
                    interrupted = True
            return self._finish(interrupted)

    async def _trial(self, dataset_item: Any, measure: Measure, journal: Journal) -> Any:
        item = self._by_id[dataset_item.id]
        iteration = self._iterations_started[item.id] = self._iterations_started.get(item.id, 0) + 1
        client = self._recorder.client
        limit = self._request.trial_timeout or DEFAULT_TRIAL_TIMEOUT[item.kind]
        result = self._redactor.model(
            await run_trial(
                item,
                measure,
                run=self._record.run,
                iteration=iteration,
                time_limit=limit,
                trace_id=client.get_current_trace_id(),
                observation_id=client.get_current_observation_id(),
            )
        )
        journal.append(result)
        self._results.append(result)
        self._write_trace(result)
        self._reporter.trial_finished(result)
        return task_output(result)

    def _write_trace(self, result: TrialResult) -> None:
        """Langfuse never changes an outcome: the journal has the trial, the read-back tells what is missing."""
        try:
            error = result.reason if result.outcome == "error" else None
            if result.conversation is not None:
                record_conversation(self._recorder, result.conversation, agent=AGENT_NAME, error=error)
            if error is not None:
                self._recorder.client.update_current_span(level="ERROR", status_message=error)
            for score in result.scores:
                self._place(PlacedScore(score, trace_id=result.trace_id, observation_id=result.observation_id))
        except Exception as error_:
            self._reporter.note(f"warning: {result.item}: not recorded in Langfuse: {error_}")

    def _place(self, placed: PlacedScore) -> None:
        self._placed.append(placed)
        write_score(self._recorder, placed)

    def _finish(self, interrupted: bool) -> RunOutcome:
        passed = sum(result.outcome == "passed" for result in self._results)
        gate_result = GateResult(passed, self._record.requested, self._request.threshold)
        self._place(
            PlacedScore(
                Score(name="pass_rate", value=float(gate_result.pass_rate), comment=gate_result.line()),
                experiment_id=self._record.experiment_id,
            )
        )
        self._recorder.flush()
        recorded = read_back(
            self._recorder,
            experiment_id=self._record.experiment_id,
            since=self._record.started_at,
            trace_ids=[result.trace_id for result in self._results if result.trace_id],
            scores=self._placed,
        )
        embedded = self._recorder.server.embedded
        summary = summarise(
            self._record,
            self._items,
            self._results,
            gate_result=gate_result,
            recorded=recorded,
            ended_at=datetime.now(UTC),
            url=None if embedded else experiment_url(self._recorder, self._project, self._record.experiment_id),
            scripted=self._request.script is not None,
            embedded=embedded,
            interrupted=interrupted,
        )
        write_json(self._folder / SUMMARY_FILE, summary)
        if self._request.summary_json is not None:
            write_json(self._request.summary_json, summary)
        outcome = RunOutcome(folder=self._folder, summary=summary, recorded=recorded)
        self._reporter.finished(outcome)
        return outcome


def _metadata(request: RunRequest, settings: Settings, target: Target, gate: Gate, branch: str) -> dict[str, str]:
    """What a run is recorded with. Texts alone: Langfuse takes no other values here."""
    flags = {
        "mcp-tools-only": request.mcp_tools_only,
        "subscription": request.subscription,
        "scripted": request.script is not None,
    }
    return {
        "gate": gate,
        "agent": AGENT_NAME,
        "agent_model": request.agent_model + (" (scripted)" if request.script is not None else ""),
        "target": target.describe(),
        "iterations": str(request.iterations),
        "concurrency": str(request.concurrency),
        "flags": " ".join(name for name, on in flags.items() if on) or "none",
        "branch": branch,
        "commit": git_commit(settings.root),
        "twogate": __version__,
        "claude_agent_sdk": version_of("claude-agent-sdk"),
        "claude_code": claude_code_version(),
        "langfuse_sdk": version_of("langfuse"),
        "mcp_sdk": version_of("mcp"),
    }


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """CI cancels a job by SIGTERM: treat it like Ctrl-C, so that what is finished is still reported."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
