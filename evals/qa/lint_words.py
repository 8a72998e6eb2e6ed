"""The words and forms that the lint rules look for in English questions and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


QUOTED = re.compile(r"“[^”\n]+”|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|‘[^’\n]+’")
_CODE = re.compile(r"`[^`\n]+`")

_SPAN = r"(?:minute|hour|day|week|month|quarter|year)"
_FEW = r"(?:\d+|few|two|three|several)"
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend)"
# "this may", "this fall" and "this march" are more often something else.
_SEASON = r"(?:january|february|april|june|july|august|september|october|november|december|spring|summer|autumn|winter)"
# "the current user" of a function, "the net present value"
_OTHERWISE = (
    r"(?:value|directory|folder|working|user|thread|process|session|page|line|row|request|context|node|element)"
)
CHANGING = _any(
    r"\b(?:currently|presently|right now|as of now|at the moment|at present|these days|nowadays|to this day)\b",
    r"\bat (?:this|the present) (?:time|moment|point)\b(?! (?:step|slot|stamp|of|in)\b)",
    r"\b(?:today|tonight|yesterday|tomorrow)\b",
    # "the last week of 2023" is a fixed one
    rf"\b(?:(?<!the )|(?!\w+ \w+ (?:of|in|before|after)\b))(?:this|last|past|previous|next|coming) "
    rf"(?:{_SPAN}|night|{_DAY}|{_SEASON})\b",
    rf"\b(?:last|past|next|coming) {_FEW} {_SPAN}s\b",
    rf"\b(?:an?|{_FEW}) {_SPAN}s? ago\b",
    r"\bcurrent (?:state|status|number|count|version|price|value|balance|owner|assignee|rate|amount|total)\b",
    r"\b(?:current|present|incumbent) (?:maintainer|ceo|cto|cfo|president|chair\w*|director|head|lead|leader|manager|"
    r"minister|mayor|holder|member|employee|team|champion|tenant|customer|administrator|admin|author|editor)s?\b",
    r"\b(?:who|what|which)(?:[’']s| is| are) (?:the|its|their|our|your|[\w-]+[’']s) (?:[\w’'-]+ ){0,2}?"
    rf"(?:current|present) (?!{_OTHERWISE}\b)[a-z]",
    r"(?<!up )\bto date\b|\bso far\b",
    r"(?:^|[,;]\s*|\b(?:is|are|it|there|until|till|as of|by|up to) )now\b(?! that)(?=[\s,.?!]|$)|\bnow\s*[?.!]",
)
"""Words that make an answer change with time, whatever else the question says."""
LATEST = _any(r"\b(?:latest|newest|upcoming|most recent(?:ly)?|recent(?:ly)?|lately)\b", r"\b(?:is|are) still\b")
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
    # "the name of the file" is none
    r"(?:(?!(?:of|in|for|with|by|as|from|to)\b)[\w-]+\s+){0,3}?"
    r"(?:account|alert|appointment|backup|board|booking|branch|build|campaign|channel|comment|contact|container|customer|"
    r"deal|deployment|document|draft|email|entry|event|file|flight|folder|group|instance|invoice|issue|item|job|label|lead|"
    r"list|mail|meeting|member|message|note|notification|order|page|payment|pipeline|post|product|project|pull request|"
    r"record|release|reminder|reply|report|repository|reservation|room|row|rule|run|schedule|script|server|subscription|"
    r"tag|task|ticket|user|webhook|workflow)s?\b"
)
CHANGES = _any(
    rf"{_ORDER}(?:create|delete|rename|publish|unpublish|cancel|reopen|archive|upload|deploy|restart|enable|disable|"
    rf"approve|reject|edit|modify|update|invite|purge|register|unregister|book|rebook|reserve|remind|notify|subscribe|"
    rf"unsubscribe|install|uninstall|commit|revert|roll back|migrate|provision|terminate|kill|ban|block|unblock|grant|"
    rf"revoke|pay|refund|charge|buy|purchase|suspend|reactivate|escalate|transfer|withdraw|deposit|erase|wipe|truncate|"
    rf"overwrite|rerun|re-run|launch|lock|unlock|hire|fire|onboard|enrol|enroll|unassign|reassign|reschedule|postpone|"
    rf"turn (?:on|off)|switch (?:on|off)|sign up|check in|check out)\s+{_WHICH}",
    # These verbs also tell how to write the answer ("remove the prefix"), so there must be a thing to change.
    rf"{_ORDER}(?:add|append|assign|attach|change|clear|close|drop|forward|generate|import|insert|label|mark|merge|move|"
    rf"pause|pin|post|push|remove|replace|reset|resume|run|save|schedule|send|share|start|stop|submit|tag|trigger|"
    rf"execute|write|reply to)\s+{_WHICH}\s+{_THING}",
    rf"{_ORDER}(?:order|draft|compose|log|file|open|raise)\s+(?:an?|another|new|\d+)\b",
    rf"{_ORDER}set\s+the\s+[\w-]+\s+(?:of\s+[^.?!]{{1,60}}\s)?to\b",
)

# A word that has the form of a plural: not "class", "status", "axis", nor one of those below.
_ONE_WITH_S = (
    r"(?:alias|canvas|gas|lens|news|atlas|series|species|was|has|does|goes|https|dns|tls|aws|gps|cms|js|postgres|"
    r"kubernetes|redis|bus|yes|mongodbs|always|perhaps|else's)\b"
)
_IRREGULAR = "apis|uris|clis|menus|cpus|gpus|people|children|men|women|criteria|indices"
_MANY = rf"(?!{_ONE_WITH_S})(?:[\w-]*[^\W\d_sui]s|{_IRREGULAR})\b"
_PLURAL_VERB = (
    r"(?:are|were|have|had|do|does|did|can|could|may|might|must|should|will|would|belong|exist|use|own|need|depend|"
    r"contain)"
)
# "sports team": the first word is one with s, and the second is what is asked for.
_BEFORE_NOUNS = r"(?:sports|sales|goods|arms|savings|customs|communications|operations|systems|analytics|graphics)"
_SOME = r"(?:two|three|four|five|six|seven|eight|nine|ten|several|both|all|every)"
_TELL = r"(?:name|give|list|tell|state|identify|enumerate)"

ASKS_FOR_LIST = _any(
    r"(?:^|[.!?;:,]\s+|\n\s*|\b(?:and|please)\s+)(?:list|enumerate)\s+(?:all|every|each|the|them|their|any)\b",
    r"\b(?:comma|semicolon|space|tab|newline|line)[- ]?(?:separated|delimited)\b",
    r"\bseparated by (?:an? )?(?:comma|semicolon|space|line|new)",
    r"\bname (?:all|both|two|three|four|five|every)\b",
    r"\b(?:what|which) are (?:all )?the (?:names|titles|ids|values)\b",
    r"\bwhich (?:two|three|four|five) \w+",
)
"""Asked for several things, whatever stands between them in the answer."""
ASKS_PLURAL = _any(
    r"\b(?:who|what|which)(?: of [^,.?!]{1,40}?| ones| all| else)? (?:are|were)\b",
    rf"\b(?:which|what) (?!{_BEFORE_NOUNS} (?!{_PLURAL_VERB}\b)){_MANY}",
    rf"\b(?:which|what) (?:[\w-]+ ){{1,3}}?{_MANY} {_PLURAL_VERB}\b",
    rf"\b(?:who|what|which|{_TELL})(?: are)?(?: me)?(?: the)? {_SOME} (?!of the world)",
    rf"(?:^|[.!?;:,]\s+|\b(?:and|please) ){_TELL} (?:me )?(?:the )?{_MANY}"
    r"(?= (?:of|in|that|who|which|whose|with|for|on)\b|\s*[,.?!]|$)",
)
"""Asked for more than one thing, by the form of its words: then two names with a comma or "and" are a list."""
ASKS_SINGULAR = _any(
    rf"\b(?:which|what) (?!{_MANY})[\w-]+",
    r"\b(?:what|which)(?:[’']s| is| was)\b|\bwhere\b|\bwhat\b.{0,40}\bcalled\b|\bhow is .{1,40} called\b",
)
"""Asked for one thing that may have a title or an address with commas in it; "who" may be one or several."""
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


def is_pair(answer: str) -> bool:
    """Whether an answer is two things or more joined by a comma or "and", where the question asks for several."""
    text = answer.strip()
    if _GROUPED_NUMBER.fullmatch(text) or _DATE_COMMA.fullmatch(text) or is_structured(text):
        return False
    bare = _SUFFIXED.sub("", _BRACKETED.sub("x", text))
    if "," in bare and ", " not in bare and not all(part[:1].isalpha() for part in bare.split(",")):
        return False
    parts = [part.strip() for part in re.split(r",\s*and\s|[,;\n]|\s(?:and|&)\s", bare)]
    return len(parts) >= 2 and all(0 < len(part.split()) <= 5 for part in parts)


def _is_title(parts: Iterable[str]) -> bool:
    """Whether all words of a text are capital ones, but for those that titles and places write small."""
    words = [word for part in parts for word in re.findall(r"[^\W_][\w'’.-]*", part)]
    return bool(words) and all(word[0].isupper() or word[0].isdigit() or word in _SMALL for word in words)


_SMALL = frozenset("a an and as at by de del der di du en for from in la le of on or the to und van von with y".split())
_SUFFIXED = re.compile(r",\s*(?:Jr|Sr|Inc|Ltd|LLC|GmbH|Co|Corp|PhD|Ph\.D|MD|M\.D|Esq)\b\.?", re.IGNORECASE)


def items_of(answer: str, *, one: bool = False) -> int:
    """How many things an answer lists; 1 when it is one thing as far as can be told.

    one: the question asks for one thing. Then a title, or the name of a place, is one, whatever commas it has.
    """
    text = answer.strip()
    bullets = sum(_BULLET.match(line) is not None for line in text.splitlines())
    if bullets >= 2:
        return bullets
    if _GROUPED_NUMBER.fullmatch(text) or _DATE_COMMA.fullmatch(text) or is_structured(text):
        return 1
    bare = _BRACKETED.sub("x", text)
    for parts, least in _splits(bare):
        trimmed = [part.strip() for part in parts]
        # Two parts make a list by a semicolon and the like alone; three, by commas too, which a title has as well.
        title = one and least > 2 and _is_title(trimmed)
        if len(trimmed) >= least and not title and all(0 < len(part.split()) <= 5 for part in trimmed):
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
