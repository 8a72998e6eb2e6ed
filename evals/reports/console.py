"""The console: a live progress bar on a terminal, plain lines elsewhere, the verdict last."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from evals.runs.models import RunOutcome, RunRecord, RunSummary, TrialNote
from evals.runs.trial import TrialResult
from evals.shipped import guide

MARKS = {"passed": "✅", "failed": "❌", "error": "🔥", "not_run": "⏭️"}


class _Console(Console):
    """Goes on in silence when nobody reads any more (`| head`): the trials are paid for, and their exit code counts."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class ConsoleReporter:
    """Writes to standard output. Texts are written as they are: no markup in an item's reason is ever read."""

    def __init__(self, root: Path, console: Console | None = None) -> None:
        self._root = root
        self._console = console or _Console(highlight=False, soft_wrap=True)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._counts: Counter[str] = Counter()
        self._record: RunRecord | None = None

    def __enter__(self) -> ConsoleReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def note(self, line: str) -> None:
        self._line(line)

    def started(self, record: RunRecord) -> None:
        self._record = record
        self._counts.clear()
        trials = (
            f"{len(record.items)} items × {record.iterations}"
            if record.iterations > 1
            else f"{len(record.items)} items"
        )
        self._line(
            f"{record.gate} gate, {record.dataset}: {trials}, {record.metadata['agent_model']} → "
            f"{record.metadata['target']}"
        )
        if self._console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[counts]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._progress.add_task("trials", total=record.requested, counts="")
            self._progress.start()

    def trial_finished(self, result: TrialResult) -> None:
        self._counts[result.outcome] += 1
        if self._progress is not None and self._task is not None:
            counts = " ".join(f"{MARKS[outcome]} {count}" for outcome, count in sorted(self._counts.items()))
            self._progress.update(self._task, advance=1, counts=counts)
            return
        assert self._record is not None
        done = sum(self._counts.values())
        width = len(str(self._record.requested))
        name = trial_name(result.item, result.iteration, self._record.iterations)
        self._line(
            f"[{done:>{width}}/{self._record.requested}] {MARKS[result.outcome]} {name} ({result.seconds:.1f} s)"
        )

    def finished(self, outcome: RunOutcome) -> None:
        self._stop()
        assert self._record is not None
        for line in closing_lines(outcome, self._root, self._record.iterations):
            self._line(line)

    def _line(self, text: str) -> None:
        try:
            self._console.print(Text(text))
        except OSError:  # a full disk behind a redirection
            self._console.quiet = True

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def trial_name(item: str, iteration: int, iterations: int) -> str:
    return f"{item} #{iteration}" if iterations > 1 else item


def closing_lines(outcome: RunOutcome, root: Path, iterations: int) -> list[str]:
    """What is said of a finished run; the verdict is the last line."""
    summary = outcome.summary
    lines = [f"❌ {trial_name(note.item, note.iteration, iterations)}: {note.reason}" for note in summary.failures]
    lines += _never_completed(summary.never_completed, iterations)
    if summary.interrupted:
        lines.append("⏹️ interrupted: the trials that were not run count as not passed")
    lines += _repeats(summary)
    if summary.sweep is not None:
        problem = summary.sweep.problem
        lines += [f"⚠️ sweep: not made: {problem}"] if problem else list(summary.sweep.lines)
    loud = "" if outcome.recorded.complete else "⚠️ "
    lines.append(f"{loud}{outcome.recorded.line()}")
    lines += _circumstances(summary, outcome.folder, root)
    if summary.failures or summary.never_completed:
        lines.append(f"🔎 twogate show {summary.run} --failed (what to look at first: {guide('diagnosis.md', root)})")
    lines.append(f"🔗 {summary.url or _relative(outcome.folder, root)}")
    if not summary.swept:
        lines.append("🧹 the sweep is strict, so this run fails")
    lines.append(f"📊 {summary.line}")
    return lines


def _repeats(summary: RunSummary) -> list[str]:
    """pass@k and pass^k, the interval and the flaky items of a run with iterations."""
    if summary.repeats is None:
        return []
    low, high = summary.repeats.interval_95
    lines = [f"🔁 95 % interval of the pass rate: {low:.1%} to {high:.1%} (Wilson)"]
    for at in summary.repeats.mean:
        lines.append(f"   k={at.k}: pass@k {at.pass_at_k:.1%}, pass^k {at.pass_hat_k:.1%}")
    for item in summary.repeats.items:
        trials = item.passed + item.failed + item.error + item.not_run
        if item.passed < trials:
            estimates = ", ".join(f"pass@{at.k} {at.pass_at_k:.1%}, pass^{at.k} {at.pass_hat_k:.1%}" for at in item.at)
            lines.append(f"   {item.item}: {item.passed}/{trials} passed; {estimates}")
    if summary.repeats.flaky:
        lines.append(f"🎲 flaky: {', '.join(summary.repeats.flaky)}")
    return lines


def _never_completed(notes: tuple[TrialNote, ...], iterations: int) -> list[str]:
    """Every id, then each cause once with the ids it befell."""
    if not notes:
        return []
    names = [trial_name(note.item, note.iteration, iterations) for note in notes]
    causes: dict[str, list[str]] = {}
    for name, note in zip(names, notes, strict=True):
        causes.setdefault(note.reason, []).append(name)
    lines = [f"🔥 never completed: {', '.join(names)}"]
    lines += [f"   {', '.join(those) if len(causes) > 1 else 'cause'}: {cause}" for cause, those in causes.items()]
    return lines


def _circumstances(summary: RunSummary, folder: Path, root: Path) -> list[str]:
    lines = []
    if summary.total_tokens is not None:
        cost = f", {summary.cost_usd:.4f} USD" if summary.cost_usd is not None and not summary.scripted else ""
        lines.append(f"🧮 {summary.total_tokens:,} tokens{cost}")
    if summary.scripted:
        lines.append("🎭 the model was scripted: this run says nothing of a real model")
    if summary.embedded:
        lines.append(f"📦 recorded in the embedded store ({_relative(folder.parent.parent / 'langfuse.db', root)})")
    return lines


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
