"""The commands of ``twogate items`` that move cases: between files, datasets and what a team has already."""

from __future__ import annotations

from pathlib import Path

import click

from evals.cli.items_shared import (
    DATASET,
    DRY_RUN,
    EMBEDDED,
    FILE,
    OUTPUT,
    find_run,
    open_access,
    raise_problems,
    show_changes,
)
from evals.errors import TwogateError


@click.command()
@click.argument("file", type=FILE)
@DATASET
@DRY_RUN
@EMBEDDED
def push(file: Path, dataset: str | None, dry_run: bool, embedded: bool) -> None:
    """Bring a file's items into its dataset: show what differs, send only that, read it back.

    Items the file does not have stay as they are; retire them by twogate items archive.
    """
    from evals.authoring.push import plan_push, send
    from evals.authoring.sources import file_source

    source = file_source(file, dataset)
    with open_access(embedded) as access:
        plan = plan_push(access.writer, source.content, source.label)
        show_changes(plan.lines())
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


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@DRY_RUN
@EMBEDDED
def archive(ids: tuple[str, ...], dry_run: bool, embedded: bool) -> None:
    """Retire items: runs no longer see them, their results stay. Nothing is ever deleted."""
    from evals.authoring.push import archive as retire

    with open_access(embedded) as access:
        for line in retire(access.writer, ids, dry_run=dry_run):
            click.echo(line)


@click.command()
@click.option("--dataset", metavar="NAME", help="The dataset.  [default: the pr gate's]")
@OUTPUT
@click.option("--keep-archived", is_flag=True, help="Keep the archived items that the previous snapshot has.")
@click.option("--previous", type=FILE, metavar="FILE", help="The previous snapshot.  [default: the --output file]")
@EMBEDDED
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
    with open_access(embedded) as access:
        snapshot = export_dataset(access, name, known)
    for note in snapshot.notes:
        click.echo(f"warning: {note}", err=True)
    if output is None:
        click.echo(snapshot.text, nl=False)
        return
    _check_replaceable(output, name)
    write_text(output, snapshot.text)
    click.echo(f"{output}: {snapshot.items} items of {name}, {snapshot.archived} of them archived")


def _check_replaceable(path: Path, name: str) -> None:
    """Raises TwogateError when the file holds anything but an earlier state of the dataset."""
    from evals.authoring.dataset_file import read_dataset_file

    if not path.is_file() or path.stat().st_size == 0:
        return
    fix = "name another file, or remove this one first"
    try:
        there = read_dataset_file(path, nameless=True)
    except TwogateError:
        there = None
    if there is None or there.problems:
        raise TwogateError(f"{path}: is there and is no dataset file; {fix}")
    if there.name not in ("", name):
        raise TwogateError(f"{path}: holds the dataset {there.name}, not {name}; {fix}")


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@EMBEDDED
def diff(before: str, after: str, embedded: bool) -> None:
    """Show what differs between A and B, each a file or a dataset's name.

    Exit codes: 0 no difference; 1 some.
    """
    from evals.authoring.changes import difference_lines, differences
    from evals.authoring.sources import named_source, with_archived

    with open_access(embedded) as access:
        old, new = named_source(access, before), named_source(access, after)
        for source in (old, new):
            raise_problems(source.label, source.content.problems)
        old, new = (
            with_archived(access, old, [item.id for item in new.content.items]),
            with_archived(access, new, [item.id for item in old.content.items]),
        )
    found = differences(old.content.items, new.content.items)
    show_changes(difference_lines(found))
    if found:
        raise SystemExit(1)
    click.echo(f"no difference between {old.label} and {new.label}")


@click.command(name="import")
@click.argument("source", required=False, type=FILE, metavar="[SOURCE]")
@click.option("--from-run", "run_name", metavar="RUN", help="The failures of a run (a name, a path, latest).")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="The new file; never overwritten.")
@click.option("--gate", type=click.Choice(["pr", "merge"]), help="Which kind of items.  [default: pr; XML merge]")
@click.option("--category", metavar="NAME", help="The category of items from XML.  [default: qa]")
@DATASET
@EMBEDDED
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
        from evals.authoring.sources import find_dataset
        from evals.runs.journal import read_journal
        from evals.runs.reading import read_record

        settings, folder = find_run(run_name)
        record, trials = read_record(folder), list(read_journal(folder))
        with open_access(embedded, settings) as access:
            found = find_dataset(access, record.dataset)
        drafts = drafts_from_run(record, trials, None if found is None else found.content.items, dataset)
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
