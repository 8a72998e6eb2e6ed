"""Labelled conversations: what people say a judge should have decided. The format of `twogate judge check`.

Strict JSON, version 1: unknown keys and wrong types are problems, and every problem of the file is reported at once.
A conversation holds what a judge sees and no more, so a label must follow from that alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from evals.conversation import Conversation, ToolCall, Turn
from evals.errors import TwogateError
from evals.scoring.judge import Verdict
from evals.shipped import guide

_NonBlank = Annotated[str, StringConstraints(pattern=r"\S")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LabelledCall(_Strict):
    """A call the agent made."""

    tool: str
    """The name as the server gives it; it need not exist, the agent may have made it up."""
    server: _NonBlank | None = None
    """Left out for a built-in tool."""
    arguments: dict[str, Any] = {}


class LabelledTurn(_Strict):
    """One turn of the agent. With calls its text is narration, which a judge is not shown."""

    text: str = ""
    calls: Annotated[tuple[LabelledCall, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _check(self) -> LabelledTurn:
        if not self.text and not self.calls:
            raise PydanticCustomError("empty_turn", 'a turn needs "text" or "calls"')
        return self


class LabelledConversation(_Strict):
    """A conversation and the verdict people gave it."""

    id: _NonBlank
    query: _NonBlank
    reference: _NonBlank
    turns: Annotated[tuple[LabelledTurn, ...], Field(strict=False)]
    """May be empty: an agent that said and did nothing."""
    label: Verdict
    note: _NonBlank
    """Why the label is what it is."""
    tags: Annotated[tuple[_NonBlank, ...], Field(strict=False)] = ()

    def conversation(self) -> Conversation:
        """As an agent's conversation; its times mean nothing."""
        turns = []
        for number, turn in enumerate(self.turns):
            calls = tuple(
                ToolCall(
                    id=f"{number}.{place}",
                    name=f"mcp__{call.server}__{call.tool}" if call.server else call.tool,
                    server=call.server,
                    arguments=call.arguments,
                    called_at=_NO_TIME,
                )
                for place, call in enumerate(turn.calls)
            )
            turns.append(
                Turn(message_id=str(number), text=turn.text, calls=calls, started_at=_NO_TIME, ended_at=_NO_TIME)
            )
        return Conversation(query=self.query, turns=tuple(turns), started_at=_NO_TIME, ended_at=_NO_TIME)


class LabelledFile(_Strict):
    """The file."""

    version: Literal[1]
    description: str | None = None
    conversations: Annotated[tuple[LabelledConversation, ...], Field(strict=False, min_length=1)]


_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def load_labelled(path: Path) -> tuple[LabelledConversation, ...]:
    """Read a file of labelled conversations. Raises TwogateError with every problem found in it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}; give the path of a JSON file") from None
    except UnicodeDecodeError:
        raise TwogateError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise TwogateError(
            f"{path}: is not JSON: {error.msg} at line {error.lineno}, column {error.colno}; mend it there"
        ) from None
    except RecursionError:
        raise TwogateError(f"{path}: is nested too deep to be read; see {guide('judges.md')} for the format") from None
    problems: list[str] = []
    conversations: tuple[LabelledConversation, ...] = ()
    try:
        conversations = LabelledFile.model_validate(data).conversations
    except ValidationError as error:
        problems += _shape_problems(data, error.errors(include_url=False))
    problems += _repeated(data)
    if problems:
        raise TwogateError(f"{path}: {problem}" for problem in problems)
    return conversations


def _repeated(data: Any) -> list[str]:
    """Ids that stand more than once; read off the raw data, so that another mistake does not hide them."""
    raw = data.get("conversations") if isinstance(data, dict) else None
    if not isinstance(raw, list):
        return []
    ids = Counter(str(one["id"]) for one in raw if isinstance(one, dict) and isinstance(one.get("id"), str))
    return [
        f"{name}: id: stands {count} times; give each conversation an id of its own"
        for name, count in ids.items()
        if count > 1
    ]


_SENTENCES = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a known key; remove it, or correct its spelling",
    "string_pattern_mismatch": "is empty; write a text",
    "string_type": "must be text; correct it",
    "dict_type": "must be an object; correct it",
    "model_type": "must be an object; correct it",
    "model_attributes_type": "must be an object; correct it",
    "tuple_type": "must be a list; correct it",
}


def _shape_problems(data: Any, details: Sequence[ErrorDetails]) -> list[str]:
    places = [detail["loc"] for detail in details]
    lines = []
    for detail in details:
        place = detail["loc"]
        if detail["type"] == "too_short" and any(other != place and other[: len(place)] == place for other in places):
            continue  # pydantic counts the valid ones only: each bad one has its own line
        lines.append(_line(data, detail))
    return lines


def _line(data: Any, detail: ErrorDetails) -> str:
    location = list(detail["loc"])
    where = ""
    if len(location) >= 2 and location[0] == "conversations" and isinstance(location[1], int):
        where = _label(data, location[1]) + ": "
        location = location[2:]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    value = detail.get("input")
    kind = detail["type"]
    if kind == "literal_error":
        sentence = f"is {value!r}; must be {detail.get('ctx', {}).get('expected')}"
    elif kind == "too_short":
        sentence = "is empty; add one"
    elif kind == "empty_turn":
        sentence = f"{detail['msg']}; add one, or leave the turn out"
    else:
        sentence = _SENTENCES.get(kind) or f"{detail['msg'][:1].lower()}{detail['msg'][1:]}; correct it"
    return f"{where}{field + ': ' if field else ''}{sentence}"


def _label(data: Any, number: int) -> str:
    try:
        name = data["conversations"][number]["id"]
    except (KeyError, TypeError, IndexError):
        name = None
    return str(name) if isinstance(name, str) and name.strip() else f"conversations[{number}]"
