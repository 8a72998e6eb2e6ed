"""A trial as the experiment's output: a summary to read, with no payloads (those live in the tool observations)."""

from __future__ import annotations

from typing import Any

from evals.conversation import Conversation
from evals.runs.trial import TrialResult


def task_output(result: TrialResult) -> dict[str, Any]:
    """Keys that people's own queries rely on: ``id``, ``outcome``, ``reason``, ``judgeResult``, ``transcript``."""
    output: dict[str, Any] = {
        "id": result.item,
        "iteration": result.iteration,
        "outcome": result.outcome,
        "reason": result.reason,
    }
    if result.judgement is not None:
        output["judgeResult"] = {"verdict": result.judgement.verdict, "reason": result.judgement.reason}
    output["transcript"] = transcript(result.conversation)
    return output


def transcript(conversation: Conversation | None) -> list[dict[str, Any]]:
    """One entry a step: what the agent said, or a call with its arguments, whose it was and whether it failed."""
    steps: list[dict[str, Any]] = []
    for turn in conversation.turns if conversation is not None else ():
        if turn.text.strip():
            steps.append({"narration" if turn.calls else "answer": turn.text})
        for call in turn.calls:
            step: dict[str, Any] = {"tool": call.tool, "arguments": call.arguments}
            if call.parent:
                step["subagent"] = True
            if call.denied:
                step["denied"] = True
            elif call.is_error:
                step["error"] = True
            steps.append(step)
    return steps
