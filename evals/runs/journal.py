"""The run's folder on disk: what was asked, one line a finished trial, what came out.

``run.json``      what was asked, written before the first trial.
``trials.jsonl``  one `TrialResult` a line, on disk before it is reported anywhere else.
``summary.json``  what came out, written last; a run without it was cut short.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TextIO

from pydantic import BaseModel, ValidationError

from evals.errors import TwogateError
from evals.runs.trial import TrialResult

RUN_FILE = "run.json"
TRIALS_FILE = "trials.jsonl"
SUMMARY_FILE = "summary.json"


def create_run_folder(runs: Path, name: str) -> Path:
    """A new folder ``runs/name``, or ``runs/name-2`` and so on: two runs never share one."""
    runs.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = runs / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def write_json(path: Path, model: BaseModel) -> None:
    """Write a model as JSON by `write_whole`. Raises OSError."""
    write_whole(path, model.model_dump_json(indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a text file as UTF-8: the whole file or nothing, never half of it. Raises OSError.

    A symbolic link stays one, and its target is written. What is there and is no regular file (a device, a pipe), or is
    where standard output goes, is written to as it is: a new file in its place would take it away.
    """
    data = text.encode("utf-8")
    if is_standard_output(path):
        sys.stdout.flush()
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
            stream.write(data)
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    path = Path(os.path.realpath(path))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def is_standard_output(path: Path) -> bool:
    """Whether a path leads to where this process's standard output goes, such as ``/dev/stdout``."""
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # no such path, or a standard output without a descriptor
        return False


class Journal:
    """Appends finished trials; each is on disk when `append` returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / TRIALS_FILE
        self._file: TextIO | None = None

    def __enter__(self) -> Journal:
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, result: TrialResult) -> None:
        assert self._file is not None, "the journal is open within its with block only"
        self._file.write(result.model_dump_json() + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_journal(folder: Path) -> Iterator[TrialResult]:
    """The finished trials of a run. A last line cut off by a crash is left out; any other bad line is an error."""
    path = folder / TRIALS_FILE
    if not path.is_file():
        return
    # Not splitlines: a text may hold a line separator (U+2028) that JSON leaves as it is.
    lines = [f"{line}\n" for line in path.read_bytes().decode("utf-8").split("\n")]
    lines[-1] = lines[-1][:-1]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield TrialResult.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not line.endswith("\n"):
                return
            problem = f"{path}: line {number} is not a trial: {error.errors()[0]['msg']}; was it edited?"
            raise TwogateError(problem) from None
