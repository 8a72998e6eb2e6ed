"""Shipped datasets: loaded into a store that does not have them, and kept up to date where its user left them alone.

The store remembers what it wrote from which file. An item whose content is no longer what was written is its user's,
and so are an item that a user added or deleted and a dataset that no file was ever loaded into.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evals.embedded.langfuse import errors, jsonvalues
from evals.embedded.langfuse.database import Database
from evals.embedded.langfuse.dataset_files import DatasetFile, FileItem, parse_dataset_file, read_bytes
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.datasets import Dataset, DatasetChange, Item, ItemChange
from evals.embedded.langfuse.jsonvalues import KEEP
from evals.errors import TwogateError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _File:
    path: Path
    digest: str
    content: DatasetFile


def load_shipped(database: Database, store: DatasetStore, folder: Path, *, refresh: bool = True) -> list[str]:
    """Bring the store up to date with the dataset files of a folder; the names of the datasets that were behind.

    - A dataset the store does not have is loaded. One that exists, but not from a file, is left as it is.
    - In one loaded earlier, an item that is new in the file is added, one that is different there is updated, and
      one that is gone from it is archived; what the user changed, added, archived or deleted is left as it is.
    - Nothing is written for what is as the file says: a write is a new version of an item.

    refresh: without it only a dataset that the store does not have is loaded.

    A folder that does not exist holds none. An item that the store refuses (its id is another dataset's) is left
    out with a warning, and a new dataset with it, and both are tried again at the next start. Raises TwogateError
    with the problems of all files; nothing is written then.
    """
    problems: list[str] = []
    files = list(_changed(database, folder, problems))
    if problems:
        raise TwogateError(problems)
    if not refresh:
        files = [file for file in files if store.dataset(file.content.dataset) is None]
    return [file.content.dataset for file in files if _Shipment(database, store, file).bring()]


def _changed(database: Database, folder: Path, problems: list[str]) -> Iterator[_File]:
    """The files that are not the ones last brought in: an unchanged one costs no parsing and no write lock."""
    known = {row["digest"]: row["dataset"] for row in database.rows("SELECT dataset, digest FROM shipped_files")}
    paths: dict[str, Path] = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            data = read_bytes(path)
            digest = hashlib.sha256(data).hexdigest()
            content = None if digest in known else parse_dataset_file(path, data)
        except TwogateError as error:
            problems += error.lines
            continue
        name = known[digest] if content is None else content.dataset
        # Two files of one dataset would undo each other at every start.
        if name in paths:
            problems.append(f"{path}: dataset: {name!r} is also that of {paths[name]}; merge the two files")
        paths[name] = path
        if content is not None:
            yield _File(path, digest, content)


class _Shipment:
    """One file on its way into the store."""

    def __init__(self, database: Database, store: DatasetStore, file: _File) -> None:
        self._database = database
        self._store = store
        self._file = file
        self._name = file.content.dataset
        self._refused = False

    def bring(self) -> bool:
        """Bring the file in, in one transaction; False when the dataset is the user's, or not behind."""
        if self._store.dataset(self._name) is not None and self._last() is None:
            return False
        try:
            with self._database.write():
                dataset, last = self._store.dataset(self._name), self._last()
                if dataset is None:
                    self._load()
                # Only now is it certain that no other process has done it meanwhile.
                elif last is None or last == self._file.digest:
                    return False
                else:
                    self._refresh(dataset)
                # After a refusal the dataset is as no file says, so that every file is looked at again.
                digest = "" if self._refused else self._file.digest
                if digest != last:
                    self._database.execute(
                        "INSERT OR REPLACE INTO shipped_files (dataset, digest) VALUES (?, ?)", (self._name, digest)
                    )
        except errors.ApiError as refusal:
            # An item id that is already another dataset's cannot be freed, and must not keep the store shut.
            _log.warning("%s: not loaded: %s", self._file.path, _said(refusal))
            return False
        return True

    def _last(self) -> str | None:
        """The digest of the file last brought into the dataset; None when none ever was."""
        row = self._database.row("SELECT digest FROM shipped_files WHERE dataset = ?", (self._name,))
        return None if row is None else row["digest"]

    def _load(self) -> None:
        content = self._file.content
        self._store.upsert_dataset(
            DatasetChange(
                self._name,
                KEEP if content.description is None else content.description,
                KEEP if content.metadata is None else jsonvalues.normalise(content.metadata),
            )
        )
        # Lists show the newest first: written backwards, they show the order of the file.
        for item in reversed(content.items):
            self._write(_change(self._name, item))

    def _refresh(self, dataset: Dataset) -> None:
        rows = self._database.rows("SELECT item_id, digest FROM shipped_items WHERE dataset = ?", (self._name,))
        written = {row["item_id"]: row["digest"] for row in rows}
        for item_id in sorted(written.keys() - {item.id for item in self._file.content.items}):
            stored = self._untouched(item_id, written[item_id])
            if stored is not None and stored.status == "ACTIVE":
                self._try_to_write(ItemChange(self._name, item_id, status="ARCHIVED"))
        for item in reversed(self._file.content.items):
            change = _change(self._name, item)
            if item.id not in written:
                # Otherwise the user has, or had, an item of that id here.
                if self._store.owner_id(item.id) != dataset.id:
                    self._try_to_write(change)
            elif _digest(change) != written[item.id] and self._untouched(item.id, written[item.id]) is not None:
                self._try_to_write(change)

    def _untouched(self, item_id: str, digest: str) -> Item | None:
        """The item, if it still is as it was written from a file."""
        stored = self._store.item(item_id)
        return stored if stored is not None and _digest(stored) == digest else None

    def _try_to_write(self, change: ItemChange) -> None:
        try:
            self._write(change)
        except errors.ApiError as refusal:
            self._refused = True
            _log.warning("%s: item %r not brought up to date: %s", self._file.path, change.id, _said(refusal))

    def _write(self, change: ItemChange) -> None:
        item = self._store.upsert_item(change)
        self._database.execute(
            "INSERT OR REPLACE INTO shipped_items (dataset, item_id, digest) VALUES (?, ?, ?)",
            (self._name, item.id, _digest(item)),
        )


def _change(dataset: str, item: FileItem) -> ItemChange:
    """The item of a file, whole: what it does not have is cleared, which no request to the server can do."""
    sent = {"input": item.input, "expectedOutput": item.expected_output, "metadata": item.metadata}
    values = {field: jsonvalues.item_value(sent, field) for field in sent}
    cleared = {field: None if value is KEEP else value for field, value in values.items()}
    return ItemChange(dataset, item.id, cleared["input"], cleared["expectedOutput"], cleared["metadata"], item.status)


def _digest(item: Item | ItemChange) -> str:
    """Of an item's content as it is stored: keys are in one order there, and numbers in one form."""
    content = [item.status, item.input, item.expected_output, item.metadata]
    return hashlib.sha256(jsonvalues.dumps(content).encode()).hexdigest()


def _said(refusal: errors.ApiError) -> str:
    return bytes(refusal.response.body).decode()
