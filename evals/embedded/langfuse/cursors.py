"""Cursors of the lists that are read page by page: base64url of a small JSON object."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from evals.embedded.langfuse import errors, jsonvalues


def encode(values: dict[str, str | int]) -> str:
    """The cursor text."""
    return base64.urlsafe_b64encode(jsonvalues.dumps(values).encode()).decode().rstrip("=")


def decode(cursor: str, fields: Sequence[str]) -> tuple[str, ...]:
    """The named texts of a cursor, in order. Raises the 400 for anything that is not one."""
    try:
        raw = base64.b64decode(cursor.replace("-", "+").replace("_", "/") + "=" * (-len(cursor) % 4), validate=True)
        values = jsonvalues.loads(raw)
        found = tuple(values[field] for field in fields)
    except (ValueError, KeyError, TypeError):
        raise errors.invalid_request("Invalid cursor format") from None
    if not all(isinstance(value, str) for value in found):
        raise errors.invalid_request("Invalid cursor format")
    return found
