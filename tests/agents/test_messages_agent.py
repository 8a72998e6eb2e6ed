"""The Messages API loop: a real client, a real MCP server, the scripted model."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evals.agents import AgentError
from evals.agents.messages import DEFAULT_MAX_RETRIES, MessagesAgent
from evals.agents.server_tools import MAX_IMAGE
from evals.conversation import Conversation
from evals.embedded.model import ScriptedModel, parse_script
from evals.target import Launch

SERVER = Path(__file__).with_name("odd_server.py")
DONE = {"text": "<response>done</response>"}


def stdio(name: str = "odd", *arguments: str, **fields: Any) -> Launch:
    command = {"command": sys.executable, "args": (str(SERVER), "stdio", *arguments)}
    return Launch(**{"server": name, "transport": "stdio", **command, **fields})


@contextmanager
def scripted(*turns: dict[str, Any], **entry: Any) -> Iterator[ScriptedModel]:
    script = parse_script({"version": 1, "agent": [{"query": "Which?", "turns": list(turns), **entry}]})
    with ScriptedModel(script, record_bodies=True) as model:
        yield model


def agent(model: ScriptedModel, *launches: Launch, **fields: Any) -> MessagesAgent:
    credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
    return MessagesAgent(**{"launches": launches, "system": "Answer.", "credentials": credentials} | fields)


def calls(*names: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
    made = [(one, {}) if isinstance(one, str) else one for one in names]
    return {"calls": [{"name": name, "input": arguments} for name, arguments in made]}


async def failure(running: MessagesAgent) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await running.answer("Which?")
    return caught.value


def results_sent(model: ScriptedModel, request: int) -> list[dict[str, Any]]:
    """The tool results in a recorded request's last message."""
    bodies = [record.body for record in model.requests]
    content = bodies[request]["messages"][-1]["content"]
    assert all(block["type"] == "tool_result" for block in content)
    return list(content)


@pytest.fixture(scope="module")
def odd() -> Iterator[Launch]:
    """One odd server for all the tests that do not care how it runs: starting one costs a second."""
    with served("http") as launch:
        yield launch


async def test_parallel_calls_are_all_answered_in_order_and_run_at_the_same_time(odd: Launch) -> None:
    turn = calls(("sleep", {"seconds": 0.6}), "text", "failing", "no_such_tool", ("sleep", {"seconds": 0.6}))
    with scripted({"text": "Let me look.", "thinking": "hm", **turn}, DONE) as model:
        conversation = await agent(model, odd).answer("Which?")
        sent = results_sent(model, 1)
    assert [one["tool_use_id"] for one in sent] == [call.id for call in conversation.calls]
    assert [one["is_error"] for one in sent] == [False, False, True, True, False]
    assert [call.result for call in conversation.calls][:2] == ["plain", "plain"]
    # An error result is text alone: the API takes no image in one.
    assert {block["type"] for block in sent[2]["content"]} == {"text"}
    assert "There is no tool 'no_such_tool'. The tools are: text, image" in (conversation.calls[3].result or "")
    assert conversation.final_answer == "<response>done</response>"
    assert conversation.stop == "end_turn"
    assert [turn.thinking for turn in conversation.turns] == ["hm", ""]
    first, last = conversation.calls[0], conversation.calls[4]
    assert first.returned_at is not None
    assert last.called_at < first.returned_at, "the two waits overlap"
    assert conversation.usage is not None
    assert conversation.usage.output_tokens > 0
    assert conversation.cost_usd is None


async def test_all_pages_of_tools_are_offered_under_names_the_api_takes(odd: Launch) -> None:
    with scripted(calls("dotted_name_x"), DONE) as model:
        conversation = await agent(model, odd).answer("Which?")
        body = model.requests[0].body
    names = [tool["name"] for tool in body["tools"]]
    assert len(names) == 20
    assert "dotted_name_x" in names
    assert body["system"] == "Answer."
    assert body["messages"] == [{"role": "user", "content": "Which?"}]
    (call,) = conversation.calls
    assert (call.tool, call.server, call.result) == ("dotted.name/x", "odd", "dotted")


async def test_tools_of_the_same_name_on_two_servers_are_kept_apart() -> None:
    launches = (stdio("one", "first"), stdio("two", "second"))
    with scripted(calls("mcp__one__echo", "mcp__two__echo"), DONE) as model:
        conversation = await agent(model, *launches).answer("Which?")
    assert [(call.server, call.tool, call.result) for call in conversation.calls] == [
        ("one", "echo", "first"),
        ("two", "echo", "second"),
    ]


async def test_images_and_resources_are_passed_or_described(odd: Launch) -> None:
    names = ("image", "tiff", "audio", "resource", "blob", "link", "structured", "nothing", "blank", "text")
    with scripted(calls(*names), DONE) as model:
        conversation = await agent(model, odd).answer("Which?")
        sent = results_sent(model, 1)
    content = {name: one["content"] for name, one in zip(names, sent, strict=True)}
    assert [block["type"] for block in content["image"]] == ["image", "text"]
    assert content["image"][0]["source"]["media_type"] == "image/png"
    said = {name: [block.get("text") for block in blocks] for name, blocks in content.items()}
    assert said["tiff"] == ["[image/tiff, 4 base64 characters]"]
    assert said["audio"] == ["[audio/wav, 4 base64 characters]"]
    assert said["resource"] == ["memo://note\nremember"]
    assert said["blob"] == ["[resource memo://zip: application/zip, 4 base64 characters]"]
    assert said["link"] == ["[resource memo://report: report, text/csv, Sales]"]
    assert said["structured"] == ['{"total": 3}']
    # The API refuses empty text blocks.
    assert content["nothing"] == content["blank"] == []
    texts = {call.tool: call.result for call in conversation.calls}
    assert texts["image"] is not None
    assert texts["image"].startswith("[image/png, ")


def test_an_image_over_the_limit_is_described() -> None:
    from mcp import types

    from evals.agents.server_tools import as_result

    image = types.ImageContent(type="image", data="A" * (MAX_IMAGE + 4), mime_type="image/png")
    (block,) = as_result(types.CallToolResult(content=[image])).blocks
    assert block["type"] == "text"
    assert "over the 5242880 that can be shown" in block["text"]


async def test_an_error_of_the_protocol_from_a_live_server_is_told_to_the_model(odd: Launch) -> None:
    with scripted(calls("protocol_error"), calls("text"), DONE) as model:
        conversation = await agent(model, odd).answer("Which?")
    assert [call.is_error for call in conversation.calls] == [True, False]
    assert conversation.calls[0].result


async def test_a_tool_that_takes_too_long_is_an_error_result(odd: Launch) -> None:
    with scripted(calls(("sleep", {"seconds": 30})), calls("text"), DONE) as model:
        conversation = await agent(model, odd, tool_timeout=0.5).answer("Which?")
    assert conversation.calls[0].result == "sleep did not answer within 0.5 s."
    assert conversation.calls[1].result == "plain"


async def test_each_question_has_a_server_of_its_own() -> None:
    with scripted(calls("who"), DONE) as model:
        running = agent(model, stdio())
        both = await asyncio.gather(running.answer("Which?"), running.answer("Which?"))
    assert len({one.calls[0].result for one in both}) == 2


async def test_variables_and_arguments_reach_the_server() -> None:
    with scripted(calls("echo"), DONE) as model:
        conversation = await agent(model, stdio("odd", "a", "b", env=(("ODD", "yes"),))).answer("Which?")
    assert conversation.calls[0].result == "yes a b"


# --- a server that dies -----------------------------------------------------------------------------------------


@contextmanager
def served(transport: str) -> Iterator[Launch]:
    """The odd server over a transport, in a process of its own."""
    if transport == "stdio":
        yield stdio()
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), transport, str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < deadline, "the server does not come up"
            assert process.poll() is None, "the server ended"
            time.sleep(0.05)
        path = "sse" if transport == "sse" else "mcp"
        yield Launch(
            server="odd", transport="sse" if transport == "sse" else "http", url=f"http://127.0.0.1:{port}/{path}"
        )
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("transport", ["stdio", "sse", "http"])
async def test_a_server_that_dies_in_the_middle_is_an_error_with_what_there_was(transport: str) -> None:
    with served(transport) as launch, scripted(calls("text"), calls("text", "die"), DONE) as model:
        error = await failure(agent(model, launch))
        requests = len(model.requests)
    assert "the server 'odd'" in error.cause
    # both calls of the turn are under way; whichever ends first tells of it
    assert "during the call of die" in error.cause or "during the call of text" in error.cause
    assert error.conversation is not None
    assert error.conversation.calls[0].result == "plain"
    assert error.conversation.calls[2].result is None
    assert requests == 2, "the model is not asked about a server that is gone"


@pytest.mark.parametrize("transport", ["stdio", "sse", "http"])
@pytest.mark.parametrize("last", [DONE, {"text": "x", "stop_reason": "refusal"}], ids=["answer", "refusal"])
async def test_a_server_that_dies_after_its_last_answer_is_an_error(transport: str, last: dict[str, Any]) -> None:
    with served(transport) as launch, scripted(calls("last_error"), last, latency_ms=900) as model:
        error = await failure(agent(model, launch))
    over_http = "the connection to the server 'odd' broke: "
    assert error.cause.startswith(
        over_http if transport == "http" else "the server 'odd' was gone when the conversation ended: "
    )
    assert error.conversation is not None
    (call,) = error.conversation.calls
    assert (call.result, call.is_error) == ("plain\n[image/png, 96 base64 characters]", True)
    assert error.conversation.stop is None


async def test_a_server_that_is_only_busy_at_the_end_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.agents.server_tools._PROBE", 0.3)
    with scripted(calls(("block", {"seconds": 3})), DONE) as model:
        conversation = await agent(model, stdio(), tool_timeout=0.5).answer("Which?")
    assert conversation.stop == "end_turn"
    assert conversation.calls[0].result == "block did not answer within 0.5 s."


async def test_a_server_that_does_not_start_is_an_error_with_its_last_words() -> None:
    broken = Launch(
        server="odd",
        transport="stdio",
        command=sys.executable,
        args=("-c", "import sys; sys.exit('no database')"),
    )
    with scripted(DONE) as model:
        error = await failure(agent(model, broken))
        assert model.requests == []
    assert "'odd' does not connect" in error.cause
    assert "no database" in error.cause


async def test_last_words_begin_with_a_whole_word() -> None:
    code = "import sys; sys.exit('start secret-' + '1' * 30 + ' ' + 'x' * 285)"
    broken = Launch(server="odd", transport="stdio", command=sys.executable, args=("-c", code))
    with scripted(DONE) as model:
        error = await failure(agent(model, broken))
    # Half of a secret would not be known for one where secrets are taken out.
    assert error.cause.endswith(f"it said: … {'x' * 285}")


async def test_a_server_that_never_answers_is_an_error_within_its_connect_timeout() -> None:
    silent = Launch(
        server="odd",
        transport="stdio",
        command=sys.executable,
        args=("-c", "import time; time.sleep(60)"),
        connect_timeout=0.5,
    )
    with scripted(DONE) as model:
        error = await failure(agent(model, silent))
    assert "did not connect within 0.5 s (connect_timeout)" in error.cause


# --- how a conversation ends ------------------------------------------------------------------------------------


async def stop_of(model: ScriptedModel, odd: Launch, **fields: Any) -> Conversation:
    return await agent(model, odd, **fields).answer("Which?")


async def test_turns_are_limited(odd: Launch) -> None:
    with scripted(*[calls("text") for _ in range(5)], DONE) as model:
        conversation = await stop_of(model, odd, max_turns=3)
    assert conversation.stop == "max_turns"
    assert len(conversation.turns) == 3
    assert conversation.final_answer is None
    assert conversation.calls[-1].result is None, "the last call is not run: nobody would read its result"


async def test_time_is_limited(odd: Launch) -> None:
    with scripted(calls("text"), {**calls(("sleep", {"seconds": 60}))}) as model:
        error = await failure(agent(model, odd, time_limit=4))
    assert error.cause == "did not finish within 4 s (--trial-timeout)"
    assert error.conversation is not None
    assert error.conversation.calls[0].result == "plain"


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "stop_sequence"])
async def test_a_stop_of_the_model_is_named(stop: str, odd: Launch) -> None:
    with scripted({"text": "I would rather not.", "stop_reason": stop}) as model:
        assert (await stop_of(model, odd)).stop == stop


async def test_a_cut_off_call_is_not_run(odd: Launch) -> None:
    with scripted({**calls("text"), "stop_reason": "max_tokens"}) as model:
        conversation = await stop_of(model, odd)
    assert conversation.stop == "max_tokens"
    assert conversation.calls[0].result is None


async def test_a_paused_turn_goes_on(odd: Launch) -> None:
    with scripted({"text": "Wait.", "stop_reason": "pause_turn"}, DONE) as model:
        conversation = await stop_of(model, odd)
    assert conversation.stop == "end_turn"
    assert conversation.final_answer == "<response>done</response>"


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "400", "message": "prompt is too long: 200251 tokens > 200000 maximum", "turn": 1},
        {"kind": "413", "turn": 1},
    ],
)
async def test_a_context_that_overflows_is_named(fault: dict[str, Any], odd: Launch) -> None:
    with scripted(calls("text"), DONE, faults=[fault]) as model:
        conversation = await stop_of(model, odd)
    assert conversation.stop == "context_overflow"
    assert conversation.calls[0].result == "plain"


@pytest.mark.parametrize("kind", ["429", "500", "503", "529", "drop"])
async def test_what_passes_is_tried_again(kind: str, odd: Launch) -> None:
    fault: dict[str, Any] = {"kind": kind, "times": 2}
    if kind != "drop":
        fault["retry_after"] = 0.01
    with scripted(calls("text"), DONE, faults=[fault]) as model:
        conversation = await stop_of(model, odd)
        assert len(model.requests) == 4
    assert conversation.final_answer == "<response>done</response>"


async def test_tries_are_bounded(odd: Launch) -> None:
    with scripted(DONE, faults=[{"kind": "429", "times": "always", "retry_after": 0.01}]) as model:
        error = await failure(agent(model, odd))
        assert len(model.requests) == DEFAULT_MAX_RETRIES + 1
    assert error.cause.startswith("the model's API answered 429 after 6 tries: This request would")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"kind": "401"}, "the model's API answered 401: invalid x-api-key"),
        ({"kind": "404"}, "the model's API answered 404: Not found"),
        ({"kind": "400", "message": "tools.0: bad schema"}, "the model's API answered 400: tools.0: bad schema"),
        ({"kind": "malformed"}, "the model's API"),
    ],
)
async def test_what_does_not_pass_is_an_error_at_once(fault: dict[str, Any], says: str, odd: Launch) -> None:
    with scripted(DONE, faults=[{**fault, "times": "always"}]) as model:
        error = await failure(agent(model, odd, max_retries=1))
        assert len(model.requests) <= 2
    assert error.cause.startswith(says)


async def test_an_api_that_is_not_there_is_an_error(odd: Launch) -> None:
    with scripted(DONE) as model:
        gone = agent(model, odd, max_retries=1)
    error = await failure(gone)
    assert "the model's API cannot be reached after 2 tries" in error.cause


async def test_a_cost_is_taken_where_the_endpoint_says_it(odd: Launch) -> None:
    turn = {**calls("text"), "usage": {"cost": 0.25, "input_tokens": 10, "output_tokens": 5}}
    with scripted(turn, {**DONE, "usage": {"cost": 0.5, "input_tokens": 20, "output_tokens": 7}}) as model:
        conversation = await stop_of(model, odd)
    assert conversation.cost_usd == 0.75
    assert conversation.usage is not None
    assert (conversation.usage.input_tokens, conversation.usage.output_tokens) == (30, 12)
