"""The contract with dataset authors: what is accepted, and that every mistake is named with its fix."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.errors import TwogateError
from evals.items import check_item, gate_of_dataset, parse_items, select


def tool_call(**changes: Any) -> dict[str, Any]:
    metadata = {"category": "search", "kind": "tool-call", "expectedTools": ["search"]}
    metadata.update(changes.pop("metadata", {}))
    item = {"id": "pr/search/one", "input": {"query": "Where is it?"}, "metadata": metadata, "status": "ACTIVE"}
    item.update(changes)
    return item


def agent(**changes: Any) -> dict[str, Any]:
    metadata = {"category": "search", "kind": "agent"}
    metadata.update(changes.pop("metadata", {}))
    item = {
        "id": "merge/files/one",
        "input": {"query": "Count the files."},
        "expectedOutput": "PASS only if it says 3. FAIL if not.",
        "metadata": metadata,
        "status": "ACTIVE",
    }
    item.update(changes)
    return item


def problems(*raw: dict[str, Any], gate: Any = None) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        parse_items(raw, gate)
    return caught.value.lines


def test_valid_items_of_both_kinds() -> None:
    (item,) = parse_items([tool_call(metadata={"expectedArgs": {"q": 1}, "mcpToolsOnly": True, "tools": ["docs"]})])
    assert item.expected_tools == ("search",)
    assert item.metadata.expected_args == {"q": 1}
    assert item.metadata.tools == ("docs",)
    (item,) = parse_items([agent(metadata={"maxTurns": 5, "expectedErrors": ["a"], "failTools": ["a"]})])
    assert item.metadata.max_turns == 5
    assert item.expected_output is not None


def test_null_counts_as_absent() -> None:
    metadata = {"expectedArgs": None, "maxTurns": None, "failTools": None, "mcpToolsOnly": None}
    (item,) = parse_items([tool_call(expectedOutput=None, metadata=metadata)])
    assert item.expected_output is None
    assert item.metadata.mcp_tools_only is None


def test_archived_items_are_skipped_whatever_they_hold_and_the_rest_is_sorted() -> None:
    archived = tool_call(id="no form at all", status="ARCHIVED", metadata={"kind": "nonsense"})
    items = parse_items([tool_call(id="pr/b/z"), archived, tool_call(id="pr/a/z")])
    assert [item.id for item in items] == ["pr/a/z", "pr/b/z"]


@pytest.mark.parametrize(
    ("raw", "field", "words"),
    [
        (tool_call(metadata={"expectedTools": []}), "metadata.expectedTools", "is needed with kind 'tool-call'"),
        (tool_call(metadata={"expectedTools": None}), "metadata.expectedTools", "is needed"),
        (tool_call(expectedOutput="PASS"), "expectedOutput", "is not for kind 'tool-call'"),
        (tool_call(metadata={"expectedErrors": ["x"]}), "metadata.expectedErrors", "is not for kind"),
        (tool_call(metadata={"failTools": ["x"]}), "metadata.failTools", "is not for kind"),
        (tool_call(metadata={"maxTurns": 3}), "metadata.maxTurns", "is not for kind"),
        (agent(expectedOutput=None), "expectedOutput", "is needed with kind 'agent'"),
        (agent(expectedOutput="  "), "expectedOutput", "is empty"),
        (agent(metadata={"expectedTools": ["x"]}), "metadata.expectedTools", "is not for kind 'agent'"),
        (agent(metadata={"expectedArgs": {"a": 1}}), "metadata.expectedArgs", "is not for kind 'agent'"),
        (agent(metadata={"failTools": ["x"]}), "metadata.failTools", "could never pass"),
        (agent(metadata={"maxTurns": 0}), "metadata.maxTurns", "whole number of 1 or more"),
        (agent(metadata={"maxTurns": 2.5}), "metadata.maxTurns", "whole number of 1 or more"),
        (agent(metadata={"maxTurns": "3"}), "metadata.maxTurns", "whole number of 1 or more"),
        (agent(metadata={"maxTurns": True}), "metadata.maxTurns", "whole number of 1 or more"),
        (agent(expectedOutput=42), "expectedOutput", "must be text"),
        (tool_call(input={"query": " \n"}), "input.query", "is empty"),
        (tool_call(input={"query": "\u200b"}), "input.query", "is empty"),
        (tool_call(metadata={"typo": None}), "metadata.typo", "is not a known key"),
        (tool_call(metadata={"expectedTools": [" alpha"]}), "metadata.expectedTools[0]", "has white space around it"),
        (tool_call(metadata={"category": "alpha "}), "metadata.category", "has white space around it"),
        (tool_call(metadata={"expectedArgs": {"": 1}}), "metadata.expectedArgs..[key]", "is empty"),
        (tool_call(input={}), "input.query", "is missing"),
        (tool_call(input={"query": "x", "extra": 1}), "input.extra", "is not a known key"),
        (tool_call(input=None), "input", "is missing"),
        (tool_call(input="text"), "input", "must be an object"),
        (tool_call(metadata={"expectdTools": ["x"]}), "metadata.expectdTools", "did you mean expectedTools?"),
        (tool_call(metadata={"category": ""}), "metadata.category", "is empty"),
        (tool_call(metadata={"category": None}), "metadata.category", "is missing"),
        (tool_call(metadata={"kind": "tool_call"}), "metadata.kind", "'tool-call' or 'agent'"),
        (tool_call(metadata={"expectedTools": ["a", "a"]}), "metadata.expectedTools", "2 times"),
        (tool_call(metadata={"expectedTools": ["a", ""]}), "metadata.expectedTools[1]", "is empty"),
        (tool_call(metadata={"expectedTools": "a"}), "metadata.expectedTools", "must be a list of names"),
        (tool_call(metadata={"expectedTools": [3]}), "metadata.expectedTools[0]", "must be text"),
        (tool_call(metadata={"expectedTools": ["mcp__s__a"]}), "metadata.expectedTools", "write 'a'"),
        (tool_call(metadata={"expectedArgs": {}}), "metadata.expectedArgs", "empty object"),
        (tool_call(metadata={"expectedArgs": ["a"]}), "metadata.expectedArgs", "must be an object"),
        (tool_call(metadata={"tools": []}), "metadata.tools", "empty list"),
        (tool_call(metadata={"mcpToolsOnly": "yes"}), "metadata.mcpToolsOnly", "must be true or false"),
        (tool_call(id="pr/search"), "id", "does not have the form"),
        (tool_call(id="pr/search/a b"), "id", "does not have the form"),
        (tool_call(id="pr//x"), "id", "does not have the form"),
        (tool_call(id="PR/a/b"), "id", "does not have the form"),
        (tool_call(id="pr/a/" + "x" * 300), "id", "255 at most"),
        (tool_call(id=""), "id", "is missing or empty"),
        (tool_call(id="merge/a/b"), "metadata.kind", "does not go with"),
        (agent(id="pr/a/b"), "metadata.kind", "does not go with"),
        (tool_call(status="DONE"), "status", "must be 'ACTIVE' or 'ARCHIVED'"),
    ],
)
def test_each_mistake_is_named_once_with_its_field_and_fix(raw: dict[str, Any], field: str, words: str) -> None:
    found = check_item(raw)
    assert [problem.field for problem in found] == [field], found
    assert words in found[0].message


def test_missing_metadata_is_one_problem() -> None:
    raw = tool_call()
    del raw["metadata"]
    (problem,) = check_item(raw)
    assert (problem.field, problem.message) == ("metadata", "is missing; add it")


def test_prefix_kind_and_dataset_go_together() -> None:
    assert parse_items([tool_call()], "pr")
    assert parse_items([agent()], "merge")
    lines = problems(tool_call(), gate="merge")
    assert [line.split(": ")[1] for line in lines] == ["id", "metadata.kind"]
    # without a gate the first item decides, and the others must agree
    assert any(line.startswith("pr/search/one: id:") for line in problems(agent(), tool_call()))


def test_duplicate_ids_are_named_once() -> None:
    lines = problems(tool_call(), tool_call(), tool_call())
    assert lines == ["pr/search/one: id: stands 3 times; give each item an id of its own"]


def test_ten_mistakes_in_ten_items_are_ten_lines() -> None:
    bad = [
        tool_call(id="pr/a/1", metadata={"expectedTools": []}),
        tool_call(id="pr/a/2", expectedOutput="x"),
        tool_call(id="pr/a/3", metadata={"maxTurns": 2}),
        tool_call(id="pr/a/4", input={"query": ""}),
        tool_call(id="pr/a/5", metadata={"foo": 1}),
        tool_call(id="pr/a/6", metadata={"expectedTools": ["a", "a"]}),
        tool_call(id="pr/a/7", metadata={"category": ""}),
        tool_call(id="pr/a/8", metadata={"mcpToolsOnly": 1}),
        tool_call(id="pr/a", metadata={}),
        tool_call(id="pr/a/9", metadata={"expectedArgs": [1]}),
    ]
    lines = problems(*bad, tool_call(id="pr/a/good"), gate="pr")
    assert len(lines) == 10
    assert {line.split(": ")[0] for line in lines} == {raw["id"] for raw in bad}


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        ),
        max_size=6,
    )
)
def test_whatever_a_dataset_holds_is_a_problem_or_an_item_never_a_crash(metadata: dict[str, Any]) -> None:
    raw = {"id": "pr/a/b", "input": {"query": "q"}, "metadata": metadata, "status": "ACTIVE"}
    found = check_item(raw)
    if not found:
        assert parse_items([raw])
    for problem in found:
        assert len(str(problem).splitlines()) == 1
        assert problem.message


class TestSelect:
    items = parse_items(
        [
            tool_call(id=f"pr/{tool}/{slug}", metadata={"category": tool})
            for tool in ("a.b", "axb", "c")
            for slug in "xy"
        ]
    )

    def test_id_is_searched_not_anchored(self) -> None:
        assert [item.id for item in select(self.items, "c/")] == ["pr/c/x", "pr/c/y"]
        assert [item.id for item in select(self.items, "^pr/c/x$")] == ["pr/c/x"]

    def test_category_takes_a_star_and_every_other_character_literally(self) -> None:
        assert {item.metadata.category for item in select(self.items, category="a.b")} == {"a.b"}
        assert {item.metadata.category for item in select(self.items, category="a*")} == {"a.b", "axb"}
        assert len(select(self.items, category="*")) == 6

    def test_both_must_fit(self) -> None:
        assert [item.id for item in select(self.items, "x$", "c")] == ["pr/c/x"]

    def test_nothing_selected_is_an_error_that_shows_what_is_near(self) -> None:
        with pytest.raises(TwogateError, match=r"selects none of the 6 active items; near: pr/c/[xy]"):
            select(self.items, "^pr/c/z$")
        with pytest.raises(TwogateError, match="no active item"):
            select([], None)

    def test_an_invalid_expression_is_an_error(self) -> None:
        with pytest.raises(TwogateError, match="is not a regular expression"):
            select(self.items, "(")

    @given(st.text(max_size=10).filter(lambda text: "*" not in text))
    def test_a_category_without_a_star_only_fits_itself(self, name: str) -> None:
        try:
            chosen = select(self.items, category=name)
        except TwogateError:
            assert name not in {"a.b", "axb", "c"}
        else:
            assert {item.metadata.category for item in chosen} == {name}


@pytest.mark.parametrize(
    ("name", "gate"),
    [
        ("mcp-server-evals-pr", "pr"),
        ("mcp-server-evals-merge", "merge"),
        ("apify-pr", "pr"),
        ("team/merge", "merge"),
        ("pr", "pr"),
        ("improper", None),
        ("surge", None),
    ],
)
def test_the_gate_of_a_dataset_by_its_name(name: str, gate: str | None) -> None:
    assert gate_of_dataset(name) == gate
