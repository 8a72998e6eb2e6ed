"""The strict validation of a dataset's content, as it will be once Langfuse holds it."""

from __future__ import annotations

from dataclasses import dataclass

from evals.authoring.dataset_file import DatasetContent
from evals.authoring.stored import StoredItem
from evals.errors import TwogateError
from evals.items import Gate, Item, Problem, check_item, gate_of_dataset, parse_items

DRAFT = "TODO"
"""What a text that its author must still edit begins with."""


@dataclass(frozen=True)
class Checked:
    """The valid active items, sorted by id, and every problem of the others."""

    gate: Gate | None
    items: tuple[Item, ...]
    problems: tuple[Problem, ...]
    drafts: tuple[Problem, ...]
    """Texts that still have to be edited; not problems of form."""

    def or_raise(self, label: str) -> tuple[Item, ...]:
        """The items. Raises TwogateError with one line a problem, drafts too."""
        found = [*self.problems, *self.drafts]
        if found:
            raise TwogateError(f"{label}: {problem}" for problem in found)
        return self.items


def check_content(content: DatasetContent) -> Checked:
    """Validate the active items of a dataset; archived ones are skipped."""
    active = sorted((item for item in content.items if not item.archived), key=lambda item: item.id)
    gate = gate_of_dataset(content.name) or _gate_of_first(active)
    problems = list(content.problems)
    valid: dict[str, Item] = {}
    for item in active:
        # what Langfuse will hold is what a run reads: "42" in a file becomes the number 42
        mistakes = check_item(item.raw(), gate) or check_item(item.as_kept().raw(), gate)
        problems += mistakes
        if not mistakes:
            valid[item.id] = parse_items([item.as_kept().raw()], gate)[0]
    drafts = [draft for item in valid.values() for draft in _drafts(item)]
    return Checked(gate=gate, items=tuple(valid.values()), problems=tuple(problems), drafts=tuple(drafts))


def _gate_of_first(items: list[StoredItem]) -> Gate | None:
    for item in items:
        prefix = item.id.split("/")[0]
        if prefix in ("pr", "merge"):
            return "pr" if prefix == "pr" else "merge"
    return None


def text_fields(item: Item) -> list[tuple[str, str]]:
    """The fields people write, with their texts."""
    return [("input.query", item.query), ("expectedOutput", item.expected_output or "")]


def _drafts(item: Item) -> list[Problem]:
    return [
        Problem(item=item.id, field=field, message=f"is a draft; edit it and take {DRAFT} away")
        for field, text in text_fields(item)
        if text.lstrip().startswith(DRAFT)
    ]
