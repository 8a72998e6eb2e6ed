from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from evals.scoring.agreement import Agreement

counts = st.integers(0, 60)


def test_kappa_by_hand() -> None:
    # 50 pairs: 20 both PASS, 5 too strict, 10 too lenient, 15 both FAIL.
    # p_o = 35/50 = 0.7; labels PASS 25/50, verdicts PASS 30/50; p_e = 0.5*0.6 + 0.5*0.4 = 0.5
    # kappa = (0.7 - 0.5) / (1 - 0.5) = 0.4
    found = Agreement(pass_pass=20, pass_fail=5, fail_pass=10, fail_fail=15)
    assert (found.share, found.kappa) == (Fraction(7, 10), Fraction(2, 5))


def test_pairs_are_counted() -> None:
    found = Agreement.of(
        [("PASS", "PASS"), ("PASS", "FAIL"), ("FAIL", "PASS"), ("FAIL", "FAIL"), ("PASS", None), ("FAIL", None)]
    )
    assert found == Agreement(1, 1, 1, 1, 2)
    assert (found.total, found.judged, found.agreed) == (6, 4, 2)
    # What was not judged counts against the share, and is outside kappa.
    assert (found.share, found.kappa) == (Fraction(1, 3), Fraction(0))


def test_ends() -> None:
    assert Agreement(pass_pass=3, fail_fail=4).kappa == 1
    assert Agreement(pass_fail=5, fail_pass=5).kappa == -1
    # All the same word: chance alone explains everything, and nothing is left to divide by.
    assert Agreement(pass_pass=7).kappa is None
    assert Agreement(not_judged=2).kappa is None
    assert Agreement().share == 0


@given(counts, counts, counts, counts)
def test_kappa_is_never_above_the_share_it_corrects(a: int, b: int, c: int, d: int) -> None:
    found = Agreement(a, b, c, d)
    swapped = Agreement(d, c, b, a)
    assert found.kappa == swapped.kappa
    if found.kappa is not None:
        assert -1 <= found.kappa <= found.share
        assert (found.kappa == 1) == (found.agreed == found.judged)
