"""Rules about references, which are written for a judge that sees the query, the calls with their arguments and the
answers, and never a tool's result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evals.authoring.lint.rules import Context, Hit
from evals.authoring.text import STOP_WORDS, parts, split_reference, words
from evals.items import Item

_FIELD = "expectedOutput"

_FORM = re.compile(r"\s*PASS only if\b.+?\bFAIL if\b.+", re.DOTALL)

_RESULT = r"(?:result|output|response|reply)"
# The tools' own names are put beside the generic words.
_UNSEEN = (
    rf"\bTOOL(?:'s|’s|s)? {_RESULT}(?:s|ies)?\b"
    rf"|\b{_RESULT}(?:s|ies)? (?:of|from) (?:the |an? )?(?:calls? (?:of|to) )?(?:the )?TOOL(?!\w)"
    r"|(?<!\w)(?:the )?TOOL (?:call )?(?:returns?|returned|responds?|responded|answers?|answered|succeeds?|succeeded|"
    r"(?:is|was|were) successful)\b"
    r"|\b(?:returned|reported|given back) by (?:the )?TOOL(?!\w)"
    r"|\bsuccessful (?:tool )?calls?\b"
    r"|\b(?:is|was|are|were) (?:really |actually )?(?:stored|saved|persisted) (?:on|in) the (?:server|database)\b"
)
_ANY_TOOL = r"(?:tool|call|server|function|api)"
_REASONING = re.compile(r"\breasoning\b|\bthought process\b", re.IGNORECASE)
# What the answer lays open is seen: "explains its reasoning".
_LAID_OPEN = re.compile(
    r"\b(?:explains?|states?|gives?|tells?|describes?|shows?|says?)\s+(?:(?!and\b|but\b)[\w'’]+\s+){0,3}$",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:handles?|handled|handling|deals? with|dealt with|manages?|responds?|behaves?|reacts?|works?)\b"
    r"(?:(?!\bthat\b)[^.;]){0,40}?"
    r"\b(?:well|gracefully|properly|correctly|appropriately|sensibly|nicely|as expected)\b"
    r"|\b(?:good|helpful|reasonable|appropriate|satisfactory|high[- ]quality) "
    r"(?:answer|response|reply|result|summary)\b",
    re.IGNORECASE,
)
_SAYS = (
    r"(?:answers?|responds?|replies|says?|said|tells?|states?|explains?|reports?|mentions?|claims?|informs?|warns?|"
    r"suggests?|pretends?|admits?|notes?)"
)
# … that, with all that follows in its sentence; or a verb of saying right before a clause.
_TELLS_THAT = re.compile(rf"\b{_SAYS}\b(?:\s+(?!and\b|or\b|but\b)[\w'’]+){{0,4}}?\s+that\b", re.IGNORECASE)
_TELLS = re.compile(
    r"\b(?:says?|said|states?|explains?|reports?|mentions?|claims?|(?:tells?|informs?|warns?) (?:the |its )?users?)\s+"
    r"(?:(?!and\b|or\b|but\b)\w+\s+){0,2}$",
    re.IGNORECASE,
)
_IS_NOUN = re.compile(rf"\b{_RESULT}", re.IGNORECASE)
# "answers that it is done, and the tool returned 3": of calls a reference speaks itself, of servers the answer does.
_BEGINS_ANEW = re.compile(r"\b(?:and|but|or)\s+(?:the\s+)?$", re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"(?:the )?(?:server|api|function)\b|\w+(?:s|ed)\b.*\b(?:well|as expected|\w+ly)$", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n\s*\n")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]*'(?!\w)|‘[^’\n]*’")
_CODE = re.compile(r"`[^`\n]*`")

_SAYING = (
    r"(?:mention|say|state|note|explain|report|acknowledge|inform|tell|warn|confirm|announce|ask|clarify|add|point out)"
)
_SAID = (
    r"(?:mentioned|said|stated|noted|explained|reported|acknowledged|told|confirmed|announced|clarified|pointed out)"
)
_NOT = r"(?:(?:does|do|did)(?: not|n't|n’t)|fails? to|forgets? to|neglects? to|never)"
_ANSWER = r"(?:answer|reply|response|summary|explanation|agent|(?<=if )it)"
_SILENCE = re.compile(
    rf"\b{_NOT} {_SAYING}s?\b"
    rf"|\b{_ANSWER} (?:{_NOT} (?:includes?|contains?)|lacks?)\b"
    rf"|\b(?P<passive>(?:is|are|was|were)(?: not|n't|n’t| never) {_SAID}"
    r"|(?:is|are|was|were)(?: not|n't|n’t) (?:included|contained|in) (?:in )?the (?:answer|reply|response)"
    r"|(?:is|are) missing (?:from|in) the (?:answer|reply|response)"
    r"|(?:stays?|remains?|goes|is|left) (?:unmentioned|unsaid|unstated))\b"
    rf"|\bwithout {_SAYING}ing\b|\b(?:no|any|without) mention\b|\bomits?\b|\b(?:is|stays?|remains?|keeps?) silent\b"
    r"|\bleaves? out\b",
    re.IGNORECASE,
)
# What a passing answer says, in each sentence; what the agent merely does need not be told.
_ASKED_TO_SAY = re.compile(
    rf"\b(?:{_SAYS}|names|gives?|shows?|lists|includes?|contains?)\b((?:(?![.!?;]\s).)*)", re.IGNORECASE | re.DOTALL
)
_CLAUSE_END = re.compile(r"[,.;](?=\s|$)|\b(?:or|but)\b", re.IGNORECASE)
_NO_CONTENT = STOP_WORDS | frozenset(
    "answer reply response agent user tool it its if so of about also even one both either them".split()
)

_COURTESY = re.compile(
    r"(?<![\w-])(?:polite(?:ly|ness)?|courteous(?:ly)?|(?:user-)?friendly|kindly|professional(?:ly)? (?:tone|manner)|"
    r"apologi[sz]e[sd]?|apology|thanks? the user|greets?|"
    r"(?:offers?|asks?) (?:any |for |whether |if )?(?:further|more|additional) (?:help|assistance))(?![\w-])",
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
    # quoted text is an answer's; names in code marks are tools'
    text = _QUOTED.sub(_blank, item.expected_output or "")
    hits = [found for pattern in (_unseen(item, context), _VAGUE) for found in pattern.finditer(text)]
    found = next((one for one in hits if not _is_told(text, one)), None)
    if found is None:
        reasoning = _REASONING.finditer(text)
        found = next((one for one in reasoning if not _LAID_OPEN.search(text[: one.start()])), None)
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'"{found.group()}" is nothing the judge can see',
            "name what stands in the calls' arguments or in the answer: a number, a name, a statement",
        )


def punishes_silence(item: Item, context: Context) -> Iterator[Hit]:
    """TW203."""
    reference = split_reference(item.expected_output or "")
    required = _content(" ".join(_ASKED_TO_SAY.findall(reference.passing)))
    # "FAIL if" stands before it, so that "it" can be told from the "it" of other sentences
    failing = f"if {reference.failing}"
    hits = (one for one in _SILENCE.finditer(failing) if not _is_required(failing, one, required))
    found = next(hits, None)
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'fails an answer for what it leaves unsaid ("{found.group()}")',
            "require it in PASS only if, when the user asked for it; else drop it, and fail only false statements",
        )


def demands_courtesy(item: Item, context: Context) -> Iterator[Hit]:
    """TW204."""
    found = _COURTESY.search(_CODE.sub(_blank, _QUOTED.sub(_blank, item.expected_output or "")))
    if found:
        yield Hit(
            item.id,
            _FIELD,
            f'demands a manner ("{found.group()}")',
            "drop it: manners say nothing about the server's tools",
        )


def _unseen(item: Item, context: Context) -> re.Pattern[str]:
    """What speaks of a tool's result, the item's tools and the target's among them by name."""
    names = {item.metadata.category, *(item.metadata.expected_errors or ()), *(item.metadata.fail_tools or ())}
    if context.catalog is not None:
        names.update(tool.name for tool in context.catalog.tools(item))
    # one ordinary word is a tool's name in code marks alone: "the search returned"
    plain = [re.escape(name) for name in sorted(names) if len(parts(name)) > 1]
    marked = [rf"`{re.escape(name)}`" for name in sorted(names)]
    tool = "|".join([_ANY_TOOL, *(rf"(?<!\w)(?:mcp__\w+__)?{name}(?:\(\))?" for name in plain), *marked])
    # no word boundary goes before a code mark
    return re.compile(_UNSEEN.replace(r"\bTOOL", rf"(?<!\w)(?:{tool})").replace("TOOL", f"(?:{tool})"), re.IGNORECASE)


def _is_told(text: str, found: re.Match[str]) -> bool:
    """Whether what stands there is part of what the answer says: "tells that the payment API returned 402"."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, found.start())]
    before = text[ends[-1] if ends else 0 : found.start()]
    if found.re is not _VAGUE and _BEGINS_ANEW.search(before) and not _OF_OTHERS.match(found.group()):
        return False
    # "reports the output of x" is no clause: it asks for the output itself
    return bool(_TELLS_THAT.search(before) or (_TELLS.search(before) and not _IS_NOUN.search(found.group())))


def _is_required(failing: str, found: re.Match[str], required: frozenset[str]) -> bool:
    """Whether PASS asks the answer for the very thing; then FAIL only says it again."""
    if found["passive"]:
        before = failing[: found.start()]
        ends = [match.end() for match in _CLAUSE_END.finditer(before)]
        about = before[ends[-1] if ends else 0 :]
    else:
        end = _CLAUSE_END.search(failing, found.end())
        about = failing[found.end() : end.start() if end else len(failing)]
    # "does not mention it", "does not say so" point back at it
    return bool(required) and bool(words(about)) and _content(about) <= required


def _content(text: str) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words(text) if word not in _NO_CONTENT)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())
