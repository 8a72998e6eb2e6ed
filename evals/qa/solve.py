"""Proposals for a question file: what several solvers of each question make of the written answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from evals.conversation import Conversation
from evals.errors import TwogateError
from evals.qa.file import QaFile, QaPair, is_placeholder, parse_qa
from evals.qa.measure import item_id
from evals.qa.prompt import NOT_FOUND, read_reply
from evals.qa.run import QaOutcome
from evals.redact import MASK
from evals.runs.trial import TrialResult
from evals.scoring.exact import differences
from evals.tool_listing import Tool

Advice = Literal["confirmed", "proposed", "spelling", "declined", "disagreement", "not solved"]

# What no XML 1.0 text can hold, written as a reference or not (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class SolvedPair:
    """What the solvers made of one pair."""

    pair: QaPair
    advice: Advice
    answers: tuple[str, ...]
    """Every solver's answer, in the order they finished; fewer than solvers when some had none."""
    solvers: int
    changing_tools: tuple[str, ...]
    """Tools that are not marked read-only and were called."""
    errors: tuple[str, ...] = ()
    """Why trials could not be measured, one for each of them."""

    @property
    def all_errors(self) -> bool:
        """No trial was measured, so nothing can be said of the pair."""
        return len(self.errors) >= self.solvers

    @property
    def proposal(self) -> str | None:
        """The answer all solvers agree on in place of the written one."""
        return self.answers[0] if self.advice in ("proposed", "spelling") else None

    def line(self) -> str:
        """What to say of the pair, in one line."""
        text = f"pair {self.pair.number} (line {self.pair.line}): {self._advice()}"
        if self.changing_tools:
            text += f"; solving it called {', '.join(self.changing_tools)}, not marked read-only"
        return text

    def _advice(self) -> str:
        given = ", ".join(f"{answer!r} × {count}" for answer, count in Counter(self.answers).most_common())
        match self.advice:
            case "confirmed":
                return f"confirmed, {self.solvers} of {self.solvers} solvers answer {self.pair.answer!r}"
            case "proposed":
                return (
                    f"{self.pair.answer!r} is likely wrong: {self.solvers} of {self.solvers} solvers answer "
                    f"{self.answers[0]!r}"
                )
            case "spelling":
                kinds = " and ".join(differences(self.pair.answer, self.answers[0]))
                return (
                    f"{self.pair.answer!r} and the {self.solvers} solvers' {self.answers[0]!r} differ in {kinds} "
                    "alone: fix the format in the question"
                )
            case "declined":
                return (
                    f"{self.pair.answer!r} is likely wrong, but what {self.solvers} of {self.solvers} solvers answer "
                    f"is no answer for a file: {self.answers[0]!r} {_unfit(self.answers[0])}"
                )
            case "disagreement":
                return f"the solvers disagree, so nothing is proposed: {given}; the question may be ambiguous"
        answered = f"{len(self.answers)} of {self.solvers} solvers had an answer"
        text = f"{answered}, so nothing is proposed{f': {given}' if given else ''}"
        if self.errors:
            causes = "; ".join(f"{cause} (× {count})" for cause, count in Counter(self.errors).most_common())
            text += f"; {len(self.errors)} ended in an error: {causes}"
        return text


@dataclass(frozen=True)
class Solved:
    """The pairs that were solved, and the new file's bytes."""

    pairs: tuple[SolvedPair, ...]
    source: bytes

    @property
    def problems(self) -> list[str]:
        """Why solving failed, one line each: pairs of which no trial was measured."""
        unmeasured = [pair.pair.number for pair in self.pairs if pair.all_errors]
        if not unmeasured:
            return []
        if len(unmeasured) == len(self.pairs):
            return ["every trial ended in an error, so nothing is solved; see the pairs' lines"]
        numbers = ", ".join(map(str, unmeasured))
        return [f"every trial of pair {numbers} ended in an error; solve them again by --id"]

    def mistakes(self, path: Path) -> list[str]:
        """Why the new file could not be read by a run, one line each; none, unless what is declined is too little."""
        try:
            parse_qa(self.source, path)
        except TwogateError as error:
            return error.lines
        return []

    def lines(self) -> Iterable[str]:
        """One line a pair, and what it comes to."""
        yield from (pair.line() for pair in self.pairs)
        counts = Counter(pair.advice for pair in self.pairs)
        flagged = sum(bool(pair.changing_tools) for pair in self.pairs)
        yield (
            f"{len(self.pairs)} pairs: {counts['confirmed']} confirmed, {counts['proposed'] + counts['spelling']} with "
            f"another answer proposed, "
            f"{counts['disagreement'] + counts['not solved'] + counts['declined']} undecided, "
            f"{flagged} that called a tool not marked read-only"
        )


def solve_outcome(outcome: QaOutcome) -> Solved:
    """Make proposals of a run that put every question several times."""
    file = outcome.file
    by_item: dict[str, list[TrialResult]] = {}
    for result in outcome.results:
        by_item.setdefault(result.item, []).append(result)
    iterations = max((task.iteration for task in outcome.report.tasks), default=1)
    pairs = tuple(
        solve_pair(pair, by_item.get(item, []), iterations, outcome.tools, outcome.redactor.text)
        for pair in file.pairs
        if (item := item_id(file.path, pair.number, len(file.pairs))) in {task.item for task in outcome.report.tasks}
    )
    return Solved(pairs=pairs, source=rewrite(file, pairs))


def solve_pair(
    pair: QaPair,
    results: Sequence[TrialResult],
    solvers: int,
    tools: Sequence[Tool],
    redact: Callable[[str], str] = str,
) -> SolvedPair:
    """What the solvers' trials say of a pair. Only answers on which all of them agree make a proposal.

    redact: what was done to the trials' texts when they were written down.
    """
    conversations = [result.conversation for result in results if result.conversation is not None]
    judged = [result.conversation for result in results if result.outcome in ("passed", "failed")]
    responses = [read_reply(one).response for one in judged if one is not None]
    answers = tuple(one for one in responses if one and one != NOT_FOUND)
    written = redact(pair.answer)
    errors = tuple(result.reason for result in results if result.outcome == "error")
    advice: Advice
    if len(answers) < solvers:
        advice = "not solved"
    elif len(set(answers)) > 1:
        advice = "disagreement"
    elif answers[0] == written:
        advice = "confirmed"
    elif _unfit(answers[0]) is not None:
        advice = "declined"
    else:
        advice = "spelling" if differences(written, answers[0]) else "proposed"
    return SolvedPair(pair, advice, answers, solvers, _changing_tools(conversations, tools), errors)


def _unfit(answer: str) -> str | None:
    """Why an answer cannot stand in a question file; None when it can."""
    if _NOT_XML.search(answer):
        return "has characters that no XML file can hold"
    if is_placeholder(answer):
        return "is a placeholder"
    if MASK in answer:
        return f"has a secret of the server's settings in it, in whose place {MASK} stands"
    return None


def _changing_tools(conversations: Iterable[Conversation], tools: Sequence[Tool]) -> tuple[str, ...]:
    safe = {(tool.server, tool.name) for tool in tools if tool.read_only}
    called = [call for one in conversations for call in one.calls if call.server is not None]
    return tuple(dict.fromkeys(call.tool for call in called if (call.server, call.tool) not in safe))


def rewrite(file: QaFile, pairs: Sequence[SolvedPair]) -> bytes:
    """The file with proposed answers in place of the written ones and a comment after each answer of note.

    All else, comments and layout too, stays as it is; the encoding becomes UTF-8.
    """
    source = file.source
    for solved in sorted(pairs, key=lambda one: one.pair.answer_span, reverse=True):
        start, end = solved.pair.answer_span
        content = source[start:end]
        if solved.proposal is not None:
            # A parser reads a carriage return that is written as it is as a line end.
            content = escape(solved.proposal, {"\r": "&#13;"}).encode()
        rest = source[end:]
        if solved.advice != "confirmed" or solved.changing_tools:
            closing = rest.index(b">") + 1
            rest = rest[:closing] + _comment(solved.line()) + rest[closing:]
        source = source[:start] + content + rest
    return re.sub(rb"""\A(\s*<\?xml\s[^>]*?\bencoding\s*=\s*)(?:"[^"]*"|'[^']*')""", rb'\1"UTF-8"', source, count=1)


def _comment(text: str) -> bytes:
    """An XML comment; two dashes in a row cannot stand in one, nor what no XML text can hold."""
    text = re.sub(r"-(?=-)", "- ", _NOT_XML.sub("\ufffd", text))
    return f" <!-- solve: {text} -->".encode()
