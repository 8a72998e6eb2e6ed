"""Upserts and deletions of items in any order: the store does what the recorded rules say, as a small model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from evals.embedded.langfuse import DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY, Database, create_app

_ABSENT: Any = ...
_VALUES = st.sampled_from([_ABSENT, None, "", "text", 0, False, {}, {"a": 1}, [1]])


@dataclass(frozen=True)
class Upsert:
    """POST dataset-items; `...` leaves a field out."""

    dataset: str
    id: str
    input: Any
    metadata: Any
    status: Any


@dataclass(frozen=True)
class Delete:
    """DELETE dataset-items."""

    id: str


_IDS = st.sampled_from(["a", "b/c"])
_STEPS = st.lists(
    st.builds(
        Upsert,
        st.sampled_from(["one", "two"]),
        _IDS,
        _VALUES,
        _VALUES,
        st.sampled_from([_ABSENT, None, "ACTIVE", "ARCHIVED"]),
    )
    | st.builds(Delete, _IDS),
    max_size=12,
)


class Model:
    """The rules, with the stored items in the order in which they were written last."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        self.items: dict[str, dict[str, Any]] = {}

    def upsert(self, step: Upsert) -> int:
        if self.owners.get(step.id, step.dataset) != step.dataset:
            return 409
        stored = self.items.get(step.id)
        before = stored or {"input": None, "metadata": None, "status": "ACTIVE"}
        after = {name: self._merged(getattr(step, name), before[name]) for name in before}
        if stored is None and after["input"] is None:
            return 400
        self.owners[step.id] = step.dataset
        self.items.pop(step.id, None)
        self.items[step.id] = after
        return 200

    def delete(self, step: Delete) -> int:
        return 404 if self.items.pop(step.id, None) is None else 200

    def listed(self, dataset: str) -> list[str]:
        return [
            item_id
            for item_id, item in reversed(self.items.items())
            if self.owners[item_id] == dataset and item["status"] == "ACTIVE"
        ]

    @staticmethod
    def _merged(sent: Any, stored: Any) -> Any:
        if sent is _ABSENT or sent is None:
            return stored
        return None if sent == "" else sent


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_store_does_as_the_model(steps: list[Upsert | Delete]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "langfuse.db")
        client = TestClient(create_app(database))
        client.auth = (DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY)
        for name in ("one", "two"):
            client.post("/api/public/v2/datasets", json={"name": name})
        for step in steps:
            if isinstance(step, Delete):
                answer = client.delete(f"/api/public/dataset-items/{step.id.replace('/', '%2F')}")
                assert answer.status_code == model.delete(step)
                continue
            fields = {"datasetName": step.dataset, "id": step.id, "input": step.input}
            fields |= {"metadata": step.metadata, "status": step.status}
            sent = {name: value for name, value in fields.items() if value is not _ABSENT}
            answer = client.post("/api/public/dataset-items", json=sent)
            assert answer.status_code == model.upsert(step), answer.text
        for item_id in ("a", "b/c"):
            answer = client.get(f"/api/public/dataset-items/{item_id.replace('/', '%2F')}")
            wanted = model.items.get(item_id)
            found = None if answer.status_code == 404 else {name: answer.json()[name] for name in wanted or {}}
            assert found == wanted
        for name in ("one", "two"):
            listed = client.get("/api/public/dataset-items", params={"datasetName": name}).json()
            assert [each["id"] for each in listed["data"]] == model.listed(name)
        database.close()
