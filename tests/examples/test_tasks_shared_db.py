"""Several server processes on one database file at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent
from tasks_server_support import stdio


def error_type(result: CallToolResult) -> str | None:
    if not result.is_error:
        return None
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text.split("]")[0].removeprefix("[")


async def test_two_processes_that_start_and_write_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "tasks.db")
    async with Client(stdio("--db", path)) as one, Client(stdio("--db", path)) as two:
        both = (one, two)

        async def outcomes(tool: str, arguments: list[dict[str, Any]]) -> list[list[str | None]]:
            """What each process answered to each call, all made at once."""
            results = await asyncio.gather(*(client.call_tool(tool, each) for each in arguments for client in both))
            kinds = [error_type(result) for result in results]
            return [sorted(pair, key=str) for pair in zip(kinds[::2], kinds[1::2], strict=True)]

        # Of two that create the same name, exactly one gets it.
        created = await outcomes(
            "create_task",
            [{"name": f"eval-race-{number}", "action": "count-words", "input": {"text": "a"}} for number in range(15)],
        )
        assert created == [[None, "task-name-taken"]] * 15

        # No run is lost and no number given twice.
        ran = await outcomes("run_task", [{"task": "eval-race-0"}] * 20)
        assert ran == [[None, None]] * 20
        page = await two.call_tool("list_runs", {"task": "eval-race-0", "limit": 100})
        assert page.structured_content is not None
        assert [run["number"] for run in page.structured_content["items"]] == list(range(40, 0, -1))

        deleted = await outcomes("delete_task", [{"task": f"eval-race-{number}"} for number in range(15)])
        assert deleted == [[None, "task-not-found"]] * 15

        # Both planted the examples, once.
        left = await one.call_tool("list_tasks", {})
        assert left.structured_content is not None
        assert left.structured_content["total"] == 3


async def test_many_processes_may_create_the_file_together(tmp_path: Path) -> None:
    path = str(tmp_path / "tasks.db")

    async def count() -> int:
        async with Client(stdio("--db", path)) as client:
            result = await client.call_tool("list_tasks", {})
            assert result.structured_content is not None
            total: int = result.structured_content["total"]
            return total

    assert await asyncio.gather(*(count() for _ in range(4))) == [3, 3, 3, 3]
