"""The folder a verification works in, and its removal whatever a command made of it.

A command that is not isolated can do anything to this folder: take its permissions away, put links or files in its
place, nest directories deeper than a path can be long. Nothing here follows a link, and what cannot be removed is told,
never raised, so that a report is not lost over it.
"""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from evals.errors import TwogateError
from evals.workspace.paths import shown

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TOLD: Final = 3

_Step = Callable[[str, int, str], None]


class Scratch:
    """An empty folder of one's own at `path`; use it in a ``with`` block, which removes it.

    Raises `TwogateError` when no folder can be made.
    """

    def __init__(self) -> None:
        self.path = _made()
        self._given_up: list[Path] = []

    def clear(self) -> str | None:
        """Make it empty again, or say in one line what could not be removed; `path` is another folder then.

        It stays where it is otherwise, so that paths, and what is derived from them, are the same in every repeat.
        """
        left = empty_folder(self.path)
        if not left:
            return None
        self._given_up.append(self.path)
        self.path = _made()
        more = f" and {len(left) - _TOLD} more" if len(left) > _TOLD else ""
        return f"left what could not be removed: {'; '.join(left[:_TOLD])}{more}"

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for folder in (self.path, *self._given_up):
            remove_folder(folder)


def empty_folder(path: Path) -> list[str]:
    """Make an empty directory of whatever is at `path`, also of nothing; one line for each entry that is left."""
    return _emptied(path, remove=False)


def remove_folder(path: Path) -> list[str]:
    """Remove whatever is at `path`; one line for each entry that is left."""
    return _emptied(path, remove=True)


def _made() -> Path:
    try:
        return Path(os.path.realpath(tempfile.mkdtemp(prefix="twogate-verify-")))
    except OSError as error:
        raise TwogateError(
            f"a scratch folder cannot be made: {error.strerror}; set TMPDIR to a folder that can be written to"
        ) from None


def _emptied(path: Path, *, remove: bool) -> list[str]:
    try:
        parent = os.open(path.parent, _DIRECTORY)
    except OSError as error:
        return [f"{shown(path.name)}: {error.strerror}"]
    try:
        if not _is_directory(path.name, parent):
            _unlink(path.name, parent)
            if not remove:
                os.mkdir(path.name, 0o700, dir_fd=parent)
            return []
        top = _open_unlocked(path.name, parent)
        try:
            left = _Emptying(top).left()
        finally:
            os.close(top)
        if remove and not left:
            os.rmdir(path.name, dir_fd=parent)
        return left
    except OSError as error:
        return [f"{shown(path.name)}: {error.strerror}"]
    finally:
        os.close(parent)


class _Emptying:
    """Empties one directory level by level: what is in a subdirectory is moved up to the top before the subdirectory is
    removed, so that no depth takes more than two descriptors and no path grows."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._moved_name = f"moved-{uuid.uuid4().hex}"
        self._moved = 0
        self._origin: dict[str, str] = {}
        self._left: dict[str, str] = {}

    def left(self) -> list[str]:
        """Empty it; one line for each entry that is left."""
        kept: set[str] = set()
        while names := [name for name in os.listdir(self._top) if name not in kept]:  # noqa: PTH208
            for name in names:
                told = len(self._left)
                self._try(self._remove, name, self._top, self._origin.get(name, name))
                if len(self._left) > told:
                    kept.add(name)
        return [f"{shown(path)}: {reason}" for path, reason in self._left.items()]

    def _try(self, step: _Step, name: str, parent: int, path: str) -> None:
        try:
            step(name, parent, path)
        except FileNotFoundError:
            return
        except OSError as error:
            # A name need not be Unicode; what is told is.
            self._left[path.encode("utf-8", "backslashreplace").decode()] = str(error.strerror)

    def _remove(self, name: str, parent: int, path: str) -> None:
        if not _is_directory(name, parent):
            _unlink(name, parent)
            return
        inner = _open_unlocked(name, parent)
        told = len(self._left)
        try:
            for child in os.listdir(inner):  # noqa: PTH208  of a descriptor
                self._try(self._move_up, child, inner, f"{path}/{child}")
        finally:
            os.close(inner)
        if len(self._left) == told:
            os.rmdir(name, dir_fd=parent)

    def _move_up(self, name: str, parent: int, path: str) -> None:
        if not _is_directory(name, parent):
            _unlink(name, parent)
            return
        # Moving a directory writes to it.
        os.close(_open_unlocked(name, parent))
        self._moved += 1
        target = f"{self._moved_name}-{self._moved}"
        os.rename(name, target, src_dir_fd=parent, dst_dir_fd=self._top)
        self._origin[target] = path


def _is_directory(name: str, parent: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _unlink(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return


def _open_unlocked(name: str, parent: int) -> int:
    """A descriptor of a directory, which its owner may then read, write and enter."""
    try:
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        _unlock(name, parent)
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        mode = os.fstat(descriptor).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(descriptor, stat.S_IRWXU)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _unlock(name: str, parent: int) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    # Linux cannot change a mode without following links, but by a descriptor, which needs no rights to be had.
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)
