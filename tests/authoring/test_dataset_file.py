"""The file format: one form of bytes for one content, and every mistake at once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from authoring_support import REPOSITORY, agent, tool_call
from hypothesis import given
from hypothesis import strategies as st

from evals.authoring.checking import check_content
from evals.authoring.dataset_file import DatasetContent, dataset_text, read_dataset_file, unique_id, write_text
from evals.authoring.stored import StoredItem, lost_when_kept, same_when_kept
from evals.embedded.langfuse import load_dataset_file
from evals.errors import TwogateError


def write(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "cases.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def refused(path: Path, name: str | None = None) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        read_dataset_file(path, name)
    return [line.removeprefix(f"{path}: ") for line in caught.value.lines]


def test_written_form(tmp_path: Path) -> None:
    items = (
        agent("merge/b/two", "Zwei – „ä“", maxTurns=5, expectedErrors=["get_task"], tools=None),
        StoredItem(
            "merge/a/one",
            {"query": "Q"},
            "PASS only if x. FAIL if y.",
            {"mcpToolsOnly": True, "kind": "agent", "category": "c"},
            "ARCHIVED",
        ),
    )
    text = dataset_text(DatasetContent("d", items, description="D"))
    assert text == (
        '{\n  "dataset": "d",\n  "description": "D",\n  "items": [\n'
        '    {\n      "id": "merge/a/one",\n      "input": {\n        "query": "Q"\n      },\n'
        '      "expectedOutput": "PASS only if x. FAIL if y.",\n'
        '      "metadata": {\n        "category": "c",\n        "kind": "agent",\n'
        '        "mcpToolsOnly": true\n      },\n'
        '      "status": "ARCHIVED"\n    },\n'
        '    {\n      "id": "merge/b/two",\n      "input": {\n        "query": "Zwei – „ä“"\n      },\n'
        '      "expectedOutput": "PASS only if it says 3. FAIL if it says another number.",\n'
        '      "metadata": {\n        "category": "get_task",\n        "kind": "agent",\n'
        '        "expectedErrors": [\n          "get_task"\n        ],\n        "maxTurns": 5\n      }\n    }\n  ]\n}\n'
    )
    path = write(tmp_path, "")
    write_text(path, text)
    assert dataset_text(read_dataset_file(path)) == text
    # the embedded store loads shipped datasets by a reader of its own
    assert [item.id for item in load_dataset_file(path).items] == ["merge/a/one", "merge/b/two"]


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(one, order) for one in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=5), _json, max_size=5), st.randoms(use_true_random=False))
def test_the_bytes_do_not_depend_on_the_order_of_keys(metadata: dict[str, Any], order: random.Random) -> None:
    one = StoredItem("pr/a/b", {"query": "q"}, None, metadata)
    other = StoredItem("pr/a/b", {"query": "q"}, None, shuffled(metadata, order))
    assert dataset_text(DatasetContent("d", (one,))) == dataset_text(DatasetContent("d", (other,)))
    assert one.canonical().canonical() == one.canonical()
    assert one.as_kept().as_kept() == one.as_kept()


def test_every_mistake_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, {"data_set": "d", "description": 3, "items": {}})
    assert refused(path) == [
        "data_set: is not a known key; did you mean dataset?",
        "description: is 3; must be text",
        "items: is missing; must be a list of items",
    ]
    path = write(
        tmp_path,
        {
            "dataset": "d",
            "items": [
                7,
                {"id": "pr/a/b", "input": {"query": "q"}, "expected_output": "x", "status": "DRAFT"},
                {"id": "pr/a/b"},
                {"id": 5},
            ],
        },
    )
    assert [str(problem) for problem in read_dataset_file(path).problems] == [
        "items[0]: item: is not an object; write {…}",
        "pr/a/b: expected_output: is not a known key; did you mean expectedOutput?",
        "pr/a/b: status: is 'DRAFT'; use ACTIVE or ARCHIVED",
        "items[3] (item without an id): id: is missing or not text; "
        "use the form pr/<tool>/<slug> or merge/<family>/<slug>",
        "pr/a/b: id: stands 2 times; give each item an id of its own",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ('{"dataset": "d", "items": [NaN]}', "NaN is not JSON"),
        ('{"dataset": "d", "dataset": "e", "items": []}', "the key 'dataset' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"id": "pr/a/b", "metadata": ' + "[" * 600 + "]" * 600 + "}]", "pr/a/b: is nested over 100 levels deep"),
        ('"text"', 'must be an object with "dataset" and "items"'),
        ("[]", "is a plain list of items; say by --dataset"),
        ('{"items": []}', "dataset: is missing or empty"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    (line,) = refused(write(tmp_path, text))
    assert said in line


def test_half_of_a_character_is_refused_where_it_stands(tmp_path: Path) -> None:
    """UTF-8 cannot write it, so the file could be read and never be written."""
    half = "holds \\ud83d, half of a surrogate pair and no character; write the whole one"
    items = [
        {"id": "pr/a/b", "input": {"query": "q \ud83d"}, "metadata": {"expectedArgs": {"\ud83d": ["x", "\ud83d"]}}},
        {"id": "pr/\ud83d", "input": {"query": "\ud83d\ude00 whole"}},
    ]
    expected = [
        f"pr/a/b: input.query: {half}",
        f"pr/a/b: metadata.expectedArgs.\\ud83d: {half}",
        f"pr/a/b: metadata.expectedArgs.\\ud83d[1]: {half}",
        f"items[1]: id: {half}",
    ]
    assert refused(write(tmp_path, items), "d") == expected
    path = write(tmp_path, {"dataset": "d\ud83d", "items": items, "what\ud83d": 1})
    assert refused(path) == [*expected, f"dataset: {half}", f"what\\ud83d: {half}"]
    assert refused(write(tmp_path, '{"dataset": "d", "items": "\\ud83d"}'))[0] == half


def test_numbers_that_would_be_stored_as_null_are_problems(tmp_path: Path) -> None:
    items = (
        '[{"id": "pr/a/b", "input": {"query": "q"}, "metadata": {"category": "a", "kind": "tool-call", '
        '"expectedTools": ["a"], "expectedArgs": {"a": 1e400, "b": [-1e999], "c": 1e308, "d": true, "e": 1HUGE}}}]'
    ).replace("HUGE", "0" * 400)
    content = read_dataset_file(write(tmp_path, items), "d-pr")
    lost = "is a number beyond 1.8e308, which is stored as null; write a smaller one, or a text"
    assert [str(problem) for problem in check_content(content).problems] == [
        f"pr/a/b: metadata.expectedArgs.a: {lost}",
        f"pr/a/b: metadata.expectedArgs.b[0]: {lost}",
        f"pr/a/b: metadata.expectedArgs.e: {lost}",
    ]
    assert refused(write(tmp_path, '{"dataset": "d", "metadata": {"x": 1e400}, "items": []}')) == [
        f"metadata.x: {lost}"
    ]


def test_a_missing_file_a_folder_and_bytes(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.json")[0]
    assert "cannot be read" in refused(tmp_path)[0]
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\xff")
    assert "is not UTF-8 text" in refused(path)[0]


def test_a_plain_list_takes_the_name_given(tmp_path: Path) -> None:
    path = write(tmp_path, [tool_call("pr/a/b", "q", ["a"]).written()])
    content = read_dataset_file(path, "mine-pr")
    assert (content.name, [item.id for item in content.items]) == ("mine-pr", ["pr/a/b"])
    nameless = read_dataset_file(path, nameless=True)
    assert nameless.name == ""
    path.write_text(dataset_text(nameless), encoding="utf-8")
    assert read_dataset_file(path, nameless=True) == nameless
    assert json.loads(path.read_text(encoding="utf-8"))[0]["id"] == "pr/a/b"
    assert "dataset: is missing" in refused(write(tmp_path, {"items": []}))[0]


def test_validation_sees_what_langfuse_will_hold() -> None:
    # a reference that reads as JSON comes back as a number, and no run could use it
    checked = check_content(DatasetContent("x-merge", (agent("merge/a/b", "q", reference="42"),)))
    assert [str(problem) for problem in checked.problems] == [
        "merge/a/b: expectedOutput: is 42; must be text (Langfuse stores text that reads as JSON parsed: "
        "put it in a sentence)"
    ]
    checked = check_content(DatasetContent("x-merge", (agent("pr/a/b", "q"),)))
    assert {problem.field for problem in checked.problems} == {"id", "metadata.kind"}


def test_drafts_are_not_ready() -> None:
    content = DatasetContent("x-pr", (tool_call("pr/a/b", " TODO: ask it", ["a"]),))
    with pytest.raises(TwogateError) as caught:
        check_content(content).or_raise("f")
    assert caught.value.lines == ["f: pr/a/b: input.query: is a draft; edit it and take TODO away"]


def test_what_langfuse_changes_is_the_same_item() -> None:
    one = tool_call("pr/a/b", "a\x00b", ["a"], expectedArgs={"n": 1.0, "m": None}, maxTurns=None)
    other = tool_call("pr/a/b", "ab", ["a"], expectedArgs={"m": None, "n": 1})
    assert same_when_kept(one, other)
    assert lost_when_kept(one) == ["input"]
    assert not same_when_kept(one, tool_call("pr/a/b", "ab", ["a"], expectedArgs={"m": None, "n": True}))
    assert lost_when_kept(tool_call("pr/a/b", "q", ["a"], expectedArgs={"n": 12345678901234567890})) == ["metadata"]


def test_unique_ids() -> None:
    assert unique_id("pr/a/b", ["pr/a/b", "pr/a/b-2"]) == "pr/a/b-3"


SHIPPED = sorted(path for folder in ("datasets", "lint") for path in (REPOSITORY / "fixtures" / folder).glob("*.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_dataset_files_have_the_written_form(path: Path) -> None:
    assert dataset_text(read_dataset_file(path)) == path.read_text(encoding="utf-8")
