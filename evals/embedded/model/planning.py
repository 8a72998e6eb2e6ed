"""Which conversation, fault and turn a request gets."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from evals.embedded.model.conversations import Asked
from evals.embedded.model.faults import FaultQueue
from evals.embedded.model.messages import Understood
from evals.embedded.model.replies import Reply, agent_reply, judge_reply
from evals.embedded.model.script import Fault, Script


class Numbers:
    """Counts the conversations of an entry. A number whose client left unanswered is given out again."""

    def __init__(self) -> None:
        self._next = 0
        self._returned: list[int] = []

    def peek(self) -> int:
        """The number `take` would give."""
        return self._returned[0] if self._returned else self._next

    def take(self) -> int:
        """The lowest number not in use."""
        if self._returned:
            return heapq.heappop(self._returned)
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """Return a number that was not used after all."""
        heapq.heappush(self._returned, number)


@dataclass(frozen=True, slots=True)
class Plan:
    """A reply, what delays it, and the number to give back when the client does not wait for it."""

    reply: Reply
    latency_ms: int
    chunk_delay_ms: int
    conversation: int
    past_end: bool = False
    numbers: Numbers | None = None


class Planner:
    """The counters of all entries. Lives on the server's event loop."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._conversations: dict[int, Numbers] = {}
        self._judgements: dict[tuple[int, str], Numbers] = {}
        self._agent_faults = [FaultQueue(entry.faults) for entry in script.agent]
        self._judge_faults = [FaultQueue(entry.faults) for entry in script.judge]

    def take_fault(self, asked: Asked) -> Fault | None:
        """The fault this request meets; it is used up by that."""
        if asked.kind == "default":
            return None
        queues = self._judge_faults if asked.kind == "judge" else self._agent_faults
        return queues[asked.index].take(asked.turn)

    def plan(self, asked: Asked, request: Understood, reply_id: str, *, faulted: bool) -> Plan:
        """The answer to a matched request. A ``faulted`` one does not use up a conversation."""
        if asked.kind == "judge":
            return self._plan_judge(asked, request, reply_id, faulted=faulted)
        numbers: Numbers | None = None
        conversation = asked.conversation
        if asked.turn == 0:
            numbers = self._conversations.setdefault(asked.index, Numbers())
            conversation = numbers.peek() if faulted else numbers.take()
        if conversation is None:
            # An answer without calls or thinking carries no mark to read the number from.
            conversation = 0
        entry = None if asked.kind == "default" else self._script.agent[asked.index]
        default = self._script.default
        turns = entry.turns_of(conversation) if entry is not None else default.turns if default else ()
        reply = agent_reply(
            turns,
            entry=asked.index,
            conversation=conversation,
            turn=asked.turn,
            tools=request.tools,
            model=request.model,
            size=request.size,
            reply_id=reply_id,
        )
        past_end = asked.turn >= len(turns)
        own_latency = None if past_end else turns[asked.turn].latency_ms
        shared = entry.latency_ms if entry is not None else None
        return Plan(
            reply,
            latency_ms=(own_latency if own_latency is not None else shared) or 0,
            chunk_delay_ms=(entry.chunk_delay_ms if entry is not None else None) or 0,
            conversation=conversation,
            past_end=past_end,
            numbers=None if faulted else numbers,
        )

    def _plan_judge(self, asked: Asked, request: Understood, reply_id: str, *, faulted: bool) -> Plan:
        entry = self._script.judge[asked.index]
        # Models of a panel that share an entry each hear its answers from the first on.
        numbers = self._judgements.setdefault((asked.index, request.model), Numbers())
        number = numbers.peek() if faulted else numbers.take()
        answer = entry.answer(number)
        reply = judge_reply(
            answer,
            entry=asked.index,
            number=number,
            tool=request.answer_tool,
            model=request.model,
            size=request.size,
            reply_id=reply_id,
        )
        latency = answer.latency_ms if answer.latency_ms is not None else entry.latency_ms
        return Plan(
            reply,
            latency_ms=latency or 0,
            chunk_delay_ms=entry.chunk_delay_ms or 0,
            conversation=number,
            numbers=None if faulted else numbers,
        )
