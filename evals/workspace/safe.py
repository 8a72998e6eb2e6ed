"""`SafeWorkspace`: the one door to a directory's files. Every path an agent or a task names goes through it.

A path is opened component by component, each relative to the descriptor of the directory before it and none
following a link, so that nothing swapped between a check and its use can lead outside. A symbolic link is read and its
target walked by the same rules: it works while it stays inside the root, and ``..`` in it goes back along the
descriptors that were opened, never through the file system's idea of a parent.

POSIX only (it needs ``dir_fd`` and ``O_NOFOLLOW``). Two things it cannot see: a hard link made to a file outside, and a
mount inside; making either takes rights over the outside file already.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from evals.workspace.globs import Glob
from evals.workspace.paths import Reason, WorkspaceError, is_hidden, names_directory, split_path
from evals.workspace.refusals import EntryKind, decode_text, entry_kind, refusal, require_regular

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO swapped in for a file must not hang the open; O_NOCTTY: nor a terminal be adopted.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


MAX_TOLD: Final = 10


@dataclass(frozen=True)
class Limits:
    """Bounds of a workspace: bytes of one file read, files listed, entries met, directories entered in one another,
    links followed in a path."""

    max_file_bytes: int = 2 * 1024 * 1024
    max_results: int = 5_000
    max_entries: int = 200_000
    max_depth: int = 64
    max_links: int = 40


@dataclass(frozen=True)
class Listing:
    """Files found, as sorted relative paths. `truncated`: there are more. `unnameable`: files whose names are not
    Unicode, or could not be asked for by the rules of `split_path`; they are left out of `files`. `too_deep`: the first
    `MAX_TOLD` directories that were not entered, for they are `limits.max_depth` directories down."""

    files: tuple[str, ...]
    truncated: bool
    unnameable: int
    too_deep: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """What `SafeWorkspace.iter_files` meets and does not list: a file that cannot be named, or a directory too deep."""

    path: str
    why: Literal["unnameable", "too_deep"]


@dataclass(frozen=True)
class Entry:
    """One entry met by `SafeWorkspace.walk`: its relative path, its kind, and where to open it from.

    `parent` is the descriptor of the directory it is in, open only until the walk goes on. `too_deep`: a directory that
    the walk does not enter.
    """

    path: str
    name: str
    kind: EntryKind
    parent: int
    too_deep: bool = False


class SafeWorkspace:
    """A directory whose files are reached by relative paths and never left.

    Raises `WorkspaceError` (a `TwogateError` with a `reason`) for everything refused. Holds one descriptor of the
    root; close it, or use it in a ``with`` block. Safe to use from several threads.
    """

    def __init__(self, root: str | os.PathLike[str], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.root = Path(os.path.realpath(root))
        try:
            self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            reason: Reason = "missing" if error.errno == errno.ENOENT else "not_directory"
            raise WorkspaceError(
                reason, os.fspath(root), f"cannot open the workspace: {error.strerror}; name a directory"
            ) from None

    @classmethod
    def from_descriptor(cls, descriptor: int, root: str, limits: Limits) -> SafeWorkspace:
        """A workspace on an open directory, whose descriptor it owns from now on. `root` is the directory's path."""
        workspace = cls.__new__(cls)
        workspace.limits = limits
        workspace.root = Path(root)
        workspace._fd = descriptor
        return workspace

    def close(self) -> None:
        """Give back the root's descriptor. Harmless when done twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> SafeWorkspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    # -- reading

    def read_bytes(self, path: str) -> bytes:
        """The content of a regular file of at most `limits.max_file_bytes` bytes."""
        with self.open_file(path) as descriptor:
            return self._read(descriptor, path)

    def read_text(self, path: str) -> str:
        """The content of a UTF-8 text file, without a byte order mark, line ends as they are."""
        return decode_text(self.read_bytes(path), path)

    def exists(self, path: str) -> bool:
        """Whether `path` is a regular file that can be reached. Refusals other than absence still raise."""
        try:
            with self.open_file(path):
                return True
        except WorkspaceError as error:
            if error.reason in ("missing", "not_directory"):
                return False
            raise

    @contextmanager
    def open_file(self, path: str) -> Iterator[int]:
        """A read-only descriptor of a regular file, for the length of the block."""
        parts = split_path(path)
        if names_directory(path):
            raise WorkspaceError("is_directory", path, "it names a directory; name a file in it")
        descriptor = self._resolve(path, deque(parts), directory=False)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_directory(self, path: str) -> Iterator[int]:
        """A descriptor of a directory, for the length of the block; ``.`` is the root."""
        descriptor = self._resolve(path, deque(split_path(path)), directory=True)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def require_inside(self, path: str) -> None:
        """Raise unless `path`, whose names need not pass `split_path`, leads to a file or directory inside."""
        parts = path.split("/")
        try:
            descriptor = self._resolve(path, deque(parts), directory=False)
        except WorkspaceError as error:
            if error.reason != "is_directory":
                raise
            descriptor = self._resolve(path, deque(parts), directory=True)
        os.close(descriptor)

    # -- listing

    def list_files(self, path: str = ".", pattern: str | None = None, max_results: int | None = None) -> Listing:
        """Regular files below a directory, `.git` left out, in order of their path's components.

        Paths are relative to the root. With `max_results` the first so many, and `truncated` says whether there are
        more; without it all of them, or a `too_many` error past `limits.max_results`. A link to a file inside the
        root is listed as a file; a link to a directory is not entered, what it leads to is listed where it is.
        """
        limit = self.limits.max_results
        if max_results is not None and not 1 <= max_results <= limit:
            raise WorkspaceError("too_many", path, f"max_results must be between 1 and {limit}")
        files: list[str] = []
        too_deep: list[str] = []
        unnameable = 0
        for inner in self.iter_files(path, pattern):
            if isinstance(inner, LeftOut):
                unnameable += inner.why == "unnameable"
                if inner.why == "too_deep" and len(too_deep) < MAX_TOLD:
                    too_deep.append(inner.path)
                continue
            if len(files) == (max_results or limit):
                if max_results is None:
                    raise WorkspaceError(
                        "too_many", path, f"more than {limit} files; name a deeper path or a narrower pattern"
                    )
                return Listing(tuple(files), True, unnameable, tuple(too_deep))
            files.append(inner)
        return Listing(tuple(files), False, unnameable, tuple(too_deep))

    def iter_files(self, path: str = ".", pattern: str | None = None) -> Iterator[str | LeftOut]:
        """What `list_files` lists, one by one and without a limit, and what it leaves out."""
        glob = Glob(pattern) if pattern is not None else None
        prefix = "/".join(split_path(path))
        for entry in self.walk(path):
            inner = f"{prefix}/{entry.path}" if prefix else entry.path
            if entry.too_deep:
                yield LeftOut(inner.encode("utf-8", "backslashreplace").decode(), "too_deep")
            if entry.kind not in ("file", "link") or (glob and not glob.matches(entry.path)):
                continue
            try:
                split_path(inner)
            except WorkspaceError:
                yield LeftOut(inner.encode("utf-8", "backslashreplace").decode(), "unnameable")
                continue
            if entry.kind == "file" or self._is_file(inner):
                yield inner

    def _is_file(self, path: str) -> bool:
        try:
            with self.open_file(path):
                return True
        except WorkspaceError:
            return False

    def walk(self, path: str = ".") -> Iterator[Entry]:
        """Every entry below a directory, parents before children, sorted by name within each; links not followed.

        Paths are relative to `path`. `.git` is left out. What disappears meanwhile is passed over. A directory
        `limits.max_depth` directories down is met, marked `too_deep`, and not entered.
        """
        seen = 0
        with self.open_directory(path) as top:
            for entry in self._walk(top, "", 1):
                seen += 1
                if seen > self.limits.max_entries:
                    raise WorkspaceError(
                        "too_many", path, f"more than {self.limits.max_entries} entries; name a deeper path"
                    )
                yield entry

    def _walk(self, descriptor: int, prefix: str, depth: int) -> Iterator[Entry]:
        for name in sorted(os.listdir(descriptor)):
            if is_hidden(name):
                continue
            try:
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            except OSError:
                continue
            kind = entry_kind(mode)
            too_deep = kind == "directory" and depth >= self.limits.max_depth
            yield Entry(f"{prefix}{name}", name, kind, descriptor, too_deep)
            if kind == "directory" and not too_deep:
                try:
                    inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
                except OSError:
                    continue
                try:
                    yield from self._walk(inner, f"{prefix}{name}/", depth + 1)
                finally:
                    os.close(inner)

    # -- the walk to one path

    def _resolve(self, path: str, pending: deque[str], *, directory: bool) -> int:
        """A new descriptor of what `pending` leads to from the root. `path` is what was asked, for messages."""
        opened = [os.dup(self._fd)]
        links = 0
        linked = 0  # how many of the first pending components a link's target gave
        try:
            while pending:
                name = pending.popleft()
                followed = linked > 0
                linked = max(0, linked - 1)
                if name in ("", "."):
                    continue
                if name == "..":
                    # Only a link's target can hold one.
                    if len(opened) == 1:
                        raise WorkspaceError("outside", path, "a symbolic link in it leads outside the root")
                    os.close(opened.pop())
                    continue
                if is_hidden(name):
                    raise WorkspaceError("hidden", path, "a symbolic link in it leads to version-control data")
                target = self._link_target(path, name, opened[-1], followed=followed)
                if target is not None:
                    links += 1
                    if links > self.limits.max_links:
                        raise WorkspaceError("link_loop", path, "its symbolic links form a loop, or too many")
                    parts, from_root = self._target_parts(path, target)
                    if from_root:
                        while len(opened) > 1:
                            os.close(opened.pop())
                    pending.extendleft(reversed(parts))
                    linked += len(parts)
                    continue
                if pending or directory:
                    opened.append(self._open_step(path, name, opened[-1], _DIRECTORY, followed))
                else:
                    return self._open_regular(path, name, opened[-1], followed)
            if not directory:
                raise WorkspaceError("is_directory", path, "it is a directory; name a file in it")
            return opened.pop()
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _link_target(self, path: str, name: str, parent: int, *, followed: bool) -> str | None:
        try:
            return os.readlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise refusal(path, error, followed) from None

    def _target_parts(self, path: str, target: str) -> tuple[list[str], bool]:
        """The components of a link's target, and whether they start at the root."""
        if not target.startswith("/"):
            return target.split("/"), False
        root = self.root.parts
        parts = target.split("/")
        absolute = ["/", *parts[1:]]
        if tuple(absolute[: len(root)]) != root:
            raise WorkspaceError("outside", path, "a symbolic link in it leads outside the root")
        return absolute[len(root) :], True

    def _open_step(self, path: str, name: str, parent: int, flags: int, followed: bool) -> int:
        try:
            return os.open(name, flags, dir_fd=parent)
        except OSError as error:
            raise refusal(path, error, followed) from None

    def _open_regular(self, path: str, name: str, parent: int, followed: bool) -> int:
        try:
            # Asked before it is opened: opening a device can act on it.
            require_regular(path, os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
            descriptor = os.open(name, _FILE, dir_fd=parent)
        except OSError as error:
            raise refusal(path, error, followed) from None
        try:
            require_regular(path, os.fstat(descriptor).st_mode)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _read(self, descriptor: int, path: str) -> bytes:
        limit = self.limits.max_file_bytes
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise WorkspaceError("too_large", path, f"the file has {size} bytes, more than the limit of {limit}")
        chunks: list[bytes] = []
        left = limit + 1
        while left > 0:
            try:
                chunk = os.read(descriptor, min(left, 1 << 20))
            except OSError as error:
                raise WorkspaceError("unreadable", path, f"cannot be read: {error.strerror}") from None
            if not chunk:
                break
            chunks.append(chunk)
            left -= len(chunk)
        if left == 0:
            raise WorkspaceError("too_large", path, f"the file grew past the limit of {limit} bytes")
        return b"".join(chunks)
