"""What a task can do: pure functions from an input object to a result object.

An input is checked when the task runs, not when it is saved: part of it may come with the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, ValidationError

from examples.tasks_server.validation import describe_problems

_Given = TypeVar("_Given", bound=BaseModel)


class ActionError(Exception):
    """The input does not fit the action, or the action can't work on it; the run fails with this text."""


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _CountWords(_Input):
    text: str


class _SumNumbers(_Input):
    numbers: Annotated[list[Annotated[float, Field(ge=-1e15, le=1e15)]], Field(min_length=1)]


class _FillTemplate(_Input):
    template: str
    values: dict[str, str | StrictInt | StrictFloat] = Field(default_factory=dict)


class _SortLines(_Input):
    text: str
    unique: bool = False
    descending: bool = False


def _count_words(given: _CountWords) -> dict[str, Any]:
    return {
        "words": len(given.text.split()),
        "characters": len(given.text),
        "lines": len(given.text.splitlines()),
    }


def _sum_numbers(given: _SumNumbers) -> dict[str, Any]:
    # Decimals of the shortest text: people expect 0.1 + 0.2 to be 0.3.
    total = sum((Decimal(repr(number)) for number in given.numbers), Decimal(0))
    return {"total": _plain(total), "count": len(given.numbers), "average": float(total / len(given.numbers))}


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _fill_template(given: _FillTemplate) -> dict[str, Any]:
    holes = re.compile(r"\{\{\s*([A-Za-z0-9_-]+)\s*\}\}")
    missing = sorted({name for name in holes.findall(given.template) if name not in given.values})
    if missing:
        raise ActionError(f"the template needs values for: {', '.join(missing)}")
    return {"text": holes.sub(lambda hole: str(given.values[hole[1]]), given.template)}


def _sort_lines(given: _SortLines) -> dict[str, Any]:
    lines = given.text.splitlines()
    if given.unique:
        lines = list(dict.fromkeys(lines))
    lines.sort(reverse=given.descending)
    return {"text": "\n".join(lines), "lines": len(lines)}


def _checked(model: type[_Given], act: Callable[[_Given], dict[str, Any]], value: Mapping[str, Any]) -> dict[str, Any]:
    try:
        given = model.model_validate(dict(value))
    except ValidationError as error:
        raise ActionError("; ".join(describe_problems(error))) from None
    return act(given)


_ACTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "count-words": partial(_checked, _CountWords, _count_words),
    "sum-numbers": partial(_checked, _SumNumbers, _sum_numbers),
    "fill-template": partial(_checked, _FillTemplate, _fill_template),
    "sort-lines": partial(_checked, _SortLines, _sort_lines),
}

ACTION_NAMES = tuple(_ACTIONS)
ACTION_HELP = (
    'count-words takes {"text"}; sum-numbers takes {"numbers": [...]}; fill-template takes {"template", "values"} '
    'and fills {{name}} from values; sort-lines takes {"text", "unique"?, "descending"?}'
)


def perform(action: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a known action on an input. Raises ActionError, KeyError when the action is unknown."""
    return _ACTIONS[action](value)
