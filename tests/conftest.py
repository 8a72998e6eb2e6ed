from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import settings
from items_support import Items, Said
from lab import REPOSITORY, REPOSITORY_TARGET, Lab, clean_environment

from evals.cli.main import cli
from evals.errors import TwogateError

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


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Items:
    """``twogate items`` run in this process, in an empty folder with the repository server as its target."""
    for name in os.environ.keys() - clean_environment().keys():
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    Path("twogate.toml").write_text(REPOSITORY_TARGET)

    def run(*arguments: str) -> Said:
        result = CliRunner().invoke(cli, ["items", *arguments])
        error = result.exception
        if error is not None and not isinstance(error, SystemExit | TwogateError):
            raise error
        lines = error.lines if isinstance(error, TwogateError) else result.stderr.splitlines()
        return Said(result.exit_code, result.stdout, lines)

    return run
