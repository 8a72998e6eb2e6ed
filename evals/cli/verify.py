"""``twogate verify``: hold a workspace to a task."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys

import click

from evals.shipped import guide


@click.command(epilog=f"\b\nThe report, key by key: {guide('verifier.md')}")
@click.argument("task", type=click.Path(), metavar="TASK.json")
@click.argument("workspace", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON (its keys: see below).")
@click.option(
    "--sandbox",
    type=click.Choice(["none", "bwrap"]),
    default="none",
    show_default=True,
    help="How the task's command is isolated. With none, verify only tasks and code you trust.",
)
@click.option(
    "--pass-env", multiple=True, metavar="NAME", help="Pass this variable to the command; repeatable. None by default."
)
@click.pass_context
def verify(
    context: click.Context,
    task: str,
    workspace: str,
    as_json: bool,
    sandbox: str,
    pass_env: tuple[str, ...],
) -> None:
    """Hold WORKSPACE to TASK.json: its files, its patterns, and its command, run in fresh copies.

    WORKSPACE itself is only read. Exit codes: 0 passed, 1 not passed or could not be verified, 2 usage.
    """
    from evals.workspace import Options, SafeWorkspace, load_task
    from evals.workspace import verify as run_verification
    from evals.workspace.verifier import passed_variables

    options = Options(
        sandbox="bwrap" if sandbox == "bwrap" else "none", environment=passed_variables(pass_env, os.environ)
    )
    # A CI job that is cancelled sends SIGTERM: end as Ctrl-C does, with the command killed and the copies removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    loaded = load_task(task)
    with SafeWorkspace(workspace) as opened:
        report = run_verification(loaded, opened, options)
    _write(report.to_json() if as_json else report.to_text())
    context.exit(0 if report.passed else 1)


def _write(report: str) -> None:
    """Print the report, whatever characters standard output takes. A reader that has gone away is click's to handle."""
    from evals.errors import TwogateError

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        click.echo(report, nl=False)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        # What is still in the buffer would be tried once more, and fail, when the interpreter ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise TwogateError(f"standard output: the report cannot be written: {error.strerror}") from None
