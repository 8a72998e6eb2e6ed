"""The MCP tools of the family ``schedules``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from mcp.types import ToolAnnotations
from pydantic import Field

from examples.tasks_server import parameters as given
from examples.tasks_server import rules
from examples.tasks_server.models import Deleted, NewSchedule, Schedule, ScheduleChanges, SchedulePage, Slice
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.task_tools import CHANGES, CREATES, DELETES, READS, ToolFunction


def schedule_tools(service: ScheduleService) -> Sequence[tuple[ToolFunction, ToolAnnotations]]:
    """Each tool's function, whose docstring is the tool's description, with its annotations."""

    def create_schedule(
        name: given.Name,
        task: given.TaskReference,
        cron: given.CronExpression,
        timezone: given.Timezone = "UTC",
        enabled: Annotated[bool, Field(description="false: keep the schedule paused")] = True,
        input: given.Override = None,  # noqa: A002
    ) -> Schedule:
        """Have an existing task run by itself at the times of a cron expression.

        The answer says when it runs next. Fails when the task is unknown or another schedule has the name already.
        """
        return service.create(
            NewSchedule(name=name, task=task, cron=cron, timezone=timezone, enabled=enabled, input=input or {})
        )

    def get_schedule(schedule: given.ScheduleReference) -> Schedule:
        """Read one schedule: its task, times, time zone, whether it is enabled, and when it runs next."""
        return service.get(schedule)

    def list_schedules(
        task: Annotated[
            str | None,
            Field(
                description="Only the schedules of this task, by its name or id",
                json_schema_extra={"minLength": 1, "maxLength": rules.NAME_MAX},
            ),
        ] = None,
        search: given.Search = None,
        enabled: Annotated[bool | None, Field(description="true: only enabled ones; false: only paused ones")] = None,
        cursor: given.Cursor = None,
        limit: given.Limit = rules.PAGE_DEFAULT,
    ) -> SchedulePage:
        """List schedules, newest first, optionally only those that match every filter given."""
        return service.list(Slice(limit=limit, cursor=cursor), task=task, search=search, enabled=enabled)

    def update_schedule(
        schedule: given.ScheduleReference,
        name: given.NewName = None,
        task: Annotated[str | None, Field(description="Name or id of another task to run")] = None,
        cron: Annotated[str | None, Field(description="New times: five cron fields or a preset such as @daily")] = None,
        timezone: Annotated[str | None, Field(description="IANA time zone, such as Europe/Prague")] = None,
        enabled: Annotated[bool | None, Field(description="false pauses it, true resumes it")] = None,
        input: given.Override = None,  # noqa: A002
    ) -> Schedule:
        """Change the given fields of a schedule, or pause and resume it; the other fields stay."""
        return service.update(
            schedule,
            ScheduleChanges(name=name, task=task, cron=cron, timezone=timezone, enabled=enabled, input=input),
        )

    def delete_schedule(schedule: given.ScheduleReference) -> Deleted:
        """Delete a schedule for good; the task that it ran stays."""
        return service.delete(schedule)

    return (
        (create_schedule, CREATES),
        (get_schedule, READS),
        (list_schedules, READS),
        (update_schedule, CHANGES),
        (delete_schedule, DELETES),
    )
