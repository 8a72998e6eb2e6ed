"""What the two APIs take and give. Times are UTC, ISO 8601, to the second."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from examples.tasks_server import rules


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Task(_Answer):
    """A saved task."""

    id: str
    name: str
    title: str
    description: str
    action: str
    input: dict[str, Any]
    published: bool
    public_url: str | None = Field(description="Where everyone can read a published task")
    read_only: bool = Field(description="An example that can be run but not changed")
    run_count: int
    schedule_count: int
    created_at: str
    updated_at: str


class Schedule(_Answer):
    """When a task runs by itself."""

    id: str
    name: str
    task_id: str
    task_name: str
    cron: str
    timezone: str
    enabled: bool
    input: dict[str, Any] = Field(description="Laid over the task's saved input, key by key")
    next_run_at: str | None = Field(description="None while the schedule is disabled")
    read_only: bool
    created_at: str
    updated_at: str


class Run(_Answer):
    """One execution of a task."""

    id: str
    task_id: str
    task_name: str
    number: int = Field(description="1 for the task's first run")
    status: Literal["succeeded", "failed"]
    input: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None = Field(description="Why a failed run failed")
    started_at: str
    finished_at: str


class TaskPage(_Answer):
    """A page of tasks, newest first."""

    items: list[Task]
    total: int = Field(description="How many match, over all pages")
    next_cursor: str | None = Field(description="None on the last page")


class SchedulePage(_Answer):
    """A page of schedules, newest first."""

    items: list[Schedule]
    total: int = Field(description="How many match, over all pages")
    next_cursor: str | None = Field(description="None on the last page")


class RunPage(_Answer):
    """A page of runs, newest first."""

    items: list[Run]
    total: int = Field(description="How many match, over all pages")
    next_cursor: str | None = Field(description="None on the last page")


class Deleted(_Answer):
    """What was deleted."""

    id: str
    name: str
    deleted_schedules: list[str] = Field(default_factory=list, description="Names of schedules deleted along with it")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NewTask(_Body):
    """A task to save."""

    name: str
    action: str
    input: dict[str, Any] = Field(default_factory=dict)
    title: str = ""
    description: str = ""


class TaskChanges(_Body):
    """Changes of a task; None leaves a field as it is."""

    name: str | None = None
    action: str | None = None
    input: dict[str, Any] | None = None
    title: str | None = None
    description: str | None = None


class NewSchedule(_Body):
    """A schedule to save; ``task`` is a task's name or id."""

    name: str
    task: str
    cron: str
    timezone: str = "UTC"
    enabled: bool = True
    input: dict[str, Any] = Field(default_factory=dict)


class ScheduleChanges(_Body):
    """Changes of a schedule; None leaves a field as it is."""

    name: str | None = None
    task: str | None = None
    cron: str | None = None
    timezone: str | None = None
    enabled: bool | None = None
    input: dict[str, Any] | None = None


class NewRun(_Body):
    """A run to start; ``input`` is laid over the saved one, key by key."""

    input: dict[str, Any] = Field(default_factory=dict)


class Slice(BaseModel):
    """Which part of a list: after a cursor (newest first), or from an offset in either order."""

    model_config = ConfigDict(frozen=True)

    limit: int = rules.PAGE_DEFAULT
    cursor: str | None = None
    offset: int = 0
    oldest_first: bool = False
