"""Rules about a dataset as a whole, and about texts not finished."""

from __future__ import annotations

from collections.abc import Iterator

from evals.authoring.checking import DRAFT, text_fields
from evals.authoring.lint.rules import Context, Hit
from evals.authoring.text import words
from evals.items import Item

NEAR = 0.85
"""Queries that share this part of their words (Jaccard: common / all, each word once) are near-duplicates."""


def draft(item: Item, context: Context) -> Iterator[Hit]:
    """TW002."""
    for field, text in text_fields(item):
        if text.lstrip().startswith(DRAFT):
            yield Hit(item.id, field, f"still begins with {DRAFT}", f"edit the text and take {DRAFT} away")
            return


def near_duplicates(context: Context) -> Iterator[Hit]:
    """TW003. Each item is reported once, beside the first item it resembles."""
    seen: list[tuple[str, frozenset[str]]] = []
    for item in context.items:
        mine = frozenset(words(item.query))
        for other, theirs in seen:
            # sets whose sizes differ too much cannot share enough: most pairs end here
            if min(len(mine), len(theirs)) < NEAR * max(len(mine), len(theirs)):
                continue
            common, together = len(mine & theirs), len(mine | theirs)
            if together and common / together >= NEAR:
                yield Hit(
                    item.id,
                    "input.query",
                    f"shares {common} of {together} words with the query of {other}",
                    "keep one of the two, or make the second about something else",
                )
                break
        seen.append((item.id, mine))
