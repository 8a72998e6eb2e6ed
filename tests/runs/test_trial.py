from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evals.agents import AgentError, partial_conversation
from evals.conversation import Conversation, Usage
from evals.errors import TwogateError
from evals.redact import Redactor
from evals.runs.journal import Journal, create_run_folder, read_journal, write_json
from evals.runs.models import RunRecord, never_completed, repeats
from evals.runs.output import task_output
from evals.runs.trial import IDENTITY, Case, Measured, Outcome, TrialResult, Verdict, run_trial
from evals.scoring import Score

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONVERSATION = Conversation(query="q", started_at=NOW, ended_at=NOW, usage=Usage(input_tokens=3, output_tokens=4))


def case(measure: object) -> Case:
    return Case(id="pr/a/b", kind="tool-call", category="a", measure=measure)  # type: ignore[arg-type]


async def trial(measure: object, time_limit: float = 5) -> TrialResult:
    return await run_trial(case(measure), run="r", iteration=1, time_limit=time_limit)


async def test_a_verdict_is_the_outcome_and_tokens_are_scored() -> None:
    async def measure() -> Measured:
        return Measured(CONVERSATION, Verdict(False, "wrong\n tool", (Score(name="tool_call_match", value=False),)))

    result = await trial(measure)
    assert (result.outcome, result.reason) == ("failed", "wrong tool")
    assert {score.name: score.value for score in result.scores} == {"tool_call_match": False, "total_tokens": 7.0}


async def test_no_tokens_no_score_of_them() -> None:
    async def measure() -> Measured:
        return Measured(CONVERSATION.model_copy(update={"usage": None}), Verdict(True, "ok", ()))

    assert (await trial(measure)).scores == ()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AgentError("the server did not connect", CONVERSATION), "the server did not connect"),
        (RuntimeError("boom"), "unexpected RuntimeError: boom"),
        (TimeoutError("reading the body"), "unexpected TimeoutError: reading the body"),
        (OSError(24, "Too many open files"), "Too many open files"),
    ],
)
async def test_what_goes_wrong_around_the_model_is_an_error_never_a_miss(error: Exception, words: str) -> None:
    async def measure() -> Measured:
        raise error

    result = await trial(measure)
    assert result.outcome == "error"
    assert words in result.reason
    assert not [score for score in result.scores if score.name != "total_tokens"]


async def test_a_trial_that_is_cut_off_keeps_what_there_was() -> None:
    async def measure() -> Measured:
        partial_conversation(lambda: CONVERSATION)
        await asyncio.sleep(60)
        raise AssertionError("unreachable")

    cut = await trial(measure, time_limit=0.05)
    assert cut.conversation == CONVERSATION
    assert [score.name for score in cut.scores] == ["total_tokens"]


async def test_a_trial_ends_at_its_time_limit() -> None:
    async def measure() -> Measured:
        await asyncio.sleep(60)
        raise AssertionError("unreachable")

    result = await trial(measure, time_limit=0.05)
    assert (result.outcome, result.reason) == ("error", "did not finish within 0.05 s (--trial-timeout)")


def result(item: str = "pr/a/b", iteration: int = 1, outcome: Outcome = "passed") -> TrialResult:
    return TrialResult(
        run="r",
        item=item,
        iteration=iteration,
        kind="tool-call",
        category="a",
        outcome=outcome,
        reason="why",
        conversation=CONVERSATION,
        started_at=NOW,
        ended_at=NOW,
    )


class TestJournal:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        with Journal(tmp_path) as journal:
            journal.append(result())
            journal.append(result("pr/a/c", outcome="failed"))
        assert list(read_journal(tmp_path)) == [result(), result("pr/a/c", outcome="failed")]

    def test_a_finished_trial_outlives_the_process(self, tmp_path: Path) -> None:
        """Killed right after `append` returned, with no chance to close anything."""
        program = f"""
import os, signal
from pathlib import Path
from evals.runs.journal import Journal
from evals.runs.trial import TrialResult
journal = Journal(Path({str(tmp_path)!r})).__enter__()
journal.append(TrialResult.model_validate_json({result().model_dump_json()!r}))
os.kill(os.getpid(), signal.SIGKILL)
"""
        done = subprocess.run([sys.executable, "-c", program], check=False)
        assert done.returncode == -signal.SIGKILL
        assert list(read_journal(tmp_path)) == [result()]

    def test_a_line_cut_off_by_a_crash_is_left_out_and_a_bad_one_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "trials.jsonl"
        line = result().model_dump_json()
        path.write_text(f"{line}\n{line[:50]}")
        assert list(read_journal(tmp_path)) == [result()]
        path.write_text(f"{line[:50]}\n{line}\n")
        with pytest.raises(TwogateError, match="line 1 is not a trial"):
            list(read_journal(tmp_path))

    @pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\r"])
    def test_a_text_with_line_separators_is_one_line_of_the_journal(self, tmp_path: Path, separator: str) -> None:
        odd = result().model_copy(update={"reason": f"a{separator}b"})
        with Journal(tmp_path) as journal:
            journal.append(odd)
            journal.append(result("pr/a/c"))
        assert list(read_journal(tmp_path)) == [odd, result("pr/a/c")]

    def test_no_journal_no_trials(self, tmp_path: Path) -> None:
        assert list(read_journal(tmp_path)) == []

    def test_two_runs_never_share_a_folder(self, tmp_path: Path) -> None:
        names = [create_run_folder(tmp_path / "runs", "main").name for _ in range(3)]
        assert names == ["main", "main-2", "main-3"]

    def test_a_file_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        path = tmp_path / "summary.json"
        write_json(path, Score(name="a", value=1.0))
        (tmp_path / "ro").mkdir()
        with pytest.raises(FileNotFoundError):
            write_json(tmp_path / "nowhere" / "x.json", Score(name="b", value=1.0))
        assert json.loads(path.read_text())["name"] == "a"
        assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["summary.json"]
        assert path.stat().st_mode & 0o777 == 0o644


def record(items: tuple[str, ...], iterations: int) -> RunRecord:
    return RunRecord(
        run="r",
        started_at=NOW,
        command=(),
        gate="pr",
        dataset="d",
        items=items,
        iterations=iterations,
        requested=len(items) * iterations,
        threshold="9/10",
        experiment_id="e",
        metadata={},
    )


def test_trials_without_a_verdict_are_told_apart() -> None:
    notes = never_completed(("pr/a/b", "pr/a/c"), 2, [result(), result(iteration=2, outcome="error")])
    assert [(note.item, note.iteration, note.reason) for note in notes] == [
        ("pr/a/b", 2, "why"),
        ("pr/a/c", 1, "not run"),
        ("pr/a/c", 2, "not run"),
    ]


def test_repeats_count_trials_without_a_verdict_as_not_passed() -> None:
    told = repeats(record(("pr/a/b",), 2), [result()])
    assert [at.pass_hat_k for at in told.mean] == [0.5, 0.0]
    assert told.items[0].not_run == 1
    assert told.flaky == ()


def test_the_output_of_a_trial_has_no_results() -> None:
    assert task_output(result()) == {
        "id": "pr/a/b",
        "iteration": 1,
        "outcome": "passed",
        "reason": "why",
        "transcript": [],
    }


def test_redaction_reaches_every_text_of_a_model_and_leaves_short_words_alone() -> None:
    redactor = Redactor(["sk-secret-1", "sk-secret-1-long", "yes", ""])
    score = Score(name="sk-secret-1", value=1.0, comment="a sk-secret-1-long b yes")
    assert redactor.model(score) == Score(name="[secret]", value=1.0, comment="a [secret] b yes")
    assert Redactor([]).model(score) is score


async def test_which_trial_it_is_stays_readable_whatever_is_secret() -> None:
    """A variable's value may be a word of an item's id, of a category or of an outcome."""

    async def measure() -> Measured:
        return Measured(CONVERSATION, Verdict(True, "passed with swordfish", ()))

    result = (await trial(measure)).model_copy(update={"trace_id": "0123456789", "item": "pr/swordfish/b"})
    redacted = Redactor(["passed", "swordfish", "tool-call", "0123456789"]).model(result, IDENTITY)
    assert redacted.reason == "[secret] with [secret]"
    for name in IDENTITY:
        assert getattr(redacted, name) == getattr(result, name)
