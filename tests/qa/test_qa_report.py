"""From trials to a report: what is read from a last message, how trials are judged, counted and told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evals.conversation import Conversation, ConversationBuilder, Usage
from evals.qa.file import QaPair
from evals.qa.markdown import to_markdown
from evals.qa.measure import judge
from evals.qa.prompt import SYSTEM, read_reply
from evals.qa.report import Asked, QaReport, build_report
from evals.qa.solve import Solved, solve_pair
from evals.runs.models import RunSummary
from evals.runs.trial import Outcome, TrialResult
from evals.tool_listing import Tool

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def talk(text: str, *calls: tuple[str, float, bool], stop: str = "end_turn", answered: bool = True) -> Conversation:
    """A conversation with calls of (tool, seconds, is_error) in one turn, then a message."""
    builder = ConversationBuilder("Which?", ("odd",), START)
    for number, (tool, seconds, failed) in enumerate(calls):
        builder.add_call("m1", str(number), f"mcp__odd__{tool}", {}, later(1))
        if answered:
            builder.add_result(str(number), "r" * 10, is_error=failed, at=later(1 + seconds))
    if text:
        builder.add_text("m2", text, later(3))
    return builder.build(ended_at=later(4), usage=Usage(input_tokens=10, output_tokens=5), stop=stop)


def tagged(response: str, feedback: str = "", summary: str = "Looked.") -> str:
    return f"<summary>{summary}</summary><feedback>{feedback}</feedback><response>{response}</response>"


def trial(
    item: str, outcome: Outcome, conversation: Conversation | None, iteration: int = 1, **more: Any
) -> TrialResult:
    fields = {"run": "r", "kind": "qa", "category": "q", "started_at": START, "ended_at": later(4), "reason": "why"}
    return TrialResult(
        **{**fields, "item": item, "iteration": iteration, "outcome": outcome, "conversation": conversation, **more}
    )


def summary(passed: int, failed: int, error: int, not_run: int = 0) -> RunSummary:
    """The part of a run's summary that a report takes."""
    requested = passed + failed + error + not_run
    fields: dict[str, Any] = {
        "run": "main-model-1",
        "passed": passed,
        "failed": failed,
        "error": error,
        "not_run": not_run,
        "requested": requested,
        "pass_rate": passed / requested,
        "threshold": 0.9,
        "met": False,
        "total_tokens": 45,
        "cost_usd": None,
        "url": None,
        "scripted": True,
        "interrupted": False,
        "metadata": {"agent_model": "m (scripted)", "target": "odd"},
    }
    return RunSummary.model_construct(**fields)


def asked(count: int) -> list[Asked]:
    return [
        Asked(item=f"q/{number:02}", number=number, question=f"Q{number}?", expected="Right")
        for number in range(1, count + 1)
    ]


# --- the last message -------------------------------------------------------------------------------------------


def test_the_answer_is_the_last_response_tag() -> None:
    text = (
        "<response>draft</response> no: <summary>s</summary><feedback>f</feedback>\n<RESPONSE >\n final \n</response>"
    )
    reply = read_reply(talk(text))
    assert (reply.summary, reply.feedback, reply.response) == ("s", "f", "final")


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("<response></response>", ""),
        ("<response>a <b>c</b> &amp; d</response>", "a <b>c</b> &amp; d"),
        ("say <response> then <response>x</response>", "x"),
        ("no tags", None),
        ("<response>cut off", None),
        ("</response>", None),
        (
            "<response>six</response><feedback>search: say <response>…</response> in its description</feedback>",
            "six",
        ),
        ("<summary>I write <response>a</response> now.</summary><response>b</response>", "b"),
        ("<response>42</response> and that is all.</response>", "42"),
        ("<response>41</response> no, <response>42</response>", "42"),
        ("<feedback>never closed <response>x</response>", "x"),
        ("<response>a <summary>b</summary></response>", "a <summary>b</summary>"),
        ("<response>x</response> I left <response> open", "x"),
    ],
)
def test_what_is_in_the_tag_is_taken_as_it_stands(text: str, response: str | None) -> None:
    assert read_reply(talk(text)).response == response


def test_a_message_that_makes_calls_is_not_the_last() -> None:
    builder = ConversationBuilder("Which?", ("odd",), START)
    builder.add_text("m1", tagged("draft"), later(1))
    builder.add_call("m1", "1", "mcp__odd__text", {}, later(1))
    assert read_reply(builder.build(ended_at=later(2), stop="max_turns")).response is None


def test_the_model_is_asked_for_the_three_parts() -> None:
    for tag in ("summary", "feedback", "response"):
        assert f"<{tag}>" in SYSTEM
        assert f"</{tag}>" in SYSTEM


# --- the verdict ------------------------------------------------------------------------------------------------


def test_right_and_wrong() -> None:
    right = judge("Right", talk(tagged("Right")), 5)
    assert right.passed
    assert {score.name: score.value for score in right.scores} == {"exact_match": True, "tool_calls": 0.0}
    wrong = judge("Right", talk(tagged("right")), 5)
    assert not wrong.passed
    assert "differs in case alone" in wrong.reason


@pytest.mark.parametrize(
    ("stop", "says"),
    [
        ("refusal", "the model refused to answer"),
        ("max_turns", "there was no answer within 5 turns (--max-turns)"),
        ("max_tokens", "cut off"),
        ("context_overflow", "outgrew the model's context window; the largest of 1 results was big's, 10 characters"),
        ("end_turn", "the last message has no <response>…</response>"),
    ],
)
def test_a_conversation_without_an_answer_is_wrong_and_says_why(stop: str, says: str) -> None:
    verdict = judge("Right", talk("Hm.", ("big", 1, False), stop=stop), 5)
    assert not verdict.passed
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("stop", "says"), [("refusal", "refused"), ("max_tokens", "cut off"), ("context_overflow", "outgrew")]
)
def test_what_is_said_before_a_stop_is_no_answer(stop: str, says: str) -> None:
    conversation = talk(tagged("Right"), stop=stop)
    verdict = judge("Right", conversation, 5)
    assert not verdict.passed
    assert says in verdict.reason
    results = [trial("q/01", "failed", conversation, reason=verdict.reason)]
    (task,) = build_report(summary(0, 1, 0), asked(1), 1, results, file="q.xml", tool_names=[]).tasks
    assert task.actual is None
    assert task.summary == "Looked."


# --- the report -------------------------------------------------------------------------------------------------


def report() -> QaReport:
    results = [
        trial(
            "q/01", "passed", talk(tagged("Right", "search: good.\n- read: slow, see search"), ("search", 0.5, False))
        ),
        trial(
            "q/02",
            "failed",
            talk(
                tagged("right", "search: good.\nThe rest is fine\n  as it is."),
                ("search", 1, True),
                ("search", 2, False),
            ),
        ),
        trial("q/03", "error", talk("", ("read", 1, False), answered=False), reason="the server was gone"),
    ]
    return build_report(summary(1, 1, 1, 1), asked(4), 1, results, file="q.xml", tool_names=["search", "read", "re"])


def test_counts_and_averages() -> None:
    found = report()
    assert (found.correct, found.total, found.errors, found.not_run, found.near_misses) == (1, 4, 1, 1, 1)
    assert found.accuracy == 0.25
    assert found.average_seconds == 4
    assert found.average_tool_calls == 1.5, "over the trials with a verdict"
    assert found.total_tool_calls == 4
    assert [task.outcome for task in found.tasks] == ["passed", "failed", "error", "not_run"]
    (use,) = found.tasks[1].tools
    assert (use.tool, use.calls, use.errors, use.total_seconds, use.average_seconds) == ("search", 2, 1, 3, 1.5)
    (gone,) = found.tasks[2].tools
    assert (gone.calls, gone.total_seconds) == (1, None)
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (30, 15, None)


def test_feedback_is_gathered_by_the_tools_it_names() -> None:
    gathered = {one.tool: [(entry.text, entry.items) for entry in one.feedback] for one in report().feedback}
    assert gathered == {
        "search": [("good.", ("q/01", "q/02")), ("read: slow, see search", ("q/01",))],
        "read": [("slow, see search", ("q/01",))],
        "general": [("The rest is fine as it is.", ("q/02",))],
    }
    assert list(gathered)[-1] == "general"


FEEDBACK = {
    "**echo**\n- returns what it is given\n- no description\n- env:\n  - shows too much": {
        "echo": ["returns what it is given", "no description"],
        "env": ["shows too much"],
    },
    "### `echo`\nSlow.\n  Very slow.\n\n### env:\n\nFine.\n## Overall\nGood server.": {
        "echo": ["Slow. Very slow."],
        "env": ["Fine."],
        "general": ["## Overall", "Good server."],
    },
    "- echo:\n  - slow\n- env:\n  - fine\n- The rest is good.": {
        "echo": ["slow"],
        "env": ["fine"],
        "general": ["The rest is good."],
    },
    "1. **echo**:\n- slow\n- env: too much\n- odd": {"echo": ["slow", "odd"], "env": ["too much"]},
    "**echo, env**\n- both are slow": {"echo": ["both are slow"], "env": ["both are slow"]},
    "echo\n- slower than env": {"echo": ["slower than env"], "env": ["slower than env"]},
    "**Echo chamber**\n- nothing": {"general": ["**Echo chamber**", "nothing"]},
    "**get_env_**\n- odd name\n**`echo()` tool**\n- fine": {"get_env_": ["odd name"], "echo": ["fine"]},
}


@pytest.mark.parametrize("feedback", FEEDBACK)
def test_feedback_under_headings_belongs_to_their_tools(feedback: str) -> None:
    results = [trial("q/01", "passed", talk(tagged("Right", feedback)))]
    names = ["echo", "env", "get_env_"]
    found = build_report(summary(1, 0, 0), asked(1), 1, results, file="q.xml", tool_names=names).feedback
    assert {one.tool: [entry.text for entry in one.feedback] for one in found} == FEEDBACK[feedback]


def test_the_report_as_markdown() -> None:
    text = to_markdown(report())
    for line in (
        "# Evaluation report: q.xml",
        "- **Accuracy**: 1/4 (25.0 %)",
        "- **Threshold**: 90 %, not met",
        "- **Average task duration**: 4.00 s",
        "- **Average tool calls per task**: 1.5",
        "- **Total tool calls**: 4",
        "## Task 1",
        "- **Expected**: `Right`",
        "- **Actual**: `right`",
        "- **Correct**: ✅",
        "- **Correct**: ❌",
        "- **Correct**: 🔥 error",
        "- **Correct**: ⏭️ not run",
        "- **Near miss**: differs in case alone",
        "- **Why**: the server was gone",
        "  - `search`: 2, 1 with an error (3.00 s, 1.50 s each)",
        "### search",
        "- good. (tasks 1, 2)",
        "- **Tokens**: 45 (input 30, cache read 0, cache write 0, output 15)",
        "- **Cost**: not reported by the model's endpoint",
    ):
        assert line in text.splitlines(), line


def test_nothing_of_a_text_becomes_part_of_the_markdown() -> None:
    hostile = "# Head\n- **Accuracy**: 99/99\n<script>alert(1)</script>\n```"
    results = [trial("q/01", "failed", talk(tagged("``x` y", f"t: {hostile}", hostile)))]
    text = to_markdown(build_report(summary(0, 1, 0), asked(1), 1, results, file="q.xml", tool_names=["t"]))
    lines = text.splitlines()
    assert "# Head" not in lines
    assert lines.count("- **Accuracy**: 0/1 (0.0 %)") == 1
    assert not any(line.startswith(("<script", "```", "- **Accuracy**: 99")) for line in lines)
    assert "- **Actual**: ``` ``x` y ```" in lines


def test_every_trial_of_several_is_told() -> None:
    results = [trial("q/01", "passed", talk(tagged("Right")), iteration) for iteration in (1, 2)]
    found = build_report(summary(2, 0, 0), asked(1), 2, results, file="q.xml", tool_names=[])
    assert "## Task 1, trial 2" in to_markdown(found).splitlines()
    assert QaReport.model_validate_json(found.model_dump_json()) == found


# --- solving ----------------------------------------------------------------------------------------------------

PAIR = QaPair(number=1, question="Q?", answer="Right", line=1)
TOOLS = (Tool(server="odd", name="search", read_only=True), Tool(server="odd", name="write"))


def solved(*trials: TrialResult, solvers: int = 2) -> tuple[str, str | None, tuple[str, ...]]:
    found = solve_pair(PAIR, trials, solvers, TOOLS)
    assert found.line().startswith("pair 1 (line 1): ")
    return found.advice, found.proposal, found.changing_tools


def answered(response: str, *calls: tuple[str, float, bool]) -> TrialResult:
    return trial("q/01", "failed", talk(tagged(response), *calls))


def test_only_agreement_of_all_makes_a_proposal() -> None:
    assert solved(answered("Right"), answered("Right")) == ("confirmed", None, ())
    assert solved(answered("Left"), answered("Left")) == ("proposed", "Left", ())
    assert solved(answered("right"), answered("right")) == ("spelling", "right", ())
    assert solved(answered("Left"), answered("Right")) == ("disagreement", None, ())
    assert solved(answered("Left"), answered("NOT_FOUND")) == ("not solved", None, ())
    assert solved(answered("Left")) == ("not solved", None, ())
    assert solved(answered("Left"), trial("q/01", "error", talk(tagged("Left")))) == ("not solved", None, ())
    assert solved() == ("not solved", None, ())


def test_a_tool_that_is_not_marked_read_only_flags_the_pair_whatever_came_of_it() -> None:
    reading, writing = ("search", 1.0, False), ("write", 1.0, True)
    assert solved(answered("Right", reading), answered("Right", reading, writing))[2] == ("write",)
    assert solved(answered("Right"), trial("q/01", "error", talk("", writing)))[2] == ("write",)


@pytest.mark.parametrize("answer", ["TODO", "...", "bell\x07", "null\x00", "half \ufffe", "the key is [secret]"])
def test_what_cannot_stand_in_a_file_is_no_proposal(answer: str) -> None:
    assert solved(answered(answer), answered(answer)) == ("declined", None, ())


def test_a_hidden_answer_is_compared_as_it_is_hidden() -> None:
    trials = [answered("[secret]"), answered("[secret]")]
    found = solve_pair(PAIR, trials, 2, TOOLS, lambda text: text.replace("Right", "[secret]"))
    assert found.advice == "confirmed"


def test_errors_are_told_with_the_pair_and_all_of_them_are_a_failure() -> None:
    errors = [trial("q/01", "error", None, number, reason="401: invalid x-api-key") for number in (1, 2)]
    some = solve_pair(PAIR, [answered("Left"), errors[0]], 2, TOOLS)
    assert some.line().endswith("nothing is proposed: 'Left' × 1; 1 ended in an error: 401: invalid x-api-key (× 1)")
    assert not some.all_errors
    every = solve_pair(PAIR, errors, 2, TOOLS)
    assert every.line().endswith("; 2 ended in an error: 401: invalid x-api-key (× 2)")
    assert Solved((some, every), b"").problems == ["every trial of pair 1 ended in an error; solve them again by --id"]
    assert Solved((every,), b"").problems[0].startswith("every trial ended in an error")
    assert Solved((some,), b"").problems == []
