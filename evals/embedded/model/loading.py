"""Read script files, and say everything that is wrong with them at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evals.embedded.model.script import Entry, Script, ScriptFile, shorten
from evals.errors import TwogateError


def load_script(path: Path | str) -> Script:
    """Read one script file. Raises TwogateError with every problem found."""
    return load_scripts([path])


def load_scripts(paths: Iterable[Path | str]) -> Script:
    """Read several script files as one script. Raises TwogateError with every problem of every file."""
    problems: list[str] = []
    files: list[tuple[str, ScriptFile]] = []
    for path in paths:
        name = str(path)
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            problems.append(f"{name}: cannot be read: {error.strerror}; give the path of a script file")
        except UnicodeDecodeError:
            problems.append(f"{name}: is not UTF-8 text; save it as UTF-8")
        except json.JSONDecodeError as error:
            problems.append(
                f"{name}: is not JSON: {error.msg} at line {error.lineno}, column {error.colno}; mend it there"
            )
        except RecursionError:
            problems.append(f"{name}: is nested too deeply; it is no script")
        else:
            _validate(name, data, files, problems)
    return _assemble(files, problems)


def parse_script(data: Any, name: str = "script") -> Script:
    """A script from parsed JSON; ``name`` stands for the file in messages. Raises TwogateError like `load_script`."""
    problems: list[str] = []
    files: list[tuple[str, ScriptFile]] = []
    _validate(name, data, files, problems)
    return _assemble(files, problems)


def _validate(name: str, data: Any, files: list[tuple[str, ScriptFile]], problems: list[str]) -> None:
    try:
        files.append((name, ScriptFile.model_validate(data)))
    except ValidationError as error:
        problems += _problems(name, data, error.errors(include_url=False))


def _assemble(files: Sequence[tuple[str, ScriptFile]], problems: list[str]) -> Script:
    problems += _clashes(files)
    if problems:
        raise TwogateError(problems)
    return Script(
        agent=tuple(_with_defaults(entry, file) for _, file in files for entry in file.agent),
        judge=tuple(_with_defaults(entry, file) for _, file in files for entry in file.judge),
        default=next((file.default for _, file in files if file.default is not None), None),
        files=tuple(name for name, _ in files),
    )


EntryT = TypeVar("EntryT", bound=Entry)


def _with_defaults(entry: EntryT, file: ScriptFile) -> EntryT:
    update: dict[str, Any] = {}
    if entry.latency_ms is None and file.latency_ms is not None:
        update["latency_ms"] = file.latency_ms
    if entry.chunk_delay_ms is None and file.chunk_delay_ms is not None:
        update["chunk_delay_ms"] = file.chunk_delay_ms
    return entry.model_copy(update=update) if update else entry


def _clashes(files: Sequence[tuple[str, ScriptFile]]) -> list[str]:
    """Entries of which only one could ever answer, and a second default."""
    problems: list[str] = []
    seen: dict[tuple[str, str, str, str | None], str] = {}
    default: str | None = None
    for name, file in files:
        kinds: tuple[tuple[str, tuple[Entry, ...]], ...] = (("agent", file.agent), ("judge", file.judge))
        for kind, entries in kinds:
            for index, entry in enumerate(entries):
                how = "query" if entry.query is not None else "match"
                where = f"{name}: {kind}[{index}] ({shorten(entry.key)})"
                key = (kind, how, entry.key, entry.model)
                if key in seen:
                    problems.append(
                        f"{where}: {how} is that of {seen[key]} too; keep one, or use "
                        + ("trials" if kind == "agent" else "answers")
                    )
                else:
                    seen[key] = where
        if file.default is not None:
            if default is not None:
                problems.append(f"{name}: default: {default} has one already; keep one")
            default = name
    return problems


_FIXES: Mapping[str, str] = {
    "missing": "add it",
    "extra_forbidden": "remove it, or correct its spelling",
    "one_of": "keep or add one",
    "regex": "correct the expression",
    "empty_turn": "add one",
    "unreachable": "reorder the faults",
    "too_short": "add one, or leave the field out",
    "string_too_short": "give some text",
}


def _problems(file: str, data: Any, details: Sequence[ErrorDetails]) -> list[str]:
    places = [detail["loc"] for detail in details]
    return [
        _problem(file, data, detail)
        for detail in details
        # pydantic counts valid items only, so a list of which all are bad would be called too short as well
        if detail["type"] != "too_short"
        or not any(place != detail["loc"] and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _problem(file: str, data: Any, detail: ErrorDetails) -> str:
    location = list(detail["loc"])
    entry = ""
    if len(location) >= 2 and location[0] in ("agent", "judge") and isinstance(location[1], int):
        entry = f"{location[0]}[{location[1]}]"
        try:
            found = data[location[0]][location[1]]
            key = found.get("query") or next(iter(found["match"].values()))
            entry += f" ({shorten(str(key))})"
        except (KeyError, TypeError, AttributeError, StopIteration):
            pass
        location = location[2:]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    if detail["type"] == "too_short":
        message = "is empty"
    fix = _FIXES.get(detail["type"], "correct it")
    where = ": ".join(part for part in (file, entry, field) if part)
    return f"{where}: {message}; {fix}"
