"""Real parts that the tests here drive."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def npm_bin() -> Path:
    """The folder of the npm programs pinned in tests/real/npm; the test fails when they are not installed.

    Put it first on PATH: it holds a Node.js that is new enough for all of them.
    """
    folder = Path(__file__).parent / "npm" / "node_modules" / ".bin"
    if not (folder / "langfuse").exists():
        pytest.fail("the npm programs of tests/real/npm are not installed: run `make npm`", pytrace=False)
    return folder
