"""What is known to vary between runs, put aside from a stream of output as it is read.

All of a stream is normalised and hashed, however long it is; only the text that is kept is bounded. So two runs whose
output differs anywhere have different digests, and the same text is kept of two runs that agree.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Work is done on blocks of about this many bytes. A line longer than that is taken in pieces: folders are replaced
# all along it, elapsed times at its start only.
_BLOCK_BYTES: Final = 1 << 16


def _unittest(found: re.Match[bytes]) -> bytes:
    return b"%s<elapsed>s" % found[1]


def _pytest(found: re.Match[bytes]) -> bytes:
    # The line is filled up to a width with "=", so how many there are depends on how long the time is.
    before, after = (b"==== " if found[1] else b""), (b" ====" if found[3] else b"")
    return b"%s%s<elapsed>s%s" % (before, found[2], after)


# Durations that test runners print. (rule's name, pattern, what stands there afterwards)
_ELAPSED: Final = (
    ("unittest elapsed time", re.compile(rb"^(Ran \d+ tests? in )\d+(?:\.\d+)?s", re.MULTILINE), _unittest),
    (
        "pytest elapsed time",
        re.compile(
            rb"^(=+ )?("
            rb"(?:(?:\d+ (?:subtests )?\w+, )*\d+ (?:subtests )?\w+"
            rb"|no tests ran"
            rb"|(?:no|\d+(?:/\d+)?) tests? (?:collected|found)(?: \(\d+ deselected\))?(?:, \d+ \w+)*)"
            rb" in )\d+\.\d+s(?: \((?:\d+ days?, )?\d+:\d\d:\d\d\))?( =+)?",
            re.MULTILINE,
        ),
        _pytest,
    ),
)


@dataclass(frozen=True)
class Whole:
    """A stream that was longer than what was kept of it: its size in bytes and the hexadecimal SHA-256 of all of it,
    both taken after normalising."""

    size: int
    digest: str


@dataclass(frozen=True)
class Normalised:
    """Text with what is known to vary replaced, and the names of the rules that replaced something. `whole` is None
    when `text` is all there was."""

    text: str
    rules: tuple[str, ...]
    whole: Whole | None = None


def normalise(output: bytes, paths: Sequence[tuple[str, str]]) -> Normalised:
    """Decode one stream and replace folders (`paths`: folder, name) and test runners' elapsed times.

    Bytes that are not UTF-8 stand as ``\\xNN``.
    """
    stream = Normaliser(paths)
    stream.feed(output)
    return stream.finish()


class Normaliser:
    """`normalise` for a stream that arrives in chunks, of which the first `limit` bytes, once normalised, are kept.

    It works on bytes and decodes only what is kept: decoding what is no text is too slow for a stream of any length.
    """

    def __init__(self, paths: Sequence[tuple[str, str]], limit: int | None = None) -> None:
        self._paths = [(os.fsencode(folder), name.encode(), _path_rule(name)) for folder, name in paths]
        self._limit = limit
        self._pending = bytearray()
        self._inside_line = False
        self._used: set[str] = set()
        self._kept = bytearray()
        self._size = 0
        self._hash = hashlib.sha256()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._pending += chunk
        if len(self._pending) >= _BLOCK_BYTES:
            cut = self._pending.rfind(b"\n") + 1 or self._cut_in_line()
            self._take(bytes(self._pending[:cut]))
            del self._pending[:cut]

    def finish(self) -> Normalised:
        """What the stream was, after its end."""
        self._take(bytes(self._pending))
        self._pending.clear()
        names = dict.fromkeys([*(rule for _, _, rule in self._paths), *(rule for rule, _, _ in _ELAPSED)])
        rules = tuple(name for name in names if name in self._used)
        if self._limit is None or self._size <= self._limit:
            return Normalised(self._kept.decode("utf-8", "backslashreplace"), rules)
        # Half a character at the cut is left out.
        text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(bytes(self._kept))
        return Normalised(text, rules, Whole(self._size, self._hash.hexdigest()))

    def _cut_in_line(self) -> int:
        """Where a line that has no end yet can be cut: not in a folder's path."""
        longest = max((len(folder) for folder, _, _ in self._paths), default=1)
        cut = len(self._pending) - longest + 1
        while True:
            starts = [
                self._pending.find(folder, max(0, cut - len(folder) + 1), cut + len(folder) - 1)
                for folder, _, _ in self._paths
            ]
            spanning = [start for start in starts if 0 <= start < cut]
            if not spanning:
                return cut
            cut = min(spanning)

    def _take(self, content: bytes) -> None:
        if not content:
            return
        head = b""
        if self._inside_line:
            # What looks like the start of a line here is the middle of one.
            end = content.find(b"\n") + 1 or len(content)
            head, content = content[:end], content[end:]
        self._inside_line = not (content or head).endswith(b"\n")
        for folder, name, rule in self._paths:
            if folder in head or folder in content:
                self._used.add(rule)
                head, content = head.replace(folder, name), content.replace(folder, name)
        if b" in " in content:
            for rule, pattern, replacement in _ELAPSED:
                content, count = pattern.subn(replacement, content)
                if count:
                    self._used.add(rule)
        content = head + content
        self._size += len(content)
        self._hash.update(content)
        room = len(content) if self._limit is None else max(0, self._limit - len(self._kept))
        self._kept += content[:room]


def _path_rule(name: str) -> str:
    return f"path of the {name.strip('<>')}"
