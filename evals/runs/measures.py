"""How each kind of item is measured: which agent mode, which scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evals.agents.claude_code import BUILTIN_TOOLS, ClaudeCode
from evals.agents.first_call import first_call
from evals.agents.to_completion import to_completion
from evals.agents.warm import WarmSessions, can_be_warm
from evals.conversation import Conversation
from evals.items import Item
from evals.judges import Judge, JudgeError, Judgement, Vote
from evals.redact import Redactor
from evals.runs.trial import COST, Case, JudgeNote, Measured, UnjudgedError, Verdict, VoteNote
from evals.scoring import Score
from evals.scoring.tool_call import measured_call, score_tool_call
from evals.scoring.tool_errors import ToolErrorsScore, score_tool_errors


def tool_call_cases(items: Sequence[Item], agent: ClaudeCode, *, fresh_sessions: bool = False) -> list[Case]:
    """The first call of a session in which nothing runs, against what the item expects.

    fresh_sessions: start a Claude Code for every trial even where a rewound one is known to be the same.
    """
    under_test = frozenset(server.name for server in agent.target.under_test)
    warm = None if fresh_sessions or not can_be_warm(agent) else WarmSessions(agent)

    def case(item: Item) -> Case:
        async def measure() -> Measured:
            conversation = await (warm.first_call(item) if warm is not None else first_call(agent, item))
            score = score_tool_call(
                item,
                measured_call(conversation.calls),
                servers_under_test=under_test,
                tools_under_test={tool.name for tool in agent.tools.of(agent.target, item.metadata.tools)},
                builtin_tools=BUILTIN_TOOLS,
                mcp_tools_only=agent.mcp_tools_only,
            )
            scores = (Score(name="tool_call_match", value=score.passed, comment=score.reason),)
            return Measured(conversation, Verdict(score.passed, score.reason, scores))

        return Case(id=item.id, kind="tool-call", category=item.metadata.category, measure=measure, query=item.query)

    return [case(item) for item in items]


def agent_cases(items: Sequence[Item], agent: ClaudeCode, judge: Judge, redactor: Redactor) -> list[Case]:
    """A whole conversation in which tools execute, judged by the item's reference and by its failed calls.

    redactor: keeps out of it what the judge's provider must not see either.
    """
    under_test = frozenset(server.name for server in agent.target.under_test)

    def case(item: Item) -> Case:
        async def measure() -> Measured:
            told = await to_completion(agent, item)
            conversation = redactor.model(told)
            # By the names as they are: one of them may have a secret in it.
            errors = score_tool_errors(told, item, under_test)
            errors = replace(errors, reason=redactor.text(errors.reason))
            try:
                judgement = await judge.judge(item.query, item.expected_output or "", conversation)
            except JudgeError as error:
                scores = [_tool_errors(errors), *_votes(error.votes), *_cost(conversation, error.votes)]
                raise UnjudgedError(error.cause, conversation, tuple(scores)) from error
            return Measured(conversation, agent_verdict(judgement, errors, conversation))

        return Case(id=item.id, kind="agent", category=item.metadata.category, measure=measure, query=item.query)

    return [case(item) for item in items]


def agent_verdict(judgement: Judgement, errors: ToolErrorsScore, conversation: Conversation) -> Verdict:
    """Passed only if the judge says PASS and no call failed unexpectedly; both reasons are told where both fail."""
    judged = judgement.verdict == "PASS"
    passed = judged and errors.passed
    reasons = [] if judged else [f"judge: {judgement.reason}"]
    if not errors.passed:
        reasons.append(errors.reason if not judged else f"judge says PASS, but {errors.reason}")
    scores = [
        Score(name="judge", value=judged, comment=judgement.reason),
        _tool_errors(errors),
        Score(name="pass", value=passed),
        *(_votes(judgement.votes) if len(judgement.votes) > 1 else ()),
        *_cost(conversation, judgement.votes),
    ]
    votes = tuple(
        VoteNote(model=vote.model, verdict=vote.verdict, reason=vote.reason, cost_usd=vote.cost_usd)
        for vote in judgement.votes
    )
    note = JudgeNote(verdict=judgement.verdict, reason=judgement.reason, votes=votes)
    return Verdict(passed, "; ".join(reasons) or judgement.reason, tuple(scores), note)


def _tool_errors(errors: ToolErrorsScore) -> Score:
    return Score(name="tool_errors", value=float(len(errors.unexpected)), comment=errors.reason)


def _votes(votes: Sequence[Vote]) -> list[Score]:
    return [Score(name=f"judge {vote.model}", value=vote.verdict == "PASS", comment=vote.reason) for vote in votes]


def _cost(conversation: Conversation, votes: Sequence[Vote]) -> list[Score]:
    """What agent and judges cost, as far as they said."""
    known = [cost for cost in (conversation.cost_usd, *(vote.cost_usd for vote in votes)) if cost is not None]
    return [Score(name=COST, value=sum(known))] if known else []
