"""Conversations on one query at the same time do not mix, though no request says which one it belongs to."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic

from evals.embedded.model import ScriptedModel, parse_script

TURNS = 3
TRIALS = [
    [
        *({"calls": [{"name": "step", "input": {"trial": trial, "turn": turn}}]} for turn in range(TURNS)),
        {"text": f"trial {trial}"},
    ]
    for trial in range(4)
]


async def converse(client: anthropic.AsyncAnthropic) -> int:
    """Run one conversation to its end; the trial it belonged to, the same in every turn."""
    messages: list[Any] = [{"role": "user", "content": "count"}]
    trials: set[int] = set()
    for turn in range(TURNS):
        answer = await client.messages.create(model="m", max_tokens=9, messages=messages)
        call = answer.content[0]
        assert isinstance(call, anthropic.types.ToolUseBlock)
        step: Any = call.input
        assert step["turn"] == turn
        trials.add(step["trial"])
        await asyncio.sleep(0.001 * (step["trial"] % 3))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
        messages += [
            {"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
            {"role": "user", "content": [result]},
        ]
    answer = await client.messages.create(model="m", max_tokens=9, messages=messages)
    (trial,) = trials
    assert answer.content[0].text == f"trial {trial}"  # type: ignore[union-attr]
    return trial


async def test_every_parallel_conversation_keeps_its_own_trial() -> None:
    script = {"version": 1, "latency_ms": 1, "agent": [{"query": "count", "trials": TRIALS}]}
    with ScriptedModel(parse_script(script)) as model:
        client = anthropic.AsyncAnthropic(base_url=model.base_url, api_key="any")
        trials = await asyncio.gather(*(converse(client) for _ in range(12)))
        assert sorted(trials) == sorted([0, 1, 2, 3] * 3)
        assert len(model.requests) == 12 * (TURNS + 1)
