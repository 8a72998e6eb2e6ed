"""Bringing a file's items into a dataset: the plan first, then only what differs, then a look at what arrived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evals.authoring.changes import FieldChange, ItemDifference, difference, difference_lines
from evals.authoring.checking import check_content
from evals.authoring.dataset_file import DatasetContent
from evals.authoring.stored import StoredItem, lost_when_kept, same_when_kept
from evals.errors import TwogateError
from evals.recording.dataset_items import DatasetWriter, ItemRecord
from evals.scoring.json_equality import json_equal

IDS_ARE_NEVER_FREE = "ids are never free again, not even after archiving or deleting"


@dataclass(frozen=True)
class PushPlan:
    """What a push would do."""

    dataset: str
    where: str
    create: bool
    """The dataset is not there yet."""
    head: tuple[FieldChange, ...]
    """Changes of the dataset's description and metadata."""
    changes: tuple[ItemDifference, ...]
    unchanged: tuple[str, ...]
    left_alone: tuple[str, ...]
    """Active items of the dataset that the file does not have."""
    notes: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.create or self.head or self.changes)

    def lines(self) -> Iterator[str]:
        """The diff, for people."""
        if self.create:
            yield f"+ dataset {self.dataset}: there is none of that name in {self.where}; it is created"
        for change in self.head:
            yield f"~ dataset {self.dataset}: {change.field}: {change.before!r} -> {change.after!r}"
        yield from difference_lines(self.changes)

    def summary(self) -> str:
        new = sum(change.kind == "new" for change in self.changes)
        counts = f"{new} new, {len(self.changes) - new} changed, {len(self.unchanged)} unchanged"
        return f"{counts} in {self.dataset} ({self.where})"


def plan_push(writer: DatasetWriter, content: DatasetContent, label: str) -> PushPlan:
    """Compare a file with the dataset of its name. Nothing is written.

    Raises TwogateError with everything that forbids the push: invalid items, ids of other datasets, changes the
    server cannot take.
    """
    check_content(content).or_raise(label)
    stored = writer.dataset(content.name)
    active = {} if stored is None else {record.id: record for record in writer.active_items(content.name)}
    problems: list[str] = []
    changes: list[ItemDifference] = []
    unchanged: list[str] = []
    for item in sorted(content.items, key=lambda item: item.id):
        record = active.get(item.id) or writer.item(item.id)
        found = _refusals(item, record, content.name)
        problems += found
        if found:
            continue
        change = difference(None if record is None else StoredItem.of(record), item)
        if change is None:
            unchanged.append(item.id)
        else:
            changes.append(change)
    if problems:
        raise TwogateError(f"{label}: {problem}" for problem in problems)
    ids = {item.id for item in content.items}
    before: dict[str, Any] = {} if stored is None else {"description": stored.description, "metadata": stored.metadata}
    after = {"description": content.description, "metadata": content.metadata}
    return PushPlan(
        dataset=content.name,
        where=writer.where,
        create=stored is None,
        head=tuple(
            FieldChange(field, before[field], value)
            for field, value in after.items()
            # "" is how the server clears a description; null and absent keep it
            if value is not None and stored is not None and not json_equal(before[field], value)
        ),
        changes=tuple(changes),
        unchanged=tuple(unchanged),
        left_alone=tuple(sorted(active.keys() - ids)),
        notes=tuple(
            f"{item.id}: {field}: Langfuse does not keep all of it as written (control characters, large numbers)"
            for item in content.items
            for field in lost_when_kept(item)
        ),
    )


def send(writer: DatasetWriter, plan: PushPlan, content: DatasetContent) -> None:
    """Write what the plan says and read each item back.

    Raises TwogateError with every item that was refused or arrived otherwise than sent; the others are written.
    """
    if plan.create or plan.head:
        writer.upsert_dataset(content.name, content.description, content.metadata)
    by_id = {item.id: item for item in content.items}
    problems: list[str] = []
    for change in plan.changes:
        item = by_id[change.id].canonical()
        try:
            # Everything is sent, metadata whole: what is left out would keep its old value.
            writer.upsert_item(
                content.name,
                item.id,
                status=item.status,
                input=item.input,
                expected_output=item.expected_output,
                metadata=item.metadata,
            )
            problems += _arrived(item, writer.item(item.id))
        except TwogateError as error:
            problems += error.lines
    if problems:
        raise TwogateError(problems)


def _arrived(sent: StoredItem, record: ItemRecord | None) -> list[str]:
    if record is None:
        return [f"{sent.id}: was accepted, but cannot be read back; push again"]
    kept = StoredItem.of(record)
    if same_when_kept(sent, kept):
        return []
    change = difference(sent, kept)
    fields = ", ".join(one.field for one in change.fields) if change else "id"
    return [f"{sent.id}: reads back otherwise than it was sent ({fields}); did somebody else write it? push again"]


def _refusals(item: StoredItem, record: ItemRecord | None, dataset: str) -> list[str]:
    if record is None:
        return []
    if record.dataset != dataset:
        state = "archived there" if record.status == "ARCHIVED" else "active there"
        return [
            f"{item.id}: id: belongs to the dataset {record.dataset} ({state}); {IDS_ARE_NEVER_FREE}: "
            "choose a new id here"
        ]
    if record.expected_output is not None and item.expected_output is None and not item.archived:
        return [
            f"{item.id}: expectedOutput: the dataset has one and the file has none; a value cannot be taken away "
            "(absent and null keep it): give the case a new id, push it, and retire the old one by "
            f"twogate items archive {item.id}"
        ]
    return []


def archive(writer: DatasetWriter, ids: Sequence[str], *, dry_run: bool = False) -> Iterator[str]:
    """Retire items; yields one line for each. Runs never see an archived item, its past results stay.

    Raises TwogateError, before anything is written, when an id is unknown.
    """
    records = {identifier: writer.item(identifier) for identifier in dict.fromkeys(ids)}
    unknown = [identifier for identifier, record in records.items() if record is None]
    if unknown:
        raise TwogateError(f"{identifier}: there is no such item in {writer.where}" for identifier in unknown)
    for identifier, record in records.items():
        assert record is not None
        if record.status == "ARCHIVED":
            yield f"{identifier}: is archived already ({record.dataset})"
            continue
        if dry_run:
            yield f"{identifier}: would be archived ({record.dataset})"
            continue
        writer.upsert_item(record.dataset, identifier, status="ARCHIVED")
        after = writer.item(identifier)
        if after is None or after.status != "ARCHIVED":
            raise TwogateError(f"{identifier}: is not archived after all; try again")
        yield f"{identifier}: archived ({record.dataset}); {IDS_ARE_NEVER_FREE}"
