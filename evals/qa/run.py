"""A question-and-answer run: the file and every check before anything is spent, the run, the report."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from evals.agents.messages import (
    DEFAULT_MAX_TURNS,
    DEFAULT_MODEL,
    DEFAULT_TIME_LIMIT,
    DEFAULT_TOOL_TIMEOUT,
    MessagesAgent,
)
from evals.errors import TwogateError
from evals.gate import DEFAULT_THRESHOLD
from evals.outputs import write_text
from evals.qa.file import QaFile, QaPair, load_qa
from evals.qa.measure import item_id, qa_cases
from evals.qa.prompt import SYSTEM
from evals.qa.report import Asked, QaReport, build_report
from evals.qa.server import ServerOptions, Servers, find_servers, list_servers_tools
from evals.recording.client import open_recorder
from evals.recording.server import open_server, reach_loopback_directly
from evals.redact import Redactor
from evals.runs.core import Reporter, RunPlan, run_plan
from evals.runs.journal import read_journal
from evals.runs.models import RunOutcome
from evals.runs.run import run_metadata, run_name
from evals.runs.trial import TrialResult
from evals.settings import ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, Settings
from evals.tool_definitions import refused
from evals.tool_listing import Tool
from evals.versions import git_branch, version_of

AGENT_NAME = "messages"
DEFAULT_CONCURRENCY = 4
REPORT_FILE = "report.json"
_CLOSING = 30.0  # seconds a question that ran out of time may take to end its servers


@dataclass(frozen=True)
class QaRequest:
    """Everything a question-and-answer run can be asked for."""

    file: Path
    server: ServerOptions = field(default_factory=ServerOptions)
    target: Path | None = None
    """The target's file, when no server is named; None: the one of the folder."""
    model: str = DEFAULT_MODEL
    iterations: int = 1
    concurrency: int = DEFAULT_CONCURRENCY
    max_turns: int = DEFAULT_MAX_TURNS
    threshold: Fraction = DEFAULT_THRESHOLD
    tool_timeout: float = DEFAULT_TOOL_TIMEOUT
    trial_timeout: float = DEFAULT_TIME_LIMIT
    id_regex: str | None = None
    script: Path | None = None
    """The script of a scripted model; None: the real one."""
    embedded: bool = False
    command: tuple[str, ...] = ()
    """The command line, for the record."""


@dataclass(frozen=True)
class QaOutcome:
    """A finished run with its report, and what else came of it."""

    file: QaFile
    tools: tuple[Tool, ...]
    results: tuple[TrialResult, ...]
    report: QaReport
    run: RunOutcome
    redactor: Redactor
    """What the results and the report were redacted by."""
    unwritten: tuple[str, ...] = ()
    """Why files of the run's folder could not be written, one line each."""


def run_qa(request: QaRequest, settings: Settings, reporter: Reporter) -> QaOutcome:
    """Put every question of a file to the model. Blocks; call it from a thread without a running event loop.

    The report is written to the run's folder too. Raises TwogateError, with all problems that can be seen at once,
    when the run cannot be set up: nothing has been spent then.
    """
    with ExitStack() as stack:
        file, pairs, servers = _checked(request, settings)
        redactor = Redactor([*settings.secrets, *servers.secrets])
        for note in file.notes:
            reporter.note(f"note: {note}")
        server = stack.enter_context(open_server(settings, embedded=request.embedded))
        recorder = stack.enter_context(open_recorder(server, redactor))
        tools = asyncio.run(list_servers_tools(servers, redactor))
        for tool in tools:
            if (why := refused(tool)) is not None:
                line = f"the Messages API refuses every request that offers the tool {tool.name}: {why}"
                reporter.note(f"warning: {redactor.text(line)}")
        agent = MessagesAgent(
            launches=servers.launches,
            system=SYSTEM,
            model=request.model,
            credentials=_credentials(request, settings, stack),
            max_turns=request.max_turns,
            time_limit=request.trial_timeout,
            tool_timeout=request.tool_timeout,
        )
        branch = git_branch(settings.root, settings.variables)
        plan = RunPlan(
            name=run_name(branch, request.model),
            gate="qa",
            dataset=file.path.name,
            dataset_id=None,
            cases=qa_cases(file.path, pairs, len(file.pairs), agent),
            metadata=run_metadata(
                settings,
                branch,
                gate="qa",
                agent=AGENT_NAME,
                agent_model=request.model,
                target=redactor.text(servers.description),
                scripted=request.script is not None,
                flags={},
                file=request.file.name,
                iterations=str(request.iterations),
                concurrency=str(request.concurrency),
                max_turns=str(request.max_turns),
                anthropic_sdk=version_of("anthropic"),
            ),
            agent=AGENT_NAME,
            # The agent keeps to the limit itself and keeps the conversation; this one is for an agent that hangs.
            time_limit=request.trial_timeout + _CLOSING,
            iterations=request.iterations,
            concurrency=request.concurrency,
            threshold=request.threshold,
            rate_score="accuracy",
            scripted=request.script is not None,
            command=request.command,
            redactor=redactor,
        )
        outcome = run_plan(plan, recorder, reporter, settings.state)
        results = tuple(read_journal(outcome.folder))
        asked = [
            Asked(
                item=item_id(file.path, pair.number, len(file.pairs)),
                number=pair.number,
                # As the trials have them: a value of the server's settings is hidden in both.
                question=redactor.text(pair.question),
                expected=redactor.text(pair.answer),
            )
            for pair in pairs
        ]
        report = build_report(
            outcome.summary,
            asked,
            request.iterations,
            results,
            file=file.path.name,
            tool_names=[tool.name for tool in tools],
        )
        unwritten = write_text(outcome.folder / REPORT_FILE, report.model_dump_json(indent=2) + "\n")
        return QaOutcome(
            file=file,
            tools=tools,
            results=results,
            report=report,
            run=outcome,
            redactor=redactor,
            unwritten=(unwritten,) if unwritten is not None else (),
        )


def select_pairs(file: QaFile, id_regex: str | None) -> tuple[QaPair, ...]:
    """The pairs whose id the expression finds a match in. Raises TwogateError when it is invalid or none is left."""
    if id_regex is None:
        return file.pairs
    try:
        pattern = re.compile(id_regex)
    except re.error as error:
        problem = f"--id {id_regex!r} is not a regular expression: {error}; escape special characters with \\"
        raise TwogateError(problem) from None
    ids = {pair: item_id(file.path, pair.number, len(file.pairs)) for pair in file.pairs}
    chosen = tuple(pair for pair in file.pairs if pattern.search(ids[pair]))
    if not chosen:
        first, last = ids[file.pairs[0]], ids[file.pairs[-1]]
        raise TwogateError(
            f"--id {id_regex!r} selects none of the {len(file.pairs)} pairs; their ids: {first} to {last}"
        )
    return chosen


def _checked(request: QaRequest, settings: Settings) -> tuple[QaFile, tuple[QaPair, ...], Servers]:
    """The file, its pairs and the servers. Raises TwogateError with the problems of all of them."""
    problems: list[str] = []
    file: QaFile | None = None
    pairs: tuple[QaPair, ...] = ()
    servers: Servers | None = None
    try:
        file = load_qa(request.file)
        pairs = select_pairs(file, request.id_regex)
    except TwogateError as error:
        problems += error.lines
    try:
        servers = find_servers(request.server, settings.root, settings.variables, request.target)
    except TwogateError as error:
        problems += error.lines
    try:
        if not request.embedded:
            settings.langfuse()
    except TwogateError as error:
        problems += error.lines
    if request.script is None and settings.missing([ANTHROPIC_API_KEY]):
        problems.append(
            f"{ANTHROPIC_API_KEY} is not set; set it (see .env.example), or answer from a script without a key: "
            "--scripted SCRIPT"
        )
    if request.script is not None:
        from evals.embedded.model import load_script

        try:
            load_script(request.script)
        except TwogateError as error:
            problems += error.lines
    if problems or file is None or servers is None:
        raise TwogateError(problems)
    return file, pairs, servers


def _credentials(request: QaRequest, settings: Settings, stack: ExitStack) -> dict[str, str]:
    if request.script is not None:
        from evals.embedded.model import ScriptedModel, load_script

        reach_loopback_directly()
        model = stack.enter_context(ScriptedModel(load_script(request.script)))
        return {ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: model.base_url}
    names = (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL)
    return {name: value for name in names if (value := settings.get(name))}
