from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.conversation import Conversation
from evals.embedded.model import ScriptedModel, parse_script
from evals.judges import Judge, JudgeError, Judgement, Vote, openrouter_judge, panel
from evals.scoring.judge import Verdict

NOW = datetime(2026, 11, 1, tzinfo=UTC)
CONVERSATION = Conversation(query="q", started_at=NOW, ended_at=NOW)


@dataclass(frozen=True)
class Fixed:
    """A judge with one answer: a verdict, or none."""

    name: str
    verdict: Verdict | None

    @property
    def models(self) -> tuple[str, ...]:
        return (self.name,)

    async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
        if self.verdict is None:
            raise JudgeError(f"the judge {self.name} is out")
        return Judgement(self.verdict, f"so says {self.name}", (Vote(self.name, self.verdict, f"so says {self.name}"),))


def of(*verdicts: Verdict | None) -> Judge:
    return panel([Fixed(f"m{number}", verdict) for number, verdict in enumerate(verdicts)])


async def decide(judge: Judge) -> Judgement:
    return await judge.judge("q", "r", CONVERSATION)


async def test_the_majority_decides_and_every_vote_is_kept() -> None:
    judge = of("PASS", "FAIL", "PASS")
    assert judge.models == ("m0", "m1", "m2")
    found = await decide(judge)
    assert found.verdict == "PASS"
    assert [(vote.model, vote.verdict) for vote in found.votes] == [("m0", "PASS"), ("m1", "FAIL"), ("m2", "PASS")]
    assert found.reason == "PASS by 2 of 3; m0 PASS: so says m0; m2 PASS: so says m2; m1 FAIL: so says m1"


async def test_a_judge_without_a_verdict_leaves_the_majority_to_the_others() -> None:
    found = await decide(of("FAIL", None, "FAIL"))
    assert (found.verdict, len(found.votes)) == ("FAIL", 2)
    assert found.reason.endswith("no vote: the judge m1 is out")


@pytest.mark.parametrize(
    ("verdicts", "count"),
    [
        (("PASS", "FAIL"), "1 PASS, 1 FAIL of 2 judges"),
        (("PASS", None), "1 PASS, 0 FAIL of 2 judges; the judge m1 is out"),
        (("PASS", "FAIL", None), "1 PASS, 1 FAIL of 3 judges; the judge m2 is out"),
        (("PASS", None, None), "1 PASS, 0 FAIL of 3 judges; the judge m1 is out; the judge m2 is out"),
        ((None, None), "0 PASS, 0 FAIL of 2 judges; the judge m0 is out; the judge m1 is out"),
    ],
)
async def test_no_majority_is_an_error(verdicts: tuple[Verdict | None, ...], count: str) -> None:
    with pytest.raises(JudgeError) as raised:
        await decide(of(*verdicts))
    assert raised.value.cause == f"no majority: {count}"
    assert len(raised.value.votes) == sum(verdict is not None for verdict in verdicts)


async def test_a_panel_of_one_is_that_judge() -> None:
    assert (await decide(of("FAIL"))).reason == "so says m0"
    with pytest.raises(JudgeError, match="the judge m0 is out"):
        await decide(of(None))


def test_a_panel_of_none_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="needs a judge"):
        of()


verdicts_lists: st.SearchStrategy[list[Verdict | None]] = st.lists(
    st.sampled_from(["PASS", "FAIL", None]), min_size=2, max_size=7
)


@given(verdicts_lists)
async def test_a_verdict_always_has_more_than_half_of_the_panel(verdicts: list[Verdict | None]) -> None:
    try:
        found: Verdict | None = (await decide(of(*verdicts))).verdict
    except JudgeError:
        found = None
    winners = [one for one in ("PASS", "FAIL") if 2 * verdicts.count(one) > len(verdicts)]
    assert winners == ([found] if found else [])


async def test_models_of_a_panel_vote_through_the_api() -> None:
    entries: list[dict[str, Any]] = [
        {"query": "Delete it.", "model": "a", "verdict": "PASS", "reason": "A.", "usage": {"cost": 0.5}},
        {"query": "Delete it.", "model": "b", "raw": "no idea"},
        {"query": "Delete it.", "model": "c", "verdict": "PASS", "reason": "C.", "usage": {"cost": 0.25}},
    ]
    with ScriptedModel(parse_script({"version": 1, "judge": entries})) as model:
        judge = panel([openrouter_judge(name, "key", model.openai_base_url) for name in "abc"])
        found = await judge.judge("Delete it.", "PASS only if it is deleted.", CONVERSATION)
    assert (found.verdict, found.cost_usd) == ("PASS", 0.75)
    assert [vote.reason for vote in found.votes] == ["A.", "C."]
    assert "no vote: the judge b gave no readable verdict in 3 answers" in found.reason
