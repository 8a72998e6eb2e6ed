"""What kind of thing an answer is, by its form alone, and whether a question says how it is to be written."""

from __future__ import annotations

import re
from typing import Literal

AnswerKind = Literal["yes-no", "date", "time", "measure", "decimal", "number", "identifier", "name", "text"]

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\.?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_DATE = _any(
    r"\d{4}-\d{1,2}(?:-\d{1,2})?",
    r"\d{1,2}[./]\d{1,2}[./]\d{2,4}",
    r"\d{4}/\d{1,2}/\d{1,2}",
    rf"{_MONTH}\s+{_DAY},?(?:\s+\d{{4}})?",
    rf"{_DAY}\s+{_MONTH}(?:\s+\d{{4}})?",
    rf"{_MONTH}\s+\d{{4}}",
    rf"\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?",
)
_TIME = _any(rf"{_CLOCK}(?:\s*[ap]\.?m\.?)?(?:\s+[A-Z]{{3,4}})?", r"\d{1,2}\s*[ap]\.?m\.?")
_NUMBER = re.compile(r"[-+]?\d+")
_DECIMAL = re.compile(r"[-+]?\d+[.,]\d+|[-+]?\d{1,3}(?:[, ]\d{3})+(?:[.,]\d+)?")
_UNIT = (
    r"(?:%|percent|[$€£¥]|[A-Z]{3}\b|°\s*[CF]?|(?:[kKMGT]i?)?[bB](?:/s)?|bytes?|ms|µs|ns|s|sec(?:ond)?s?|m|min(?:ute)?s?|"
    r"h|hours?|days?|weeks?|months?|years?|km|cm|mm|kg|g|mg|l|ml|W|kW|V|A|Hz|[kMG]Hz|px)"
)
_MEASURE = _any(r"[-+]?[$€£¥]\s*\d[\d,. ]*", rf"[-+]?\d[\d,.]*\s*{_UNIT}")
_IDENTIFIER = re.compile(r"(?=.*[\d_./:#@-])[^\s]+|[A-Z0-9_]{2,}|[a-z]+[A-Z]\w*")
_YES_NO = frozenset({"yes", "no", "true", "false"})


def answer_kind(answer: str) -> AnswerKind:
    """The kind of an answer."""
    text = answer.strip()
    if text.casefold() in _YES_NO:
        return "yes-no"
    for kind, pattern in _FORMS:
        if pattern.fullmatch(text):
            return kind
    if len(text.split()) <= 4 and text[:1].isupper():
        return "name"
    return "text"


_FORMS: tuple[tuple[AnswerKind, re.Pattern[str]], ...] = (
    ("date", _DATE),
    ("time", _TIME),
    ("number", _NUMBER),
    ("decimal", _DECIMAL),
    ("measure", _MEASURE),
    ("identifier", _IDENTIFIER),
)

# Words that fix a form whatever the kind: a named format, an example, or that the answer is to be taken as it stands.
_ANY_FORM = _any(
    r"\b(?:format|formatted|verbatim|exact|exactly|literal|literally|such as|for example|like this|in the form)\b",
    r"\blike [\"'`]?\S*\d|\be\.?g\.|\bcharacter by character\b|\bas it (?:appears|stands|is)\b",
    r"\bas (?:it is |they are )?(?:written|shown|stored|printed|returned|given|displayed|declared|listed|recorded)\b",
    r"\b(?:write|written|answer|answered|give|given|express|expressed|reply|respond|state|stated|report|reported) "
    r"(?:\w+ ){0,4}?(?:as|in|with|without)\b",
)
_FORM_OF: dict[AnswerKind, re.Pattern[str]] = {
    "date": _any(r"\bISO(?:[ -]?8601)?\b", r"Y{2,4}|D{2}[-./ ]M{2}|M{2}[-./ ]D{2}", r"\bday of the week\b"),
    "time": _any(r"\bISO(?:[ -]?8601)?\b", r"HH|\b(?:24|12)[- ]hour\b|\bUTC\b"),
    "decimal": _any(r"\b(?:decimals?|round|rounded|digits?|places|separators?|commas?|whole|version)\b"),
    "measure": _any(
        r"\b(?:units?|symbol|sign|currency)\b",
        r"\bin (?:milli|micro|nano)?(?:seconds|minutes|hours|days|weeks|months|years)\b",
        r"\bin (?:bytes|metres|meters|grams|percent|euros?|dollars?)\b",
    ),
    "yes-no": _any(r"\byes\b\W+(?:or\W+)?no\b", r"\bno\b\W+or\W+yes\b", r"\btrue\b\W+(?:or\W+)?false\b"),
}


def needs_form(answer: str) -> str | None:
    """Why an answer of this form has several spellings; None when it has one."""
    return _SPELLINGS.get(answer_kind(answer))


def states_form(question: str, answer: str) -> bool:
    """Whether the question says which of an answer's spellings it wants."""
    kind = answer_kind(answer)
    if kind == "yes-no":
        return _FORM_OF["yes-no"].search(question) is not None
    own = _FORM_OF.get(kind)
    return _ANY_FORM.search(question) is not None or (own is not None and own.search(question) is not None)


_SPELLINGS: dict[AnswerKind, str] = {
    "date": "a date is written in many ways; say which, such as YYYY-MM-DD",
    "time": "a time is written in many ways; say which, such as HH:MM in UTC",
    "decimal": "a number with a fraction or separators is written in many ways; say how many decimals",
    "measure": "a quantity is written with its unit or without, and in many ways; say which",
    "yes-no": "a yes-or-no answer is written in many ways; say 'Answer yes or no'",
}
