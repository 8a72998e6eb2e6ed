"""Whether a text names something technical (a tool, a parameter, a family), or merely uses ordinary words.

`list the files` is English; `list_files` is a name. Each occurrence is weighed, and the weights are documented in
docs/authoring.md#how-names-are-weighed: `CERTAIN` is a name, `LIKELY` probably one, below that it is English.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """

    def __init__(self, text: str, content: tuple[str, ...] = ()) -> None:
        self._text = text
        self._content = tuple(one.casefold() for one in content)
        self._tokens = list(tokens(text))
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
                is_prefixed = token.casefold().startswith("mcp__") and self._parts[first][-size:] == wanted
                return CERTAIN if is_prefixed and kind == "tool" else None
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

    def _marks(self, first: int, last: int, size: int, kind: NameKind) -> int:
        """What stands directly around the words: code marks, quotes, an assignment."""
        start, end = self._tokens[first].start, self._tokens[last].end
        before, after = self._text[start - 1 : start], self._text[end : end + 1]
        if before == after == "`":
            return CERTAIN if size > 1 else SLIGHT
        if kind == "parameter" and after == "=" and self._text[end + 1 : end + 2] != "=":
            return CERTAIN
        if kind == "tool" and self._text[end : end + 2] == "()":
            return CERTAIN
        quoted = (before, after) in {('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’")}
        return SLIGHT if quoted and size > 1 and first != last else 0

    def _cues(self, first: int, last: int, kind: NameKind) -> tuple[int, int]:
        """What the word before and the word after say of it."""
        before = after = 0
        if first > 0:
            before = _BEFORE[kind].get(self._tokens[first - 1].text.casefold(), 0)
        if last + 1 < len(self._tokens):
            after = _AFTER[kind].get(self._tokens[last + 1].text.casefold(), 0)
        return before, after
