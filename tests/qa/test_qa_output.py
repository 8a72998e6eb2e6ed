"""What a command writes: refused beforehand where it would destroy something, and never lost afterwards."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from evals.errors import TwogateError
from evals.outputs import check_writable, new_file_for, write_new, write_text


def refused(outputs: dict[str, Path | None], *inputs: tuple[str, Path]) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        check_writable(outputs, inputs)
    return caught.value.lines


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "mine.xml"
    path.write_text("<evaluation/>", encoding="utf-8")
    return path


def test_an_output_is_never_what_is_read_by_whatever_path(questions: Path) -> None:
    folder = questions.parent
    (folder / "link.xml").symlink_to(questions)
    (folder / "hard.xml").hardlink_to(questions)
    (folder / "sub").mkdir()
    for path in (questions, folder / "link.xml", folder / "hard.xml", folder / "sub" / ".." / "mine.xml"):
        (line,) = refused({"--json": path}, ("the question file", questions))
        assert line == f"--json {path}: is the question file, which it would overwrite; name another file"
    check_writable({"--json": folder / "other.xml"}, [("the question file", questions)])


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x")
    for other in (tmp_path / "x", tmp_path / "link"):
        (line,) = refused({"--output": tmp_path / "x", "--json": other})
        assert line == f"--json {other}: is the same file as --output {tmp_path / 'x'}; name two"
    check_writable({"--output": tmp_path / "x", "--json": tmp_path / "y"})
    check_writable({"--output": Path(os.devnull), "--json": Path(os.devnull)})


def test_what_cannot_be_written_is_known_beforehand_and_all_of_it(tmp_path: Path) -> None:
    lines = refused({"--output": tmp_path / "no" / "x", "--json": tmp_path, "third": Path("/proc/foo")})
    assert [line.split(": ", 1)[1].split(";")[0] for line in lines[:2]] == ["its folder does not exist", "is a folder"]
    assert lines[2].startswith("third /proc/foo: cannot be written: ")
    (tmp_path / "dangling").symlink_to(tmp_path / "no" / "y")
    assert "its folder does not exist" in refused({"--json": tmp_path / "dangling"})[0]
    assert "cannot be written: File name too long" in refused({"--json": tmp_path / ("x" * 300)})[0]
    assert list(tmp_path.iterdir()) == [tmp_path / "dangling"], "the check leaves nothing behind"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old", encoding="utf-8")
    (tmp_path / "real.json").chmod(0o600)
    (tmp_path / "link.json").symlink_to("real.json")
    assert write_text(tmp_path / "link.json", "new") is None
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text(encoding="utf-8") == "new"
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o600, "nobody may read it who might not before"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable({"--json": pipe})
    came: list[str] = []
    reader = threading.Thread(target=lambda: came.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    assert write_text(pipe, "text") is None
    reader.join(timeout=30)
    assert came == ["text"]
    assert pipe.is_fifo()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "x"
    assert write_text(path, "text") == f"{path}: cannot be written: No such file or directory"
    assert write_new(path, b"text") == f"{path}: cannot be written: No such file or directory"


def test_a_new_file_is_never_written_over_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.xml"
    assert new_file_for(file, None) == tmp_path / "mine.solved.xml"
    (tmp_path / "mine.solved.xml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TwogateError, match="is there already"):
        new_file_for(file, None)
    file.write_text("theirs", encoding="utf-8")
    assert "is there now" in (write_new(file, b"mine") or "")
    assert file.read_text(encoding="utf-8") == "theirs"
