"""Taking texts apart into words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
# a hump of camelCase, a run of capitals before one, digits
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]|\d+")
# What no technical name holds: white space, brackets, quotes, the dashes of prose, arrows, and the characters of
# scripts that put no space between words. A hyphen and an underscore stay, and single dots within ("v1.2").
_APART = r"\s,;:!?(){}\[\]\"'`/=<>|*&+~^\\“”„‘’‚«»‹›—–―…•→⇒·\u2E80-\u9FFF\uAC00-\uD7AF\uFF00-\uFFEF"
_DOT_APART = r"\.(?=\.)|(?<=\.)\.|\.(?=[A-Z][a-z])"
_TOKEN = re.compile(rf"(?:(?!{_DOT_APART})[^{_APART}])+")

# Upper case anywhere; lower case only where a sentence begins, for elsewhere "the checks fail if …" is English.
_CLAUSE = re.compile(
    r"\b(?:PASS|FAIL)\b(?=:|\s+(?:only\s+)?(?:if|when|unless)\b)"
    r"|(?:^|(?<=[.;:!?\n]\s)|(?<=\n))(?i:pass|fail)(?=\s+(?:only\s+)?(?:if|when|unless)\b)"
)

# Words that carry no meaning of their own; a text is not copied because it shares these.
STOP_WORDS = frozenset(
    "a an and any are as at be but by can do does for from has have how i if in into is it its me my not of on or "
    "please so than that the their them then there these they this to was what when where which who will with you "
    "your".split()
)


@dataclass(frozen=True)
class Token:
    """A run of characters without white space, and where it stands in its text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Reference:
    """A reference's two sides: what a passing conversation has, and what alone makes one fail."""

    passing: str
    failing: str


def split_reference(text: str) -> Reference:
    """Tell the sides apart, whichever stands first. What stands before both is told of a passing conversation."""
    sides: dict[str, list[str]] = {"pass": [], "fail": []}
    side, at = "pass", 0
    for clause in _CLAUSE.finditer(text):
        sides[side].append(text[at : clause.start()])
        side, at = clause.group().casefold(), clause.end()
    sides[side].append(text[at:])
    return Reference(" ".join(sides["pass"]).strip(), " ".join(sides["fail"]).strip())


@lru_cache(maxsize=4096)
def parts(name: str) -> tuple[str, ...]:
    """The words of a technical name, folded: `listFiles`, `list_files` and `LIST-FILES` are (list, files)."""
    return tuple(part.casefold() for word in _WORD.findall(name) for part in _split_camel(word))


def words(text: str) -> list[str]:
    """The words of a text, folded, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def tokens(text: str) -> Iterator[Token]:
    """Words with what is written into them (`list_files`, `v1.2`, `--limit`), without what stands around."""
    for match in _TOKEN.finditer(text):
        core = match.group().strip(".")
        if core:
            start = match.start() + match.group().index(core)
            yield Token(core, start, start + len(core))


def _split_camel(word: str) -> list[str]:
    # ALLCAPS and lower case are one part; digits stay with what they follow ("v2", "base64")
    if word.islower() or word.isupper() or word.isdigit() or not word.isascii():
        return [word]
    found: list[str] = []
    for piece in _PART.findall(word):
        if piece.isdigit() and found:
            found[-1] += piece
        else:
            found.append(piece)
    return found
