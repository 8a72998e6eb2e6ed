"""Finding the folder of a run that was made before."""

from __future__ import annotations

import difflib
from pathlib import Path

from pydantic import ValidationError

from evals.errors import TwogateError
from evals.runs.journal import RUN_FILE, read_journal
from evals.runs.models import RunRecord
from evals.runs.trial import TrialResult
from evals.settings import Settings

LATEST = "latest"


def run_folder(settings: Settings, run: str) -> Path:
    """The folder of a run by its name, by its path, or `latest`. Raises TwogateError when there is none."""
    runs = settings.state / "runs"
    folders = sorted((one for one in runs.iterdir() if (one / RUN_FILE).is_file()), key=_begun) if runs.is_dir() else []
    if run == LATEST and folders:
        return folders[-1]
    for candidate in (Path(run), runs / run):
        if (candidate / RUN_FILE).is_file():
            return candidate
    near = difflib.get_close_matches(run, [one.name for one in folders], n=3, cutoff=0.4)
    hint = f"; near: {', '.join(near)}" if near else "; runs are kept in .twogate/runs" if not folders else ""
    raise TwogateError(f"there is no run {run!r}{hint}")


def read_run(folder: Path) -> tuple[RunRecord, list[TrialResult]]:
    """What a run was asked, and its finished trials. Raises TwogateError when a file of it cannot be read."""
    path = folder / RUN_FILE
    try:
        record = RunRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise TwogateError(f"{path}: cannot be read as a run: {str(error).splitlines()[0]}") from None
    return record, list(read_journal(folder))


def _begun(folder: Path) -> float:
    return (folder / RUN_FILE).stat().st_mtime
