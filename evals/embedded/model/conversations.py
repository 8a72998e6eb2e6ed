"""What a request says, whichever API it came by: who said what, and which query it is about."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evals.embedded.model.script import AgentEntry, Script

# Claude Code puts such blocks beside the user's own text.
_REMINDER = "<system-reminder>"
_ISSUED = re.compile(r"(?:(?:toolu|call)_)?scripted_e(\d+)_n(\d+)_t\d+(?:_c\d+)?\Z")


@dataclass(frozen=True, slots=True)
class Said:
    """One message. ``marks`` are the ids of its tool calls and the signatures of its thinking blocks."""

    role: Literal["user", "assistant", "system"]
    texts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    has_results: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """Which entry a request is for. ``turn`` counts the assistant's answers since the query.

    ``conversation`` is the number of the conversation, read back from the ids this server issued in it, or None
    when there are none (its first turn).
    """

    kind: Literal["agent", "judge", "default", "unmatched"]
    query: str
    index: int = -1
    turn: int = 0
    conversation: int | None = None


def issued_mark(entry: int, conversation: int, turn: int) -> str:
    """The stem of the ids of a turn: requests carry no session, so the ids carry the conversation's number."""
    return f"scripted_e{entry}_n{conversation}_t{turn}"


class Matcher:
    """Finds the entry of a request.

    In this order: an agent's exact query; a judge's query inside a longer text; an agent's pattern. A judge's
    request quotes the query among other things, an agent's asks it and nothing else: that is how the two are told
    apart, on either API.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._exact: dict[str, list[int]] = {}
        self._patterns: list[int] = []
        for index, entry in enumerate(script.agent):
            if entry.query is not None:
                self._exact.setdefault(entry.query, []).append(index)
            else:
                self._patterns.append(index)
        self._judges = range(len(script.judge))
        self._needles = [_spellings(entry.query) for entry in script.judge]

    def find(self, said: Sequence[Said], model: str, *, may_judge: bool = True) -> Asked:
        """The entry that answers this request, or kind ``default`` or ``unmatched`` with the query's text.

        ``may_judge=False`` leaves the judge's entries out: an agent whose query is missing in the script must not be
        answered with a verdict on a shorter one.
        """
        asked = self._find_agent(said, model, exact=True)
        if asked is not None and asked.kind == "agent":
            return asked
        judge = self._find_judge(said, model) if may_judge else None
        if judge is not None:
            return judge
        asked = self._find_agent(said, model, exact=False)
        if asked is None:
            asked = Asked("unmatched", "")
        if asked.kind == "unmatched" and self._script.default is not None:
            return Asked("default", asked.query, -1, asked.turn, asked.conversation)
        return asked

    def _find_agent(self, said: Sequence[Said], model: str, *, exact: bool) -> Asked | None:
        for position in range(len(said) - 1, -1, -1):
            message = said[position]
            if message.role != "user":
                continue
            texts = [text for text in map(str.strip, message.texts) if text and not text.startswith(_REMINDER)]
            for text in reversed(texts):
                index = self._exact_entry(text, model) if exact else self._pattern_entry(text, model)
                if index is not None:
                    turn, conversation = _progress(said[position + 1 :], index)
                    return Asked("agent", text, index, turn, conversation)
            if texts and not message.has_results:
                turn, conversation = _progress(said[position + 1 :], -1)
                return Asked("unmatched", texts[-1], -1, turn, conversation)
        return None

    def _exact_entry(self, text: str, model: str) -> int | None:
        return _best(self._exact.get(text, ()), self._script.agent, model)

    def _pattern_entry(self, text: str, model: str) -> int | None:
        fitting = [
            index
            for index in self._patterns
            if (pattern := self._script.agent[index].match) is not None and pattern.found_in(text)
        ]
        return _best(fitting, self._script.agent, model)

    def _find_judge(self, said: Sequence[Said], model: str) -> Asked | None:
        if not self._judges:
            return None
        texts = [text for message in said for text in message.texts]
        stripped = {text.strip() for text in texts}
        fitting = [
            index
            for index in self._judges
            if self._script.judge[index].model in (None, model) and self._judged(index, texts, stripped)
        ]
        if not fitting:
            return None
        # The longest query, as one may be a part of another; then the entry for this very model; then the first.
        entries = self._script.judge
        best = min(fitting, key=lambda index: (-len(entries[index].query or ""), entries[index].model is None, index))
        turn = sum(1 for message in said if message.role == "assistant")
        return Asked("judge", entries[best].key, best, turn)

    def _judged(self, index: int, texts: Sequence[str], stripped: set[str]) -> bool:
        entry = self._script.judge[index]
        if entry.match is not None:
            return any(entry.match.found_in(text) for text in texts)
        assert entry.query is not None
        if entry.query in stripped:
            return False
        return any(needle in text for needle in self._needles[index] for text in texts)


def _spellings(query: str | None) -> tuple[str, ...]:
    """The query as it is, and as it looks inside JSON and inside XML: judges quote it in all three."""
    if query is None:
        return ()
    forms = (
        query,
        json.dumps(query)[1:-1],
        json.dumps(query, ensure_ascii=False)[1:-1],
        html.escape(query, quote=False),
        html.escape(query),
    )
    return tuple(dict.fromkeys(forms))


def _best(indexes: Sequence[int], entries: Sequence[AgentEntry], model: str) -> int | None:
    """The first entry for this very model, else the first for any."""
    for index in indexes:
        if entries[index].model == model:
            return index
    for index in indexes:
        if entries[index].model is None:
            return index
    return None


def _progress(later: Sequence[Said], entry: int) -> tuple[int, int | None]:
    """(answers since the query, number of the conversation or None). Consecutive messages are one answer."""
    turn = 0
    previous = "user"
    for message in later:
        if message.role == "assistant" and previous != "assistant":
            turn += 1
        if message.role != "system":
            previous = message.role
    conversation = None
    for number in _conversations(later, entry):
        conversation = number
    return turn, conversation


def _conversations(later: Sequence[Said], entry: int) -> Iterator[int]:
    for message in later:
        for mark in message.marks:
            found = _ISSUED.match(mark)
            # the default entry is written e0, the others from e1
            if found is not None and int(found[1]) == entry + 1:
                yield int(found[2])


def resolve_tool(name: str, tools: Mapping[str, object] | Sequence[str]) -> str:
    """The request's tool that a scripted name means: its own name, or one an agent has put a prefix to.

    Claude Code calls the tool ``search_text`` of the server ``repository`` ``mcp__repository__search_text``. A name
    that no tool has is sent as it is, so that a call to a tool that does not exist can be scripted.
    """
    if name in tools:
        return name
    suffix = f"__{name}"
    return next((tool for tool in tools if tool.endswith(suffix)), name)
