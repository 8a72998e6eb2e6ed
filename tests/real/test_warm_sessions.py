"""A rewound session is as good as a fresh one: the requests it causes are compared byte by byte."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from lab import REPOSITORY_TARGET

from evals.agents import AgentError
from evals.agents.claude_code import ClaudeCode
from evals.agents.first_call import first_call
from evals.agents.warm import WarmSessions, can_be_warm
from evals.embedded.model import ScriptedModel, parse_script
from evals.items import Item
from evals.target import load_target
from evals.tool_listing import list_all

SEARCH = {"calls": [{"name": "search_text", "input": {"query": "x"}}], "text": "Let me look."}
NOWHERE = {"calls": [{"name": "mcp__repository__nope", "input": {}}]}
SCRIPT = {
    "version": 1,
    "agent": [
        {"query": "search", "turns": [SEARCH]},
        {"query": "answer", "turns": [{"text": "I know."}]},
        {"query": "/clear the table", "turns": [SEARCH]},
        {"query": "nowhere", "turns": [NOWHERE, {"text": "Done."}]},
        {"query": "hang", "turns": [SEARCH], "faults": [{"kind": "hang", "times": "always"}]},
        {"query": "refused", "turns": [SEARCH], "faults": [{"kind": "400", "times": "always"}]},
    ],
}


def item(query: str, **metadata: Any) -> Item:
    knobs = {"category": "search_text", "kind": "tool-call", "expectedTools": ["search_text"], **metadata}
    return Item.model_validate({"id": "pr/search_text/x", "input": {"query": query}, "metadata": knobs})


Pools = Callable[[ClaudeCode], WarmSessions]


@pytest.fixture
async def pools() -> AsyncIterator[Pools]:
    """Makes pools that are closed with the test."""
    made: list[WarmSessions] = []

    def make(agent: ClaudeCode) -> WarmSessions:
        made.append(WarmSessions(agent))
        return made[-1]

    yield make
    for pool in made:
        await pool.close()
    assert not _children()


async def make_agent(folder: Path, model: ScriptedModel) -> ClaudeCode:
    (folder / "twogate.toml").write_text(REPOSITORY_TARGET)
    target = load_target(folder, {})
    credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
    return ClaudeCode(target, await list_all(target, [None]), credentials=credentials)


def bodies(model: ScriptedModel, query: str) -> list[bytes]:
    """The requests of a query, but for what names the session they were sent from."""
    found = []
    for record in model.requests:
        if record.query == query:
            assert record.body is not None
            body = json.loads(record.body) if isinstance(record.body, str | bytes) else dict(record.body)
            body.pop("metadata")
            found.append(json.dumps(body).encode())
    return found


async def test_a_rewound_session_asks_what_a_fresh_one_asks(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT), record_bodies=True) as model:
        agent = await make_agent(tmp_path, model)
        assert can_be_warm(agent), "the bundled Claude Code is not one of the versions rewinding was measured on"
        warm = pools(agent)
        measured = []
        for query in ("search", "answer", "search", "/clear the table", "search"):
            conversation = await warm.first_call(item(query))
            assert [call.tool for call in conversation.calls] == ([] if query == "answer" else ["search_text"])
            assert all(call.denied for call in conversation.calls)
            measured.append(conversation)
        assert warm.started == 1
        # tokens and cost are those of the trial, not of the session so far
        assert measured[0].usage == measured[2].usage == measured[4].usage
        assert measured[0].cost_usd == pytest.approx(measured[4].cost_usd)
        # the first was sent from a fresh session, the others after rewinding four different conversations
        first, *others = bodies(model, "search")
        assert len(others) == 2
        assert others == [first, first]

        fresh = await first_call(agent, item("search"))
        assert [call.arguments for call in fresh.calls] == [{"query": "x"}]
        # another session has another folder and another id, which Claude Code tells the model; nothing else may differ
        assert bodies(model, "search")[-1] != first
        assert _without_session(bodies(model, "search")[-1]) == _without_session(first)


def _without_session(body: bytes) -> str:
    # A folder's name may hold a "_", which Claude Code writes as "-" where it makes a name of the whole path.
    text = re.sub(r"twogate-[\w-]{8}", "twogate-folder", body.decode())
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "session", text)


async def test_a_session_that_did_anything_else_is_not_used_again(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT)) as model:
        warm = pools(await make_agent(tmp_path, model))
        (call,) = (await warm.first_call(item("nowhere"))).calls  # answered by Claude Code itself, interrupted
        assert call.tool == "nope"
        assert (await warm.first_call(item("search"))).calls[0].tool == "search_text"
        assert warm.started == 2
        with pytest.raises(AgentError, match="400"):
            await warm.first_call(item("refused"))
        assert (await warm.first_call(item("search"))).calls[0].tool == "search_text"
        assert warm.started == 3


async def test_a_trial_that_is_cut_off_takes_its_session_with_it(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT)) as model:
        warm = pools(await make_agent(tmp_path, model))
        await warm.first_call(item("search"))
        before = _children()
        assert before
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await warm.first_call(item("hang"))
        for _ in range(200):
            if not _children() & before:
                break
            await asyncio.sleep(0.1)
        assert not _children() & before
        assert (await warm.first_call(item("search"))).calls[0].tool == "search_text"
        assert warm.started == 2


async def test_a_session_that_dies_is_an_error_and_the_next_trial_gets_another(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT)) as model:
        warm = pools(await make_agent(tmp_path, model))
        await warm.first_call(item("search"))
        for process in _children():
            process.kill()
        with pytest.raises(AgentError, match=r"Claude Code failed|without a result"):
            await warm.first_call(item("search"))
        assert (await warm.first_call(item("search"))).calls[0].tool == "search_text"


async def test_many_trials_at_once_share_few_sessions(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT)) as model:
        warm = pools(await make_agent(tmp_path, model))
        queries = ["search", "answer"] * 12
        conversations = await asyncio.gather(*(warm.first_call(item(query)) for query in queries))
        assert [bool(one.calls) for one in conversations] == [query == "search" for query in queries]
        assert 1 <= warm.started <= 8


async def test_a_target_that_fails_fails_every_trial_that_waits(tmp_path: Path, pools: Pools) -> None:
    with ScriptedModel(parse_script(SCRIPT)) as model:
        agent = await make_agent(tmp_path, model)
        (launch,) = agent.tools.by_launch
        agent.tools.failed[launch] = "the server is gone"
        warm = pools(agent)
        results = await asyncio.gather(*(warm.first_call(item("search")) for _ in range(5)), return_exceptions=True)
        assert [str(one) for one in results] == ["the server is gone"] * 5


def _children() -> set[psutil.Process]:
    """Claude Code processes of this test."""
    found = {one for one in psutil.Process().children(recursive=True) if "claude" in one.name()}
    return {one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE}
