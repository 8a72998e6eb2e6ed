from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks_server_support import untimed

from examples.tasks_server import rules
from examples.tasks_server.errors import InvalidError

ALNUM = string.ascii_letters + string.digits
names = st.from_regex(re.compile(rules.NAME_PATTERN, re.ASCII), fullmatch=True).filter(
    lambda name: rules.NAME_MIN <= len(name) <= rules.NAME_MAX and not name.endswith("\n")
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def refusal(check: object, *arguments: object) -> str:
    assert callable(check)
    with pytest.raises(InvalidError) as caught:
        check(*arguments)
    return caught.value.type


@untimed
@given(names)
def test_names_that_the_schema_allows_are_accepted(name: str) -> None:
    assert rules.check_name(name) == name


@untimed
@given(st.text(max_size=80))
def test_a_name_is_accepted_exactly_when_the_documented_rule_holds(name: str) -> None:
    fits = 3 <= len(name) <= 63 and all(char in ALNUM + "-" for char in name) and name[0] in ALNUM and name[-1] in ALNUM
    try:
        rules.check_name(name)
        accepted = True
    except InvalidError:
        accepted = False
    assert accepted == fits


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a" * 64, "name-too-long"),
        ("ab", "name-too-short"),
        ("", "name-too-short"),
        ("two words", "invalid-name"),
        ("-dash", "invalid-name"),
        ("dash-", "invalid-name"),
        ("newline\n", "invalid-name"),
        ("tsk_123", "invalid-name"),
        ("ünïcode", "invalid-name"),
    ],
)
def test_a_bad_name_is_refused_with_its_type(name: str, kind: str) -> None:
    assert refusal(rules.check_name, name) == kind


def test_texts_have_limits_and_no_control_characters() -> None:
    assert rules.check_text("title", "x" * 100, 100) == "x" * 100
    assert rules.check_text("title", "two\nlines\t", 100) == "two\nlines\t"
    assert refusal(rules.check_text, "title", "x" * 101, 100) == "title-too-long"
    assert refusal(rules.check_text, "title", "a\x00b", 100) == "invalid-title"


@untimed
@given(st.dictionaries(st.text(max_size=10), json_values, max_size=5))
def test_any_small_json_object_is_an_input(value: dict[str, Any]) -> None:
    assert rules.check_input(value) == value


def test_inputs_have_a_size_a_depth_and_no_numbers_that_json_lacks() -> None:
    fits = {"a": "x" * (rules.INPUT_MAX_BYTES - len(json.dumps({"a": ""})))}
    assert rules.check_input(fits) == fits
    assert refusal(rules.check_input, {"a": fits["a"] + "x"}) == "input-too-large"
    assert refusal(rules.check_input, {"a": "é" * (rules.INPUT_MAX_BYTES // 2)}) == "input-too-large"
    assert refusal(rules.check_input, {"a": float("nan")}) == "invalid-input"
    assert refusal(rules.check_input, {"a": "\ud800"}) == "invalid-input"
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": [deep]}
    assert refusal(rules.check_input, deep) == "input-too-deep"


@untimed
@given(st.integers(0, 10**17))
def test_a_cursor_reads_back(seq: int) -> None:
    assert rules.decode_cursor(rules.encode_cursor(seq)) == seq


@untimed
@given(st.text(max_size=30))
def test_what_no_list_answered_is_no_cursor(text: str) -> None:
    try:
        read = rules.encode_cursor(rules.decode_cursor(text))
    except InvalidError as error:
        read = error.type
    assert read in {text, "invalid-cursor"}


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "europe/prague", "+02"])
def test_only_iana_names_are_time_zones(name: str) -> None:
    assert refusal(rules.check_timezone, name) == "invalid-timezone"


def test_a_time_zone_is_found() -> None:
    assert rules.check_timezone("Europe/Prague").key == "Europe/Prague"
    assert rules.check_timezone("UTC").key == "UTC"


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_page_has_1_to_100_entries(limit: int) -> None:
    assert refusal(rules.check_limit, limit) == "invalid-limit"
    assert rules.check_limit(100) == 100
