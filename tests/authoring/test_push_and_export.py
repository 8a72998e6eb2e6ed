"""Pushing, archiving and exporting against the embedded store, through the real Langfuse SDK."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from authoring_support import agent, tool_call

from evals.authoring.changes import difference_lines, differences
from evals.authoring.dataset_file import DatasetContent, dataset_text, read_dataset_file
from evals.authoring.export import export_dataset
from evals.authoring.push import PushPlan, archive, plan_push, send
from evals.authoring.sources import ServerAccess
from evals.authoring.stored import StoredItem
from evals.errors import TwogateError
from evals.recording.dataset_items import DatasetWriter, ItemRecord
from evals.settings import Settings

NAME = "things-pr"


@pytest.fixture
def access(tmp_path: Path) -> Iterator[ServerAccess]:
    with ServerAccess(Settings.load(tmp_path, environ={})) as opened:
        yield opened


def content(*items: StoredItem, name: str = NAME, **more: Any) -> DatasetContent:
    return DatasetContent(name, items, **more)


def push(access: ServerAccess, what: DatasetContent) -> PushPlan:
    plan = plan_push(access.writer, what, "f")
    send(access.writer, plan, what)
    return plan


def refused(access: ServerAccess, what: DatasetContent) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        plan_push(access.writer, what, "f")
    return caught.value.lines


def written_at(access: ServerAccess, identifier: str) -> str:
    """When the newest version was written: every write makes a new one."""
    writer: Any = access.writer
    return str(writer._api.dataset_items.get(identifier.replace("/", "%2F")).updated_at)


ONE = tool_call("pr/get_task/one", "What is x?", ["get_task"], expectedArgs={"task": "x"}, mcpToolsOnly=True)
TWO = tool_call("pr/get_task/two", "What is ŷ, “quoted”?\n\tAnd z?", ["get_task", "list_tasks"])
AGENT = agent("merge/tasks/one", "What is x?", maxTurns=5, tools=["docs"])


def test_the_second_push_sends_nothing(access: ServerAccess) -> None:
    what = content(ONE, TWO, description="Things.", metadata={"owner": "us"})
    first = push(access, what)
    assert first.create
    assert [change.kind for change in first.changes] == ["new", "new"]
    at = written_at(access, ONE.id)
    second = push(access, what)
    assert second.empty
    assert second.unchanged == (ONE.id, TWO.id)
    assert written_at(access, ONE.id) == at
    # what the server keeps otherwise is still the same item
    same = content(
        replace(ONE, metadata={**ONE.metadata, "maxTurns": None, "expectedArgs": {"task": "x"}}),
        replace(TWO, input={"query": TWO.input["query"] + "\x07"}),
    )
    third = push(access, same)
    assert third.empty
    assert third.notes == (
        f"{TWO.id}: input: Langfuse does not keep all of it as written (control characters, large numbers)",
    )


def test_export_gives_the_file_back_byte_for_byte(access: ServerAccess) -> None:
    items = [
        TWO,
        ONE,
        tool_call(
            "pr/list_tasks/b", "Which?", ["list_tasks"], expectedArgs={"zz": 1, "a": {"y": [1.5, None], "b": 2.0}}
        ),
    ]
    what = content(*items, description="Things – „all“", metadata={"b": 1, "a": 2})
    push(access, what)
    assert export_dataset(access, NAME).text == dataset_text(what)


def test_more_items_than_a_page(access: ServerAccess) -> None:
    items = [tool_call(f"pr/get_task/number-{number:03}", f"What is {number}?", ["get_task"]) for number in range(230)]
    what = content(*items)
    push(access, what)
    assert plan_push(access.writer, what, "f").empty
    assert export_dataset(access, NAME).text == dataset_text(what)


def test_removing_a_key_of_metadata_removes_it_in_the_store(access: ServerAccess) -> None:
    push(access, content(ONE, TWO))
    at = written_at(access, TWO.id)
    metadata = {key: value for key, value in ONE.metadata.items() if key != "expectedArgs"}
    plan = push(access, content(replace(ONE, metadata=metadata), TWO))
    assert list(plan.lines()) == [f"~ {ONE.id}", "    metadata.expectedArgs", '      - {"task": "x"}']
    assert plan.summary() == "0 new, 1 changed, 1 unchanged in things-pr (the embedded store)"
    record = access.writer.item(ONE.id)
    assert record is not None
    assert "expectedArgs" not in record.metadata
    assert record.metadata["mcpToolsOnly"] is True
    assert written_at(access, TWO.id) == at


def test_an_expected_output_cannot_be_taken_away_and_nothing_is_sent(access: ServerAccess) -> None:
    access.writer.upsert_dataset(NAME, None, None)
    values = {"input": {"query": "Q"}, "expected_output": "left over", "metadata": ONE.metadata}
    access.writer.upsert_item(NAME, ONE.id, status="ACTIVE", **values)
    (line,) = refused(access, content(ONE, TWO))
    assert line == (
        f"f: {ONE.id}: expectedOutput: the dataset has one and the file has none; a value cannot be taken away "
        "(absent and null keep it): give the case a new id, push it, and retire the old one by "
        f"twogate items archive {ONE.id}"
    )
    assert access.writer.item(TWO.id) is None
    # the way out
    list(archive(access.writer, [ONE.id]))
    push(access, content(replace(ONE, id="pr/get_task/one-again"), TWO))
    assert {record.id for record in access.writer.active_items(NAME)} == {TWO.id, "pr/get_task/one-again"}


def test_ids_of_other_datasets_are_refused_before_anything_is_sent(access: ServerAccess) -> None:
    push(access, content(ONE, TWO))
    list(archive(access.writer, [TWO.id]))
    fresh = tool_call("pr/get_task/fresh", "What is f?", ["get_task"])
    lines = refused(access, content(ONE, TWO, fresh, name="others-pr"))
    assert lines == [
        f"f: {ONE.id}: id: belongs to the dataset things-pr (active there); ids are never free again, "
        "not even after archiving or deleting: choose a new id here",
        f"f: {TWO.id}: id: belongs to the dataset things-pr (archived there); ids are never free again, "
        "not even after archiving or deleting: choose a new id here",
    ]
    assert access.writer.item(fresh.id) is None
    assert access.writer.dataset("others-pr") is None


def test_the_id_of_a_deleted_item_of_another_dataset_shows_on_sending_and_the_rest_is_sent(
    access: ServerAccess,
) -> None:
    push(access, content(ONE))
    writer: Any = access.writer
    writer._api.dataset_items.delete(ONE.id.replace("/", "%2F"))
    what = content(ONE, TWO, name="others-pr")
    with pytest.raises(TwogateError) as caught:
        push(access, what)
    assert caught.value.lines == [
        f"{ONE.id}: id: belongs to another dataset of this project; ids are never free again, "
        "not even after archiving or deleting: choose a new id"
    ]
    assert access.writer.item(TWO.id) is not None


def test_archiving_and_bringing_back(access: ServerAccess) -> None:
    push(access, content(ONE, TWO))
    with pytest.raises(TwogateError, match="pr/get_task/none: there is no such item in the embedded store"):
        list(archive(access.writer, [ONE.id, "pr/get_task/none"]))
    assert "would be archived" in next(archive(access.writer, [ONE.id], dry_run=True))
    assert {record.id for record in access.writer.active_items(NAME)} == {TWO.id, ONE.id}
    assert list(archive(access.writer, [ONE.id, ONE.id])) == [
        f"{ONE.id}: archived (things-pr); ids are never free again, not even after archiving or deleting"
    ]
    assert list(archive(access.writer, [ONE.id])) == [f"{ONE.id}: is archived already (things-pr)"]
    record = access.writer.item(ONE.id)
    assert record is not None
    assert (record.status, record.metadata) == ("ARCHIVED", ONE.metadata)
    plan = push(access, content(ONE, TWO))
    assert list(plan.lines()) == [f"~ {ONE.id}", "    status", '      - "ARCHIVED"', '      + "ACTIVE"']
    assert {one.id for one in access.writer.active_items(NAME)} == {ONE.id, TWO.id}


def test_snapshots_keep_the_archived_items_they_know(access: ServerAccess, tmp_path: Path) -> None:
    push(access, content(ONE, TWO))
    path = tmp_path / "snapshot.json"
    path.write_text(export_dataset(access, NAME).text)
    list(archive(access.writer, [ONE.id]))
    assert ONE.id not in export_dataset(access, NAME).text
    for _ in range(2):  # the second time the item stands in the snapshot as an archived one
        snapshot = export_dataset(access, NAME, read_dataset_file(path))
        assert (snapshot.items, snapshot.archived) == (2, 1)
        path.write_text(snapshot.text)
    kept = read_dataset_file(path)
    assert [(item.id, item.status) for item in kept.items] == [(ONE.id, "ARCHIVED"), (TWO.id, "ACTIVE")]
    # such a snapshot can be pushed, and changes nothing
    assert plan_push(access.writer, kept, "f").empty
    writer: Any = access.writer
    writer._api.dataset_items.delete(ONE.id.replace("/", "%2F"))
    snapshot = export_dataset(access, NAME, kept)
    assert snapshot.notes == (f"{ONE.id}: stood in the previous snapshot and is deleted; it is left out",)


def test_items_the_file_does_not_have_stay(access: ServerAccess) -> None:
    push(access, content(ONE, TWO))
    plan = push(access, content(TWO))
    assert (plan.left_alone, plan.empty) == ((ONE.id,), True)


def test_a_description_is_changed_and_kept(access: ServerAccess) -> None:
    push(access, content(ONE, description="First."))
    plan = push(access, content(ONE, description="Second."))
    assert list(plan.lines()) == ["~ dataset things-pr: description: 'First.' -> 'Second.'"]
    assert push(access, content(ONE)).empty
    found = access.writer.dataset(NAME)
    assert found is not None
    assert found.description == "Second."


def test_invalid_files_are_refused_whole(access: ServerAccess) -> None:
    lines = refused(access, content(replace(ONE, metadata={"kind": "tool-call"}), AGENT))
    assert {line.split(": ")[1] for line in lines} == {ONE.id, AGENT.id}
    assert len(lines) == 4
    assert access.writer.dataset(NAME) is None


def test_what_arrives_otherwise_than_sent_is_said(access: ServerAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DatasetWriter.item

    def meddled(writer: DatasetWriter, identifier: str) -> ItemRecord | None:
        record = real(writer, identifier)
        return record and replace(record, input={"query": "somebody else's"})

    plan = plan_push(access.writer, content(ONE), "f")
    monkeypatch.setattr(DatasetWriter, "item", meddled)
    with pytest.raises(TwogateError) as caught:
        send(access.writer, plan, content(ONE))
    assert caught.value.lines == [
        f"{ONE.id}: reads back otherwise than it was sent (input.query); did somebody else write it? push again"
    ]


def test_what_the_server_says_is_one_line(access: ServerAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(ONE, input={"query": "x" * 5_000_000})
    plan = plan_push(access.writer, content(large, TWO), "f")
    with pytest.raises(TwogateError) as caught:
        send(access.writer, plan, content(large, TWO))
    assert len(caught.value.lines) == 1
    assert f"{ONE.id}: the embedded store answered 413" in caught.value.lines[0]
    assert access.writer.item(TWO.id) is not None

    writer: Any = access.writer

    def down(*_: Any, **__: Any) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(writer._api.dataset_items, "get", down)
    with pytest.raises(TwogateError, match="the embedded store cannot be reached: refused; check LANGFUSE_BASE_URL"):
        access.writer.item(ONE.id)


def test_differences_of_two_contents() -> None:
    before = [ONE, TWO, AGENT]
    after = [
        replace(ONE, metadata={**ONE.metadata, "expectedArgs": {"task": True}}),
        replace(AGENT, metadata=dict(reversed(AGENT.metadata.items()))),
        agent("merge/tasks/two", "New?"),
    ]
    found = differences(before, after)
    assert [(one.id, one.kind) for one in found] == [
        ("merge/tasks/two", "new"),
        (ONE.id, "changed"),
        (TWO.id, "gone"),
    ]
    assert list(difference_lines(found)) == [
        "+ merge/tasks/two",
        "    input.query",
        '      + "New?"',
        "    expectedOutput",
        '      + "PASS only if it says 3. FAIL if it says another number."',
        "    metadata.category",
        '      + "get_task"',
        "    metadata.kind",
        '      + "agent"',
        f"~ {ONE.id}",
        "    metadata.expectedArgs",
        '      - {"task": "x"}',
        '      + {"task": true}',
        f"- {TWO.id}",
    ]
