"""What the console says of solving: what it says of a run, but no verdict, for proposals are held to no threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from evals.reports.console import ConsoleReporter, closing_lines
from evals.runs.models import RunOutcome, RunRecord


class SolveReporter(ConsoleReporter):
    """Tells of the trials, of errors and of where they are recorded."""

    def __init__(self, root: Path, console: Console | None = None) -> None:
        super().__init__(root, console)
        self._folder = root
        self._iterations = 1

    def started(self, record: RunRecord) -> None:
        self._iterations = record.iterations
        super().started(record)

    def finished(self, outcome: RunOutcome) -> None:
        # Another answer than the written one is no failure here: the pair's own line tells of it.
        summary = outcome.summary.model_copy(update={"failures": (), "repeats": None})
        *lines, _verdict = closing_lines(replace(outcome, summary=summary), self._folder, self._iterations)
        for line in lines:
            self.note(line)
