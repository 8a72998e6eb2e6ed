"""Searching: what is found, what is bounded."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from evals.workspace import Limits, Query, SafeWorkspace, WorkspaceError, search
from evals.workspace.bounded import PatternTimeoutError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("one\nTwo = round(1.5)\nthree\nfour round(\r\nfive\n")
    (tmp_path / "b.txt").write_text("round( here\n")
    (tmp_path / "binary").write_bytes(b"\0round(")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "c").write_text("round(")
    return tmp_path


@pytest.mark.parametrize(("text", "regex"), [("round(", False), (r"round\(", True)])
def test_literal_and_regular_expression_find_the_same(root: Path, text: str, regex: bool) -> None:
    with SafeWorkspace(root) as workspace:
        result = search(workspace, Query(text, regex=regex, context_lines=1))
    assert [(match.path, match.line, match.column) for match in result.matches] == [
        ("b.txt", 1, 1),
        ("src/a.py", 2, 7),
        ("src/a.py", 4, 6),
    ]
    last = result.matches[-1]
    assert (last.before, last.text, last.after) == (("three",), "four round(", ("five",))
    assert (result.files_searched, result.files_skipped, result.truncated) == (2, 1, False)


@pytest.mark.parametrize("regex", [False, True])
def test_scope_case_and_number_are_respected(root: Path, regex: bool) -> None:
    with SafeWorkspace(root) as workspace:

        def found(text: str, **options: object) -> list[tuple[str, int]]:
            query = Query(text, regex=regex, **options)  # type: ignore[arg-type]
            return [(match.path, match.line) for match in search(workspace, query).matches]

        assert found("two") == []
        assert found("two", case_sensitive=False) == [("src/a.py", 2)]
        assert found("here", path="src") == []
        assert found("o", glob="*.txt") == [("b.txt", 1)]
        assert found("o", glob="src/*.txt") == []
        assert found("four", path="src/a.py") == [("src/a.py", 4)]
        limited = search(workspace, Query("o", regex=regex, max_results=2))
        assert len(limited.matches) == 2
        assert limited.truncated


@pytest.mark.parametrize("regex", [False, True])
def test_refusals_are_the_same_in_this_process_and_in_the_worker(root: Path, regex: bool) -> None:
    with SafeWorkspace(root) as workspace:
        for path, reason in (("../x", "parent"), ("none", "missing"), (".git/c", "hidden")):
            with pytest.raises(WorkspaceError) as caught:
                search(workspace, Query("x", regex=regex, path=path))
            assert caught.value.reason == reason
        with pytest.raises(WorkspaceError, match=r"without '\.\.'"):
            search(workspace, Query("x", regex=regex, glob="../*"))


@pytest.mark.parametrize("text", ["(", "[", "*", "(?P<a>x)(?P<a>y)", "(?<=a+)b"])
def test_a_broken_expression_is_one_line_that_says_what_to_do(root: Path, text: str) -> None:
    with SafeWorkspace(root) as workspace, pytest.raises(WorkspaceError, match="literal text") as caught:
        search(workspace, Query(text, regex=True))
    assert caught.value.reason == "bad_pattern"


def test_a_hostile_expression_is_killed_at_the_limit(root: Path) -> None:
    (root / "evil.txt").write_text("a" * 60 + "!\n")
    before = set(psutil.Process().children(recursive=True))
    started = time.monotonic()
    with SafeWorkspace(root) as workspace, pytest.raises(PatternTimeoutError):
        search(workspace, Query("(a+)+$", regex=True), time_limit=0.7)
    # It would run for years; the bound is loose on purpose.
    assert time.monotonic() - started < 60
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_the_same_whatever_ends_them(root: Path, end: str) -> None:
    (root / "ends.txt").write_bytes(end.encode().join([b"first", b"needle", b"last", b""]))
    with SafeWorkspace(root) as workspace:
        for query in (Query("needle", context_lines=5), Query("^needle$", regex=True, context_lines=5)):
            (match,) = search(workspace, query).matches
            assert (match.line, match.before, match.text, match.after) == (2, ("first",), "needle", ("last",))


def test_a_path_that_says_directory_is_not_searched_as_a_file(root: Path) -> None:
    with SafeWorkspace(root) as workspace:
        for path in ("b.txt/.", "b.txt/"):
            with pytest.raises(WorkspaceError) as caught:
                search(workspace, Query("round", path=path))
            assert caught.value.reason == "not_directory"


def test_a_long_line_is_cut_around_the_match(root: Path) -> None:
    (root / "long.txt").write_text("x" * 5000 + "needle" + "y" * 5000)
    with SafeWorkspace(root) as workspace:
        (match,) = search(workspace, Query("needle")).matches
    assert match.column == 5001
    assert "needle" in match.text
    assert len(match.text) < 600
    assert match.text.startswith("…")
    assert match.text.endswith("…")


def test_files_past_the_size_limit_are_counted_as_skipped(root: Path) -> None:
    (root / "big.txt").write_text("round(" * 100)
    with SafeWorkspace(root, Limits(max_file_bytes=100)) as workspace:
        for regex in (False, True):
            result = search(workspace, Query("four", regex=regex))
            assert result.files_skipped == 2
