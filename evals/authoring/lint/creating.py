"""The rule about the names of what a query has created: only what has the prefix is ever cleaned up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evals.authoring.lint.rules import Context, Hit
from evals.authoring.text import STOP_WORDS, parts
from evals.fixtures.naming import DEFAULT_PREFIX
from evals.items import Item

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")

# Imperatives; the words that are nouns, too, must not stand behind an article ("the schedule of …").
_CREATES = re.compile(
    r"(?<![\w-])(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bits )(?<!\bmy )(?<!\bour )(?<!\bof )(?<!\bthis )(?<!\bthat )"
    r"(?<!\bwhich )(?<!\bwhat )(?<!\beach )(?<!\bevery )(?<!\bnot )(?<!n't )(?<!n’t )(?<!\bnever )"
    r"(?:create|add|save|make|set up|setup|register|upload|store|keep|schedule|write|generate|build|define|compose|"
    r"draft|insert|duplicate|clone|copy|put|prepare|produce|start an?|creating|adding|saving|making|setting up|storing|"
    r"scheduling|writing)\b(?! sure\b)",
    re.IGNORECASE,
)
_ARTICLE = r"(?:an?|one|another|two|three|some)"
_PREPOSITION = r"(?:of|in|into|from|about|with|for|to|on|at|by|like|under|after|before)"
# "I need a new task called …": wishes, where the very thing wished for has the name.
_WISHES = re.compile(
    rf"\b(?:need|want|would like|['’]d like|(?:should|must|has to) be)\s+{_ARTICLE}\s+"
    rf"(?:(?!{_PREPOSITION}\b)[\w-]+,?\s+){{0,4}}(?=(?:called|named|titled)\b)"
    rf"|(?<!\bthe )\bnew\s+(?:(?!{_PREPOSITION}\b)[\w-]+\s+){{0,2}}(?=(?:called|named|titled)\b)",
    re.IGNORECASE,
)
# "I need two of these: one for Zoe and Mia, called …"
_WISHED_BEFORE = re.compile(rf"\b(?:need|want|would like|['’]d like)\s+{_ARTICLE}\b.*,\s*$", re.IGNORECASE | re.DOTALL)
# A noun behind these words is one that is there already: "the one named", "for a task named", "of tasks named".
_EXISTING = re.compile(
    r"(?:\b(?:the|this|that|these|those|my|our|your|his|her|their|its|every|each|any|all|no)\s+"
    r"(?:(?:saved|stored|existing|old|other|same|public|hidden|current|permanent)\s+)*"
    rf"|\b{_PREPOSITION}\s+(?:an?\s+)?)(?:[\w-]+\s+)?$|\b(?:everything|anything|something|whatever)\s+$",
    re.IGNORECASE,
)
_NEW = re.compile(r"\b(?:an?|one|another|new)\s+(?:[\w-]+\s+){0,2}$", re.IGNORECASE)

_NAME = (
    r"(?:\"(?P<q1>[^\"\n]+)\"|'(?P<q2>[^'\n]+)'|`(?P<q3>[^`\n]+)`|“(?P<q4>[^”\n]+)”"
    r"|‘(?P<q5>[^’\n]+)’|(?P<bare>\w[\w./-]*+))"
)
_NAMED = re.compile(
    rf"\b(?P<how>named|called|titled|(?:under|by|with) (?:the|a) name(?: of)?|whose name is|"
    rf"(?:name|call) (?:it|them|this|that))\s+(?:(?:exactly|simply|just)\s+)?{_NAME}",
    re.IGNORECASE,
)
_MORE_NAMES = re.compile(rf"(?:\s*,\s*(?:and\s+)?|\s+and\s+){_NAME}")
# "It is called nightly": of the thing created in a sentence before.
_IT_IS = re.compile(
    r"\b(?:it|they|this one|the new one)\s+(?:is|are|shall be|should be|must be|will be)\s+$", re.IGNORECASE
)
_SAID_OF_OTHERS = re.compile(r"\b(?:I|we|they|you|people|who|to|not|n['’]t)\s+$", re.IGNORECASE)
_RENAMED = re.compile(rf"\brenam(?:e|ing)\b[^.!?\n]*?(?<!\bback)\s+(?:to|as|into)\s+{_NAME}", re.IGNORECASE)
_SAVED_AS = re.compile(rf"\bas\s+{_NAME}(?!\s+as\b)")
_AS_AS = re.compile(r"\bas\s+\w+\s+$")

_LOOK_BACK = 120  # characters

_NO_NAMES = STOP_WORDS | frozenset(
    "after off up out back something anything whatever accordingly appropriately properly differently above below like "
    "under over when whenever one once twice exactly such".split()
)
# English that is written with a hyphen: "as read-only", "as one-time".
_ENGLISH_ENDINGS = frozenset(
    "only time up down in out off on priority based free term level known ready like needed is long day hour week "
    "mail case line first last date".split()
)
_NOUNS = frozenset(
    "task job schedule file folder directory note project list report ticket issue page document record entry event "
    "reminder monitor board channel table database collection bucket branch workflow pipeline dataset group".split()
)


def created_without_prefix(item: Item, context: Context) -> Iterator[Hit]:
    """TW108. Only where tools run; a tool-call item creates nothing."""
    if item.kind != "agent":
        return
    for name in created_names(item.query, _nouns(item)):
        # as the clean-up does: upper and lower case are different
        if not any(part.startswith(DEFAULT_PREFIX) for part in name.split("/")):
            rest = name[len(DEFAULT_PREFIX) :] if name.casefold().startswith(DEFAULT_PREFIX) else name
            yield Hit(
                item.id,
                "input.query",
                f'creates "{name}" without the prefix {DEFAULT_PREFIX}',
                f"name it {DEFAULT_PREFIX}{rest}, so that cleaning up finds it (in just this case) and touches nothing "
                "else",
            )
            return


def created_names(query: str, nouns: frozenset[str] = _NOUNS) -> Iterator[str]:
    """The names that a query gives to what it has created, renamed or copied, in no special order.

    nouns: words for the things that can be created, behind which a name may stand by itself: `a task "weekly-sums"`.
    """
    created = False
    for sentence in _SENTENCE.split(query):
        creates = _CREATES.search(sentence)
        wishes = [match.end() for match in _WISHES.finditer(sentence)]
        for named in _NAMED.finditer(sentence):
            before = _before(sentence, named.start())
            if named["how"].casefold().startswith(("name ", "call ")):
                is_new = not _SAID_OF_OTHERS.search(before)
            elif creates and creates.end() <= named.start():
                is_new = not _EXISTING.search(before)
            else:
                wished = named.start() in wishes or _WISHED_BEFORE.search(sentence[: named.start()])
                is_new = bool(wished or (created and _IT_IS.search(before)))
            if is_new:
                yield from _listed(sentence, named)
        if creates:
            yield from _beside_nouns(sentence[creates.end() :], nouns)
            saved = _SAVED_AS.finditer(sentence, creates.end())
            yield from filter(
                None, (_technical(one) for one in saved if not _AS_AS.search(_before(sentence, one.start())))
            )
        for renamed in _RENAMED.finditer(sentence):
            yield from filter(None, [_plain(renamed)])
        created = created or creates is not None or bool(wishes)


def _listed(sentence: str, named: re.Match[str]) -> Iterator[str]:
    """The name; of several things ("tasks named a-1 and b-2") each one's."""
    first = _plain(named)
    if first is None:
        return
    # a person, and no thing: "with the name Grace"
    if named["how"].casefold().startswith("with") and first.istitle() and first.isalpha():
        return
    yield first
    if re.search(r"\b(?!is\b|was\b|this\b)\w+s\s+$", _before(sentence, named.start())):
        at = named.end()
        while more := _MORE_NAMES.match(sentence, at):
            name = _technical(more)
            if name is None:
                return
            yield name
            at = more.end()


def _beside_nouns(text: str, nouns: frozenset[str]) -> Iterator[str]:
    """`a task "weekly"`, `a new task weekly-sums`, `a counter "weekly-sums"`."""
    # looked for at every word, since "new task" is a noun with a word behind it as much as "task weekly-sums"
    for found in re.finditer(rf"(?<![\w-])(?=(?P<noun>\w[\w-]*)\s+{_NAME})", text):
        before = _before(text, found.start())
        if not _NEW.search(before) or _EXISTING.search(f"{before}{found['noun']} "):
            continue
        name, is_noun, is_quoted = _plain(found), found["noun"].casefold() in nouns, not found["bare"]
        if name is None or " " in name:
            continue
        if (is_noun and is_quoted) or ((is_noun or is_quoted) and _technical(found)):
            yield name


def _before(text: str, at: int) -> str:
    """The words before a place, as many as any pattern that ends there looks at; all of a long text would be slow."""
    return text[max(at - _LOOK_BACK, 0) : at]


def _plain(found: re.Match[str]) -> str | None:
    quoted = next((found[group] for group in ("q1", "q2", "q3", "q4", "q5") if found[group]), None)
    if quoted is not None:
        return quoted.strip()
    name = str(found["bare"]).rstrip("./-")
    return None if name.casefold() in _NO_NAMES else name


def _technical(found: re.Match[str]) -> str | None:
    """The name where it is written as no English word is: `weekly-sums`, `notes.txt`, `sum_2`."""
    name = _plain(found)
    if name is None or not re.fullmatch(r"[\w./-]+", name) or not re.search(r"[^\W\d_][-_./]\w|\w_\w|[^\W\d_]\d", name):
        return None
    last = parts(name)[-1:]
    return None if not last or last[0] in _ENGLISH_ENDINGS else name


def _nouns(item: Item) -> frozenset[str]:
    own = {*parts(item.metadata.category)[1:], *parts(item.id.split("/")[1])}
    return _NOUNS | {word.removesuffix("s") for word in own}
