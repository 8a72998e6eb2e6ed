"""What a stored JSON value reads back as, and what an upsert keeps: rules for every shape of value."""

from __future__ import annotations

import json
import math
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.embedded.langfuse.jsonvalues import KEEP, dumps, item_value, loads, merged, normalise, number

_TEXTS = st.text(max_size=20)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
def test_reading_back_changes_nothing_more(value: Any) -> None:
    once = normalise(value)
    assert dumps(normalise(loads(dumps(once)))) == dumps(once)


@given(_JSON)
def test_stored_text_is_valid_utf8_json_without_control_characters(value: Any) -> None:
    text = dumps(normalise(value))
    assert json.loads(text.encode("utf-8")) == normalise(value)
    assert not set(text) & {chr(code) for code in range(32)}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_stays_itself_up_to_sixteen_digits(value: float) -> None:
    found = number(value)
    assert found is not None
    assert math.isclose(found, value, rel_tol=1e-15, abs_tol=0.0)
    assert isinstance(found, int) == (value.is_integer() and abs(value) < 1e21)


@given(st.integers(-(2**53), 2**53))
def test_a_safe_integer_stays_exact(value: int) -> None:
    assert number(value) == value


@given(st.dictionaries(st.text(string.printable, max_size=8), st.integers(0, 9), max_size=8))
def test_keys_are_ordered_by_length_and_then_bytes(value: dict[str, int]) -> None:
    keys = [key.encode() for key in normalise(value)]
    assert keys == sorted(keys, key=lambda key: (len(key), key))


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("42", 42),
        ('{"a": 1}', {"a": 1}),
        ("true", True),
        ('"quoted"', "quoted"),
        (" [1] ", [1]),
        ("NaN", "NaN"),
        ("{'a': 1}", "{'a': 1}"),
        ("a\x00b\x01c\td\ne", "abc\td\ne"),
        ("\ud800", "\ufffd"),
        ("", None),
        (False, False),
        (0, 0),
        ({}, {}),
        ([], []),
        ({"a": ""}, {"a": ""}),
        ({"a": "42"}, {"a": "42"}),
        (1e400, None),
    ],
)
def test_item_value(sent: Any, stored: Any) -> None:
    found = item_value({"input": sent}, "input")
    assert found == stored
    assert type(found) is type(stored)


@given(_JSON, _JSON)
def test_an_upsert_replaces_or_keeps_and_never_merges_deeply(sent: Any, stored: Any) -> None:
    change = item_value({"metadata": sent}, "metadata")
    after = merged(change, stored)
    assert after == (stored if change is KEEP else change)
    if sent is None:
        assert change is KEEP
    if isinstance(sent, dict | list | bool | int | float):
        assert after == normalise(sent)


def test_left_out_and_null_are_the_same() -> None:
    assert item_value({}, "input") is KEEP
    assert item_value({"input": None}, "input") is KEEP
    assert item_value({"input": "null"}, "input") is KEEP


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "{", "", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


def test_numbers_too_large_for_a_double_are_null() -> None:
    assert loads("[1e999, " + "9" * 5000 + "]") == [None, None]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_deepest_value_that_is_taken_is_the_same_on_every_python(opening: str, closing: str) -> None:
    assert loads(opening * 499 + "[]" + closing * 499) is not None
    with pytest.raises(ValueError, match="nested too deeply"):
        loads(opening * 500 + "[]" + closing * 500)
    flat = [["[" * 2000, {"{": 1}]] * 2000
    assert loads(json.dumps(flat)) == flat
