"""An update of shipped dataset files: it reaches the items that are still as they were shipped, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.embedded.langfuse import Database, StoreSettings, jsonvalues, shipping
from evals.embedded.langfuse.dataset_store import DatasetStore
from evals.embedded.langfuse.datasets import DatasetChange, Item, ItemChange, ItemFilter
from evals.embedded.langfuse.shipping import load_shipped
from evals.errors import TwogateError
from evals.shipped import shipped

_NAME = "gate-pr"


@dataclass
class Shop:
    """A store's file and a folder of shipped files, with a clock that never stands still."""

    folder: Path
    clock: int = 1_795_979_270_000
    database: Database = field(init=False)
    store: DatasetStore = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "datasets").mkdir()
        self.database = Database(self.folder / "langfuse.db")
        self.store = DatasetStore(self.database, StoreSettings(now=self._now))

    def _now(self) -> int:
        self.clock += 1
        return self.clock

    def write(self, *items: dict[str, Any], name: str = _NAME, file: str = "a.json") -> Path:
        path = self.folder / "datasets" / file
        path.write_text(json.dumps({"dataset": name, "items": items}), encoding="utf-8")
        return path

    def start(self) -> list[str]:
        """What a start of the store does with the shipped files."""
        return load_shipped(self.database, self.store, self.folder / "datasets")

    def ship(self, *items: dict[str, Any]) -> list[str]:
        self.write(*items)
        return self.start()

    def item(self, item_id: str) -> Item:
        found = self.store.item(item_id)
        assert found is not None
        return found

    def listed(self, as_of: int | None = None) -> list[str]:
        dataset = self.store.dataset(_NAME)
        return [item.id for item in self.store.list_items(ItemFilter(dataset, as_of=as_of), 1, 100).items]

    def versions(self, item_id: str) -> int:
        return self.database.count("SELECT count(*) FROM item_versions WHERE item_id = ?", (item_id,))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(tmp_path)
    yield opened
    opened.database.close()


def _item(item_id: str, query: str = "q", **fields: Any) -> dict[str, Any]:
    return {"id": item_id, "input": {"query": query}, **fields}


def test_changed_items_are_updated_new_ones_added_and_gone_ones_archived(shop: Shop) -> None:
    same, changed, gone = _item("same", expectedOutput={"tool": "t"}), _item("changed"), _item("gone")
    assert shop.ship(same, changed, gone) == [_NAME]
    before = shop.clock
    assert shop.ship(_item("new"), same, _item("changed", "other")) == [_NAME]
    assert shop.listed() == ["new", "changed", "same"]
    assert shop.item("changed").input == {"query": "other"}
    assert (shop.item("gone").status, shop.item("gone").input) == ("ARCHIVED", {"query": "q"})
    assert {name: shop.versions(name) for name in ("same", "changed", "gone", "new")} == {
        "same": 1,
        "changed": 2,
        "gone": 2,
        "new": 1,
    }
    # What a run of then read can still be read.
    assert shop.listed(as_of=before) == ["same", "changed", "gone"]


def test_a_value_that_is_gone_from_an_item_is_cleared(shop: Shop) -> None:
    shop.ship(_item("a", expectedOutput={"tool": "t"}, metadata={"kind": "tool-call"}))
    shop.ship(_item("a", expectedOutput=None))
    assert (shop.item("a").expected_output, shop.item("a").metadata) == (None, None)
    assert shop.item("a").input == {"query": "q"}


def test_an_item_that_comes_back_is_active_again(shop: Shop) -> None:
    shop.ship(_item("a"), _item("b"))
    shop.ship(_item("a"))
    shop.ship(_item("a"), _item("b"))
    assert (sorted(shop.listed()), shop.versions("a"), shop.versions("b")) == (["a", "b"], 1, 3)


def test_status_of_the_file_is_followed(shop: Shop) -> None:
    shop.ship(_item("a"), _item("b", status="ARCHIVED"))
    shop.ship(_item("a", status="ARCHIVED"), _item("b"))
    assert shop.listed() == ["b"]
    shop.ship(_item("b"))
    assert shop.versions("a") == 2  # archived already


@pytest.mark.parametrize(
    "change",
    [
        ItemChange(_NAME, "a", input={"query": "mine"}),
        ItemChange(_NAME, "a", expected_output={"tool": "mine"}),
        ItemChange(_NAME, "a", metadata={"mine": True}),
        ItemChange(_NAME, "a", status="ARCHIVED"),
    ],
)
@pytest.mark.parametrize("update", [[_item("a", "theirs")], []])
def test_an_item_the_user_changed_is_left_alone(shop: Shop, change: ItemChange, update: list[dict[str, Any]]) -> None:
    shop.ship(_item("a"), _item("b"))
    mine = shop.store.upsert_item(change)
    shop.ship(_item("b", "theirs"), *update)
    assert shop.item("a") == mine
    assert shop.item("b").input == {"query": "theirs"}
    shop.ship(_item("b"), *update)
    assert shop.item("a") == mine


def test_a_deleted_item_stays_deleted(shop: Shop) -> None:
    shop.ship(_item("a"), _item("b"))
    shop.store.delete_item("a")
    for update in ([_item("a", "theirs"), _item("b")], [_item("b")], [_item("a"), _item("b")]):
        shop.ship(*update)
        assert shop.store.item("a") is None
    assert shop.versions("a") == 2


def test_an_item_the_user_added_is_left_alone(shop: Shop) -> None:
    shop.ship(_item("a"))
    mine = shop.store.upsert_item(ItemChange(_NAME, "mine", input="mine"))
    shop.store.upsert_item(ItemChange(_NAME, "short-lived", input="mine"))
    shop.store.delete_item("short-lived")
    shop.ship(_item("a"), _item("mine", "theirs"), _item("short-lived", "theirs"), _item("new"))
    assert shop.item("mine") == mine
    assert shop.store.item("short-lived") is None
    assert shop.item("new").input == {"query": "q"}
    shop.ship(_item("a"))
    assert shop.item("mine") == mine


def test_a_dataset_of_the_users_own_is_left_alone(shop: Shop) -> None:
    shop.store.upsert_dataset(DatasetChange(_NAME, "mine"))
    for update in ([_item("a")], [_item("a", "theirs")], []):
        assert shop.ship(*update) == []
    dataset = shop.store.dataset(_NAME)
    assert dataset is not None
    assert dataset.description == "mine"
    assert shop.listed() == []


def test_a_file_from_before_is_opened_and_its_datasets_are_left_alone(shop: Shop) -> None:
    shop.ship(_item("a"))
    for table in ("shipped_files", "shipped_items"):
        shop.database.execute(f"DROP TABLE {table}")
    later = Database(shop.database.path)
    store = DatasetStore(later, StoreSettings())
    shop.write(_item("a", "theirs"), _item("new"))
    shop.write(_item("other"), name="other", file="b.json")
    assert load_shipped(later, store, shop.folder / "datasets") == ["other"]
    assert shop.item("a").input == {"query": "q"}
    assert shop.store.item("new") is None
    shop.write(_item("other", "theirs"), name="other", file="b.json")
    assert load_shipped(later, store, shop.folder / "datasets") == ["other"]
    assert shop.item("other").input == {"query": "theirs"}
    later.close()


def test_a_start_without_a_change_neither_parses_nor_writes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.ship(_item("a"), _item("b", metadata={"z": 1.0, "ab": [True, None], "a": "ü"}))
    # It counts what other connections commit.
    commits = shop.database.count("PRAGMA data_version")
    monkeypatch.setattr(shipping, "parse_dataset_file", None)
    second = Database(shop.database.path)
    assert load_shipped(second, DatasetStore(second, StoreSettings()), shop.folder / "datasets") == []
    second.close()
    assert shop.database.count("PRAGMA data_version") == commits


def test_another_form_of_the_same_content_writes_no_version(shop: Shop) -> None:
    shop.ship(_item("a", metadata={"count": 1, "kind": "tool-call"}, expectedOutput='{"tool": "t"}'))
    path = shop.write(_item("a", expectedOutput={"tool": "t"}, metadata={"kind": "tool-call", "count": 1.0}))
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4), encoding="utf-8")
    shop.start()
    assert shop.versions("a") == 1


def test_an_item_whose_id_is_taken_is_left_out_until_it_can_be_had(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.store.upsert_dataset(DatasetChange("elsewhere"))
    theirs = shop.store.upsert_item(ItemChange("elsewhere", "taken", input=1))
    shop.ship(_item("a"))
    for _ in range(2):
        caplog.clear()
        shop.ship(_item("a", "other"), _item("taken"))
        assert "a.json: item 'taken' not brought up to date:" in caplog.text
        assert "already exists in another dataset" in caplog.text
    assert shop.item("taken") == theirs
    assert (shop.item("a").input, shop.versions("a")) == ({"query": "other"}, 2)
    caplog.clear()
    shop.ship(_item("a"))
    assert (shop.item("a").input, caplog.text) == ({"query": "q"}, "")


def test_an_item_that_breaks_the_users_schema_keeps_its_old_content(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.ship(_item("a"))
    shop.store.upsert_dataset(DatasetChange(_NAME, input_schema={"properties": {"query": {"maxLength": 3}}}))
    shop.ship(_item("a", "too long"), _item("b"))
    assert shop.item("a").input == {"query": "q"}
    assert shop.item("b").input == {"query": "q"}
    assert "item 'a' not brought up to date" in caplog.text
    shop.store.upsert_dataset(DatasetChange(_NAME, input_schema=None))
    assert shop.start() == [_NAME]
    assert shop.item("a").input == {"query": "too long"}


@pytest.mark.parametrize("known", [False, True])
def test_two_files_of_one_dataset_are_refused(shop: Shop, known: bool) -> None:
    first = shop.write(_item("a"))
    if known:
        shop.start()
    second = shop.write(_item("b"), file="b.json")
    with pytest.raises(TwogateError) as refused:
        shop.start()
    assert refused.value.lines == [
        f"{second}: dataset: 'gate-pr' is also that of {first}; merge the two files",
    ]


def test_a_broken_file_stops_the_update_of_all(shop: Shop) -> None:
    shop.ship(_item("a"))
    shop.write(_item("a", "other"))
    shop.write({"id": "b"}, name="other", file="b.json")
    with pytest.raises(TwogateError):
        shop.start()
    assert shop.item("a").input == {"query": "q"}


_STARTER = """
import sys
from pathlib import Path
from evals.embedded.langfuse import EmbeddedStore
sys.stdin.readline()
with EmbeddedStore(Path(sys.argv[1]), shipped_datasets=Path(sys.argv[2])):
    pass
"""


def test_processes_that_start_at_once_update_once(shop: Shop) -> None:
    shop.ship(*(_item(f"old/{number}") for number in range(50)))
    shop.write(
        *(_item(f"old/{number}", "other") for number in range(25)), *(_item(f"new/{number}") for number in range(25))
    )
    arguments = [sys.executable, "-c", _STARTER, str(shop.database.path), str(shop.folder / "datasets")]
    starters = [subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("\n")
        starter.stdin.flush()
    for starter in starters:
        _, problems = starter.communicate(timeout=120)
        assert (starter.returncode, problems) == (0, "")
    assert {shop.versions(f"old/{number}") for number in range(50)} == {2}
    assert {shop.versions(f"new/{number}") for number in range(25)} == {1}
    assert len(shop.listed()) == 50


@pytest.mark.parametrize("name", ["pr.json", "merge.json"])
def test_the_datasets_of_twogate_itself_are_updated(shop: Shop, name: str) -> None:
    content = json.loads(shipped("fixtures", "datasets", name).read_text(encoding="utf-8"))
    first, *others = content["items"]
    before = {**first, "metadata": {**first["metadata"], "notes": "from before"}}
    path = shop.folder / "datasets" / name
    path.write_text(json.dumps({**content, "items": [before, *others]}), encoding="utf-8")
    shop.start()
    path.write_bytes(shipped("fixtures", "datasets", name).read_bytes())
    assert shop.start() == [content["dataset"]]
    assert shop.item(first["id"]).metadata == jsonvalues.normalise(first["metadata"])
    assert {shop.versions(item["id"]) for item in others} == {1}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(value=_JSON, later=_JSON)
def test_whatever_is_shipped_is_known_again(value: Any, later: Any) -> None:
    """Else an item nobody edited would pass for edited, and never be updated again."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder))
        shop.ship(_item("a", metadata=value, expectedOutput=value))
        shop.ship(_item("a", "other", metadata=later, expectedOutput=later))
        shop.ship(_item("a", "third"))
        assert (shop.item("a").input, shop.item("a").metadata) == ({"query": "third"}, None)
        shop.database.close()


_IDS = ("a", "b", "c")


@dataclass(frozen=True)
class Ship:
    """A new version of the file: the items it has, each with its query."""

    queries: dict[str, str]


@dataclass(frozen=True)
class Edit:
    """The user writes the item, or makes it."""

    id: str
    status: Any


@dataclass(frozen=True)
class Delete:
    """The user deletes the item, if it is there."""

    id: str


_STEPS = st.lists(
    st.builds(Ship, st.dictionaries(st.sampled_from(_IDS), st.sampled_from(["one", "two"])))
    | st.builds(Edit, st.sampled_from(_IDS), st.sampled_from([None, "ACTIVE", "ARCHIVED"]))
    | st.builds(Delete, st.sampled_from(_IDS)),
    max_size=10,
)


@settings(max_examples=100, deadline=None)
@given(first=st.dictionaries(st.sampled_from(_IDS), st.just("one")), steps=_STEPS)
def test_updates_and_edits_in_any_order(first: dict[str, str], steps: list[Ship | Edit | Delete]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder))
        of_the_user: set[str] = set()
        of_a_file: set[str] = set()
        for number, step in enumerate([Ship(first), *steps]):
            if isinstance(step, Edit):
                shop.store.upsert_item(ItemChange(_NAME, step.id, input=f"edit {number}", status=step.status))
                of_the_user.add(step.id)
            elif isinstance(step, Delete):
                if shop.store.item(step.id) is not None:
                    shop.store.delete_item(step.id)
                    of_the_user.add(step.id)
            else:
                before = {item_id: (shop.store.item(item_id), shop.versions(item_id)) for item_id in _IDS}
                shop.ship(*(_item(item_id, query) for item_id, query in step.queries.items()))
                of_a_file |= step.queries.keys() - of_the_user
                for item_id in _IDS:
                    stored, versions = before[item_id]
                    now = shop.store.item(item_id)
                    if item_id in of_the_user or item_id not in of_a_file:
                        assert (now, shop.versions(item_id)) == before[item_id]
                        continue
                    assert now is not None
                    if item_id in step.queries:
                        assert (now.status, now.input) == ("ACTIVE", {"query": step.queries[item_id]})
                    else:
                        assert stored is not None
                        assert (now.status, now.input) == ("ARCHIVED", stored.input)
                    same = stored is not None and (stored.status, stored.input) == (now.status, now.input)
                    assert shop.versions(item_id) == versions + (0 if same else 1)
        shop.database.close()
