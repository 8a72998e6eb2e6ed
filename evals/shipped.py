"""Where the files shipped with Twogate are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def guide(name: str, root: Path | None = None) -> str:
    """Where a reader of a message finds a guide, e.g. ``guide("authoring.md")``.

    That is ``docs/authoring.md`` in Twogate's own checkout, and the whole path where the guide is not below root (the
    current folder), as in a project that installs Twogate.
    """
    path, here = shipped("docs", name), (root or Path.cwd()).resolve()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def shipped(*parts: str) -> Path:
    """The path of a shipped file, e.g. ``shipped("fixtures", "datasets", "pr.json")``. It need not exist."""
    package = Path(__file__).resolve().parent
    inside = package / "_shipped"
    return (inside if inside.is_dir() else package.parent).joinpath(*parts)
