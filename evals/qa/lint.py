"""The rules of good question sets. They read English; each finding has a code, the pair's number, why, and a remedy.

A rule that cannot be sure stays silent: a warning that is often wrong is soon read by nobody. docs/qa-authoring.md
explains every code.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.qa import lint_words as words
from evals.qa.file import QaFile, QaPair
from evals.qa.kinds import answer_kind, needs_form, states_form

MIN_PAIRS = 10
_ALIKE_FROM = 5  # pairs from which their diversity is looked at
_ALIKE_SHARE = 0.7
_GUESSABLE_SHARE = 0.3
_PROSE_WORDS = 9
_TITLE_WORDS = 3
_SIMILAR = 0.92

Severity = Literal["error", "warning"]
Found = tuple[str, str]
"""Why, and how to mend it."""


class Finding(BaseModel):
    """One thing to mend. `pair` is None for one of the whole file."""

    model_config = ConfigDict(frozen=True)

    code: str
    severity: Severity
    pair: int | None
    line: int | None
    why: str
    fix: str

    def __str__(self) -> str:
        where = f"pair {self.pair} (line {self.line})" if self.pair is not None else "the file"
        return f"{where}: {self.severity} [{self.code}]: {self.why}; {self.fix}"


def lint_file(file: QaFile) -> list[Finding]:
    """Every finding: those of the whole file first, then pair by pair."""
    found = [
        Finding(code=code, severity=_severity(code), pair=None, line=None, why=why, fix=fix)
        for code, rule in _FILE_RULES.items()
        for why, fix in rule(file.pairs)
    ]
    repeated = _repeated(file.pairs)
    for pair in file.pairs:
        for code, check in _PAIR_RULES.items():
            finding = check(pair)
            if finding is not None:
                found.append(_of_pair(code, pair, finding))
        if pair.number in repeated:
            found.append(_of_pair("duplicate-question", pair, repeated[pair.number]))
    return found


def findings_json(file: QaFile, findings: Sequence[Finding]) -> str:
    """The findings as JSON, with the notes of what was kept out."""
    document = {
        "version": 1,
        "file": str(file.path),
        "pairs": len(file.pairs),
        "errors": sum(one.severity == "error" for one in findings),
        "warnings": sum(one.severity == "warning" for one in findings),
        "findings": [one.model_dump() for one in findings],
        "notes": list(file.notes),
    }
    return json.dumps(document, ensure_ascii=False, indent=2)


def _of_pair(code: str, pair: QaPair, found: Found) -> Finding:
    return Finding(code=code, severity=_severity(code), pair=pair.number, line=pair.line, why=found[0], fix=found[1])


# --- the whole file ---------------------------------------------------------------------------------------------


def _few_questions(pairs: Sequence[QaPair]) -> Iterable[Found]:
    if len(pairs) < MIN_PAIRS:
        yield (
            f"has {len(pairs)} pairs; below {MIN_PAIRS} one lucky or unlucky answer moves the accuracy too much",
            f"write {MIN_PAIRS - len(pairs)} more",
        )


def _answers_alike(pairs: Sequence[QaPair]) -> Iterable[Found]:
    kinds = Counter(answer_kind(pair.answer) for pair in pairs)
    kind, count = kinds.most_common(1)[0]
    if len(pairs) >= _ALIKE_FROM and count / len(pairs) > _ALIKE_SHARE and kind != "text":
        yield (
            f"{count} of {len(pairs)} answers are of one kind ({kind}), so one skill is tested again and again",
            "ask for other kinds too: names, numbers, dates, identifiers, places",
        )


def _guessable(pairs: Sequence[QaPair]) -> Iterable[Found]:
    count = sum(answer_kind(pair.answer) == "yes-no" for pair in pairs)
    if len(pairs) >= _ALIKE_FROM and count / len(pairs) > _GUESSABLE_SHARE:
        yield (
            f"{count} of {len(pairs)} answers are yes or no, and half of those a model gets by guessing",
            "ask for the fact behind the yes or no instead",
        )


def _same_answer(pairs: Sequence[QaPair]) -> Iterable[Found]:
    numbers: dict[str, list[int]] = {}
    for pair in pairs:
        if answer_kind(pair.answer) != "yes-no":
            numbers.setdefault(pair.answer.casefold(), []).append(pair.number)
    for those in numbers.values():
        if len(those) >= 3:
            yield (
                f"pairs {', '.join(map(str, those))} have the same answer: a model that always gives it is often right",
                "ask some of them for something else",
            )


def _repeated(pairs: Sequence[QaPair]) -> dict[int, Found]:
    """Pairs whose question an earlier pair asks already, in the same or nearly the same words."""
    found: dict[int, Found] = {}
    plain = [" ".join(re.findall(r"\w+", pair.question.casefold())) for pair in pairs]
    for index, pair in enumerate(pairs):
        for before, earlier in zip(plain[:index], pairs[:index], strict=True):
            same = before == plain[index]
            if not same and earlier.answer.casefold() == pair.answer.casefold():
                matcher = SequenceMatcher(None, before, plain[index], autojunk=False)
                same = matcher.quick_ratio() > _SIMILAR and matcher.ratio() > _SIMILAR
            if same:
                found[pair.number] = (
                    f"asks what pair {earlier.number} asks",
                    "ask for something else, or leave it out",
                )
                break
    return found


# --- one pair ---------------------------------------------------------------------------------------------------


def _answer_list(pair: QaPair) -> Found | None:
    asked = words.ASKS_FOR_LIST.search(pair.question) is not None and words.SEVERAL.search(pair.answer) is not None
    text = words.without_quotes(pair.question)
    plural = words.ASKS_PLURAL.search(text) is not None
    one = not plural and words.ASKS_SINGULAR.search(text) is not None
    if asked or (plural and words.is_pair(pair.answer)) or words.items_of(pair.answer, one=one) >= 2:
        return (
            "asks for or answers with several things; their order and separators can be written in many ways",
            "ask for one of them, for their number, or for the first by an order you name",
        )
    return None


def _answer_structured(pair: QaPair) -> Found | None:
    if words.is_structured(pair.answer):
        return (
            "the answer is structured text (JSON, XML, a table), which has many spellings of the same content",
            "ask for one value of it",
        )
    return None


def _answer_prose(pair: QaPair) -> Found | None:
    count = len(pair.answer.split())
    lines = len(pair.answer.splitlines())
    sentences = len(re.findall(r"[.!?](?=\s+[A-Z]|\s*$)", pair.answer))
    too_long = count > 25 or lines > 1
    prose = count >= _PROSE_WORDS or (sentences >= 2 and count >= 4)
    if too_long or (prose and words.ASKS_VERBATIM.search(pair.question) is None):
        return (
            f"the answer is prose ({count} words); nobody writes the same sentence twice",
            "ask for a name, a number or another short value, or for a text exactly as it is written",
        )
    return None


def _answer_vague(pair: QaPair) -> Found | None:
    if words.VAGUE.search(pair.answer):
        return (
            f"the answer {pair.answer!r} is not one value, so it cannot be verified",
            "ask for something that has one exact answer",
        )
    return None


def _format_unstated(pair: QaPair) -> Found | None:
    why = needs_form(pair.answer)
    if why is None or states_form(pair.question, pair.answer):
        return None
    reason, _, fix = why.partition("; ")
    return f"the question does not say how {pair.answer!r} is to be written: {reason}", fix


def _relative_time(pair: QaPair) -> Found | None:
    text = words.without_quotes(pair.question)
    found = words.CHANGING.search(text)
    if found is None:
        relative = words.LATEST.search(text)
        found = relative if relative is not None and words.FIXED_TIME.search(text) is None else None
    if found is None:
        return None
    return (
        f"{found[0]!r} makes the answer change with time",
        "name a date, a version or another fixed point instead",
    )


def _not_read_only(pair: QaPair) -> Found | None:
    found = words.CHANGES.search(words.without_quotes(pair.question))
    if found is None:
        return None
    asked = " ".join(found[0].split()).strip(" .,;:")
    return (
        f"{asked!r} asks for a change; then the second trial meets another state than the first",
        "ask only for what can be found by reading",
    )


def _answer_in_question(pair: QaPair) -> Found | None:
    answer = pair.answer.strip()
    if len(answer) < 3 or answer_kind(answer) == "yes-no":
        return None
    found = re.finditer(rf"(?<![\w-]){re.escape(answer)}(?![\w-])", pair.question, re.IGNORECASE)
    if all(words.is_a_choice(pair.question, one.start(), one.end()) for one in found):
        return None
    return f"the question contains its answer {answer!r}", "describe it in other words, or ask for something else"


def _title_quoted(pair: QaPair) -> Found | None:
    for found in words.QUOTED.finditer(pair.question):
        text = found[0][1:-1]
        if len(text.split()) < _TITLE_WORDS or words.FORM_BEFORE.search(pair.question[: found.start()]):
            continue
        return (
            f"quotes {text!r}, which one search for the very words finds",
            "describe what it is about, so that the model has to look for it",
        )
    return None


_FILE_RULES: Mapping[str, Callable[[Sequence[QaPair]], Iterable[Found]]] = {
    "few-questions": _few_questions,
    "answers-alike": _answers_alike,
    "guessable": _guessable,
    "same-answer": _same_answer,
}
_PAIR_RULES: Mapping[str, Callable[[QaPair], Found | None]] = {
    "answer-list": _answer_list,
    "answer-structured": _answer_structured,
    "answer-prose": _answer_prose,
    "answer-vague": _answer_vague,
    "format-unstated": _format_unstated,
    "relative-time": _relative_time,
    "not-read-only": _not_read_only,
    "answer-in-question": _answer_in_question,
    "title-quoted": _title_quoted,
}
_WARNINGS = frozenset({"answers-alike", "guessable", "same-answer"})
CODES: tuple[str, ...] = (*_FILE_RULES, *_PAIR_RULES, "duplicate-question")


def _severity(code: str) -> Severity:
    return "warning" if code in _WARNINGS else "error"
