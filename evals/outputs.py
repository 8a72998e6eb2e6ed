"""The files a command writes, checked before anything is spent, and written so that nothing is lost."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from evals.errors import TwogateError
from evals.runs.journal import is_standard_output, write_whole
from evals.settings import Settings
from evals.target import CONFIG_FILE, MCP_FILE, load_target


def files_read(*named: tuple[str, Path | None], words: Sequence[str] = ()) -> list[tuple[str, Path]]:
    """What a command reads, each with what it is, for `check_writable`.

    The files given, this folder's settings, and the files among the words that start the servers, their programs.

    words: the command line of a server that no settings describe.
    """
    target = next((path for what, path in named if what == "the target's file"), None)
    settings = [("this folder's settings", Path(name)) for name in (CONFIG_FILE, MCP_FILE, ".env")]
    try:
        found = Settings.load()
        servers = load_target(found.root, found.variables, target).servers
    except TwogateError:
        servers = ()  # told where it is needed
    programs = [
        ("an argument of the server", server.folder / word)
        for server in servers
        for word in (server.config.command or "", *server.config.args)
    ]
    programs += [("an argument of the server", Path(word)) for word in words]
    there = [(what, path) for what, path in programs if os.path.isfile(path)]  # noqa: PTH113  pathlib's raises on a long text
    return [*((what, path) for what, path in named if path is not None), *settings, *there]


def check_writable(outputs: Mapping[str, Path | None], inputs: Iterable[tuple[str, Path]] = ()) -> None:
    """Raises TwogateError for every output, by its option, that cannot be written or would destroy something.

    inputs: what the command reads, each with what it is; no output may be the same file, by whatever path.
    """
    named = {option: path for option, path in outputs.items() if path is not None}
    read = list(inputs)
    problems = []
    for option, path in named.items():
        problem = _problem(path)
        if problem is None:
            problem = next((f"is {what}, which it would overwrite" for what, one in read if _same(path, one)), None)
            problem = f"{problem}; name another file" if problem is not None else None
        if problem is not None:
            problems.append(f"{option} {path}: {problem}")
    options = list(named)
    problems += [
        f"{option} {named[option]}: is the same file as {other} {named[other]}; name two"
        for index, option in enumerate(options)
        for other in options[:index]
        if _same(named[option], named[other])
    ]
    if problems:
        raise TwogateError(problems)


def _problem(path: Path) -> str | None:
    """Why a path cannot be written, as far as it can be known without writing it."""
    real = Path(os.path.realpath(path))
    try:
        if path.is_dir():
            return "is a folder; name a file"
        if not real.parent.is_dir():
            return "its folder does not exist; make it first"
        if path.exists() and not os.access(path, os.W_OK):
            return "is protected against writing; name another file"
        if is_standard_output(path) or (path.exists() and not path.is_file()):
            return None
        # A file is written beside it and moved in its place.
        with tempfile.NamedTemporaryFile(dir=real.parent, prefix=".twogate-"):
            return None
    except OSError as error:
        return f"cannot be written: {error.strerror}; name another file"


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are, or would be, one file that can be overwritten: a pipe or a device cannot."""
    try:
        if one.exists() and other.exists():
            return one.is_file() and one.samefile(other)
    except OSError:
        pass
    return os.path.realpath(one) == os.path.realpath(other)


def new_file_for(file: Path, output: Path | None) -> Path:
    """Where `solve` writes. Raises TwogateError when something is there: a file is never written over."""
    path = output or file.with_name(f"{file.stem}.solved.xml")
    if os.path.lexists(path):
        option = "--output" if output is not None else "the new file"
        raise TwogateError(f"{option} {path}: is there already; move it away, or name another by --output")
    return path


def write_new(path: Path, data: bytes) -> str | None:
    """Write a file where none is. Why it could not be, in one line; None when it was."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return f"{path}: is there now, and was not when this began; it is left as it is"
    except OSError as error:
        path.unlink(missing_ok=True)
        return _not_written(path, error)
    return None


def write_text(path: Path, text: str) -> str | None:
    """Write a text file. Why it could not be, in one line; None when it was."""
    try:
        write_whole(path, text)
    except (OSError, UnicodeError) as error:
        return _not_written(path, error)
    return None


def print_text(text: str) -> str | None:
    """Print a text. Why it could not be, in one line; None when it was, or nobody reads any more (`| head`)."""
    try:
        click.echo(text, nl=False)
    except OSError as error:
        # What was not written waits in a buffer, and would fail once more when the program ends.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return None
        return f"standard output cannot be written: {error.strerror}"
    except UnicodeError as error:
        return f"standard output cannot be written: {error}; set PYTHONIOENCODING=utf-8"
    return None


def _not_written(path: Path, error: OSError | UnicodeError) -> str:
    return f"{path}: cannot be written: {error.strerror if isinstance(error, OSError) else error}"
