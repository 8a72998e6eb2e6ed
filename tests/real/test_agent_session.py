"""What one session of Claude Code costs and measures: its prompt can be cached, its calls are timed where they run."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from lab import REPOSITORY, agent_item, tool_call_item

from evals.agents import AgentError
from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.agents.first_call import first_call
from evals.agents.to_completion import to_completion
from evals.embedded.model import ScriptedModel, parse_script
from evals.items import Item
from evals.scoring.tool_call import score_tool_call
from evals.scoring.tool_errors import score_tool_errors
from evals.target import DEFAULT_FAIL_MESSAGE, load_target
from evals.tool_listing import list_all

SECONDS = 0.3
ODD = REPOSITORY / "tests" / "agents" / "odd_server.py"
TARGET = f"""
[servers.odd]
command = "${{TWOGATE_PYTHON}}"
args = ["{ODD}", "stdio"]
"""
SLEEP = {"calls": [{"name": "mcp__odd__sleep", "input": {"seconds": SECONDS}}]}
FAIL = {"calls": [{"name": "mcp__odd__protocol_error", "input": {}}]}
DOTTED = {"calls": [{"name": "mcp__odd__dotted_name_x", "input": {}}]}
DELEGATE = {"calls": [{"name": "Agent", "input": {"description": "do it", "prompt": "the errand"}}]}
SCRIPT = {
    "version": 1,
    "agent": [
        {"query": "Wait", "turns": [SLEEP, FAIL, {"text": "Done."}]},
        {"query": "Have it done", "turns": [DELEGATE, {"text": "Done."}]},
        {"query": "the errand", "turns": [FAIL, {"text": "It did not work."}]},
        {"query": "Break it", "turns": [DOTTED, {"text": "Done."}]},
        {"query": "First", "turns": [DOTTED]},
        {
            "query": "Ask for much",
            "turns": [
                {"calls": [{"name": "mcp__files__roots", "input": {}}]},
                {"calls": [{"name": "mcp__odd__sleep", "input": {"seconds": 4}}]},
                {"calls": [{"name": "mcp__slow__large", "input": {}}]},
                {"calls": [{"name": "mcp__slow__sleep", "input": {"seconds": 2}}]},
                {"text": "Done."},
            ],
        },
        {"query": "Nowhere", "turns": [{"calls": [{"name": "mcp__odd__gone", "input": {}}]}, {"text": "Done."}]},
        {"query": "End it", "turns": [{"calls": [{"name": "mcp__odd__die", "input": {}}]}, {"text": "Done."}]},
    ],
}


async def make_agent(folder: Path, model: ScriptedModel, target_text: str = TARGET) -> ClaudeCode:
    (folder / "twogate.toml").write_text(target_text)
    target = load_target(folder, {})
    credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
    return ClaudeCode(target, await list_all(target, [None]), credentials=credentials)


async def starve() -> None:
    """Keep the event loop from reading for longer than a call takes, over and over."""
    while True:
        time.sleep(SECONDS * 2)  # noqa: ASYNC251  the point of it
        await asyncio.sleep(0.01)


async def test_a_call_that_fails_for_a_subagent_fails_the_trial(tmp_path: Path) -> None:
    item = Item.model_validate(agent_item("errand", "Have it done"))
    with ScriptedModel(parse_script(SCRIPT)) as model:
        conversation = await to_completion(await make_agent(tmp_path, model), item)
    delegated, failed = conversation.calls
    assert (delegated.tool, failed.tool, failed.parent) == ("Agent", "protocol_error", delegated.id)
    assert conversation.answers == ("Done.",)
    score = score_tool_errors(conversation, item, {"odd"})
    assert not score.passed
    assert score.unexpected == (failed,)


async def test_a_tool_whose_name_claude_code_has_to_change_is_known_by_its_own(tmp_path: Path) -> None:
    name = "dotted.name/x"
    broken = Item.model_validate(agent_item("broken", "Break it", failTools=[name], expectedErrors=[name]))
    first = Item.model_validate(tool_call_item("first", "First", ["sleep"], expectedTools=["dotted.name/x"]))
    with ScriptedModel(parse_script(SCRIPT)) as model:
        agent = await make_agent(tmp_path, model)
        conversation = await to_completion(agent, broken)
        (measured,) = (await first_call(agent, first)).calls
    (call,) = conversation.calls
    assert (call.tool, call.denied, call.is_error, call.executed) == (name, True, True, False)
    assert call.result == DEFAULT_FAIL_MESSAGE, "the model is told of the server's failure and of nothing else"
    score = score_tool_errors(conversation, broken, {"odd"})
    assert (score.passed, score.reason) == (True, f"only expected errors: 1 call of {name}")
    found = score_tool_call(
        first, measured, servers_under_test={"odd"}, tools_under_test={name}, builtin_tools=BUILTIN_TOOLS
    )
    assert (found.passed, found.reason) == (True, name)


async def test_a_call_to_no_tool_is_the_last_that_is_paid_for_however_late_it_is_read(tmp_path: Path) -> None:
    """Claude Code answers it without asking whether the call may run, and would ask the model again."""
    item = Item.model_validate(tool_call_item("nowhere", "Nowhere", ["sleep"]))
    with ScriptedModel(parse_script(SCRIPT)) as model:
        agent = await make_agent(tmp_path, model)
        async with asyncio.TaskGroup() as group:
            busy = group.create_task(starve())
            conversation = await first_call(agent, item)
            busy.cancel()
        assert [call.name for call in conversation.calls] == ["mcp__odd__gone"]
        assert len([request for request in model.requests if request.query == "Nowhere"]) == 1


async def test_each_server_has_its_own_limit_and_roots_and_what_is_too_large_is_an_error(tmp_path: Path) -> None:
    """A result that Claude Code does not pass on comes to the agent as an error, which Claude Code calls none."""
    data = tmp_path / "data"
    data.mkdir()
    target = (
        TARGET
        + "tool_timeout = 1.5\n"
        + TARGET.replace("servers.odd", "servers.slow")
        + f"""
[servers.files]
command = "${{TWOGATE_PYTHON}}"
args = ["{ODD.with_name("roots_server.py")}"]
roots = ["data"]
"""
    )
    item = Item.model_validate(agent_item("much", "Ask for much"))
    with ScriptedModel(parse_script(SCRIPT)) as model:
        conversation = await to_completion(await make_agent(tmp_path, model, target), item)
    roots, slept, large, other = conversation.calls
    assert roots.result is not None
    work, offered = roots.result.split()
    assert offered == data.as_uri()
    assert work.endswith("/work")
    assert (slept.is_error, other.is_error) == (True, False)
    assert large.is_error
    assert "exceeds maximum allowed tokens" in str(large.result)
    assert score_tool_errors(conversation, item, {"odd", "slow"}).unexpected == (slept, large)


async def test_of_two_tools_with_one_name_the_session_has_one(tmp_path: Path) -> None:
    code = ["from mcp.server.mcpserver import MCPServer", "server = MCPServer('one')"]
    code += [f"server.add_tool(lambda: 'x', name='{name}', description='x')" for name in ("read.file", "read_file")]
    (tmp_path / "server.py").write_text("\n".join([*code, "server.run('stdio')"]))
    target = '[servers.one]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["server.py"]\n'
    script = {"version": 1, "agent": [{"query": "Go", "turns": [{"text": "Done."}]}]}
    with ScriptedModel(parse_script(script)) as model:
        agent = await make_agent(tmp_path, model, target)
        conversation = await to_completion(agent, Item.model_validate(agent_item("go", "Go")))
    assert conversation.final_answer == "Done."


async def test_a_servers_secret_reaches_it_and_stands_on_no_command_line(tmp_path: Path) -> None:
    """Every user of a machine can read the command lines on it."""
    secret = "tok-3b5d5c3712955042"
    item = Item.model_validate(agent_item("secret", "Wait"))
    with ScriptedModel(parse_script(SCRIPT)) as model:
        agent = await make_agent(tmp_path, model, TARGET + f'env = {{ API_TOKEN = "{secret}" }}\n')
        async with agent.session(item, hooks={}, permission_mode="bypassPermissions", max_turns=1) as client:
            assert (await client.get_mcp_status())["mcpServers"][0]["status"] == "connected"
            processes = psutil.Process().children(recursive=True)
            lines = [" ".join(process.cmdline()) for process in processes]
            assert any("--mcp-config" in line for line in lines)
            assert not [line for line in lines if secret in line]
            assert [process for process in processes if process.environ().get("API_TOKEN") == secret]


@pytest.mark.parametrize("transport", ["stdio", "sse", "http"])
async def test_a_server_that_ends_under_a_call_is_an_error_even_when_it_comes_back(
    tmp_path: Path, transport: str
) -> None:
    """The model gets an error like any other, and expectedErrors would explain it away."""
    item = Item.model_validate(agent_item("end", "End it", expectedErrors=["die"]))
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel(parse_script(SCRIPT)))
        if transport == "stdio":
            agent = await make_agent(tmp_path, model)
        else:
            port = stack.enter_context(restarting_server(transport))
            path = "mcp" if transport == "http" else "sse"
            target = f'[servers.odd]\nurl = "http://127.0.0.1:{port}/{path}"\ntransport = "{transport}"\n'
            agent = await make_agent(tmp_path, model, target)
        with pytest.raises(AgentError, match="the server 'odd' was gone during the call of die") as raised:
            await to_completion(agent, item)
    assert raised.value.conversation is not None
    assert raised.value.conversation.final_answer == "Done."


@contextmanager
def restarting_server(transport: str) -> Iterator[int]:
    """The odd server on a port, started again whenever it ends, as an orchestrator does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, str(ODD), transport, str(port)]
    ended = threading.Event()
    running = [subprocess.Popen(command)]

    def restart() -> None:
        while not ended.wait(0.05):
            if running[-1].poll() is not None:
                running.append(subprocess.Popen(command))

    watcher = threading.Thread(target=restart)
    watcher.start()
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield port
    finally:
        ended.set()
        watcher.join()
        running[-1].kill()
        running[-1].wait()


def prompt(body: Any) -> tuple[str, str]:
    """The system prompt and the tools of a request, which a provider's prompt cache goes by."""
    request = json.loads(body) if isinstance(body, str | bytes) else body
    return json.dumps(request["system"]), json.dumps(request["tools"])


async def test_a_call_takes_as_long_as_it_ran_and_two_trials_send_the_same_prompt(tmp_path: Path) -> None:
    item = Item.model_validate(agent_item("wait", "Wait"))
    with ScriptedModel(parse_script(SCRIPT), record_bodies=True) as model:
        agent = await make_agent(tmp_path, model)
        first = await to_completion(agent, item)
        async with asyncio.TaskGroup() as group:
            busy = group.create_task(starve())
            starved = await to_completion(agent, item)
            busy.cancel()
        for conversation in (first, starved):
            slept, failed = conversation.calls
            assert slept.returned_at is not None
            assert failed.returned_at is not None
            took = (slept.returned_at - slept.called_at).total_seconds()
            assert SECONDS - 0.01 <= took < 30, "read off arrivals, a starved one took no time at all"
            assert failed.is_error
            assert slept.called_at < slept.returned_at <= failed.returned_at <= conversation.ended_at

        requests = [prompt(record.body) for record in model.requests if record.query == "Wait"]
        assert len(requests) == 6
        assert len(set(requests)) == 1, "a prompt that differs from trial to trial is paid for in full each time"
