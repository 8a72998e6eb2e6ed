"""Finding a run that is on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from evals.errors import TwogateError
from evals.runs.journal import RUN_FILE, SUMMARY_FILE
from evals.runs.models import RunRecord, RunSummary
from evals.settings import Settings

LATEST = "latest"


def find_run(state: Path, name: str) -> Path | None:
    """The folder of a run: by its name, by a path, by an unambiguous part of its name, or ``latest``.

    None when there is none of that name here (it may be in Langfuse). Raises TwogateError when several fit.
    """
    runs = state / "runs"
    if Path(name).is_dir() and (Path(name) / RUN_FILE).is_file():
        return Path(name)
    there = sorted(one for one in runs.iterdir() if (one / RUN_FILE).is_file()) if runs.is_dir() else []
    if name == LATEST:
        if not there:
            raise TwogateError(f"there is no run in {runs}; run a gate first")
        return max(there, key=lambda one: (one / RUN_FILE).stat().st_mtime_ns)
    exact = [one for one in there if one.name == name]
    fitting = exact or [one for one in there if name in one.name]
    if len(fitting) > 1:
        raise TwogateError(
            f"{name!r} fits {len(fitting)} runs: {', '.join(one.name for one in fitting)}; write more of it"
        )
    return fitting[0] if fitting else None


def locate_run(settings: Settings, name: str) -> tuple[Settings, Path | None]:
    """As `find_run`, among a demo's runs too; with the settings whose embedded store holds the run."""
    demo = replace(settings, demo=True)
    found = [(one, folder) for one in (settings, demo) if (folder := _found(one.state, name)) is not None]
    if not found:
        return settings, find_run(settings.state, name)
    return max(found, key=lambda one: (one[1] / RUN_FILE).stat().st_mtime_ns)


def _found(state: Path, name: str) -> Path | None:
    if name == LATEST and not list((state / "runs").glob(f"*/{RUN_FILE}")):
        return None
    return find_run(state, name)


def read_record(folder: Path) -> RunRecord:
    """``run.json`` of a run. Raises TwogateError when it is not one."""
    try:
        return RunRecord.model_validate_json((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise TwogateError(f"{folder / RUN_FILE}: cannot be read: {str(error).splitlines()[0]}") from None


def read_summary(folder: Path) -> RunSummary | None:
    """``summary.json`` of a run; None when the run was cut short before it was written."""
    path = folder / SUMMARY_FILE
    if not path.is_file():
        return None
    try:
        return RunSummary.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise TwogateError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
