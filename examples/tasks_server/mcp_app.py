"""The MCP server: the tools of the chosen families, with errors that a model can act on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, TextContent
from pydantic import ValidationError

from examples.tasks_server.errors import InvalidError, TasksError
from examples.tasks_server.schedule_tools import schedule_tools
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.task_tools import task_tools
from examples.tasks_server.tasks import TaskService
from examples.tasks_server.validation import describe_problems

FAMILIES = ("tasks", "schedules")
_logger = logging.getLogger(__name__)


class TasksMCP(MCPServer[Any]):
    """The SDK's server, whose tool errors start with a type in brackets instead of the SDK's own prefix."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; every failure is an ``isError`` result that says what to do next."""
        known = {tool.name: tool.input_schema for tool in await self.list_tools()}
        if name not in known:
            return _failure(
                InvalidError("unknown-tool", f"There is no tool {name!r}.", f"Use one of {', '.join(known)}.")
            )
        takes = list(known[name].get("properties", {}))
        unknown = [key for key in arguments if key not in takes]
        if unknown:
            # The SDK drops them; a model that misspelt one would believe it was heard.
            return _failure(
                InvalidError(
                    "unknown-argument",
                    f"{name} does not take {', '.join(map(repr, unknown))}.",
                    f"It takes {', '.join(takes)}.",
                )
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, TasksError):
                return _failure(cause)
            if isinstance(cause, ValidationError):
                problems = "; ".join(describe_problems(cause))
                return _failure(
                    InvalidError(
                        "invalid-arguments",
                        f"The arguments do not fit: {problems}.",
                        f"It takes {', '.join(takes)}.",
                    )
                )
            _logger.exception("tool %s failed", name)
            return _failure(
                TasksError(
                    "internal-error",
                    f"{name} failed for a reason of the service's own.",
                    "Nothing was changed; trying again may help.",
                )
            )


def _failure(error: TasksError) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=error.tool_text())], is_error=True)


def build_mcp(
    tasks: TaskService, schedules: ScheduleService, families: Collection[str] = FAMILIES, *, read_only: bool = False
) -> TasksMCP:
    """The server with the tools of these families; with ``read_only`` only those that change nothing."""
    chosen = [
        *(task_tools(tasks) if "tasks" in families else ()),
        *(schedule_tools(schedules) if "schedules" in families else ()),
    ]
    tools: list[Tool] = []
    for function, hints in chosen:
        if read_only and not hints.read_only_hint:
            continue
        tool = Tool.from_function(function, description=inspect.getdoc(function), annotations=hints)
        tool.parameters["additionalProperties"] = False
        tools.append(tool)
    return TasksMCP(
        name="tasks",
        title="Saved tasks and schedules",
        instructions=(
            "Saves tasks (an action with an input), runs them, publishes them, and has them run on schedules. "
            "Tasks and schedules are addressed by name or id; names are unique whatever the case."
        ),
        tools=tools,
        log_level="WARNING",
    )
