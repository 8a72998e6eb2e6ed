from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from lab import REPOSITORY, REPOSITORY_TARGET, Lab

# How long an example takes says something of the machine; on a busy one it failed a test.
settings.register_profile("twogate", deadline=None)
settings.load_profile("twogate")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """An empty lab with the repository server as its target."""
    created = Lab(tmp_path)
    created.target(REPOSITORY_TARGET)
    return created


@pytest.fixture(scope="session")
def npm_bin() -> Path:
    """The folder of the npm programs pinned in tests/real/npm; the test fails when they are not installed.

    Put it first on PATH: it holds a Node.js that is new enough for all of them.
    """
    folder = REPOSITORY / "tests" / "real" / "npm" / "node_modules" / ".bin"
    if not (folder / "langfuse").exists():
        pytest.fail("the npm programs of tests/real/npm are not installed: run `make npm`", pytrace=False)
    return folder
