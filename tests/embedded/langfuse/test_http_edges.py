"""Limits, keys, unknown places and odd bodies: the store answers, and in a shape that its clients parse."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.langfuse.requests import BODY_LIMIT
from evals.errors import TwogateError

pytest_plugins = ["store_fixtures"]


def _item(size: int) -> bytes:
    head, tail = b'{"datasetName": "d", "id": "big", "input": "', b'"}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


@pytest.mark.parametrize("chunked", [False, True])
def test_body_limit(client: httpx.Client, chunked: bool) -> None:
    client.post("/api/public/v2/datasets", json={"name": "d"})
    headers = {"content-type": "application/json"}

    def post(size: int) -> httpx.Response:
        body = _item(size)
        return client.post("/api/public/dataset-items", content=iter([body]) if chunked else body, headers=headers)

    assert post(BODY_LIMIT).status_code == 200
    refused = post(BODY_LIMIT + 1)
    assert (refused.status_code, refused.text) == (413, "Body exceeded 4.5mb limit")


def test_export_may_be_larger_than_other_bodies(client: httpx.Client) -> None:
    text = {"key": "langfuse.observation.output", "value": {"stringValue": "x" * (BODY_LIMIT + 1)}}
    span = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "big", "attributes": [text]}
    export = httpx.Request("POST", "http://x", json={"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    for body, encoding in ((export.content, {}), (gzip.compress(export.content), {"content-encoding": "gzip"})):
        answer = client.post(
            "/api/public/otel/v1/traces", content=body, headers={"content-type": "application/json", **encoding}
        )
        assert answer.status_code == 200
    (found,) = client.get("/api/public/v2/observations", params={"fields": "io"}).json()["data"]
    assert len(found["output"]) == BODY_LIMIT + 1


@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic !!!", "Basic eA==", "Bearer pk-lf-twogate-embedded", "Basic cGstbGYtdHdvZ2F0ZS1lbWJlZGRlZA=="],
)
def test_malformed_credentials(client: httpx.Client, header: str) -> None:
    answer = client.get("/api/public/projects", headers={"authorization": header}, auth=None)
    assert answer.status_code == 401
    assert answer.json()["message"].startswith("Invalid credentials")


def test_secret_key_stays_out_of_representations(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "langfuse.db", secret_key="sk-lf-hidden")
    assert "sk-lf-hidden" not in repr(store)
    assert "sk-lf-hidden" not in repr(store._settings)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/public/v2/prompts/x"),
        ("GET", "/nowhere"),
        ("POST", "/api/public/unknown"),
        ("GET", "/api/public/v2/datasets/"),
    ],
)
def test_unknown_routes_are_a_404_page(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "name", ["pr/a b", "pr/ä%2F", "100%", "a?b#c", "🗂/x", "pr/[1]"], ids=lambda name: name.encode().hex()
)
def test_names_that_need_encoding(client: httpx.Client, name: str) -> None:
    encoded = quote(name, safe="")
    assert client.post("/api/public/v2/datasets", json={"name": name}).status_code == 200
    assert client.get(f"/api/public/v2/datasets/{encoded}").json()["name"] == name
    client.post("/api/public/dataset-items", json={"datasetName": name, "id": name, "input": 1})
    assert client.get(f"/api/public/dataset-items/{encoded}").json()["id"] == name
    listed = client.get("/api/public/dataset-items", params={"datasetName": name}).json()
    assert [each["id"] for each in listed["data"]] == [name]
    assert client.delete(f"/api/public/dataset-items/{encoded}").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"datasetName": "d", "id": "\\ud800", "input": "\\udfff", "metadata": {"\\ud800": 1}}',
        b'{"datasetName": "d", "id": "deep", "input": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"datasetName": "d", "id": "long", "input": ' + b"9" * 1000 + b', "metadata": 1e999}',
    ],
)
def test_odd_values_are_stored_and_listed(client: httpx.Client, body: bytes) -> None:
    client.post("/api/public/v2/datasets", json={"name": "d"})
    headers = {"content-type": "application/json"}
    answer = client.post("/api/public/dataset-items", content=body, headers=headers)
    # A number beyond every double is null, and an item needs an input.
    assert answer.status_code == (400 if b'"long"' in body else 200)
    assert client.get("/api/public/dataset-items").status_code == 200


def test_value_nested_too_deeply_is_no_json(client: httpx.Client) -> None:
    client.post("/api/public/v2/datasets", json={"name": "d"})
    for depth in (700, 3000, 200_000):
        body = b'{"datasetName": "d", "id": "deep", "input": ' + b"[" * depth + b"]" * depth + b"}"
        answer = client.post("/api/public/dataset-items", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.text) == (400, "Invalid JSON")
    assert client.get("/api/public/dataset-items").json()["data"] == []


def test_span_of_huge_numbers_is_taken(client: httpx.Client) -> None:
    huge = 10**30
    attributes = [
        ("langfuse.observation.usage_details", json.dumps({"input": huge, "output": 10**400, "x": True})),
        ("langfuse.observation.prompt.version", str(huge)),
        ("langfuse.observation.cost_details", "[1]"),
    ]
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "startTimeUnixNano": str(huge),
        "endTimeUnixNano": "-1",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes],
    }
    answer = client.post("/api/public/otel/v1/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert answer.status_code == 200
    (found,) = client.get("/api/public/v2/observations", params={"fields": "usage,prompt"}).json()["data"]
    assert (found["inputUsage"], found["promptVersion"], found["totalCost"]) == (1e30, None, 0)


def test_versions_of_items_with_deletions(client: httpx.Client) -> None:
    client.post("/api/public/v2/datasets", json={"name": "d"})
    first = client.post("/api/public/dataset-items", json={"datasetName": "d", "id": "a", "input": 1}).json()
    _wait_a_millisecond(client, first["createdAt"])
    client.delete("/api/public/dataset-items/a")
    params = {"datasetName": "d", "version": first["createdAt"]}
    then = client.get("/api/public/dataset-items", params=params).json()
    assert [each["id"] for each in then["data"]] == ["a"]
    assert client.get("/api/public/dataset-items", params={"datasetName": "d"}).json()["data"] == []


def _wait_a_millisecond(client: httpx.Client, since: str) -> None:
    while client.post("/api/public/v2/datasets", json={"name": "clock"}).json()["updatedAt"] <= since:
        pass


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "object"}, [1], "must be object"),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "/a must be string"),
        ({"additionalProperties": False}, {"a": 1}, "must NOT have additional properties"),
        ({"properties": {"a": {"enum": ["x"]}}}, {"a": "y"}, "/a must be equal to one of the allowed values"),
        ({"required": ["a", "b"]}, {"a": 1}, "must have required property 'b'"),
    ],
)
def test_items_are_held_to_the_schemas_of_their_dataset(
    client: httpx.Client, schema: dict[str, Any], value: Any, problem: str
) -> None:
    client.post("/api/public/v2/datasets", json={"name": "d", "inputSchema": schema, "expectedOutputSchema": schema})
    body = {"datasetName": "d", "id": "a", "input": value}
    answer = client.post("/api/public/dataset-items", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == f"Dataset item validation failed: Input validation failed: {problem}"
    assert client.get("/api/public/dataset-items/a").status_code == 404


def test_schema_that_is_none_is_refused(client: httpx.Client) -> None:
    answer = client.post("/api/public/v2/datasets", json={"name": "d", "inputSchema": {"type": "nonsense"}})
    assert answer.status_code == 400
    assert "inputSchema is not a valid JSON schema" in answer.json()["message"]


def test_place_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "langfuse.db"):
        with pytest.raises(TwogateError, match=r"cannot (open the|use .* as a) store"):
            EmbeddedStore(path).__enter__()


def test_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("these are notes, not a database\n" * 50)
    with pytest.raises(TwogateError, match=r"notes\.db as a store: file is not a database"):
        EmbeddedStore(text).__enter__()
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()
    with pytest.raises(TwogateError, match="an SQLite file of something else"):
        EmbeddedStore(other).__enter__()


def test_file_of_a_newer_twogate_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "langfuse.db"
    with EmbeddedStore(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(TwogateError, match=r"written by a newer Twogate \(format 99"):
        EmbeddedStore(path).__enter__()


def test_pages_escape_what_they_show(client: httpx.Client, store: EmbeddedStore) -> None:
    spans = [
        {
            "traceId": "0" * 31 + "1",
            "spanId": "0" * 15 + "1",
            "name": "<script>alert(1)</script>",
            "attributes": [
                {"key": key, "value": {"stringValue": value}}
                for key, value in (
                    ("langfuse.experiment.id", "e"),
                    ("langfuse.experiment.name", "<b>run</b>"),
                    ("langfuse.experiment.item.id", "<i>item</i>"),
                    ("langfuse.experiment.item.root_observation_id", "0" * 15 + "1"),
                    ("langfuse.observation.output", "<img src=x>"),
                )
            ],
        }
    ]
    client.post("/api/public/otel/v1/traces", json={"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    project = f"/project/{store.project_id}"
    for path in (project, f"{project}/experiments/results?baseline=e", f"{project}/traces/{'0' * 31}1"):
        page = client.get(path, auth=None)
        assert page.status_code == 200
        assert "&lt;" in page.text
        for tag in ("<script", "<b>", "<i>", "<img"):
            assert tag not in page.text


def test_pages_of_a_store_with_keys_of_its_own_need_them(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "langfuse.db", secret_key="sk-lf-own") as store:
        refused = httpx.get(store.base_url)
        assert (refused.status_code, refused.headers["www-authenticate"].split()[0]) == (401, "Basic")
        assert httpx.get(store.base_url, auth=(store.public_key, "sk-lf-own")).status_code == 200
