"""A fresh copy of a workspace, made through its safe walk: nothing from outside the root gets into it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from evals.errors import TwogateError
from evals.workspace.paths import WorkspaceError, shown
from evals.workspace.safe import Entry, SafeWorkspace

MAX_COPY_BYTES: Final = 2 * 1024**3

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What opening or reading a link answers when the entry is no longer of the kind it was.
_CHANGED: Final = frozenset({errno.EINVAL, errno.ELOOP, errno.ENXIO, errno.ENOTDIR})


@dataclass(frozen=True)
class Skipped:
    """An entry that was left out of a copy, and why."""

    path: str
    reason: str


def copy_workspace(workspace: SafeWorkspace, destination: Path) -> tuple[Skipped, ...]:
    """Copy all but `.git` into `destination`, which must not exist; what was left out, and why.

    Mode bits and modification times are kept. A symbolic link that stays inside is made again as a relative link;
    one that leaves the root, leads to nothing or loops is left out, and so are FIFOs, sockets and devices.
    """
    try:
        destination.mkdir(mode=0o700)
    except OSError as error:
        raise TwogateError(f"the workspace cannot be copied: {error.strerror}") from None
    skipped: list[Skipped] = []
    folders: list[tuple[Path, int]] = []
    left = MAX_COPY_BYTES
    for entry in workspace.walk():
        target = destination / entry.path
        try:
            if entry.too_deep:
                # A command that is run without a part of its workspace shows nothing.
                raise WorkspaceError(
                    "too_deep",
                    entry.path,
                    f"directories nest deeper than {workspace.limits.max_depth}; verify a part of the workspace",
                )
            if entry.kind == "directory":
                mode = os.stat(entry.name, dir_fd=entry.parent, follow_symlinks=False).st_mode
                target.mkdir(mode=0o700)
                folders.append((target, stat.S_IMODE(mode)))
            elif entry.kind == "link":
                _copy_link(workspace, entry, target)
            elif entry.kind == "file":
                left -= _copy_file(entry, target, left)
            else:
                skipped.append(_skipped(entry, "not a regular file, directory or link"))
        except WorkspaceError as error:
            if error.reason in ("too_large", "too_deep"):
                raise
            skipped.append(_skipped(entry, error.message))
        except FileNotFoundError:
            skipped.append(_skipped(entry, "disappeared while it was copied"))
        except PermissionError:
            skipped.append(_skipped(entry, "permission denied"))
        except OSError as error:
            if error.errno in _CHANGED:
                skipped.append(_skipped(entry, "was replaced by something else while it was copied"))
                continue
            raise TwogateError(f"{shown(entry.path)}: cannot be copied: {error.strerror}") from None
    # Deepest first, and only now: a folder that may not be written to must be filled before.
    for folder, mode in reversed(folders):
        folder.chmod(mode | stat.S_IRWXU)
    return tuple(skipped)


def _skipped(entry: Entry, reason: str) -> Skipped:
    # A name need not be Unicode; a report is.
    return Skipped(entry.path.encode("utf-8", "backslashreplace").decode(), reason)


def _copy_file(entry: Entry, target: Path, left: int) -> int:
    source = os.open(entry.name, _READ, dir_fd=entry.parent)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise WorkspaceError("changed", entry.path, "was replaced by something else while it was copied")
        written = 0
        copy = os.open(target, _WRITE, 0o600)
        try:
            while chunk := os.read(source, 1 << 20):
                written += len(chunk)
                if written > left:
                    raise WorkspaceError(
                        "too_large", ".", f"the workspace is larger than {MAX_COPY_BYTES} bytes; serve a part of it"
                    )
                _write(copy, chunk)
            # Neither set-user-id bits nor ownership travel.
            os.fchmod(copy, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(copy)
        return written
    finally:
        os.close(source)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_link(workspace: SafeWorkspace, entry: Entry, target: Path) -> None:
    text = os.readlink(entry.name, dir_fd=entry.parent)
    workspace.require_inside(entry.path)
    absolute = PurePosixPath(text)
    # What was read may not be what was checked: the link can be replaced in between.
    if os.readlink(entry.name, dir_fd=entry.parent) != text or (
        absolute.is_absolute() and not absolute.is_relative_to(workspace.root)
    ):
        raise WorkspaceError("outside", entry.path, "was replaced by something else while it was copied")
    if absolute.is_absolute():
        text = os.path.relpath(absolute.relative_to(workspace.root), PurePosixPath(entry.path).parent)
    target.symlink_to(text)
