"""The MCP tools of the family ``tasks``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from mcp.types import ToolAnnotations
from pydantic import Field

from examples.tasks_server import parameters as given
from examples.tasks_server import rules
from examples.tasks_server.models import Deleted, NewRun, NewTask, Run, RunPage, Slice, Task, TaskChanges, TaskPage
from examples.tasks_server.tasks import TaskService

ToolFunction = Callable[..., object]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
CREATES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
SWITCHES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def task_tools(service: TaskService) -> Sequence[tuple[ToolFunction, ToolAnnotations]]:
    """Each tool's function, whose docstring is the tool's description, with its annotations."""

    def create_task(
        name: given.Name,
        action: given.Action,
        input: given.Input = None,  # noqa: A002
        title: given.Title = None,
        description: given.Description = None,
    ) -> Task:
        """Save a new task: an action with an input, kept under a unique name so that it can be run again later.

        The task starts private and without a schedule. Fails when another task has the name already.
        """
        return service.create(
            NewTask(name=name, action=action, input=input or {}, title=title or "", description=description or "")
        )

    def get_task(task: given.TaskReference) -> Task:
        """Read one task: its action, input, texts, whether it is published, how many runs and schedules it has."""
        return service.get(task)

    def list_tasks(
        search: given.Search = None,
        action: given.NewAction = None,
        published: Annotated[
            bool | None, Field(description="true: only published tasks; false: only private ones")
        ] = None,
        cursor: given.Cursor = None,
        limit: given.Limit = rules.PAGE_DEFAULT,
    ) -> TaskPage:
        """List saved tasks, newest first, optionally only those that match every filter given."""
        return service.list(Slice(limit=limit, cursor=cursor), search=search, action=action, published=published)

    def update_task(
        task: given.TaskReference,
        name: given.NewName = None,
        title: given.Title = None,
        description: given.Description = None,
        action: given.NewAction = None,
        input: given.Input = None,  # noqa: A002
    ) -> Task:
        """Change the given fields of a task; the others stay. A new input replaces the saved one whole.

        A published task must be unpublished before it can be renamed.
        """
        return service.update(
            task, TaskChanges(name=name, title=title, description=description, action=action, input=input)
        )

    def delete_task(
        task: given.TaskReference,
        force: Annotated[bool, Field(description="Delete the task's schedules along with it")] = False,
    ) -> Deleted:
        """Delete a task and its runs for good.

        Refused while the task is published, and, without force, while it has schedules.
        """
        return service.delete(task, force=force)

    def run_task(
        task: given.TaskReference,
        input: given.Override = None,  # noqa: A002
    ) -> Run:
        """Run a task now and wait for its result.

        An input that does not fit the action gives a run with the status failed, not an error.
        """
        return service.run(task, NewRun(input=input or {}))

    def publish_task(task: given.TaskReference) -> Task:
        """Make a task public, so that everyone can read it at its public_url. It needs a description first."""
        return service.publish(task)

    def unpublish_task(task: given.TaskReference) -> Task:
        """Make a published task private again."""
        return service.unpublish(task)

    def list_runs(
        task: given.TaskReference,
        status: Annotated[Literal["succeeded", "failed"] | None, Field(description="Only these runs")] = None,
        cursor: given.Cursor = None,
        limit: given.Limit = rules.PAGE_DEFAULT,
    ) -> RunPage:
        """List the runs of one task with their results, newest first."""
        return service.list_runs(Slice(limit=limit, cursor=cursor), task=task, status=status)

    def get_run(
        task: given.TaskReference,
        number: Annotated[
            int | None,
            Field(
                description="Number of the run, 1 for the first; left out for the latest",
                json_schema_extra={"minimum": 1},
            ),
        ] = None,
    ) -> Run:
        """Read one run of a task: its status, the input it ran with, and its result or error."""
        return service.get_run(task, number)

    return (
        (create_task, CREATES),
        (get_task, READS),
        (list_tasks, READS),
        (update_task, CHANGES),
        (delete_task, DELETES),
        (run_task, CREATES),
        (publish_task, SWITCHES),
        (unpublish_task, SWITCHES),
        (list_runs, READS),
        (get_run, READS),
    )
