"""File name patterns, matched in time linear in pattern × name, so that no pattern can stall a listing."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from evals.workspace.paths import WorkspaceError

MAX_PATTERN_CHARS: Final = 200
_MAX_ALTERNATIVES: Final = 64


@dataclass(frozen=True)
class Glob:
    """A file name pattern in the style of .gitignore and ripgrep.

    ``*`` and ``?`` stay within one path component, ``**`` spans any number of them, ``[ab]`` is a set and
    ``{a,b}`` a choice. A pattern without a slash matches the last component at any depth (``*.py``); one with a
    slash matches the whole path from where the listing starts (``src/**/*.py``).
    """

    pattern: str

    def __post_init__(self) -> None:
        if not self.pattern.strip():
            raise WorkspaceError("bad_pattern", self.pattern, "the pattern is empty; leave it out to match all")
        if len(self.pattern) > MAX_PATTERN_CHARS:
            raise WorkspaceError(
                "bad_pattern", self.pattern, f"the pattern is longer than {MAX_PATTERN_CHARS} characters"
            )
        if self.pattern.startswith("/") or ".." in self.pattern.split("/"):
            raise WorkspaceError(
                "bad_pattern", self.pattern, "write the pattern relative to the path searched, without '..'"
            )
        _ = self._alternatives

    @cached_property
    def _alternatives(self) -> tuple[tuple[Callable[[str], bool] | None, ...], ...]:
        """One tuple a brace alternative; in it one matcher a component, None for ``**``."""
        return tuple(
            tuple(None if part == "**" else _component(part) for part in _components(text))
            for text in _expand_braces(self.pattern)
        )

    def matches(self, path: str) -> bool:
        """Whether a relative path with ``/`` separators matches."""
        parts = path.split("/")
        return any(_match(alternative, parts) for alternative in self._alternatives)


def _components(pattern: str) -> list[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/"):
        parts.append("**")
    return ["**", *parts] if len(parts) == 1 and "/" not in pattern else parts


def _component(pattern: str) -> Callable[[str], bool]:
    # fnmatch.translate uses atomic groups: no backtracking across stars.
    compiled = re.compile(fnmatch.translate(pattern))
    return lambda name: compiled.match(name) is not None


def _match(matchers: Sequence[Callable[[str], bool] | None], parts: Sequence[str]) -> bool:
    # reachable: the numbers of leading matchers that can consume the parts seen so far.
    reachable = _closure({0}, matchers)
    for part in parts:
        following = set()
        for index in reachable:
            if index == len(matchers):
                continue
            matcher = matchers[index]
            if matcher is None:
                following.add(index)
            elif matcher(part):
                following.add(index + 1)
        reachable = _closure(following, matchers)
        if not reachable:
            return False
    return len(matchers) in reachable


def _closure(states: set[int], matchers: Sequence[Callable[[str], bool] | None]) -> set[int]:
    closed = set(states)
    for index in sorted(states):
        while index < len(matchers) and matchers[index] is None:
            index += 1
            closed.add(index)
    return closed


def _expand_braces(pattern: str) -> list[str]:
    """``*.{py,pyi}`` → ``*.py``, ``*.pyi``. A brace without its partner stands for itself; they do not nest."""
    done: list[str] = [""]
    position = 0
    for found in re.finditer(r"\{([^{}]*,[^{}]*)\}", pattern):
        literal = pattern[position : found.start()]
        done = [head + literal + choice for head in done for choice in found.group(1).split(",")]
        if len(done) > _MAX_ALTERNATIVES:
            raise WorkspaceError("bad_pattern", pattern, f"the braces give more than {_MAX_ALTERNATIVES} alternatives")
        position = found.end()
    return [head + pattern[position:] for head in done]
