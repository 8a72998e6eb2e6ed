"""How each kind of item is measured: which agent mode, which scores."""

from __future__ import annotations

from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.agents.first_call import first_call
from evals.items import Item
from evals.runs.trial import Measure, Measured, Verdict
from evals.scoring import Score
from evals.scoring.tool_call import measured_call, score_tool_call


def tool_call_measure(agent: ClaudeCode) -> Measure:
    """The first call of a session in which nothing runs, against what the item expects."""

    async def measure(item: Item) -> Measured:
        conversation = await first_call(agent, item)
        score = score_tool_call(
            item,
            measured_call(conversation.calls),
            tools_under_test={tool.name for tool in agent.tools.of(agent.target, item.metadata.tools)},
            builtin_tools=BUILTIN_TOOLS,
        )
        scores = (Score(name="tool_call_match", value=score.passed, comment=score.reason),)
        return Measured(conversation, Verdict(score.passed, score.reason, scores))

    return measure
