"""Where the Twogate that runs was installed from."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution

_KINDS = {"dir_info": "a folder", "vcs_info": "a repository", "archive_info": "a file"}


def installed_from(name: str = "twogate") -> str | None:
    """What a distribution was installed from, in words, where that was no index; None where it was, or nothing says.

    Installers write it down in ``direct_url.json``, as the Python packaging specification "Recording the Direct URL
    Origin of installed distributions" has it.
    """
    try:
        text = distribution(name).read_text("direct_url.json")
        origin = json.loads(text) if text else None
    except (PackageNotFoundError, ValueError):
        return None
    if not isinstance(origin, dict):
        return None
    return next((words for key, words in _KINDS.items() if key in origin), None)
