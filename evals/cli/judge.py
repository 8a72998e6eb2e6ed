"""``twogate judge``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from evals.cli.types import FILE, Share


@click.group()
def judge() -> None:
    """Check the judge against labelled conversations."""


@judge.command()
@click.argument("file", type=FILE)
@click.option(
    "--judge-model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="The judge's model; repeated, a panel that decides by majority.  [default: deepseek/deepseek-v4-flash; "
    "with --claude-judge claude-sonnet-5]",
)
@click.option("--claude-judge", is_flag=True, help="Judge by Claude on the Agent SDK instead of OpenRouter.")
@click.option("--subscription", is_flag=True, help="With --claude-judge: use the local Claude login, no key.")
@click.option("--scripted", type=FILE, metavar="SCRIPT", help="Answer from a script instead of a model; needs no key.")
@click.option(
    "--concurrency", type=click.IntRange(1), default=8, show_default=True, help="Judgements at the same time."
)
@click.option("--json", "json_path", type=FILE, metavar="PATH", help="Also write the report as JSON.")
@click.option("--min-agreement", type=Share(), metavar="SHARE", help="Fail below this share of agreement, e.g. 0.9.")
def check(
    file: Path,
    models: tuple[str, ...],
    claude_judge: bool,
    subscription: bool,
    scripted: Path | None,
    concurrency: int,
    json_path: Path | None,
    min_agreement: Fraction | None,
) -> None:
    """Run the judge over the labelled conversations of FILE and say how far it agrees with their labels.

    Prints each disagreement with the judge's reason, the confusion table, the agreement and Cohen's kappa.
    fixtures/judge/conversations.json is a file to begin with; add conversations of your own runs to it.

    Exit codes: 0 every conversation was judged and --min-agreement is reached; 1 not, or something could not be set
    up; 2 usage.
    """
    import asyncio
    from contextlib import ExitStack

    from evals.errors import TwogateError
    from evals.judges.check import Checked, check_judge, report
    from evals.judges.choice import JudgeChoice, ScriptedUrls, make_judge
    from evals.judges.labelled import load_labelled
    from evals.outputs import check_writable, files_read
    from evals.reports.judge_check import closing_lines, judge_line, passed, progress_line
    from evals.settings import Settings, withhold_secrets

    if subscription and not claude_judge:
        raise click.UsageError("--subscription goes with --claude-judge")
    choice = JudgeChoice(models=models, claude=claude_judge, subscription=subscription)
    settings = Settings.load()
    withhold_secrets()
    problems = choice.problems(settings, scripted=scripted is not None)
    if scripted is None:
        problems = [
            f"{problem}, or answer from a script: --scripted SCRIPT" if "is not set" in problem else problem
            for problem in problems
        ]
    try:
        check_writable({"--json": json_path}, files_read(("the conversations", file), ("the script", scripted)))
    except TwogateError as error:
        problems += error.lines
    try:
        conversations = load_labelled(file)
    except TwogateError as error:
        problems += error.lines
        conversations = ()
    with ExitStack() as stack:
        urls = None
        if scripted is not None:
            from evals.embedded.model import ScriptedModel, load_script
            from evals.recording.server import reach_loopback_directly

            try:
                script = load_script(scripted)
            except TwogateError as error:
                problems += error.lines
            if not problems:
                reach_loopback_directly()
                model = stack.enter_context(ScriptedModel(script))
                urls = ScriptedUrls(model.base_url, model.openai_base_url)
        if problems:
            raise TwogateError(problems)
        name = None if scripted is None else str(scripted)
        click.echo(judge_line(choice.names, name))
        for warning in choice.warnings:
            click.echo(f"warning: {warning}")
        done = 0

        def finished(one: Checked) -> None:
            nonlocal done
            done += 1
            click.echo(progress_line(one, done, len(conversations)))

        results = asyncio.run(
            check_judge(
                make_judge(choice, settings, scripted=urls), conversations, concurrency=concurrency, finished=finished
            )
        )
    found = report(results, file=str(file), models=choice.names, scripted=name)
    if json_path is not None:
        from evals.runs.journal import write_json

        write_json(json_path, found)
    for line in closing_lines(found, min_agreement):
        click.echo(line)
    raise SystemExit(0 if passed(found, min_agreement) else 1)
