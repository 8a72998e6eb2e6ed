"""The MCP server, driven by the SDK's client over its real transports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent
from tasks_server_support import ROOT, SCRIPT, serving, stdio

from examples.tasks_server.database import Database
from examples.tasks_server.mcp_app import build_mcp
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService

TASK_TOOLS = {
    "create_task",
    "get_task",
    "list_tasks",
    "update_task",
    "delete_task",
    "run_task",
    "publish_task",
    "unpublish_task",
    "list_runs",
    "get_run",
}
SCHEDULE_TOOLS = {"create_schedule", "get_schedule", "list_schedules", "update_schedule", "delete_schedule"}


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    structured: dict[str, Any] | None = result.structured_content
    assert structured is not None
    assert json.loads(text_of(result)) == structured
    return structured


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that must be refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


@asynccontextmanager
async def in_process() -> AsyncIterator[Client]:
    """A client of a server in this process. No fixture: the client must be left by the task that entered it."""
    database = Database(None)
    async with Client(build_mcp(TaskService(database), ScheduleService(database))) as connected:
        yield connected
    database.close()


async def test_a_whole_life_over_stdio() -> None:
    async with Client(stdio()) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TASK_TOOLS | SCHEDULE_TOOLS
        made = await call(client, "create_task", name="eval-Sum", action="sum-numbers", description="Adds up")
        assert (await call(client, "get_task", task="EVAL-SUM"))["id"] == made["id"]
        run = await call(client, "run_task", task="eval-sum", input={"numbers": [1, 2.5]})
        assert (run["status"], run["result"]["total"]) == ("succeeded", 3.5)
        assert (await call(client, "get_run", task="eval-sum"))["number"] == 1
        await call(client, "publish_task", task="eval-sum")
        planned = await call(client, "create_schedule", name="eval-s", task=made["id"], cron="0 6 * * *")
        assert planned["next_run_at"].endswith("T06:00:00Z")
        assert (await refused(client, "delete_task", task="eval-sum")).startswith("[task-is-published] ")
        await call(client, "unpublish_task", task="eval-sum")
        assert (await refused(client, "delete_task", task="eval-sum")).startswith("[task-has-schedules] ")
        await call(client, "delete_schedule", schedule="eval-s")
        assert (await call(client, "delete_task", task="eval-sum"))["name"] == "eval-Sum"
        assert (await refused(client, "get_task", task="eval-sum")).startswith("[task-not-found] ")
    # The next server starts afresh, with the examples alone.
    async with Client(stdio()) as client:
        names = [task["name"] for task in (await call(client, "list_tasks"))["items"]]
        assert names == ["example-welcome-mail", "example-invoice-total", "example-word-count"]


async def test_it_starts_by_path_from_any_folder(tmp_path: Path) -> None:
    # Without the project on the path, and with a module of the folder's own name in the way.
    (tmp_path / "rules.py").write_text("raise SystemExit('the wrong module')")
    launch = StdioServerParameters(command=sys.executable, args=[str(SCRIPT), "--tools=schedules"], cwd=tmp_path)
    async with Client(launch) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == SCHEDULE_TOOLS
    assert os.listdir(tmp_path) == ["rules.py"]  # noqa: PTH208


async def test_families_and_read_only_choose_the_tools() -> None:
    async with Client(stdio("--tools", "tasks", "--read-only")) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"get_task", "list_tasks", "list_runs", "get_run"}
        assert "[unknown-tool]" in await refused(client, "delete_task", task="example-word-count")


async def test_streamable_http_beside_rest_over_the_same_state() -> None:
    with serving("--http", "0", "--rest", "0", announcements=2) as server:
        async with Client(server.urls["MCP"]) as client:
            await call(client, "create_task", name="eval-shared", action="count-words")
            async with httpx.AsyncClient(base_url=server.urls["REST"]) as rest:
                assert (await rest.get("/tasks/eval-shared")).json()["data"]["action"] == "count-words"
                assert (await rest.delete("/tasks/eval-shared")).status_code == 204
            assert "[task-not-found]" in await refused(client, "get_task", task="eval-shared")
        # A web page that reaches the port through a name of its own is refused.
        async with httpx.AsyncClient(headers={"Host": "attacker.example.com"}) as attacker:
            assert (await attacker.post(server.urls["MCP"], json={})).status_code == 421


async def test_rest_beside_stdio() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "examples.tasks_server",
        "--stdio",
        "--rest",
        "0",
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().split()[-1]
    async with httpx.AsyncClient() as rest:
        assert (await rest.get(f"{url}/tasks")).status_code == 200
    # stdin's end is the end of the MCP session, and of the server; nothing but MCP went to stdout.
    stdout, _ = await process.communicate(b"")
    assert (process.returncode, stdout) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_http_server_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    with serving("--rest", "0", "--db", str(path)) as server:
        httpx.post(f"{server.urls['REST']}/tasks", json={"name": "eval-kept", "action": "count-words"})
        os.kill(server.process.pid, number)
        assert server.process.wait(timeout=20) == 0
    # Closing the last connection folded the write-ahead log in.
    assert [found.name for found in tmp_path.iterdir()] == ["tasks.db"]
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM tasks WHERE name = 'eval-kept'").fetchone() == (1,)
    db.close()


async def test_every_tool_tells_its_limits_and_its_effects() -> None:
    async with in_process() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool in tools.values():
            assert tool.description
            assert "\n  " not in tool.description
            assert tool.annotations is not None
            assert tool.output_schema is not None
            assert tool.input_schema["additionalProperties"] is False
            for name, schema in tool.input_schema["properties"].items():
                assert schema.get("description"), f"{tool.name}.{name} has no description"

        def hints(tool: str) -> tuple[bool | None, bool | None, bool | None]:
            given = tools[tool].annotations
            assert given is not None
            return given.read_only_hint, given.destructive_hint, given.idempotent_hint

        assert {name for name in tools if hints(name)[0]} == {
            "get_task",
            "list_tasks",
            "list_runs",
            "get_run",
            "get_schedule",
            "list_schedules",
        }
        assert hints("delete_task") == (False, True, False)
        assert hints("publish_task") == (False, False, True)
        assert hints("create_task") == (False, False, False)
        name = tools["create_task"].input_schema["properties"]["name"]
        assert (name["minLength"], name["maxLength"], name["pattern"][0]) == (3, 63, "^")
        action = tools["create_task"].input_schema["properties"]["action"]
        assert action["enum"] == ["count-words", "sum-numbers", "fill-template", "sort-lines"]
        assert tools["list_tasks"].input_schema["properties"]["limit"]["maximum"] == 100


async def test_every_refusal_has_a_type_and_says_how_to_report_it() -> None:
    async with in_process() as client:
        cases: list[tuple[str, str, dict[str, Any]]] = [
            ("name-too-long", "create_task", {"name": "x" * 64, "action": "count-words"}),
            ("unknown-action", "create_task", {"name": "eval-x", "action": "dance"}),
            ("invalid-arguments", "create_task", {"name": 7, "action": "count-words"}),
            ("invalid-arguments", "create_task", {"name": "eval-x"}),
            ("unknown-argument", "create_task", {"name": "eval-x", "action": "count-words", "inputs": {}}),
            ("task-not-found", "run_task", {"task": "eval-gone"}),
            ("invalid-limit", "list_tasks", {"limit": 1000}),
            ("invalid-cursor", "list_tasks", {"cursor": "2"}),
            ("task-not-found", "create_schedule", {"name": "eval-x", "task": "eval-gone", "cron": "@daily"}),
            ("invalid-cron", "create_schedule", {"name": "eval-x", "task": "eval-gone", "cron": "daily"}),
            ("unknown-tool", "drop_tables", {}),
        ]
        for kind, tool, arguments in cases:
            text = await refused(client, tool, **arguments)
            assert text.startswith(f"[{kind}] "), text
            assert text.endswith(f"quote the type {kind}."), text


async def test_wrong_arguments_are_named_without_the_validators_jargon() -> None:
    async with in_process() as client:
        text = await refused(client, "create_task", name=7)
        assert "name: Input should be a valid string; action: Field required" in text
        assert "pydantic" not in text
        assert "takes name, action, input, title, description" in text


async def test_a_failure_of_the_service_itself_shows_nothing_inside() -> None:
    database = Database(None)
    server = build_mcp(TaskService(database), ScheduleService(database))
    database.close()
    async with Client(server) as broken:
        text = await refused(broken, "list_tasks")
    assert text.startswith("[internal-error] ")
    assert "database" not in text


async def test_an_input_sent_as_json_text_is_taken() -> None:
    async with in_process() as client:
        made = await call(client, "create_task", name="eval-text", action="sum-numbers", input='{"numbers": [4]}')
        assert made["input"] == {"numbers": [4]}


async def test_parallel_calls_each_get_their_answer() -> None:
    async with in_process() as client:
        await call(client, "create_task", name="eval-many", action="count-words", input={"text": "a b"})
        runs = await asyncio.gather(*(call(client, "run_task", task="eval-many") for _ in range(20)))
        assert sorted(run["number"] for run in runs) == list(range(1, 21))


async def test_lists_are_followed_by_cursor() -> None:
    async with in_process() as client:
        for number in range(5):
            await call(client, "create_task", name=f"eval-{number}-x", action="count-words")
        seen: list[str] = []
        cursor = None
        while True:
            page = await call(client, "list_tasks", limit=2, search="eval-", cursor=cursor)
            seen += [task["name"] for task in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [f"eval-{number}-x" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (["--tools", "runs"], 2, "runs is no family; use tasks or schedules"),
        (["--tools", ","], 2, "no family"),
        (["--flaky", "429"], 2, "STATUS:COUNT"),
        (["--flaky", "200:1", "--rest", "0"], 2, "must be 400 to 599"),
        (["--flaky", "429:1"], 2, "add --rest PORT"),
        (["--db", "/proc/none/tasks.db"], 1, "error: cannot use /proc/none/tasks.db"),
        (["--http", "99999"], 2, "99999"),
    ],
)
def test_bad_options_yield_one_clear_line(arguments: list[str], status: int, line: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.tasks_server", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == status
    assert line in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with serving("--rest", "0") as server:
        port = str(httpx.URL(server.urls["REST"]).port)
        ended = subprocess.run(
            [sys.executable, "-m", "examples.tasks_server", "--rest", port],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: cannot listen on 127.0.0.1")
