"""A `QaReport` as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from evals.gate import percent
from evals.qa.report import QaReport, Task

_MARKS = {"passed": "✅", "failed": "❌", "error": "🔥 error", "not_run": "⏭️ not run"}


def to_markdown(report: QaReport) -> str:
    """The report for people; ends with a line break."""
    return "\n".join([*_head(report), *_tasks(report), *_feedback(report), *_spent(report)]) + "\n"


def _head(report: QaReport) -> Iterable[str]:
    yield f"# Evaluation report: {report.file}"
    yield ""
    if report.scripted:
        yield "> 🎭 The model was scripted: this report says nothing of a real model."
        yield ""
    if report.interrupted:
        yield "> ⏹️ Interrupted: the trials that were not run count as not correct."
        yield ""
    rate = Fraction(report.correct, report.total) if report.total else Fraction(0)
    threshold = Fraction(report.threshold).limit_denominator(1_000_000)
    yield f"- **Accuracy**: {report.correct}/{report.total} ({percent(rate, threshold)} %)"
    verdict = "met" if report.met else "not met"
    yield f"- **Threshold**: {report.threshold * 100:g} %, {verdict}"
    if report.near_misses:
        yield f"- **Near misses**: {report.near_misses} (wrong in spelling alone: the question should fix the format)"
    if report.errors or report.not_run:
        yield f"- **Never completed**: {report.errors} errors, {report.not_run} not run"
    yield f"- **Average task duration**: {_seconds(report.average_seconds)}"
    yield f"- **Average tool calls per task**: {_number(report.average_tool_calls)}"
    yield f"- **Total tool calls**: {report.total_tool_calls}"
    yield f"- **Model**: {_inline(report.model)}"
    yield f"- **Target**: {_inline(report.target)}"
    yield f"- **Run**: {_inline(report.run)}" + (f" ([in Langfuse]({report.url}))" if report.url else "")
    yield ""


def _tasks(report: QaReport) -> Iterable[str]:
    several = any(task.iteration > 1 for task in report.tasks)
    for task in report.tasks:
        yield from _task(task, several)


def _task(task: Task, several: bool) -> Iterable[str]:
    trial = f", trial {task.iteration}" if several else ""
    yield f"## Task {task.number}{trial}"
    yield ""
    yield "**Question**"
    yield ""
    yield _quote(task.question)
    yield ""
    yield f"- **Expected**: {_code(task.expected)}"
    yield f"- **Actual**: {_code(task.actual) if task.actual is not None else 'none'}"
    yield f"- **Correct**: {_MARKS[task.outcome]}"
    if task.near_miss:
        yield f"- **Near miss**: differs in {' and '.join(task.near_miss)} alone"
    if task.outcome != "passed" and (task.outcome != "failed" or task.actual is None):
        yield f"- **Why**: {_inline(task.reason)}"
    yield f"- **Duration**: {_seconds(task.seconds)}"
    yield f"- **Tool calls**: {task.tool_calls}"
    for use in task.tools:
        errors = f", {use.errors} with an error" if use.errors else ""
        average = f", {_seconds(use.average_seconds)} each" if use.calls > 1 else ""
        yield f"  - {_code(use.tool)}: {use.calls}{errors} ({_seconds(use.total_seconds)}{average})"
    yield ""
    for title, text in (("Summary", task.summary), ("Feedback", task.feedback)):
        if text:
            yield f"**{title}**"
            yield ""
            yield _quote(text)
            yield ""


def _feedback(report: QaReport) -> Iterable[str]:
    yield "## Feedback by tool"
    yield ""
    if not report.feedback:
        yield "None was given."
        yield ""
    for one in report.feedback:
        yield f"### {_inline(one.tool)}"
        yield ""
        for entry in one.feedback:
            numbers = ", ".join(item.rpartition("/")[2].lstrip("0") for item in entry.items)
            yield f"- {_inline(entry.text)} (task{'s' if len(entry.items) > 1 else ''} {numbers})"
        yield ""


def _spent(report: QaReport) -> Iterable[str]:
    yield "## Cost and tokens"
    yield ""
    if report.total_tokens is None:
        yield "- **Tokens**: not reported"
    else:
        yield (
            f"- **Tokens**: {report.total_tokens:,} (input {report.input_tokens or 0:,}, "
            f"cache read {report.cache_read_tokens or 0:,}, cache write {report.cache_write_tokens or 0:,}, "
            f"output {report.output_tokens or 0:,})"
        )
    if report.cost_usd is None:
        yield "- **Cost**: not reported by the model's endpoint"
    else:
        yield f"- **Cost**: {report.cost_usd:.4f} USD"


def _seconds(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def _quote(text: str) -> str:
    """A text of somebody else's as a block quote: nothing in it can become part of the report's own structure."""
    # Two spaces at its end keep a line a line.
    return "\n".join(f"> {line.rstrip()}  " if line.strip() else ">" for line in text.splitlines())


def _code(text: str) -> str:
    """One line in as many backticks as it needs."""
    line = " ".join(text.split()) or " "
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _inline(text: str) -> str:
    """One line whose characters are not read as Markdown or HTML."""
    return re.sub(r"([\\*`<>\[\]#|~]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))
