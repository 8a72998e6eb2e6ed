"""What is shipped beside the package: guides that messages name, and that every installation has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from lab import REPOSITORY

from evals.shipped import guide, shipped


def test_a_guide_is_named_as_its_reader_can_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert guide("authoring.md") == "docs/authoring.md"
    monkeypatch.chdir(tmp_path)
    assert guide("authoring.md") == str(REPOSITORY / "docs" / "authoring.md")
    assert guide("authoring.md", REPOSITORY) == "docs/authoring.md"


def test_every_guide_a_message_names_is_there_and_in_the_wheel() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "evals").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"""guide\(["']([^"']+)["']""", text)}
    assert {"diagnosis.md", "verifier.md", "judges.md"} <= named
    assert [name for name in named if not shipped("docs", name).is_file()] == []
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    included = config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs"] == "evals/_shipped/docs"
