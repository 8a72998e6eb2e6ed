from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.embedded.model import load_script
from evals.errors import TwogateError
from evals.judges.labelled import load_labelled
from evals.scoring.judge import judge_request
from evals.shipped import shipped

SHIPPED = shipped("fixtures", "judge", "conversations.json")
SCRIPT = shipped("fixtures", "scripts", "judge.json")


def one(**changes: Any) -> dict[str, Any]:
    fields = {
        "id": "a",
        "query": "Delete it.",
        "reference": "PASS only if it is deleted.",
        "turns": [
            {"calls": [{"server": "tasks", "tool": "delete_task", "arguments": {"task": "it"}}]},
            {"text": "Ok."},
        ],
        "label": "PASS",
        "note": "It is deleted.",
    } | changes
    return {key: value for key, value in fields.items() if value is not ...}


def written(folder: Path, *conversations: Any, **more: Any) -> Path:
    path = folder / "labelled.json"
    path.write_text(json.dumps({"version": 1, "conversations": list(conversations), **more}), encoding="utf-8")
    return path


def lines(path: Path) -> list[str]:
    with pytest.raises(TwogateError) as raised:
        load_labelled(path)
    return [line.removeprefix(f"{path}: ") for line in raised.value.lines]


def test_a_conversation_as_the_judge_sees_it(tmp_path: Path) -> None:
    [labelled] = load_labelled(written(tmp_path, one()))
    built = labelled.conversation()
    assert [(call.server, call.tool, call.arguments) for call in built.calls] == [
        ("tasks", "delete_task", {"task": "it"})
    ]
    assert built.answers == ("Ok.",)


def test_every_problem_of_the_file_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        one(label="pass", lable="PASS", note="  "),
        one(id="b", turns=[{}, {"calls": [{"tool": 1, "arguments": []}]}]),
        one(id="b", query=..., tags="injection"),
        one(id=..., turns=...),
        "text",
        other=1,
    )
    assert sorted(lines(path)) == sorted(
        [
            "a: label: is 'pass'; must be 'PASS' or 'FAIL'",
            "a: lable: is not a known key; remove it, or correct its spelling",
            "a: note: is empty; write a text",
            'b: turns[0]: a turn needs "text" or "calls"; add one, or leave the turn out',
            "b: turns[1].calls[0].tool: must be text; correct it",
            "b: turns[1].calls[0].arguments: must be an object; correct it",
            "b: query: is missing; add it",
            "b: tags: must be a list; correct it",
            "b: id: stands 2 times; give each conversation an id of its own",
            "conversations[3]: id: is missing; add it",
            "conversations[3]: turns: is missing; add it",
            "conversations[4]: must be an object; correct it",
            "other: is not a known key; remove it, or correct its spelling",
        ]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('{"version": 2, "conversations": []}', "version: is 2; must be 1"),
        ('{"version": 1, "conversations": []}', "conversations: is empty; add one"),
        ('{"version": 1}', "conversations: is missing; add it"),
        ("[" * 100_000, "is nested too deep"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "labelled.json"
    path.write_text(text, encoding="utf-8")
    assert any(said in line for line in lines(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in lines(tmp_path / "none.json")[0]
    assert "cannot be read" in lines(tmp_path)[0]
    latin = tmp_path / "latin.json"
    latin.write_bytes("é".encode("latin-1"))
    assert "is not UTF-8 text" in lines(latin)[0]


class TestShipped:
    def test_it_covers_what_a_judge_gets_wrong(self) -> None:
        conversations = load_labelled(SHIPPED)
        assert len(conversations) >= 34
        tags = [tag for labelled in conversations for tag in labelled.tags]
        wanted = {
            "injection",
            "empty",
            "false claim",
            "honest failure",
            "language",
            "wrong means",
            "cleanup",
            "partial",
        }
        assert wanted <= set(tags)
        assert tags.count("injection") >= 8
        labels = [labelled.label for labelled in conversations]
        assert min(labels.count("PASS"), labels.count("FAIL")) >= 15
        # No tag can be won by always giving the same verdict.
        for tag in ("injection", "empty", "honest failure", "language", "wrong means", "cleanup", "partial"):
            assert {labelled.label for labelled in conversations if tag in labelled.tags} == {"PASS", "FAIL"}, tag

    def test_every_reference_names_both_verdicts(self) -> None:
        for labelled in load_labelled(SHIPPED):
            assert labelled.reference.startswith("PASS only if "), labelled.id
            assert " FAIL " in labelled.reference, labelled.id

    def test_the_script_answers_each_one_and_no_query_stands_in_another_conversation(self) -> None:
        conversations = load_labelled(SHIPPED)
        script = load_script(SCRIPT)
        assert {entry.query for entry in script.judge} == {labelled.query for labelled in conversations}
        for labelled in conversations:
            material = judge_request(labelled.query, labelled.reference, labelled.conversation()).material
            found = [other.id for other in conversations if other.query in material]
            assert found == [labelled.id]

    def test_the_script_disagrees_twice(self) -> None:
        labels = {labelled.query: labelled.label for labelled in load_labelled(SHIPPED)}
        wrong = [
            entry.query for entry in load_script(SCRIPT).judge if entry.verdict not in (None, labels[entry.query or ""])
        ]
        assert len(wrong) == 2
