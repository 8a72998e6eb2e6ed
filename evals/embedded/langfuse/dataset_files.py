"""Dataset files: a dataset and its items as JSON, shipped with Twogate or exported from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from evals.embedded.langfuse import jsonvalues
from evals.embedded.langfuse.jsonvalues import KEEP
from evals.errors import TwogateError

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


def load_dataset_file(path: Path) -> DatasetFile:
    """Read a dataset file. Raises TwogateError with every problem, each naming the file and the place."""
    return parse_dataset_file(path, read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """The bytes of a dataset file. Raises TwogateError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}") from None


def parse_dataset_file(path: Path, data: bytes) -> DatasetFile:
    """What the bytes of the file at `path` say. Raises TwogateError as `load_dataset_file` does."""
    try:
        content = DatasetFile.model_validate(jsonvalues.loads(data))
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
        # Also a text that is stored as null, such as "null" itself.
        if jsonvalues.item_value({"input": item.input}, "input") in (None, KEEP):
            problems.append(f"{path}: items.{position}.input: must not be empty")
        seen.add(item.id)
    if problems:
        raise TwogateError(problems)
    return content
