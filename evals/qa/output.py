"""The files a command writes, checked before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evals.errors import TwogateError


def check_writable(paths: Mapping[str, Path | None]) -> None:
    """Raises TwogateError for every path, by its option, whose folder is not there or that is one."""
    problems = []
    for option, path in paths.items():
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            problems.append(f"{option} {path}: its folder does not exist; make it first")
        elif path.is_dir():
            problems.append(f"{option} {path}: is a folder; name a file")
    if problems:
        raise TwogateError(problems)


def new_file_for(file: Path, output: Path | None) -> Path:
    """Where `solve` writes. Raises TwogateError when something is there: a file is never written over."""
    path = output or file.with_name(f"{file.stem}.solved.xml")
    if path.exists():
        option = "--output" if output is not None else "the new file"
        raise TwogateError(f"{option} {path}: is there already; move it away, or name another by --output")
    return path


def write_report(path: Path, text: str) -> None:
    """Raises TwogateError when it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TwogateError(f"{path}: cannot be written: {error.strerror}") from None
