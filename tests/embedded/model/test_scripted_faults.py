"""Each scripted fault as the real clients see it, and that a fault uses up no trial."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from evals.embedded.model import ScriptedModel, parse_script
from evals.embedded.model.faults import FaultQueue
from evals.embedded.model.script import Fault

TRIALS = [[{"text": "first " * 40}], [{"text": "second"}]]


def serve(*faults: dict[str, Any], **more: Any) -> ScriptedModel:
    entry = {"query": "q", "trials": TRIALS, "faults": list(faults), **more}
    judge = {"query": "q", "verdict": "PASS", "faults": list(faults)}
    return ScriptedModel(parse_script({"version": 1, "agent": [entry], "judge": [judge]}))


def claude(model: ScriptedModel, retries: int = 0, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.base_url, api_key="any", max_retries=retries, **options)


def ask(client: anthropic.Anthropic) -> str:
    answer = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "q"}])
    return answer.content[0].text  # type: ignore[union-attr]


def ask_streaming(client: anthropic.Anthropic) -> str:
    messages: list[Any] = [{"role": "user", "content": "q"}]
    with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
        return stream.get_final_text()


def read_events(client: anthropic.Anthropic, into: list[str]) -> None:
    messages: list[Any] = [{"role": "user", "content": "q"}]
    with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
        for event in stream:
            into.append(event.type)


@pytest.mark.parametrize(
    ("kind", "expected", "error_type"),
    [
        ("400", anthropic.BadRequestError, "invalid_request_error"),
        ("401", anthropic.AuthenticationError, "authentication_error"),
        ("403", anthropic.PermissionDeniedError, "permission_error"),
        ("404", anthropic.NotFoundError, "not_found_error"),
        ("413", anthropic.RequestTooLargeError, "request_too_large"),
        ("429", anthropic.RateLimitError, "rate_limit_error"),
        ("500", anthropic.InternalServerError, "api_error"),
        ("503", anthropic.InternalServerError, "api_error"),
        ("529", anthropic.OverloadedError, "overloaded_error"),
    ],
)
def test_error_statuses_raise_the_clients_own_classes(
    kind: str, expected: type[anthropic.APIStatusError], error_type: str
) -> None:
    with serve({"kind": kind, "message": "as scripted"}) as model:
        with pytest.raises(expected) as caught:
            ask(claude(model))
        assert caught.value.status_code == int(kind)
        body: Any = caught.value.body
        assert (body["type"], body["error"]) == ("error", {"type": error_type, "message": "as scripted"})
        assert body["request_id"] == caught.value.request_id
        # The fault did not use up the first trial.
        assert ask(claude(model)).startswith("first")
        assert [(seen.status, seen.fault) for seen in model.requests] == [(int(kind), kind), (200, None)]


def test_the_client_retries_through_a_rate_limit() -> None:
    with serve({"kind": "429", "retry_after": 0.01, "times": 2}) as model:
        assert ask(claude(model, retries=2)).startswith("first")
        assert [seen.status for seen in model.requests] == [429, 429, 200]
        assert ask(claude(model)) == "second"


def test_retry_after_is_a_header() -> None:
    with serve({"kind": "529", "retry_after": 3}, {"kind": "429", "retry_after": 0.5}) as model:
        headers = []
        for _ in range(2):
            with pytest.raises(anthropic.APIStatusError) as caught:
                ask(claude(model))
            headers.append(caught.value.response.headers["retry-after"])
        assert headers == ["3", "0.5"]


def test_a_fault_that_is_always_there_never_ends() -> None:
    with serve({"kind": "drop"}, {"kind": "500", "times": "always"}) as model:
        with pytest.raises(anthropic.APIConnectionError):
            ask(claude(model))
        for _ in range(3):
            with pytest.raises(anthropic.InternalServerError):
                ask(claude(model))


def test_a_dropped_connection_has_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    with serve({"kind": "drop", "times": 2}) as model:
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            httpx.post(
                f"{model.base_url}/v1/messages",
                json={"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]},
                headers={"x-api-key": "any", "anthropic-version": "2023-06-01"},
            )
        with pytest.raises(anthropic.APIConnectionError):
            ask_streaming(claude(model))
        assert ask(claude(model)).startswith("first")
    # The server itself has nothing to complain about.
    assert capfd.readouterr().err == ""


def test_a_stream_that_breaks_in_the_middle_has_begun() -> None:
    with serve({"kind": "drop_midstream", "times": 2}) as model:
        events: list[str] = []
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read"):
            read_events(claude(model), events)
        assert events[0] == "message_start"
        assert "message_stop" not in events
        with pytest.raises(anthropic.APIConnectionError):
            ask(claude(model))
        assert ask_streaming(claude(model)).startswith("first")


def test_an_overload_in_the_middle_of_a_stream_is_an_error_event() -> None:
    with serve({"kind": "529_midstream", "times": 2}) as model:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            ask_streaming(claude(model))
        with pytest.raises(anthropic.OverloadedError):
            ask(claude(model))


def test_malformed_answers_are_not_json() -> None:
    with serve({"kind": "malformed", "times": 2}) as model:
        with pytest.raises(json.JSONDecodeError):
            ask(claude(model))
        with pytest.raises(json.JSONDecodeError):
            ask_streaming(claude(model))
        assert ask(claude(model)).startswith("first")


def test_a_hanging_answer_ends_with_the_clients_patience() -> None:
    with serve({"kind": "hang"}) as model:
        with pytest.raises(anthropic.APITimeoutError):
            ask(claude(model, timeout=0.2))
        assert ask(claude(model)).startswith("first")
        assert [(seen.status, seen.fault) for seen in model.requests] == [(None, "hang"), (200, None)]


async def test_a_hanging_answer_does_not_hold_up_the_servers_end() -> None:
    with serve({"kind": "hang"}) as model:
        client = anthropic.AsyncAnthropic(base_url=model.base_url, api_key="any", max_retries=0)
        waiting = asyncio.create_task(
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "q"}])
        )
        while not model.requests:  # noqa: ASYNC110 - the request is seen on another thread
            await asyncio.sleep(0.01)
        assert not waiting.done()
        started = time.monotonic()
    # Uvicorn would wait 2 s for it before it gives up.
    assert time.monotonic() - started < 1.5
    with pytest.raises(anthropic.APIConnectionError):
        await waiting


def test_a_slow_stream_is_whole_and_uses_up_the_trial() -> None:
    with serve({"kind": "slow_stream", "delay_ms": 20, "times": 2}) as model:
        started = time.monotonic()
        assert ask_streaming(claude(model)).startswith("first")
        assert time.monotonic() - started > 0.1
        assert ask(claude(model)) == "second"


def test_a_slow_stream_outlasts_a_readers_patience_between_events() -> None:
    # Between two events the transport itself times out, outside the client's own wrapping.
    with (
        serve({"kind": "slow_stream", "delay_ms": 1000}) as model,
        pytest.raises(httpx2.ReadTimeout),
    ):
        ask_streaming(claude(model, timeout=0.2))


def test_chunks_can_be_slow_for_every_answer_of_an_entry() -> None:
    with serve(chunk_delay_ms=5) as model:
        assert ask_streaming(claude(model)) == "first " * 40


def test_a_client_that_leaves_during_the_latency_uses_up_no_trial() -> None:
    with serve(latency_ms=400) as model:
        with pytest.raises(anthropic.APITimeoutError):
            ask(claude(model, timeout=0.1))
        assert ask(claude(model)).startswith("first")


def test_faults_for_one_turn_wait_for_it() -> None:
    queue = FaultQueue([Fault(kind="529", turn=1, times=2), Fault(kind="drop")])
    kinds = [fault.kind if (fault := queue.take(turn)) else None for turn in (0, 0, 1, 1, 1)]
    assert kinds == ["drop", None, "529", "529", None]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("429", openai.RateLimitError),
        ("500", openai.InternalServerError),
        ("529", openai.InternalServerError),
        ("drop", openai.APIConnectionError),
        ("drop_midstream", openai.APIConnectionError),
        ("malformed", json.JSONDecodeError),
    ],
)
def test_a_judges_client_meets_faults_too(kind: str, expected: type[Exception]) -> None:
    with serve({"kind": kind}) as model:
        client = openai.OpenAI(base_url=model.openai_base_url, api_key="any", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "Judge this: q. Answer: a."}]
        with pytest.raises(expected):
            client.chat.completions.create(model="m", messages=messages)
        answer = client.chat.completions.create(model="m", messages=messages)
        assert json.loads(answer.choices[0].message.content or "")["verdict"] == "PASS"


def test_an_error_in_the_middle_of_a_chat_stream() -> None:
    with serve({"kind": "529_midstream"}) as model:
        client = openai.OpenAI(base_url=model.openai_base_url, api_key="any", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "q"}]
        with pytest.raises(openai.APIError, match="Overloaded"):
            list(client.chat.completions.create(model="m", messages=messages, stream=True))
