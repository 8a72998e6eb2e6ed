"""Task files: strict, and every problem at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.errors import TwogateError
from evals.workspace import Pattern, load_task, parse_task

GOOD: dict[str, Any] = {
    "task_id": "rounding-bug",
    "required_files": ["calculator.py"],
    "required_patterns": {"calculator.py": ["Decimal", {"regex": "^import"}]},
    "forbidden_patterns": {"calculator.py": ["round("]},
    "command": ["python", "-m", "unittest"],
    "timeout_seconds": 2.5,
    "repeat_count": 3,
}


def problems(data: object) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        parse_task(data, "t.json")
    return caught.value.lines


def test_a_task_is_read_as_written() -> None:
    task = parse_task(GOOD)
    assert task.task_id == "rounding-bug"
    assert task.required_patterns == (
        ("calculator.py", Pattern("Decimal")),
        ("calculator.py", Pattern("^import", regex=True)),
    )
    # A parenthesis in a literal pattern is a parenthesis.
    assert task.forbidden_patterns == (("calculator.py", Pattern("round(")),)
    assert task.command == ("python", "-m", "unittest")
    assert (task.timeout_seconds, task.repeat_count) == (2.5, 3)


def test_what_may_be_left_out_has_defaults() -> None:
    task = parse_task({"task_id": "t", "command": ["true"]})
    assert (task.required_files, task.required_patterns, task.forbidden_patterns) == ((), (), ())
    assert (task.timeout_seconds, task.repeat_count) == (60.0, 2)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"task_id": ""}, "task_id"),
        ({"task_id": "../x"}, "task_id"),
        ({"task_id": 7}, "task_id"),
        ({"required_files": "calculator.py"}, "required_files"),
        ({"required_files": [1]}, "required_files[0]"),
        ({"required_files": ["../x"]}, "required_files[0]"),
        ({"required_files": ["/etc/passwd"]}, "required_files[0]"),
        ({"required_files": ["a", "a"]}, "required_files[1]"),
        ({"required_files": ["src/"]}, "required_files[0]"),
        ({"required_files": ["a.py/."]}, "required_files[0]"),
        ({"forbidden_patterns": {"a.py/./": ["x"]}}, "forbidden_patterns['a.py/./']"),
        ({"required_files": None}, "required_files"),
        ({"required_patterns": ["x"]}, "required_patterns"),
        ({"required_patterns": {"a": "x"}}, "required_patterns['a']"),
        ({"required_patterns": {"a": []}}, "required_patterns['a']"),
        ({"required_patterns": {"../a": ["x"]}}, "required_patterns['../a']"),
        ({"forbidden_patterns": {"a": [""]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": [{"regex": "("}]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": [{"regex": ""}]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": [{"regex": "x", "flags": "i"}]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": [{"regexp": "x"}]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": [3]}}, "forbidden_patterns['a'][0]"),
        ({"forbidden_patterns": {"a": ["\ud800"]}}, "forbidden_patterns['a'][0]"),
        ({"command": ["python", "\ud800"]}, "command[1]"),
        ({"command": []}, "command"),
        ({"command": "python -m unittest"}, "command"),
        ({"command": [""]}, "command[0]"),
        ({"command": ["python", 1]}, "command[1]"),
        ({"command": ["python", "\0"]}, "command[1]"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": -1}, "timeout_seconds"),
        ({"timeout_seconds": "30"}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds"),
        ({"timeout_seconds": 10**400}, "timeout_seconds"),
        ({"repeat_count": 0}, "repeat_count"),
        ({"repeat_count": -2}, "repeat_count"),
        ({"repeat_count": 2.0}, "repeat_count"),
        ({"repeat_count": True}, "repeat_count"),
        ({"repeat_count": 101}, "repeat_count"),
        ({"timeout": 3}, "timeout"),
    ],
)
def test_one_mistake_gives_one_line_that_names_the_field(change: dict[str, Any], field: str) -> None:
    lines = problems({**GOOD, **change})
    assert len(lines) == 1
    assert lines[0].startswith(f"t.json: {field}: ")


def test_all_mistakes_are_told_at_once() -> None:
    bad = {
        "required_files": ["../x", 3],
        "required_patterns": {"a.py": [{"regex": "["}, ""]},
        "command": "make test",
        "timeout_seconds": -1,
        "repeat_count": 0,
        "shell": True,
    }
    fields = [line.split(": ")[1] for line in problems(bad)]
    assert fields == [
        "shell",
        "task_id",
        "required_files[0]",
        "required_files[1]",
        "required_patterns['a.py'][0]",
        "required_patterns['a.py'][1]",
        "command",
        "timeout_seconds",
        "repeat_count",
    ]


@pytest.mark.parametrize("data", [[], "x", None, 3, True])
def test_a_task_that_is_no_object_is_one_line(data: object) -> None:
    assert len(problems(data)) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ('{"task_id": "t", "command": ["true"], "timeout_seconds": NaN}', "is not JSON"),
        ('{"task_id": "t", "task_id": "u", "command": ["true"]}', "stands twice"),
        ('{"task_id": "t", "command": ["true"], "required_patterns": {"a": ["x"], "a": ["y"]}}', "stands twice"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_json_readers_disagree_on_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "task.json"
    file.write_text(text)
    with pytest.raises(TwogateError, match=words) as caught:
        load_task(file)
    assert caught.value.lines[0].startswith(str(file))


def test_a_file_that_is_missing_or_not_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    for name in ("none.json", "binary.json", "."):
        with pytest.raises(TwogateError) as caught:
            load_task(tmp_path / name)
        assert len(caught.value.lines) == 1


def test_a_good_file_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text(json.dumps(GOOD))
    assert load_task(file) == parse_task(GOOD)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_pattern_sees_the_same_lines_whatever_ends_them(end: str) -> None:
    content = end.join(["import re", "import os", "x = 1", ""])
    for pattern in (
        Pattern("^import os$", regex=True),
        Pattern(r"os\nx = 1$", regex=True),
        Pattern(r"(?<=re\n)import os(?!\s*import)", regex=True),
        Pattern("import os\nx = 1\n"),
        Pattern(r"^import os\r?$", regex=True),
    ):
        assert pattern.first_line(content) == 2, pattern
    assert Pattern("import os\nimport re").first_line(content) is None
    # An escaped backslash before an r is no carriage return.
    assert Pattern(r"^C:\\root$", regex=True).first_line(f"x{end}C:\\root{end}") == 2


@pytest.mark.parametrize(
    "text", ["\r", r"\r", r"\x0d", r"\x0D", r"\u000d", r"\015", r"[\r]", r"\N{CARRIAGE RETURN}", "os\r\n", r"os\r\n"]
)
def test_a_pattern_that_names_the_carriage_return_finds_it(text: str) -> None:
    pattern = Pattern(text, regex="\\" in text)
    assert pattern.first_line("import os\n") is None
    assert pattern.first_line("import re\nimport os\r\n") == 2
    assert pattern.first_line("import re\r\nimport os\r\n") == (2 if "os" in text else 1)
