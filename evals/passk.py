"""What repeated trials say: pass@k, pass^k, an interval for the pass rate, flaky items. Standard library only.

A trial that ended in an error or was never run counts as not passed, as it does in the gate: it stays among an item's
n trials and is not among its c passes. So a harness failure can lower these numbers and never raise them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist


def pass_at_k(trials: int, passed: int, k: int) -> Fraction:
    """The chance that at least one of k trials passes, estimated from `passed` of `trials`.

    1 - C(n-c, k) / C(n, k) for n trials with c passes: the share of the k-subsets of the trials that hold a pass, which
    is unbiased for independent trials; 1 - (1 - c/n)^k is not.

    Source: M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1, arXiv:2107.03374.

    Raises ValueError unless 0 <= passed <= trials and 1 <= k <= trials.
    """
    _check(trials, passed, k)
    return 1 - Fraction(math.comb(trials - passed, k), math.comb(trials, k))


def pass_hat_k(trials: int, passed: int, k: int) -> Fraction:
    """The chance that all of k trials pass (pass^k), estimated from `passed` of `trials`.

    C(c, k) / C(n, k) for n trials with c passes: the share of the k-subsets of the trials that are passes throughout.

    Source: S. Yao et al., "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains" (2024),
    section 3, arXiv:2406.12045.

    Raises ValueError unless 0 <= passed <= trials and 1 <= k <= trials.
    """
    _check(trials, passed, k)
    return Fraction(math.comb(passed, k), math.comb(trials, k))


def wilson_interval(passed: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """(low, high): the Wilson score interval of a share, two-sided, without continuity correction.

    (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n) with p = passed/trials, n = trials, and z the normal quantile
    of 1 - (1 - confidence)/2. It stays inside 0 to 1 and keeps a width at 0 and at n passes. It takes the trials for
    independent; those of one item are alike, so over few items with many iterations the truth is wider. (0, 1) when
    there were no trials.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the
    American Statistical Association 22 (1927), 209-212.

    Raises ValueError unless 0 <= passed <= trials and 0 < confidence < 1.
    """
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed} passed of {trials} trials")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    share, spread = passed / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    # At the ends the formula gives 0 and 1 exactly; floating point does not.
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == trials else min(1.0, middle + half)
    return low, high


@dataclass(frozen=True)
class ItemTrials:
    """The trials of one item, counted by outcome."""

    item: str
    passed: int = 0
    failed: int = 0
    error: int = 0
    not_run: int = 0

    def __post_init__(self) -> None:
        if min(self.passed, self.failed, self.error, self.not_run) < 0:
            raise ValueError(f"{self.item}: a count is negative")

    @property
    def requested(self) -> int:
        """n: every trial asked for, those without a verdict too."""
        return self.passed + self.failed + self.error + self.not_run

    @property
    def flaky(self) -> bool:
        """Among the trials that completed, some passed and some did not. An error is no sign of it."""
        return self.passed > 0 and self.failed > 0


@dataclass(frozen=True)
class AtK:
    """Both estimates for one k."""

    k: int
    pass_at: Fraction
    """pass@k: at least one of k."""
    pass_hat: Fraction
    """pass^k: all of k."""


@dataclass(frozen=True)
class ItemPassK:
    """One item's estimates for k = 1…n."""

    trials: ItemTrials
    at: tuple[AtK, ...]


@dataclass(frozen=True)
class PassK:
    """A run's estimates: each item's, and for each k their mean over the items."""

    items: tuple[ItemPassK, ...]
    mean: tuple[AtK, ...]
    """For k = 1…the smallest n of the items: beyond it some item has no estimate."""
    passed: int
    requested: int
    interval: tuple[float, float]
    """The 95 % Wilson interval of passed / requested over all trials."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """The items that both passed and failed, in their order."""
        return tuple(one.trials.item for one in self.items if one.trials.flaky)


def estimate(trials: Iterable[ItemTrials], confidence: float = 0.95) -> PassK:
    """Estimate pass@k and pass^k per item and over the run. Items without a requested trial are left out."""
    counted = [one for one in trials if one.requested]
    items = tuple(ItemPassK(one, _at(one.requested, one.passed)) for one in counted)
    passed = sum(one.passed for one in counted)
    requested = sum(one.requested for one in counted)
    return PassK(
        items=items,
        mean=_mean([one.at for one in items]),
        passed=passed,
        requested=requested,
        interval=wilson_interval(passed, requested, confidence),
    )


def _at(trials: int, passed: int) -> tuple[AtK, ...]:
    return tuple(AtK(k, pass_at_k(trials, passed, k), pass_hat_k(trials, passed, k)) for k in range(1, trials + 1))


def _mean(items: Sequence[tuple[AtK, ...]]) -> tuple[AtK, ...]:
    # zip ends with the item that has the fewest trials
    return tuple(
        AtK(
            at[0].k,
            sum((one.pass_at for one in at), Fraction(0)) / len(at),
            sum((one.pass_hat for one in at), Fraction(0)) / len(at),
        )
        for at in zip(*items, strict=False)
    )


def _check(trials: int, passed: int, k: int) -> None:
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed} passed of {trials} trials")
    if not 1 <= k <= trials:
        raise ValueError(f"k is {k}; it must be 1 to {trials}, the number of trials")
