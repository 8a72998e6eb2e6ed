"""A run's trials as text: what `twogate show` prints, from the journal or from Langfuse alike."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evals.errors import TwogateError
from evals.recording.client import READ_ERRORS, Recorder
from evals.runs.journal import read_journal
from evals.runs.output import transcript
from evals.runs.reading import read_record

_MARKS = {"passed": "✅", "failed": "❌", "error": "🔥"}
_PAGE = 100
_LOOKBACK = timedelta(days=365)


@dataclass(frozen=True)
class ShownTrial:
    """A trial as it is shown."""

    item: str
    iteration: int
    outcome: str
    reason: str
    query: str
    steps: tuple[dict[str, Any], ...]
    """As `transcript` gives them."""
    verdict: str | None
    """The judge's, with its reason."""
    rerun: str
    """The command that runs this item again."""


def shown_from_journal(folder: Path) -> list[ShownTrial]:
    """The trials of a run on disk. Raises TwogateError when its files cannot be read."""
    record = read_record(folder)
    return [
        ShownTrial(
            item=result.item,
            iteration=result.iteration,
            outcome=result.outcome,
            reason=result.reason,
            query=result.query or (result.conversation.query if result.conversation is not None else ""),
            steps=tuple(transcript(result.conversation)),
            verdict=f"{result.judgement.verdict}: {result.judgement.reason}" if result.judgement is not None else None,
            rerun=rerun_command(result.item, record.gate, record.dataset, record.command),
        )
        for result in read_journal(folder)
    ]


def shown_from_langfuse(recorder: Recorder, run: str) -> list[ShownTrial]:
    """The trials of an experiment. Raises TwogateError when the server cannot be read or has none of that name."""
    shown: list[ShownTrial] = []
    cursor: str | None = None
    try:
        while True:
            page = recorder.client.api.experiments.list_items(
                from_start_time=datetime.now(UTC) - _LOOKBACK,
                experiment_name=run,
                fields="core,io,experimentMetadata",
                limit=_PAGE,
                cursor=cursor,
            )
            shown += [_from_row(row) for row in page.data]
            cursor = page.meta.cursor
            if not cursor:
                break
    except READ_ERRORS as error:
        where = recorder.server.keys.base_url
        raise TwogateError(f"{where} cannot be read: {type(error).__name__}; check the LANGFUSE_* variables") from None
    if not shown:
        raise TwogateError(
            f"there is no run {run!r} here or in Langfuse; twogate show latest shows the newest one here"
        )
    return shown


def _from_row(row: Any) -> ShownTrial:
    output = _parsed(row.output)
    query = _parsed(row.input).get("query", "")
    judge = output.get("judgeResult")
    metadata = _parsed(row.experiment_metadata)
    gate = str(metadata.get("gate") or ("pr" if row.experiment_item_id.startswith("pr/") else "merge"))
    try:
        command = shlex.split(str(metadata.get("command") or ""))
    except ValueError:
        command = []
    return ShownTrial(
        item=row.experiment_item_id,
        iteration=int(output.get("iteration", 1)),
        outcome=str(output.get("outcome", "error")),
        reason=str(output.get("reason", row.output or "")),
        query=str(query),
        steps=tuple(output.get("transcript", ())),
        verdict=f"{judge['verdict']}: {judge['reason']}" if judge else None,
        rerun=rerun_command(row.experiment_item_id, gate, metadata.get("dataset"), command),
    )


def _parsed(value: Any) -> dict[str, Any]:
    """Inputs and outputs come back as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


# Options, with a value each, that choose items or say where a run's own files go.
_NOT_REPEATED = frozenset({"--id", "--category", "--json", "-o", "--output"})


def rerun_command(item: str, gate: str, dataset: str | None, command: Sequence[str]) -> str:
    """The command line that runs one item again: the run's own, with the item chosen.

    command: that of the run as its record has it; without one, the gate or the dataset is all that is known.
    """
    from evals.items import DEFAULT_DATASETS

    words: list[str] = []
    skip = False
    for word in command:
        if skip or word in _NOT_REPEATED:
            skip = not skip
        elif word.split("=", 1)[0] not in _NOT_REPEATED:
            words.append(word)
    if not words and gate == "qa":
        words = ["qa", dataset or "FILE"]
    elif not words:
        words = ["run"]
        if dataset is not None and dataset not in DEFAULT_DATASETS.values():
            words += ["--dataset", dataset]
        else:
            words += ["--gate", gate]
    elif words[0] == "demo" and not {"--gate", "--dataset"} & {word.split("=", 1)[0] for word in words}:
        words += ["--gate", gate]
    return shlex.join(["twogate", *words, "--id", f"^{_escaped(item)}$"])


def _escaped(item: str) -> str:
    """For a regular expression, and easy to read: a hyphen means itself outside of brackets."""
    return re.escape(item).replace(r"\-", "-")


def show_lines(
    trials: Sequence[ShownTrial], *, item: str | None = None, failed: bool = False, requested: int | None = None
) -> Iterator[str]:
    """The trials as text. requested: how many the run had, where that is known.

    Raises TwogateError when the item fits none.
    """
    try:
        wanted = re.compile(item or "")
    except re.error as error:
        raise TwogateError(f"{item!r} is not an item or a regular expression: {error}") from None
    chosen = [trial for trial in trials if trial.item == item] or [one for one in trials if wanted.search(one.item)]
    if not trials:
        raise TwogateError("no trial of this run is finished")
    if not chosen:
        raise TwogateError(f"{item!r} fits none of the {len(trials)} trials of this run")
    if failed:
        chosen = [trial for trial in chosen if trial.outcome != "passed"]
        if not chosen:
            yield "every trial shown passed"
    for trial in sorted(chosen, key=lambda one: (one.item, one.iteration)):
        yield from _trial_lines(trial)
    if requested is not None and len(trials) < requested:
        yield f"{len(trials)} of {requested} trials were run; the others count as not passed"


def _trial_lines(trial: ShownTrial) -> Iterator[str]:
    yield f"{_MARKS.get(trial.outcome, '·')} {trial.item} #{trial.iteration}: {trial.outcome}"
    yield f"   query:  {_indented(trial.query)}"
    for step in trial.steps:
        if "tool" in step:
            state = " (by a subagent)" if step.get("subagent") else ""
            state += " (denied)" if step.get("denied") else " (failed)" if step.get("error") else ""
            yield f"   call:   {step['tool']}({json.dumps(step.get('arguments', {}), ensure_ascii=False)}){state}"
        elif "answer" in step:
            yield f"   answer: {_indented(step['answer'])}"
        else:
            yield f"   says:   {_indented(str(step.get('narration', '')))}"
    if trial.verdict is not None:
        yield f"   judge:  {_indented(trial.verdict)}"
    yield f"   reason: {_indented(trial.reason)}"
    yield f"   rerun:  {trial.rerun}"
    yield ""


def _indented(text: str) -> str:
    return "\n           ".join(text.splitlines()) if text else ""
