"""The script format, version 1: what the scripted model answers, and when. docs/scripted-model.md is its reference.

A script is JSON and strict: an unknown key or a wrong type is a problem, and every problem of every file is
reported at once, with the file, the entry, the field and how to mend it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

FaultKind = Literal[
    "400",
    "401",
    "403",
    "404",
    "413",
    "429",
    "500",
    "503",
    "529",
    "529_midstream",
    "drop",
    "drop_midstream",
    "slow_stream",
    "malformed",
    "hang",
]
StopReason = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal"]
Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]
Tokens = Annotated[int, Field(ge=0)]
Name = Annotated[str, StringConstraints(min_length=1)]
Query = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _one_of(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        wanted = " or ".join(f'"{name}"' for name in names)
        found = " and ".join(given) + " are" if given else "none is"
        raise PydanticCustomError("one_of", f"exactly one of {wanted} must be there, and {found}")


class Match(_Strict):
    """How an entry finds its query when exact text will not do: a regular expression (searched), or a part."""

    regex: Name | None = None
    contains: Query | None = None

    @model_validator(mode="after")
    def _check(self) -> Match:
        _one_of(self, "regex", "contains")
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except re.error as error:
                reason = str(error).replace("{", "{{").replace("}", "}}")
                raise PydanticCustomError("regex", f"regex does not compile: {reason}") from None
        return self

    def found_in(self, text: str) -> bool:
        """Whether the text holds it."""
        if self.regex is not None:
            return re.search(self.regex, text) is not None
        assert self.contains is not None
        return self.contains in text


class Usage(_Strict):
    """Token counts that replace the computed ones; ``cost`` (US dollars) is sent as OpenRouter sends it."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cost: Annotated[float, Field(ge=0)] | None = None


class Call(_Strict):
    """A tool call. The name is a tool's own name; the prefix an agent gives it is found in the request."""

    name: Name
    input: dict[str, Any] = Field(default_factory=dict)


class Turn(_Strict):
    """One answer of the model. An empty ``text`` with nothing else scripts an empty answer."""

    text: str | None = None
    thinking: Name | None = None
    calls: tuple[Call, ...] = Field(default=(), strict=False)
    usage: Usage | None = None
    latency_ms: Milliseconds | None = None
    stop_reason: StopReason | None = None

    @model_validator(mode="after")
    def _check(self) -> Turn:
        if self.text is None and not self.calls and self.thinking is None:
            raise PydanticCustomError("empty_turn", 'a turn needs "text" or "calls"')
        return self


Turns = Annotated[tuple[Turn, ...], Field(min_length=1, strict=False)]


def _check_times(value: Any) -> Any:
    if value == "always" or (type(value) is int and value >= 1):
        return value
    raise PydanticCustomError("times", 'must be a whole number from 1, or "always"')


Times = Annotated[int | Literal["always"], PlainValidator(_check_times)]


class Fault(_Strict):
    """What goes wrong instead of an answer, for ``times`` requests (of turn ``turn`` only, if given)."""

    kind: FaultKind
    times: Times = 1
    turn: Annotated[int, Field(ge=0)] | None = None
    retry_after: Annotated[float, Field(ge=0)] | None = None
    message: Name | None = None
    delay_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Fault:
        if self.retry_after is not None and self.kind not in ("429", "500", "503", "529"):
            raise PydanticCustomError("retry_after", '"retry_after" goes with kinds 429, 500, 503 and 529 only')
        if self.delay_ms is not None and self.kind != "slow_stream":
            raise PydanticCustomError("delay_ms", '"delay_ms" goes with kind slow_stream only')
        return self


Faults = Annotated[tuple[Fault, ...], Field(strict=False)]


class Entry(_Strict):
    """What entries for the agent and for the judge share."""

    query: Query | None = None
    match: Match | None = None
    model: Name | None = None
    description: str | None = None
    latency_ms: Milliseconds | None = None
    chunk_delay_ms: Milliseconds | None = None
    faults: Faults = ()

    @model_validator(mode="after")
    def _check_entry(self) -> Entry:
        _one_of(self, "query", "match")
        for fault in self.faults[:-1]:
            if fault.times == "always" and fault.turn is None:
                raise PydanticCustomError(
                    "unreachable", 'the faults after one with "times": "always" are never reached; put it last'
                )
        return self

    @property
    def key(self) -> str:
        """The entry's query or pattern, for messages."""
        if self.query is not None:
            return self.query
        assert self.match is not None
        return self.match.regex or self.match.contains or ""


class AgentEntry(Entry):
    """What the model answers an agent that asks this query."""

    turns: Turns | None = None
    trials: Annotated[tuple[Turns, ...], Field(min_length=1, strict=False)] | None = None

    @model_validator(mode="after")
    def _check(self) -> AgentEntry:
        _one_of(self, "turns", "trials")
        return self

    def turns_of(self, conversation: int) -> tuple[Turn, ...]:
        """The turns of the n-th conversation (from 0) on this query; ``trials`` repeat from the first."""
        if self.turns is not None:
            return self.turns
        assert self.trials is not None
        return self.trials[conversation % len(self.trials)]


class Answer(_Strict):
    """One answer of a judge: a verdict with a reason, another JSON object, or verbatim text."""

    verdict: Literal["PASS", "FAIL"] | None = None
    reason: str | None = None
    output: dict[str, Any] | None = None
    raw: str | None = None
    usage: Usage | None = None
    latency_ms: Milliseconds | None = None

    @model_validator(mode="after")
    def _check(self) -> Answer:
        _one_of(self, "verdict", "output", "raw")
        if self.reason is not None and self.verdict is None:
            raise PydanticCustomError("reason", '"reason" goes with "verdict" only')
        return self


class JudgeEntry(Entry):
    """What the model answers a judge whose request speaks of this query."""

    verdict: Literal["PASS", "FAIL"] | None = None
    reason: str | None = None
    output: dict[str, Any] | None = None
    raw: str | None = None
    usage: Usage | None = None
    answers: Annotated[tuple[Answer, ...], Field(min_length=1, strict=False)] | None = None

    @model_validator(mode="after")
    def _check(self) -> JudgeEntry:
        _one_of(self, "verdict", "output", "raw", "answers")
        if self.reason is not None and self.verdict is None:
            raise PydanticCustomError("reason", '"reason" goes with "verdict" only')
        if self.usage is not None and self.answers is not None:
            raise PydanticCustomError("usage", '"usage" beside "answers" belongs inside each answer')
        return self

    def answer(self, number: int) -> Answer:
        """The answer to the n-th request (from 0) on this entry; ``answers`` repeat from the first."""
        if self.answers is not None:
            return self.answers[number % len(self.answers)]
        return Answer(verdict=self.verdict, reason=self.reason, output=self.output, raw=self.raw, usage=self.usage)


class Default(_Strict):
    """What is answered to a query that no entry matches. Without it such a request is refused, loudly."""

    turns: Turns
    description: str | None = None


class ScriptFile(_Strict):
    """One file. ``latency_ms`` and ``chunk_delay_ms`` are for the entries that do not say otherwise."""

    version: Literal[1]
    description: str | None = None
    latency_ms: Milliseconds | None = None
    chunk_delay_ms: Milliseconds | None = None
    agent: Annotated[tuple[AgentEntry, ...], Field(strict=False)] = ()
    judge: Annotated[tuple[JudgeEntry, ...], Field(strict=False)] = ()
    default: Default | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """All entries of one or several files, checked against each other."""

    agent: tuple[AgentEntry, ...]
    judge: tuple[JudgeEntry, ...]
    default: Default | None = None
    files: tuple[str, ...] = ()


def shorten(text: str, width: int = 80) -> str:
    """One line of at most ``width`` characters, quoted, for messages."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= width else f'"{line[: width - 1]}…"'
