"""Drafts of items from what a team has already: a test-case list, a question file, the failures of a run.

A draft is valid in form, and its texts that a person must still write begin with `TODO`: validation, lint and push
all refuse it until they are edited.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evals.authoring.checking import DRAFT
from evals.authoring.dataset_file import DatasetContent, half_characters, unique_id
from evals.authoring.stored import StoredItem
from evals.errors import TwogateError
from evals.items import DEFAULT_DATASETS, Gate
from evals.shipped import guide

if TYPE_CHECKING:
    from evals.runs.models import RunRecord
    from evals.runs.trial import TrialResult

_REFERENCE_FORM = "PASS only if … FAIL if …"
_SLUG_LENGTH = 60


@dataclass(frozen=True)
class Drafts:
    """What an import makes: the content of a new file, and what is worth saying about it."""

    content: DatasetContent
    notes: tuple[str, ...]


class _TestCase(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    id: str
    category: str
    query: str
    expectedTools: list[str] = []  # noqa: N815  (the key of the format)
    reference: str | None = None


def drafts_from_test_cases(path: Path, gate: Gate = "pr", dataset: str | None = None) -> Drafts:
    """Drafts of a list of the shape ``{"testCases": [{"id", "category", "query", "expectedTools", "reference"?}]}``.

    gate: `pr` makes tool-call items of the cases that expect tools; `merge` makes agent items, with the reference
    as it is where it has the form, else to be written.

    Raises TwogateError with every problem of the file at once.
    """
    cases, notes = _read_test_cases(path)
    items: list[StoredItem] = []
    taken: set[str] = set()
    left_out = 0
    references = 0
    for case in cases:
        # the tool's name as it is: coverage and lint compare it with the server's
        category = _plain_name(case.category.strip()) or "uncategorised"
        group = slugged(category, keep_underscores=True) or "uncategorised"
        tools = list(dict.fromkeys(_plain_name(name) for name in case.expectedTools))
        if gate == "pr" and not tools:
            left_out += 1
            continue
        slug = slugged(_without_prefix(case.id, case.category)) or "case"
        identifier = unique_id(f"{gate}/{group}/{slug}", taken)
        taken.add(identifier)
        reference = (case.reference or "").strip()
        references += bool(reference)
        if gate == "pr":
            metadata: dict[str, Any] = {"category": category, "kind": "tool-call", "expectedTools": tools}
            items.append(StoredItem(identifier, {"query": case.query}, None, metadata))
        else:
            metadata = {"category": category, "kind": "agent"}
            items.append(StoredItem(identifier, {"query": case.query}, _reference(reference, tools), metadata))
    if left_out:
        notes.append(f"{left_out} cases without expectedTools are left out: a tool-call item needs one")
    if gate == "pr" and references:
        notes.append(
            f"{references} references are left out: a tool-call item has no judge; --gate merge drafts agent items"
        )
    return _drafts(items, gate, dataset, notes)


def drafts_from_qa(path: Path, category: str = "qa", dataset: str | None = None) -> Drafts:
    """Drafts of agent items from a question file; each reference asks for the pair's answer.

    Raises TwogateError with every problem of the file at once.
    """
    from evals.qa.file import load_qa

    found = load_qa(path)
    items: list[StoredItem] = []
    taken: set[str] = set()
    for pair in found.pairs:
        slug = slugged(" ".join(pair.question.split()[:8])) or f"question-{pair.number}"
        identifier = unique_id(f"merge/{slugged(category, keep_underscores=True) or 'qa'}/{slug}", taken)
        taken.add(identifier)
        reference = (
            f"PASS only if the final answer is {json.dumps(pair.answer, ensure_ascii=False)}, in these or other words. "
            "FAIL if it is anything else, or leaves the question open."
        )
        metadata = {"category": category, "kind": "agent"}
        items.append(StoredItem(identifier, {"query": pair.question}, reference, metadata))
    return _drafts(items, "merge", dataset, list(found.notes))


def drafts_from_run(
    record: RunRecord,
    trials: Iterable[TrialResult],
    originals: Iterable[StoredItem] | None,
    dataset: str | None = None,
) -> Drafts:
    """A draft of each item that failed in a run, under a new id, with what the run showed.

    originals: the items as they are now; an item that is gone is drafted from the journal alone. None: the whole
    dataset is gone.
    """
    if record.gate not in ("pr", "merge"):
        raise TwogateError(f"run {record.run}: is no run of a gate; import its question file instead")
    known = {item.id: item for item in originals or ()}
    failed: dict[str, TrialResult] = {}
    for trial in trials:
        if trial.outcome == "failed":
            failed.setdefault(trial.item, trial)
    items: list[StoredItem] = []
    notes: list[str] = []
    taken = set(known)
    for identifier, trial in sorted(failed.items()):
        original = known.get(identifier)
        if original is None:
            original = _from_journal(trial)
        if identifier not in known and originals is not None:
            notes.append(f"{identifier}: is no longer in {record.dataset}; drafted from the journal alone")
        new = unique_id(f"{identifier}-draft", taken)
        taken.add(new)
        query = original.input.get("query", "") if isinstance(original.input, dict) else ""
        if trial.kind == "tool-call":
            text = f"{DRAFT}: ask for it as a user would ({trial.reason}): {query}"
            items.append(StoredItem(new, {"query": text}, None, original.metadata))
        else:
            text = f"{DRAFT}: check the reference ({trial.reason}): {original.expected_output}"
            items.append(StoredItem(new, original.input, text, original.metadata))
    if originals is None:
        notes.append(f"the dataset {record.dataset} is not there (any more); drafted from the journal alone")
    if not items:
        raise TwogateError(f"run {record.run}: no trial failed, so there is nothing to draft")
    notes.append(f"read {guide('diagnosis.md')} first: a failure is the case's doing less often than it seems")
    return _drafts(items, "pr" if record.gate == "pr" else "merge", dataset or record.dataset, notes)


def slugged(text: str, *, keep_underscores: bool = False) -> str:
    """The text as a part of an id: lower case without accents, hyphens, at most 60 characters."""
    unwanted = r"[^a-z0-9_]+" if keep_underscores else r"[^a-z0-9]+"
    letters = "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))
    return re.sub(unwanted, "-", letters)[:_SLUG_LENGTH].strip("-")


def _read_test_cases(path: Path) -> tuple[list[_TestCase], list[str]]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise TwogateError(f"{path}: is not valid JSON: {error}") from None
    listed = raw.get("testCases") if isinstance(raw, dict) else None
    if not isinstance(listed, list) or not listed:
        raise TwogateError(f'{path}: has no test cases; must be {{"testCases": [{{"id", "category", "query", …}}]}}')
    cases: list[_TestCase] = []
    problems = [f"{path}: {line}" for line in half_characters(listed, "testCases")]
    if problems:
        raise TwogateError(problems)
    unknown: set[str] = set()
    for position, one in enumerate(listed):
        try:
            case = _TestCase.model_validate(one)
        except ValidationError as error:
            label = one.get("id") if isinstance(one, dict) else None
            problems += [
                f"{path}: testCases[{position}]{f' ({label})' if label else ''}: "
                f"{'.'.join(map(str, mistake['loc'])) or 'case'}: {_mistake(mistake['type'])}"
                for mistake in error.errors()
            ]
            continue
        if not case.query.strip():
            problems.append(f"{path}: testCases[{position}] ({case.id}): query: is empty; write it")
        unknown |= one.keys() - _TestCase.model_fields.keys()
        cases.append(case)
    if problems:
        raise TwogateError(problems)
    return cases, [f"keys that have no place in an item are left out: {', '.join(sorted(unknown))}"] if unknown else []


def _mistake(kind: str) -> str:
    known = {
        "missing": "is missing; add it",
        "string_type": "must be text",
        "list_type": "must be a list of tool names",
        "model_type": 'must be an object with "id", "category", "query" and "expectedTools"',
    }
    return known.get(kind, f"is wrong ({kind})")


def _reference(reference: str, tools: list[str]) -> str:
    if re.match(r"\s*PASS only if\b.+\bFAIL if\b", reference, re.DOTALL):
        return reference
    said = reference or (f"the tools expected are {', '.join(tools)}" if tools else "no reference was given")
    return f"{DRAFT}: write it as {_REFERENCE_FORM}: {said}"


def _from_journal(trial: TrialResult) -> StoredItem:
    query = trial.conversation.query if trial.conversation else ""
    if trial.kind == "tool-call":
        metadata = {"category": trial.category, "kind": "tool-call", "expectedTools": [trial.category]}
        return StoredItem(trial.item, {"query": query}, None, metadata)
    return StoredItem(trial.item, {"query": query}, _REFERENCE_FORM, {"category": trial.category, "kind": "agent"})


def _drafts(items: list[StoredItem], gate: Gate, dataset: str | None, notes: list[str]) -> Drafts:
    if not items:
        raise TwogateError(["nothing to draft", *notes])
    return Drafts(DatasetContent(dataset or DEFAULT_DATASETS[gate], tuple(items)), tuple(notes))


def _plain_name(tool: str) -> str:
    """A tool's name as the server gives it, without the client's prefix."""
    return tool.split("__", 2)[-1] if tool.startswith("mcp__") else tool


def _without_prefix(identifier: str, category: str) -> str:
    prefix = f"{slugged(category)}-"
    slug = slugged(identifier)
    return slug.removeprefix(prefix) if slug != prefix.rstrip("-") else slug
