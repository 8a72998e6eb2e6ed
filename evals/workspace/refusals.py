"""What the file system's answers mean to who asked: kinds of entries, and errors as refusals."""

from __future__ import annotations

import errno
import stat
from typing import Literal

from evals.workspace.paths import WorkspaceError

EntryKind = Literal["file", "directory", "link", "other"]


def decode_text(content: bytes, path: str) -> str:
    """UTF-8 text of a file's bytes; `not_text` when it holds NUL bytes or is not UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkspaceError("not_text", path, f"not a UTF-8 text file (byte {error.start})") from None
    if "\0" in text:
        raise WorkspaceError("not_text", path, "not a text file: it holds NUL bytes")
    return text


def entry_kind(mode: int) -> EntryKind:
    """What a mode says an entry is."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def require_regular(path: str, mode: int) -> None:
    """Raise unless a mode is a regular file's."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise WorkspaceError("is_directory", path, "it is a directory; name a file in it")
    if stat.S_ISLNK(mode):
        raise WorkspaceError("changed", path, "it was replaced by a symbolic link while it was being opened")
    names = (
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    what = next((name for test, name in names if test(mode)), "a special file")
    raise WorkspaceError("not_regular", path, f"it is {what}; only regular files are read")


def refusal(path: str, error: OSError, followed: bool) -> WorkspaceError:
    """What an OSError met on the way means to who asked. `followed`: a link was followed before."""
    match error.errno:
        case errno.ENOENT if followed:
            return WorkspaceError("dangling", path, "a symbolic link in it leads to nothing")
        case errno.ENOENT:
            return WorkspaceError("missing", path, "no such file or directory")
        case errno.ENOTDIR:
            return WorkspaceError("not_directory", path, "a component in it is not a directory")
        case errno.ELOOP:
            return WorkspaceError("changed", path, "it was replaced by a symbolic link while it was being opened")
        case errno.EACCES | errno.EPERM:
            return WorkspaceError("denied", path, "permission denied")
        case errno.ENAMETOOLONG:
            return WorkspaceError("too_long", path, "a name in it is too long")
        case errno.ENXIO:
            return WorkspaceError("not_regular", path, "it is a socket or a device; only regular files are read")
        case _:
            return WorkspaceError("unreadable", path, f"cannot be opened: {error.strerror}")
