"""``twogate items``: the tools of people who write cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evals.authoring.catalog import Catalog
    from evals.authoring.checking import Checked
    from evals.authoring.lint.engine import LintReport
    from evals.authoring.sources import ServerAccess
    from evals.items import Item

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_FILES = click.argument("files", nargs=-1, type=_FILE, metavar="[FILE]...")
_DATASETS = click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="A dataset; repeatable.")
_DATASET = click.option("--dataset", metavar="NAME", help="The dataset, instead of the file's own.")
_EMBEDDED = click.option("--embedded", is_flag=True, help="Use the embedded store, whatever LANGFUSE_* say.")
_TARGET = click.option("--target", type=_FILE, help="The target's file.  [default: twogate.toml, else .mcp.json]")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
_OUTPUT = click.option("-o", "--output", type=_FILE, metavar="FILE", help="Write here instead of standard output.")


@click.group()
def items() -> None:
    """Write, check and move the cases of a dataset.

    FILE is a dataset file: {"dataset": NAME, "items": [...]}, or the list of items alone. Without a FILE and
    --dataset, the default datasets are read. See docs/authoring.md.
    """


@items.command()
@_FILES
@_DATASETS
@_EMBEDDED
def validate(files: tuple[Path, ...], datasets: tuple[str, ...], embedded: bool) -> None:
    """Check the form of items, as a run does before it spends anything."""
    from evals.errors import TwogateError

    with _access(embedded) as access:
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
@click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when a file is not formatted.")
def format_(files: tuple[Path, ...], check: bool) -> None:
    """Write dataset files in their one form: sorted by id, keys in a fixed order."""
    from evals.authoring.dataset_file import dataset_text, read_dataset_file, write_text
    from evals.errors import TwogateError

    unformatted: list[str] = []
    for path in files:
        content = read_dataset_file(path)
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
@_FILES
@_DATASETS
@click.option("--select", multiple=True, metavar="CODES", help="Only these, e.g. TW1,TW203.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these; CODE:ITEM for one item.")
@_TARGET
@click.option("--no-target", is_flag=True, help="Leave out the rules that need the live target.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@_EMBEDDED
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
    with _access(embedded) as access:
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
@_FILES
@_DATASETS
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
@_OUTPUT
@_TARGET
@_EMBEDDED
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

    folder = _run_folder(run_name) if run_name is not None else None
    with _access(embedded) as access:
        checked = _checked(access, files, datasets)
    found = [item for label, one in checked for item in one.or_raise(label)]
    trials = read_journal(folder) if folder is not None else None
    matrix = measure(_catalog(found, target), found, run=folder.name if folder else None, trials=trials)
    _emit(_coverage_text(matrix, form, holes), output)
    if fail_under is not None and matrix.percent < fail_under:
        raise TwogateError(f"coverage is {matrix.percent:.1f} %, under the {fail_under:g} % asked for")


@items.command()
@click.argument("file", type=_FILE)
@_DATASET
@_DRY_RUN
@_EMBEDDED
def push(file: Path, dataset: str | None, dry_run: bool, embedded: bool) -> None:
    """Bring a file's items into its dataset: show what differs, send only that, read it back.

    Items the file does not have stay as they are; retire them by twogate items archive.
    """
    from evals.authoring.push import plan_push, send
    from evals.authoring.sources import file_source

    source = file_source(file, dataset)
    with _access(embedded) as access:
        plan = plan_push(access.writer, source.content, source.label)
        _show_changes(plan.lines())
        for note in plan.notes:
            click.echo(f"warning: {note}", err=True)
        if plan.left_alone:
            click.echo(
                f"{len(plan.left_alone)} active items of {plan.dataset} are not in {source.label} and stay: "
                f"{', '.join(plan.left_alone)}"
            )
        if dry_run:
            click.echo(f"{plan.summary()}; dry run, nothing is sent")
            return
        if plan.empty:
            click.echo(f"{plan.summary()}; nothing to send")
            return
        send(access.writer, plan, source.content)
        click.echo(f"{plan.summary()}; sent and read back")


@items.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_DRY_RUN
@_EMBEDDED
def archive(ids: tuple[str, ...], dry_run: bool, embedded: bool) -> None:
    """Retire items: runs no longer see them, their results stay. Nothing is ever deleted."""
    from evals.authoring.push import archive as retire

    with _access(embedded) as access:
        for line in retire(access.writer, ids, dry_run=dry_run):
            click.echo(line)


@items.command()
@click.option("--dataset", metavar="NAME", help="The dataset.  [default: the pr gate's]")
@_OUTPUT
@click.option("--keep-archived", is_flag=True, help="Keep the archived items that the previous snapshot has.")
@click.option("--previous", type=_FILE, metavar="FILE", help="The previous snapshot.  [default: the --output file]")
@_EMBEDDED
def export(
    dataset: str | None, output: Path | None, keep_archived: bool, previous: Path | None, embedded: bool
) -> None:
    """Write a dataset as a file, the same bytes for the same items. No run ever reads it.

    See what changed since a file was committed:
    twogate items export --dataset NAME | git diff --no-index FILE -
    """
    from evals.authoring.dataset_file import read_dataset_file, write_text
    from evals.authoring.export import export_dataset
    from evals.items import DEFAULT_DATASETS

    before = previous or output
    if keep_archived and before is None:
        raise click.UsageError("--keep-archived takes ids from the previous snapshot: add --previous FILE or -o FILE")
    if previous is not None and not keep_archived:
        raise click.UsageError("--previous is for --keep-archived; add it")
    name = dataset or DEFAULT_DATASETS["pr"]
    # the first snapshot has none before it
    known = read_dataset_file(before, name) if keep_archived and before and (previous or before.exists()) else None
    with _access(embedded) as access:
        snapshot = export_dataset(access, name, known)
    for note in snapshot.notes:
        click.echo(f"warning: {note}", err=True)
    if output is None:
        click.echo(snapshot.text, nl=False)
        return
    write_text(output, snapshot.text)
    click.echo(f"{output}: {snapshot.items} items of {name}, {snapshot.archived} of them archived")


@items.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@_EMBEDDED
def diff(before: str, after: str, embedded: bool) -> None:
    """Show what differs between A and B, each a file or a dataset's name.

    Exit codes: 0 no difference; 1 some.
    """
    from evals.authoring.changes import difference_lines, differences
    from evals.authoring.sources import named_source

    with _access(embedded) as access:
        old, new = named_source(access, before), named_source(access, after)
    for source in (old, new):
        _raise_problems(source.label, source.content.problems)
    found = differences(old.content.items, new.content.items)
    _show_changes(difference_lines(found))
    if found:
        raise SystemExit(1)
    click.echo(f"no difference between {old.label} and {new.label}")


@items.command(name="import")
@click.argument("source", required=False, type=_FILE, metavar="[SOURCE]")
@click.option("--from-run", "run_name", metavar="RUN", help="The failures of a run (a name, a path, latest).")
@click.option("-o", "--output", type=_FILE, required=True, metavar="FILE", help="The new file; never overwritten.")
@click.option("--gate", type=click.Choice(["pr", "merge"]), help="Which kind of items.  [default: pr; XML merge]")
@click.option("--category", metavar="NAME", help="The category of items from XML.  [default: qa]")
@_DATASET
@_EMBEDDED
def import_(
    source: Path | None,
    run_name: str | None,
    output: Path,
    gate: str | None,
    category: str | None,
    dataset: str | None,
    embedded: bool,
) -> None:
    """Draft items from a test-case list (.json), a question file (.xml), or the failures of a run.

    Drafts are written to a file to be edited, and never pushed by themselves.
    """
    from evals.authoring.checking import check_content
    from evals.authoring.dataset_file import dataset_text, write_text
    from evals.authoring.importing import drafts_from_qa, drafts_from_run, drafts_from_test_cases
    from evals.errors import TwogateError

    if (source is None) == (run_name is None):
        raise click.UsageError("name either a SOURCE file or --from-run RUN")
    is_xml = source is not None and source.suffix.casefold() == ".xml"
    if is_xml and gate == "pr":
        raise click.UsageError("questions have answers but no expected tools: they become agent items, --gate merge")
    if category is not None and not is_xml:
        raise click.UsageError("--category is for XML; test cases and runs have categories of their own")
    if run_name is not None and gate is not None:
        raise click.UsageError("--gate is the run's own; leave it out")
    if output.exists():
        raise TwogateError(f"{output}: exists already; name a new file")
    if run_name is not None:
        from evals.authoring.sources import dataset_source
        from evals.runs.journal import read_journal
        from evals.runs.reading import read_record

        folder = _run_folder(run_name)
        record, trials = read_record(folder), list(read_journal(folder))
        with _access(embedded) as access:
            originals = dataset_source(access, record.dataset).content.items
        drafts = drafts_from_run(record, trials, originals, dataset)
    elif is_xml:
        assert source is not None
        drafts = drafts_from_qa(source, category or "qa", dataset)
    else:
        assert source is not None
        drafts = drafts_from_test_cases(source, "merge" if gate == "merge" else "pr", dataset)
    write_text(output, dataset_text(drafts.content))
    checked = check_content(drafts.content)
    unfinished = {problem.item for problem in (*checked.drafts, *checked.problems)}
    for note in drafts.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(
        f"{output}: {len(drafts.content.items)} drafts for {drafts.content.name}, {len(unfinished)} to be edited "
        f"before a push; next: twogate items lint {output}"
    )


def _access(embedded: bool) -> ServerAccess:
    from evals.authoring.sources import ServerAccess
    from evals.settings import Settings

    return ServerAccess(Settings.load(), embedded=embedded)


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


def _run_folder(name: str) -> Path:
    from evals.errors import TwogateError
    from evals.runs.reading import locate_run
    from evals.settings import Settings

    _, folder = locate_run(Settings.load(), name)
    if folder is None:
        raise TwogateError(f"there is no run {name!r} in .twogate/runs; name one that is there, or its folder")
    return folder


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


def _show_changes(lines: Iterable[str]) -> None:
    colours = {"+": "green", "-": "red", "~": "yellow"}
    for line in lines:
        colour = colours.get(line.lstrip()[:1]) if line.startswith(("+", "-", "~", "      ")) else None
        click.echo(click.style(line, fg=colour) if colour else line)


def _raise_problems(label: str, problems: Sequence[Any]) -> None:
    from evals.errors import TwogateError

    if problems:
        raise TwogateError(f"{label}: {problem}" for problem in problems)
