"""Generated hostile paths while a thread swaps a directory and a file for links that lead outside."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.workspace import Query, SafeWorkspace, WorkspaceError, search
from evals.workspace.copying import copy_workspace

INSIDE = b"inside"
OUTSIDE = b"OUTSIDE-THE-ROOT"

PIECES = st.one_of(
    st.sampled_from(
        [
            *(
                "..",
                ".",
                "",
                "...",
                "a",
                "b",
                "swap",
                "swap-file",
                "out",
                "out-file",
                "loop",
                "in",
                "f.txt",
                "secret.txt",
            ),
            *("f.txt ", "f.txt.", " ..", ".. ", "..\0", "\0", ".git", "~", "*", "%2e%2e", "..%2f", "..\\", "\\..\\out"),
            *("C:", "con", "\u2024\u2024", "\uff0e\uff0e", "\u2215etc", "\ud800", "x" * 256, "etc", "passwd"),
        ]
    ),
    st.text(max_size=4),
)
PATHS = st.builds(
    lambda lead, pieces, joint, tail: lead + joint.join(pieces) + tail,
    st.sampled_from(["", "", "", "/", "//", "./", "../", "swap/", "a/swap/", "in/"]),
    st.lists(PIECES, max_size=7),
    st.sampled_from(["/", "/", "//", "/./", "/../"]),
    st.sampled_from(["", "", "/", "/.", "/..", "\0", "/f.txt", "/secret.txt"]),
)


@dataclass
class Place:
    root: Path
    swaps: int = 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A root whose `swap` (a directory) and `swap-file` become links to the outside and back, all the time."""
    base = tmp_path_factory.mktemp("hostile")
    root, outside = base / "root", base / "outside"
    for folder in (root / "a" / "b", root / "swap", root / "spare"):
        folder.mkdir(parents=True)
        (folder / "f.txt").write_bytes(INSIDE)
        (folder / "secret.txt").write_bytes(INSIDE)
    outside.mkdir()
    for name in ("f.txt", "secret.txt"):
        (outside / name).write_bytes(OUTSIDE)
        (base / name).write_bytes(OUTSIDE)
    (root / "f.txt").write_bytes(INSIDE)
    (root / "swap-file").write_bytes(INSIDE)
    (root / "out").symlink_to(outside)
    (root / "out-file").symlink_to(outside / "secret.txt")
    (root / "loop").symlink_to("loop")
    (root / "in").symlink_to("a/b")
    (root / "a" / "swap").symlink_to("../swap")
    found = Place(root)
    stop = threading.Event()

    def swap() -> None:
        link, hidden = base / "link", base / "hidden"
        file_link, hidden_file = base / "file-link", base / "hidden-file"
        while not stop.is_set():
            link.symlink_to(outside)
            file_link.symlink_to(outside / "secret.txt")
            (root / "swap").rename(hidden)
            link.rename(root / "swap")
            # A rename over an existing name: there is no moment without one.
            os.link(root / "swap-file", hidden_file)
            file_link.rename(root / "swap-file")
            (root / "swap").unlink()
            hidden.rename(root / "swap")
            hidden_file.rename(root / "swap-file")
            found.swaps += 1

    thread = threading.Thread(target=swap)
    interval = sys.getswitchinterval()
    # Threads take turns every few system calls instead of every 5 ms: the window is small.
    sys.setswitchinterval(1e-6)
    thread.start()
    yield found
    stop.set()
    thread.join()
    sys.setswitchinterval(interval)


def read(workspace: SafeWorkspace, path: str) -> bytes | None:
    try:
        return workspace.read_bytes(path)
    except WorkspaceError:
        return None


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=PATHS)
def test_no_generated_path_reads_outside_the_root(place: Place, path: str) -> None:
    with SafeWorkspace(place.root) as workspace:
        assert read(workspace, path) in (None, INSIDE)
        try:
            listed = workspace.list_files(path, max_results=50).files
        except WorkspaceError:
            return
        for file in listed:
            assert read(workspace, file) in (None, INSIDE)


def test_reading_through_the_swapped_names_finds_the_inside_or_nothing(place: Place) -> None:
    before = place.swaps
    seen = {"inside": 0, "refused": 0}
    with SafeWorkspace(place.root) as workspace:
        while place.swaps < before + 3000 or not all(seen.values()):
            for path in ("swap/secret.txt", "a/swap/secret.txt", "swap-file"):
                content = read(workspace, path)
                assert content in (None, INSIDE)
                seen["refused" if content is None else "inside"] += 1
    # Both happened: the race was run, not only one side of it.
    assert seen["inside"] > 0
    assert seen["refused"] > 0


def test_a_copy_made_meanwhile_holds_nothing_from_outside(place: Place, tmp_path: Path) -> None:
    with SafeWorkspace(place.root) as workspace:
        for number in range(40):
            copy = tmp_path / str(number)
            copy_workspace(workspace, copy)
            for folder, names, files in os.walk(copy):
                for name in (*names, *files):
                    file = Path(folder) / name
                    if file.is_symlink():
                        assert file.resolve().is_relative_to(copy)
                    elif file.is_file():
                        assert file.read_bytes() == INSIDE


def test_a_search_made_meanwhile_finds_nothing_from_outside(place: Place) -> None:
    with SafeWorkspace(place.root) as workspace:
        for regex in (False, True):
            for _ in range(10):
                found = search(workspace, Query("OUTSIDE", regex=regex))
                assert found.matches == ()
                assert found.files_searched > 0


@pytest.mark.parametrize("path", ["d/secret.txt", "d/deep/secret.txt", "secret.txt"])
def test_what_is_swapped_between_the_look_and_the_open_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for base, content in ((root, INSIDE), (outside, OUTSIDE)):
        (base / "d" / "deep").mkdir(parents=True)
        for folder in ("", "d", "d/deep"):
            (base / folder / "secret.txt").write_bytes(content)
    look = os.readlink

    # Each component is swapped for a link right after it was seen to be none.
    def look_then_swap(name: str, *, dir_fd: int | None = None) -> str:
        if dir_fd is None:
            return look(name)
        try:
            return look(name, dir_fd=dir_fd)
        finally:
            inside = Path(f"/proc/self/fd/{dir_fd}").resolve() / name
            if inside.is_relative_to(root) and not inside.is_symlink():
                inside.rename(inside.with_name(name + "-was"))
                inside.symlink_to(outside / inside.relative_to(root))

    with SafeWorkspace(root) as workspace:
        assert workspace.read_bytes(path) == INSIDE
        monkeypatch.setattr(os, "readlink", look_then_swap)
        with pytest.raises(WorkspaceError, match=r"replaced by a symbolic link|not a directory"):
            workspace.read_bytes(path)


def test_a_file_swapped_right_before_it_is_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.txt").write_bytes(OUTSIDE)
    (root / "f.txt").write_bytes(INSIDE)
    real_open = os.open

    def swap_then_open(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if name == "f.txt" and not (root / "f.txt").is_symlink():
            (root / "f.txt").unlink()
            (root / "f.txt").symlink_to(tmp_path / "secret.txt")
        return real_open(name, flags, mode, dir_fd=dir_fd)

    with SafeWorkspace(root) as workspace:
        monkeypatch.setattr(os, "open", swap_then_open)
        with pytest.raises(WorkspaceError) as caught:
            workspace.read_bytes("f.txt")
    assert caught.value.reason == "changed"
