from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.conversation import ToolCall
from evals.items import Item
from evals.scoring.json_equality import json_equal
from evals.scoring.tool_call import measured_call, score_tool_call

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNDER_TEST = {"search", "read"}
BUILTIN = {"Grep", "Bash"}


def item(tools: list[str], args: dict[str, Any] | None = None, mcp_only: bool | None = None) -> Item:
    metadata = {"category": "search", "kind": "tool-call", "expectedTools": tools}
    metadata |= {"expectedArgs": args, "mcpToolsOnly": mcp_only}  # type: ignore[dict-item]
    return Item.model_validate({"id": "pr/search/one", "input": {"query": "q"}, "metadata": metadata})


def call(name: str, server: str | None = "repo", **arguments: Any) -> ToolCall:
    full = f"mcp__{server}__{name}" if server else name
    return ToolCall(id="1", name=full, server=server, arguments=arguments, called_at=NOW)


def score(expected: Item, made: ToolCall | None) -> tuple[bool, str]:
    result = score_tool_call(
        expected, made, servers_under_test={"repo"}, tools_under_test=UNDER_TEST, builtin_tools=BUILTIN
    )
    return result.passed, result.reason


def test_of_an_auxiliary_servers_tools_it_is_not_said_that_there_are_none() -> None:
    _, reason = score(item(["search"]), call("fetch", server="web"))
    assert reason == "expected search, the model called fetch of the server 'web'({})"
    assert score(item(["search"]), call("fetch"))[1].endswith("; the server has no such tool")


@pytest.mark.parametrize(
    ("expected", "got", "reason"),
    [
        ("caf\u00e9", "cafe\u0301", r'q: expected "caf\u00e9", got "cafe\u0301" from character 4'),
        ("a b", "a\u00a0b", r'q: expected "a b", got "a\u00a0b" from character 2'),
        ("x" * 500 + "y", "x" * 500 + "z", f'q: expected …{"x" * 20}y", got …{"x" * 20}z" from character 501'),
        (["x" * 300], ["x" * 301], f'q: expected …{"x" * 20}"], got …{"x" * 20}x"] from character 302'),
        ("a", "a\u200b", r'q: expected "a", got "a\u200b" from character 2'),
        (
            {"n": 1, "t": "x" * 300 + "a"},
            {"t": "x" * 300 + "b", "n": 1},
            f'q: expected …{"x" * 20}a"}}, got …{"x" * 20}b"}} from character 315',
        ),
        ("one", "two", 'q: expected "one", got "two"'),
    ],
)
def test_two_values_that_look_alike_are_shown_where_they_differ(expected: Any, got: Any, reason: str) -> None:
    passed, said = score(item(["search"], {"q": expected}), call("search", q=got))
    assert not passed
    assert said == f"search was called with other arguments: {reason}"


def test_a_right_call_passes_with_or_without_arguments() -> None:
    assert score(item(["search"]), call("search", q="x"))[0]
    assert score(item(["read", "search"]), call("search"))[0]
    passed, reason = score(item(["search"], {"q": "x"}), call("search", q="x", other=1))
    assert passed
    assert reason == 'search with {"q": "x"}'


def test_a_built_in_tool_may_be_expected() -> None:
    assert score(item(["Grep"]), call("Grep", server=None))[0]


def test_a_built_in_tool_that_the_session_does_not_have_is_no_right_call() -> None:
    """By the item's word or the run's."""
    by_item = score(item(["Grep"], mcp_only=True), call("Grep", server=None))
    by_run = score_tool_call(
        item(["Grep"]),
        call("Grep", server=None),
        servers_under_test={"repo"},
        tools_under_test=UNDER_TEST,
        builtin_tools=BUILTIN,
        mcp_tools_only=True,
    )
    for passed, reason in (by_item, (by_run.passed, by_run.reason)):
        assert not passed
        assert "a built-in tool that this session does not have" in reason


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (None, ["expected a call of search", "made no call"]),
        (call("read", path="a"), ["expected search", 'called read({"path": "a"})']),
        (call("nope"), ["expected search", "called nope", "the server has no such tool"]),
        (call("Nope", server=None), ["no such tool exists"]),
        (call("Grep", server=None), ["a built-in tool of Claude Code", "mcpToolsOnly"]),
        (call("search", server=None), ["without the server's prefix"]),
        (call("search", server="helper", q="x"), ["of a server under test", "'helper', an auxiliary one"]),
        (call("search", q="y"), ['q: expected "x", got "y"']),
        (call("search"), ['q: expected "x", missing']),
    ],
)
def test_a_wrong_call_fails_and_the_reason_shows_expected_and_actual(made: ToolCall | None, words: list[str]) -> None:
    passed, reason = score(item(["search"], {"q": "x"}), made)
    assert not passed
    for word in words:
        assert word in reason


def test_no_hint_at_mcp_tools_only_where_it_is_set() -> None:
    _, reason = score(item(["search"], mcp_only=True), call("Grep", server=None))
    assert "mcpToolsOnly" not in reason


def test_long_arguments_are_shortened_in_a_reason() -> None:
    _, reason = score(item(["search"], {"q": "x"}), call("search", q="y" * 5000))
    assert len(reason) < 500
    assert "5002 characters" in reason


def test_the_first_call_that_is_not_tool_search_is_measured() -> None:
    first, second = call("ToolSearch", server=None), call("search")
    assert measured_call([first, second]) == second
    assert measured_call([first]) is None
    assert measured_call([]) is None


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (5, 5.0, True),
        (True, 1, False),
        (0, False, False),
        (True, True, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        ([1, 2], [1, 2.0], True),
        ([True], [1], False),
        ({"a": [{"b": 1.0}]}, {"a": [{"b": 1}]}, True),
        ("5", 5, False),
        (None, None, True),
        (None, False, False),
        ("a", "A", False),
        ({}, [], False),
    ],
)
def test_json_equality(left: Any, right: Any, equal: bool) -> None:
    assert json_equal(left, right) is equal
    assert json_equal(right, left) is equal


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_every_value_equals_itself_after_a_trip_through_json(value: Any) -> None:
    assert json_equal(value, json.loads(json.dumps(value)))
