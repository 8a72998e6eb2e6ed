"""How much an item asks of an agent, read off its id and its query."""

from __future__ import annotations

import re

from evals.items import Item

LEVELS = {"easy": 3, "single": 3, "medium": 5, "chain": 5, "hard": 8}
"""A level named in the id's last part, and the agent turns it needs at least."""

_SENTENCE = re.compile(r"[.;!?\n]+\s*")
_NEXT = re.compile(r"\b(?:and then|then|after that|afterwards|finally|next|and also)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+", re.MULTILINE)
_REQUEST = re.compile(
    r"\b(?:add|archive|build|change|check|compare|count|create|delete|describe|disable|enable|explain|fetch|find|get|"
    r"give|list|look|make|move|pause|publish|read|remove|rename|report|resume|run|save|say|schedule|search|set|show|"
    r"start|stop|summari[sz]e|switch|tell|turn|unpublish|update|verify|write)\b",
    re.IGNORECASE,
)


def level(item: Item) -> str | None:
    """One of `LEVELS`, where a word of the id's last part says so."""
    return next((word for word in re.split(r"[-_.]", item.id.split("/")[-1].casefold()) if word in LEVELS), None)


def is_hard(item: Item) -> bool:
    """Called hard by its id."""
    return level(item) == "hard"


def steps(query: str) -> int:
    """The requests in a query: numbered lines, else sentences and `then` clauses that ask for something."""
    numbered = len(_NUMBERED.findall(query))
    clauses = [clause for sentence in _SENTENCE.split(query) for clause in _NEXT.split(sentence)]
    return max(numbered, sum(bool(_REQUEST.search(clause)) for clause in clauses), 1)


def turns_needed(item: Item) -> int:
    """The fewest turns that leave room: one a request and one for the answer, or what the named level needs."""
    named = level(item)
    return max(steps(item.query) + 1, LEVELS[named] if named else 0)
