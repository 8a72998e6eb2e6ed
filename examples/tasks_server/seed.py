"""Permanent examples that every database starts with: they can be read and run, not changed or deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from examples.tasks_server import cron, records, rules
from examples.tasks_server.actions import ACTION_NAMES
from examples.tasks_server.database import Database
from examples.tasks_server.errors import TasksError
from examples.tasks_server.models import NewSchedule, NewTask
from examples.tasks_server.validation import describe_problems

BUILT_IN = Path(__file__).with_name("seed.json")


class SeedError(Exception):
    """A seed file with problems, one line each."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


class SeedTask(NewTask):
    """A permanent task."""

    published: bool = False


class Seed(BaseModel):
    """A seed file: tasks, and schedules of tasks in the same file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    tasks: list[SeedTask] = Field(default_factory=list)
    schedules: list[NewSchedule] = Field(default_factory=list)


def read_seed(path: Path) -> Seed:
    """Read and check a seed file. Raises SeedError with every problem."""
    try:
        seed = Seed.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SeedError([f"{path}: {error.strerror}"]) from None
    except ValidationError as error:
        raise SeedError([f"{path}: {line}" for line in describe_problems(error)]) from None
    except ValueError as error:
        raise SeedError([f"{path}: not valid JSON: {error}"]) from None
    problems = _problems(seed)
    if problems:
        raise SeedError([f"{path}: {line}" for line in problems])
    return seed


def _problems(seed: Seed) -> list[str]:
    problems: list[str] = []
    names = {task.name.lower() for task in seed.tasks}
    for kind, used in (
        ("task", [task.name.lower() for task in seed.tasks]),
        ("schedule", [schedule.name.lower() for schedule in seed.schedules]),
    ):
        problems += [f"{kind} {name}: is there twice" for name in sorted(set(used)) if used.count(name) > 1]
    for task in seed.tasks:
        problems += _refusals(f"task {task.name}", task)
        if task.action not in ACTION_NAMES:
            problems.append(
                f"task {task.name}: there is no action {task.action!r}; use one of {', '.join(ACTION_NAMES)}"
            )
        if task.published and not task.description.strip():
            problems.append(f"task {task.name}: a published task needs a description")
    for schedule in seed.schedules:
        problems += _refusals(f"schedule {schedule.name}", schedule)
        if schedule.task.lower() not in names:
            problems.append(f"schedule {schedule.name}: task: {schedule.task!r} is not in the file")
    return problems


def _refusals(where: str, entry: NewTask | NewSchedule) -> list[str]:
    found: list[str] = []
    checks: list[Callable[[], object]] = [lambda: rules.check_name(entry.name), lambda: rules.check_input(entry.input)]
    if isinstance(entry, NewTask):
        checks.append(lambda: rules.check_text("title", entry.title, rules.TITLE_MAX))
        checks.append(lambda: rules.check_text("description", entry.description, rules.DESCRIPTION_MAX))
    else:
        checks.append(lambda: cron.parse(entry.cron))
        checks.append(lambda: rules.check_timezone(entry.timezone))
    for check in checks:
        try:
            check()
        except TasksError as error:
            found.append(f"{where}: {error.message}")
    return found


def plant(database: Database, seed: Seed, clock: records.Clock = records.utc_now) -> None:
    """Add what is missing, as read-only. Safe to repeat, and from several processes at once."""
    now = records.stamp(clock())
    with database.writing() as db:
        for task in seed.tasks:
            db.execute(
                "INSERT INTO tasks"
                " (id, name, title, description, action, input, published, read_only, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (name) DO NOTHING",
                (
                    records.new_id("tsk"),
                    task.name,
                    task.title,
                    task.description,
                    task.action,
                    records.dump(task.input),
                    int(task.published),
                    now,
                    now,
                ),
            )
        for schedule in seed.schedules:
            owner = records.find_task(db, schedule.task)
            if not owner["read_only"]:
                # The name belongs to a user's task: a permanent schedule would make that undeletable.
                continue
            db.execute(
                "INSERT INTO schedules"
                " (id, name, task_id, cron, timezone, enabled, input, read_only, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (name) DO NOTHING",
                (
                    records.new_id("sch"),
                    schedule.name,
                    owner["id"],
                    schedule.cron,
                    schedule.timezone,
                    int(schedule.enabled),
                    records.dump(schedule.input),
                    now,
                    now,
                ),
            )
