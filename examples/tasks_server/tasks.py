"""Saved tasks and their runs."""

from __future__ import annotations

import sqlite3
from typing import Any

from examples.tasks_server import records, rules
from examples.tasks_server.actions import ACTION_NAMES, ActionError, perform
from examples.tasks_server.database import Database
from examples.tasks_server.errors import ConflictError, InvalidError, NotFoundError
from examples.tasks_server.models import Deleted, NewRun, NewTask, Run, RunPage, Slice, Task, TaskChanges, TaskPage

PUBLIC_URL = "https://tasks.example.com/public"


class TaskService:
    """All that can be done with tasks and runs. A task is named by its name, in any case, or its id."""

    def __init__(self, database: Database, clock: records.Clock = records.utc_now) -> None:
        self._database = database
        self._clock = clock

    def create(self, new: NewTask) -> Task:
        """Save a task.

        Raises InvalidError for a name, text, action or input against the rules, ConflictError ``task-name-taken``.
        """
        rules.check_name(new.name)
        rules.check_text("title", new.title, rules.TITLE_MAX)
        rules.check_text("description", new.description, rules.DESCRIPTION_MAX)
        _check_action(new.action)
        given = rules.check_input(new.input)
        now = records.stamp(self._clock())
        task_id = records.new_id("tsk")
        with self._database.writing() as db:
            _refuse_taken(db, new.name, None)
            db.execute(
                "INSERT INTO tasks (id, name, title, description, action, input, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (task_id, new.name, new.title, new.description, new.action, records.dump(given), now, now),
            )
            return _task(db, records.find_task(db, task_id))

    def get(self, task: str) -> Task:
        """The task. Raises NotFoundError."""
        with self._database.reading() as db:
            return _task(db, records.find_task(db, task))

    def list(
        self,
        which: Slice,
        *,
        search: str | None = None,
        action: str | None = None,
        published: bool | None = None,
        highest_limit: int = rules.PAGE_MAX,
    ) -> TaskPage:
        """The tasks that match every given filter; ``search`` looks into names and titles."""
        query = records.Filter()
        if search is not None:
            pattern = records.contains(rules.check_text("search", search, rules.SEARCH_MAX))
            query.add(r"(name LIKE ? ESCAPE '\' OR title LIKE ? ESCAPE '\')", pattern, pattern)
        if action is not None:
            query.add("action = ?", _check_action(action))
        if published is not None:
            query.add("published = ?", int(published))
        with self._database.reading() as db:
            rows, total, cursor = query.page(db, "tasks", which, highest_limit)
            return TaskPage(items=[_task(db, row) for row in rows], total=total, next_cursor=cursor)

    def update(self, task: str, changes: TaskChanges) -> Task:
        """Change the given fields. A published task keeps its name, which is part of its public address."""
        given = changes.model_dump(exclude_none=True)
        if not given:
            raise InvalidError("nothing-to-change", "No field to change was given.", "Name at least one field.")
        if changes.name is not None:
            rules.check_name(changes.name)
        if changes.title is not None:
            rules.check_text("title", changes.title, rules.TITLE_MAX)
        if changes.description is not None:
            rules.check_text("description", changes.description, rules.DESCRIPTION_MAX)
        if changes.action is not None:
            _check_action(changes.action)
        if changes.input is not None:
            given["input"] = records.dump(rules.check_input(changes.input))
        given["updated_at"] = records.stamp(self._clock())
        with self._database.writing() as db:
            row = records.find_task(db, task)
            records.refuse_read_only(row, "task")
            if changes.name is not None and changes.name != row["name"]:
                if row["published"]:
                    raise _is_published(row, "renamed")
                _refuse_taken(db, changes.name, row["id"])
            if row["published"] and changes.description is not None and not changes.description.strip():
                raise _is_published(row, "left without a description")
            columns = ", ".join(f"{field} = :{field}" for field in given)
            # The fields are those of TaskChanges, never the caller's.
            db.execute(f"UPDATE tasks SET {columns} WHERE id = :id", {**given, "id": row["id"]})  # noqa: S608
            return _task(db, records.find_task(db, row["id"]))

    def delete(self, task: str, *, force: bool = False) -> Deleted:
        """Delete a task and its runs; with ``force`` its schedules too. A published task is never deleted."""
        with self._database.writing() as db:
            row = records.find_task(db, task)
            records.refuse_read_only(row, "task")
            if row["published"]:
                raise _is_published(row, "deleted")
            schedules = [
                found["name"]
                for found in db.execute("SELECT name FROM schedules WHERE task_id = ? ORDER BY seq", (row["id"],))
            ]
            if schedules and not force:
                raise ConflictError(
                    "task-has-schedules",
                    f'The task "{row["name"]}" has schedules: {", ".join(schedules[:10])}'
                    f"{' and more' if len(schedules) > 10 else ''}.",
                    "Delete them first, or set force to delete them along with the task.",
                )
            db.execute("DELETE FROM tasks WHERE id = ?", (row["id"],))
            return Deleted(id=row["id"], name=row["name"], deleted_schedules=schedules)

    def publish(self, task: str) -> Task:
        """Make a task public. It needs a description. Publishing a published task changes nothing."""
        with self._database.writing() as db:
            row = records.find_task(db, task)
            records.refuse_read_only(row, "task")
            if not row["description"].strip():
                raise ConflictError(
                    "description-missing",
                    f'The task "{row["name"]}" has no description, and only described tasks can be published.',
                    "Update the task with a description, then publish it.",
                )
            return self._set_published(db, row, published=True)

    def unpublish(self, task: str) -> Task:
        """Make a task private again. Unpublishing a private task changes nothing."""
        with self._database.writing() as db:
            row = records.find_task(db, task)
            records.refuse_read_only(row, "task")
            return self._set_published(db, row, published=False)

    def _set_published(self, db: sqlite3.Connection, row: sqlite3.Row, *, published: bool) -> Task:
        if bool(row["published"]) != published:
            db.execute(
                "UPDATE tasks SET published = ?, updated_at = ? WHERE id = ?",
                (int(published), records.stamp(self._clock()), row["id"]),
            )
        return _task(db, records.find_task(db, row["id"]))

    def run(self, task: str, new: NewRun) -> Run:
        """Run a task now and keep the run; an input that does not fit the action makes a failed run."""
        override = rules.check_input(new.input)
        with self._database.writing() as db:
            row = records.find_task(db, task)
            started = records.stamp(self._clock())
            given = rules.check_input(records.load(row["input"]) | override)
            result: dict[str, Any] | None = None
            problem: str | None = None
            try:
                result = perform(row["action"], given)
            except ActionError as error:
                problem = str(error)
            number: int = db.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM runs WHERE task_id = ?", (row["id"],)
            ).fetchone()[0]
            db.execute(
                "INSERT INTO runs (id, task_id, number, status, input, result, error, started_at, finished_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    records.new_id("run"),
                    row["id"],
                    number,
                    "failed" if result is None else "succeeded",
                    records.dump(given),
                    None if result is None else records.dump(result),
                    problem,
                    started,
                    records.stamp(self._clock()),
                ),
            )
            return _find_run(db, row, number)

    def get_run(self, task: str, number: int | None = None) -> Run:
        """One run of a task, the latest by default. Raises NotFoundError ``run-not-found``."""
        with self._database.reading() as db:
            return _find_run(db, records.find_task(db, task), number)

    def list_runs(
        self, which: Slice, *, task: str, status: str | None = None, highest_limit: int = rules.PAGE_MAX
    ) -> RunPage:
        """The runs of a task."""
        if status is not None and status not in {"succeeded", "failed"}:
            raise InvalidError("invalid-status", f"No run has the status {status!r}.", "Use succeeded or failed.")
        query = records.Filter()
        with self._database.reading() as db:
            row = records.find_task(db, task)
            query.add("task_id = ?", row["id"])
            if status is not None:
                query.add("status = ?", status)
            rows, total, cursor = query.page(db, "runs", which, highest_limit)
            return RunPage(items=[_run(found, row) for found in rows], total=total, next_cursor=cursor)


def _check_action(action: str) -> str:
    if action not in ACTION_NAMES:
        raise InvalidError(
            "unknown-action", f"There is no action {action!r}.", f"Use one of {', '.join(ACTION_NAMES)}."
        )
    return action


def _refuse_taken(db: sqlite3.Connection, name: str, own_id: str | None) -> None:
    found = db.execute("SELECT id, name FROM tasks WHERE name = ?", (name,)).fetchone()
    if found is not None and found["id"] != own_id:
        raise ConflictError(
            "task-name-taken",
            f'A task named "{found["name"]}" exists already (id {found["id"]}).',
            "Choose another name, or update that task.",
        )


def _is_published(row: sqlite3.Row, change: str) -> ConflictError:
    return ConflictError(
        "task-is-published",
        f'The task "{row["name"]}" is published and can\'t be {change}.',
        "Unpublish it first.",
    )


def _task(db: sqlite3.Connection, row: sqlite3.Row) -> Task:
    runs, schedules = db.execute(
        "SELECT (SELECT count(*) FROM runs WHERE task_id = :id), (SELECT count(*) FROM schedules WHERE task_id = :id)",
        {"id": row["id"]},
    ).fetchone()
    return Task(
        id=row["id"],
        name=row["name"],
        title=row["title"],
        description=row["description"],
        action=row["action"],
        input=records.load(row["input"]),
        published=bool(row["published"]),
        public_url=f"{PUBLIC_URL}/{row['name']}" if row["published"] else None,
        read_only=bool(row["read_only"]),
        run_count=runs,
        schedule_count=schedules,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _find_run(db: sqlite3.Connection, task: sqlite3.Row, number: int | None) -> Run:
    # A number past SQLite's integers can't be bound, and names no run.
    bound = None if number is None else max(0, min(number, 2**63 - 1))
    row = db.execute(
        "SELECT * FROM runs WHERE task_id = ? AND (? IS NULL OR number = ?) ORDER BY number DESC LIMIT 1",
        (task["id"], bound, bound),
    ).fetchone()
    if row is None:
        what = "has not run yet" if number is None else f"has no run with the number {number}"
        raise NotFoundError("run-not-found", f'The task "{task["name"]}" {what}.', "Run the task, or list its runs.")
    return _run(row, task)


def _run(row: sqlite3.Row, task: sqlite3.Row) -> Run:
    return Run(
        id=row["id"],
        task_id=task["id"],
        task_name=task["name"],
        number=row["number"],
        status=row["status"],
        input=records.load(row["input"]),
        result=None if row["result"] is None else records.load(row["result"]),
        error=row["error"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )
