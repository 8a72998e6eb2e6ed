"""An item as a file or a server holds it, valid or not, and its one canonical form.

Langfuse keeps no key order and changes some values (see `StoredItem.as_kept`). So that files can be compared byte by
byte, everything this package writes has its keys in one order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic.alias_generators import to_camel

from evals.embedded.langfuse.jsonvalues import KEEP, item_value
from evals.items import ItemMetadata
from evals.scoring.json_equality import json_equal

if TYPE_CHECKING:  # the Langfuse SDK is slow to import, and files need none of it
    from evals.recording.dataset_items import ItemRecord

Status = Literal["ACTIVE", "ARCHIVED"]

_METADATA_ORDER = tuple(to_camel(name) for name in ItemMetadata.model_fields)
_INPUT_ORDER = ("query",)


@dataclass(frozen=True)
class StoredItem:
    """One item with the values as they are. `None` stands for absent, as it does for Langfuse."""

    id: str
    input: Any = None
    expected_output: Any = None
    metadata: Any = None
    status: Status = "ACTIVE"

    @classmethod
    def of(cls, record: ItemRecord) -> StoredItem:
        return cls(record.id, record.input, record.expected_output, record.metadata, record.status).canonical()

    @property
    def archived(self) -> bool:
        return self.status == "ARCHIVED"

    def raw(self) -> dict[str, Any]:
        """With the keys a dataset's authors know, for `evals.items`."""
        return {
            "id": self.id,
            "input": self.input,
            "expectedOutput": self.expected_output,
            "metadata": self.metadata,
            "status": self.status,
        }

    def canonical(self) -> StoredItem:
        """Keys in the fixed order: known ones first, as in the documentation, the others by name."""
        return replace(
            self,
            input=ordered(self.input, _INPUT_ORDER),
            expected_output=ordered(self.expected_output),
            metadata=ordered(_without_nulls(self.metadata), _METADATA_ORDER),
        )

    def as_kept(self) -> StoredItem:
        """As Langfuse will give it back: texts that are JSON parsed, control characters gone, 1.0 as 1."""
        raw = self.raw()
        kept = {field: item_value(raw, field) for field in ("input", "expectedOutput", "metadata")}
        plain = {field: None if value is KEEP else value for field, value in kept.items()}
        return replace(
            self, input=plain["input"], expected_output=plain["expectedOutput"], metadata=plain["metadata"]
        ).canonical()

    def written(self) -> dict[str, Any]:
        """As it stands in a file: absent fields left out, and the status only where it is not ACTIVE."""
        item = self.canonical()
        values = {
            "id": item.id,
            "input": item.input,
            "expectedOutput": item.expected_output,
            "metadata": item.metadata,
            "status": None if item.status == "ACTIVE" else item.status,
        }
        return {key: value for key, value in values.items() if value is not None}


def same_when_kept(one: StoredItem, other: StoredItem) -> bool:
    """Whether Langfuse would give both back alike."""
    return one.id == other.id and json_equal(one.as_kept().raw(), other.as_kept().raw())


def lost_when_kept(item: StoredItem) -> list[str]:
    """The fields whose values Langfuse will not give back as they are, `1.0` for `1` aside."""
    kept = item.as_kept().raw()
    written = item.canonical().raw()
    return [field for field in ("input", "expectedOutput", "metadata") if not json_equal(kept[field], written[field])]


def _without_nulls(metadata: Any) -> Any:
    if isinstance(metadata, Mapping):
        return {key: value for key, value in metadata.items() if value is not None}
    return metadata


def ordered(value: Any, first: Sequence[str] = ()) -> Any:
    """A JSON value with the keys of its objects in one order: those of `first`, then the others by name."""
    if isinstance(value, Mapping):
        keys = [key for key in first if key in value] + sorted(key for key in value if key not in first)
        return {key: ordered(value[key]) for key in keys}
    if isinstance(value, list | tuple):
        return [ordered(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
