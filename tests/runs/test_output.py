"""What a trial's conversation is told as, in Langfuse and by `twogate show`."""

from __future__ import annotations

from datetime import UTC, datetime

from evals.conversation import ConversationBuilder
from evals.reports.show import ShownTrial, show_lines
from evals.runs.output import transcript

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_whose_call_it_was_and_how_it_went_is_told_of_every_call() -> None:
    fold = ConversationBuilder("What?", ("repo",), NOW)
    fold.add_text("m1", "Let me ask.", NOW)
    fold.add_call("m1", "a", "Agent", {"prompt": "x"}, NOW)
    fold.add_delegated_call("a", "b", "mcp__repo__get", {"n": 1}, NOW)
    fold.add_call("m1", "c", "mcp__repo__put", {}, NOW)
    fold.add_result("b", "gone", is_error=True, at=NOW)
    fold.add_result("c", "no", is_error=True, denied=True, at=NOW)
    fold.add_text("m2", "It is gone.", NOW)
    steps = transcript(fold.build(ended_at=NOW))
    assert steps == [
        {"narration": "Let me ask."},
        {"tool": "Agent", "arguments": {"prompt": "x"}},
        {"tool": "get", "arguments": {"n": 1}, "subagent": True, "error": True},
        {"tool": "put", "arguments": {}, "denied": True},
        {"answer": "It is gone."},
    ]
    trial = ShownTrial("merge/repo/x", 1, "failed", "because", "What?", tuple(steps), None, "twogate run")
    assert list(show_lines([trial], requested=1)) == list(show_lines([trial]))
    assert list(show_lines([trial], requested=4))[-1] == "1 of 4 trials were run; the others count as not passed"
    assert list(show_lines([trial]))[2:7] == [
        "   says:   Let me ask.",
        '   call:   Agent({"prompt": "x"})',
        '   call:   get({"n": 1}) (by a subagent) (failed)',
        "   call:   put({}) (denied)",
        "   answer: It is gone.",
    ]
