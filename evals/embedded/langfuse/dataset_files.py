"""Dataset files: a dataset and its items as JSON, shipped with Twogate or exported from a store."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from evals.embedded.langfuse import errors, jsonvalues
from evals.embedded.langfuse.database import Database
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.datasets import DatasetChange, ItemChange
from evals.embedded.langfuse.jsonvalues import KEEP
from evals.errors import TwogateError

_log = logging.getLogger(__name__)

DatasetName = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^/](.*[^/])?$")]


class FileItem(BaseModel):
    """One item of a dataset file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    input: Any
    expected_output: Any = Field(default=None, alias="expectedOutput")
    metadata: Any = None
    status: Literal["ACTIVE", "ARCHIVED"] = "ACTIVE"


class DatasetFile(BaseModel):
    """A dataset file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dataset: DatasetName
    description: str | None = None
    metadata: Any = None
    items: list[FileItem]


@dataclass(frozen=True)
class _Read:
    path: Path
    content: DatasetFile


def load_dataset_file(path: Path) -> DatasetFile:
    """Read a dataset file. Raises TwogateError with every problem, each naming the file and the place."""
    try:
        content = DatasetFile.model_validate(jsonvalues.loads(path.read_bytes()))
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as invalid:
        raise TwogateError(
            [
                f"{path}: {'.'.join(str(part) for part in problem['loc']) or 'file'}: {problem['msg']}"
                for problem in invalid.errors()
            ]
        ) from None
    except ValueError as error:
        raise TwogateError(f"{path}: not valid JSON: {error}") from None
    problems = []
    seen: set[str] = set()
    for position, item in enumerate(content.items):
        if item.id in seen:
            problems.append(f"{path}: items.{position}.id: {item.id!r} is used twice; ids must be unique")
        if item.input in (None, ""):
            problems.append(f"{path}: items.{position}.input: must not be empty")
        seen.add(item.id)
    if problems:
        raise TwogateError(problems)
    return content


def load_shipped(database: Database, store: DatasetStore, folder: Path) -> list[str]:
    """Put every dataset of the folder that the store does not have into it; the names of the new ones.

    A dataset of the same name is left as it is. A folder that does not exist holds none. Raises TwogateError
    with the problems of all files; nothing is written then.
    """
    files: list[_Read] = []
    problems: list[str] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            files.append(_Read(path, load_dataset_file(path)))
        except TwogateError as error:
            problems += error.lines
    if problems:
        raise TwogateError(problems)
    return [read.content.dataset for read in files if _load(database, store, read)]


def _load(database: Database, store: DatasetStore, read: _Read) -> bool:
    content = read.content
    if store.dataset(content.dataset) is not None:
        return False
    try:
        with database.write():
            if store.dataset(content.dataset) is not None:
                return False
            store.upsert_dataset(
                DatasetChange(
                    content.dataset,
                    KEEP if content.description is None else content.description,
                    KEEP if content.metadata is None else jsonvalues.normalise(content.metadata),
                )
            )
            # Lists show the newest first: written backwards, they show the order of the file.
            for item in reversed(content.items):
                sent = {
                    "input": item.input,
                    "expectedOutput": item.expected_output,
                    "metadata": item.metadata,
                }
                store.upsert_item(
                    ItemChange(
                        content.dataset,
                        item.id,
                        jsonvalues.item_value(sent, "input"),
                        jsonvalues.item_value(sent, "expectedOutput"),
                        jsonvalues.item_value(sent, "metadata"),
                        item.status,
                    )
                )
    except errors.ApiError as refusal:
        # An item id that is already another dataset's cannot be freed, and must not keep the store shut.
        _log.warning("%s: not loaded: %s", read.path, bytes(refusal.response.body).decode())
        return False
    return True
