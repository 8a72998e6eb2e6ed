"""Scratch folders: emptied whatever a command made of them, and nothing outside is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evals.errors import TwogateError
from evals.workspace import SafeWorkspace, VerificationReport, parse_task, verify
from evals.workspace.scratch import Scratch, empty_folder, remove_folder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir(mode=0o755)
    (folder / "precious").write_text("x")
    (folder / "precious").chmod(0o640)
    yield folder
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [file.name for file in folder.iterdir()] == ["precious"]
    assert (folder / "precious").stat().st_mode & 0o777 == 0o640


def test_links_fifos_and_locked_directories_are_removed(tmp_path: Path, outside: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "a" / "link").symlink_to(outside)
    (folder / "a" / "b" / "file-link").symlink_to(outside / "precious")
    (folder / "dangling").symlink_to("nothing")
    os.mkfifo(folder / "fifo")
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0)
    before = psutil.Process().num_fds()
    assert empty_folder(folder) == []
    assert list(folder.iterdir()) == []
    assert remove_folder(folder) == []
    assert not os.path.lexists(folder)
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("kind", ["file", "link to a folder", "dangling link", "nothing"])
def test_what_is_no_directory_is_never_followed(tmp_path: Path, outside: Path, kind: str) -> None:
    folder = tmp_path / "folder"

    def put() -> None:
        if kind == "file":
            folder.touch()
        elif kind != "nothing":
            folder.symlink_to(outside if kind == "link to a folder" else "nowhere")

    put()
    assert remove_folder(folder) == []
    assert not os.path.lexists(folder)
    put()
    assert empty_folder(folder) == []
    assert folder.is_dir()
    assert not folder.is_symlink()


def test_directories_nested_deeper_than_any_path_or_recursion_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code = "import os\nfor _ in range(3000):\n    os.mkdir('deep' * 10)\n    os.chdir('deep' * 10)\nopen('f', 'w')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    assert remove_folder(folder) == []
    assert not folder.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to become another user")
def test_an_ordinary_user_can_remove_what_was_locked_from_the_inside_out(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, subprocess, sys, tempfile
sys.path.insert(0, {str(ROOT)!r})
from evals.workspace.scratch import empty_folder, remove_folder
os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = pathlib.Path(tempfile.mkdtemp())
subprocess.run(["sh", "-c", "mkdir -p a/b/c; touch a/b/c/f; chmod 000 a/b/c a/b a ."], cwd=folder, check=True)
try:
    os.listdir(folder)
except PermissionError:
    print("locked", empty_folder(folder), list(folder.iterdir()), remove_folder(folder), folder.exists())
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "locked [] [] [] False\n", done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to become another user")
def test_what_cannot_be_removed_is_told_by_its_own_path_and_the_rest_is_removed(tmp_path: Path) -> None:
    code = f"""
import os, pathlib, sys, tempfile
sys.path.insert(0, {str(ROOT)!r})
from evals.workspace.scratch import Scratch
folder = pathlib.Path(tempfile.mkdtemp())
os.chown(folder, 65534, 65534)
tempfile.tempdir = str(folder)
os.seteuid(65534)
with Scratch() as scratch:
    first = scratch.path
    (first / "a" / "b").mkdir(parents=True)
    (first / "other").mkdir()
    os.seteuid(0)
    # Somebody else's folder, with something in it.
    (first / "a" / "b" / "root").mkdir(mode=0o755)
    (first / "a" / "b" / "root" / "file").touch()
    os.seteuid(65534)
    told = scratch.clear()
    print(told, scratch.path != first, scratch.clear(), (first / "other").exists())
os.seteuid(0)
print(len(list(folder.iterdir())))
import shutil; shutil.rmtree(folder)
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    first, second = done.stdout.splitlines()
    assert first.startswith("left what could not be removed: 'a/b/root"), done.stderr
    assert first.endswith(("Permission denied True None False", "Operation not permitted True None False"))
    assert second == "1"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(TwogateError, match="a scratch folder cannot be made"):
        Scratch()


def verified(root: Path, script: str) -> VerificationReport:
    task = {"task_id": "t", "command": ["sh", "-c", script], "repeat_count": 3}
    with SafeWorkspace(root) as workspace:
        return verify(parse_task(task), workspace)


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf ../workspace; ln -s /nonexistent ../workspace",
        "rm -rf ../workspace; ln -s {outside} ../workspace",
        "rm -rf ../workspace; touch ../workspace",
        "rm -rf ../home ../tmp; ln -s {outside} ../home; ln -s {outside} ../tmp",
        "rm -rf ../home; touch ../home; mkfifo ../fifo",
        "mkdir -p a/b/c; chmod 000 a/b/c a/b a . ..",
        "scratch=$(cd ..; pwd); rm -rf $scratch; ln -s {outside} $scratch",
        "scratch=$(cd ..; pwd); rm -rf $scratch; touch $scratch",
        "scratch=$(cd ..; pwd); rm -rf $scratch",
        "ls -A ..; touch ../left ../home/left ../tmp/left; ls -A ../home ../tmp",
    ],
)
def test_a_command_that_changes_its_folders_gets_its_report_and_fresh_ones_each_time(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    root.mkdir()
    scratch.mkdir()
    (root / "a.py").write_text("x")
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    report = verified(root, f"ls -A; {script.format(outside=outside)}")
    assert report.passed, report.to_text()
    assert len(report.runs) == 3
    assert all(run.stdout.startswith("a.py\n") for run in report.runs)
    assert list(scratch.iterdir()) == []
    assert [file.name for file in root.iterdir()] == ["a.py"]
