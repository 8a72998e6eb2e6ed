"""File name patterns: what they match, and that none can stall."""

from __future__ import annotations

import pytest

from evals.workspace import Glob, WorkspaceError


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "app.py", True),
        ("*.py", "src/deep/app.py", True),
        ("*.py", "app.pyc", False),
        ("src/*.py", "src/app.py", True),
        ("src/*.py", "src/deep/app.py", False),
        ("src/*.py", "lib/src/app.py", False),
        ("src/**/*.py", "src/app.py", True),
        ("src/**/*.py", "src/a/b/app.py", True),
        ("**/test_*.py", "tests/test_a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("docs/**", "docs/a/b.md", True),
        ("docs/", "docs/a/b.md", True),
        ("**", "anything/at/all", True),
        ("./src/*.py", "src/app.py", True),
        ("*.{yml,yaml}", ".github/ci.yaml", True),
        ("{src,lib}/*.py", "lib/app.py", True),
        ("{src,lib}/*.py", "bin/app.py", False),
        ("*.{py", "a.{py", True),
        ("[ab]?.txt", "b1.txt", True),
        ("[!ab]?.txt", "b1.txt", False),
        (".*", "config/.env", True),
        ("*.PY", "app.py", False),
    ],
)
def test_patterns_match_as_gitignore_and_ripgrep_users_expect(pattern: str, path: str, expected: bool) -> None:
    assert Glob(pattern).matches(path) is expected


@pytest.mark.parametrize("pattern", ["", " ", "/etc/*", "../*", "a/../b", "x" * 201, "{a,b}" * 7])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        Glob(pattern)
    assert caught.value.reason == "bad_pattern"


def test_many_stars_do_not_backtrack() -> None:
    # Backtracking would take longer than the universe has existed; the suite's timeout would end it.
    assert not Glob("*a" * 60 + "b").matches("a" * 250)
    assert not Glob("**/" * 60 + "b").matches("/".join("a" * 250))
