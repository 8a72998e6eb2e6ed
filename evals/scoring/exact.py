"""Scoring of a question with one known answer: direct comparison of strings after trimming.

A near miss stays wrong. It is marked with how it differs, because then the question, not the model, is usually at
fault: it did not say which of several spellings it wants.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from itertools import combinations
from typing import Literal

Difference = Literal["unicode form", "white space", "case", "punctuation", "number format"]

_SHOWN = 200  # characters of an answer shown in a reason


@dataclass(frozen=True)
class ExactScore:
    """Whether the answer is the expected one."""

    passed: bool
    reason: str
    near_miss: tuple[Difference, ...] = ()
    """How the answer differs, when it differs in spelling alone; empty when it is right, or wrong altogether."""


def score_exact(expected: str, actual: str | None) -> ExactScore:
    """Compare an answer with the expected one. Both are trimmed of white space at their ends, and of nothing else.

    actual: None when the model gave no answer.
    """
    if actual is None:
        return ExactScore(False, f"expected {_brief(expected)}, there was no answer")
    expected, actual = expected.strip(), actual.strip()
    if expected == actual:
        return ExactScore(True, _brief(actual))
    kinds = differences(expected, actual)
    near = f": a near miss, it differs in {' and '.join(kinds)} alone" if kinds else ""
    return ExactScore(False, f"expected {_brief(expected)}, got {_brief(actual)}{near}", kinds)


def differences(expected: str, actual: str) -> tuple[Difference, ...]:
    """The fewest kinds of difference that together explain why two texts are unequal; empty when none do."""
    for count in range(1, len(_IGNORE) + 1):
        for kinds in combinations(_IGNORE, count):
            left, right = expected, actual
            for kind in kinds:
                left, right = _IGNORE[kind](left), _IGNORE[kind](right)
            # Two texts of which nothing is left are not alike.
            if left == right and left:
                return kinds
    return ()


_ASCII = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "…": "..."})


def _plain_unicode(text: str) -> str:
    """Compatibility form, typewriter quotes and dashes, no invisible format characters."""
    text = unicodedata.normalize("NFKC", text).translate(_ASCII)
    return "".join(char for char in text if unicodedata.category(char) != "Cf")


def _no_white_space(text: str) -> str:
    return "".join(text.split())


_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w\s.,](?=\d)")
# A sign before a number, and a point or comma inside one, are the number's and not punctuation.
_KEPT = re.compile(r"(?<![^\s(])[-+](?=\d)|(?<=\d)[-.,](?=\d)")


def _no_punctuation(text: str) -> str:
    text = _BETWEEN_DIGITS.sub("-", text)
    kept = {match.start() for match in _KEPT.finditer(text)}
    return "".join(
        char
        for index, char in enumerate(text)
        if index in kept or not (unicodedata.category(char).startswith("P") or char in "`^")
    ).strip()


_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,'’ \u00a0\u202f]\d+)*(?![\w])")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,.'’ \u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")


def _plain_numbers(text: str) -> str:
    """Each number without thousands separators, needless zeros, plus sign and currency, with a decimal point."""
    text = "".join(char for char in text if unicodedata.category(char) != "Sc").strip()
    return _NUMBER.sub(lambda match: _plain_number(match[0]), text)


def _plain_number(text: str) -> str:
    number = text
    grouped = _GROUPED.fullmatch(number)
    # "1.234" is a decimal number as readily as a grouped one: only a separator that cannot be a decimal point goes.
    if grouped is not None and (grouped[1] != "." or number.count(".") > 1 or "," in number):
        number = number.replace(grouped[1], "")
    if number.count(",") == 1 and "." not in number:
        number = number.replace(",", ".")
    try:
        value = Decimal(number)
    except InvalidOperation:
        return text
    # The default context rounds to 28 digits: two long numbers that differ would become one.
    plain = format(value.normalize(Context(prec=len(number), Emin=MIN_EMIN, Emax=MAX_EMAX)), "f")
    return "0" if plain == "-0" else plain


# In this order: numbers are read before their separators could count as punctuation or white space.
_IGNORE: Mapping[Difference, Callable[[str], str]] = {
    "unicode form": _plain_unicode,
    "case": str.casefold,
    "number format": _plain_numbers,
    "punctuation": _no_punctuation,
    "white space": _no_white_space,
}


def _brief(text: str) -> str:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    return f"{shown!r}"
