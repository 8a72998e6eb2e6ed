"""The scripted model under OpenAI's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from evals.embedded.model import ScriptedModel, parse_script

TOOLS: list[Any] = [{"type": "function", "function": {"name": "repository__search_text", "parameters": {}}}]
SCRIPT = {
    "version": 1,
    "agent": [
        {
            "query": "Where is greet?",
            "trials": [
                [
                    {"text": "Looking.", "thinking": "hm", "calls": [{"name": "search_text", "input": {"query": "ä"}}]},
                    {"text": "Here. " * 30},
                ],
                [{"text": "No idea."}],
            ],
        }
    ],
    "judge": [
        {
            "query": "Where is greet?",
            "verdict": "PASS",
            "reason": "ok",
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 7, "cost": 0.0025},
        }
    ],
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(parse_script(SCRIPT)) as running:
        yield running


def client(model: ScriptedModel) -> openai.OpenAI:
    return openai.OpenAI(base_url=model.openai_base_url, api_key="any", max_retries=0)


def asks(query: str) -> list[Any]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": query}]


def test_a_conversation_with_tool_calls(model: ScriptedModel) -> None:
    messages = asks("Where is greet?")
    first = client(model).chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.tool_calls is not None
    call: Any = first.message.tool_calls[0]
    assert call.function.name == "repository__search_text"
    assert json.loads(call.function.arguments) == {"query": "ä"}
    messages += [
        first.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "found"},
    ]
    second = client(model).chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0]
    assert (second.finish_reason, second.message.content) == ("stop", "Here. " * 30)
    other = client(model).chat.completions.create(model="m", messages=asks("Where is greet?")).choices[0]
    assert other.message.content == "No idea."
    assert [(seen.turn, seen.conversation) for seen in model.requests] == [(0, 0), (1, 0), (0, 1)]


def test_a_streamed_answer_adds_up_to_the_whole_one(model: ScriptedModel) -> None:
    content, arguments, name, reasons, usage = "", "", "", [], None
    stream = client(model).chat.completions.create(
        model="m",
        messages=asks("Where is greet?"),
        tools=TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasons.append(choice.finish_reason)
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    assert (content, name, json.loads(arguments)) == ("Looking.", "repository__search_text", {"query": "ä"})
    assert reasons[-1] == "tool_calls"
    assert set(reasons[:-1]) == {None}
    assert usage is not None
    assert usage.prompt_tokens > 0


def test_a_judge_gets_its_verdict_with_the_cost(model: ScriptedModel) -> None:
    prompt = asks(json.dumps({"query": "Where is greet?", "answer": "Here."}))
    answer = client(model).chat.completions.create(model="m", messages=prompt)
    assert json.loads(answer.choices[0].message.content or "") == {"verdict": "PASS", "reason": "ok"}
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (120, 7)
    assert answer.usage.to_dict()["cost"] == 0.0025
    assert model.requests[0].kind == "judge"


def test_both_paths_answer(model: ScriptedModel) -> None:
    base = openai.OpenAI(base_url=model.base_url, api_key="any", max_retries=0)
    prompt = asks("Judge: Where is greet? Here.")
    assert base.chat.completions.create(model="m", messages=prompt).choices[0].finish_reason == "stop"
    assert [listed.id for listed in client(model).models.list()] == ["scripted"]


def test_an_unscripted_query_is_refused_by_name(model: ScriptedModel) -> None:
    with pytest.raises(openai.BadRequestError, match="Where is waldo"):
        client(model).chat.completions.create(model="m", messages=asks("Where is waldo?"))


ORPHAN = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
CALLING = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {}}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": asks("x")}, "model parameter"),
        ({"model": "m", "messages": []}, "non-empty array"),
        ({"model": "m", "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"model": "m", "messages": [*asks("x"), ORPHAN]}, "must be a response to a preceding message"),
        ({"model": "m", "messages": [*asks("x"), CALLING, *asks("y")]}, "did not have response messages: call_1"),
        ({"model": "m", "messages": asks("x"), "tools": [{}]}, "tools[0].function.name"),
    ],
)
def test_common_mistakes_are_refused(model: ScriptedModel, body: dict[str, Any], message: str) -> None:
    url = f"{model.openai_base_url}/chat/completions"
    answer = httpx.post(url, json=body, headers={"authorization": "Bearer any"})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_missing_key_is_an_authentication_error(model: ScriptedModel) -> None:
    answer = httpx.post(f"{model.openai_base_url}/chat/completions", json={"model": "m"})
    assert answer.status_code == 401
