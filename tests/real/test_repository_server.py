"""The repository server as a process, driven by the SDK's client and by the official inspector from npm."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from evals.shipped import shipped

TOOLS = ["list_files", "read_file", "search_text", "verify_task"]
TASK = str(shipped("fixtures", "tasks", "rounding-bug", "task.json"))
REPOSITORY = str(shipped("fixtures", "repository"))
SERVE = ["-m", "evals", "serve", REPOSITORY, "--task", TASK]
TOKEN = "0123456789abcdef-a-token"


def stdio(*arguments: str, env: dict[str, str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=list(arguments) or SERVE, env=env)


@contextmanager
def http_server(*arguments: str, env: dict[str, str] | None = None, serve: list[str] | None = None) -> Iterator[str]:
    """The URL of a server process on a free port."""
    environment = {name: value for name, value in os.environ.items() if name != "TWOGATE_SERVE_TOKEN"}
    process = subprocess.Popen(
        [sys.executable, *(serve or SERVE), "--http", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **(env or {})},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        yield found.group()
    finally:
        process.terminate()
        assert process.wait(30) == 0


async def structured(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    # The text is the same data, for clients that read text only.
    assert json.loads(getattr(result.content[0], "text")) == result.structured_content  # noqa: B009
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text"))  # noqa: B009


async def use_all_four_tools(client: Client) -> None:
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS
    for tool in listed.tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.output_schema is not None
        assert tool.input_schema["additionalProperties"] is False
        assert len(tool.description or "") > 80
    files = await structured(client, "list_files", pattern="money.py")
    assert files == {"path": ".", "files": ["invoicing/money.py"], "count": 1, "truncated": False}
    text = await structured(client, "read_file", path="invoicing/config/settings.py", start_line=6, end_line=6)
    assert text["text"].startswith("DEFAULT_REQUEST_TIMEOUT = 12.0")
    assert (text["start_line"], text["end_line"], text["next_start_line"]) == (6, 6, None)
    found = await structured(client, "search_text", query="convert_currency(", glob="invoicing/**/*.py")
    assert {match["path"] for match in found["matches"]} == {
        "invoicing/exports/csv_export.py",
        "invoicing/legacy_currency.py",
        "invoicing/reports/monthly.py",
    }
    report = await structured(client, "verify_task", task_id="rounding-bug")
    assert (report["task_id"], report["passed"], report["deterministic"]) == ("rounding-bug", False, True)
    assert [check["pattern"] for check in report["checks"] if check["kind"] == "forbidden_pattern"] == [
        "round(",
        "float(",
    ]


async def test_the_sdk_client_lists_and_calls_the_four_tools_over_stdio() -> None:
    async with Client(stdio()) as client:
        assert client.server_info is not None
        assert client.server_info.name == "repository"
        await use_all_four_tools(client)


async def test_the_sdk_client_lists_and_calls_the_four_tools_over_http() -> None:
    with http_server() as url:
        async with Client(url) as client:
            await use_all_four_tools(client)


async def test_every_refusal_says_what_to_do_next(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("x = 1\n" * 1500)
    (tmp_path / "evil.txt").write_text("a" * 60 + "!\n")
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / "binary").write_bytes(b"\0")
    async with Client(stdio("-m", "evals", "serve", str(tmp_path))) as client:
        assert "Did you mean src/app.py? Call list_files" in await refusal(client, "read_file", path="app.py")
        assert "relative" in await refusal(client, "read_file", path="/etc/passwd")
        assert "'..' is refused" in await refusal(client, "read_file", path="../x")
        assert "outside the root" in await refusal(client, "read_file", path="secret")
        assert "Call list_files" in await refusal(client, "read_file", path="src")
        assert "read_file takes a file" in await refusal(client, "list_files", path="src/app.py")
        assert "Only text files" in await refusal(client, "read_file", path="binary")
        assert "has 1500 lines" in await refusal(client, "read_file", path="src/app.py", start_line=1501)
        assert "from top to bottom" in await refusal(client, "read_file", path="src/app.py", start_line=3, end_line=2)
        assert "literal text" in await refusal(client, "search_text", query="(", regex=True)
        assert "less than or equal to 500" in await refusal(client, "search_text", query="x", max_results=501)
        misspelt = await refusal(client, "search_text", query="x", max_result=5)
        assert "max_result" in misspelt
        assert "https://" not in misspelt
        no_task = await refusal(client, "verify_task", task_id="rounding-bug")
        assert "No task is registered" in no_task
        assert "--task TASK.json" in no_task
        page = await structured(client, "read_file", path="src/app.py")
        assert (page["end_line"], page["next_start_line"], page["total_lines"]) == (1000, 1001, 1500)


async def test_a_task_that_is_not_registered_is_answered_with_those_that_are() -> None:
    async with Client(stdio()) as client:
        answer = await refusal(client, "verify_task", task_id="rounding_bug")
        assert "Did you mean 'rounding-bug'? The tasks are: rounding-bug." in answer
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == "verify_task")
        assert tool.input_schema["properties"]["task_id"]["enum"] == ["rounding-bug"]


async def test_a_hostile_expression_is_stopped_and_others_are_answered_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text("a" * 60 + "!\n")
    async with Client(stdio("-m", "evals", "serve", str(tmp_path))) as client:
        hostile = asyncio.create_task(refusal(client, "search_text", query="(a+)+$", regex=True))
        await asyncio.sleep(0.5)
        files = await structured(client, "list_files")
        assert files["files"] == ["evil.txt"]
        assert not hostile.done()
        assert "stopped after 5 s" in await hostile


async def test_waiting_for_other_searches_counts_as_searching(tmp_path: Path) -> None:
    (tmp_path / "evil.txt").write_text("a" * 60 + "!\n")
    async with Client(stdio("-m", "evals", "serve", str(tmp_path))) as client:
        calls = [refusal(client, "search_text", query="(a+)+$", regex=True) for _ in range(9)]
        answers = [answer.partition(".")[0] for answer in await asyncio.gather(*calls)]
        # Those that wait end with those they wait for, and do not begin anew.
        assert set(answers) == {
            "Error executing tool search_text: The search was stopped after 5 s",
            "Error executing tool search_text: The server is busy with other searches",
        }
        found = await structured(client, "search_text", query="a+!", regex=True)
        assert found["count"] == 1


async def test_a_search_returns_no_more_than_a_model_can_read(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("some text, some more\n" * 70_000)
    async with Client(stdio("-m", "evals", "serve", str(tmp_path))) as client:
        result = await client.call_tool("search_text", {"query": "e", "max_results": 500, "context_lines": 20})
        assert isinstance(result.structured_content, dict)
        assert result.structured_content["truncated"] is True
        assert result.structured_content["count"] == len(result.structured_content["matches"]) > 100
        assert set(result.structured_content) == {
            "query", "matches", "count", "truncated", "files_searched", "files_skipped"
        }  # fmt: skip
        assert len(str(getattr(result.content[0], "text"))) < 61_000  # noqa: B009


async def test_directories_that_nest_too_deep_are_named(tmp_path: Path) -> None:
    deep = "/".join("d" * 66)
    (tmp_path / deep).mkdir(parents=True)
    (tmp_path / deep / "found.txt").write_text("needle")
    (tmp_path / "top.txt").write_text("needle")
    too_deep = "/".join("d" * 64)
    async with Client(stdio("-m", "evals", "serve", str(tmp_path))) as client:
        files = await structured(client, "list_files")
        assert (files["files"], files["too_deep"]) == (["top.txt"], [too_deep])
        for regex in (True, False):
            found = await structured(client, "search_text", query="needle", regex=regex)
            assert ([match["path"] for match in found["matches"]], found["too_deep"]) == (["top.txt"], [too_deep])
        inside = await structured(client, "search_text", query="needle", path=too_deep)
        assert [match["path"] for match in inside["matches"]] == [f"{deep}/found.txt"]
        assert "too_deep" not in inside


def slow_task(folder: Path) -> tuple[str, str]:
    """A workspace, and a task that forks and sleeps in it."""
    (folder / "root").mkdir()
    code = "import os, time\nfor _ in range(3): os.fork()\nopen('../begun', 'w').close()\ntime.sleep(600)"
    task = folder / "task.json"
    task.write_text(json.dumps({"task_id": "slow", "command": ["python", "-c", code], "timeout_seconds": 300}))
    return str(folder / "root"), str(task)


@pytest.mark.parametrize("ending", ["stdin closed", "SIGTERM", "SIGINT", "call cancelled"])
async def test_a_running_verification_ends_with_its_call(tmp_path: Path, ending: str) -> None:
    root, task = slow_task(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "evals", "serve", root, "--task", task),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(**message: Any) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    send(id=1, method="initialize", params=hello)
    await process.stdout.readline()
    send(method="notifications/initialized")
    send(id=2, method="tools/call", params={"name": "verify_task", "arguments": {"task_id": "slow"}})
    await wait_for(lambda: any(scratch.glob("*/begun")))
    below = psutil.Process(process.pid).children(recursive=True)
    # The supervisor, the command, and at least the child that its first fork made.
    assert len(below) >= 3
    if ending == "stdin closed":
        process.stdin.close()
    elif ending == "call cancelled":
        send(method="notifications/cancelled", params={"requestId": 2})
    else:
        process.send_signal(signal.Signals[ending])
    if ending != "call cancelled":
        await asyncio.wait_for(process.wait(), 30)
    await wait_for(lambda: not any(alive(child) for child in below) and not any(scratch.iterdir()))
    if ending == "call cancelled":
        send(id=3, method="tools/list")
        while json.loads(await process.stdout.readline()).get("id") != 3:
            continue
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_an_http_server_that_is_ended_leaves_nothing_of_a_running_verification(tmp_path: Path) -> None:
    root, task = slow_task(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    below: list[psutil.Process] = []
    with http_server(env={"TMPDIR": str(scratch)}, serve=["-m", "evals", "serve", root, "--task", task]) as url:
        async with Client(url) as client:
            call = asyncio.create_task(refusal(client, "verify_task", task_id="slow"))
            await wait_for(lambda: any(scratch.glob("*/begun")))
            (server,) = [each for each in psutil.Process().children() if "--http" in each.cmdline()]
            below = server.children(recursive=True)
            assert len(below) >= 3
            server.terminate()
            assert "stopped because the server is ending" in await call
    assert not any(alive(child) for child in below)
    assert list(scratch.iterdir()) == []


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def wait_for(condition: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true in time"
        await asyncio.sleep(0.05)


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream"}


def test_host_and_origin_are_checked() -> None:
    with http_server("--allow-host", "repository.internal") as url, httpx.Client(headers=HEADERS) as client:

        def status(**headers: str) -> int:
            return client.post(url, json=PING, headers=headers).status_code

        port = httpx.URL(url).port
        refused = (421, 403)
        assert status() not in refused
        assert status(Host=f"localhost:{port}") not in refused
        assert status(Host="repository.internal") not in refused
        assert status(Host="evil.example") == 421
        assert status(Host=f"127.0.0.1.evil.example:{port}") == 421
        assert status(Host=f"127.0.0.1:{int(port or 0) + 1}") == 421
        assert status(Origin=f"http://127.0.0.1:{port}") not in refused
        assert status(Origin="https://evil.example") == 403
        assert status(Origin="null") == 403


async def test_a_token_that_is_set_is_asked_for_and_accepted() -> None:
    with http_server(env={"TWOGATE_SERVE_TOKEN": TOKEN}) as url:
        for given in (None, "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer \u00e9"):
            headers = {**HEADERS, "Authorization": given.encode()} if given else HEADERS
            async with httpx.AsyncClient() as plain:
                answer = await plain.post(url, json=PING, headers=headers)  # type: ignore[arg-type]
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert TOKEN not in answer.text
        async with httpx_client(TOKEN) as http, Client(streamable_http_client(url, http_client=http)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS


def httpx_client(token: str) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    return create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})


def test_an_address_that_others_reach_needs_a_token_and_a_name() -> None:
    def lines(*arguments: str, token: str = "") -> list[str]:
        done = subprocess.run(
            [sys.executable, *SERVE, "--http", "--port", "0", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "TWOGATE_SERVE_TOKEN": token},
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        return done.stderr.splitlines()

    missing = lines("--host", "0.0.0.0")
    assert len(missing) == 2
    assert "a bearer token is required; set TWOGATE_SERVE_TOKEN" in missing[0]
    assert "--allow-host" in missing[1]
    (short,) = lines("--host", "192.0.2.1", token="short")
    assert "16 ASCII characters or more" in short
    assert "short" not in short.split(":", 2)[2]


async def test_another_address_is_served_with_a_token() -> None:
    # Every address of 127/8 is this machine's, but only as loopback; 0.0.0.0 is the one that others could reach.
    arguments = ("--host", "0.0.0.0", "--allow-host", "127.0.0.1")
    with http_server(*arguments, env={"TWOGATE_SERVE_TOKEN": TOKEN}) as url:
        local = url.replace("0.0.0.0", "127.0.0.1")
        async with httpx.AsyncClient() as plain:
            assert (await plain.post(local, json=PING, headers=HEADERS)).status_code == 401
        async with httpx_client(TOKEN) as http, Client(streamable_http_client(local, http_client=http)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS


def inspect(npm_bin: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(npm_bin / "mcp-inspector"), "--cli", "--format", "json", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(folder), "MCP_CATALOG_PATH": str(folder / "mcp.json")},
        timeout=120,
        check=False,
    )


def test_the_inspector_lists_and_calls_the_four_tools_over_stdio(npm_bin: Path, tmp_path: Path) -> None:
    inspect_all_four_tools(npm_bin, tmp_path, ["--", sys.executable, *SERVE])


def test_the_inspector_lists_and_calls_the_four_tools_over_http(npm_bin: Path, tmp_path: Path) -> None:
    with http_server(env={"TWOGATE_SERVE_TOKEN": TOKEN}) as url:
        header = ["--header", f"Authorization: Bearer {TOKEN}"]
        inspect_all_four_tools(npm_bin, tmp_path, ["--transport", "http", "--server-url", url, *header])


def inspect_all_four_tools(npm_bin: Path, folder: Path, server: list[str]) -> None:
    # Strict: a schema that some client could not read is an error.
    listed = inspect(npm_bin, folder, "--method", "tools/list", "--strict", *server)
    assert listed.returncode == 0, listed.stderr
    assert [tool["name"] for tool in result_of(listed)["tools"]] == TOOLS
    calls = {
        "list_files": {"path": "docs", "pattern": "*.md"},
        "read_file": {"path": "invoicing/money.py", "end_line": 1},
        "search_text": {"query": r"TODO\(LED-\d+\)", "regex": True, "context_lines": 1},
        "verify_task": {"task_id": "rounding-bug"},
    }
    results = {}
    for tool, arguments in calls.items():
        words = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        called = inspect(npm_bin, folder, *words, *server)
        assert called.returncode == 0, called.stderr
        results[tool] = result_of(called)["structuredContent"]
    assert "docs/architecture.md" in results["list_files"]["files"]
    assert results["read_file"]["text"] == '"""Amounts of money. The only module that rounds."""'
    assert [match["path"] for match in results["search_text"]["matches"]] == [
        "invoicing/config/features.py",
        "invoicing/money.py",
        "invoicing/reports/monthly.py",
    ]
    assert results["verify_task"]["passed"] is False


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answer = json.loads(done.stdout)
    result: dict[str, Any] = answer.get("result", answer)
    return result
