"""A run's summary as Markdown, for a GitHub step summary.

``python -P -m evals.reports.github summary.json >> "$GITHUB_STEP_SUMMARY"``

What a model or a server wrote stays text: every character that Markdown or HTML reads as markup is escaped, so that a
reason can't break out of its table cell, or show a link that the gate did not make.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from pydantic import ValidationError

from evals.errors import TwogateError
from evals.runs.models import RunSummary, TrialNote

MOST_ROWS = 100
"""Rows of one table: GitHub refuses a step summary of more than 1 MiB, and nobody reads on."""
MOST_CHARACTERS = 1_000
"""Characters of one text in a table."""

NO_RUN = """## 🔥 The gate came to no verdict

The run ended before it had a result: it could not be set up, or it was stopped. The log of the gate's step says why.
"""

# CommonMark lets every ASCII punctuation character be escaped; these are the ones that can begin markup. The dot and
# the colon are among them because bare `www.` and `https://` become links; `$` begins mathematics. A dash or a plus
# does something only where a line begins.
_MARKUP = re.compile(r"[\\`*_\[\]()#!|~>$:.]|^[-+]")


def escape(text: str, most: int = MOST_CHARACTERS) -> str:
    """One line of Markdown that shows the text as it is, fit for a table cell.

    Line breaks and control characters become spaces, invisible format characters are dropped, and white space is
    folded; a text of more than `most` characters is cut, which the ellipsis shows.
    """
    shown = "".join(_visible(character) for character in text)
    shown = " ".join(shown.split())
    if len(shown) > most:
        shown = f"{shown[: most - 1].rstrip()}…"
    return _MARKUP.sub(r"\\\g<0>", shown).replace("&", "&amp;").replace("<", "&lt;")


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp", "Cs"):
        return " "
    return "" if category == "Cf" else character


def markdown(summary: RunSummary) -> str:
    """The whole report: the verdict, what was run, what did not pass, how it was recorded."""
    parts = [
        f"## {'✅' if summary.met and summary.swept else '❌'} {escape(summary.gate)} gate: {escape(summary.line)}"
    ]
    parts += [f"**{notice}**" for notice in _notices(summary)]
    parts.append(_table(("", ""), _facts(summary)))
    repeated = summary.repeats is not None
    if summary.failures:
        parts.append(f"### ❌ Failed\n\n{_notes('Reason', summary.failures, repeated)}")
    if summary.never_completed:
        parts.append(f"### 🔥 Never completed\n\n{_notes('Cause', summary.never_completed, repeated)}")
    if summary.repeats is not None and summary.repeats.flaky:
        parts.append(f"### 🎲 Flaky\n\n{_list(summary.repeats.flaky)}")
    if summary.sweep is not None and summary.sweep.unexpected:
        parts.append(f"### 🧹 Errors that nothing explains\n\n{_list(summary.sweep.unexpected)}")
    return "\n\n".join(parts) + "\n"


def _notices(summary: RunSummary) -> list[str]:
    notices = []
    if summary.scripted:
        notices.append("🎭 The model was scripted: this run says nothing of a real model.")
    if summary.interrupted:
        notices.append("⏹️ Interrupted: the trials that were not run count as not passed.")
    if summary.sweep is not None and summary.sweep.problem is not None:
        notices.append(f"⚠️ The sweep was not made: {escape(summary.sweep.problem)}")
    if summary.trials_recorded < summary.trials_expected or summary.scores_recorded < summary.scores_expected:
        notices.append("⚠️ Not everything could be recorded.")
    return notices


def _facts(summary: RunSummary) -> list[tuple[str, str]]:
    facts = [
        ("Dataset", escape(summary.dataset)),
        (
            "Trials",
            f"{summary.passed} passed, {summary.failed} failed, {summary.error} error, {summary.not_run} not run",
        ),
    ]
    known = (("Model", "agent_model"), ("Judge", "judge"), ("Target", "target"))
    facts += [(name, escape(summary.metadata[key])) for name, key in known if summary.metadata.get(key)]
    if summary.repeats is not None:
        low, high = summary.repeats.interval_95
        facts.append(("Pass rate, 95 % interval", f"{low:.1%} to {high:.1%}"))
        facts += [
            (f"k = {at.k}", f"pass@k {at.pass_at_k:.1%}, pass^k {at.pass_hat_k:.1%}") for at in summary.repeats.mean
        ]
    if summary.total_tokens is not None:
        facts.append(("Tokens", f"{summary.total_tokens:,}"))
    if summary.cost_usd is not None and not summary.scripted:
        facts.append(("Cost", f"{summary.cost_usd:.4f} USD"))
    facts.append(("Time", f"{(summary.ended_at - summary.started_at).total_seconds():.0f} s"))
    recorded = (
        f"{summary.trials_recorded}/{summary.trials_expected} trials, "
        f"{summary.scores_recorded}/{summary.scores_expected} scores"
    )
    facts.append(("Recorded", f"{recorded}, in the embedded store" if summary.embedded else recorded))
    facts.append(("Run", _link(summary.run, summary.url)))
    return facts


def _link(text: str, url: str | None) -> str:
    """A link where the URL is one that needs no escaping; else the text alone."""
    if url is not None and re.fullmatch(r"https?://[A-Za-z0-9._~:/?#@%&=+,;-]+", url):
        return f"[{escape(text)}](<{url}>)"
    return escape(text)


def _notes(heading: str, notes: Sequence[TrialNote], repeated: bool) -> str:
    rows = [
        (escape(f"{note.item} #{note.iteration}" if repeated else note.item), escape(note.reason))
        for note in notes[:MOST_ROWS]
    ]
    return _table(("Item", heading), rows) + _left_off(len(notes))


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {escape(text)}" for text in texts[:MOST_ROWS]) + _left_off(len(texts))


def _left_off(count: int) -> str:
    return f"\n\n… and {count - MOST_ROWS} more: see the run's folder." if count > MOST_ROWS else ""


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "| --- | --- |"]
    return "\n".join(lines + [f"| {left} | {right} |" for left, right in rows])


def report(path: Path) -> str:
    """The Markdown for the summary in a file; `NO_RUN` when there is no such file.

    Raises TwogateError when the file is there and is not a run's summary.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return NO_RUN
    except (OSError, UnicodeDecodeError) as error:
        raise TwogateError(f"{path}: cannot be read: {error}; give the file that `twogate run --json` wrote") from None
    try:
        return markdown(RunSummary.model_validate_json(text))
    except ValidationError as error:
        raise TwogateError(
            [
                f"{path}: {'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}; "
                "give the file that `twogate run --json` wrote"
                for problem in error.errors()
            ]
        ) from None


@click.command()
@click.argument("summary", type=click.Path(path_type=Path, dir_okay=False))
def main(summary: Path) -> None:
    """Write the Markdown report of SUMMARY, a file of `twogate run --json`, to standard output.

    Without such a file it says that the gate came to no verdict.
    """
    try:
        text = report(summary)
    except TwogateError as error:
        for line in error.lines:
            click.echo(f"error: {line}", err=True)
        raise SystemExit(1) from None
    sys.stdout.buffer.write(text.encode("utf-8"))


if __name__ == "__main__":
    main.main(prog_name="python -m evals.reports.github")
