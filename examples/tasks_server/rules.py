"""The rules for names, texts, inputs, pages and time zones. No I/O; every refusal is an InvalidError."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from examples.tasks_server.errors import InvalidError

NAME_MIN = 3
NAME_MAX = 63
NAME_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$"
TITLE_MAX = 100
DESCRIPTION_MAX = 500
INPUT_MAX_BYTES = 16_384
INPUT_MAX_DEPTH = 20
SEARCH_MAX = 100
PAGE_DEFAULT = 20
PAGE_MAX = 100

# A trailing newline would pass "$".
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
# Half of a surrogate pair is no character, and can't be stored.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check_name(name: str) -> str:
    """The name itself, when it is one: 3 to 63 ASCII letters, digits and inner hyphens."""
    if len(name) > NAME_MAX:
        raise InvalidError(
            "name-too-long",
            f"The name has {len(name)} characters; {NAME_MAX} are allowed.",
            "Choose a shorter name.",
        )
    if len(name) < NAME_MIN:
        raise InvalidError(
            "name-too-short",
            f"The name has {len(name)} characters; at least {NAME_MIN} are needed.",
            "Choose a longer name.",
        )
    if not _NAME.fullmatch(name):
        raise InvalidError(
            "invalid-name",
            f"{name!r} is not a valid name.",
            "Use letters a to z, digits and hyphens, with a letter or digit first and last.",
        )
    return name


def check_text(field: str, text: str, limit: int) -> str:
    """The text itself, when it is at most ``limit`` characters without control characters."""
    if len(text) > limit:
        raise InvalidError(
            f"{field}-too-long",
            f"The {field} has {len(text)} characters; {limit} are allowed.",
            f"Shorten the {field}.",
        )
    if _CONTROL.search(text):
        raise InvalidError(f"invalid-{field}", f"The {field} has control characters.", "Send plain text without them.")
    return text


def check_input(value: Mapping[str, Any]) -> dict[str, Any]:
    """The input itself, when it is JSON of at most 16,384 bytes, 20 levels deep, without NaN or infinity."""
    if _depth(value) > INPUT_MAX_DEPTH:
        raise InvalidError(
            "input-too-deep",
            f"The input nests deeper than {INPUT_MAX_DEPTH} levels.",
            "Send a flatter object.",
        )
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError):
        raise InvalidError(
            "invalid-input",
            "The input is not valid JSON: NaN, infinity and broken characters are not allowed.",
            "Send a plain JSON object.",
        ) from None
    if size > INPUT_MAX_BYTES:
        raise InvalidError(
            "input-too-large",
            f"The input has {size} bytes as JSON; {INPUT_MAX_BYTES} are allowed.",
            "Send a smaller input.",
        )
    return dict(value)


def _depth(value: object) -> int:
    # Iterative: a hostile input must not exhaust the stack before it is refused.
    deepest = 0
    todo: list[tuple[object, int]] = [(value, 1)]
    while todo:
        current, level = todo.pop()
        deepest = max(deepest, level)
        if deepest > INPUT_MAX_DEPTH:
            return deepest
        if isinstance(current, Mapping):
            todo.extend((inner, level + 1) for inner in current.values())
        elif isinstance(current, list | tuple):
            todo.extend((inner, level + 1) for inner in current)
    return deepest


def check_limit(limit: int, highest: int = PAGE_MAX) -> int:
    """The page size itself, when it is 1 to ``highest``."""
    if not 1 <= limit <= highest:
        raise InvalidError(
            "invalid-limit",
            f"The limit is {limit}; it must be 1 to {highest}.",
            "Ask for fewer entries a page and follow the pages.",
        )
    return limit


def check_timezone(name: str) -> ZoneInfo:
    """The zone of an IANA name such as ``Europe/Prague``."""
    # ZoneInfo(name) opens a file named by the caller: look the name up first.
    if name not in _zones():
        raise InvalidError(
            "invalid-timezone",
            f"{name!r} is not an IANA time zone.",
            'Use a name such as "UTC" or "Europe/Prague".',
        )
    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) | {"UTC"}


def encode_cursor(seq: int) -> str:
    """The opaque cursor of the page after the entry with this sequence number."""
    return base64.urlsafe_b64encode(f"seq:{seq}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> int:
    """The sequence number that `encode_cursor` was given."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    found = re.fullmatch(r"seq:([0-9]{1,18})", text, re.ASCII)
    if found is None or encode_cursor(int(found[1])) != cursor:
        raise InvalidError(
            "invalid-cursor",
            "The cursor is not one that a list answered.",
            "Pass next_cursor of the page before unchanged, or leave it out for the first page.",
        )
    return int(found[1])
