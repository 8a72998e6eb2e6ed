"""How each kind of item is measured: which agent mode, which scores."""

from __future__ import annotations

from collections.abc import Sequence

from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.agents.first_call import first_call
from evals.items import Item
from evals.runs.trial import Case, Measured, Verdict
from evals.scoring import Score
from evals.scoring.tool_call import measured_call, score_tool_call


def tool_call_cases(items: Sequence[Item], agent: ClaudeCode) -> list[Case]:
    """The first call of a session in which nothing runs, against what the item expects."""

    def case(item: Item) -> Case:
        async def measure() -> Measured:
            conversation = await first_call(agent, item)
            score = score_tool_call(
                item,
                measured_call(conversation.calls),
                tools_under_test={tool.name for tool in agent.tools.of(agent.target, item.metadata.tools)},
                builtin_tools=BUILTIN_TOOLS,
            )
            scores = (Score(name="tool_call_match", value=score.passed, comment=score.reason),)
            return Measured(conversation, Verdict(score.passed, score.reason, scores))

        return Case(id=item.id, kind="tool-call", category=item.metadata.category, measure=measure)

    return [case(item) for item in items]
