"""What the commands of ``twogate items`` share: options, the server, how changes are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evals.authoring.sources import ServerAccess
    from evals.settings import Settings

FILE = click.Path(path_type=Path, dir_okay=False)
FILES = click.argument("files", nargs=-1, type=FILE, metavar="[FILE]...")
DATASETS = click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    help="A dataset; repeatable. One beside FILEs that are lists of items names theirs.",
)
DATASET = click.option("--dataset", metavar="NAME", help="The dataset, instead of the file's own.")
EMBEDDED = click.option("--embedded", is_flag=True, help="Use the embedded store, whatever LANGFUSE_* say.")
TARGET = click.option("--target", type=FILE, help="The target's file.  [default: twogate.toml, else .mcp.json]")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
OUTPUT = click.option("-o", "--output", type=FILE, metavar="FILE", help="Write here instead of standard output.")


def open_access(embedded: bool, settings: Settings | None = None) -> ServerAccess:
    """settings: those of `find_run`, whose server holds the run's dataset."""
    from evals.authoring.sources import ServerAccess
    from evals.settings import Settings

    settings = settings or Settings.load()
    # a demo is recorded in a store of its own, whatever the environment names
    return ServerAccess(settings, embedded=embedded or settings.demo)


def find_run(name: str) -> tuple[Settings, Path]:
    """The folder of a run, and the settings whose server holds its dataset."""
    from evals.errors import TwogateError
    from evals.runs.reading import locate_run
    from evals.settings import Settings

    settings, folder = locate_run(Settings.load(), name)
    if folder is None:
        raise TwogateError(f"there is no run {name!r} in .twogate/runs; name one that is there, or its folder")
    demo = replace(settings, demo=True)
    return (demo if demo.state in folder.resolve().parents else settings), folder


def show_changes(lines: Iterable[str]) -> None:
    colours = {"+": "green", "-": "red", "~": "yellow"}
    for line in lines:
        colour = colours.get(line.lstrip()[:1]) if line.startswith(("+", "-", "~", "      ")) else None
        click.echo(click.style(line, fg=colour) if colour else line)


def raise_problems(label: str, problems: Sequence[Any]) -> None:
    from evals.errors import TwogateError

    if problems:
        raise TwogateError(f"{label}: {problem}" for problem in problems)
