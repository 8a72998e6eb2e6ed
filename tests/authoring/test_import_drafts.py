"""Drafts from test cases, questions and a run's failures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from authoring_support import agent, tool_call

from evals.authoring.checking import check_content
from evals.authoring.importing import Drafts, drafts_from_qa, drafts_from_run, drafts_from_test_cases, slugged
from evals.conversation import Conversation
from evals.errors import TwogateError
from evals.runs.models import RunRecord
from evals.runs.trial import Outcome, TrialResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)

CASES: list[dict[str, Any]] = [
    {
        "id": "fetch-actor-details-1",
        "category": "fetch-actor-details",
        "query": "What are the details of the crawler?",
        "expectedTools": ["fetch-actor-details"],
    },
    {
        "id": "search-1",
        "category": "search_actors",
        "query": "Is there something for weather?",
        "expectedTools": ["mcp__apify__search-actors", "search-actors"],
        "reference": "It must search for weather.",
        "context": "none",
    },
    {
        "id": "search-1",
        "category": "search_actors",
        "query": "And for maps?",
        "expectedTools": [],
        "reference": "PASS only if it finds maps. FAIL if it finds none.",
    },
]


def cases(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "test-cases.json"
    path.write_text(json.dumps({"version": "1.0", "testCases": value}))
    return path


def shown(drafts: Drafts) -> list[tuple[str, str | None]]:
    return [(item.id, item.expected_output) for item in drafts.content.items]


def test_test_cases_as_tool_call_items(tmp_path: Path) -> None:
    drafts = drafts_from_test_cases(cases(tmp_path, CASES))
    assert drafts.content.name == "mcp-server-evals-pr"
    assert shown(drafts) == [("pr/fetch-actor-details/1", None), ("pr/search_actors/search-1", None)]
    assert drafts.content.items[1].metadata["expectedTools"] == ["search-actors"]
    assert drafts.notes == (
        "keys that have no place in an item are left out: context",
        "1 cases without expectedTools are left out: a tool-call item needs one",
        "1 references are left out: a tool-call item has no judge; --gate merge drafts agent items",
    )
    checked = check_content(drafts.content)
    assert (len(checked.items), checked.problems, checked.drafts) == (2, (), ())


def test_a_category_stays_the_tools_name(tmp_path: Path) -> None:
    """Coverage and lint compare it with the server's names, where getInvoice is not getinvoice."""
    path = cases(
        tmp_path,
        [
            {**CASES[0], "id": "one", "category": "getInvoice"},
            {**CASES[0], "id": "two", "category": "mcp__billing__get.Invoice"},
            {**CASES[0], "id": "three", "category": " "},
        ],
    )
    for gate in ("pr", "merge"):
        drafts = drafts_from_test_cases(path, gate)
        assert [(item.id, item.metadata["category"]) for item in drafts.content.items] == [
            (f"{gate}/getinvoice/one", "getInvoice"),
            (f"{gate}/get-invoice/two", "get.Invoice"),
            (f"{gate}/uncategorised/three", "uncategorised"),
        ]


def test_test_cases_as_agent_items(tmp_path: Path) -> None:
    drafts = drafts_from_test_cases(cases(tmp_path, CASES), "merge", "mine-merge")
    assert drafts.content.name == "mine-merge"
    form = "TODO: write it as PASS only if … FAIL if …: "
    assert shown(drafts) == [
        ("merge/fetch-actor-details/1", form + "the tools expected are fetch-actor-details"),
        ("merge/search_actors/search-1", form + "It must search for weather."),
        ("merge/search_actors/search-1-2", "PASS only if it finds maps. FAIL if it finds none."),
    ]
    checked = check_content(drafts.content)
    assert (checked.problems, len(checked.drafts)) == ((), 2)


def test_every_mistake_of_a_test_case_list_at_once(tmp_path: Path) -> None:
    path = cases(tmp_path, [{"id": 5, "category": "c", "query": "q"}, {"id": "a", "category": "c", "query": " "}, 3])
    with pytest.raises(TwogateError) as caught:
        drafts_from_test_cases(path)
    assert [line.removeprefix(f"{path}: ") for line in caught.value.lines] == [
        "testCases[0] (5): id: must be text",
        "testCases[1] (a): query: is empty; write it",
        'testCases[2]: case: must be an object with "id", "category", "query" and "expectedTools"',
    ]
    for text in ("{}", "[]", "{", '{"testCases": []}'):
        path.write_text(text)
        with pytest.raises(TwogateError, match=r"is not valid JSON|has no test cases"):
            drafts_from_test_cases(path)
    path.write_text(json.dumps({"testCases": [{"id": "a", "category": "c", "query": "q"}]}))
    with pytest.raises(TwogateError, match="nothing to draft"):
        drafts_from_test_cases(path)


def test_half_of_a_character_in_a_test_case_is_refused(tmp_path: Path) -> None:
    path = cases(tmp_path, [{**CASES[0], "query": "What \ud83d"}, {**CASES[1]}])
    with pytest.raises(TwogateError) as caught:
        drafts_from_test_cases(path)
    assert caught.value.lines == [
        f"{path}: fetch-actor-details-1: query: holds \\ud83d, half of a surrogate pair and no character; "
        "write the whole one"
    ]


def test_questions(tmp_path: Path) -> None:
    path = tmp_path / "qa.xml"
    path.write_text(
        "<evaluation><qa_pair><question>How many files hold the word euro?</question><answer>7</answer></qa_pair>"
        '<qa_pair><question>Wer pflegt „das“ &amp; jenes?</question><answer>the "data" team</answer></qa_pair>'
        "</evaluation>"
    )
    drafts = drafts_from_qa(path, "search_text")
    assert shown(drafts) == [
        (
            "merge/search_text/how-many-files-hold-the-word-euro",
            'PASS only if the final answer is "7", in these or other words. '
            "FAIL if it is anything else, or leaves the question open.",
        ),
        (
            "merge/search_text/wer-pflegt-das-jenes",
            'PASS only if the final answer is "the \\"data\\" team", in these or other words. '
            "FAIL if it is anything else, or leaves the question open.",
        ),
    ]
    checked = check_content(drafts.content)
    assert (checked.problems, checked.drafts) == ((), ())
    path.write_text("<evaluation/>")
    with pytest.raises(TwogateError, match="has no pairs"):
        drafts_from_qa(path)


def record(gate: str = "pr") -> RunRecord:
    return RunRecord(
        run="r",
        started_at=NOW,
        command=(),
        gate=gate,
        dataset="things-pr",
        items=(),
        iterations=1,
        requested=1,
        threshold="9/10",
        experiment_id="e",
        metadata={},
    )


def trial(item: str, outcome: Outcome, kind: Any = "tool-call") -> TrialResult:
    return TrialResult(
        run="r",
        item=item,
        iteration=1,
        kind=kind,
        category="get_task",
        outcome=outcome,
        reason="expected get_task, the model called search",
        conversation=Conversation(query="What is x?", started_at=NOW, ended_at=NOW),
        started_at=NOW,
        ended_at=NOW,
    )


def test_failures_of_a_run() -> None:
    one = tool_call("pr/get_task/one", "What is x?", ["get_task"], expectedArgs={"task": "x"})
    taken = tool_call("pr/get_task/one-draft", "Else?", ["get_task"])
    trials = [
        trial("pr/get_task/gone", "failed"),
        trial(one.id, "failed"),
        trial(one.id, "failed"),
        trial("pr/get_task/fine", "passed"),
        trial("pr/get_task/broken", "error"),
    ]
    drafts = drafts_from_run(record(), trials, [one, taken])
    assert [item.id for item in drafts.content.items] == ["pr/get_task/gone-draft", "pr/get_task/one-draft-2"]
    assert drafts.content.items[1].input["query"] == (
        "TODO: ask for it as a user would (expected get_task, the model called search): What is x?"
    )
    assert drafts.content.items[1].metadata == one.metadata
    assert drafts.notes[0] == "pr/get_task/gone: is no longer in things-pr; drafted from the journal alone"
    checked = check_content(drafts.content)
    assert (checked.problems, len(checked.drafts)) == ((), 2)


def test_failures_of_a_run_whose_dataset_is_gone() -> None:
    drafts = drafts_from_run(record(), [trial("pr/get_task/one", "failed")], None)
    (item,) = drafts.content.items
    assert (item.id, item.metadata["expectedTools"]) == ("pr/get_task/one-draft", ["get_task"])
    assert drafts.notes[0] == "the dataset things-pr is not there (any more); drafted from the journal alone"
    assert len(drafts.notes) == 2


def test_failures_of_a_judged_run() -> None:
    one = agent("merge/tasks/one", "What is x?")
    drafts = drafts_from_run(record("merge"), [trial(one.id, "failed", "agent")], [one], "things-merge")
    (item,) = drafts.content.items
    assert item.input == {"query": "What is x?"}
    assert str(item.expected_output).startswith("TODO: check the reference (expected get_task")
    assert check_content(drafts.content).problems == ()


def test_runs_without_anything_to_draft() -> None:
    with pytest.raises(TwogateError, match="no trial failed"):
        drafts_from_run(record(), [trial("pr/get_task/fine", "passed")], [])
    with pytest.raises(TwogateError, match="is no run of a gate"):
        drafts_from_run(record("qa"), [], [])


def test_slugs() -> None:
    assert slugged("Größe & Co.: a/b") == "grosse-co-a-b"
    assert slugged("list_files", keep_underscores=True) == "list_files"
    assert len(slugged("x" * 100)) == 60
