"""Schedules: when a task runs by itself."""

from __future__ import annotations

import sqlite3

from examples.tasks_server import cron, records, rules
from examples.tasks_server.database import Database
from examples.tasks_server.errors import ConflictError, InvalidError
from examples.tasks_server.models import Deleted, NewSchedule, Schedule, ScheduleChanges, SchedulePage, Slice


class ScheduleService:
    """All that can be done with schedules. A schedule or task is named by its name, in any case, or its id."""

    def __init__(self, database: Database, clock: records.Clock = records.utc_now) -> None:
        self._database = database
        self._clock = clock

    def create(self, new: NewSchedule) -> Schedule:
        """Save a schedule.

        Raises InvalidError for a name, cron expression, time zone or input against the rules, NotFoundError
        ``task-not-found``, ConflictError ``schedule-name-taken``.
        """
        rules.check_name(new.name)
        cron.parse(new.cron)
        rules.check_timezone(new.timezone)
        given = rules.check_input(new.input)
        now = records.stamp(self._clock())
        schedule_id = records.new_id("sch")
        with self._database.writing() as db:
            task = records.find_task(db, new.task)
            _refuse_taken(db, new.name, None)
            db.execute(
                "INSERT INTO schedules"
                " (id, name, task_id, cron, timezone, enabled, input, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    schedule_id,
                    new.name,
                    task["id"],
                    new.cron.strip(),
                    new.timezone,
                    int(new.enabled),
                    records.dump(given),
                    now,
                    now,
                ),
            )
            return self._schedule(db, records.find_schedule(db, schedule_id))

    def get(self, schedule: str) -> Schedule:
        """The schedule. Raises NotFoundError."""
        with self._database.reading() as db:
            return self._schedule(db, records.find_schedule(db, schedule))

    def list(
        self,
        which: Slice,
        *,
        task: str | None = None,
        search: str | None = None,
        enabled: bool | None = None,
        highest_limit: int = rules.PAGE_MAX,
    ) -> SchedulePage:
        """The schedules that match every given filter; ``search`` looks into names."""
        query = records.Filter()
        if search is not None:
            query.add(
                r"name LIKE ? ESCAPE '\'",
                records.contains(rules.check_text("search", search, rules.SEARCH_MAX)),
            )
        if enabled is not None:
            query.add("enabled = ?", int(enabled))
        with self._database.reading() as db:
            if task is not None:
                query.add("task_id = ?", records.find_task(db, task)["id"])
            rows, total, cursor = query.page(db, "schedules", which, highest_limit)
            return SchedulePage(items=[self._schedule(db, row) for row in rows], total=total, next_cursor=cursor)

    def update(self, schedule: str, changes: ScheduleChanges) -> Schedule:
        """Change the given fields."""
        given = changes.model_dump(exclude_none=True)
        if not given:
            raise InvalidError("nothing-to-change", "No field to change was given.", "Name at least one field.")
        if changes.name is not None:
            rules.check_name(changes.name)
        if changes.cron is not None:
            cron.parse(changes.cron)
            given["cron"] = changes.cron.strip()
        if changes.timezone is not None:
            rules.check_timezone(changes.timezone)
        if changes.input is not None:
            given["input"] = records.dump(rules.check_input(changes.input))
        given["updated_at"] = records.stamp(self._clock())
        with self._database.writing() as db:
            row = records.find_schedule(db, schedule)
            records.refuse_read_only(row, "schedule")
            if changes.name is not None:
                _refuse_taken(db, changes.name, row["id"])
            if changes.task is not None:
                given["task_id"] = records.find_task(db, given.pop("task"))["id"]
            columns = ", ".join(f"{field} = :{field}" for field in given)
            # The fields are those of ScheduleChanges, never the caller's.
            db.execute(f"UPDATE schedules SET {columns} WHERE id = :id", {**given, "id": row["id"]})  # noqa: S608
            return self._schedule(db, records.find_schedule(db, row["id"]))

    def delete(self, schedule: str) -> Deleted:
        """Delete a schedule; its task stays."""
        with self._database.writing() as db:
            row = records.find_schedule(db, schedule)
            records.refuse_read_only(row, "schedule")
            db.execute("DELETE FROM schedules WHERE id = ?", (row["id"],))
            return Deleted(id=row["id"], name=row["name"])

    def _schedule(self, db: sqlite3.Connection, row: sqlite3.Row) -> Schedule:
        task = db.execute("SELECT name FROM tasks WHERE id = ?", (row["task_id"],)).fetchone()
        following = None
        if row["enabled"]:
            zone = rules.check_timezone(row["timezone"])
            following = records.stamp(cron.parse(row["cron"]).next_after(self._clock(), zone))
        return Schedule(
            id=row["id"],
            name=row["name"],
            task_id=row["task_id"],
            task_name=task["name"],
            cron=row["cron"],
            timezone=row["timezone"],
            enabled=bool(row["enabled"]),
            input=records.load(row["input"]),
            next_run_at=following,
            read_only=bool(row["read_only"]),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )


def _refuse_taken(db: sqlite3.Connection, name: str, own_id: str | None) -> None:
    found = db.execute("SELECT id, name FROM schedules WHERE name = ?", (name,)).fetchone()
    if found is not None and found["id"] != own_id:
        raise ConflictError(
            "schedule-name-taken",
            f'A schedule named "{found["name"]}" exists already (id {found["id"]}).',
            "Choose another name, or update that schedule.",
        )
