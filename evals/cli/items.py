"""``twogate items``: the tools of people who write cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evals.cli.items_exchange import archive, diff, export, import_, push
from evals.cli.items_shared import DATASETS, EMBEDDED, FILE, FILES, OUTPUT, TARGET, find_run, open_access
from evals.shipped import guide

__all__ = ["export", "items"]

if TYPE_CHECKING:
    from evals.authoring.catalog import Catalog
    from evals.authoring.checking import Checked
    from evals.authoring.lint.engine import LintReport
    from evals.authoring.sources import ServerAccess
    from evals.items import Item


_HELP = f"""Write, check and move the cases of a dataset.

FILE is a dataset file: {{"dataset": NAME, "items": [...]}}, or the list of items alone. Without a FILE and
--dataset, the default datasets are read.

\b
See {guide("authoring.md")}
"""


@click.group(help=_HELP)
def items() -> None:
    """The group; its help names a file that is elsewhere in every installation."""


@items.command()
@FILES
@DATASETS
@EMBEDDED
def validate(files: tuple[Path, ...], datasets: tuple[str, ...], embedded: bool) -> None:
    """Check the form of items, as a run does before it spends anything."""
    from evals.errors import TwogateError

    with open_access(embedded) as access:
        problems: list[str] = []
        valid: list[str] = []
        for label, checked in _checked(access, files, datasets):
            found = [*checked.problems, *checked.drafts]
            problems += [f"{label}: {problem}" for problem in found]
            if not found:
                valid.append(f"{label}: {len(checked.items)} items are valid")
    for line in valid:
        click.echo(line)
    if problems:
        raise TwogateError(problems)


@items.command(name="format")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when a file is not formatted.")
def format_(files: tuple[Path, ...], check: bool) -> None:
    """Write dataset files in their one form: sorted by id, keys in a fixed order."""
    from evals.authoring.dataset_file import dataset_text, read_dataset_file, write_text
    from evals.errors import TwogateError

    unformatted: list[str] = []
    for path in files:
        content = read_dataset_file(path, nameless=True)
        if content.problems:
            raise TwogateError(f"{path}: {problem}" for problem in content.problems)
        text = dataset_text(content)
        if text.encode() == path.read_bytes():
            continue
        if check:
            unformatted.append(f"{path}: is not formatted; run twogate items format {path}")
        else:
            write_text(path, text)
            click.echo(f"{path}: formatted")
    if unformatted:
        raise TwogateError(unformatted)


@items.command()
@FILES
@DATASETS
@click.option("--select", multiple=True, metavar="CODES", help="Only these, e.g. TW1,TW203.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these; CODE:ITEM for one item.")
@TARGET
@click.option("--no-target", is_flag=True, help="Leave out the rules that need the live target.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@EMBEDDED
def lint(
    files: tuple[Path, ...],
    datasets: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    target: Path | None,
    no_target: bool,
    as_json: bool,
    embedded: bool,
) -> None:
    """Find items that are valid, but measure something else than they seem to.

    Exit codes: 0 no errors (warnings may be there); 1 errors; 2 usage.
    """
    from evals.authoring.lint.engine import Selection
    from evals.authoring.lint.engine import lint as run_lint
    from evals.authoring.lint.report import lint_json

    if target is not None and no_target:
        raise click.UsageError("--target and --no-target exclude each other")
    try:
        selection = Selection.parse(select, ignore)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with open_access(embedded) as access:
        checked = _checked(access, files, datasets)
    catalog = None if no_target else _catalog([item for _, one in checked for item in one.items], target)
    report = run_lint(checked, catalog, selection)
    if as_json:
        click.echo(lint_json(report), nl=False)
    else:
        _show_lint(report)
    if report.errors:
        raise SystemExit(1)


@items.command()
@FILES
@DATASETS
@click.option("--run", "run_name", metavar="RUN", help="Also what agents called in this run (a name, a path, latest).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="How to print the matrix.",
)
@click.option("--holes", is_flag=True, help="Only rows without a dedicated case (table and markdown).")
@click.option("--fail-under", type=click.FloatRange(0, 100), metavar="PERCENT", help="Exit 1 below this.")
@OUTPUT
@TARGET
@EMBEDDED
def coverage(
    files: tuple[Path, ...],
    datasets: tuple[str, ...],
    run_name: str | None,
    form: str,
    holes: bool,
    fail_under: float | None,
    output: Path | None,
    target: Path | None,
    embedded: bool,
) -> None:
    """Show which tools and parameters of the live target have a case.

    A cell counts as covered when an item whose category is the tool exercises it, or, with --run, when such an
    item's agent called it so.
    """
    from evals.authoring.coverage import coverage as measure
    from evals.errors import TwogateError
    from evals.runs.journal import read_journal

    folder = find_run(run_name)[1] if run_name is not None else None
    with open_access(embedded) as access:
        checked = _checked(access, files, datasets)
    found = [item for label, one in checked for item in one.or_raise(label)]
    trials = read_journal(folder) if folder is not None else None
    matrix = measure(_catalog(found, target), found, run=folder.name if folder else None, trials=trials)
    _emit(_coverage_text(matrix, form, holes), output)
    if fail_under is not None and matrix.percent < fail_under:
        raise TwogateError(f"coverage is {matrix.percent:.1f} %, under the {fail_under:g} % asked for")


for command in (push, archive, export, diff, import_):
    items.add_command(command)


def _checked(access: ServerAccess, files: Sequence[Path], datasets: Sequence[str]) -> list[tuple[str, Checked]]:
    from evals.authoring.checking import check_content
    from evals.authoring.sources import sources

    return [(source.label, check_content(source.content)) for source in sources(access, files, datasets)]


def _catalog(found: Sequence[Item], target: Path | None) -> Catalog:
    from evals.agents.claude_code import BUILTIN_TOOLS
    from evals.authoring.catalog import read_catalog
    from evals.settings import Settings
    from evals.target import load_target

    settings = Settings.load()
    return read_catalog(load_target(settings.root, settings.variables, target), found, BUILTIN_TOOLS)


def _show_lint(report: LintReport) -> None:
    from evals.authoring.lint.report import lint_lines

    for line in lint_lines(report):
        colour = {"error": "red", "warning": "yellow"}.get(line.kind)
        click.echo(click.style(line.text, fg=colour) if colour else line.text)


def _coverage_text(matrix: Any, form: str, holes: bool) -> str:
    from evals.authoring.coverage_report import coverage_json, coverage_markdown, coverage_text

    if form == "json":
        return coverage_json(matrix)
    if form == "markdown":
        return coverage_markdown(matrix, holes_only=holes)
    return coverage_text(matrix, holes_only=holes)


def _emit(text: str, output: Path | None) -> None:
    from evals.authoring.dataset_file import write_text

    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, click.unstyle(text))
