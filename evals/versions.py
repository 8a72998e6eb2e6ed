"""The versions and the git state a run is recorded with."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_LONGEST_SLUG = 80  # characters; a folder's name holds three, in 255 bytes


def version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def claude_code_version(path: Path | None = None) -> str:
    """The version of the Claude Code bundled in claude-agent-sdk, or what another says of itself."""
    if path is not None:
        return _output([str(path), "--version"], path.parent).removesuffix(" (Claude Code)") or "unknown"
    from claude_agent_sdk import _cli_version

    return str(_cli_version.__cli_version__)


def git_branch(root: Path, variables: Mapping[str, str]) -> str:
    """The branch being tested: CI's own word first (a pull request is checked out without one), then git's."""
    for name in ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"):
        if variables.get(name):
            return variables[name]
    return _git(root, "symbolic-ref", "--short", "-q", "HEAD") or _git(root, "rev-parse", "--short", "HEAD") or "no-git"


def git_commit(root: Path) -> str:
    return _git(root, "rev-parse", "HEAD") or "unknown"


def slug(text: str) -> str:
    """A text fit for a part of a folder's name and of an address."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_LONGEST_SLUG].strip("-.") or "none"


def _git(root: Path, *arguments: str) -> str:
    return _output(["git", *arguments], root)


def _output(command: list[str], folder: Path) -> str:
    """What a short command says; nothing when it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
