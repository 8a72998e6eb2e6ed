"""Where the files shipped with Twogate are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def shipped(*parts: str) -> Path:
    """The path of a shipped file, e.g. ``shipped("fixtures", "datasets", "pr.json")``. It need not exist."""
    package = Path(__file__).resolve().parent
    inside = package / "_shipped"
    return (inside if inside.is_dir() else package.parent).joinpath(*parts)
