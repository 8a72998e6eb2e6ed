"""What differs between two versions of a dataset, item by item and field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evals.authoring.stored import StoredItem
from evals.scoring.json_equality import json_equal

Kind = Literal["new", "changed", "gone"]


@dataclass(frozen=True)
class FieldChange:
    """A field with another value: None stands for absent."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ItemDifference:
    """An item that stands on one side only, or differs."""

    id: str
    kind: Kind
    fields: tuple[FieldChange, ...]


def differences(before: Iterable[StoredItem], after: Iterable[StoredItem]) -> list[ItemDifference]:
    """How `after` differs from `before`, sorted by id, compared as Langfuse keeps the values."""
    old = {item.id: item for item in before}
    new = {item.id: item for item in after}
    found = [difference(old.get(identifier), new.get(identifier)) for identifier in sorted(old.keys() | new.keys())]
    return [one for one in found if one is not None]


def difference(before: StoredItem | None, after: StoredItem | None) -> ItemDifference | None:
    """How one item differs; None when it does not."""
    present = after or before
    assert present is not None, "an item that stands on neither side"
    fields = tuple(_field_changes(_fields(before), _fields(after)))
    if not fields:
        return None
    kind: Kind = "new" if before is None else "gone" if after is None else "changed"
    return ItemDifference(present.id, kind, fields)


def difference_lines(found: Iterable[ItemDifference]) -> Iterator[str]:
    """For people: one line an item, then its fields, `-` before and `+` after."""
    signs: Mapping[Kind, str] = {"new": "+", "changed": "~", "gone": "-"}
    for one in found:
        yield f"{signs[one.kind]} {one.id}"
        if one.kind == "gone":
            continue
        for change in one.fields:
            yield f"    {change.field}"
            if change.before is not None:
                yield f"      - {_shown(change.before)}"
            if change.after is not None:
                yield f"      + {_shown(change.after)}"


def _fields(item: StoredItem | None) -> dict[str, Any]:
    if item is None:
        return {}
    kept = item.as_kept()
    fields: dict[str, Any] = {}
    for name, value in (
        ("input", kept.input),
        ("expectedOutput", kept.expected_output),
        ("metadata", kept.metadata),
    ):
        if isinstance(value, Mapping) and value:
            fields.update({f"{name}.{key}": each for key, each in value.items()})
        elif value is not None:
            fields[name] = value
    # every item is ACTIVE unless it says otherwise: not worth a line for a new one
    if kept.status != "ACTIVE":
        fields["status"] = kept.status
    return fields


def _field_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    for field in dict.fromkeys([*before, *after]):
        if field in before and field in after and json_equal(before[field], after[field]):
            continue
        old, new = before.get(field), after.get(field)
        if field == "status":
            old, new = old or "ACTIVE", new or "ACTIVE"
        yield FieldChange(field, old, new)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
