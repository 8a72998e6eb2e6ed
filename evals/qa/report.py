"""What a question-and-answer run came to: the report's content. `evals.qa.markdown` writes it for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.conversation import ToolCall
from evals.qa.prompt import read_reply
from evals.runs.models import RunSummary
from evals.runs.trial import Outcome, TrialResult
from evals.scoring.exact import Difference, score_exact

GENERAL = "general"
"""Feedback that names no tool."""
_HEADING = re.compile(r"#+\s.*|\*\*[^*]+\*\*:?")
_DRESS = re.compile(r"^[#*`\s]+|(?:\(\))?[*`:\s]*(?:\s(?:tool|Tool))?[*`:\s]*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ToolUse(_Frozen):
    """The calls of one tool in one task. Times in seconds; None when no call came back."""

    tool: str
    calls: int
    errors: int
    total_seconds: float | None
    average_seconds: float | None


class Task(_Frozen):
    """One trial of one question."""

    item: str
    number: int
    iteration: int
    question: str
    expected: str
    actual: str | None
    outcome: Outcome
    correct: bool
    near_miss: tuple[Difference, ...]
    reason: str
    seconds: float | None
    """None for a trial that was not run."""
    tool_calls: int
    tools: tuple[ToolUse, ...]
    summary: str | None
    feedback: str | None
    total_tokens: int | None
    cost_usd: float | None
    trace_id: str | None


class Feedback(_Frozen):
    """What agents said of one tool, the same words once."""

    text: str
    items: tuple[str, ...]


class ToolFeedback(_Frozen):
    """All feedback on one tool, or `GENERAL`."""

    tool: str
    feedback: tuple[Feedback, ...]


class QaReport(_Frozen):
    """The whole report. Its JSON form is this model's."""

    version: Literal[1] = 1
    file: str
    run: str
    model: str
    scripted: bool
    target: str
    correct: int
    total: int
    """Requested trials: one that ended in an error, or was not run, is not correct."""
    errors: int
    not_run: int
    accuracy: float
    threshold: float
    met: bool
    near_misses: int
    average_seconds: float | None
    """Over the trials with a verdict; None when there are none."""
    average_tool_calls: float | None
    total_tool_calls: int
    tasks: tuple[Task, ...]
    feedback: tuple[ToolFeedback, ...]
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    total_tokens: int | None
    cost_usd: float | None
    """As the model's endpoint reported it; None when it did not: prices are not guessed."""
    interrupted: bool
    url: str | None


class Asked(_Frozen):
    """A question as the report needs it."""

    item: str
    number: int
    question: str
    expected: str


def build_report(
    summary: RunSummary,
    asked: Sequence[Asked],
    iterations: int,
    results: Iterable[TrialResult],
    *,
    file: str,
    tool_names: Sequence[str],
) -> QaReport:
    """Fold a run's trials into its report: every requested trial is in it, those that were never run too."""
    by_trial = {(result.item, result.iteration): result for result in results}
    tasks = tuple(
        _task(one, iteration, by_trial.get((one.item, iteration)))
        for one in asked
        for iteration in range(1, iterations + 1)
    )
    judged = [task for task in tasks if task.outcome in ("passed", "failed") and task.seconds is not None]
    usages = [
        result.conversation.usage
        for result in by_trial.values()
        if result.conversation is not None and result.conversation.usage is not None
    ]
    return QaReport(
        file=file,
        run=summary.run,
        model=summary.metadata["agent_model"],
        scripted=summary.scripted,
        target=summary.metadata["target"],
        correct=summary.passed,
        total=summary.requested,
        errors=summary.error,
        not_run=summary.not_run,
        accuracy=summary.pass_rate,
        threshold=summary.threshold,
        met=summary.met,
        near_misses=sum(bool(task.near_miss) for task in tasks),
        average_seconds=_average([task.seconds or 0.0 for task in judged]),
        average_tool_calls=_average([float(task.tool_calls) for task in judged]),
        total_tool_calls=sum(task.tool_calls for task in tasks),
        tasks=tasks,
        feedback=gather_feedback(tasks, tool_names),
        input_tokens=sum(one.input_tokens for one in usages) if usages else None,
        output_tokens=sum(one.output_tokens for one in usages) if usages else None,
        cache_read_tokens=sum(one.cache_read_tokens for one in usages) if usages else None,
        cache_write_tokens=sum(one.cache_write_tokens for one in usages) if usages else None,
        total_tokens=summary.total_tokens,
        cost_usd=summary.cost_usd,
        interrupted=summary.interrupted,
        url=summary.url,
    )


def _task(asked: Asked, iteration: int, result: TrialResult | None) -> Task:
    conversation = result.conversation if result is not None else None
    reply = read_reply(conversation) if conversation is not None else None
    calls = conversation.calls if conversation is not None else ()
    wrong = result is not None and result.outcome == "failed" and reply is not None
    return Task(
        item=asked.item,
        number=asked.number,
        iteration=iteration,
        question=asked.question,
        expected=asked.expected,
        actual=reply.response if reply is not None else None,
        outcome=result.outcome if result is not None else "not_run",
        correct=result is not None and result.outcome == "passed",
        near_miss=score_exact(asked.expected, reply.response).near_miss if wrong and reply is not None else (),
        reason=result.reason if result is not None else "not run",
        seconds=result.seconds if result is not None else None,
        tool_calls=len(calls),
        tools=use_by_tool(calls),
        summary=reply.summary if reply is not None else None,
        feedback=reply.feedback if reply is not None else None,
        total_tokens=conversation.usage.total_tokens if conversation is not None and conversation.usage else None,
        cost_usd=conversation.cost_usd if conversation is not None else None,
        trace_id=result.trace_id if result is not None else None,
    )


def use_by_tool(calls: Sequence[ToolCall]) -> tuple[ToolUse, ...]:
    """The calls by tool, in the order the tools were first called."""
    found: dict[str, list[ToolCall]] = {}
    for call in calls:
        found.setdefault(call.tool, []).append(call)
    uses = []
    for tool, those in found.items():
        seconds = [(one.returned_at - one.called_at).total_seconds() for one in those if one.returned_at is not None]
        uses.append(
            ToolUse(
                tool=tool,
                calls=len(those),
                errors=sum(one.is_error for one in those),
                total_seconds=sum(seconds) if seconds else None,
                average_seconds=_average(seconds),
            )
        )
    return tuple(uses)


def gather_feedback(tasks: Sequence[Task], tool_names: Sequence[str]) -> tuple[ToolFeedback, ...]:
    """All tasks' feedback by the tool it names, most spoken-of first; what names none is `GENERAL`, last.

    An entry that names two tools stands under both.
    """
    names = dict.fromkeys([*tool_names, *(use.tool for task in tasks for use in task.tools)])
    found: dict[str, dict[str, list[str]]] = {}
    for task in tasks:
        for section, entry in _entries(task.feedback or "", list(names)):
            named = [name for name in names if _names(entry, name)]
            labelled = any(_without_label(entry, name) != entry for name in named)
            for tool in dict.fromkeys(named if labelled else [*section, *named]) or [GENERAL]:
                items = found.setdefault(tool, {}).setdefault(_without_label(entry, tool), [])
                if task.item not in items:
                    items.append(task.item)
    weight = Counter({tool: sum(map(len, entries.values())) for tool, entries in found.items()})
    return tuple(
        ToolFeedback(
            tool=tool,
            feedback=tuple(Feedback(text=text, items=tuple(items)) for text, items in found[tool].items()),
        )
        for tool in sorted(found, key=lambda tool: (tool == GENERAL, -weight[tool], tool))
    )


@dataclass
class _Section:
    """What stands under a line that is only a tool's name. `indent` is -1 for a heading, else the bullet's."""

    indent: int
    tools: list[str]
    deeper: bool = False
    """Whether a line in it stood further in than its bullet: then one that does not is no longer in it."""


def _entries(feedback: str, names: Sequence[str]) -> list[tuple[list[str], str]]:
    """A feedback text's entries, each with the tools under whose name it stands.

    An entry is a line or bullet; a line that is further in goes on with the one before. A line that is only a tool's
    name, in any dress (``**search**``, ``### `search`:``), holds for the entries after it until the next such line.
    """
    entries: list[tuple[list[str], str]] = []
    sections: list[_Section] = []
    goes_on = False
    for line in feedback.splitlines():
        bullet = _BULLET.match(line)
        text = _BULLET.sub("", line).strip()
        if not text:
            continue
        indent = len(line) - len(line.lstrip())
        if goes_on and indent and bullet is None:
            tools, before = entries[-1]
            entries[-1] = (tools, f"{before} {text}")
            continue
        while sections and 0 <= sections[-1].indent >= indent and sections[-1].deeper:
            sections.pop()
        tools = _heading(text, names)
        goes_on = not tools
        if tools:
            sections = [one for one in sections if one.indent < indent] if bullet is not None else []
            sections.append(_Section(indent if bullet is not None else -1, tools))
            continue
        if bullet is None and _HEADING.fullmatch(text):
            sections = []
        if sections and indent > sections[-1].indent:
            sections[-1].deeper = True
        entries.append((sections[-1].tools if sections else [], text))
    return entries


def _heading(text: str, names: Sequence[str]) -> list[str]:
    """The tools that a line consists of; empty when there is anything else in it."""
    parts = re.split(r"\s*(?:,|/|&|\band\b)\s*", text.strip("#:*_` \t")) if text not in names else [text]
    found = [next((name for name in names if _DRESS.sub("", part) in (name, name.strip("_"))), None) for part in parts]
    return [name for name in found if name is not None] if all(found) else []


def _without_label(entry: str, tool: str) -> str:
    """An entry without the ``tool:`` it starts with, which its place among the tool's says already."""
    return re.sub(rf"\A[`*_]*{re.escape(tool)}[`*_]*\s*:[`*_]*\s*(?=\S)", "", entry)


def _names(entry: str, tool: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", entry) is not None


def _average(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
