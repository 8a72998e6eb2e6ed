"""The OpenRouter judge: the real openai client against the scripted model and a store."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from evals.conversation import Conversation, ToolCall, Turn, Usage
from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.model import ScriptedModel, parse_script
from evals.embedded.serving import LoopbackServer
from evals.judges import JudgeError, Judgement, openrouter_judge
from evals.recording.client import open_recorder
from evals.recording.server import LangfuseServer
from evals.scoring.judge import ASK_AGAIN, INSTRUCTIONS
from evals.settings import LangfuseKeys

QUERY = "Delete the task old-report."
REFERENCE = "PASS only if old-report is deleted."
KEY = "sk-or-secret-key"
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def conversation(answer: str = "Deleted.") -> Conversation:
    call = ToolCall(
        id="1",
        name="mcp__tasks__delete_task",
        server="tasks",
        arguments={"task": "old-report"},
        called_at=NOW,
        result="RESULT-NOT-SHOWN",
        is_error=True,
    )
    turns = (
        Turn(message_id="1", calls=(call,), started_at=NOW, ended_at=NOW),
        Turn(message_id="2", text=answer, started_at=NOW, ended_at=NOW),
    )
    return Conversation(query=QUERY, turns=turns, started_at=NOW, ended_at=NOW)


@contextmanager
def scripted(**entry: Any) -> Iterator[ScriptedModel]:
    script = {"version": 1, "judge": [{"query": QUERY, **entry}]}
    with ScriptedModel(parse_script(script), record_bodies=True) as model:
        yield model


async def judged(model: ScriptedModel, answer: str = "Deleted.", **options: Any) -> Judgement:
    judge = openrouter_judge("some/model", KEY, model.openai_base_url, **options)
    return await judge.judge(QUERY, REFERENCE, conversation(answer))


async def failed(model: ScriptedModel, **options: Any) -> str:
    with pytest.raises(JudgeError) as raised:
        await judged(model, **options)
    return raised.value.cause


async def test_a_verdict_with_its_reason_cost_and_tokens() -> None:
    usage = {"input_tokens": 300, "output_tokens": 20, "cache_read_input_tokens": 100, "cost": 0.0125}
    with scripted(verdict="PASS", reason="It was deleted.", usage=usage) as model:
        found = await judged(model)
        assert (found.verdict, found.reason, found.cost_usd) == ("PASS", "It was deleted.", 0.0125)
        [vote] = found.votes
        assert (vote.model, vote.verdict, vote.cost_usd) == ("some/model", "PASS", 0.0125)
        assert vote.usage == Usage(input_tokens=300, output_tokens=20, cache_read_tokens=100)
        [request] = model.requests
        body = request.body
    assert body["usage"] == {"include": True}
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["reason", "verdict"]
    system, user = body["messages"]
    assert system == {"role": "system", "content": INSTRUCTIONS}
    assert all(text in user["content"] for text in (QUERY, REFERENCE, '{"task": "old-report"}', "Deleted."))
    assert "RESULT-NOT-SHOWN" not in json.dumps(body)


async def test_an_unknown_cost_is_none_not_zero() -> None:
    with scripted(verdict="FAIL") as model:
        found = await judged(model)
    assert (found.verdict, found.cost_usd) == ("FAIL", None)


async def test_an_answer_that_cannot_be_read_is_asked_for_again_twice() -> None:
    usage = {"input_tokens": 10, "output_tokens": 1, "cost": 0.5}
    answers: list[dict[str, Any]] = [
        {"raw": "I would say PASS.", "usage": usage},
        {"raw": '{"verdict": "PASS"} {"verdict": "FAIL"}', "usage": usage},
        {"verdict": "FAIL", "reason": "Not deleted.", "usage": usage},
    ]
    with scripted(answers=answers) as model:
        found = await judged(model)
        bodies = [request.body for request in model.requests]
    assert (found.verdict, found.reason) == ("FAIL", "Not deleted.")
    # Every answer was paid for.
    assert found.cost_usd == 1.5
    assert found.votes[0].usage == Usage(input_tokens=30, output_tokens=3)
    assert [len(body["messages"]) for body in bodies] == [2, 4, 4]
    assert bodies[1]["messages"][2:] == [
        {"role": "assistant", "content": "I would say PASS."},
        {"role": "user", "content": ASK_AGAIN},
    ]


@pytest.mark.parametrize(("raw", "said"), [("PASS", 'the last: "PASS"'), ("", "the last: empty")])
async def test_an_answer_never_readable_is_an_error_not_a_guess(raw: str, said: str) -> None:
    with scripted(raw=raw) as model:
        cause = await failed(model)
        assert len(model.requests) == 3
    assert cause == f"the judge some/model gave no readable verdict in 3 answers; {said}"


async def test_a_refused_response_format_falls_back_and_is_remembered() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "400", "times": 1}]) as model:
        judge = openrouter_judge("some/model", KEY, model.openai_base_url)
        for _ in range(2):
            assert (await judge.judge(QUERY, REFERENCE, conversation())).verdict == "PASS"
        formats = [request.body.get("response_format", {}).get("type") for request in model.requests]
    assert formats == ["json_schema", "json_object", "json_object"]


async def test_the_barest_form_has_nothing_a_provider_could_refuse() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "400", "times": 3}]) as model:
        assert (await judged(model)).verdict == "PASS"
        bodies = [request.body for request in model.requests]
    assert ["response_format" in body for body in bodies] == [True, True, False, False]
    assert set(bodies[-1]) == {"model", "messages", "max_tokens"}


async def test_a_request_refused_in_every_form_is_an_error() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "400", "times": "always", "message": "no such model"}]) as model:
        assert await failed(model) == "the judge some/model failed: HTTP 400: no such model"
        assert len(model.requests) == 4


async def test_a_rate_limit_is_tried_again() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "429", "retry_after": 0.01, "times": 2}]) as model:
        assert (await judged(model)).verdict == "PASS"
        assert [request.status for request in model.requests] == [429, 429, 200]


async def test_tries_are_bounded() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "503", "retry_after": 0.01, "times": "always"}]) as model:
        assert await failed(model) == "the judge some/model failed: HTTP 503: Service unavailable"
        assert len(model.requests) == 3


async def test_a_refused_key_is_named_and_not_shown() -> None:
    fault = {"kind": "401", "times": "always", "message": f"Incorrect API key: {KEY}"}
    with scripted(verdict="PASS", faults=[fault]) as model:
        cause = await failed(model)
    assert cause == "the judge some/model failed: HTTP 401: Incorrect API key: [secret] (check OPENROUTER_API_KEY)"


async def test_a_lost_connection_is_an_error() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "drop", "times": "always"}]) as model:
        assert "no connection to http" in await failed(model)


async def test_a_body_that_is_not_json_is_an_error() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "malformed", "times": "always"}]) as model:
        cause = await failed(model)
        assert len(model.requests) == 3
    assert cause.startswith("the judge some/model gave no readable verdict in 3 answers; the last: no JSON (")


@pytest.mark.parametrize("traced", [False, True])
async def test_a_web_page_in_place_of_an_answer_is_an_error(traced: bool, store: EmbeddedStore) -> None:
    keys = LangfuseKeys(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
    public_key = store.public_key if traced else None
    with (
        open_recorder(LangfuseServer(keys, embedded=True)),
        service(lambda: HTMLResponse("<h1>It works!</h1>")) as url,
        pytest.raises(JudgeError) as raised,
    ):
        await openrouter_judge("m", KEY, url, langfuse_public_key=public_key).judge(QUERY, REFERENCE, conversation())
    assert raised.value.cause.startswith("the judge m ")
    if not traced:
        assert raised.value.cause.endswith('no chat completion: "<h1>It works!</h1>" (check OPENROUTER_BASE_URL)')


async def test_a_service_that_hangs_ends_at_the_time_limit() -> None:
    with scripted(verdict="PASS", faults=[{"kind": "hang", "times": "always"}]) as model:
        assert await failed(model, timeout=0.3) == "the judge some/model gave no verdict within 0.3 s"


@contextmanager
def service(answer: Any) -> Iterator[str]:
    """A chat API that gives one fixed answer, as services do that are no scripted model."""

    async def endpoint(request: Request) -> Any:
        return answer()

    app = Starlette(routes=[Route("/v1/chat/completions", endpoint, methods=["POST"])])
    with LoopbackServer(app, "127.0.0.1", 0) as server:
        yield f"{server.url}/v1"


async def test_openrouters_error_in_a_good_answer_is_an_error() -> None:
    body = {"error": {"code": 502, "message": "Upstream provider is gone"}, "user_id": "u"}
    with service(lambda: JSONResponse(body)) as url, pytest.raises(JudgeError) as raised:
        await openrouter_judge("some/model", KEY, url).judge(QUERY, REFERENCE, conversation())
    assert raised.value.cause.endswith("in 3 answers; the last: an error: Upstream provider is gone")


async def test_an_answer_cut_off_is_said_to_be() -> None:
    choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": '{"reason": "Thi'}}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    with service(lambda: JSONResponse(body)) as url, pytest.raises(JudgeError) as raised:
        await openrouter_judge("some/model", KEY, url).judge(QUERY, REFERENCE, conversation())
    assert raised.value.cause.endswith("the last: cut off at 8000 tokens")


async def test_a_connection_kept_alive_without_an_answer_ends_too() -> None:
    # OpenRouter sends white space while it waits for a provider: no read ever times out.
    async def spaces() -> Any:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    with (
        service(lambda: StreamingResponse(spaces(), media_type="application/json")) as url,
        pytest.raises(JudgeError, match=r"no verdict within 0\.5 s"),
    ):
        await openrouter_judge("some/model", KEY, url, timeout=0.5).judge(QUERY, REFERENCE, conversation())


def _observations(store: EmbeddedStore, wanted: int) -> Sequence[dict[str, Any]]:
    """What the store has, once it has that many."""
    deadline = time.monotonic() + 20
    while True:
        answer = httpx.get(
            f"{store.base_url}/api/public/v2/observations",
            params={"fields": "core,basic,io,model,usage,metadata", "limit": 50},
            auth=(store.public_key, store.secret_key),
        ).json()["data"]
        if len(answer) >= wanted or time.monotonic() > deadline:
            found: Sequence[dict[str, Any]] = answer
            return found
        time.sleep(0.1)


def _tree(observations: Sequence[dict[str, Any]]) -> set[tuple[str, str, str | None]]:
    """(type, name, the parent's name)."""
    names = {one["id"]: one["name"] for one in observations}
    return {(one["type"], one["name"], names.get(one.get("parentObservationId") or "")) for one in observations}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path / "langfuse.db", public_key=f"pk-lf-{uuid.uuid4().hex}") as running:
        yield running


async def test_it_records_under_the_current_observation_of_the_runs_own_client(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    keys = LangfuseKeys(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
    other_path = tmp_path / "other.db"
    usage = {"input_tokens": 300, "output_tokens": 20, "cost": 0.25}
    with (
        scripted(verdict="PASS", reason="It was deleted.", usage=usage) as model,
        # A second client in the process: the judge must not write to it, nor be silenced by it.
        EmbeddedStore(other_path, public_key=f"pk-lf-{uuid.uuid4().hex}") as other,
        open_recorder(LangfuseServer(LangfuseKeys(other.public_key, other.secret_key, other.base_url), True)),
        open_recorder(LangfuseServer(keys, embedded=True)) as recorder,
    ):
        with recorder.client.start_as_current_observation(name="trial", as_type="span"):
            await judged(model, langfuse_public_key=store.public_key)
        assert recorder.flush()
        found = _observations(store, 3)
        assert _observations(other, 0) == []
    assert _tree(found) == {
        ("SPAN", "trial", None),
        ("EVALUATOR", "judge", "trial"),
        ("GENERATION", "some/model", "judge"),
    }
    assert len({one["traceId"] for one in found}) == 1
    by_type = {one["type"]: one for one in found}
    assert json.loads(by_type["EVALUATOR"]["output"]) == {"verdict": "PASS", "reason": "It was deleted."}
    generation = by_type["GENERATION"]
    assert generation["model"] == "some/model"
    assert generation["costDetails"]["total"] == 0.25
    usage_details = generation["usageDetails"]
    assert (usage_details["input"], usage_details["output"], usage_details["total"]) == (300, 20, 320)
    assert generation["endTime"] > generation["startTime"]


async def test_an_error_is_noted_on_the_judges_observation(store: EmbeddedStore) -> None:
    keys = LangfuseKeys(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
    with scripted(raw="dunno") as model, open_recorder(LangfuseServer(keys, embedded=True)) as recorder:
        cause = await failed(model, langfuse_public_key=store.public_key)
        assert recorder.flush()
        found = _observations(store, 4)
    [judge] = [one for one in found if one["type"] == "EVALUATOR"]
    assert (judge["level"], judge["statusMessage"]) == ("ERROR", cause)
    assert sum(one["type"] == "GENERATION" for one in found) == 3
