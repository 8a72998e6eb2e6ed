"""``twogate qa``: question-and-answer evaluation of any MCP server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import click

from evals.cli.greedy import GreedyCommand, spread
from evals.cli.types import FILE, SECONDS, Share
from evals.shipped import guide


class _QaGroup(click.Group):
    """``twogate qa FILE …`` is ``twogate qa run FILE …``: a first word that is no subcommand begins a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "FILE [OPTIONS]")
        for name in ("lint", "solve"):
            formatter.write_usage(ctx.command_path, f"{name} FILE [OPTIONS]", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        run_context = click.Context(self.commands["run"], info_name=ctx.info_name, parent=ctx.parent)
        self.commands["run"].format_options(run_context, formatter)
        self.format_commands(ctx, formatter)


class _ServerCommand(GreedyCommand):
    """Where no word is left for the file, a value of --env or --header that can be none of theirs is it.

    It goes before the last value of --args: ``-e A=1 questions.xml -a server.py data.xml``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        words = spread(args, options, file_suffix="\0")  # takes no value for the file
        if "--" not in words:
            stray = [place for place, word in enumerate(words) if self._is_file(word)]
            if len(stray) == 1:
                file = words.pop(stray[0]).partition("=")[2]
                args = [*words, "--", file]
        return super().parse_args(ctx, args)

    def _is_file(self, word: str) -> bool:
        name, _, value = word.partition("=")
        separator = {"--env": "=", "--header": ":"}.get(name)
        return separator is not None and separator not in value and value.lower().endswith(self.file_suffix)


class _Pair(click.ParamType[tuple[str, str]]):
    def __init__(self, kind: Literal["variable", "header"]) -> None:
        self.kind: Literal["variable", "header"] = kind
        self.name = "KEY=VALUE" if kind == "variable" else "'Key: Value'"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        from evals.qa.server import parse_pair

        if isinstance(value, tuple):
            return value
        try:
            return parse_pair(str(value), self.kind)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_SERVER_OPTIONS = [
    click.option(
        "-t",
        "--transport",
        type=click.Choice(["stdio", "sse", "http"]),
        help="How the server is reached.  [default: stdio with --command, http with --url]",
    ),
    click.option("-c", "--command", metavar="COMMAND", help="stdio: the command that starts the server."),
    click.option("-a", "--args", multiple=True, metavar="ARG...", help="stdio: its arguments; -a=--flag for a dash."),
    click.option(
        "-e", "--env", multiple=True, type=_Pair("variable"), metavar="KEY=VALUE...", help="stdio: variables."
    ),
    click.option("-u", "--url", metavar="URL", help="sse and http: the server's address."),
    click.option(
        "-H",
        "--header",
        "headers",
        multiple=True,
        type=_Pair("header"),
        metavar="'KEY: VALUE'...",
        help="sse and http: headers.",
    ),
    click.option(
        "--target",
        type=FILE,
        metavar="PATH",
        help="The target's file instead.  [default: twogate.toml, else .mcp.json]",
    ),
    click.option("-m", "--model", metavar="MODEL", default="claude-sonnet-5", show_default=True, help="What answers."),
    click.option("--id", "id_regex", metavar="REGEX", help="Only pairs whose id (FILE's stem/number) matches."),
    click.option("--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Questions at a time."),
    click.option(
        "--max-turns", type=click.IntRange(1), default=50, show_default=True, help="Answers of the model a question."
    ),
    click.option(
        "--tool-timeout", type=SECONDS, default=60.0, show_default=True, help="Seconds one call of a tool may take."
    ),
    click.option(
        "--trial-timeout", type=SECONDS, default=900.0, show_default=True, help="Seconds one question may take."
    ),
    click.option("--embedded", is_flag=True, help="Record into the embedded store, whatever LANGFUSE_* say."),
    click.option(
        "--scripted",
        "script",
        type=FILE,
        metavar="SCRIPT",
        help="Answer from a script instead of a model; needs no model key.",
    ),
]


def _with_server_options(command: Any) -> Any:
    for option in reversed(_SERVER_OPTIONS):
        command = option(command)
    return command


@click.group(cls=_QaGroup)
def qa() -> None:
    """Put the questions of FILE to a model that has nothing but the tools of an MCP server.

    FILE is XML: <evaluation><qa_pair><question>…</question><answer>…</answer></qa_pair>…</evaluation>. The report is
    printed, or written by --output. Exit codes: 0 the threshold is met; 1 it is not, or the run could not be set up; 2
    usage.
    """


@qa.command("run", cls=_ServerCommand, hidden=True)
@click.argument("file", type=click.Path(path_type=Path))
@_with_server_options
@click.option("-o", "--output", type=FILE, metavar="PATH", help="Write the report here instead of printing it.")
@click.option("--json", "json_path", type=FILE, metavar="PATH", help="Also write the report as JSON.")
@click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, help="Trials of each question.")
@click.option(
    "--pass-threshold",
    "threshold",
    type=Share(),
    default="0.9",
    show_default=True,
    help="The share of requested trials that must be correct.",
)
def run(output: Path | None, json_path: Path | None, **options: Any) -> None:
    """Put the questions of FILE to a model that has nothing but the tools of an MCP server.

    Exit codes: 0 the threshold is met; 1 it is not, or the run could not be set up; 2 usage.
    """
    from evals.outputs import check_writable, print_text, write_text
    from evals.qa.markdown import to_markdown

    check_writable({"--output": output, "--json": json_path}, _files_read(options))
    outcome = _execute(options)
    report = to_markdown(outcome.report)
    problems = [*outcome.unwritten, write_text(outcome.run.folder / "report.md", report)]
    if json_path is not None:
        problems.append(write_text(json_path, outcome.report.model_dump_json(indent=2) + "\n"))
    unwritten = write_text(output, report) if output is not None else None
    problems.append(unwritten)
    if output is None or unwritten is not None:
        problems.append(print_text(report))
    else:
        click.echo(f"report: {output}", err=True)
    _end(outcome.report.met, outcome.report.interrupted, problems)


@qa.command("lint", cls=GreedyCommand, epilog=f"\b\nThe rules: {guide('qa-authoring.md')}")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--ignore", "ignored", multiple=True, metavar="CODE...", help="Leave out findings with these codes.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def lint(file: Path, ignored: tuple[str, ...], as_json: bool) -> None:
    """Check FILE against the rules of good question sets.

    Exit codes: 0 there is no error (warnings may be); 1 there is one; 2 usage.
    """
    from evals.outputs import print_text
    from evals.qa.file import load_qa
    from evals.qa.lint import CODES, findings_json, lint_file

    unknown = [code for code in ignored if code not in CODES]
    if unknown:
        raise click.UsageError(f"--ignore: {', '.join(unknown)} is no code; the codes are {', '.join(CODES)}")
    loaded = load_qa(file)
    findings = [one for one in lint_file(loaded) if one.code not in ignored]
    errors = sum(one.severity == "error" for one in findings)
    if as_json:
        lines = [findings_json(loaded, findings)]
    else:
        counted = f"{errors} errors, {len(findings) - errors} warnings" if findings else "nothing to mend"
        lines = [
            *(f"note: {note}" for note in loaded.notes),
            *(f"{file}: {one}" for one in findings),
            f"{len(loaded.pairs)} pairs: {counted}",
        ]
    _end(errors == 0, False, [print_text("".join(f"{line}\n" for line in lines))])


@qa.command("solve", cls=_ServerCommand)
@click.argument("file", type=click.Path(path_type=Path))
@_with_server_options
@click.option(
    "-n", "--solvers", "iterations", type=click.IntRange(2), default=3, show_default=True, help="Times each is solved."
)
@click.option("-o", "--output", type=FILE, metavar="PATH", help="The new file.  [default: FILE's stem.solved.xml]")
def solve(output: Path | None, **options: Any) -> None:
    """Answer the questions of FILE several times, and propose where the written answer is likely wrong.

    A new file is written, never FILE: it has the answer all solvers agree on in place of another one that was
    written. A pair whose solving called a tool that is not marked read-only is flagged. Exit codes: 0 the file is
    written; 1 it is not, or every trial of a pair ended in an error; 2 usage.
    """
    from evals.outputs import check_writable, new_file_for, print_text, write_new
    from evals.qa.solve import solve_outcome

    path = new_file_for(options["file"], output)
    check_writable({"--output": path})
    # Proposals are held to no threshold.
    outcome = _execute({**options, "threshold": Fraction(0)}, solving=True)
    solved = solve_outcome(outcome)
    problems = [*outcome.unwritten, print_text("".join(f"{line}\n" for line in solved.lines())), *solved.problems]
    if outcome.report.interrupted:
        said = "not written: interrupted"
    elif mistakes := solved.mistakes(path):
        problems += mistakes
        said = "not written: a run could not read it"
    elif (unwritten := write_new(path, solved.source)) is None:
        said = f"written: {path}"
    else:
        spare = outcome.run.folder / "solved.xml"
        problems += [unwritten, write_new(spare, solved.source)]
        said = f"written: {spare}"
    problems.append(print_text(f"{said}\n"))
    _end(True, outcome.report.interrupted, problems)


def _files_read(options: dict[str, Any]) -> list[tuple[str, Path]]:
    """The files that a run reads, or its server does, each with what it is."""
    from evals.outputs import files_read

    return files_read(
        ("the question file", options["file"]),
        ("the script", options["script"]),
        ("the target's file", options["target"]),
        words=options["args"],
    )


def _execute(options: dict[str, Any], *, solving: bool = False) -> Any:
    from rich.console import Console

    from evals.qa.console import SolveReporter
    from evals.qa.run import QaRequest, run_qa
    from evals.qa.server import ServerOptions, shown_command
    from evals.reports.console import ConsoleReporter
    from evals.settings import Settings, withhold_secrets

    server = ServerOptions(
        **{name: options.pop(name) for name in ("transport", "command", "args", "env", "url", "headers")}
    )
    mistakes = server.mistakes(options["target"])
    if mistakes:
        raise click.UsageError("; ".join(mistakes))
    settings = Settings.load()
    withhold_secrets()
    request = QaRequest(server=server, command=shown_command(sys.argv[1:], server), **options)
    # Standard output is the report's.
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with (SolveReporter if solving else ConsoleReporter)(settings.root, console) as reporter:
        return run_qa(request, settings, reporter)


def _end(met: bool, interrupted: bool, problems: Sequence[str | None] = ()) -> None:
    """End the program: what was not written is told, and makes it fail."""
    told = [problem for problem in problems if problem is not None]
    for problem in told:
        click.echo(f"error: {problem}", err=True)
    if interrupted:
        raise SystemExit(130)
    raise SystemExit(0 if met and not told else 1)
