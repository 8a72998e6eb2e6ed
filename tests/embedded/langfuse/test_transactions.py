"""What fails half way leaves nothing behind, and the store goes on working."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from evals.embedded.langfuse import DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY, Database, create_app

_INSERT = "INSERT INTO items (id, dataset_id, seq) VALUES (?, 'd', 1)"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "langfuse.db")


def _ids(database: Database) -> list[str]:
    return [row["id"] for row in database.rows("SELECT id FROM items ORDER BY id")]


def test_exception_rolls_back_also_what_was_nested(database: Database) -> None:
    def fail_after_nested_write() -> None:
        with database.write():
            database.execute(_INSERT, ["outer"])
            with database.write():
                database.execute(_INSERT, ["inner"])
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_after_nested_write()
    assert _ids(database) == []
    with database.write():
        database.execute(_INSERT, ["later"])
    assert _ids(Database(database.path)) == ["later"]


def test_refused_row_rolls_back(database: Database) -> None:
    def insert_twice() -> None:
        with database.write():
            database.execute(_INSERT, ["same"])
            database.execute(_INSERT, ["same"])

    with pytest.raises(sqlite3.IntegrityError):
        insert_twice()
    assert _ids(database) == []


def test_full_disk_is_a_503_and_passes(database: Database) -> None:
    client = TestClient(create_app(database))
    client.auth = (DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY)
    client.post("/api/public/v2/datasets", json={"name": "d"})
    pages = database.count("PRAGMA page_count")
    database.rows(f"PRAGMA max_page_count = {pages + 1}")
    item = {"datasetName": "d", "id": "big", "input": "x" * 100_000}
    refused = client.post("/api/public/dataset-items", json=item)
    assert (refused.status_code, refused.json()["error"]) == (503, "ServiceUnavailableError")
    database.rows("PRAGMA max_page_count = 1000000")
    assert client.post("/api/public/dataset-items", json=item).status_code == 200
    assert Database(database.path).count("SELECT count(*) FROM item_versions") == 1
