"""Dataset files: what is loaded when, and what is said about a file that is not one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from evals.embedded.langfuse import EmbeddedStore, load_dataset_file
from evals.errors import TwogateError

_ITEMS: list[dict[str, Any]] = [
    {"id": "pr/a", "input": {"query": "a"}, "expectedOutput": None, "metadata": {"kind": "tool-call"}},
    {"id": "pr/b", "input": {"query": "b"}, "expectedOutput": {"tool": "t"}, "status": "ACTIVE"},
    {"id": "pr/old", "input": {"query": "old"}, "status": "ARCHIVED"},
]


def _write(path: Path, content: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def _dataset(name: str, items: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"dataset": name, "items": items, **fields}


def _datasets(store: EmbeddedStore) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(
        f"{store.base_url}/api/public/v2/datasets", auth=(store.public_key, store.secret_key)
    ).json()["data"]
    return found


def _items(store: EmbeddedStore, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(
        f"{store.base_url}/api/public/dataset-items",
        params={"datasetName": name},
        auth=(store.public_key, store.secret_key),
    ).json()["data"]
    return found


@pytest.mark.parametrize("exists", [False, True])
def test_folder_may_be_absent_or_empty(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "datasets"
    if exists:
        folder.mkdir()
    with EmbeddedStore(tmp_path / "langfuse.db", shipped_datasets=folder) as store:
        assert _datasets(store) == []


def test_items_are_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    _write(tmp_path / "datasets" / "a.json", _dataset("gate-pr", _ITEMS, description="Cases"))
    with EmbeddedStore(tmp_path / "langfuse.db", shipped_datasets=tmp_path / "datasets") as store:
        (dataset,) = _datasets(store)
        assert (dataset["name"], dataset["description"]) == ("gate-pr", "Cases")
        items = _items(store, "gate-pr")
        assert [each["id"] for each in items] == ["pr/a", "pr/b"]
        assert items[0]["metadata"] == {"kind": "tool-call"}
        assert items[1]["expectedOutput"] == {"tool": "t"}


def test_dataset_shipped_later_is_added_and_a_deleted_item_stays_deleted(tmp_path: Path) -> None:
    folder, path = tmp_path / "datasets", tmp_path / "langfuse.db"
    _write(folder / "a.json", _dataset("first", _ITEMS))
    with EmbeddedStore(path, shipped_datasets=folder) as store:
        auth = (store.public_key, store.secret_key)
        httpx.delete(f"{store.base_url}/api/public/dataset-items/pr%2Fa", auth=auth).raise_for_status()
    _write(folder / "a.json", _dataset("first", [*_ITEMS, {"id": "pr/new", "input": 1}], description="changed"))
    _write(folder / "b.json", _dataset("second", [{"id": "pr/second", "input": 1}]))
    with EmbeddedStore(path, shipped_datasets=folder) as store:
        assert {each["name"]: each["description"] for each in _datasets(store)} == {"first": None, "second": None}
        assert [each["id"] for each in _items(store, "first")] == ["pr/new", "pr/b"]
        assert [each["id"] for each in _items(store, "second")] == ["pr/second"]


def test_dataset_whose_ids_are_taken_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "datasets"
    _write(folder / "a.json", _dataset("first", [{"id": "same", "input": 1}]))
    _write(folder / "b.json", _dataset("second", [{"id": "fine", "input": 1}, {"id": "same", "input": 1}]))
    _write(folder / "c.json", _dataset("third", [{"id": "third", "input": 1}]))
    with EmbeddedStore(tmp_path / "langfuse.db", shipped_datasets=folder) as store:
        assert sorted(each["name"] for each in _datasets(store)) == ["first", "third"]
        auth = (store.public_key, store.secret_key)
        assert httpx.get(f"{store.base_url}/api/public/dataset-items/fine", auth=auth).status_code == 404
    assert "b.json: not loaded" in caplog.text
    assert "same already exists in another dataset" in caplog.text


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("{", ["not valid JSON"]),
        ("[]", ["file: Input should be a valid dictionary"]),
        ({"items": []}, ["dataset: Field required"]),
        (_dataset("", []), ["dataset: String should have at least 1 character"]),
        (_dataset("/x", []), ["dataset: String should match pattern"]),
        (_dataset("x", [{"id": "a"}]), ["items.0.input: Field required"]),
        (
            _dataset("x", [{"id": 1, "input": 1, "expected_output": 2}], comment="?"),
            ["items.0.id: Input should be a valid string", "items.0.expected_output: Extra", "comment: Extra"],
        ),
        (_dataset("x", [{"id": "a", "input": 1, "status": "DRAFT"}]), ["items.0.status: Input should be 'ACTIVE'"]),
        (
            _dataset("x", [{"id": "a", "input": 1}, {"id": "a", "input": ""}]),
            ["items.1.id: 'a' is used twice", "items.1.input: must not be empty"],
        ),
        # Langfuse parses a text that is JSON, and drops control characters: nothing is left of these.
        (
            _dataset("x", [{"id": "a", "input": "null"}, {"id": "b", "input": "\x00"}]),
            ["items.0.input: must not be empty", "items.1.input: must not be empty"],
        ),
    ],
)
def test_every_problem_of_a_file_is_named(tmp_path: Path, content: Any, problems: list[str]) -> None:
    path = _write(tmp_path / "cases.json", content)
    with pytest.raises(TwogateError) as refused:
        load_dataset_file(path)
    assert len(refused.value.lines) == len(problems)
    for problem in problems:
        assert any(str(path) in line and problem in line for line in refused.value.lines), refused.value.lines


def test_problems_of_all_files_are_named_and_nothing_is_loaded(tmp_path: Path) -> None:
    folder, path = tmp_path / "datasets", tmp_path / "langfuse.db"
    _write(folder / "a.json", _dataset("fine", _ITEMS))
    _write(folder / "b.json", "{")
    _write(folder / "c.json", {"dataset": "x"})
    with pytest.raises(TwogateError) as refused:
        EmbeddedStore(path, shipped_datasets=folder).__enter__()
    assert [line.split(":")[0] for line in refused.value.lines] == [str(folder / "b.json"), str(folder / "c.json")]
    with EmbeddedStore(path) as store:
        assert _datasets(store) == []


def test_file_reads_as_what_it_says(tmp_path: Path) -> None:
    found = load_dataset_file(_write(tmp_path / "cases.json", _dataset("gate-pr", _ITEMS)))
    assert found.dataset == "gate-pr"
    assert [(item.id, item.status, item.expected_output) for item in found.items] == [
        ("pr/a", "ACTIVE", None),
        ("pr/b", "ACTIVE", {"tool": "t"}),
        ("pr/old", "ARCHIVED", None),
    ]
