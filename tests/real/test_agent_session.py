"""What one session of Claude Code costs and measures: its prompt can be cached, its calls are timed where they run."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from lab import REPOSITORY, agent_item

from evals.agents.claude_code import ClaudeCode
from evals.agents.to_completion import to_completion
from evals.embedded.model import ScriptedModel, parse_script
from evals.items import Item
from evals.scoring.tool_errors import score_tool_errors
from evals.target import load_target
from evals.tool_listing import list_all

SECONDS = 0.3
TARGET = f"""
[servers.odd]
command = "${{TWOGATE_PYTHON}}"
args = ["{REPOSITORY}/tests/agents/odd_server.py", "stdio"]
"""
SLEEP = {"calls": [{"name": "mcp__odd__sleep", "input": {"seconds": SECONDS}}]}
FAIL = {"calls": [{"name": "mcp__odd__protocol_error", "input": {}}]}
DELEGATE = {"calls": [{"name": "Agent", "input": {"description": "do it", "prompt": "the errand"}}]}
SCRIPT = {
    "version": 1,
    "agent": [
        {"query": "Wait", "turns": [SLEEP, FAIL, {"text": "Done."}]},
        {"query": "Have it done", "turns": [DELEGATE, {"text": "Done."}]},
        {"query": "the errand", "turns": [FAIL, {"text": "It did not work."}]},
    ],
}


async def make_agent(folder: Path, model: ScriptedModel) -> ClaudeCode:
    (folder / "twogate.toml").write_text(TARGET)
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
