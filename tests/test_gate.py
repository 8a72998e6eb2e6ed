from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.gate import GateResult, parse_threshold


def test_seven_of_ten_meets_seven_tenths() -> None:
    # as floats, 0.7 * 10 is 7.000000000000001 in some orders of operations
    assert GateResult(7, 10, parse_threshold("0.7")).met
    assert GateResult(29, 100, parse_threshold("0.29")).met
    assert not GateResult(28, 100, parse_threshold("0.29")).met


@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 100))
def test_the_verdict_is_that_of_whole_numbers(passed: int, requested: int, percent: int) -> None:
    passed = min(passed, requested)
    assert GateResult(passed, requested, Fraction(percent, 100)).met == (passed * 100 >= percent * requested)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(0, 1000))
def test_a_missed_threshold_is_never_shown_as_reached(trials: tuple[int, int], thousandths: int) -> None:
    result = GateResult(*trials, Fraction(thousandths, 1000))
    shown = float(result.line().split("(")[1].split(" %")[0])
    assert abs(Fraction(str(shown)) - result.pass_rate * 100) <= Fraction(1, 10)
    if not result.met:
        assert Fraction(str(shown)) < result.threshold * 100


def test_nothing_requested_is_never_met() -> None:
    assert not GateResult(0, 0, Fraction(0)).met


def test_the_line() -> None:
    assert GateResult(19, 20).line() == "19/20 passed (95.0 %), threshold 90 %: gate passed"
    assert GateResult(17, 20).line() == "17/20 passed (85.0 %), threshold 90 %: gate failed"
    assert GateResult(2, 3, parse_threshold("2/3")).line().endswith("threshold 66.6667 %: gate passed")


@pytest.mark.parametrize("text", ["1.1", "-0.1", "90", "abc", "", "1/0", "nan", "inf"])
def test_a_threshold_outside_zero_to_one_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"outside 0 to 1|not a number"):
        parse_threshold(text)


def test_more_passed_than_requested_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="3 passed of 2"):
        GateResult(3, 2)
