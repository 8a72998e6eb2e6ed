"""A question as a case: put to the agent, its answer compared with the written one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.agents.messages import MessagesAgent
from evals.conversation import Conversation
from evals.qa.file import QaPair
from evals.qa.prompt import read_reply
from evals.runs.trial import Case, Measured, Verdict
from evals.scoring import Score
from evals.scoring.exact import score_exact


def item_id(path: Path, number: int, count: int) -> str:
    """``<file's stem>/<number>``, the number with zeros before it so that ids sort as the pairs stand."""
    return f"{path.stem}/{number:0{max(2, len(str(count)))}}"


def qa_cases(path: Path, pairs: Sequence[QaPair], count: int, agent: MessagesAgent) -> list[tuple[Case, Any]]:
    """Each pair as a case with its data for the experiment. `count` is how many pairs the whole file has."""

    def case(pair: QaPair) -> Case:
        async def measure() -> Measured:
            conversation = await agent.answer(pair.question)
            return Measured(conversation, judge(pair.answer, conversation, agent.max_turns))

        return Case(id=item_id(path, pair.number, count), kind="qa", category=path.stem, measure=measure)

    return [
        (
            case(pair),
            {"input": {"query": pair.question}, "expected_output": pair.answer, "metadata": {"pair": pair.number}},
        )
        for pair in pairs
    ]


def judge(expected: str, conversation: Conversation, max_turns: int) -> Verdict:
    """Right or wrong, and why. A conversation that ended without an answer is wrong, for the reason it ended."""
    response = read_reply(conversation).response
    score = score_exact(expected, response)
    reason = score.reason
    if response is None:
        reason = f"expected {expected!r}, but {_why_no_answer(conversation, max_turns)}"
    return Verdict(
        score.passed,
        reason,
        (
            Score(name="exact_match", value=score.passed, comment=reason),
            Score(name="tool_calls", value=float(len(conversation.calls))),
        ),
    )


def _why_no_answer(conversation: Conversation, max_turns: int) -> str:
    match conversation.stop:
        case "refusal":
            return "the model refused to answer"
        case "max_turns":
            return f"there was no answer within {max_turns} turns (--max-turns)"
        case "max_tokens":
            return "the answer was cut off at the limit of one answer's length"
        case "context_overflow":
            return f"the conversation outgrew the model's context window{_largest_result(conversation)}"
    return "the last message has no <response>…</response>"


def _largest_result(conversation: Conversation) -> str:
    results = [(len(call.result), call.tool) for call in conversation.calls if call.result]
    if not results:
        return ""
    size, tool = max(results)
    return f"; the largest of {len(results)} results was {tool}'s, {size:,} characters"
