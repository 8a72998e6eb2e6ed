"""Comparing the runs of one command, after what is known to vary was put aside (`evals.workspace.normalising`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal

from evals.workspace.normalising import Normalised, Whole

Stream = Literal["exit status", "stdout", "stderr"]

_LINE_CHARS: Final = 500


@dataclass(frozen=True)
class RunOutput:
    """What is compared of one run. `status` is its exit status, signal, timeout or error as one word."""

    status: str
    stdout: Normalised
    stderr: Normalised

    @property
    def digest(self) -> str:
        """``sha256:`` and the hexadecimal digest of the normalised standard output, a NUL byte and standard error. Of a
        stream that was cut the text is followed by a NUL byte and the hexadecimal digest of the whole stream."""
        parts: list[str] = []
        for stream in (self.stdout, self.stderr):
            parts += [stream.text] if stream.whole is None else [stream.text, stream.whole.digest]
        return "sha256:" + hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Difference:
    """The first thing in which a run differs from the first one. `line` counts from 1; None for the exit status, and
    for a stream that differs past what was kept of it, of which the texts tell size and digest. A text that is None:
    that run has no such line."""

    stream: Stream
    line: int | None
    run: int
    expected: str | None
    found: str | None


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
            difference = _in_stream(stream, number, expected, found)
            if difference is not None:
                return difference
    return None


def _in_stream(stream: Stream, run: int, expected: Normalised, found: Normalised) -> Difference | None:
    if expected.text != found.text:
        return _first_line(stream, run, expected.text, found.text)
    if expected.whole != found.whole:
        return Difference(stream, None, run, _past_kept(expected.whole), _past_kept(found.whole))
    return None


def _past_kept(whole: Whole | None) -> str:
    if whole is None:
        return "nothing past the part that is kept"
    return f"past the part that is kept: {whole.size} bytes in all, sha256:{whole.digest}"


def _first_line(stream: Stream, run: int, expected: str, found: str) -> Difference:
    for number, (one, other) in enumerate(zip_longest(expected.split("\n"), found.split("\n")), 1):
        if one != other:
            return Difference(stream, number, run, _cut(one), _cut(other))
    raise AssertionError("texts differ in no line")


def _cut(line: str | None) -> str | None:
    if line is None or len(line) <= _LINE_CHARS:
        return line
    return line[: _LINE_CHARS - 1] + "…"
