"""The ``twogate`` command. Subcommands are imported when they are called, so that ``--help`` stays quick."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
from io import TextIOWrapper
from typing import Any

import click

from evals import __version__
from evals.errors import TwogateError
from evals.logs import CLIENTS

_INTERRUPTED = 128 + 2  # as a shell tells of SIGINT

# name of the command -> (module, attribute, one line of help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": (
        "evals.cli.run",
        "run",
        "Run a gate: fetch its dataset, try its items, hold them to the threshold.",
    ),
    "demo": (
        "evals.cli.run",
        "demo",
        "Run the gates on shipped datasets with a scripted model; needs no keys.",
    ),
    "init": ("evals.cli.init", "init", "Set up evaluations in a server's own repository."),
    "items": ("evals.cli.items", "items", "Write, check and move the cases of a dataset."),
    "qa": ("evals.cli.qa", "qa", "Put the questions of an XML file to a model with the tools of any MCP server."),
    "show": ("evals.cli.show", "show", "Show a run's trials: query, calls, answers, reason, how to rerun."),
    "sweep": ("evals.cli.sweep", "sweep", "Look for a run's ERROR observations that nothing explains."),
    "probe": ("evals.cli.probe", "probe", "Call a tool of the target directly and show what comes back."),
    "fixtures": ("evals.cli.fixtures", "fixtures", "Reset a product's state between stateful runs."),
    "store": ("evals.cli.store", "store", "Serve the embedded Langfuse-compatible store."),
    "doctor": ("evals.cli.doctor", "doctor", "Check environment, Claude Code, target, Langfuse and judge."),
    "judge": ("evals.cli.judge", "judge", "Check the judge against labelled conversations."),
    "verify": ("evals.cli.verify", "verify", "Verify a repository task in a workspace, deterministically."),
    "serve": ("evals.cli.serve", "serve", "Serve a workspace to agents as an MCP server."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use; their help lines are kept here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="twogate")
def cli() -> None:
    """Know on every pull request whether agents can really use your MCP server.

    Exit codes: 0 the gate (or check) passed; 1 it did not, or something could not be set up; 2 usage; 130 interrupted.
    """


def main() -> None:
    """The ``twogate`` command."""
    try:
        run_command(cli, prog_name="twogate")
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            # One more Ctrl-C while the interpreter winds up would end it by the signal instead.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise


def run_command(command: click.Command, **options: Any) -> None:
    """Run a command as a program's whole work, which ends with an exit code and never with a traceback of its errors.

    A `TwogateError` ends as its lines on standard error and 1, wrong usage with 2, Ctrl-C with 130.

    options: for the command's own call, such as `prog_name`.
    """
    # Closed standard streams are None to Python, which some libraries do not expect.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or a file that cannot hold a character gets its escape; nothing ends for it.
            stream.reconfigure(errors="backslashreplace")
    # The clients of servers and models log, with tracebacks, what a command reports itself.
    for name in CLIENTS:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    try:
        raise SystemExit(command.main(standalone_mode=False, **options))
    except TwogateError as error:
        for line in error.lines:
            click.echo(f"error: {line}", err=True)
        raise SystemExit(1) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except (click.Abort, KeyboardInterrupt) as error:
        ended = isinstance(error.__cause__, EOFError)  # the input ended, nobody pressed Ctrl-C
        click.echo("error: the input ended" if ended else "interrupted", err=True)
        raise SystemExit(1 if ended else _INTERRUPTED) from None
