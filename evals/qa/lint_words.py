"""The words and forms that the lint rules look for in English questions and answers."""

from __future__ import annotations

import json
import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


QUOTED = re.compile(r"“[^”\n]+”|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|‘[^’\n]+’")
_CODE = re.compile(r"`[^`\n]+`")

_SPAN = r"(?:minute|hour|day|week|month|quarter|year)"
_FEW = r"(?:\d+|few|two|three|several)"
CHANGING = _any(
    r"\b(?:currently|right now|as of now|at the moment|at present|these days|nowadays)\b",
    r"\b(?:today|tonight|yesterday|tomorrow)\b",
    rf"\b(?:this|last|past|previous|next|coming) (?:{_SPAN}|night)\b",
    rf"\b(?:last|past|next|coming) {_FEW} {_SPAN}s\b",
    rf"\b(?:an?|{_FEW}) {_SPAN}s? ago\b",
    r"\bcurrent (?:state|status|number|count|version|price|value|balance|owner|assignee|rate|amount|total)\b",
    r"(?<!up )\bto date\b|\bso far\b",
    r"(?:^|[,;]\s*|\b(?:is|are|it|there|until|till|as of|by) )now\b(?! that)(?=[\s,.?!]|$)|\bnow\s*[?.!]",
)
"""Words that make an answer change with time, whatever else the question says."""
LATEST = _any(r"\b(?:latest|newest|most recent(?:ly)?|recent(?:ly)?|lately)\b")
"""Words that do so unless the question names a fixed time."""
FIXED_TIME = _any(
    r"\b(?:19|20)\d{2}\b",
    r"\b(?:as of|before|until|up to|by the end of) (?:v?\d|\w+ \d)",
    r"\bversion \d|\bv\d+(?:\.\d+)+",
)

# At the start of a sentence, or after "please" and the like: an order. Elsewhere the same words describe.
_ORDER = (
    r"(?:(?:^|[.!?;:]\s+|\n\s*)(?:(?:please|first|then|next|now|finally|after that),?\s+)*"
    r"|\b(?:please|and then|then|can you|could you|would you)\s+)"
)
_WHICH = r"(?:an?|the|this|that|these|those|all|every|each|it|them|my|our|new|another|one|two|three|\d+)\b"
_THING = (
    r"(?:[\w-]+\s+){0,3}?(?:account|board|branch|channel|comment|customer|document|draft|email|entry|event|file|folder|"
    r"group|invoice|issue|item|job|label|list|mail|member|message|note|order|page|payment|project|pull request|record|"
    r"reply|repository|row|rule|run|schedule|script|server|subscription|tag|task|ticket|user|webhook|workflow)s?\b"
)
CHANGES = _any(
    rf"{_ORDER}(?:create|delete|rename|publish|unpublish|cancel|reopen|archive|upload|deploy|restart|enable|disable|"
    rf"approve|reject|edit|modify|update|invite|purge)\s+{_WHICH}",
    # These verbs also tell how to write the answer ("remove the prefix"), so there must be a thing to change.
    rf"{_ORDER}(?:add|assign|change|clear|close|drop|insert|mark|merge|move|pause|post|remove|replace|reset|resume|run|"
    rf"save|schedule|send|start|stop|submit|trigger|execute|write)\s+{_WHICH}\s+{_THING}",
    rf"{_ORDER}set\s+the\s+[\w-]+\s+(?:of\s+[^.?!]{{1,60}}\s)?to\b",
)

ASKS_FOR_LIST = _any(
    r"(?:^|[.!?;:,]\s+|\n\s*|\b(?:and|please)\s+)(?:list|enumerate)\s+(?:all|every|each|the|them|their|any)\b",
    r"\b(?:comma|semicolon|space|tab|newline|line)[- ]?(?:separated|delimited)\b",
    r"\bseparated by (?:an? )?(?:comma|semicolon|space|line|new)",
    r"\bname (?:all|both|two|three|four|five|every)\b",
    r"\b(?:what|which) are (?:all )?the (?:names|titles|ids|values)\b",
    r"\bwhich (?:two|three|four|five) \w+",
)
SEVERAL = re.compile(r"\S\s*[,;/&\n]\s*\S|\sand\s")
ASKS_VERBATIM = _any(
    r"\b(?:verbatim|exact|exactly|title|word for word)\b",
    r"\bas (?:it is |they are )?(?:written|shown|printed|given|stored|returned)\b",
    r"\bas it (?:stands|appears)\b",
    r"\b(?:full (?:name|text|sentence)|whole (?:line|sentence))\b",
)
VAGUE = _any(
    r"^(?:about|around|approximately|approx\.?|roughly|circa|ca\.|nearly|almost)\s+\S",
    r"^(?:more than|less than|over|under|at least|at most|up to|several|many|few|some|various|probably|maybe)\s+\S",
    r"^[~≈<>≤≥]\s*\d",
    r"^(?:it )?(?:depends|varies)\b",
)
FORM_BEFORE = re.compile(
    r"\b(?:format|form|as|like|such as|e\.g\.|for example|answer|answer with|write|reply|respond|or)\W{0,4}$",
    re.IGNORECASE,
)
"""Words before a quotation that make it a form for the answer, not a title to look for."""

_BRACKETED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|\"[^\"]*\"|'[^']*'|`[^`]*`")
_TAGGED = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]*)?>.*</\1>", re.DOTALL)
_GROUPED_NUMBER = re.compile(r"[-+]?[$€£]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*\S{0,12}")
_DATE_COMMA = re.compile(r"[A-Z][a-z]+\.?\s+\d{1,2},\s+\d{4}")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+\S")


def without_quotes(text: str) -> str:
    """A text without what stands in quotes or code: words there are names, not the question's own."""
    return QUOTED.sub(" … ", _CODE.sub(" … ", text))


def items_of(answer: str) -> int:
    """How many things an answer lists; 1 when it is one thing as far as can be told."""
    text = answer.strip()
    bullets = sum(_BULLET.match(line) is not None for line in text.splitlines())
    if bullets >= 2:
        return bullets
    if _GROUPED_NUMBER.fullmatch(text) or _DATE_COMMA.fullmatch(text) or is_structured(text):
        return 1
    bare = _BRACKETED.sub("x", text)
    for parts, least in _splits(bare):
        trimmed = [part.strip() for part in parts]
        if len(trimmed) >= least and all(0 < len(part.split()) <= 5 for part in trimmed):
            return len(trimmed)
    return 1


def _splits(text: str) -> list[tuple[list[str], int]]:
    """The ways to take a text apart that make a list of it, each with the fewest parts that do."""
    ways = [(text.split(";"), 2), (text.split("\n"), 2)]
    if " | " in text:
        ways.append((text.split("|"), 2))
    # Commas without spaces belong to one notation as readily (a cron field, coordinates) as to a list of words.
    if ", " in text or all(part[:1].isalpha() for part in text.split(",")):
        ways.append((re.split(r",|\sand\s" if "," in text else ",", text), 3))
    alternatives = re.split(r"\s(?:or|/)\s", text, flags=re.IGNORECASE)
    if all(len(part.split()) <= 3 for part in alternatives):
        ways.append((alternatives, 2))
    return ways


def is_structured(answer: str) -> bool:
    """Whether an answer is JSON with something in it, an XML element, or a table."""
    text = answer.strip()
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict | list) and value:
            return True
    rows = sum(line.count("|") >= 2 for line in text.splitlines())
    fields = sum(re.match(r"\s*[\w-]+\s*:\s+\S", line) is not None for line in text.splitlines())
    return _TAGGED.fullmatch(text) is not None or rows >= 2 or fields >= 2


def is_a_choice(question: str, start: int, end: int) -> bool:
    """Whether the words at these places are one of several that the question offers to choose from."""
    before, after = question[max(0, start - 40) : start], question[end : end + 40]
    if re.search(r"\b(?:or|either)\s+(?:(?:the|an?)\s+)?[\"'`“‘]?$|/\s*$", before, re.IGNORECASE):
        return True
    if re.match(r"[\"'`”’]?,?\s*(?:or\b|/)", after, re.IGNORECASE):
        return True
    listed = re.match(r"[\"'`”’]?,\s", after) and re.search(r"(?:,|\(|:|\bof|\bis|\bit)\s+[\"'`“‘]?$", before)
    return bool(listed) and re.search(r"\bor\b", question[end:]) is not None
