"""What SafeWorkspace refuses, and what it must still allow."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil
import pytest

from evals.workspace import Limits, SafeWorkspace, WorkspaceError

SECRET = "outside-the-root"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "readme.txt").write_text("hello\n")
    (folder / "src" / "app.py").write_text("print(1)\n")
    (folder / "src" / "deep" / "leaf.py").write_text("leaf = 1\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("token = 1")
    return folder


def open_descriptors() -> int:
    return psutil.Process().num_fds()


def refused(workspace: SafeWorkspace, path: str) -> str:
    with pytest.raises(WorkspaceError) as caught:
        workspace.read_text(path)
    assert len(caught.value.lines) == 1
    return caught.value.reason


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        (".", "is_directory"),
        ("src", "is_directory"),
        ("src/", "is_directory"),
        ("readme.txt/", "is_directory"),
        ("readme.txt/.", "is_directory"),
        ("readme.txt/./", "is_directory"),
        ("src/app.py/.//.", "is_directory"),
        ("/etc/passwd", "absolute"),
        ("//etc/passwd", "absolute"),
        ("..", "parent"),
        ("../outside/secret.txt", "parent"),
        ("src/../readme.txt", "parent"),
        ("src/..", "parent"),
        ("readme.txt\0", "nul"),
        ("src\0/../../x", "nul"),
        ("\ud800", "encoding"),
        ("readme.txt.", "blank_edge"),
        ("readme.txt ", "blank_edge"),
        (" readme.txt", "blank_edge"),
        ("readme.txt\t", "blank_edge"),
        ("readme.txt\u00a0", "blank_edge"),
        ("src./app.py", "blank_edge"),
        ("src /app.py", "blank_edge"),
        (".. /outside", "blank_edge"),
        ("...", "blank_edge"),
        (".git/config", "hidden"),
        (".GIT/config", "hidden"),
        ("src/.git", "hidden"),
        ("x" * 300, "too_long"),
        ("x/" * 3000, "too_long"),
        ("none.txt", "missing"),
        ("none/app.py", "missing"),
        ("readme.txt/x", "not_directory"),
    ],
)
def test_a_hostile_or_mistaken_path_is_refused_with_its_reason(root: Path, path: str, reason: str) -> None:
    with SafeWorkspace(root) as workspace:
        assert refused(workspace, path) == reason


def test_a_name_with_a_trailing_dot_is_refused_even_where_such_a_file_exists(root: Path) -> None:
    (root / "readme.txt.").write_text("the other one")
    with SafeWorkspace(root) as workspace:
        assert refused(workspace, "readme.txt.") == "blank_edge"
        listing = workspace.list_files()
    assert "readme.txt." not in listing.files
    assert listing.unnameable == 1


def test_links_out_of_the_root_are_refused_at_any_depth(root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "src" / "deep" / "up").symlink_to("../../../outside/secret.txt")
    (root / "twice").symlink_to("src/deep/up")
    (root / "slash").symlink_to("/")
    (root / "nearly").symlink_to(f"{root}-sibling/secret.txt")
    (root / "back").symlink_to(f"{root}/../outside/secret.txt")
    with SafeWorkspace(root) as workspace:
        for path in ("file", "folder/secret.txt", "src/deep/up", "twice", "slash/etc/passwd", "nearly", "back"):
            assert refused(workspace, path) == "outside", path
        with pytest.raises(WorkspaceError, match="outside the root"):
            workspace.list_files("folder")
        assert workspace.list_files().files == ("readme.txt", "src/app.py", "src/deep/leaf.py")


def test_a_link_whose_target_says_directory_does_not_lead_to_a_file(root: Path) -> None:
    (root / "dot").symlink_to("src/app.py/.")
    (root / "slash").symlink_to("src/app.py/")
    with SafeWorkspace(root) as workspace:
        for path in ("dot", "slash"):
            assert not (root / path).exists()
            assert refused(workspace, path) == "not_directory"


def test_links_that_stay_inside_work(root: Path) -> None:
    (root / "link.py").symlink_to("src/app.py")
    (root / "folder").symlink_to("src")
    (root / "src" / "deep" / "up").symlink_to("../../readme.txt")
    (root / "absolute").symlink_to(root / "src" / "app.py")
    (root / "through").symlink_to("folder/deep/up")
    with SafeWorkspace(root) as workspace:
        assert workspace.read_text("link.py") == "print(1)\n"
        assert workspace.read_text("folder/app.py") == "print(1)\n"
        assert workspace.read_text("src/deep/up") == "hello\n"
        assert workspace.read_text("absolute") == "print(1)\n"
        assert workspace.read_text("through") == "hello\n"
        assert refused(workspace, "folder/none.py") == "missing"
        assert workspace.list_files("folder").files == ("folder/app.py", "folder/deep/leaf.py", "folder/deep/up")
        # A link to a directory is not entered: its files are listed where they are.
        assert workspace.list_files().files == (
            "absolute",
            "link.py",
            "readme.txt",
            "src/app.py",
            "src/deep/leaf.py",
            "src/deep/up",
            "through",
        )


def test_dangling_links_and_loops_are_refused_and_not_listed(root: Path) -> None:
    (root / "dangling").symlink_to("nothing/here")
    (root / "self").symlink_to("self")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "growing").symlink_to("growing/x")
    (root / "to-git").symlink_to(".git/config")
    with SafeWorkspace(root) as workspace:
        assert refused(workspace, "dangling") == "dangling"
        assert refused(workspace, "self") == "link_loop"
        assert refused(workspace, "one") == "link_loop"
        assert refused(workspace, "growing") == "link_loop"
        assert refused(workspace, "to-git") == "hidden"
        assert workspace.list_files().files == ("readme.txt", "src/app.py", "src/deep/leaf.py")


def test_fifos_sockets_and_devices_are_refused_without_hanging(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "fifo")
    (root / "device").symlink_to("/dev/zero")
    # A socket's path is bound to about 100 bytes: bind it from within.
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listening, SafeWorkspace(root) as workspace:
        listening.bind("socket")
        assert refused(workspace, "fifo") == "not_regular"
        assert refused(workspace, "socket") == "not_regular"
        assert refused(workspace, "device") == "outside"
        assert workspace.list_files().files == ("readme.txt", "src/app.py", "src/deep/leaf.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device node takes root")
def test_a_device_node_inside_the_root_is_refused(root: Path) -> None:
    os.mknod(root / "null", 0o666 | 0o020000, os.makedev(1, 3))
    with SafeWorkspace(root) as workspace:
        assert refused(workspace, "null") == "not_regular"


def test_limits_on_size_and_number_say_which_limit(root: Path) -> None:
    (root / "big.txt").write_text("x" * 101)
    with SafeWorkspace(root, Limits(max_file_bytes=100, max_results=2)) as workspace:
        with pytest.raises(WorkspaceError, match="101 bytes, more than the limit of 100") as too_large:
            workspace.read_bytes("big.txt")
        assert too_large.value.reason == "too_large"
        with pytest.raises(WorkspaceError, match="more than 2 files"):
            workspace.list_files()
        with pytest.raises(WorkspaceError, match="between 1 and 2"):
            workspace.list_files(max_results=3)
        listing = workspace.list_files(max_results=2)
        assert listing.files == ("big.txt", "readme.txt")
        assert listing.truncated
        assert not workspace.list_files("src", max_results=2).truncated


def test_directories_that_nest_too_deep_are_left_out_and_told(root: Path) -> None:
    (root / "d" / "d" / "d" / "d" / "d" / "d" / "d").mkdir(parents=True)
    (root / "d" / "d" / "d" / "d" / "last.txt").touch()
    (root / "d" / "d" / "d" / "d" / "d" / "deeper.txt").touch()
    with SafeWorkspace(root, Limits(max_depth=5)) as workspace:
        listing = workspace.list_files()
        assert listing.files == ("d/d/d/d/last.txt", "readme.txt", "src/app.py", "src/deep/leaf.py")
        assert listing.too_deep == ("d/d/d/d/d",)
        assert not listing.truncated
        # The limit counts from the directory that is asked for.
        assert workspace.list_files("d/d/d/d/d").files == ("d/d/d/d/d/deeper.txt",)
        assert workspace.list_files("src").too_deep == ()


def test_only_the_first_directories_that_nest_too_deep_are_named(root: Path) -> None:
    for number in range(30):
        (root / "src" / "deep" / f"{number:02}").mkdir()
    with SafeWorkspace(root, Limits(max_depth=3)) as workspace:
        assert workspace.list_files().too_deep == tuple(f"src/deep/{number:02}" for number in range(10))


def test_only_utf8_text_is_read_as_text(root: Path) -> None:
    (root / "latin.txt").write_bytes("é".encode("latin-1"))
    (root / "nul.bin").write_bytes(b"a\0b")
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfhello")
    with SafeWorkspace(root) as workspace:
        assert refused(workspace, "latin.txt") == "not_text"
        assert refused(workspace, "nul.bin") == "not_text"
        assert workspace.read_text("bom.txt") == "hello"
        assert workspace.read_bytes("nul.bin") == b"a\0b"


def test_a_file_name_that_is_not_unicode_is_counted_and_does_not_break_the_listing(root: Path) -> None:
    (Path(os.fsdecode(os.fsencode(root) + b"/bad-\xff.txt"))).write_text("x")
    with SafeWorkspace(root) as workspace:
        listing = workspace.list_files()
    assert listing.files == ("readme.txt", "src/app.py", "src/deep/leaf.py")
    assert listing.unnameable == 1


def test_a_root_that_is_missing_or_a_file_is_one_clear_line(root: Path) -> None:
    with pytest.raises(WorkspaceError, match="name a directory"):
        SafeWorkspace(root / "none")
    with pytest.raises(WorkspaceError, match="name a directory"):
        SafeWorkspace(root / "readme.txt")


def test_descriptors_are_given_back(root: Path) -> None:
    (root / "self").symlink_to("self")
    with SafeWorkspace(root) as workspace:
        before = open_descriptors()
        for path in ("src/deep/leaf.py", "none/x", "self", "src", "readme.txt/x"):
            for _ in range(20):
                try:
                    workspace.read_text(path)
                except WorkspaceError:
                    continue
        workspace.list_files(max_results=1)
        assert open_descriptors() == before
