"""POST /scores with an array, as the Langfuse SDK sends and parses it; POST /ingestion beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from langfuse.api.scores.types.create_score_batch_response import CreateScoreBatchResponse
from langfuse.api.scores.types.create_score_batch_results import CreateScoreBatchResults

from evals.embedded.langfuse import EmbeddedStore

pytest_plugins = ["store_fixtures"]


def _score(**fields: Any) -> dict[str, Any]:
    return {"traceId": "0" * 31 + "1", "name": "correct", "value": 1, **fields}


def _names(client: httpx.Client) -> list[str]:
    return sorted(each["name"] for each in client.get("/api/public/v3/scores").json()["data"])


def test_all_accepted_is_202(client: httpx.Client) -> None:
    answer = client.post("/api/public/scores", json=[_score(name="a"), _score(name="b")])
    assert answer.status_code == 202
    assert CreateScoreBatchResponse.model_validate(answer.json()).message == "Accepted"
    assert _names(client) == ["a", "b"]


def test_some_refused_is_207_and_the_rest_is_stored(client: httpx.Client) -> None:
    answer = client.post(
        "/api/public/scores",
        json=[_score(name="a"), _score(value=2, dataType="BOOLEAN"), {"name": "c", "value": 1}, 7],
    )
    assert answer.status_code == 207
    results = CreateScoreBatchResults.model_validate(answer.json())
    assert (results.accepted, results.rejected) == (1, 3)
    assert "index 1" in results.errors[0].message
    assert "value" in results.errors[0].message
    assert "traceId" in results.errors[1].message
    assert "index 3" in results.errors[2].message
    assert _names(client) == ["a"]


def test_same_id_again_changes_the_score_and_keeps_what_is_left_out(client: httpx.Client) -> None:
    for change in (
        {"value": 1, "comment": "first", "metadata": {"n": 1}, "timestamp": "2026-01-01T00:00:00Z"},
        {"value": 0, "timestamp": "2026-01-01T00:00:00Z"},
    ):
        assert client.post("/api/public/scores", json=[_score(id="s", **change)]).status_code == 202
    (found,) = client.get("/api/public/v3/scores", params={"fields": "details"}).json()["data"]
    assert (found["value"], found["comment"], found["metadata"]) == (0, "first", {"n": 1})


def test_array_can_be_refused_as_the_recorded_server_does(tmp_path: Path) -> None:
    with (
        EmbeddedStore(tmp_path / "langfuse.db", refuse_score_arrays=True) as store,
        httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key)) as client,
    ):
        answer = client.post("/api/public/scores", json=[_score()])
        assert answer.status_code == 400
        message = "Invalid input: expected object, received array"
        assert [issue["message"] for issue in answer.json()["error"]] == [message, message]
        assert client.post("/api/public/scores", json=_score(id="one")).json() == {"id": "one"}
        event = {"id": "e", "type": "score-create", "timestamp": "2026-01-01T00:00:00Z", "body": _score(name="two")}
        assert client.post("/api/public/ingestion", json={"batch": [event]}).json()["errors"] == []
        assert _names(client) == ["correct", "two"]


def test_deleted_score_is_gone(client: httpx.Client) -> None:
    client.post("/api/public/scores", json=[_score(id="a/1", name="a"), _score(name="b")])
    assert client.delete("/api/public/scores/a%2F1").status_code == 204
    assert client.delete("/api/public/scores/a%2F1").status_code == 204
    assert _names(client) == ["b"]


def test_sdk_logs_are_taken_and_malformed_events_named(client: httpx.Client) -> None:
    stamp = "2026-01-01T00:00:00Z"
    answer = client.post(
        "/api/public/ingestion",
        json={
            "batch": [
                {"id": "log", "type": "sdk-log", "timestamp": stamp, "body": {"log": "x"}},
                {"id": "no-body", "type": "score-create", "timestamp": stamp},
                {"id": "no-time", "type": "score-create", "body": _score()},
                "not an event",
            ]
        },
    ).json()
    assert answer["successes"] == [{"id": "log", "status": 201}]
    assert [each["id"] for each in answer["errors"]] == ["no-body", "no-time", None]
    assert _names(client) == []
