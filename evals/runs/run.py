"""A gate's run: its dataset, the checks before anything is spent, and the plan for the core."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime

from evals import __version__
from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.errors import TwogateError
from evals.fixtures import seeded
from evals.items import DEFAULT_DATASETS, KIND_OF_GATE, Gate, Item, gate_of_dataset, parse_items, select
from evals.judges.choice import JudgeChoice, ScriptedUrls, make_judge
from evals.preflight import preflight
from evals.recording.client import Recorder, open_recorder
from evals.recording.dataset import Dataset, fetch_dataset
from evals.recording.server import open_server, reach_loopback_directly, server_problems
from evals.runs.core import Reporter, RunPlan, run_plan
from evals.runs.measures import agent_cases, tool_call_cases
from evals.runs.models import DEFAULT_TRIAL_TIMEOUT, RunOutcome, RunRequest
from evals.settings import AGENT_VARIABLES, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, Settings
from evals.target import Target, load_target
from evals.versions import claude_code_version, git_branch, git_commit, slug, version_of

AGENT_NAME = "claude-code"
_LONGEST_METADATA = 200  # characters of a value


def execute(request: RunRequest, settings: Settings, reporter: Reporter) -> RunOutcome:
    """Run a gate. Blocks; must be called from a thread without a running event loop.

    Raises TwogateError when the run cannot be set up: nothing has been spent then.
    """
    choice = JudgeChoice(request.judge_models, claude=request.claude_judge, subscription=request.subscription)
    with ExitStack() as stack:
        target = _check(request, settings, choice)
        scripted = _scripted(request, stack)
        credentials = agent_credentials(settings, scripted=scripted, subscription=request.subscription)
        redactor = target.redactor(settings)
        server = stack.enter_context(open_server(settings, embedded=request.embedded))
        recorder = stack.enter_context(open_recorder(server, redactor))
        dataset, gate, items = _items(request, recorder)
        if gate == "merge" and _expected_gate(request) is None:
            # Only now is it known that there is something to judge.
            problems = choice.problems(settings, scripted=request.script is not None)
            if problems:
                raise TwogateError(problems)
        checked = asyncio.run(preflight(target, items, BUILTIN_TOOLS, mcp_tools_only=request.mcp_tools_only))
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
            cli_path=request.claude_code,
        )
        if gate == "pr":
            cases = tool_call_cases(items, agent, fresh_sessions=request.fresh_sessions)
        else:
            judge = make_judge(choice, settings, scripted=scripted, langfuse_public_key=recorder.server.keys.public_key)
            cases = agent_cases(items, agent, judge, redactor)
            for warning in choice.warnings:
                reporter.note(f"warning: {warning}")
        by_id = {item.id: item for item in dataset.items}
        branch = git_branch(settings.root, settings.variables)
        plan = RunPlan(
            name=run_name(branch, request.agent_model),
            gate=gate,
            dataset=dataset.name,
            dataset_id=dataset.id,
            cases=[(case, by_id[case.id]) for case in cases],
            metadata=run_metadata(
                settings,
                branch,
                gate=gate,
                agent=AGENT_NAME,
                agent_model=request.agent_model,
                target=target.describe(),
                dataset=dataset.name,
                command=redactor.text(shlex.join(request.command)),
                scripted=request.script is not None,
                flags={
                    "mcp-tools-only": request.mcp_tools_only,
                    "subscription": request.subscription,
                    "fresh-sessions": request.fresh_sessions,
                },
                iterations=str(request.iterations),
                concurrency=str(request.concurrency),
                claude_agent_sdk=version_of("claude-agent-sdk"),
                claude_code=claude_code_version(request.claude_code),
                **({"judge": ", ".join(choice.names)} if gate == "merge" else {}),
            ),
            agent=AGENT_NAME,
            time_limit=request.trial_timeout or DEFAULT_TRIAL_TIMEOUT[KIND_OF_GATE[gate]],
            iterations=request.iterations,
            concurrency=request.concurrency,
            threshold=request.threshold,
            sweep=True,
            strict_sweep=request.strict_sweep,
            under_test=tuple(server.name for server in target.under_test),
            scripted=request.script is not None,
            command=request.command,
            summary_json=request.summary_json,
            redactor=redactor,
        )
        with seeded(request.fixtures, settings, reporter.note):
            return run_plan(plan, recorder, reporter, settings.state)


def run_name(branch: str, model: str) -> str:
    """``<git-branch>-<agent-model>-<UTC time>``."""
    return f"{slug(branch)}-{slug(model)}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def run_metadata(
    settings: Settings,
    branch: str,
    *,
    gate: str,
    agent: str,
    agent_model: str,
    target: str,
    scripted: bool,
    flags: Mapping[str, bool],
    dataset: str = "",
    command: str = "",
    **more: str,
) -> dict[str, str]:
    """What a run is recorded with: models, versions, target, flags. Texts alone, as Langfuse takes them here.

    A command line that is longer than the SDK takes (it would leave it out with a warning) is left out.
    """
    on = [name for name, value in {**flags, "scripted": scripted}.items() if value]
    return {
        "gate": gate,
        "agent": agent,
        "agent_model": agent_model + (" (scripted)" if scripted else ""),
        "target": target,
        **({"dataset": dataset} if dataset else {}),
        **({"command": command} if 0 < len(command) <= _LONGEST_METADATA else {}),
        "flags": " ".join(on) or "none",
        "branch": branch,
        "commit": git_commit(settings.root),
        "twogate": __version__,
        "langfuse_sdk": version_of("langfuse"),
        "mcp_sdk": version_of("mcp"),
        **more,
    }


def _check(request: RunRequest, settings: Settings, choice: JudgeChoice) -> Target:
    """The target. Raises TwogateError that lists everything missing for this run: variables of Langfuse, the model, the
    judge and the target.
    """
    problems = server_problems(settings, embedded=request.embedded)
    if request.script is None and not request.subscription and not any(map(settings.get, AGENT_VARIABLES)):
        problems.append(
            f"{ANTHROPIC_API_KEY} is not set; set it (see .env.example), use your login by --subscription, "
            "or run without a key: twogate run --scripted SCRIPT, or twogate demo"
        )
    if _expected_gate(request) == "merge":
        problems += choice.problems(settings, scripted=request.script is not None)
    target: Target | None = None
    try:
        target = load_target(settings.root, settings.variables, request.target)
    except TwogateError as error:
        problems += error.lines
    if problems or target is None:
        raise TwogateError(problems)
    return target


def _scripted(request: RunRequest, stack: ExitStack) -> ScriptedUrls | None:
    """The scripted model, started for as long as the run lasts, where it is asked for."""
    if request.script is None:
        return None
    from evals.embedded.model import ScriptedModel, load_script

    reach_loopback_directly()
    model = stack.enter_context(ScriptedModel(load_script(request.script)))
    return ScriptedUrls(model.base_url, model.openai_base_url)


def agent_credentials(settings: Settings, *, scripted: ScriptedUrls | None, subscription: bool) -> dict[str, str]:
    """What an agent needs to reach its model. With a subscription the local login is used, so no API key."""
    if scripted is not None:
        return {ANTHROPIC_API_KEY: "scripted", ANTHROPIC_BASE_URL: scripted.base_url}
    names = [*AGENT_VARIABLES, ANTHROPIC_BASE_URL]
    if subscription:
        names.remove(ANTHROPIC_API_KEY)
    return {name: value for name in names if (value := settings.get(name))}


def _expected_gate(request: RunRequest) -> Gate | None:
    """The gate by what was asked; None when only the items can tell."""
    if request.gate is not None or request.dataset is None:
        return request.gate or "pr"
    return gate_of_dataset(request.dataset)


def _items(request: RunRequest, recorder: Recorder) -> tuple[Dataset, Gate, list[Item]]:
    gate = _expected_gate(request)
    name = request.dataset or DEFAULT_DATASETS[gate or "pr"]
    dataset = fetch_dataset(recorder, name)
    items = parse_items(dataset.raw_items(), gate)
    if gate is None and items:
        gate = next(one for one, kind in KIND_OF_GATE.items() if kind == items[0].kind)
    chosen = select(items, request.id_regex, request.category)
    assert gate is not None, "select leaves at least one item, whose kind tells the gate"
    return dataset, gate, chosen
