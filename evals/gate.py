"""The gate: passed over requested trials against a threshold, in exact arithmetic. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

DEFAULT_THRESHOLD = Fraction(9, 10)


def parse_threshold(text: str) -> Fraction:
    """A share between 0 and 1, kept exact: `0.7`, `7/10`, `1`. Raises ValueError with the reason."""
    try:
        value = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number between 0 and 1, such as 0.9") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is outside 0 to 1; for 90 % write 0.9")
    return value


@dataclass(frozen=True)
class GateResult:
    """What a run came to. A trial that never completed stays in the denominator."""

    passed: int
    requested: int
    threshold: Fraction = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.requested:
            raise ValueError(f"{self.passed} passed of {self.requested} requested")

    @property
    def pass_rate(self) -> Fraction:
        """passed / requested; 0 when nothing was requested, which no threshold but 0 lets through."""
        return Fraction(self.passed, self.requested) if self.requested else Fraction(0)

    @property
    def met(self) -> bool:
        return self.requested > 0 and self.pass_rate >= self.threshold

    def line(self) -> str:
        """`19/20 passed (95.0 %), threshold 90 %: gate passed`."""
        verdict = "gate passed" if self.met else "gate failed"
        threshold = f"{float(self.threshold * 100):.4f}".rstrip("0").rstrip(".")
        rate = percent(self.pass_rate, self.threshold)
        return f"{self.passed}/{self.requested} passed ({rate} %), threshold {threshold} %: {verdict}"


def percent(rate: Fraction, threshold: Fraction) -> str:
    """A rate in per cent to one decimal, cut rather than rounded where rounding would reach a threshold it missed."""
    tenths = rate * 1000
    rounded = round(tenths)
    if rate < threshold and rounded >= threshold * 1000:
        rounded = tenths.numerator // tenths.denominator
    return f"{rounded / 10:.1f}"
