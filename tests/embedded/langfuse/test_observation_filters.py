"""The filter parameter of GET /v2/observations: every type and operator, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

pytest_plugins = ["store_fixtures"]

_TRACE = "0" * 31 + "1"
_SPANS: dict[str, dict[str, Any]] = {
    "a": {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": "Needle in the Haystack",
        "langfuse.observation.metadata.server": '"files"',
        "langfuse.observation.metadata.count": "3",
        "langfuse.observation.model.name": "model-1",
        "langfuse.observation.usage_details": '{"input": 10, "output": 20}',
        "langfuse.observation.completion_start_time": '"2026-11-29T19:07:50.500Z"',
        "langfuse.trace.tags": ["x", "y"],
    },
    "b": {"langfuse.observation.metadata.count": "12", "langfuse.trace.tags": ["y"], "user.id": "u"},
    "c": {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "denied: x"},
}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}
    return {"stringValue": value}


@pytest.fixture
def spans(client: httpx.Client) -> httpx.Client:
    start = 1_795_979_270_000_000_000
    sent = [
        {
            "traceId": _TRACE,
            "spanId": f"{position + 1:016x}",
            "parentSpanId": "" if position == 0 else f"{1:016x}",
            "name": name,
            "startTimeUnixNano": str(start + position * 1_000_000_000),
            "endTimeUnixNano": str(start + position * 1_000_000_000 + (position + 1) * 1_000_000_000),
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
        }
        for position, (name, attributes) in enumerate(_SPANS.items())
    ]
    export = {"resourceSpans": [{"scopeSpans": [{"spans": sent}]}]}
    assert client.post("/api/public/otel/v1/traces", json=export).status_code == 200
    return client


def _ask(client: httpx.Client, *conditions: dict[str, Any]) -> httpx.Response:
    return client.get("/api/public/v2/observations", params={"filter": json.dumps(conditions)})


def _condition(kind: str, column: str, operator: str, value: Any = None, key: str | None = None) -> dict[str, Any]:
    found = {"type": kind, "column": column, "operator": operator, "value": value}
    return found if key is None else {**found, "key": key}


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (_condition("string", "name", "=", "b"), "b"),
        (_condition("string", "statusMessage", "contains", "nied"), "c"),
        (_condition("string", "statusMessage", "does not contain", "nied"), "ab"),
        (_condition("string", "statusMessage", "starts with", "denied"), "c"),
        (_condition("string", "statusMessage", "ends with", ": x"), "c"),
        (_condition("string", "statusMessage", "ends with", ""), "abc"),
        (_condition("string", "input", "matches", "needle IN"), "a"),
        (_condition("string", "name", "=", "' OR 1=1 --"), ""),
        (_condition("stringOptions", "level", "any of", ["ERROR", "WARNING"]), "c"),
        (_condition("stringOptions", "level", "none of", ["ERROR"]), "ab"),
        (_condition("stringOptions", "level", "any of", []), ""),
        (_condition("arrayOptions", "tags", "any of", ["x", "z"]), "a"),
        (_condition("arrayOptions", "traceTags", "none of", ["x"]), "bc"),
        (_condition("arrayOptions", "tags", "all of", ["x", "y"]), "a"),
        (_condition("datetime", "startTime", ">", "2026-11-29T19:07:50Z"), "bc"),
        (_condition("datetime", "startTime", "<=", "2026-11-29T19:07:50Z"), "a"),
        (_condition("number", "latency", ">=", 2), "bc"),
        (_condition("number", "timeToFirstToken", "=", 0.5), "a"),
        (_condition("number", "tokensPerSecond", ">", 19), "a"),
        (_condition("number", "totalTokens", "=", 30), "a"),
        (_condition("boolean", "isRootObservation", "=", True), "a"),
        (_condition("boolean", "isRootObservation", "<>", True), "bc"),
        (_condition("null", "userId", "is null"), "ac"),
        (_condition("null", "model", "is not null"), "a"),
        (_condition("stringObject", "metadata", "=", '"files"', "server"), "a"),
        (_condition("stringObject", "metadata", "is set", key="count"), "ab"),
        (_condition("stringObject", "metadata", "is not set", key="count"), "c"),
        (_condition("stringObject", "metadata", "matches", "FILES", "server"), ""),
        (_condition("numberObject", "metadata", ">", 5, "count"), "b"),
        (_condition("numberObject", "metadata", "<", 5, "server"), ""),
        (_condition("categoryOptions", "metadata", "any of", ["3"], "count"), "a"),
        (_condition("categoryOptions", "metadata", "none of", ["3"], "count"), "bc"),
    ],
    ids=lambda value: "-".join(str(part) for part in value.values()) if isinstance(value, dict) else value,
)
def test_filter(spans: httpx.Client, condition: dict[str, Any], names: str) -> None:
    answer = _ask(spans, condition)
    assert answer.status_code == 200, answer.text
    assert sorted(each["name"] for each in answer.json()["data"]) == list(names)


def test_all_conditions_must_hold(spans: httpx.Client) -> None:
    both = (_condition("string", "name", "=", "b"), _condition("number", "latency", ">", 100))
    assert _ask(spans, *both).json()["data"] == []


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (_condition("text", "name", "=", "b"), "type 'text' is not one of"),
        (_condition("string", "name", "like", "b"), "operator 'like' of type 'string' is not one of"),
        (_condition("string", "name", "=", 7), "value of type 'string' must be a string"),
        (_condition("string", "name", "matches", "b"), "operator 'matches' is for input, output and metadata"),
        (_condition("stringOptions", "name", "any of", "b"), "must be an array of strings"),
        (_condition("number", "latency", "=", True), "must be a number"),
        (_condition("datetime", "startTime", "<", "soon"), "must be an ISO 8601 datetime"),
        (_condition("boolean", "isRootObservation", "=", "true"), "must be true or false"),
        (_condition("stringObject", "metadata", "=", "x"), "key of type 'stringObject' must be a string"),
        (_condition("string", "output", "contains", "x"), "needs at least one '=' or 'matches' condition"),
        ({"type": "string", "column": "name"}, "each condition needs a text as 'operator'"),
    ],
)
def test_condition_that_is_refused(spans: httpx.Client, condition: dict[str, Any], problem: str) -> None:
    answer = _ask(spans, condition)
    assert answer.status_code == 400
    assert problem in answer.json()["message"]
    assert answer.json()["error"] == "InvalidRequestError"


def test_filter_that_is_no_list_is_refused(spans: httpx.Client) -> None:
    answer = spans.get("/api/public/v2/observations", params={"filter": '{"column": "name"}'})
    assert answer.json()["message"] == "Invalid filter parameter: it must be an array of conditions"


def test_empty_parent_finds_spans_without_one(spans: httpx.Client) -> None:
    found = spans.get("/api/public/v2/observations", params={"parentObservationId": ""}).json()["data"]
    assert [each["name"] for each in found] == ["a"]
