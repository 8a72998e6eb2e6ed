"""The scripted model under Anthropic's own client and over plain HTTP."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import pytest

from evals.embedded.model import ScriptedModel, parse_script
from evals.embedded.model.replies import CHARS_PER_TOKEN, UNCACHED_TOKENS

HEADERS = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
TOOLS: list[Any] = [
    {"name": "Read", "input_schema": {"type": "object"}},
    {"name": "mcp__repository__search_text", "input_schema": {"type": "object"}},
]
SCRIPT = {
    "version": 1,
    "agent": [
        {
            "query": "Where is greet defined?",
            "turns": [
                {
                    "thinking": "I should look.",
                    "text": "Let me search for it. " * 10,
                    "calls": [
                        {"name": "search_text", "input": {"query": "def greet", "context_lines": 2, "glob": "ü*.py"}},
                        {"name": "no_such_tool"},
                    ],
                },
                {"text": "In src/greet.py.", "usage": {"output_tokens": 77, "cost": 0.5}},
            ],
        },
        {"query": "flaky", "trials": [[{"text": "first"}], [{"text": "second"}]]},
        {"query": "cut", "turns": [{"text": "half a", "stop_reason": "max_tokens"}]},
        {"query": "silence", "turns": [{"text": ""}]},
        {
            "query": "half a pair",
            "turns": [{"text": "a\ud800b ü", "calls": [{"name": "Read", "input": {"k": "\udc00"}}]}],
        },
    ],
    "judge": [
        {"query": "Where is greet defined?", "verdict": "PASS", "reason": "It says src/greet.py."},
        {"query": "Where is greet defined?", "model": "strict", "verdict": "FAIL", "reason": "No line."},
        {"query": "Is it fenced?", "answers": [{"raw": "```json\n{}\n```"}, {"output": {"score": 3}}]},
    ],
}


@pytest.fixture
def model() -> Any:
    with ScriptedModel(parse_script(SCRIPT)) as running:
        yield running


def client(model: ScriptedModel) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.base_url, api_key="any", max_retries=0)


def asks(query: str) -> list[Any]:
    return [{"role": "user", "content": query}]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_whole_conversation_through_the_client(model: ScriptedModel, streamed: bool) -> None:
    def answer(messages: list[Any]) -> anthropic.types.Message:
        if not streamed:
            return client(model).messages.create(model="m", max_tokens=99, messages=messages, tools=TOOLS)
        with client(model).messages.stream(model="m", max_tokens=99, messages=messages, tools=TOOLS) as stream:
            return stream.get_final_message()

    messages = asks("Where is greet defined?")
    first = answer(messages)
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert first.stop_reason == "tool_use"
    assert first.content[1].text == "Let me search for it. " * 10  # type: ignore[union-attr]
    search, missing = first.content[2:]
    assert isinstance(search, anthropic.types.ToolUseBlock)
    assert isinstance(missing, anthropic.types.ToolUseBlock)
    assert search.name == "mcp__repository__search_text"
    assert search.input == {"query": "def greet", "context_lines": 2, "glob": "ü*.py"}
    assert (missing.name, missing.input) == ("no_such_tool", {})

    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "found"} for call in (search, missing)]
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
        {"role": "user", "content": results},
    ]
    second = answer(messages)
    assert second.stop_reason == "end_turn"
    assert second.content[0].text == "In src/greet.py."  # type: ignore[union-attr]
    assert second.usage.output_tokens == 77
    assert second.usage.model_extra == {"cost": 0.5} or second.usage.to_dict()["cost"] == 0.5

    messages += [{"role": "assistant", "content": "In src/greet.py."}, {"role": "user", "content": "Reminded?"}]
    with pytest.raises(anthropic.BadRequestError, match="Reminded"):
        answer(messages)
    assert [(seen.kind, seen.turn, seen.conversation, seen.stream) for seen in model.requests] == [
        ("agent", 0, 0, streamed),
        ("agent", 1, 0, streamed),
        ("unmatched", 0, None, streamed),
    ]


def test_past_the_scripts_end_the_model_says_so(model: ScriptedModel) -> None:
    messages = [
        *asks("flaky"),
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>go on</system-reminder>"}]},
    ]
    answer = client(model).messages.create(model="m", max_tokens=9, messages=messages)
    assert answer.stop_reason == "end_turn"
    assert answer.content[0].text.startswith("[scripted model] The script for this query ends after 1 turn")  # type: ignore[union-attr]
    assert model.requests[-1].past_end


def test_trials_are_given_out_in_turn_and_repeat(model: ScriptedModel) -> None:
    texts = [
        client(model).messages.create(model="m", max_tokens=9, messages=asks("flaky")).content[0].text  # type: ignore[union-attr]
        for _ in range(3)
    ]
    assert texts == ["first", "second", "first"]
    assert [seen.conversation for seen in model.requests] == [0, 1, 2]


def test_stop_reasons_and_empty_answers(model: ScriptedModel) -> None:
    assert client(model).messages.create(model="m", max_tokens=9, messages=asks("cut")).stop_reason == "max_tokens"
    assert client(model).messages.create(model="m", max_tokens=9, messages=asks("silence")).content == []


@pytest.mark.parametrize("stream", [False, True])
def test_half_a_surrogate_pair_comes_as_the_escape_it_was_scripted_as(model: ScriptedModel, stream: bool) -> None:
    body = {"model": "m", "max_tokens": 9, "stream": stream, "messages": asks("half a pair"), "tools": TOOLS}
    answer = httpx.post(f"{model.base_url}/v1/messages", json=body, headers=HEADERS)
    assert answer.status_code == 200
    assert "\\ud800" in answer.text
    assert "\\udc00" in answer.text
    chat = {"model": "m", "messages": asks("half a pair"), "stream": stream}
    answer = httpx.post(f"{model.base_url}/v1/chat/completions", json=chat, headers={"authorization": "Bearer any"})
    assert answer.status_code == 200
    assert "\\ud800" in answer.text


def test_usage_follows_the_size_of_the_request_and_the_cache(model: ScriptedModel) -> None:
    def usage(**extra: Any) -> tuple[dict[str, Any], int]:
        body = {"model": "m", "max_tokens": 9, "messages": asks("flaky"), **extra}
        raw = json.dumps(body).encode()
        answer = httpx.post(f"{model.base_url}/v1/messages", content=raw, headers=HEADERS).json()
        return answer["usage"], -(-len(raw) // CHARS_PER_TOKEN)

    plain, total = usage(system="rules " * 500)
    assert (plain["input_tokens"], plain["cache_read_input_tokens"]) == (total, 0)
    cached, total = usage(system=[{"type": "text", "text": "r" * 3000, "cache_control": {"type": "ephemeral"}}])
    counts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert sum(cached[name] for name in counts) == total
    assert cached["input_tokens"] == UNCACHED_TOKENS
    assert cached["cache_creation_input_tokens"] == 2  # "flaky"
    # The same words inside a text are no breakpoint.
    quoted, total = usage(system='say "cache_control"')
    assert quoted["input_tokens"] == total


def test_tokens_are_counted_without_max_tokens(model: ScriptedModel) -> None:
    short = client(model).messages.count_tokens(model="m", messages=asks("Hi"))
    long = client(model).messages.count_tokens(model="m", messages=asks("Hi" * 400))
    assert long.input_tokens - short.input_tokens == pytest.approx(798 / CHARS_PER_TOKEN, abs=1)
    assert [seen.kind for seen in model.requests] == ["count_tokens", "count_tokens"]


def test_models_are_listed_and_the_rest_is_not_found(model: ScriptedModel) -> None:
    assert [listed.id for listed in client(model).models.list()] == ["strict"]
    assert httpx.head(f"{model.base_url}/").status_code == 404
    missing = httpx.get(f"{model.base_url}/v1/organizations")
    assert missing.status_code == 404
    assert missing.json()["error"]["type"] == "not_found_error"


def test_an_unscripted_query_is_refused_by_name(model: ScriptedModel) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        client(model).messages.create(model="m", max_tokens=9, messages=asks("Where is waldo?"))
    assert caught.value.body == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": 'scripted model: no entry of script matches the query "Where is waldo?"; add one to the script',
        },
        "request_id": caught.value.request_id,
    }


def test_a_default_answers_what_no_entry_does() -> None:
    script = parse_script({**SCRIPT, "default": {"turns": [{"text": "I cannot help with that."}]}})
    with ScriptedModel(script) as model:
        answer = client(model).messages.create(model="m", max_tokens=9, messages=asks("Where is waldo?"))
        assert answer.content[0].text == "I cannot help with that."  # type: ignore[union-attr]
        assert [(seen.kind, seen.entry) for seen in model.requests] == [("default", None)]


def test_bodies_are_kept_only_when_asked_for() -> None:
    for wanted in (False, True):
        with ScriptedModel(parse_script(SCRIPT), record_bodies=wanted) as model:
            client(model).messages.create(model="m", max_tokens=9, messages=asks("flaky"))
            body = model.requests[0].body
            assert (body["messages"] == asks("flaky")) if wanted else body is None


def judged(model: ScriptedModel, name: str = "m", **extra: Any) -> anthropic.types.Message:
    prompt = "<query>Where is greet defined?</query><answer>src</answer>"
    answer: anthropic.types.Message = client(model).messages.create(
        model=name, max_tokens=9, messages=asks(prompt), **extra
    )
    return answer


def test_a_judge_is_answered_as_text_as_a_forced_tool_and_as_structured_output(model: ScriptedModel) -> None:
    verdict = {"verdict": "PASS", "reason": "It says src/greet.py."}
    assert json.loads(judged(model).content[0].text) == verdict  # type: ignore[union-attr]
    tool: Any = {"name": "give_verdict", "input_schema": {"type": "object"}}
    forced = judged(model, tools=[tool], tool_choice={"type": "tool", "name": "give_verdict"})
    assert (forced.content[0].name, forced.content[0].input) == ("give_verdict", verdict)  # type: ignore[union-attr]
    structured = judged(model, tools=[{**tool, "name": "StructuredOutput"}])
    assert structured.content[0].input == verdict  # type: ignore[union-attr]
    assert structured.stop_reason == "tool_use"


def test_models_of_a_panel_vote_for_themselves(model: ScriptedModel) -> None:
    assert json.loads(judged(model, "strict").content[0].text)["verdict"] == "FAIL"  # type: ignore[union-attr]
    assert json.loads(judged(model, "kind").content[0].text)["verdict"] == "PASS"  # type: ignore[union-attr]


def test_answers_are_given_in_order_to_each_model(model: ScriptedModel) -> None:
    def ask(name: str) -> str:
        messages = asks("Query: Is it fenced? Answer: yes")
        return client(model).messages.create(model=name, max_tokens=9, messages=messages).content[0].text  # type: ignore[union-attr]

    fenced, score = "```json\n{}\n```", '{"score": 3}'
    assert [ask("a"), ask("b"), ask("a"), ask("b"), ask("a")] == [fenced, fenced, score, score, fenced]


def test_claude_codes_side_requests_use_up_no_entry(model: ScriptedModel) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    title = {
        "model": "m",
        "max_tokens": 50,
        "messages": asks("<session>\nflaky\n</session>\n\nWrite the title"),
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    quota = {"model": "m", "max_tokens": 1, "messages": asks("quota")}
    answers = [
        httpx.post(f"{model.base_url}/v1/messages", json=body, headers=HEADERS).json() for body in (title, quota)
    ]
    assert json.loads(answers[0]["content"][0]["text"]) == {"title": "Scripted session"}
    assert answers[1]["stop_reason"] == "max_tokens"
    assert [seen.kind for seen in model.requests] == ["title", "quota"]


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"model": None}, "model: Field required"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role: Input should be"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "first message must use the user role"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages.0: content must be non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        (
            {"messages": [*asks("x"), {"role": "assistant", "content": "y"}, {"role": "user", "content": [RESULT]}]},
            "messages.2: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        ),
        (
            {"messages": [*asks("x"), {"role": "assistant", "content": [CALL]}, *asks("z")]},
            "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        ),
        (
            {"messages": [*asks("x"), {"role": "assistant", "content": [CALL, CALL]}]},
            "`tool_use` ids must be unique",
        ),
        ({"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]}, "tools.0.custom.name: String should match"),
        ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
        (
            {"tools": [{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]},
            "does not support oneOf, allOf, or anyOf at the top level",
        ),
        ({"tools": TOOLS + TOOLS}, "tools: Tool names must be unique"),
        ({"tool_choice": {"type": "tool", "name": "gone"}}, "Tool 'gone' not found"),
    ],
)
def test_common_mistakes_are_refused_as_the_api_refuses_them(
    model: ScriptedModel, change: dict[str, Any], message: str
) -> None:
    body: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": asks("flaky"), **change}
    body = {key: value for key, value in body.items() if value is not None}
    answer = httpx.post(f"{model.base_url}/v1/messages", json=body, headers=HEADERS)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert message in answer.json()["error"]["message"]
    assert answer.headers["request-id"] == answer.json()["request_id"]
    assert [seen.kind for seen in model.requests] == ["invalid"]


def test_a_missing_key_version_or_body_is_refused(model: ScriptedModel) -> None:
    url = f"{model.base_url}/v1/messages"
    keyless = httpx.post(url, json={}, headers={"anthropic-version": "2023-06-01"})
    assert (keyless.status_code, keyless.json()["error"]["type"]) == (401, "authentication_error")
    assert "anthropic-version" in httpx.post(url, json={}, headers={"x-api-key": "k"}).json()["error"]["message"]
    assert "not valid JSON" in httpx.post(url, content=b"{", headers=HEADERS).json()["error"]["message"]
    assert httpx.post(url, content=b"[]", headers=HEADERS).status_code == 400
