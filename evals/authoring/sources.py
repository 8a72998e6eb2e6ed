"""Where a dataset's content comes from: a file, or a dataset of the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from evals.authoring.dataset_file import DatasetContent, read_dataset_file
from evals.authoring.stored import StoredItem
from evals.errors import TwogateError
from evals.items import DEFAULT_DATASETS
from evals.settings import Settings

if TYPE_CHECKING:
    from evals.recording.dataset_items import DatasetWriter


@dataclass(frozen=True)
class Source:
    """A dataset and the name people know it by: the file's path, or the dataset's name."""

    label: str
    content: DatasetContent
    stored: bool = False
    """It came from the server, so its archived items are not in it: they can't be listed."""


class ServerAccess:
    """The server of the settings, reached on first use and let go at the end of the ``with`` block."""

    def __init__(self, settings: Settings, *, embedded: bool = False) -> None:
        self._settings = settings
        self._embedded = embedded
        self._stack = ExitStack()
        self._writer: DatasetWriter | None = None

    def __enter__(self) -> ServerAccess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def writer(self) -> DatasetWriter:
        """Raises TwogateError when the settings name a server by half."""
        if self._writer is None:
            from evals.recording.client import open_recorder
            from evals.recording.dataset_items import DatasetWriter
            from evals.recording.server import open_server

            # Not refreshed: what a push would change is told before it is changed, and by a dry run not at all.
            server = self._stack.enter_context(open_server(self._settings, embedded=self._embedded, refresh=False))
            self._writer = DatasetWriter(self._stack.enter_context(open_recorder(server)))
        return self._writer


def dataset_source(access: ServerAccess, name: str) -> Source:
    """A dataset's active items. Raises TwogateError when there is no such dataset."""
    found = find_dataset(access, name)
    if found is None:
        raise TwogateError(
            f"there is no dataset {name!r} in {access.writer.where}; push a file into it, or name another"
        )
    return found


def file_source(path: Path, name: str | None = None) -> Source:
    """A dataset file, as `read_dataset_file` reads it."""
    return Source(str(path), read_dataset_file(path, name))


def sources(access: ServerAccess, files: Sequence[Path], datasets: Sequence[str]) -> list[Source]:
    """The files and datasets asked for; when none is, the default datasets that exist.

    One dataset beside plain lists of items says which they are for, and is not read itself. Without any, a list is
    taken to be for the default dataset of the gate its ids name. Raises TwogateError with the problems of all.
    """
    if not files and not datasets:
        found = [one for name in DEFAULT_DATASETS.values() if (one := find_dataset(access, name)) is not None]
        if not found:
            raise TwogateError(
                f"{access.writer.where} has neither {' nor '.join(DEFAULT_DATASETS.values())}; name a FILE or --dataset"
            )
        return found
    loaded: list[Source] = []
    problems: list[str] = []
    lists = False
    for path in files:
        try:
            content = read_dataset_file(path, nameless=True)
            lists = lists or not content.name
            loaded.append(Source(str(path), content if content.name else _named(content, str(path), datasets)))
        except TwogateError as error:
            problems += error.lines
    for name in () if lists and len(datasets) == 1 else datasets:
        try:
            loaded.append(dataset_source(access, name))
        except TwogateError as error:
            problems += error.lines
    if problems:
        raise TwogateError(problems)
    return loaded


def with_archived(access: ServerAccess, source: Source, ids: Iterable[str]) -> Source:
    """A dataset of the server with those of the items that it holds archived; a file as it is."""
    if not source.stored:
        return source
    known = {item.id for item in source.content.items}
    records = [access.writer.item(identifier) for identifier in dict.fromkeys(ids) if identifier not in known]
    found = [StoredItem.of(record) for record in records if record and record.dataset == source.content.name]
    return replace(source, content=replace(source.content, items=(*source.content.items, *found)))


def _named(content: DatasetContent, label: str, datasets: Sequence[str]) -> DatasetContent:
    """A plain list of items with the name of the dataset it is for."""
    if len(datasets) > 1:
        raise TwogateError(f"{label}: is a plain list of items; say by one --dataset which dataset they are for")
    if datasets:
        return replace(content, name=datasets[0])
    gates = [gate for gate in DEFAULT_DATASETS if any(item.id.startswith(f"{gate}/") for item in content.items)]
    if len(gates) > 1:
        raise TwogateError(
            f"{label}: is a plain list of items of both gates (ids merge/… and pr/…), but a dataset belongs to one; "
            "make two files of it"
        )
    return replace(content, name=DEFAULT_DATASETS[gates[0]]) if gates else content


def named_source(access: ServerAccess, name: str) -> Source:
    """A file or a dataset by one name: a path that exists or ends in .json is a file, all else a dataset."""
    path = Path(name)
    if path.is_file() or path.suffix == ".json":
        return Source(name, read_dataset_file(path, nameless=True))
    return dataset_source(access, name)


def find_dataset(access: ServerAccess, name: str) -> Source | None:
    """A dataset's active items; None when there is no such dataset."""
    found = access.writer.dataset(name)
    if found is None:
        return None
    items = tuple(StoredItem.of(record) for record in access.writer.active_items(name))
    content = DatasetContent(name, items, description=found.description, metadata=found.metadata)
    return Source(f"dataset {name}", content, stored=True)
