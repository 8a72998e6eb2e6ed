"""The entries of .env.example: a new file, or what an existing one lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ENTRY = re.compile(r"^\s*#?\s*(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]*)\s*=")
_ANY_ENTRY = re.compile(r"^\s*#?\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=")
_HEAD = "# Copy to .env and fill in what you use. The real environment wins over that file. Never commit .env.\n"
BEGIN = "# --- Twogate: added by `twogate init` ---"
END = "# --- Twogate: end ---"


@dataclass(frozen=True)
class Entry:
    """A variable's line with the comments above it."""

    name: str
    text: str


def shipped_entries(text: str) -> list[Entry]:
    """The entries of Twogate's own .env.example, each with the comments since the one before."""
    entries: list[Entry] = []
    comments: list[str] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match is not None:
            entries.append(Entry(match["name"], "\n".join([*comments, line])))
            comments = []
        elif line.startswith("#"):
            comments.append(line)
        else:
            comments = []
    return entries


def entries_for(shipped_text: str, variables: Iterable[str]) -> list[Entry]:
    """Twogate's entries, and one for each other variable that the target names."""
    entries = shipped_entries(shipped_text)
    known = {entry.name for entry in entries}
    own = [Entry(name, f"{name}=") for name in dict.fromkeys(variables) if name not in known]
    if own:
        own[0] = Entry(own[0].name, f"# For the server under test (see twogate.toml).\n{own[0].text}")
    return [*entries, *own]


def new_file(entries: Iterable[Entry]) -> str:
    """The text of a new .env.example."""
    return _HEAD + "".join(
        f"\n{entry.text}\n" if entry.text.startswith("#") else f"{entry.text}\n" for entry in entries
    )


def extended(existing: str, entries: Iterable[Entry]) -> tuple[str, list[str]]:
    """An existing file's text with a marked block of what it lacks at its end, and the names in that block.

    Nothing that stands there is changed. A variable counts as there when it stands commented out, too.
    """
    there = {match["name"] for line in existing.splitlines() if (match := _ANY_ENTRY.match(line)) is not None}
    missing = [entry for entry in entries if entry.name not in there]
    if not missing:
        return existing, []
    end = "\r\n" if "\r\n" in existing else "\n"
    body = "\n".join([BEGIN, *(entry.text for entry in missing), END]).replace("\n", end)
    between = "" if not existing else end if existing.endswith("\n") else end * 2
    return f"{existing}{between}{body}{end}", [entry.name for entry in missing]
