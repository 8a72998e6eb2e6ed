"""Searching: what is found, what is bounded."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
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


@pytest.mark.parametrize("regex", [False, True])
def test_directories_that_nest_too_deep_are_left_out_and_told(root: Path, regex: bool) -> None:
    (root / "src" / "deep" / "deeper").mkdir(parents=True)
    (root / "src" / "deep" / "deeper" / "c.txt").write_text("round(")
    with SafeWorkspace(root, Limits(max_depth=2)) as workspace:
        result = search(workspace, Query("here", regex=regex))
        assert [match.path for match in result.matches] == ["b.txt"]
        assert result.too_deep == ("src/deep",)


def shown(root: Path, query: Query) -> list[list[str]]:
    with SafeWorkspace(root) as workspace:
        return [[*match.before, f"*{match.text}", *match.after] for match in search(workspace, query).matches]


def test_no_line_stands_twice_when_contexts_overlap(root: Path) -> None:
    (root / "c.txt").write_text("1\n2\nhit 3\n4\nhit 5\nhit 6\n7\n8\n9\n10\n11\nhit 12\n13\n")
    assert shown(root, Query("hit", context_lines=2)) == [
        ["1", "2", "*hit 3"],
        ["4", "*hit 5"],
        ["*hit 6", "7", "8"],
        ["10", "11", "*hit 12", "13"],
    ]
    assert shown(root, Query("hit", context_lines=0)) == [["*hit 3"], ["*hit 5"], ["*hit 6"], ["*hit 12"]]
    # The last match asked for has its context, also where another match follows.
    assert shown(root, Query("hit", context_lines=2, max_results=1)) == [["1", "2", "*hit 3", "4", "hit 5"]]


@pytest.mark.parametrize("regex", [False, True])
@pytest.mark.parametrize("line", ["needle", "e" * 400, '"\\\t' * 50 + "e", "é" * 300 + "e"])
def test_all_matches_together_are_bounded(root: Path, regex: bool, line: str) -> None:
    (root / "big.txt").write_text(f"{line}\n\n\n" * (1_000_000 // len(line) // 3))
    query = Query("e", regex=regex, path="big.txt", context_lines=20, max_results=500)
    with SafeWorkspace(root) as workspace:
        result = search(workspace, query)
    assert result.truncated
    assert 1 < len(result.matches) < 500
    assert 30_000 < len(json.dumps(asdict(result), indent=2, ensure_ascii=False)) < 60_000


def test_one_match_is_returned_whatever_its_size(root: Path) -> None:
    with SafeWorkspace(root) as workspace:
        result = search(workspace, Query("o", max_chars=1))
    assert (len(result.matches), result.truncated) == (1, True)


def test_an_expression_that_takes_long_to_compile_is_stopped_at_the_limit(root: Path) -> None:
    query = Query("[\x01-\uffff]" * 200, regex=True, case_sensitive=False)
    before = time.process_time()
    with SafeWorkspace(root) as workspace, pytest.raises(PatternTimeoutError):
        search(workspace, query, time_limit=0.5)
    # It takes several seconds, and none of them in this process.
    assert time.process_time() - before < 2


def test_literal_text_without_case_that_repeats_itself_is_stopped_at_the_limit(root: Path) -> None:
    (root / "evil.txt").write_text("a" * 2_000_000)
    with SafeWorkspace(root) as workspace, pytest.raises(PatternTimeoutError):
        search(workspace, Query("a" * 999 + "b", case_sensitive=False), time_limit=0.5)
