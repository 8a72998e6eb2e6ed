"""What the services of tasks, schedules and runs share: ids, times, rows, pages, and finding by name or id."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from examples.tasks_server import rules
from examples.tasks_server.errors import ForbiddenError, NotFoundError
from examples.tasks_server.models import Slice

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """``2026-08-01T09:30:00Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_id(prefix: str) -> str:
    """An id such as ``tsk_3f9c…``; names have no underscore, so that no name can be taken for an id."""
    return f"{prefix}_{secrets.token_hex(8)}"


def dump(value: object) -> str:
    """Compact JSON for a column."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def load(text: str) -> dict[str, Any]:
    """The JSON object of a column."""
    value: dict[str, Any] = json.loads(text)
    return value


def find_task(db: sqlite3.Connection, reference: str) -> sqlite3.Row:
    """The row of a task by name (any case) or id. Raises NotFoundError ``task-not-found``."""
    return _find(db, "SELECT * FROM tasks WHERE id = :ref OR name = :ref", "task", reference)


def find_schedule(db: sqlite3.Connection, reference: str) -> sqlite3.Row:
    """The row of a schedule by name (any case) or id. Raises NotFoundError ``schedule-not-found``."""
    return _find(db, "SELECT * FROM schedules WHERE id = :ref OR name = :ref", "schedule", reference)


def _find(db: sqlite3.Connection, query: str, kind: str, reference: str) -> sqlite3.Row:
    # Half of a surrogate pair can't be bound; no name has the replacement.
    bound = reference.encode("utf-8", "replace").decode()
    row: sqlite3.Row | None = db.execute(query, {"ref": bound}).fetchone()
    if row is None:
        shown = reference if len(reference) <= 80 else reference[:80] + "…"
        raise NotFoundError(
            f"{kind}-not-found",
            f"There is no {kind} with the name or id {shown!r}.",
            f"Check the spelling, or list the {kind}s to see which exist.",
        )
    return row


def refuse_read_only(row: sqlite3.Row, kind: str) -> None:
    """Raises ForbiddenError ``task-is-read-only`` (or ``schedule-…``) for a permanent example."""
    if row["read_only"]:
        raise ForbiddenError(
            f"{kind}-is-read-only",
            f'The {kind} "{row["name"]}" is a permanent example and can\'t be changed or deleted.',
            f"Create a {kind} of your own instead.",
        )


class Filter:
    """Conditions of a list, collected with their parameters."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self._parameters: list[object] = []

    def add(self, condition: str, *parameters: object) -> None:
        """Add a condition written by the caller, with one ``?`` for each parameter."""
        self._conditions.append(condition)
        self._parameters.extend(parameters)

    def page(
        self, db: sqlite3.Connection, table: str, which: Slice, highest_limit: int
    ) -> tuple[list[sqlite3.Row], int, str | None]:
        """The rows of a slice, how many rows match in all, and the cursor of the next page."""
        limit = rules.check_limit(which.limit, highest_limit)
        where = f" WHERE {' AND '.join(self._conditions)}" if self._conditions else ""
        # Table, conditions and order are constants of this package; values go in as parameters.
        total: int = db.execute(f"SELECT count(*) FROM {table}{where}", self._parameters).fetchone()[0]  # noqa: S608
        parameters = [*self._parameters]
        if which.cursor is not None:
            where += f"{' AND' if where else ' WHERE'} seq < ?"
            parameters.append(rules.decode_cursor(which.cursor))
        order = "ASC" if which.oldest_first else "DESC"
        rows = db.execute(
            f"SELECT * FROM {table}{where} ORDER BY seq {order} LIMIT ? OFFSET ?",  # noqa: S608
            [*parameters, limit + 1, which.offset],
        ).fetchall()
        more = len(rows) > limit
        return rows[:limit], total, rules.encode_cursor(rows[limit - 1]["seq"]) if more else None


def contains(text: str) -> str:
    """A LIKE pattern (ESCAPE ``\\``) for texts that contain this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
