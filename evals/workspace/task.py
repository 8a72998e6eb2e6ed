"""The task model: a JSON file that says what must hold in a workspace. Read strictly, every problem at once."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evals.errors import TwogateError
from evals.workspace.paths import WorkspaceError, names_directory, split_path

MAX_REPEATS: Final = 100
MAX_TIMEOUT_SECONDS: Final = 24 * 3600.0
DEFAULT_TIMEOUT_SECONDS: Final = 60.0
DEFAULT_REPEATS: Final = 2

_LINE_END: Final = re.compile(r"\r\n?|\n")
_ESCAPED_CARRIAGE_RETURN: Final = re.compile(
    r"(?<!\\)(?:\\\\)*\\(?:r|x0[dD]|u000[dD]|U0000000[dD]|0?15|N\{carriage return\})", re.IGNORECASE
)
_TASK_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KEYS: Final = (
    "task_id",
    "required_files",
    "required_patterns",
    "forbidden_patterns",
    "command",
    "timeout_seconds",
    "repeat_count",
)


@dataclass(frozen=True)
class Pattern:
    """Literal text, or with `regex` a regular expression in which ``^`` and ``$`` match at every line.

    Every line end of a file is a line feed to it, or a file written with CR LF or CR would hide its lines from ``$``
    and from literal line feeds. A pattern that names the carriage return is looked for in the file as it is, too.
    """

    text: str
    regex: bool = False

    def first_line(self, content: str) -> int | None:
        """The line, from 1, where the first match starts; None when there is none."""
        readings = [_LINE_END.sub("\n", content)]
        if self._names_carriage_return:
            readings.insert(0, content)
        for reading in readings:
            if self.regex:
                found = re.compile(self.text, re.MULTILINE).search(reading)
                position = found.start() if found else -1
            else:
                position = reading.find(self.text)
            if position >= 0:
                return 1 + sum(end.end() <= position for end in _LINE_END.finditer(reading))
        return None

    @property
    def _names_carriage_return(self) -> bool:
        return "\r" in self.text or (self.regex and _ESCAPED_CARRIAGE_RETURN.search(self.text) is not None)

    def as_json(self) -> str | dict[str, str]:
        """As a task file writes it."""
        return {"regex": self.text} if self.regex else self.text


@dataclass(frozen=True)
class Task:
    """What a workspace is held to. Patterns are (file, pattern) pairs in the order they were written."""

    task_id: str
    required_files: tuple[str, ...]
    required_patterns: tuple[tuple[str, Pattern], ...]
    forbidden_patterns: tuple[tuple[str, Pattern], ...]
    command: tuple[str, ...]
    timeout_seconds: float
    repeat_count: int


def load_task(path: str | Path) -> Task:
    """Read a task file. Raises `TwogateError` with every problem in it, one line each."""
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TwogateError(f"{where}: cannot be read: {error.strerror}; name a task file") from None
    except UnicodeDecodeError:
        raise TwogateError(f"{where}: is not UTF-8 text; save it as UTF-8") from None
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                repeated.append(f"{where}: key {key!r} stands twice in one object; keep one")
            found[key] = value
        return found

    def refuse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        data = json.loads(text, object_pairs_hook=unique, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TwogateError(f"{where}: is not JSON: {error}") from None
    return parse_task(data, where, repeated)


def parse_task(data: object, where: str = "task", problems: list[str] | None = None) -> Task:
    """A `Task` from decoded JSON. Raises `TwogateError` with every problem; `where` begins each line."""
    return _Reader(where, list(problems or [])).task(data)


class _Reader:
    def __init__(self, where: str, problems: list[str]) -> None:
        self._where = where
        self._problems = problems

    def _bad(self, field: str, message: str) -> None:
        self._problems.append(f"{self._where}: {field}: {message}")

    def task(self, data: object) -> Task:
        if not isinstance(data, dict):
            raise TwogateError([*self._problems, f"{self._where}: must be a JSON object, not {_name(data)}"])
        for key in data:
            if key not in _KEYS:
                self._bad(str(key), f"unknown key; the keys are {', '.join(_KEYS)}")
        for key in ("task_id", "command"):
            if key not in data:
                self._bad(key, "is missing; every task needs it")
        task = Task(
            task_id=self._task_id(data.get("task_id", "missing")),
            required_files=self._files(data.get("required_files", [])),
            required_patterns=self._patterns("required_patterns", data.get("required_patterns", {})),
            forbidden_patterns=self._patterns("forbidden_patterns", data.get("forbidden_patterns", {})),
            command=self._command(data.get("command", ["missing"])),
            timeout_seconds=self._timeout(data.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS)),
            repeat_count=self._repeats(data.get("repeat_count", DEFAULT_REPEATS)),
        )
        if self._problems:
            raise TwogateError(self._problems)
        return task

    def _task_id(self, value: object) -> str:
        if isinstance(value, str) and _TASK_ID.fullmatch(value):
            return value
        self._bad("task_id", "must be 1 to 100 letters, digits, '.', '_' or '-', and begin with a letter or digit")
        return ""

    def _files(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._bad("required_files", f"must be a list of paths, not {_name(value)}")
            return ()
        files = []
        for index, path in enumerate(value):
            if self._path(f"required_files[{index}]", path):
                if path in files:
                    self._bad(f"required_files[{index}]", f"{path!r} is listed twice")
                files.append(path)
        return tuple(files)

    def _path(self, field: str, value: object) -> bool:
        if not isinstance(value, str):
            self._bad(field, f"must be a path as a string, not {_name(value)}")
            return False
        try:
            split_path(value)
        except WorkspaceError as error:
            self._bad(field, error.lines[0])
            return False
        if names_directory(value):
            self._bad(field, f"{value!r} names a directory; name a file")
            return False
        return True

    def _patterns(self, field: str, value: object) -> tuple[tuple[str, Pattern], ...]:
        if not isinstance(value, dict):
            self._bad(field, f"must be an object of file → list of patterns, not {_name(value)}")
            return ()
        found: list[tuple[str, Pattern]] = []
        for path, patterns in value.items():
            here = f"{field}[{path!r}]"
            self._path(here, path)
            if not isinstance(patterns, list):
                self._bad(here, f"must be a list of patterns, not {_name(patterns)}")
                continue
            if not patterns:
                self._bad(here, "the list is empty; give a pattern or leave the file out")
            for index, pattern in enumerate(patterns):
                parsed = self._pattern(f"{here}[{index}]", pattern)
                if parsed is not None:
                    found.append((path, parsed))
        return tuple(found)

    def _pattern(self, field: str, value: object) -> Pattern | None:
        if isinstance(value, dict):
            if set(value) != {"regex"} or not isinstance(value["regex"], str):
                self._bad(field, 'a regular expression is written {"regex": "…"}, with no other key')
                return None
            pattern = Pattern(value["regex"], regex=True)
        elif isinstance(value, str):
            pattern = Pattern(value)
        else:
            self._bad(field, f'must be a string or {{"regex": "…"}}, not {_name(value)}')
            return None
        if not _is_text(pattern.text):
            self._bad(field, "is not valid Unicode text: it holds a lone surrogate")
            return None
        if not pattern.text:
            self._bad(field, "is empty, so it would match everything")
            return None
        if pattern.regex:
            try:
                re.compile(pattern.text, re.MULTILINE)
            except (re.error, RecursionError, OverflowError) as error:
                self._bad(field, f"is not a regular expression: {error}")
                return None
        return pattern

    def _command(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._bad(
                "command", f'must be a list such as ["python", "-m", "unittest"], not {_name(value)}; no shell runs'
            )
            return ()
        if not value:
            self._bad("command", "is empty; name a program")
        for index, word in enumerate(value):
            if not isinstance(word, str):
                self._bad(f"command[{index}]", f"must be a string, not {_name(word)}")
            elif not _is_text(word):
                self._bad(f"command[{index}]", "is not valid Unicode text: it holds a lone surrogate")
            elif "\0" in word:
                self._bad(f"command[{index}]", "may not hold a NUL byte")
            elif index == 0 and not word.strip():
                self._bad("command[0]", "is empty; name a program")
        return tuple(str(word) for word in value)

    def _timeout(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._bad("timeout_seconds", f"must be a number of seconds, not {_name(value)}")
        elif not 0 < value <= MAX_TIMEOUT_SECONDS or not math.isfinite(value):
            self._bad("timeout_seconds", f"must be more than 0 and at most {MAX_TIMEOUT_SECONDS:.0f}")
        else:
            return float(value)
        return DEFAULT_TIMEOUT_SECONDS

    def _repeats(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self._bad("repeat_count", f"must be a whole number, not {_name(value)}")
        elif not 1 <= value <= MAX_REPEATS:
            self._bad("repeat_count", f"must be at least 1 and at most {MAX_REPEATS}")
        else:
            return value
        return DEFAULT_REPEATS


def _is_text(value: str) -> bool:
    """Whether `value` can be written as UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
