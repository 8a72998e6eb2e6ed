"""Searching a workspace's text files, with limits on files, results and time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from evals.workspace.bounded import PatternTimeoutError, in_worker
from evals.workspace.paths import WorkspaceError, split_path
from evals.workspace.safe import SafeWorkspace

MAX_QUERY_CHARS: Final = 1_000
MAX_CONTEXT_LINES: Final = 20
MAX_LINE_CHARS: Final = 500


@dataclass(frozen=True)
class Query:
    """What to look for, line by line. `glob` as in `evals.workspace.globs.Glob`, relative to `path`."""

    text: str
    regex: bool = False
    path: str = "."
    glob: str | None = None
    case_sensitive: bool = True
    context_lines: int = 0
    max_results: int = 50

    def compiled(self) -> re.Pattern[str]:
        """The expression to look for. Raises `WorkspaceError` (`bad_pattern`) when it is none."""
        if not self.text:
            raise WorkspaceError("bad_pattern", self.text, "the query is empty")
        if len(self.text) > MAX_QUERY_CHARS:
            raise WorkspaceError("bad_pattern", self.text, f"the query is longer than {MAX_QUERY_CHARS} characters")
        if "\n" in self.text and not self.regex:
            raise WorkspaceError("bad_pattern", self.text, "lines are searched one at a time; give one line")
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
    match. `before` and `after` are the context lines asked for."""

    path: str
    line: int
    column: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class SearchResult:
    """`truncated`: there were more matches than asked for. `files_skipped`: not text, or too large."""

    matches: tuple[Match, ...]
    truncated: bool
    files_searched: int
    files_skipped: int


def search(workspace: SafeWorkspace, query: Query, time_limit: float = 5.0) -> SearchResult:
    """Look for `query`; regular expressions run in a process of their own that is killed at `time_limit` seconds.

    Raises `WorkspaceError` for a refused path or pattern, and `PatternTimeoutError` when the time is up.
    """
    query.compiled()
    if query.regex:
        return _result_from(in_worker("search", {"query": asdict(query)}, time_limit, workspace))
    return scan(workspace, query, time.monotonic() + time_limit)


def scan(workspace: SafeWorkspace, query: Query, deadline: float) -> SearchResult:
    """Look for `query` in this process, with a look at the clock between files only."""
    pattern = query.compiled()
    matches: list[Match] = []
    searched = skipped = 0
    for path in _paths(workspace, query):
        if time.monotonic() > deadline:
            raise PatternTimeoutError(query.text)
        try:
            content = workspace.read_text(path)
        except WorkspaceError:
            skipped += 1
            continue
        searched += 1
        for match in _in_file(path, content, pattern, query.context_lines):
            if len(matches) == query.max_results:
                return SearchResult(tuple(matches), True, searched, skipped)
            matches.append(match)
    return SearchResult(tuple(matches), False, searched, skipped)


def _paths(workspace: SafeWorkspace, query: Query) -> Iterator[str]:
    try:
        with workspace.open_file(query.path):
            yield "/".join(split_path(query.path))
            return
    except WorkspaceError as error:
        if error.reason != "is_directory":
            raise
    for path in workspace.iter_files(query.path, query.glob):
        if path is not None:
            yield path


def _in_file(path: str, content: str, pattern: re.Pattern[str], context: int) -> Iterator[Match]:
    lines = split_lines(content)
    for index, line in enumerate(lines):
        found = pattern.search(line)
        if found is None:
            continue
        yield Match(
            path=path,
            line=index + 1,
            column=found.start() + 1,
            text=_cut(line, found.start()),
            before=tuple(_cut(text, 0) for text in lines[max(0, index - context) : index]),
            after=tuple(_cut(text, 0) for text in lines[index + 1 : index + 1 + context]),
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
    matches = answer["matches"]
    assert isinstance(matches, list)
    return SearchResult(
        matches=tuple(
            Match(**{**match, "before": tuple(match["before"]), "after": tuple(match["after"])}) for match in matches
        ),
        truncated=bool(answer["truncated"]),
        files_searched=int(str(answer["files_searched"])),
        files_skipped=int(str(answer["files_skipped"])),
    )
