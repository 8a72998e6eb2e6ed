"""What a path may look like before the file system is asked, and the one error all refusals are.

Lexical rules only: nothing here touches a file. `evals.workspace.safe` applies them and then opens component by
component.
"""

from __future__ import annotations

from typing import Final, Literal

from evals.errors import TwogateError

Reason = Literal[
    "empty",
    "absolute",
    "parent",
    "nul",
    "encoding",
    "blank_edge",
    "too_long",
    "hidden",
    "missing",
    "outside",
    "link_loop",
    "dangling",
    "not_regular",
    "not_directory",
    "is_directory",
    "changed",
    "denied",
    "too_large",
    "too_many",
    "too_deep",
    "not_text",
    "bad_pattern",
    "unreadable",
]

MAX_PATH_BYTES: Final = 4096
MAX_NAME_BYTES: Final = 255

# Version-control internals: they hold credentials and history no task is about.
HIDDEN_NAMES: Final = frozenset({".git"})


class WorkspaceError(TwogateError):
    """A path, file or request the workspace refuses. `reason` is stable, for a caller to act on."""

    def __init__(self, reason: Reason, path: str, message: str) -> None:
        self.reason: Reason = reason
        self.path = path
        self.message = message
        super().__init__(f"{shown(path)}: {message}")


def shown(path: str) -> str:
    """`path` made safe to print: quoted, unprintable characters escaped, long ones cut."""
    text = path if len(path) <= 200 else path[:199] + "…"
    return repr(text)


def is_hidden(name: str) -> bool:
    """Whether a component is never listed, read or copied. Case is ignored: some file systems ignore it too."""
    return name.casefold() in HIDDEN_NAMES


def names_directory(path: str) -> bool:
    """Whether a path says by its end that it is a directory's: after a slash nothing, or a dot."""
    return path.rpartition("/")[2] in ("", ".")


def split_path(path: str) -> tuple[str, ...]:
    """The components of a relative POSIX path; ``.`` alone gives none. See also `names_directory`.

    Raises `WorkspaceError` for what may never be asked: an empty or absolute path, ``..``, NUL bytes, text that
    no file name can be encoded from, over-long names, `.git`, and components that end in a dot or begin or end in
    white space (Windows and some network file systems open another file for those).
    """
    if not isinstance(path, str) or path == "":
        raise WorkspaceError("empty", str(path), "the path is empty; give one relative to the root")
    if "\0" in path:
        raise WorkspaceError("nul", path, "a path may not hold a NUL byte")
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        raise WorkspaceError("encoding", path, "the path is not valid Unicode text") from None
    if len(encoded) > MAX_PATH_BYTES:
        raise WorkspaceError("too_long", path, f"the path is longer than {MAX_PATH_BYTES} bytes")
    if path.startswith("/"):
        raise WorkspaceError("absolute", path, "absolute paths are refused; give one relative to the root")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    for part in parts:
        if part == "..":
            raise WorkspaceError("parent", path, "'..' is refused; give a path from the root downwards")
        if part.endswith(".") or part != part.strip():
            raise WorkspaceError(
                "blank_edge",
                path,
                f"the name {shown(part)} ends in a dot or has white space at an edge; give the exact file name",
            )
        if len(part.encode("utf-8")) > MAX_NAME_BYTES:
            raise WorkspaceError("too_long", path, f"a name in it is longer than {MAX_NAME_BYTES} bytes")
        if is_hidden(part):
            raise WorkspaceError("hidden", path, f"{part} is version-control data and is not served")
    return parts
