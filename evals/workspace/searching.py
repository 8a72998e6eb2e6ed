"""Searching a workspace's text files, with limits on files, results and time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from evals.workspace.bounded import PatternTimeoutError, in_worker
from evals.workspace.paths import WorkspaceError, split_path
from evals.workspace.safe import MAX_TOLD, LeftOut, SafeWorkspace

MAX_QUERY_CHARS: Final = 1_000
MAX_CONTEXT_LINES: Final = 20
MAX_LINE_CHARS: Final = 500
MAX_RESULT_CHARS: Final = 60_000

# What indented JSON adds to a line of context, and to a match.
_CONTEXT_LAYOUT_CHARS: Final = 10
_MATCH_LAYOUT_CHARS: Final = 130


@dataclass(frozen=True)
class Query:
    """What to look for, line by line. `glob` as in `evals.workspace.globs.Glob`, relative to `path`. `max_chars` bounds
    all matches together, as indented JSON; one match always fits."""

    text: str
    regex: bool = False
    path: str = "."
    glob: str | None = None
    case_sensitive: bool = True
    context_lines: int = 0
    max_results: int = 50
    max_chars: int = MAX_RESULT_CHARS

    @property
    def can_stall(self) -> bool:
        """Whether compiling or matching it may take for ever, so that it belongs into a process that can be killed.
        Literal text takes linear time, but when case is ignored."""
        return self.regex or not self.case_sensitive

    def check(self) -> None:
        """Raise `WorkspaceError` (`bad_pattern`) for what can be told without compiling it."""
        if not self.text:
            raise WorkspaceError("bad_pattern", self.text, "the query is empty")
        if len(self.text) > MAX_QUERY_CHARS:
            raise WorkspaceError("bad_pattern", self.text, f"the query is longer than {MAX_QUERY_CHARS} characters")
        if "\n" in self.text and not self.regex:
            raise WorkspaceError("bad_pattern", self.text, "lines are searched one at a time; give one line")

    def compiled(self) -> re.Pattern[str]:
        """The expression to look for. Raises `WorkspaceError` (`bad_pattern`) when it is none."""
        self.check()
        flags = 0 if self.case_sensitive else re.IGNORECASE
        try:
            return re.compile(self.text if self.regex else re.escape(self.text), flags)
        except (re.error, RecursionError, OverflowError) as error:
            raise WorkspaceError(
                "bad_pattern", self.text, f"not a regular expression: {error}; or search it as literal text"
            ) from None


@dataclass(frozen=True)
class Match:
    """One line that matches. `line` counts from 1, `column` from 1 in characters; long lines are cut around the
    match. `before` and `after` are the context lines asked for, but those that another match shows: no line of a file
    stands twice in a result."""

    path: str
    line: int
    column: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class SearchResult:
    """`truncated`: there are more matches than asked for, or than fit into `Query.max_chars`. `files_skipped`: not
    text, or too large. `too_deep`: as in `evals.workspace.safe.Listing`."""

    matches: tuple[Match, ...]
    truncated: bool
    files_searched: int
    files_skipped: int
    too_deep: tuple[str, ...] = ()


def search(workspace: SafeWorkspace, query: Query, time_limit: float = 5.0) -> SearchResult:
    """Look for `query`. What can stall is compiled and matched in a process of its own, killed at `time_limit` seconds.

    Raises `WorkspaceError` for a refused path or pattern, and `PatternTimeoutError` when the time is up.
    """
    query.check()
    if query.can_stall:
        return _result_from(in_worker("search", {"query": asdict(query)}, time_limit, workspace))
    return scan(workspace, query, time.monotonic() + time_limit)


def scan(workspace: SafeWorkspace, query: Query, deadline: float) -> SearchResult:
    """Look for `query` in this process, with a look at the clock between files only."""
    pattern = query.compiled()
    matches: list[Match] = []
    too_deep: list[str] = []
    searched = skipped = chars = 0
    truncated = False
    for path in _paths(workspace, query):
        if isinstance(path, LeftOut):
            if path.why == "too_deep" and len(too_deep) < MAX_TOLD:
                too_deep.append(path.path)
            continue
        if time.monotonic() > deadline:
            raise PatternTimeoutError(query.text)
        try:
            content = workspace.read_text(path)
        except WorkspaceError:
            skipped += 1
            continue
        searched += 1
        for match in _in_file(path, content, pattern, query, query.max_results - len(matches)):
            chars += _size(match)
            truncated = len(matches) == query.max_results or (chars > query.max_chars and bool(matches))
            if truncated:
                break
            matches.append(match)
        if truncated:
            break
    return SearchResult(tuple(matches), truncated, searched, skipped, tuple(too_deep))


def _paths(workspace: SafeWorkspace, query: Query) -> Iterator[str | LeftOut]:
    try:
        with workspace.open_file(query.path):
            yield "/".join(split_path(query.path))
            return
    except WorkspaceError as error:
        if error.reason != "is_directory":
            raise
    yield from workspace.iter_files(query.path, query.glob)


def _in_file(path: str, content: str, pattern: re.Pattern[str], query: Query, wanted: int) -> Iterator[Match]:
    """The matches of a file. The last of the `wanted` ones has its context as if no other followed."""
    context = query.context_lines
    lines = split_lines(content)
    found = ((index, hit.start()) for index, line in enumerate(lines) if (hit := pattern.search(line)) is not None)
    shown = 0  # how many lines from the top were passed or shown
    current = next(found, None)
    while current is not None:
        index, start = current
        current = next(found, None)
        wanted -= 1
        # What lies between two matches, and belongs to both, stands before the second.
        end = len(lines) if current is None or wanted == 0 else max(index + 1, current[0] - context)
        yield Match(
            path=path,
            line=index + 1,
            column=start + 1,
            text=_cut(lines[index], start),
            before=tuple(_cut(text, 0) for text in lines[max(shown, index - context) : index]),
            after=tuple(_cut(text, 0) for text in lines[index + 1 : min(end, index + 1 + context)]),
        )
        shown = index + 1


def _size(match: Match) -> int:
    """How many characters a match takes as indented JSON, at most."""
    context = [*match.before, *match.after]
    texts = [match.path, match.text, *context]
    return (
        _MATCH_LAYOUT_CHARS
        + len(context) * _CONTEXT_LAYOUT_CHARS
        + sum(len(json.dumps(text, ensure_ascii=False)) for text in texts)
    )


def split_lines(content: str) -> list[str]:
    """The lines of a text as editors count them: each ends at LF, CR LF or CR."""
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _cut(line: str, around: int) -> str:
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(around - MAX_LINE_CHARS // 4, len(line) - MAX_LINE_CHARS))
    end = start + MAX_LINE_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _result_from(answer: dict[str, object]) -> SearchResult:
    matches, too_deep = answer["matches"], answer["too_deep"]
    assert isinstance(matches, list)
    assert isinstance(too_deep, list)
    return SearchResult(
        matches=tuple(
            Match(**{**match, "before": tuple(match["before"]), "after": tuple(match["after"])}) for match in matches
        ),
        truncated=bool(answer["truncated"]),
        files_searched=int(str(answer["files_searched"])),
        files_skipped=int(str(answer["files_skipped"])),
        too_deep=tuple(too_deep),
    )
