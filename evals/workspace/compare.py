"""Comparing the runs of one command: what is known to vary is put aside first, and said so."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal

Stream = Literal["exit status", "stdout", "stderr"]

_LINE_CHARS: Final = 500

# Durations that test runners print. (rule's name, pattern, what stands there afterwards)
_ELAPSED: Final = (
    (
        "unittest elapsed time",
        re.compile(r"^(Ran \d+ tests? in )\d+(?:\.\d+)?s", re.MULTILINE),
        r"\1<elapsed>s",
    ),
    (
        "pytest elapsed time",
        re.compile(
            r"^((?:=+ )?(?:\d+ \w+, )*(?:\d+ \w+|no tests ran) in )\d+\.\d+s(?: \(\d+:\d\d:\d\d\))?",
            re.MULTILINE,
        ),
        r"\1<elapsed>s",
    ),
)


@dataclass(frozen=True)
class Normalised:
    """Text with what is known to vary replaced, and the names of the rules that replaced something."""

    text: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class RunOutput:
    """What is compared of one run. `status` is its exit status, signal, timeout or error as one word."""

    status: str
    stdout: Normalised
    stderr: Normalised

    @property
    def digest(self) -> str:
        """``sha256:`` and the hexadecimal digest of the normalised standard output, a NUL byte and standard error."""
        parts = (self.stdout.text.encode("utf-8"), self.stderr.text.encode("utf-8"))
        return "sha256:" + hashlib.sha256(b"\0".join(parts)).hexdigest()


@dataclass(frozen=True)
class Difference:
    """The first thing in which a run differs from the first one. `line` counts from 1; None for the exit status. A
    text that is None: that run has no such line."""

    stream: Stream
    line: int | None
    run: int
    expected: str | None
    found: str | None


def normalise(output: bytes, paths: Sequence[tuple[str, str]]) -> Normalised:
    """Decode one stream and replace folders (`paths`: folder, name) and test runners' elapsed times.

    Bytes that are not UTF-8 stand as ``\\xNN``.
    """
    text = output.decode("utf-8", "backslashreplace")
    rules = []
    for folder, name in paths:
        replaced = text.replace(folder, name)
        if replaced != text:
            rules.append(f"path of the {name.strip('<>')}")
        text = replaced
    for rule, pattern, replacement in _ELAPSED:
        text, count = pattern.subn(replacement, text)
        if count:
            rules.append(rule)
    return Normalised(text, tuple(rules))


def first_difference(runs: Sequence[RunOutput]) -> Difference | None:
    """Where the first run that differs from run 1 begins to; runs count from 1."""
    first = runs[0]
    for number, other in enumerate(runs[1:], 2):
        if other.status != first.status:
            return Difference("exit status", None, number, first.status, other.status)
        pairs: tuple[tuple[Stream, Normalised, Normalised], ...] = (
            ("stdout", first.stdout, other.stdout),
            ("stderr", first.stderr, other.stderr),
        )
        for stream, expected, found in pairs:
            difference = _first_line(stream, number, expected.text, found.text)
            if difference is not None:
                return difference
    return None


def _first_line(stream: Stream, run: int, expected: str, found: str) -> Difference | None:
    if expected == found:
        return None
    for number, (one, other) in enumerate(zip_longest(expected.split("\n"), found.split("\n")), 1):
        if one != other:
            return Difference(stream, number, run, _cut(one), _cut(other))
    raise AssertionError("texts differ in no line")


def _cut(line: str | None) -> str | None:
    if line is None or len(line) <= _LINE_CHARS:
        return line
    return line[: _LINE_CHARS - 1] + "…"
