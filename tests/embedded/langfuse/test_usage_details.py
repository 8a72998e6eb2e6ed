"""Token counts in the forms that SDKs send: under Langfuse's names, and each token counted once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.langfuse.usage import usage_details
from evals.embedded.model import ScriptedModel, parse_script

pytest_plugins = ["store_fixtures"]

_CHAT = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
_RESPONSES = {"input_tokens": 300, "output_tokens": 20, "total_tokens": 320}
_MAPPED = {"input": 300, "output": 20, "total": 320}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (_CHAT, _MAPPED),
        (_RESPONSES, _MAPPED),
        ({**_CHAT, "prompt_tokens_details": None, "completion_tokens_details": None}, _MAPPED),
        (
            {
                **_CHAT,
                "prompt_tokens_details": {"cached_tokens": 200, "audio_tokens": None},
                "completion_tokens_details": {"reasoning_tokens": 15},
            },
            {"input": 100, "input_cached_tokens": 200, "output": 5, "output_reasoning_tokens": 15, "total": 320},
        ),
        (
            {**_RESPONSES, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {}},
            {**_MAPPED, "input_cached_tokens": 0},
        ),
        # Some providers count more in the details than in the whole: no count falls below zero.
        (
            {**_CHAT, "completion_tokens_details": {"reasoning_tokens": 25}},
            {**_MAPPED, "output": 0, "output_reasoning_tokens": 25},
        ),
        # OpenRouter and others add to the form.
        (
            {**_CHAT, "cost": 0.25, "is_byok": False, "cost_details": {"upstream": 1}, "prompt_cache_hit_tokens": 9},
            {**_MAPPED, "prompt_cache_hit_tokens": 9},
        ),
        # Not a whole form: kept as it is, and added up, as Langfuse does.
        (
            {"prompt_tokens": 10, "completion_tokens": 5},
            {"prompt_tokens": 10, "completion_tokens": 5, "total": 15},
        ),
        (
            {**_CHAT, "total_tokens": -1},
            {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": -1, "total": 319},
        ),
        (
            {"input": 1, "output": 2, "input_cached_tokens": 4},
            {"input": 1, "output": 2, "input_cached_tokens": 4, "total": 7},
        ),
        ({"input": 1, "total": 9}, {"input": 1, "total": 9}),
        ({}, {}),
        (None, {}),
        ([1], {}),
        ("text", {}),
    ],
)
def test_forms(sent: Any, stored: dict[str, float]) -> None:
    assert usage_details(sent) == stored


_COUNTS = st.integers(min_value=0, max_value=10**6)


@given(cached=_COUNTS, fresh=_COUNTS, reasoned=_COUNTS, said=_COUNTS)
def test_details_are_parts_of_their_count(cached: int, fresh: int, reasoned: int, said: int) -> None:
    found = usage_details(
        {
            "prompt_tokens": cached + fresh,
            "completion_tokens": reasoned + said,
            "total_tokens": cached + fresh + reasoned + said,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoned},
        }
    )
    assert (found["input"], found["output"]) == (fresh, said)
    assert sum(amount for kind, amount in found.items() if kind != "total") == found["total"]


@pytest.mark.parametrize("sent", [_CHAT, {**_CHAT, "prompt_tokens_details": {"cached_tokens": 200}}])
def test_sums_of_an_observation(client: httpx.Client, sent: dict[str, Any]) -> None:
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "startTimeUnixNano": "1795979270000000000",
        "attributes": [
            {"key": "langfuse.observation.usage_details", "value": {"stringValue": json.dumps(sent)}},
        ],
    }
    export = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert client.post("/api/public/otel/v1/traces", json=export).status_code == 200
    (found,) = client.get("/api/public/v2/observations", params={"fields": "usage"}).json()["data"]
    assert (found["inputUsage"], found["outputUsage"], found["totalUsage"]) == (300, 20, 320)


_SCRIPT = {
    "version": 1,
    "agent": [
        {
            "query": "Where is greet?",
            "turns": [
                {
                    "text": "In greet.py.",
                    "usage": {
                        "input_tokens": 100,
                        "cache_read_input_tokens": 200,
                        "output_tokens": 20,
                        "cost": 0.25,
                    },
                }
            ],
        }
    ],
}


# In a process of its own: importing langfuse.openai makes every openai client of a process record.
_ASKS_TWICE = """
import sys
from langfuse import get_client
from langfuse.openai import OpenAI
asked = {"model": "some/model", "messages": [{"role": "user", "content": "Where is greet?"}]}
completions = OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0).chat.completions
assert completions.create(name="whole", **asked).usage.total_tokens == 320
streamed = completions.create(name="streamed", stream=True, stream_options={"include_usage": True}, **asked)
assert [chunk.usage for chunk in streamed][-1].total_tokens == 320
get_client().shutdown()
"""


def test_usage_traced_by_the_openai_client_of_the_sdk(store: EmbeddedStore, client: httpx.Client) -> None:
    keys = {
        "LANGFUSE_BASE_URL": store.base_url,
        "LANGFUSE_PUBLIC_KEY": store.public_key,
        "LANGFUSE_SECRET_KEY": store.secret_key,
    }
    with ScriptedModel(parse_script(_SCRIPT)) as model:
        asked = subprocess.run(
            [sys.executable, "-c", _ASKS_TWICE, model.openai_base_url],
            env={**os.environ, **keys},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert asked.returncode == 0, asked.stderr
    found = client.get("/api/public/v2/observations", params={"fields": "basic,usage"}).json()["data"]
    assert sorted(each["name"] for each in found) == ["streamed", "whole"]
    for each in found:
        assert each["type"] == "GENERATION"
        assert each["usageDetails"] == {
            "input": 100,
            "input_cached_tokens": 200,
            "output": 20,
            "output_reasoning_tokens": 0,
            "total": 320,
        }
        assert (each["inputUsage"], each["outputUsage"], each["totalUsage"]) == (300, 20, 320)
        assert each["totalCost"] == 0.25
