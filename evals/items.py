"""Dataset items: the contract with the people who write cases.

An item is validated before any money is spent, and every problem of every item is reported at once: a run that
stops at the first mistake makes its author pay for each of the others with another round.

Nothing here knows of Langfuse, Claude or files.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from evals.errors import TwogateError

Gate = Literal["pr", "merge"]
Kind = Literal["tool-call", "agent"]

KIND_OF_GATE: Mapping[Gate, Kind] = {"pr": "tool-call", "merge": "agent"}
DEFAULT_DATASETS: Mapping[Gate, str] = {"pr": "mcp-server-evals-pr", "merge": "mcp-server-evals-merge"}
DEFAULT_MAX_TURNS = 10

# Langfuse takes ids of 1 to 255 characters.
_ID = re.compile(r"(?P<gate>pr|merge)/(?P<group>[^/\s]+)/(?P<slug>[^/\s]+)")
_ID_LENGTH = 255
_ID_FORM = {"pr": "pr/<tool>/<slug>", "merge": "merge/<family>/<slug>"}


def _visible(text: str) -> str:
    """Characters of Unicode's categories for controls, formats and separators are nothing that anybody reads."""
    if not any(unicodedata.category(char)[0] not in "CZ" for char in text):
        raise PydanticCustomError("blank", "is empty; write a text")
    return text


def _unpadded(text: str) -> str:
    if text != text.strip():
        raise PydanticCustomError("padded", "has white space around it; take it away")
    return text


_NonBlank = Annotated[str, AfterValidator(_visible)]
_Name = Annotated[str, AfterValidator(_visible), AfterValidator(_unpadded)]
_Names = tuple[_Name, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=False
    )


class ItemInput(_Strict):
    """What the user asks."""

    query: _NonBlank


class ItemMetadata(_Strict):
    """The knobs of an item. In the dataset their names are camelCase."""

    category: _Name
    """The tool under test."""
    kind: Kind
    expected_tools: Annotated[_Names, Field(strict=False)] | None = None
    """tool-call: the names of the tools any of which is a right first call, as the server names them."""
    expected_args: dict[_Name, Any] | None = None
    """tool-call: arguments the first call must have, compared as JSON values; other arguments are free."""
    expected_errors: Annotated[_Names, Field(strict=False)] | None = None
    """agent: tools whose failed calls do not fail the trial."""
    max_turns: Annotated[int, Field(gt=0)] | None = None
    """agent: the limit of agent turns (`DEFAULT_MAX_TURNS` when absent)."""
    tools: Annotated[_Names, Field(strict=False)] | None = None
    """Families of tools the target is launched with (see `tools_arg` of the target)."""
    fail_tools: Annotated[_Names, Field(strict=False)] | None = None
    """agent: tools whose calls are refused before they reach the server, as if the server had failed."""
    mcp_tools_only: bool | None = None
    """Drop Claude Code's built-in tools for this item."""


class Item(_Strict):
    """One case. `parse_items` is the way to get one: it also checks the rules across fields."""

    id: str
    input: ItemInput
    expected_output: _NonBlank | None = None
    metadata: ItemMetadata
    status: Literal["ACTIVE", "ARCHIVED"] = "ACTIVE"

    @property
    def query(self) -> str:
        return self.input.query

    @property
    def kind(self) -> Kind:
        return self.metadata.kind

    @property
    def expected_tools(self) -> tuple[str, ...]:
        return self.metadata.expected_tools or ()


class NothingSelectedError(TwogateError):
    """No active item has what was asked for by --id and --category."""


class Problem(BaseModel):
    """One mistake in a dataset: which item, which field, what is wrong and how to mend it."""

    model_config = ConfigDict(frozen=True)

    item: str
    field: str
    message: str

    def __str__(self) -> str:
        line = f"{self.item}: {self.field}: {self.message}"
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


# Fields of metadata a kind needs or refuses, with what to do instead. `expectedOutput` stands beside metadata.
_NEEDS: Mapping[Kind, tuple[str, str]] = {
    "tool-call": ("metadata.expectedTools", "name the tools any of which is a right first call"),
    "agent": ("expectedOutput", "write the reference the judge compares with: PASS only if … FAIL if …"),
}
_REFUSES: Mapping[Kind, Mapping[str, str]] = {
    "tool-call": {
        "expectedOutput": "nothing runs, so no judge reads it",
        "metadata.expectedErrors": "every call is denied",
        "metadata.failTools": "every call is denied",
        "metadata.maxTurns": "only the first call is measured",
    },
    "agent": {
        "metadata.expectedTools": "the judge decides by expectedOutput",
        "metadata.expectedArgs": "the judge decides by expectedOutput",
    },
}


def gate_of_dataset(name: str, names: Mapping[Gate, str] = DEFAULT_DATASETS) -> Gate | None:
    """The gate a dataset belongs to, by its name or its ending (`…-pr`, `…-merge`); None when it says neither."""
    for gate, default in names.items():
        if name == default:
            return gate
    for gate in names:
        if re.search(rf"(^|[-_/]){gate}$", name):
            return gate
    return None


def parse_items(raw_items: Iterable[Mapping[str, Any]], gate: Gate | None = None) -> list[Item]:
    """Validate items as a dataset holds them (camelCase keys) and return the active ones sorted by id.

    gate: the gate the dataset belongs to; None lets the first item decide, and the others must agree with it.

    Raises TwogateError with one line a problem, over all active items at once. Archived items are skipped.
    """
    active = [raw for raw in raw_items if raw.get("status") != "ARCHIVED"]
    active.sort(key=_label)
    if gate is None:
        gate = next((found for raw in active if (found := _gate_of_id(raw.get("id"))) is not None), None)
    problems: list[Problem] = []
    items: list[Item] = []
    for raw in active:
        mistakes = check_item(raw, gate)
        problems.extend(mistakes)
        if not mistakes:
            items.append(Item.model_validate(_without_nulls(raw)))
    counts = Counter(_label(raw) for raw in active)
    problems.extend(
        Problem(item=label, field="id", message=f"stands {count} times; give each item an id of its own")
        for label, count in counts.items()
        if count > 1 and label != _NO_ID
    )
    if problems:
        raise TwogateError(str(problem) for problem in problems)
    return items


def check_item(raw: Mapping[str, Any], gate: Gate | None = None) -> list[Problem]:
    """Every problem of one item, shapes and rules across fields alike. An empty list: the item is valid."""
    label = _label(raw)
    shapes = _shape_problems(raw, label)
    reported = {problem.field for problem in shapes}
    rules = [problem for problem in _rule_problems(raw, gate, label) if problem.field not in reported]
    return shapes + rules


def select(items: Sequence[Item], id_regex: str | None = None, category: str | None = None) -> list[Item]:
    """The items whose id the regular expression finds a match in and whose category fits the pattern.

    category: `*` stands for any text, every other character for itself.

    Raises TwogateError when the expression is invalid or nothing is left.
    """
    try:
        by_id = re.compile(id_regex or "")
    except re.error as error:
        problem = f"--id {id_regex!r} is not a regular expression: {error}; escape special characters with \\"
        raise TwogateError(problem) from None
    by_category = re.compile(".*".join(map(re.escape, ("*" if category is None else category).split("*"))), re.DOTALL)
    chosen = [item for item in items if by_id.search(item.id) and by_category.fullmatch(item.metadata.category)]
    if chosen:
        return chosen
    asked = [f"--id {id_regex!r}"] * (id_regex is not None) + [f"--category {category!r}"] * (category is not None)
    if not items:
        raise TwogateError("the dataset has no active item; add items or choose another --dataset")
    near = difflib.get_close_matches(
        (id_regex or category or "").strip("^$"), [item.id for item in items], n=3, cutoff=0.4
    )
    hint = f"; near: {', '.join(near)}" if near else ""
    raise NothingSelectedError(f"{' and '.join(asked)} selects none of the {len(items)} active items{hint}")


_NO_ID = "(item without an id)"


def _label(raw: Mapping[str, Any]) -> str:
    value = raw.get("id")
    return value if isinstance(value, str) and value.strip() else _NO_ID


def _gate_of_id(value: Any) -> Gate | None:
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    return "pr" if match["gate"] == "pr" else "merge"


_KNOBS = frozenset(to_camel(name) for name in ItemMetadata.model_fields)


def _without_nulls(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Langfuse returns null for what was never set: null in an optional field counts as absent."""
    known = {"id", "input", "expectedOutput", "metadata", "status"}
    item = {key: value for key, value in raw.items() if key in known and value is not None}
    metadata = item.get("metadata")
    if isinstance(metadata, Mapping):
        # An unknown key stays, so that it is told of whatever its value is.
        item["metadata"] = {key: value for key, value in metadata.items() if value is not None or key not in _KNOBS}
    return item


def _shape_problems(raw: Mapping[str, Any], label: str) -> list[Problem]:
    try:
        Item.model_validate(_without_nulls(raw))
    except ValidationError as error:
        return [
            Problem(item=label, field=_field(details["loc"]), message=_message(details))
            for details in error.errors(include_url=False)
        ]
    return []


def _field(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _message(details: Any) -> str:
    """A pydantic error as this project's sentence: what is there, what belongs there."""
    kind, value = details["type"], details.get("input")
    field = str(details["loc"][-1])
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        known = [to_camel(name) for name in ItemMetadata.model_fields]
        if details["loc"][0] == "input":
            known = ["query"]
        near = difflib.get_close_matches(field, known, n=1)
        return f"is not a known key; did you mean {near[0]}?" if near else f"is not a known key; use {', '.join(known)}"
    if kind in ("blank", "padded"):
        return str(details["msg"])
    if kind == "greater_than":
        return f"is {value!r}; must be a whole number of 1 or more"
    if kind.startswith("int_"):
        return f"is {value!r}; must be a whole number of 1 or more"
    if kind == "literal_error":
        return f"is {value!r}; must be {details['ctx']['expected']}"
    if kind == "string_type" and field == "expectedOutput":
        # "42" is stored as the number 42 by Langfuse
        return f"is {value!r}; must be text (Langfuse stores text that reads as JSON parsed: put it in a sentence)"
    wanted = {
        "string_type": "text",
        "bool_type": "true or false",
        "tuple_type": "a list of names",
        "dict_type": "an object",
        "model_type": "an object",
        "model_attributes_type": "an object",
    }.get(kind)
    return f"is {value!r}; must be {wanted}" if wanted else f"{details['msg']} (is {value!r})"


def _rule_problems(raw: Mapping[str, Any], gate: Gate | None, label: str) -> list[Problem]:
    """The rules across fields, read off the raw values so that a mistake elsewhere does not hide them."""
    problems: list[Problem] = []

    def problem(field: str, message: str) -> None:
        problems.append(Problem(item=label, field=field, message=message))

    metadata = raw.get("metadata")
    values: dict[str, Any] = {"expectedOutput": raw.get("expectedOutput")}
    if isinstance(metadata, Mapping):
        values.update({f"metadata.{key}": value for key, value in metadata.items()})
    kind = values.get("metadata.kind")
    id_gate = _gate_of_id(raw.get("id"))

    identifier = raw.get("id")
    if identifier is None or (isinstance(identifier, str) and not identifier.strip()):
        problem("id", "is missing or empty; use the form pr/<tool>/<slug> or merge/<family>/<slug>")
    elif isinstance(identifier, str):
        if id_gate is None:
            problem("id", "does not have the form pr/<tool>/<slug> or merge/<family>/<slug>; rename the item")
        elif len(identifier) > _ID_LENGTH:
            problem("id", f"has {len(identifier)} characters; Langfuse takes {_ID_LENGTH} at most")

    if id_gate is not None and gate is not None and id_gate != gate:
        problem(
            "id",
            f"belongs to the {id_gate} gate, the dataset to the {gate} gate; move it or use {_ID_FORM[gate]}",
        )
    if kind in ("tool-call", "agent"):
        expected_gate: Gate = "pr" if kind == "tool-call" else "merge"
        if (id_gate is not None and id_gate != expected_gate) or (gate is not None and gate != expected_gate):
            where = (
                f"an id that starts with {id_gate}/" if id_gate not in (None, expected_gate) else f"the {gate} dataset"
            )
            other = KIND_OF_GATE["merge" if expected_gate == "pr" else "pr"]
            problem(
                "metadata.kind",
                f"{kind!r} does not go with {where}; use {other!r}, or the form {_ID_FORM[expected_gate]} "
                f"in the {expected_gate} dataset",
            )
        field, advice = _NEEDS[kind]
        if _is_empty(values.get(field)):
            problem(field, f"is needed with kind {kind!r}; {advice}")
        for field, reason in _REFUSES[kind].items():
            if values.get(field) is not None:
                problem(field, f"is not for kind {kind!r} ({reason}); remove it")

    for name in ("expectedTools", "expectedErrors", "tools", "failTools"):
        names = values.get(f"metadata.{name}")
        if not isinstance(names, list | tuple):
            continue
        if not names and f"metadata.{name}" not in {found.field for found in problems}:
            problem(f"metadata.{name}", "is an empty list; name at least one or remove it")
        texts = [entry for entry in names if isinstance(entry, str)]
        for entry, count in Counter(texts).items():
            if count > 1:
                problem(f"metadata.{name}", f"names {entry!r} {count} times; once is enough")
            if name != "tools" and entry.startswith("mcp__"):
                plain = entry.split("__", 2)[-1]
                problem(
                    f"metadata.{name}",
                    f"{entry!r} has a client's prefix; write {plain!r}, as the server names it",
                )
    if values.get("metadata.expectedArgs") == {}:
        problem("metadata.expectedArgs", "is an empty object; name at least one argument or remove it")

    failing, expected = values.get("metadata.failTools"), values.get("metadata.expectedErrors")
    if kind == "agent" and isinstance(failing, list | tuple):
        allowed = expected if isinstance(expected, list | tuple) else ()
        for entry in dict.fromkeys(entry for entry in failing if isinstance(entry, str)):
            if entry not in allowed:
                problem(
                    "metadata.failTools",
                    f"{entry!r} is not in expectedErrors, so the trial could never pass; add it there",
                )
    return problems


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value == [] or value == ()
