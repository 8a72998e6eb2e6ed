"""Whether a text names something technical (a tool, a parameter, a family), or merely uses ordinary words.

`list the files` is English; `list_files` is a name. Each occurrence is weighed, and the weights are documented in
docs/authoring.md#how-names-are-weighed: `CERTAIN` is a name, `LIKELY` probably one, below that it is English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from evals.authoring.text import parts, tokens

NameKind = Literal["tool", "parameter", "family"]

CERTAIN = 3
LIKELY = 2
SLIGHT = 1

_AFTER: dict[NameKind, dict[str, int]] = {
    "tool": {"tool": 3, "tools": 3, "toolset": 3}
    | dict.fromkeys(("function", "method", "command", "endpoint", "api"), 2),
    "parameter": dict.fromkeys(("parameter", "parameters", "param", "argument", "arguments", "arg"), 3)
    | {"flag": 2, "option": 2, "field": 1, "property": 1},
    "family": dict.fromkeys(("tool", "tools", "toolset", "family", "server", "mcp", "namespace", "category"), 3),
}
_BEFORE: dict[NameKind, dict[str, int]] = {
    "tool": {"tool": 3, "tools": 3}
    | dict.fromkeys(("use", "using", "call", "calling", "invoke", "invoking", "via"), 1),
    "parameter": dict.fromkeys(("parameter", "param", "argument", "arg"), 3) | {"flag": 2, "option": 2},
    "family": dict.fromkeys(("toolset", "family", "mcp"), 3),
}

_OPENING = r"[`\"'“‘@{\[]"
_NUMBER = r"-?\d(?:[\d.,]*\d)?"
_TECHNICAL = r"(?:true|false|null)\b"
# "limit 5 minutes": the number counts minutes, and is no argument.
_NO_UNIT = r"(?!\s*%|\s*(?!(?:and|or|but|as|in|for|to|on|at|so|then|twice|once|when|while|only)\b)[^\W\d_])"
# Where a reference speaks of the answer, and where it has come back to the calls.
_SAYS = re.compile(
    r"\b(?:answers?|answering|says?|saying|tells?|telling|names|naming|states?|reports?|mentions?|explains?|claims?)\b",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"\b(?:calls?|calling|passes|passing|uses?|using|sets?|setting|runs?|running|saves?|saving|makes?|making|changes?|"
    r"changing|creates?|creating|lists|listing|looks?|looking|searches|searching|updates?|updating)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|;|\n\s*\n")
_NEGATED = re.compile(
    r"\b(?:without|instead of|rather than|never|(?:does|do|did|must|should|may|is|are)(?: not|n't|n’t))\b"
    r"(?:(?!,|;|[.!?](?:\s|$)|\b(?:and|but)\b).)*",
    re.IGNORECASE | re.DOTALL,
)

# "search(" is a call; "file(s)" and "search(es)" are English.
_CALLED = re.compile(r"\((?!(?:s|es|d|ed|r|er|ing)\))")
_ASSIGNED = re.compile(r"[\"'`”’]?[ \t]*(?::?=(?![=~])>?|->|→)")
_AS_KEY = re.compile(r"[\"'`”’][ \t]*:")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_COLON_AND_VALUE = re.compile(r":[ \t]*[^\s:/]")
# "path: deploy" is a key and its value where it begins a clause or follows one of these; "the path: deploy" is English.
_BEFORE_KEY = frozenset("with and or use using set setting pass passing where by at in under below from for".split())


@dataclass(frozen=True)
class Mention:
    """An occurrence of a name and its weight, with the words as they stand in the text."""

    name: str
    weight: int
    words: str


@dataclass(frozen=True)
class _Word:
    part: str
    token: int


class NamedText:
    """A text taken apart once, to be asked for many names.

    content: texts in which a name is not a hint but what the user asks about, such as the text to search for.
    owners: the names of servers, as which a tool's own is written (`repository.search`).
    """

    def __init__(self, text: str, content: tuple[str, ...] = (), owners: tuple[str, ...] = ()) -> None:
        self._text = text
        self._owners = frozenset(owner.casefold() for owner in owners)
        self._content = tuple(one.casefold() for one in content)
        self._tokens = list(tokens(text))
        self._urls = [match.span() for match in _URL.finditer(text)]
        self._parts = [parts(token.text) for token in self._tokens]
        self._words = [_Word(part, index) for index, found in enumerate(self._parts) for part in found]
        self._known = frozenset(word.part for word in self._words)

    def mention(self, name: str, kind: NameKind) -> Mention | None:
        """The heaviest occurrence of a name; None when its words do not stand in the text one after the other."""
        found = list(self._occurrences(name, kind))
        return max(found, key=lambda one: one.weight) if found else None

    def _occurrences(self, name: str, kind: NameKind) -> Iterator[Mention]:
        wanted = parts(name)
        size = len(wanted)
        together = "".join(wanted)
        if not wanted or not (together in self._known or self._known.issuperset(wanted)):
            return
        for start, word in enumerate(self._words):
            window = self._words[start : start + size]
            if tuple(one.part for one in window) == wanted:
                first, last = window[0].token, window[-1].token
                base = self._base(wanted, first, last, kind)
            elif size > 1 and word.part == together and self._parts[word.token] == (together,):
                # "signup" for sign_up is English: likely, not certain
                first = last = word.token
                base = LIKELY
            else:
                continue
            shown = self._text[self._tokens[first].start : self._tokens[last].end]
            if base is None or any(shown.casefold() in one for one in self._content):
                continue
            before, after = self._cues(first, last, kind)
            weight = base + self._marks(first, last, size, kind) + before + after
            start, end = self._tokens[first - bool(before)].start, self._tokens[last + bool(after)].end
            yield Mention(name, weight, self._text[start:end])

    def _base(self, wanted: tuple[str, ...], first: int, last: int, kind: NameKind) -> int | None:
        """The weight of the spelling alone; None when the words only happen to stand inside longer ones."""
        size = len(wanted)
        if first == last:
            token = self._tokens[first].text
            if self._parts[first] != wanted:
                return self._qualified(token, wanted) if kind == "tool" else None
            if token.startswith("--") and kind == "parameter":
                return CERTAIN
            if size == 1:
                return 0
            # "case-sensitive" is English beside the parameter case_sensitive; "list-files" is not beside list_files
            return SLIGHT if kind == "parameter" and "-" in token and "_" not in token else CERTAIN
        if last - first != size - 1 or any(len(self._parts[one]) != 1 for one in range(first, last + 1)):
            return None
        between = (self._text[self._tokens[one].end : self._tokens[one + 1].start] for one in range(first, last))
        if not all(gap.isspace() for gap in between):
            return None
        return LIKELY if size >= 3 and kind == "tool" else SLIGHT if kind == "tool" or size >= 3 else 0

    def _qualified(self, token: str, wanted: tuple[str, ...]) -> int | None:
        """The weight of a tool's name with the name of what has it before: `mcp__x__list_files`, `x.list_files`."""
        if token.casefold().startswith("mcp__"):
            return CERTAIN if parts(token)[-len(wanted) :] == wanted else None
        owner, dot, name = token.rpartition(".")
        if not dot or parts(name) != wanted:
            return None
        return CERTAIN if len(wanted) > 1 or owner.casefold() in self._owners else 0

    def _marks(self, first: int, last: int, size: int, kind: NameKind) -> int:
        """What stands directly around the words: code marks, quotes, an assignment."""
        start, end = self._tokens[first].start, self._tokens[last].end
        before, after = self._text[start - 1 : start], self._text[end : end + 1]
        if kind == "parameter":
            assigned = self._assigned(first, end)
            if assigned:
                return assigned
        if before == after == "`":
            return CERTAIN if size > 1 else SLIGHT
        if kind == "tool" and _CALLED.match(self._text, end):
            return CERTAIN
        quoted = (before, after) in {('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’")}
        return SLIGHT if quoted and size > 1 and first != last else 0

    def _assigned(self, first: int, end: int) -> int:
        """Whether a value is given: `limit=5` and `"limit": 5` for certain, `limit: 5` where a clause begins likely."""
        if any(start < end <= stop for start, stop in self._urls):
            return 0  # a query string is the user's own
        if _ASSIGNED.match(self._text, end) or (_AS_KEY.match(self._text, end) and self._is_quoted(first)):
            return CERTAIN
        token = self._tokens[first]
        if not _COLON_AND_VALUE.match(self._text, end) or token.text[:1].isupper():
            return 0
        gap = self._text[self._tokens[first - 1].end if first else 0 : token.start]
        begins = not first or bool(gap.strip()) or "\n" in gap
        return LIKELY if begins or self._tokens[first - 1].text.casefold() in _BEFORE_KEY else 0

    def _is_quoted(self, token: int) -> bool:
        start = self._tokens[token].start
        return self._text[start - 1 : start] in tuple("\"'`“‘") if start else False

    def _cues(self, first: int, last: int, kind: NameKind) -> tuple[int, int]:
        """What the word before and the word after say of it."""
        before = after = 0
        if first > 0:
            before = _BEFORE[kind].get(self._tokens[first - 1].text.casefold(), 0)
        if last + 1 < len(self._tokens):
            after = _AFTER[kind].get(self._tokens[last + 1].text.casefold(), 0)
        return before, after


def done_only(text: str) -> str:
    """The text without what it says is *not* done: "never calls x", "without calling x", "instead of x"."""
    return _NEGATED.sub(" ", text)


def gives_value(name: str, text: str) -> bool:
    """Whether a text gives a parameter a value: `limit 5`, `enabled is false`, `cron '0 8 * * 1'`, `max_results=5`.

    What the answer says ("answers that the limit is 5") is no argument. Of a parameter whose name is one ordinary word
    more is asked, since "within the limit of 5 minutes" is English.
    """
    return any(not _is_said(text, match.start()) for match in _given(name).finditer(text))


@lru_cache(maxsize=4096)
def _given(name: str) -> re.Pattern[str]:
    wanted = parts(name)
    spelled = r"[ _-]?".join(map(re.escape, wanted))
    marked = rf"[`\"“]{spelled}[`\"”]"
    value = rf"(?:{_OPENING}|{_NUMBER}|{_TECHNICAL})"
    joined = r"\s*(?:=|:|\b(?:is|are|of|to|at)\b|\bset to\b)?\s*"
    if len(wanted) > 1:
        return re.compile(rf"(?<![\w-])(?:{marked}|{spelled}){joined}{value}", re.IGNORECASE)
    plain = rf"(?:{_OPENING}|{_NUMBER}{_NO_UNIT})"
    ways = (
        rf"{marked}{joined}{value}",
        rf"(?<![\w-]){spelled}\s*=\s*{value}",
        rf"(?<![\w-]){spelled}{joined}{_TECHNICAL}",
        rf"(?:[,(`]\s*|\b(?:with|and|or|pass(?:es|ing)?|sets?|setting|uses?|using|whose|where|\w+_\w+)\s+)"
        rf"{spelled}\s*{plain}",
        rf"(?:[,(]\s*|\b(?:with|and|the|its|whose|where|their|that)\s+){spelled}\s*(?::|\bis\b)\s*{plain}",
        rf"\b(?:with|and|sets?|setting|uses?|using) (?:an? |the |its )?{spelled} (?:of|to|at|set to) {plain}",
    )
    return re.compile("|".join(f"(?:{way})" for way in ways), re.IGNORECASE)


def _is_said(text: str, at: int) -> bool:
    """Whether what stands there is part of an answer, going by the last verb before it in its sentence."""
    before = text[:at]
    ends = [match.end() for match in _SENTENCE_END.finditer(before)]
    sentence = before[ends[-1] if ends else 0 :]
    said = [match.end() for match in _SAYS.finditer(sentence)]
    return bool(said) and not _ACTS.search(sentence, said[-1])
