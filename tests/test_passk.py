from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.passk import ItemTrials, estimate, pass_at_k, pass_hat_k, wilson_interval

trials_passed_k = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)),
)


class TestEstimators:
    def test_four_trials_three_passes_by_hand(self) -> None:
        # C(4, 2) = 6 pairs; C(1, 2) = 0 of them without a pass; C(3, 2) = 3 of them all passes
        assert [pass_at_k(4, 3, k) for k in (1, 2, 3, 4)] == [Fraction(3, 4), 1, 1, 1]
        assert [pass_hat_k(4, 3, k) for k in (1, 2, 3, 4)] == [Fraction(3, 4), Fraction(1, 2), Fraction(1, 4), 0]

    def test_four_trials_one_pass_by_hand(self) -> None:
        assert [pass_at_k(4, 1, k) for k in (1, 2, 3, 4)] == [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), 1]
        assert [pass_hat_k(4, 1, k) for k in (1, 2, 3, 4)] == [Fraction(1, 4), 0, 0, 0]

    def test_it_is_not_the_biased_estimate(self) -> None:
        # 1 - (1 - 1/4)^2 would be 7/16, and (3/4)^2 would be 9/16
        assert pass_at_k(4, 1, 2) == Fraction(1, 2) != 1 - (1 - Fraction(1, 4)) ** 2
        assert pass_hat_k(4, 3, 2) == Fraction(1, 2) != Fraction(3, 4) ** 2

    @given(trials_passed_k)
    def test_all_of_k_is_at_most_one_trial_is_at_most_any_of_k(self, given_: tuple[int, int, int]) -> None:
        n, c, k = given_
        assert 0 <= pass_hat_k(n, c, k) <= pass_at_k(n, c, 1) == pass_hat_k(n, c, 1) <= pass_at_k(n, c, k) <= 1
        assert pass_hat_k(n, c, 1) == Fraction(c, n)

    @given(trials_passed_k)
    def test_both_are_shares_of_the_subsets(self, given_: tuple[int, int, int]) -> None:
        n, c, k = given_
        subsets = list(combinations([True] * c + [False] * (n - c), k))
        assert pass_at_k(n, c, k) == Fraction(sum(map(any, subsets)), len(subsets))
        assert pass_hat_k(n, c, k) == Fraction(sum(map(all, subsets)), len(subsets))

    @given(trials_passed_k)
    def test_one_of_k_fails_unless_all_pass(self, given_: tuple[int, int, int]) -> None:
        n, c, k = given_
        assert pass_hat_k(n, c, k) == 1 - pass_at_k(n, n - c, k)

    @pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 0), (4, 2, 5), (0, 0, 1)])
    def test_what_cannot_be_is_refused(self, n: int, c: int, k: int) -> None:
        with pytest.raises(ValueError, match=r"passed of|k is"):
            pass_at_k(n, c, k)
        with pytest.raises(ValueError, match=r"passed of|k is"):
            pass_hat_k(n, c, k)


class TestWilson:
    def test_eight_of_ten_by_hand(self) -> None:
        # z = 1.959964, z² = 3.841459: middle (0.8 + 0.192073) / 1.384146 = 0.716740,
        # half 1.959964 * sqrt(0.016 + 0.00960365) / 1.384146 = 0.226577
        low, high = wilson_interval(8, 10)
        assert low == pytest.approx(0.490162, abs=1e-5)
        assert high == pytest.approx(0.943318, abs=1e-5)

    def test_the_ends_keep_a_width(self) -> None:
        # At c = 0 the upper end is z² / (n + z²), at c = n the lower end is n / (n + z²).
        low, high = wilson_interval(0, 10)
        assert low == 0.0
        assert high == pytest.approx(3.841459 / 13.841459, abs=1e-6)
        low, high = wilson_interval(10, 10)
        assert low == pytest.approx(10 / 13.841459, abs=1e-6)
        assert high == 1.0
        assert wilson_interval(0, 0) == (0.0, 1.0)

    @given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_it_holds_the_share_and_mirrors(self, counted: tuple[int, int]) -> None:
        passed, trials = counted
        low, high = wilson_interval(passed, trials)
        assert 0 <= low <= passed / trials <= high <= 1
        mirrored = wilson_interval(trials - passed, trials)
        assert mirrored[0] == pytest.approx(1 - high)
        assert mirrored[1] == pytest.approx(1 - low)
        wider = wilson_interval(passed, trials, confidence=0.99)
        assert wider[0] <= low
        assert high <= wider[1]

    @pytest.mark.parametrize(("passed", "trials", "confidence"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0)])
    def test_what_cannot_be_is_refused(self, passed: int, trials: int, confidence: float) -> None:
        with pytest.raises(ValueError, match=r"passed of|confidence"):
            wilson_interval(passed, trials, confidence)


class TestEstimate:
    def test_a_run_by_hand(self) -> None:
        found = estimate(
            [ItemTrials("a", passed=4), ItemTrials("b", passed=3, failed=1), ItemTrials("c", failed=2, error=2)]
        )
        # k = 2: pass@2 is 1, 1, 0; pass^2 is 1, 3/6, 0
        assert [(at.k, at.pass_at, at.pass_hat) for at in found.mean] == [
            (1, Fraction(7, 12), Fraction(7, 12)),
            (2, Fraction(2, 3), Fraction(1, 2)),
            (3, Fraction(2, 3), Fraction(5, 12)),
            (4, Fraction(2, 3), Fraction(1, 3)),
        ]
        assert (found.passed, found.requested) == (7, 12)
        assert found.interval == wilson_interval(7, 12)
        assert found.flaky == ("b",)

    def test_trials_without_a_verdict_stay_as_not_passed(self) -> None:
        [one] = estimate([ItemTrials("a", passed=2, error=1, not_run=1)]).items
        assert [(at.pass_at, at.pass_hat) for at in one.at][:2] == [
            (Fraction(1, 2),) * 2,
            (Fraction(5, 6), Fraction(1, 6)),
        ]
        # It never failed on the model's account, so it is not called flaky.
        assert not one.trials.flaky

    def test_items_with_fewer_trials_bound_the_mean(self) -> None:
        found = estimate([ItemTrials("a", passed=3), ItemTrials("b", failed=1)])
        assert [at.k for at in found.mean] == [1]
        assert [len(one.at) for one in found.items] == [3, 1]

    def test_nothing_requested(self) -> None:
        found = estimate([ItemTrials("a")])
        assert (found.items, found.mean, found.interval, found.flaky) == ((), (), (0.0, 1.0), ())

    def test_a_negative_count_is_a_mistake_of_the_caller(self) -> None:
        with pytest.raises(ValueError, match="a: a count is negative"):
            ItemTrials("a", passed=-1)
