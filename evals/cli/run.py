"""``twogate run`` and ``twogate demo``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from evals.cli.types import FILE, SECONDS, Share

_Command = TypeVar("_Command", bound=Callable[..., Any])


_OPTIONS = [
    click.option("--gate", type=click.Choice(["pr", "merge"]), help="The gate to run.  [default: pr]"),
    click.option("--dataset", metavar="NAME", help="Another dataset than the gate's own."),
    click.option("--id", "id_regex", metavar="REGEX", help="Only items whose id matches (searched, not anchored)."),
    click.option("--category", metavar="NAME", help="Only items of this category; * stands for any text."),
    click.option(
        "--agent-model", metavar="MODEL", default="claude-haiku-4-5", show_default=True, help="The model under test."
    ),
    click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, help="Trials of each item."),
    click.option(
        "--concurrency", type=click.IntRange(1), default=8, show_default=True, help="Trials that run at the same time."
    ),
    click.option(
        "--pass-threshold",
        "threshold",
        type=Share(),
        default="0.9",
        show_default=True,
        help="The share of requested trials that must pass.",
    ),
    click.option(
        "--tool-timeout", type=SECONDS, default=60.0, show_default=True, help="Seconds one call of a tool may take."
    ),
    click.option("--trial-timeout", type=SECONDS, help="Seconds one trial may take.  [default: 180; agent items 900]"),
    click.option("--mcp-tools-only", is_flag=True, help="Drop Claude Code's built-in tools."),
    click.option("--subscription", is_flag=True, help="Use the local Claude login instead of ANTHROPIC_API_KEY."),
    click.option("--fresh-sessions", is_flag=True, help="Start Claude Code anew for each tool-call trial."),
    click.option("--embedded", is_flag=True, help="Record into the embedded store, whatever LANGFUSE_* say."),
    click.option(
        "--judge-model",
        "judge_models",
        multiple=True,
        metavar="MODEL",
        help="Judges agent items; repeatable: the majority decides.  [default: deepseek/deepseek-v4-flash]",
    ),
    click.option(
        "--claude-judge", is_flag=True, help="Judge on the Claude Agent SDK.  [default model: claude-sonnet-5]"
    ),
    click.option("--strict-sweep", is_flag=True, help="An unexpected ERROR observation fails the run."),
    click.option(
        "--fixtures",
        multiple=True,
        metavar="FAMILY",
        help="Seed this family of fixtures before the run and clean after it; repeatable (see twogate fixtures).",
    ),
    click.option("--target", type=FILE, help="The target's file.  [default: twogate.toml, else .mcp.json]"),
    click.option(
        "--claude-code",
        type=click.Path(path_type=Path, exists=True, resolve_path=True),
        help="Another Claude Code than the bundled one.",
    ),
    click.option("--json", "summary_json", type=FILE, metavar="PATH", help="Also write the summary as JSON."),
]


def _with_options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_with_options
@click.option(
    "--scripted", type=FILE, metavar="SCRIPT", help="Answer from a script instead of a model; needs no model key."
)
def run(scripted: Path | None, **options: Any) -> None:
    """Run a gate: fetch its dataset, try its items, hold them to the threshold.

    Which --agent-model: claude-opus-5 to calibrate new cases (what it can't do, the case or the server is to blame
    for), then down the ladder over claude-sonnet-5 to claude-haiku-4-5, the most sensitive probe.

    Exit codes: 0 the threshold is met; 1 it is not, or the run could not be set up; 2 usage; 130 interrupted.
    """
    raise SystemExit(_run(options, scripted))


@click.command()
@_with_options
def demo(**options: Any) -> None:
    """Run the gates on the shipped datasets, with a scripted model and the embedded store. Needs no keys.

    Both gates, unless --gate or --dataset chooses one; takes the options of `twogate run`. Exit code 0: every gate met
    its threshold.
    """
    from evals.errors import TwogateError
    from evals.items import NothingSelectedError, gate_of_dataset
    from evals.shipped import shipped

    options["embedded"] = True
    options["target"] = options["target"] or shipped("twogate.toml")
    only = options["gate"] or (gate_of_dataset(options["dataset"]) if options["dataset"] else None)
    codes: list[int] = []
    nothing: list[str] = []
    for gate in [only] if only else ["pr", "merge"]:
        if codes:
            click.echo()
        try:
            codes.append(_run({**options, "gate": gate}, shipped("fixtures", "scripts", f"{gate}.json"), demo=True))
        except NothingSelectedError as error:
            # --id and --category choose of both gates together
            nothing += error.lines
    if not codes:
        raise TwogateError(nothing)
    raise SystemExit(max(codes))


def _run(options: dict[str, Any], script: Path | None, *, demo: bool = False) -> int:
    from evals.outputs import check_writable, files_read
    from evals.reports.console import ConsoleReporter
    from evals.runs.models import RunRequest
    from evals.runs.run import execute
    from evals.settings import Settings, withhold_secrets

    read = files_read(("the script", script), ("the target's file", options["target"]))
    check_writable({"--json": options["summary_json"]}, read)
    settings = Settings.load().for_demo() if demo else Settings.load()
    withhold_secrets()
    request = RunRequest(script=script, command=tuple(sys.argv[1:]), **options)
    with ConsoleReporter(settings.root) as reporter:
        outcome = execute(request, settings, reporter)
    if outcome.summary.interrupted:
        # Everything is written and closed; what a torn-down event loop left of its threads is not waited for.
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(130)
    return 0 if outcome.met else 1
