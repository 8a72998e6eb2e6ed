"""The sweep: the look for ERROR observations after a run, of agent items, that no expectedErrors explain.

It reads Langfuse alone: what is recorded there is what others see, and a run of another machine can be swept too.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from langfuse.api.commons.types.observation_level import ObservationLevel
from langfuse.api.core import ApiError

from evals.errors import TwogateError
from evals.recording.client import READ_ERRORS, Recorder
from evals.recording.trace import UNDER_TEST

_PAGE = 1000  # observations a request, the server's limit
_ITEMS_PAGE = 100
_MARGIN = timedelta(minutes=1)  # between this machine's clock and the server's
_PATIENCE = 30.0  # seconds to wait for the counts to stand still
# A judge's failed request is a GENERATION under the judge's EVALUATOR, which is an ERROR itself when it gave up.
_REPEATED = "GENERATION"
_TELLING = ("TOOL", "EVALUATOR", "AGENT")


@dataclass(frozen=True)
class Row:
    """An ERROR observation that nothing explains."""

    item: str
    tool: str
    """The tool, or the name of another kind of observation."""
    message: str
    trace: str
    """Where it is to be seen: a link, or the trace's id in an embedded store."""

    def line(self) -> str:
        return f"{self.item}: {self.tool}: {self.message} ({self.trace})"


@dataclass(frozen=True)
class Sweep:
    """What a sweep found."""

    experiment: str
    trials: int
    """Trials of the experiment that could be read."""
    errors: int
    """ERROR observations of the experiment's trials, all kinds."""
    explained: int
    """Of agent items: failed calls of tools that the item's expectedErrors name."""
    by_design: int
    """Of tool-call items: the denied call of each."""
    elsewhere: int
    """Failed calls of built-in tools and auxiliary servers, which say nothing of the servers under test."""
    unexpected: tuple[Row, ...]

    def lines(self) -> list[str]:
        """One line that counts, then one line an unexpected row."""
        parts = [
            f"{count} {what}"
            for count, what in (
                (self.by_design, "denied by design"),
                (self.explained, "expected"),
                (self.elsewhere, "of tools not under test"),
            )
            if count
        ]
        detail = f" ({', '.join(parts)})" if parts else ""
        mark = "🧹" if not self.unexpected else "⚠️"
        count = f"{len(self.unexpected)} unexpected" if self.unexpected else "nothing unexpected"
        return [
            f"{mark} sweep: {self.errors} ERROR observations{detail}, {count}",
            *(f"   {row.line()}" for row in self.unexpected),
        ]


@dataclass(frozen=True)
class _Trial:
    item: str
    agent: bool
    expected: frozenset[str]


def sweep_experiment(
    recorder: Recorder,
    project: str,
    *,
    name: str,
    since: datetime,
    until: datetime | None = None,
    under_test: Collection[str] | None = None,
    patience: float = _PATIENCE,
) -> Sweep:
    """Sweep the experiment of a run.

    name: the run's. since, until: its time. under_test: the servers whose failed calls count, where the observations
    do not tell it themselves; None counts every MCP server's. patience: seconds to wait at most for the counts to
    stand still.

    Raises TwogateError when the server cannot be read or has no such experiment.
    """
    until = (until or datetime.now(UTC)) + _MARGIN
    since -= _MARGIN
    try:
        trials, errors = _settled(recorder, name, since, until, patience)
    except READ_ERRORS as error:
        status = f" ({error.status_code})" if isinstance(error, ApiError) else ""
        raise TwogateError(f"the sweep of {name} could not read Langfuse: {type(error).__name__}{status}") from None
    if not trials:
        raise TwogateError(f"there is no experiment {name!r} since {since:%Y-%m-%d %H:%M} UTC; check the run's name")
    telling = {str(one.trace_id) for one in errors if one.type in _TELLING}
    counts: Counter[str] = Counter()
    rows = []
    for one in errors:
        if one.type == _REPEATED or (one.type not in _TELLING and one.trace_id in telling):
            continue  # the trial's own span repeats what failed inside it
        trial = trials[str(one.trace_id)]
        kind = _kind(one, trial, under_test)
        counts[kind] += 1
        if kind == "unexpected":
            # An embedded store has an address only for as long as a command runs.
            url = f"{recorder.server.keys.base_url}/project/{quote(project, safe='')}/traces/{one.trace_id}"
            where = f"trace {one.trace_id}" if recorder.server.embedded else url
            message = " ".join((one.status_message or "no message").split())[:300]
            rows.append(Row(item=trial.item, tool=one.name or one.type, message=message, trace=where))
    return Sweep(
        experiment=name,
        trials=len(trials),
        errors=sum(counts.values()),
        explained=counts["explained"],
        by_design=counts["by design"],
        elsewhere=counts["elsewhere"],
        unexpected=tuple(sorted(rows, key=lambda row: (row.item, row.tool))),
    )


def _kind(observation: Any, trial: _Trial, under_test: Collection[str] | None) -> str:
    if not trial.agent:
        # Each tool-call trial has its denied call; anything else of it is a trial that could not be measured.
        return "by design" if observation.type == "TOOL" else "unexpected"
    if observation.type == "TOOL":
        metadata = observation.metadata or {}
        server = metadata.get("server") or ""
        counts = str(metadata.get(UNDER_TEST, under_test is None or server in under_test)).lower() == "true"
        if not server or not counts:
            return "elsewhere"
        if observation.name in trial.expected:
            return "explained"
    return "unexpected"


def _settled(
    recorder: Recorder, name: str, since: datetime, until: datetime, patience: float
) -> tuple[dict[str, _Trial], list[Any]]:
    """The experiment's trials and ERROR observations once two looks in a row give the same counts."""
    interval = 0.1 if recorder.server.embedded else 2.0
    deadline = time.monotonic() + patience
    before = (-1, -1)
    while True:
        trials = _trials(recorder, name, since, until)
        errors = [one for one in _errors(recorder, since, until) if one.trace_id in trials]
        counts = (len(trials), len(errors))
        if (counts == before and trials) or time.monotonic() > deadline:
            return trials, errors
        before = counts
        time.sleep(interval)


def _trials(recorder: Recorder, name: str, since: datetime, until: datetime) -> dict[str, _Trial]:
    """Trace id to trial."""
    found: dict[str, _Trial] = {}
    cursor: str | None = None
    while True:
        page = recorder.client.api.experiments.list_items(
            from_start_time=since,
            to_start_time=until,
            experiment_name=name,
            fields="core,itemMetadata",
            limit=_ITEMS_PAGE,
            cursor=cursor,
        )
        for row in page.data:
            metadata = row.experiment_item_metadata or {}
            found[row.trace_id] = _Trial(
                item=row.experiment_item_id,
                agent=_kind_of(row.experiment_item_id, metadata) == "agent",
                expected=_names(metadata.get("expectedErrors")),
            )
        cursor = page.meta.cursor
        if not cursor:
            return found


def _errors(recorder: Recorder, since: datetime, until: datetime) -> list[Any]:
    """Every ERROR observation of the time, each once: the server may list one twice while it is being stored."""
    found: dict[str, Any] = {}
    cursor: str | None = None
    while True:
        page = recorder.client.api.observations.get_many(
            level=ObservationLevel.ERROR,
            from_start_time=since,
            to_start_time=until,
            fields="core,basic,metadata",
            limit=_PAGE,
            cursor=cursor,
        )
        found.update({one.id: one for one in page.data})
        cursor = page.meta.cursor
        if not cursor:
            return list(found.values())


def _kind_of(item: str, metadata: Mapping[str, Any]) -> str:
    kind = metadata.get("kind")
    return str(kind) if kind else ("tool-call" if item.startswith("pr/") else "agent")


def _names(value: Any) -> frozenset[str]:
    """A list of names, which the server gives back as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return frozenset()
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()
