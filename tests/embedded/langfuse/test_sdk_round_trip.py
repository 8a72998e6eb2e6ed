"""The real Langfuse SDK against the store: what it writes reads back over HTTP."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langfuse import Evaluation, Langfuse
from langfuse.api import DatasetStatus

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.langfuse.experiments import experiment_id

pytest_plugins = ["store_fixtures"]

LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
def langfuse(store: EmbeddedStore) -> Iterator[Langfuse]:
    sdk = Langfuse(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
    yield sdk
    sdk.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    # A public key of its own: the SDK keeps one client a public key for the life of the process.
    with EmbeddedStore(tmp_path / "langfuse.db", public_key=f"pk-lf-{uuid.uuid4().hex}") as running:
        yield running


def _write_dataset(langfuse: Langfuse) -> None:
    langfuse.create_dataset(name="pr/files", description="Files", metadata={"owner": "docs"})
    for number in range(3):
        langfuse.create_dataset_item(
            dataset_name="pr/files",
            id=f"pr/files/{number}",
            input={"query": f"Read file {number}"},
            expected_output={"tool": "read_file"},
            metadata={"kind": "tool-call", "number": number},
        )


def test_dataset_reads_back(langfuse: Langfuse) -> None:
    assert langfuse.auth_check()
    _write_dataset(langfuse)
    dataset = langfuse.get_dataset("pr/files", fetch_items_page_size=2)
    assert (dataset.description, dataset.metadata) == ("Files", {"owner": "docs"})
    assert {item.id: item.input for item in dataset.items} == {
        f"pr/files/{number}": {"query": f"Read file {number}"} for number in range(3)
    }


def test_archived_item_leaves_the_dataset(langfuse: Langfuse) -> None:
    _write_dataset(langfuse)
    langfuse.create_dataset_item(dataset_name="pr/files", id="pr/files/1", status=DatasetStatus("ARCHIVED"))
    assert sorted(item.id for item in langfuse.get_dataset("pr/files").items) == ["pr/files/0", "pr/files/2"]


def test_experiment_with_repeated_items(langfuse: Langfuse, client: httpx.Client, store: EmbeddedStore) -> None:
    _write_dataset(langfuse)
    dataset = langfuse.get_dataset("pr/files")

    def task(*, item: Any, **_: Any) -> Any:
        if item.id.endswith("/2"):
            raise RuntimeError("the target went away")
        with langfuse.start_as_current_observation(name="read_file", as_type="tool", input={"path": "a"}) as span:
            span.update(output="text", metadata={"server": "files"})
        return {"tool": "read_file", "item": item.id}

    def correct(*, output: Any, expected_output: Any, **_: Any) -> Evaluation:
        return Evaluation(
            name="correct",
            value=output["tool"] == expected_output["tool"],
            data_type="BOOLEAN",
            comment="compared",
            metadata={"by": "exact"},
        )

    def pass_rate(*, item_results: Any, **_: Any) -> Evaluation:
        return Evaluation(name="pass_rate", value=len(item_results) / 12)

    result = langfuse.run_experiment(
        name="files",
        run_name="files run 1",
        data=list(dataset.items) * 4,
        task=task,
        evaluators=[correct],
        run_evaluators=[pass_rate],
        metadata={"commit": "0a1b2c3"},
        max_concurrency=4,
    )
    assert result.experiment_id == experiment_id(store.project_id, dataset.id, "files run 1")

    (run,) = client.get(
        "/api/public/experiments", params={"fromStartTime": LONG_AGO, "fields": "core,metadata,scores"}
    ).json()["data"]
    assert (run["id"], run["name"], run["itemCount"]) == (result.experiment_id, "files run 1", 12)
    assert run["metadata"] == {"commit": "0a1b2c3"}
    assert [(score["name"], score["value"]) for score in run["scores"]] == [("pass_rate", 8 / 12)]

    trials = _all_pages(
        client,
        "/api/public/experiment-items",
        {"fromStartTime": LONG_AGO, "experimentName": "files run 1", "fields": "core,io,scores", "limit": "5"},
    )
    assert Counter(each["experimentItemId"] for each in trials) == {f"pr/files/{number}": 4 for number in range(3)}
    assert len({each["id"] for each in trials}) == 12
    for each in trials:
        failed = each["experimentItemId"] == "pr/files/2"
        assert each["level"] == ("ERROR" if failed else "DEFAULT")
        assert [(score["name"], score["value"]) for score in each["scores"]] == ([] if failed else [("correct", True)])
        assert each["expectedOutput"] == '{"tool": "read_file"}'

    found = _all_pages(client, "/api/public/v2/observations", {"type": "TOOL", "fields": "core,basic,io,metadata"})
    assert len(found) == 8
    assert {each["input"] for each in found} == {'{"path": "a"}'}
    assert all(each["metadata"]["server"] == "files" for each in found)

    page = client.get(result.experiment_url or "", auth=None)
    assert page.status_code == 200
    assert page.text.count("pr/files/2") == 4
    trace = client.get(langfuse.get_trace_url(trace_id=trials[0]["traceId"]) or "", auth=None)
    assert "experiment-item-run" in trace.text


def test_scores_reach_trace_observation_and_session(langfuse: Langfuse, client: httpx.Client) -> None:
    trace_id = langfuse.create_trace_id(seed="scored")
    langfuse.create_score(name="tone", value="friendly", trace_id=trace_id, data_type="CATEGORICAL")
    langfuse.create_score(name="speed", value=0.25, trace_id=trace_id, observation_id="0123456789abcdef")
    langfuse.create_score(name="resolved", value=1, session_id="session-1", data_type="BOOLEAN")
    langfuse.flush()
    found = client.get("/api/public/v3/scores", params={"fields": "subject"}).json()["data"]
    assert {each["name"]: (each["value"], each["subject"]["kind"]) for each in found} == {
        "tone": ("friendly", "trace"),
        "speed": (0.25, "observation"),
        "resolved": (True, "session"),
    }


def test_scores_are_dropped_where_arrays_are_refused(tmp_path: Path) -> None:
    with EmbeddedStore(
        tmp_path / "refusing.db", refuse_score_arrays=True, public_key=f"pk-lf-{uuid.uuid4().hex}"
    ) as refusing:
        sdk = Langfuse(public_key=refusing.public_key, secret_key=refusing.secret_key, base_url=refusing.base_url)
        sdk.create_score(name="lost", value=1, trace_id=sdk.create_trace_id())
        sdk.shutdown()
        found = httpx.get(
            f"{refusing.base_url}/api/public/v3/scores", auth=(refusing.public_key, refusing.secret_key)
        ).json()
        assert found["data"] == []


def _all_pages(client: httpx.Client, path: str, params: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        answer = client.get(path, params={**params, **({"cursor": cursor} if cursor else {})}).json()
        found += answer["data"]
        cursor = answer["meta"].get("cursor")
        if cursor is None:
            return found
