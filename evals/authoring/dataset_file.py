"""The dataset file: read strictly, with every mistake at once, and written in one form, byte for byte.

``{"dataset": NAME, "description": TEXT?, "metadata": …?, "items": [ITEM, …]}``, or the list of items alone. An item
is ``{"id", "input": {"query"}, "expectedOutput"?, "metadata", "status"?}``. Written: items sorted by id, keys in a
fixed order, two spaces of indentation, UTF-8 without escapes, one newline at the end.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.authoring.stored import StoredItem, ordered
from evals.errors import TwogateError
from evals.items import Problem

_FILE_KEYS = ("dataset", "description", "metadata", "items")
_ITEM_KEYS = ("id", "input", "expectedOutput", "metadata", "status")
_NO_ID = "(item without an id)"
_NO_DOUBLE = "is a number beyond 1.8e308, which is stored as null; write a smaller one, or a text"
_DEPTH = 100  # far from where Python's own limit would end a command
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class DatasetContent:
    """A dataset with its items: what a file holds, and what a server holds under a name."""

    name: str
    """Empty where a file is a plain list of items, which nobody has named."""
    items: tuple[StoredItem, ...]
    description: str | None = None
    metadata: Any = None
    problems: tuple[Problem, ...] = ()
    """Mistakes in the shape of single items, found on reading a file."""


def read_dataset_file(path: Path, name: str | None = None, *, nameless: bool = False) -> DatasetContent:
    """Read a dataset file.

    name: used instead of the file's own, and needed where the file is a plain list. nameless: take a plain list
    without a name too; the content's name is empty then.

    Raises TwogateError when the file as a whole cannot be used; mistakes of single items are in `problems`.
    """
    raw = _load(path)
    halves = half_characters(raw.get("items", raw) if isinstance(raw, dict) else raw)
    if isinstance(raw, dict):
        halves += half_characters({key: value for key, value in raw.items() if key != "items"})
    if halves:
        raise TwogateError(f"{path}: {line}" for line in dict.fromkeys(halves))
    mistakes: list[str] = []
    if isinstance(raw, list):
        raw = {"dataset": name, "items": raw}
        if name is None and nameless:
            name = ""
        elif name is None:
            mistakes.append("is a plain list of items; say by --dataset which dataset they are for")
    if not isinstance(raw, dict):
        raise TwogateError(f'{path}: must be an object with "dataset" and "items", or a list of items')
    mistakes += [f"{key}: is not a known key{_near(key, _FILE_KEYS)}" for key in raw if key not in _FILE_KEYS]
    own_name = raw.get("dataset")
    if name is None and not mistakes and (not isinstance(own_name, str) or not own_name.strip()):
        mistakes.append("dataset: is missing or empty; name the dataset, or use --dataset")
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        mistakes.append(f"description: is {description!r}; must be text")
    items = raw.get("items")
    if not isinstance(items, list):
        mistakes.append("items: is missing; must be a list of items")
    mistakes += [
        f"{place}: {_NO_DOUBLE}" for place, value in _scalars(raw.get("metadata"), "metadata") if _is_lost(value)
    ]
    if mistakes:
        raise TwogateError(f"{path}: {mistake}" for mistake in mistakes)
    assert isinstance(items, list)
    read, problems = _items(items)
    return DatasetContent(
        name=str(own_name) if name is None else name,
        items=tuple(read),
        description=description,
        metadata=raw.get("metadata"),
        problems=tuple(problems),
    )


def dataset_text(content: DatasetContent) -> str:
    """The file's text, the same for equal contents whatever the order of items and keys was.

    A plain list stays one: without a name only the items are written.
    """
    head = {"dataset": content.name, "description": content.description, "metadata": ordered(content.metadata)}
    items = [item.written() for item in sorted(content.items, key=lambda item: item.id)]
    whole = {key: value for key, value in head.items() if value is not None} | {"items": items}
    return json.dumps(whole if content.name else items, ensure_ascii=False, indent=2) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write the whole file or nothing. Raises TwogateError when the folder cannot be written."""
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise TwogateError(f"{path}: cannot be written: {error.strerror}") from None


def unique_id(wanted: str, taken: Iterable[str]) -> str:
    """The id, with -2, -3 and so on where it is taken."""
    known = set(taken)
    number, found = 1, wanted
    while found in known:
        number += 1
        found = f"{wanted}-{number}"
    return found


def half_characters(value: Any, what: str = "items") -> list[str]:
    """A line for each text or key of a JSON value that holds half of a surrogate pair, as a cut-off emoji leaves it.

    And for what is nested too deeply to be looked through. UTF-8 has no bytes for such a half: it can be neither
    written nor sent.

    what: the name of the list, where the value is a list of objects with ids: the lines then name the object.
    """
    found: list[str] = []
    named = enumerate(value) if isinstance(value, list) else [(None, value)]
    for position, one in named:
        identifier = one.get("id") if isinstance(one, dict) and position is not None else None
        label = "" if position is None else f"{what}[{position}]"
        if isinstance(identifier, str) and identifier.strip() and not _SURROGATE.search(identifier):
            label = identifier
        try:
            texts = list(_scalars(one))
        except RecursionError:
            found.append(": ".join(part for part in (label, f"is nested over {_DEPTH} levels deep") if part))
            continue
        for place, text in texts:
            half = _SURROGATE.search(text) if isinstance(text, str) else None
            if half is not None:
                line = f"holds {ascii(half[0])[1:-1]}, half of a surrogate pair and no character; write the whole one"
                found.append(": ".join(part for part in (label, _printable(place), line) if part))
    return found


def _scalars(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """What stands in a JSON value, keys too, each with its place: ``metadata.tools[0]``. Raises RecursionError."""
    if depth > _DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        for key, each in value.items():
            inner = f"{place}.{key}" if place else key
            yield inner, key
            yield from _scalars(each, inner, depth + 1)
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from _scalars(each, f"{place}[{position}]", depth + 1)
    else:
        yield place, value


def _is_lost(value: Any) -> bool:
    """Whether it is a number that no double can hold: it would be null once it is stored."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return not math.isfinite(value)
    except OverflowError:
        return True


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _load(path: Path) -> Any:
    repeated: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(key for key, count in Counter(key for key, _ in found).items() if count > 1)
        return dict(found)

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        text = path.read_text(encoding="utf-8-sig")
        raw = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TwogateError(f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise TwogateError(f"{path}: is nested too deeply") from None
    except ValueError as error:
        raise TwogateError(f"{path}: is not valid JSON: {error}") from None
    if repeated:
        raise TwogateError(f"{path}: the key {key!r} stands twice in one object; keep one" for key in repeated)
    return raw


def _items(raw_items: Sequence[Any]) -> tuple[list[StoredItem], list[Problem]]:
    items: list[StoredItem] = []
    problems: list[Problem] = []
    for position, raw in enumerate(raw_items):
        place = f"items[{position}]"
        if not isinstance(raw, dict):
            problems.append(Problem(item=place, field="item", message="is not an object; write {…}"))
            continue
        identifier = raw.get("id")
        named = isinstance(identifier, str) and bool(identifier.strip())
        label = str(identifier) if named else f"{place} {_NO_ID}"
        problems += [
            Problem(item=label, field=key, message=f"is not a known key{_near(key, _ITEM_KEYS)}")
            for key in raw
            if key not in _ITEM_KEYS
        ]
        status = raw.get("status") or "ACTIVE"
        problems += [
            Problem(item=label, field=place, message=_NO_DOUBLE)
            for key in _ITEM_KEYS
            for place, value in _scalars(raw.get(key), key)
            if _is_lost(value)
        ]
        if status not in ("ACTIVE", "ARCHIVED"):
            problems.append(Problem(item=label, field="status", message=f"is {status!r}; use ACTIVE or ARCHIVED"))
        if not named:
            message = "is missing or not text; use the form pr/<tool>/<slug> or merge/<family>/<slug>"
            problems.append(Problem(item=label, field="id", message=message))
            continue
        items.append(
            StoredItem(
                id=label,
                input=raw.get("input"),
                expected_output=raw.get("expectedOutput"),
                metadata=raw.get("metadata"),
                status="ARCHIVED" if status == "ARCHIVED" else "ACTIVE",
            )
        )
    problems += [
        Problem(item=label, field="id", message=f"stands {count} times; give each item an id of its own")
        for label, count in Counter(item.id for item in items).items()
        if count > 1
    ]
    return items, problems


def _near(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; use {', '.join(known)}"
