"""Fresh copies: faithful inside, nothing from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evals.workspace import Limits, SafeWorkspace, WorkspaceError
from evals.workspace.copying import copy_workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "private").write_text("x")
    (folder / "private").chmod(0o600)
    (folder / "empty").mkdir()
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("token")
    return folder


def test_content_modes_times_and_empty_directories_are_kept(root: Path, tmp_path: Path) -> None:
    os.utime(root / "private", (1_000_000_000, 1_000_000_000))
    copy = tmp_path / "copy"
    with SafeWorkspace(root) as workspace:
        assert copy_workspace(workspace, copy) == ()
    assert (copy / "src" / "run.sh").read_text() == "#!/bin/sh\n"
    assert (copy / "src" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (copy / "private").stat().st_mode & 0o777 == 0o600
    assert (copy / "private").stat().st_mtime == 1_000_000_000
    assert (copy / "empty").is_dir()
    assert not (copy / ".git").exists()


def test_links_inside_are_kept_and_lead_into_the_copy(root: Path, tmp_path: Path) -> None:
    (root / "relative").symlink_to("src/run.sh")
    (root / "src" / "absolute").symlink_to(root / "private")
    (root / "folder").symlink_to("src")
    copy = tmp_path / "copy"
    with SafeWorkspace(root) as workspace:
        assert copy_workspace(workspace, copy) == ()
    for name, target in (("relative", "src/run.sh"), ("src/absolute", "private"), ("folder", "src")):
        assert (copy / name).is_symlink()
        assert (copy / name).resolve() == copy / target


def test_what_leads_outside_or_is_special_is_left_out_and_told(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to("/etc/passwd")
    (root / "up").symlink_to("../elsewhere")
    (root / "dangling").symlink_to("nothing")
    (root / "git").symlink_to(".git/config")
    os.mkfifo(root / "fifo")
    Path(os.fsdecode(os.fsencode(root) + b"/bad-\xff")).symlink_to("nothing")
    copy = tmp_path / "copy"
    with SafeWorkspace(root) as workspace:
        skipped = {each.path: each.reason for each in copy_workspace(workspace, copy)}
    assert set(skipped) == {"out", "up", "dangling", "git", "fifo", "bad-\\udcff"}
    assert "outside the root" in skipped["out"]
    assert not any(os.path.lexists(copy / name) for name in skipped)


def test_a_workspace_that_nests_too_deep_is_not_copied_in_part(root: Path, tmp_path: Path) -> None:
    (root / "src" / "deep").mkdir()
    with (
        SafeWorkspace(root, Limits(max_depth=2)) as workspace,
        pytest.raises(WorkspaceError, match="'src/deep': directories nest deeper than 2"),
    ):
        copy_workspace(workspace, tmp_path / "copy")
