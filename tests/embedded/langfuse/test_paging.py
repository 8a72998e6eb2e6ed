"""Lists read page by page show everything exactly once, newest first, also where times are equal."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from evals.embedded.langfuse import DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY, Database, StoreSettings, create_app

_START = 1_795_979_270_000
_FEW = settings(max_examples=25, deadline=None)
# Offsets in milliseconds: few values, so that many things share one time.
_OFFSETS = st.lists(st.integers(0, 3), max_size=25)
_LIMITS = st.integers(1, 7)


@contextmanager
def _client(now: list[int]) -> Iterator[TestClient]:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "langfuse.db")
        client = TestClient(create_app(database, StoreSettings(now=lambda: now[0])))
        client.auth = (DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY)
        yield client
        database.close()


def _by_cursor(client: TestClient, path: str, limit: int, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(path, params={**params, **cursor, "limit": str(limit)}).json()
        assert len(answer["data"]) <= limit
        found += answer["data"]
        if "cursor" not in answer["meta"]:
            return found
        assert len(answer["data"]) == limit
        cursor = {"cursor": answer["meta"]["cursor"]}


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def _export(client: TestClient, offsets: list[int]) -> list[tuple[str, str]]:
    """Each span is the task of a trial; every third belongs to the same experiment."""
    spans = []
    for position, offset in enumerate(offsets):
        span_id = f"{position:016x}"
        spans.append(
            {
                "traceId": f"{position % 4:032x}",
                "spanId": span_id,
                "name": "task",
                "startTimeUnixNano": str((_START + offset) * 1_000_000),
                "endTimeUnixNano": str((_START + offset + 1) * 1_000_000),
                "attributes": [
                    _attribute("langfuse.experiment.id", f"experiment-{position % 3}"),
                    _attribute("langfuse.experiment.item.id", f"item-{position % 5}"),
                    _attribute("langfuse.experiment.item.root_observation_id", span_id),
                ],
            }
        )
    export = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    assert client.post("/api/public/otel/v1/traces", json=export).status_code == 200
    return sorted((f"{position % 4:032x}", f"{position:016x}") for position in range(len(offsets)))


@_FEW
@given(_OFFSETS, _LIMITS)
def test_dataset_items(offsets: list[int], limit: int) -> None:
    now = [_START]
    with _client(now) as client:
        client.post("/api/public/v2/datasets", json={"name": "d"})
        for position, offset in enumerate(offsets):
            now[0] = _START + offset
            client.post("/api/public/dataset-items", json={"datasetName": "d", "id": str(position), "input": 1})
        found: list[dict[str, Any]] = []
        for page in range(1, len(offsets) + 2):
            params = {"datasetName": "d", "page": str(page), "limit": str(limit)}
            answer = client.get("/api/public/dataset-items", params=params).json()
            assert answer["meta"]["totalPages"] == -(-len(offsets) // limit)
            found += answer["data"]
    assert sorted(each["id"] for each in found) == sorted(str(position) for position in range(len(offsets)))
    times = [each["createdAt"] for each in found]
    assert times == sorted(times, reverse=True)


@_FEW
@given(_OFFSETS, _LIMITS)
def test_observations_and_experiments(offsets: list[int], limit: int) -> None:
    with _client([_START]) as client:
        written = _export(client, offsets)
        observations = _by_cursor(client, "/api/public/v2/observations", limit)
        since = {"fromStartTime": "2020-01-01T00:00:00Z"}
        trials = _by_cursor(client, "/api/public/experiment-items", limit, **since)
        experiments = _by_cursor(client, "/api/public/experiments", limit, **since)
    for found in (observations, trials):
        assert sorted((each["traceId"], each["id"]) for each in found) == written
        times = [each["startTime"] for each in found]
        assert times == sorted(times, reverse=True)
    assert len({each["id"] for each in experiments}) == len(experiments) == min(3, len(offsets))
    assert sum(each["itemCount"] for each in experiments) == len(offsets)


@_FEW
@given(_OFFSETS, _LIMITS)
def test_scores(offsets: list[int], limit: int) -> None:
    with _client([_START]) as client:
        scores = [
            {
                "id": f"score-{position}",
                "traceId": "t",
                "name": "n",
                "value": 1,
                "timestamp": f"2026-01-01T00:00:00.00{offset}Z",
            }
            for position, offset in enumerate(offsets)
        ]
        assert client.post("/api/public/scores", json=scores).status_code == 202
        found = _by_cursor(client, "/api/public/v3/scores", limit)
    assert sorted(each["id"] for each in found) == sorted(f"score-{place}" for place in range(len(offsets)))
    times = [each["timestamp"] for each in found]
    assert times == sorted(times, reverse=True)


def test_what_is_written_between_pages_does_not_move_the_next_page() -> None:
    with _client([_START]) as client:
        _export(client, [0, 1, 2, 3])
        first = client.get("/api/public/v2/observations", params={"limit": "2"}).json()
        later = {"traceId": "f" * 32, "spanId": "f" * 16, "startTimeUnixNano": str((_START + 9) * 1_000_000)}
        client.post("/api/public/otel/v1/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": [later]}]}]})
        cursor = first["meta"]["cursor"]
        second = client.get("/api/public/v2/observations", params={"limit": "2", "cursor": cursor}).json()
    assert [each["id"] for each in first["data"] + second["data"]] == [f"{place:016x}" for place in (3, 2, 1, 0)]
