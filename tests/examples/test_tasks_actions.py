from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks_server_support import untimed

from examples.tasks_server.actions import ACTION_NAMES, ActionError, perform


@pytest.mark.parametrize(
    ("action", "value", "expected"),
    [
        ("count-words", {"text": "one two\nthree"}, {"words": 3, "characters": 13, "lines": 2}),
        ("count-words", {"text": ""}, {"words": 0, "characters": 0, "lines": 0}),
        ("sum-numbers", {"numbers": [0.1, 0.2]}, {"total": 0.3, "count": 2, "average": 0.15}),
        ("sum-numbers", {"numbers": [120, 80.5, 39.5]}, {"total": 240, "count": 3, "average": 80.0}),
        (
            "fill-template",
            {"template": "Hi {{name}}, {{ n }}!", "values": {"name": "Ada", "n": 3}},
            {"text": "Hi Ada, 3!"},
        ),
        # A value is text, never a template again.
        ("fill-template", {"template": "{{a}}", "values": {"a": "{{b}} \\1"}}, {"text": "{{b}} \\1"}),
        ("sort-lines", {"text": "b\na\nb"}, {"text": "a\nb\nb", "lines": 3}),
        ("sort-lines", {"text": "b\na\nb", "unique": True, "descending": True}, {"text": "b\na", "lines": 2}),
    ],
)
def test_results(action: str, value: dict[str, Any], expected: dict[str, Any]) -> None:
    assert perform(action, value) == expected


@pytest.mark.parametrize(
    ("action", "value", "fault"),
    [
        ("count-words", {}, "text: Field required"),
        ("count-words", {"text": 3}, "text: Input should be a valid string"),
        ("count-words", {"text": "a", "lang": "en"}, "lang: Extra inputs"),
        ("sum-numbers", {"numbers": []}, "numbers: List should have at least 1 item"),
        ("sum-numbers", {"numbers": ["4"]}, "numbers.0: Input should be a valid number"),
        ("sum-numbers", {"numbers": [True]}, "numbers.0: Input should be a valid number"),
        ("sum-numbers", {"numbers": [1e300]}, "numbers.0: Input should be less than"),
        ("fill-template", {"template": "{{b}} {{a}} {{b}}"}, "the template needs values for: a, b"),
        ("sort-lines", {"text": "a", "unique": "yes"}, "unique: Input should be a valid boolean"),
    ],
)
def test_an_input_that_does_not_fit_fails_with_the_reason(action: str, value: dict[str, Any], fault: str) -> None:
    with pytest.raises(ActionError) as caught:
        perform(action, value)
    assert fault in str(caught.value)


@untimed
@given(
    st.sampled_from(ACTION_NAMES),
    st.dictionaries(
        st.sampled_from(["text", "numbers", "template", "values"]),
        st.none() | st.text() | st.lists(st.integers() | st.floats()),
    ),
)
def test_any_input_gives_a_result_or_a_reason(action: str, value: dict[str, Any]) -> None:
    try:
        answer: object = perform(action, value)
    except ActionError as error:
        answer = str(error)
    assert answer


@untimed
@given(st.lists(st.integers(-(10**12), 10**12), min_size=1))
def test_sums_of_integers_are_exact(numbers: list[int]) -> None:
    assert perform("sum-numbers", {"numbers": numbers})["total"] == sum(numbers)
