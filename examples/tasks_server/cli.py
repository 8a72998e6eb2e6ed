"""The command line: which transports to serve, over which database."""

from __future__ import annotations

import gc
import os
import signal
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from evals.embedded.serving import LoopbackServer
from evals.errors import TwogateError
from examples.tasks_server.database import Database, DatabaseError
from examples.tasks_server.errors import TasksError
from examples.tasks_server.faults import Fault, FaultyApp, parse_fault
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.seed import BUILT_IN, SeedError, plant, read_seed
from examples.tasks_server.tasks import TaskService

if TYPE_CHECKING:
    from examples.tasks_server.mcp_app import TasksMCP

FAMILIES = ("tasks", "schedules")
TOKEN_VARIABLE = "TASKS_API_TOKEN"  # noqa: S105


def _families(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    unknown = [name for name in names if name not in FAMILIES]
    if unknown or not names:
        raise click.BadParameter(
            f"{', '.join(unknown) or 'nothing'} is no family; use {' or '.join(FAMILIES)}, separated by commas"
        )
    return names


def _faults(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[Fault]:
    try:
        return [parse_fault(value) for value in values]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    help="SQLite file, created when missing; several servers may share it. Without it the state is in memory, "
    "private, and gone at exit.",
)
@click.option(
    "--tools",
    "families",
    default=",".join(FAMILIES),
    show_default=True,
    callback=_families,
    help="Families of MCP tools to offer, separated by commas.",
)
@click.option("--read-only", is_flag=True, help="Offer only what changes nothing.")
@click.option("--stdio", is_flag=True, help="Serve MCP over stdio (the default when nothing else is served).")
@click.option("--http", type=click.IntRange(0, 65535), help="Serve MCP over streamable HTTP; 0 takes a free port.")
@click.option("--rest", type=click.IntRange(0, 65535), help="Serve the REST API; 0 takes a free port.")
@click.option(
    "--seed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=BUILT_IN,
    help="JSON file with permanent examples, instead of the built-in ones.",
)
@click.option("--no-seed", is_flag=True, help="Start without examples.")
@click.option(
    "--flaky",
    "faults",
    multiple=True,
    metavar="STATUS:COUNT[:RETRY_AFTER]",
    callback=_faults,
    help="Answer the first REST requests with this status, such as 429:3; repeatable.",
)
def main(
    db: Path | None,
    families: tuple[str, ...],
    read_only: bool,
    stdio: bool,
    http: int | None,
    rest: int | None,
    seed: Path,
    no_seed: bool,
    faults: list[Fault],
) -> None:
    """Serve saved tasks and their schedules, over MCP and as a REST API, on this machine alone.

    The REST API asks for a bearer token when the variable TASKS_API_TOKEN has one.
    """
    if faults and rest is None:
        raise click.UsageError("--flaky is about the REST API: add --rest PORT")
    stdio = stdio or (http is None and rest is None)
    with ExitStack() as stack:
        try:
            database = stack.enter_context(closing(Database(db)))
            if not no_seed:
                plant(database, read_seed(seed))
            tasks, schedules = TaskService(database), ScheduleService(database)
            if rest is not None:
                _serve_rest(stack, tasks, schedules, rest, faults, read_only=read_only)
            if http is not None:
                _serve_http(stack, tasks, schedules, http, families, read_only=read_only)
        except (SeedError, TwogateError) as error:
            _fail(error.lines)
        except (DatabaseError, TasksError) as error:
            _fail([str(error)])
        if stdio:
            _mcp(tasks, schedules, families, read_only=read_only).run("stdio")
        else:
            _wait_for_signal()


def _mcp(tasks: TaskService, schedules: ScheduleService, families: tuple[str, ...], *, read_only: bool) -> TasksMCP:
    # Each trial starts a server, and nearly all of its start is importing the SDK, whose many model classes make the
    # collector walk everything again and again for nothing: a tenth of it.
    gc.disable()
    from examples.tasks_server.mcp_app import build_mcp

    app = build_mcp(tasks, schedules, families, read_only=read_only)
    gc.freeze()
    gc.enable()
    return app


def _serve_rest(
    stack: ExitStack,
    tasks: TaskService,
    schedules: ScheduleService,
    port: int,
    faults: list[Fault],
    *,
    read_only: bool,
) -> None:
    from examples.tasks_server.rest import build_rest

    app = build_rest(tasks, schedules, token=os.environ.get(TOKEN_VARIABLE, "").strip() or None, read_only=read_only)
    server = stack.enter_context(LoopbackServer(FaultyApp(app, faults) if faults else app, port=port))
    # stdout may be the MCP transport.
    click.echo(f"REST API on {server.url}/v1", err=True)


def _serve_http(
    stack: ExitStack,
    tasks: TaskService,
    schedules: ScheduleService,
    port: int,
    families: tuple[str, ...],
    *,
    read_only: bool,
) -> None:
    app = _mcp(tasks, schedules, families, read_only=read_only).streamable_http_app()
    server = stack.enter_context(LoopbackServer(app, port=port))
    click.echo(f"MCP on {server.url}/mcp", err=True)


def _wait_for_signal() -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()


def _fail(lines: list[str]) -> NoReturn:
    for line in lines:
        click.echo(f"error: {line}", err=True)
    raise SystemExit(1)
