"""A script with mistakes says all of them at once, each with file, entry, field and fix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evals.embedded.model import load_script, load_scripts, parse_script
from evals.errors import TwogateError

TURNS = [{"text": "done"}]


def problems(data: Any) -> list[str]:
    with pytest.raises(TwogateError) as caught:
        parse_script(data, "s.json")
    return caught.value.lines


def test_all_problems_of_a_file_come_at_once() -> None:
    lines = problems(
        {
            "version": 2,
            "agents": [],
            "agent": [
                {"query": "a", "turns": [{"calls": [{"nam": "x"}]}], "faults": [{"kind": "eaten"}]},
                {"match": {"regex": "("}, "turns": TURNS},
                {"query": "b"},
            ],
            "judge": [{"query": "b", "verdict": "pass"}],
        }
    )
    text = "\n".join(lines)
    assert all(line.startswith("s.json: ") for line in lines)
    assert "s.json: version: input should be 1" in text
    assert "s.json: agents: extra inputs are not permitted; remove it" in text
    assert 's.json: agent[0] ("a"): turns[0].calls[0].name: field required; add it' in text
    assert 's.json: agent[0] ("a"): faults[0].kind: input should be' in text
    assert 's.json: agent[1] ("("): match: regex does not compile' in text
    assert 's.json: agent[2] ("b"): exactly one of "turns" or "trials"' in text
    assert "s.json: judge[0] (\"b\"): verdict: input should be 'PASS' or 'FAIL'" in text


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"turns": TURNS}, 'exactly one of "query" or "match"'),
        ({"query": "q", "match": {"contains": "q"}, "turns": TURNS}, "query and match are"),
        ({"query": "   ", "turns": TURNS}, "query: string should have at least 1 character"),
        ({"query": "q", "turns": []}, "turns: is empty"),
        ({"query": "q", "turns": [{}]}, 'a turn needs "text" or "calls"'),
        ({"query": "q", "turns": TURNS, "trials": [TURNS]}, "turns and trials are"),
        ({"query": "q", "turns": TURNS, "latency_ms": -1}, "latency_ms: input should be greater"),
        ({"query": "q", "turns": TURNS, "latency_ms": "5"}, "latency_ms: input should be a valid integer"),
        ({"query": "q", "turns": TURNS, "faults": [{"kind": "429", "times": 0}]}, "faults[0].times: must be"),
        ({"query": "q", "turns": TURNS, "faults": [{"kind": "429", "times": True}]}, "faults[0].times: must be"),
        (
            {"query": "q", "turns": TURNS, "faults": [{"kind": "drop", "retry_after": 1}]},
            '"retry_after" goes with',
        ),
        ({"query": "q", "turns": TURNS, "faults": [{"kind": "drop", "delay_ms": 1}]}, '"delay_ms" goes with'),
        (
            {"query": "q", "turns": TURNS, "faults": [{"kind": "529", "times": "always"}, {"kind": "drop"}]},
            "never reached",
        ),
        ({"query": "q", "turns": [{"text": "x", "stop_reason": "bored"}]}, "turns[0].stop_reason"),
        ({"query": "q", "turns": [{"text": "x", "usage": {"tokens": 1}}]}, "turns[0].usage.tokens"),
    ],
)
def test_a_bad_agent_entry_names_its_field(entry: dict[str, Any], expected: str) -> None:
    lines = problems({"version": 1, "agent": [entry]})
    assert len(lines) == 1
    assert lines[0].startswith("s.json: agent[0]")
    assert expected in lines[0]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"query": "q"}, 'exactly one of "verdict" or "output" or "raw" or "answers"'),
        ({"query": "q", "raw": "x", "reason": "r"}, '"reason" goes with "verdict"'),
        ({"query": "q", "answers": []}, "answers: is empty"),
        ({"query": "q", "answers": [{"verdict": "PASS", "raw": "x"}]}, "answers[0]: exactly one of"),
        ({"query": "q", "answers": [{"raw": "x"}], "usage": {}}, "belongs inside each answer"),
    ],
)
def test_a_bad_judge_entry_names_its_field(entry: dict[str, Any], expected: str) -> None:
    lines = problems({"version": 1, "judge": [entry]})
    assert len(lines) == 1
    assert lines[0].startswith('s.json: judge[0] ("q")')
    assert expected in lines[0]


def test_two_entries_for_one_query_are_a_problem_across_files(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps({"version": 1, "agent": [{"query": "q", "turns": TURNS}], "default": {"turns": TURNS}}))
    second.write_text(
        json.dumps({"version": 1, "agent": [{"query": " q ", "turns": TURNS}], "default": {"turns": TURNS}})
    )
    with pytest.raises(TwogateError) as caught:
        load_scripts([first, second])
    assert len(caught.value.lines) == 2
    assert f'{second}: agent[0] ("q"): query is that of {first}: agent[0] ("q") too' in caught.value.lines[0]
    assert f"{second}: default: {first} has one already" in caught.value.lines[1]


def test_entries_for_different_models_do_not_clash() -> None:
    judge = [{"query": "q", "verdict": "PASS"}, {"query": "q", "model": "m", "verdict": "FAIL"}]
    assert len(parse_script({"version": 1, "judge": judge}).judge) == 2


def test_unreadable_files_are_named_each(tmp_path: Path) -> None:
    broken, missing = tmp_path / "broken.json", tmp_path / "missing.json"
    binary = tmp_path / "binary.json"
    broken.write_text('{"version": 1,')
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(TwogateError) as caught:
        load_scripts([broken, missing, binary])
    assert caught.value.lines[0].startswith(f"{broken}: is not JSON: ")
    assert "line 1" in caught.value.lines[0]
    assert caught.value.lines[1].startswith(f"{missing}: cannot be read: No such file")
    assert caught.value.lines[2].startswith(f"{binary}: is not UTF-8")


def test_a_files_delays_hold_for_its_entries_that_do_not_say_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    entries = [{"query": "a", "turns": TURNS}, {"query": "b", "turns": TURNS, "latency_ms": 0}]
    path.write_text(json.dumps({"version": 1, "latency_ms": 7, "chunk_delay_ms": 3, "agent": entries}))
    script = load_script(path)
    assert [entry.latency_ms for entry in script.agent] == [7, 0]
    assert [entry.chunk_delay_ms for entry in script.agent] == [3, 3]


def test_not_an_object_is_one_plain_line() -> None:
    assert len(problems([])) == 1


def test_the_documented_example_is_a_valid_script() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scripted-model.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    scripts = [parse_script(json.loads(block)) for block in blocks]
    assert [(len(script.agent), len(script.judge)) for script in scripts] == [(2, 3)]
