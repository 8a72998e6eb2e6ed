"""Rules about references, which are written for a judge that sees the query, the calls with their arguments and the
answers, and never a tool's result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evals.authoring.lint.rules import Context, Hit
from evals.items import Item

_FIELD = "expectedOutput"

_FORM = re.compile(r"\s*PASS only if\b.+?\bFAIL if\b.+", re.DOTALL)
_FAIL_CLAUSE = re.compile(r"\bFAIL if\b(.*)", re.DOTALL)

_UNSEEN = re.compile(
    r"\b(?:tool|call|server|function|api)(?:'s|’s|s)? (?:result|output|response|reply)s?\b"
    r"|\b(?:result|output|response|reply) of the (?:tool|call|server|function|api)\b"
    r"|\b(?:the )?(?:tool|call|server|api) (?:returns?|returned|responds?|responded|answers?|answered|"
    r"succeeds?|succeeded)\b"
    r"|\b(?:is|was|are|were) (?:really |actually )?(?:stored|saved|persisted) (?:on|in) the (?:server|database)\b"
    r"|\breasoning\b|\bthought process\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:handles?|handled|handling|deals? with|dealt with|manages?|responds?|behaves?|reacts?|works?)\b[^.;]{0,40}?"
    r"\b(?:well|gracefully|properly|correctly|appropriately|sensibly|nicely|as expected)\b"
    r"|\b(?:good|helpful|reasonable|appropriate|satisfactory|high[- ]quality) "
    r"(?:answer|response|reply|result|summary)\b",
    re.IGNORECASE,
)
_SAYING = (
    r"(?:mention|say|state|note|explain|report|acknowledge|inform|tell|warn|confirm|announce|ask|clarify|add|point out)"
)
_SILENCE = re.compile(
    rf"\b(?:(?:does|do|did)(?: not|n't|n’t)|fails? to|forgets? to|neglects? to|never) {_SAYING}s?\b"
    rf"|\bwithout {_SAYING}ing\b|\bomits?\b|\bis silent\b|\bleaves? out\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(?:polite(?:ly|ness)?|courteous(?:ly)?|friendly|kindly|professional(?:ly)? (?:tone|manner)|"
    r"apologi[sz]e[sd]?|apology|thanks? the user|greets?|"
    r"(?:offers?|asks?) (?:any |for |whether |if )?(?:further|more|additional) (?:help|assistance))\b",
    re.IGNORECASE,
)


def form(item: Item, context: Context) -> Iterator[Hit]:
    """TW201."""
    if item.expected_output is not None and not _FORM.match(item.expected_output):
        yield Hit(
            item.id,
            _FIELD,
            'is not of the form "PASS only if … FAIL if …"',
            "write first all that a passing answer must have, then what alone makes it fail",
        )


def unseen(item: Item, context: Context) -> Iterator[Hit]:
    """TW202."""
    text = item.expected_output or ""
    found = _UNSEEN.search(text) or _VAGUE.search(text)
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'"{found.group()}" is nothing the judge can see',
            "name what stands in the calls' arguments or in the answer: a number, a name, a statement",
        )


def punishes_silence(item: Item, context: Context) -> Iterator[Hit]:
    """TW203."""
    clause = _FAIL_CLAUSE.search(item.expected_output or "")
    found = _SILENCE.search(clause.group(1)) if clause else None
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'fails an answer for what it leaves unsaid ("{found.group()}")',
            "require it in PASS only if, when the user asked for it; else drop it, and fail only false statements",
        )


def demands_courtesy(item: Item, context: Context) -> Iterator[Hit]:
    """TW204."""
    found = _COURTESY.search(item.expected_output or "")
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'demands a manner ("{found.group()}")',
            "drop it: manners say nothing about the server's tools",
        )
