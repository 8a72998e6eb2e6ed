"""The starter datasets: drafts of items, from nothing but what the author says that users want.

Never from tool names or descriptions: a case that was written from them measures whether a model can copy. So which
tool is right stays open, and a draft is refused by `twogate items validate`, by push and by a run until its author has
named the tool (in the id, the category and expectedTools) or written the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evals.authoring.checking import DRAFT
from evals.authoring.dataset_file import DatasetContent, unique_id
from evals.authoring.importing import slugged
from evals.authoring.stored import StoredItem
from evals.items import DEFAULT_DATASETS, KIND_OF_GATE, Gate

_WORDS_OF_A_SLUG = 8
_DESCRIPTIONS = {
    "pr": "What users ask, for the PR gate: the first tool call of each item is scored.",
    "merge": "What users ask, for the merge gate: agents run to completion and a judge decides.",
}


def clean_wants(lines: Iterable[str]) -> list[str]:
    """Wishes, one a line: without bullets, blank lines, comments (``#``) and repetitions."""
    found: dict[str, str] = {}
    for line in lines:
        text = " ".join(line.split())
        if text.startswith("#"):
            continue
        text = text.removeprefix("- ").removeprefix("* ").strip()
        if text and text not in ("-", "*"):
            found.setdefault(text.casefold(), text)
    return list(found.values())


def draft_dataset(gate: Gate, wants: Sequence[str]) -> DatasetContent:
    """A draft of an item for each wish."""
    items: list[StoredItem] = []
    taken: set[str] = set()
    for number, want in enumerate(wants, start=1):
        slug = slugged(" ".join(want.split()[:_WORDS_OF_A_SLUG])) or f"wish-{number}"
        # one part short of pr/<tool>/<slug>: ids are for ever, so a draft must not get into Langfuse by its draft id
        identifier = unique_id(f"{gate}/{slug}", taken)
        taken.add(identifier)
        metadata: dict[str, object] = {"category": "", "kind": KIND_OF_GATE[gate]}
        reference = None
        if gate == "pr":
            metadata["expectedTools"] = []
        else:
            reference = f"{DRAFT}: PASS only if … FAIL if …"
        items.append(StoredItem(identifier, {"query": want}, reference, metadata))
    return DatasetContent(name=DEFAULT_DATASETS[gate], items=tuple(items), description=_DESCRIPTIONS[gate])
