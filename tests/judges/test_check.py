from __future__ import annotations

import asyncio
from fractions import Fraction

import pytest

from evals.conversation import Conversation, Usage
from evals.judges import JudgeError, Judgement, Vote
from evals.judges.check import Checked, CheckReport, check_judge, report
from evals.judges.labelled import LabelledConversation
from evals.reports.judge_check import closing_lines, passed, verdict_line
from evals.scoring.judge import Verdict


def labelled(number: int, label: Verdict) -> LabelledConversation:
    return LabelledConversation.model_validate(
        {
            "id": f"c{number}",
            "query": f"query {number}",
            "reference": "PASS only if …",
            "turns": [],
            "label": label,
            "note": f"note {number}",
            "tags": ["even" if number % 2 == 0 else "odd"],
        }
    )


class Script:
    """Answers by the query; counts how many judgements run at the same time."""

    models = ("some/model",)

    def __init__(self, *verdicts: Verdict | None) -> None:
        self._verdicts = verdicts
        self.now = self.most = 0

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        verdict = self._verdicts[int(query.split()[1])]
        if verdict is None:
            raise JudgeError("the judge is out")
        vote = Vote("some/model", verdict, "because", 0.25, Usage(input_tokens=8, output_tokens=2))
        return Judgement(verdict, "because", (vote,))


LABELS: tuple[Verdict, ...] = ("PASS", "PASS", "FAIL", "FAIL", "PASS")


async def checked(*verdicts: Verdict | None, scripted: str | None = None) -> CheckReport:
    conversations = [labelled(number, label) for number, label in enumerate(LABELS)]
    results = await check_judge(Script(*verdicts), conversations, concurrency=2)
    return report(results, file="f.json", models=("some/model",), scripted=scripted)


async def test_results_keep_the_order_and_concurrency_its_bound() -> None:
    judge = Script(*LABELS)
    seen: list[Checked] = []
    conversations = [labelled(number, label) for number, label in enumerate(LABELS)]
    results = await check_judge(judge, conversations, concurrency=2, finished=seen.append)
    assert [one.id for one in results] == ["c0", "c1", "c2", "c3", "c4"]
    assert judge.most == 2
    assert sorted(one.id for one in seen) == ["c0", "c1", "c2", "c3", "c4"]


async def test_a_report_by_hand() -> None:
    found = await checked("PASS", "FAIL", "PASS", "FAIL", None)
    # Judged four: one of each kind. p_o = 1/2, p_e = 1/2 * 1/2 + 1/2 * 1/2 = 1/2, kappa = 0.
    assert (found.total, found.judged, found.not_judged, found.agreed) == (5, 4, 1, 2)
    assert (found.agreement, found.kappa) == (0.4, 0.0)
    assert found.confusion.model_dump() == {"pass_pass": 1, "pass_fail": 1, "fail_pass": 1, "fail_fail": 1}
    assert [(one.tag, one.agreed, one.total) for one in found.tags] == [("even", 1, 3), ("odd", 1, 2)]
    assert (found.cost_usd, found.total_tokens) == (1.0, 40)
    assert [one.id for one in found.disagreements] == ["c1", "c2"]
    assert [(one.id, one.reason) for one in found.without_verdict] == [("c4", "the judge is out")]


async def test_lines() -> None:
    lines = closing_lines(await checked("PASS", "FAIL", "PASS", "FAIL", None), None)
    assert lines == [
        "❌ c1: labelled PASS, judged FAIL",
        "   judge: because",
        "   label: note 1",
        "❌ c2: labelled FAIL, judged PASS",
        "   judge: because",
        "   label: note 2",
        "🔥 c4: no verdict: the judge is out",
        "",
        "                judged PASS   judged FAIL    no verdict",
        "labelled PASS             1             1             1",
        "labelled FAIL             1             1             0",
        "",
        "by tag: even 1/3, odd 1/2",
        "🧮 40 tokens, 1.0000 USD",
        "📊 2/5 agree (40.0 %), Cohen's kappa 0.00, 1 without a verdict: check failed",
    ]


async def test_a_scripted_check_says_so_and_names_no_price() -> None:
    lines = closing_lines(await checked(*LABELS, scripted="s.json"), None)
    assert "🧮 50 tokens" in lines
    assert "🎭 the verdicts were scripted: this check says nothing of a real judge" in lines
    assert lines[-1] == "📊 5/5 agree (100.0 %), Cohen's kappa 1.00 (scripted)"


@pytest.mark.parametrize(("minimum", "word"), [("0.8", "passed"), ("4/5", "passed"), ("0.81", "failed")])
async def test_the_minimum_is_held_exactly(minimum: str, word: str) -> None:
    found = await checked("PASS", "PASS", "FAIL", "FAIL", "FAIL")
    assert passed(found, Fraction(minimum)) == (word == "passed")
    assert verdict_line(found, Fraction(minimum)).endswith(f": check {word}")


async def test_what_was_not_judged_fails_the_check_even_above_the_minimum() -> None:
    found = await checked("PASS", "PASS", "FAIL", "FAIL", None)
    assert not passed(found, Fraction(1, 2))
    assert not passed(found, None)


async def test_kappa_may_be_undefined() -> None:
    results = await check_judge(Script("PASS"), [labelled(0, "PASS")], concurrency=1)
    found = report(results, file="f", models=("m",), scripted=None)
    assert found.kappa is None
    assert "Cohen's kappa not defined" in verdict_line(found, None)
