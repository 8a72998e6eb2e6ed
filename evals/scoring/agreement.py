"""How far a judge agrees with people: share, Cohen's kappa, confusion. Pure, exact arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from evals.scoring.judge import Verdict


@dataclass(frozen=True)
class Agreement:
    """Counts of (label, verdict) pairs. What was not judged stands apart, in no pair."""

    pass_pass: int = 0
    """Label PASS, verdict PASS."""
    pass_fail: int = 0
    """Label PASS, verdict FAIL: the judge was too strict."""
    fail_pass: int = 0
    """Label FAIL, verdict PASS: the judge was too lenient."""
    fail_fail: int = 0
    not_judged: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[Verdict, Verdict | None]]) -> Agreement:
        """Count pairs of (label, verdict); the verdict is None where the judge gave none."""
        counts = Counter(pairs)
        return cls(
            pass_pass=counts["PASS", "PASS"],
            pass_fail=counts["PASS", "FAIL"],
            fail_pass=counts["FAIL", "PASS"],
            fail_fail=counts["FAIL", "FAIL"],
            not_judged=counts["PASS", None] + counts["FAIL", None],
        )

    @property
    def judged(self) -> int:
        return self.pass_pass + self.pass_fail + self.fail_pass + self.fail_fail

    @property
    def agreed(self) -> int:
        return self.pass_pass + self.fail_fail

    @property
    def total(self) -> int:
        return self.judged + self.not_judged

    @property
    def share(self) -> Fraction:
        """Agreed over all that was labelled: what the judge could not judge counts as not agreed. 0 of nothing."""
        return Fraction(self.agreed, self.total) if self.total else Fraction(0)

    @property
    def kappa(self) -> Fraction | None:
        """Cohen's kappa over what was judged: agreement beyond what chance alone would give.

        kappa = (p_o - p_e) / (1 - p_e), with p_o the share of equal pairs and p_e the sum over the verdicts of (share
        of labels) x (share of verdicts). 1 is full agreement, 0 that of chance. None where it is not defined: nothing
        was judged, or labels and verdicts are all one and the same word (p_e is 1).

        Source: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement
        20 (1960), 37-46.
        """
        if not self.judged:
            return None
        observed = Fraction(self.agreed, self.judged)
        label_pass = Fraction(self.pass_pass + self.pass_fail, self.judged)
        verdict_pass = Fraction(self.pass_pass + self.fail_pass, self.judged)
        chance = label_pass * verdict_pass + (1 - label_pass) * (1 - verdict_pass)
        return None if chance == 1 else (observed - chance) / (1 - chance)
