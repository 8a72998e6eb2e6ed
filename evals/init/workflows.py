"""The two gates' workflows, made fit for a repository that installs Twogate instead of being it."""

from __future__ import annotations

import shlex
from pathlib import Path

from evals.errors import TwogateError
from evals.items import Gate

# What differs in another repository. Each must stand in the shipped files: a test holds them to it.
_CACHE = "          cache: pip\n          cache-dependency-path: constraints.txt\n"
_INSTALL = (
    "        run: python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt --editable .\n"
)
_BRANCH = "branches: [main]"
_OWN_STEP = """\
      # Build or install the server under test here, as twogate.toml starts it.
"""


def workflow_text(shipped: Path, gate: Gate, requirement: str, branch: str) -> str:
    """The workflow of a gate.

    requirement: what pip installs, such as ``twogate==0.1.0``. branch: the main branch, whose pushes run the merge
    gate. Raises TwogateError when the shipped file is not there, or is not as this module knows it.
    """
    try:
        text = shipped.read_text(encoding="utf-8")
    except OSError as error:
        raise TwogateError(f"{shipped.name}: the shipped workflow cannot be read: {error.strerror}") from None
    pip = f"python -m pip install --disable-pip-version-check --quiet {shlex.quote(' '.join(requirement.split()))}"
    install = f"        run: |\n          {pip}\n{_OWN_STEP}"
    replacements = {_CACHE: "", _INSTALL: install}
    if gate == "merge":
        replacements[_BRANCH] = f"branches: [{branch}]"
    for known, other in replacements.items():
        if known not in text:
            raise TwogateError(f"{shipped.name}: the shipped workflow has no {known.strip()!r}; it can't be adapted")
        text = text.replace(known, other)
    return text
