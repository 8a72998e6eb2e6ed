"""A dataset as a file that changes only where the dataset does. For people and git; no run ever reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evals.authoring.dataset_file import DatasetContent, dataset_text
from evals.authoring.sources import ServerAccess, dataset_source
from evals.authoring.stored import StoredItem


@dataclass(frozen=True)
class Snapshot:
    """The text of the file and what is worth a word beside it."""

    text: str
    items: int
    archived: int
    notes: tuple[str, ...]


def export_dataset(access: ServerAccess, name: str, previous: DatasetContent | None = None) -> Snapshot:
    """The active items of a dataset, and those archived ones that a previous snapshot knows.

    previous: archived items cannot be listed, only fetched by id, so their ids come from here.
    """
    content = dataset_source(access, name).content
    active = {item.id for item in content.items}
    kept: list[StoredItem] = []
    notes: list[str] = []
    for item in previous.items if previous else ():
        if item.id in active:
            continue
        record = access.writer.item(item.id)
        if record is None:
            notes.append(f"{item.id}: stood in the previous snapshot and is deleted; it is left out")
        elif record.dataset != name:
            notes.append(f"{item.id}: belongs to the dataset {record.dataset}; it is left out")
        else:
            kept.append(StoredItem.of(record))
    whole = replace(content, items=(*content.items, *kept))
    archived = sum(item.archived for item in whole.items)
    return Snapshot(dataset_text(whole), len(whole.items), archived, tuple(notes))
