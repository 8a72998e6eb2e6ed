"""Warm sessions for tool-call trials: one Claude Code serves many trials, rewound to empty after each.

A tool-call trial executes nothing, so a session whose only message is taken back is as good as a fresh one: the next
request to the model is byte-identical (tests/real/test_warm_sessions.py compares them), for a tenth of the processor
time. A session that did anything else, or whose rewind is not confirmed, is not used again.

Each session is opened and closed by a task of its own, as its client demands; trials borrow it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import ClaudeSDKClient

from evals.agents import AgentError
from evals.agents.first_call import MAX_TURNS, FirstCall, ask_for_first_call
from evals.agents.hooks import DenyAll
from evals.agents.prompting import REWINDABLE_VERSIONS, rewind
from evals.conversation import Conversation
from evals.items import Item
from evals.tool_listing import start_slots
from evals.versions import claude_code_version

if TYPE_CHECKING:
    from evals.agents.claude_code import ClaudeCode

# Its memory grows by about 0.3 MB a trial.
TRIALS_PER_SESSION = 100

_Key = tuple[tuple[str, ...] | None, bool]


def can_be_warm(agent: ClaudeCode) -> bool:
    """Whether rewinding is known to be exact: the bundled Claude Code, in a version it was measured on."""
    return agent.cli_path is None and claude_code_version() in REWINDABLE_VERSIONS


class WarmSessions:
    """A pool of sessions for tool-call trials of one agent.

    A trial takes the first session that is free, an idle one or a new one; no more are started than there are trials
    waiting, nor more at a time than there are processors. The pool belongs to the event loop it is first used in; what
    is idle when that loop ends is closed by its tasks.
    """

    def __init__(self, agent: ClaudeCode) -> None:
        self._agent = agent
        self._slots = start_slots()
        self._idle: dict[_Key, list[_Session]] = defaultdict(list)
        self._waiting: dict[_Key, deque[asyncio.Future[_Session]]] = defaultdict(deque)
        # Never fewer sessions are being started than trials wait, so that none waits for ever.
        self._starting: Counter[_Key] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self.started = 0
        """Sessions started so far."""

    async def close(self) -> None:
        """End every session and wait for it; the end of the event loop does the same."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def first_call(self, item: Item) -> Conversation:
        """As `evals.agents.first_call.first_call`, in a rewound session where there is one."""
        key: _Key = (item.metadata.tools, bool(item.metadata.mcp_tools_only))
        session = await self._borrow(key, item)
        try:
            conversation = await session.ask(item)
        except AgentError:
            raise  # the session ends itself
        except BaseException:
            session.end()
            raise
        if session.reusable:
            self._offer(key, session)
        else:
            session.end()
        return conversation

    async def _borrow(self, key: _Key, item: Item) -> _Session:
        if self._idle[key]:
            return self._idle[key].pop()
        offer: asyncio.Future[_Session] = asyncio.get_running_loop().create_future()
        self._waiting[key].append(offer)
        if self._starting[key] < len(self._waiting[key]):
            self._starting[key] += 1
            _Session(self, key, item)
        try:
            return await offer
        except asyncio.CancelledError:
            if offer in self._waiting[key]:
                self._waiting[key].remove(offer)
            elif not offer.cancelled() and offer.exception() is None:
                self._offer(key, offer.result())
            raise

    def _offer(self, key: _Key, session: _Session) -> None:
        while self._waiting[key]:
            offer = self._waiting[key].popleft()
            if not offer.done():
                offer.set_result(session)
                return
        self._idle[key].append(session)

    def _failed(self, key: _Key, error: AgentError) -> None:
        while self._waiting[key]:
            offer = self._waiting[key].popleft()
            if not offer.done():
                offer.set_exception(error)
                return

    @asynccontextmanager
    async def _open(self, session: _Session, key: _Key, item: Item, deny: DenyAll) -> AsyncGenerator[Any, None]:
        """The session's client, once there is a slot to start it; None when nobody waits for it any more.

        A failure before it is open goes to a trial that waits.
        """
        async with AsyncExitStack() as stack:
            try:
                async with self._slots:
                    if not self._waiting[key]:
                        yield None
                        return
                    client = await stack.enter_async_context(
                        self._agent.session(item, hooks=deny.hooks(), permission_mode="dontAsk", max_turns=MAX_TURNS)
                    )
                    self.started += 1
            except AgentError as error:
                self._failed(key, error)
                yield None
                return
            finally:
                self._starting[key] -= 1
            self._offer(key, session)
            yield client


class _Session:
    """A session and the task that owns it."""

    def __init__(self, pool: WarmSessions, key: _Key, first: Item) -> None:
        self._pool = pool
        self._asked: asyncio.Queue[tuple[Item, asyncio.Future[Conversation]]] = asyncio.Queue()
        self._trials = 0
        self._spent = 0.0  # US dollars
        self.reusable = False
        self._task = asyncio.create_task(self._serve(key, first), name="warm-session")
        pool._tasks.add(self._task)
        self._task.add_done_callback(pool._tasks.discard)

    async def ask(self, item: Item) -> Conversation:
        """One trial's conversation. Raises AgentError when it could not be measured."""
        answer: asyncio.Future[Conversation] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((item, answer))
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        cause = None if self._task.cancelled() else self._task.exception()
        if isinstance(cause, AgentError):
            raise cause
        raise AgentError(f"the session ended: {cause or 'cancelled'}")

    def end(self) -> None:
        """Let the owner close the session; a trial that was cut off is not waited for."""
        self.reusable = False
        self._task.cancel()

    async def _serve(self, key: _Key, first: Item) -> None:
        deny = DenyAll()
        async with self._pool._open(self, key, first, deny) as client:
            while client is not None:
                item, answer = await self._asked.get()
                try:
                    measured = await ask_for_first_call(self._pool._agent, client, item, deny)
                except AgentError as error:
                    self.reusable = False
                    answer.set_exception(error)
                    return
                self._trials += 1
                self.reusable = await self._rewound(client, measured)
                if not answer.done():
                    answer.set_result(self._own_cost(measured.conversation))

    def _own_cost(self, conversation: Conversation) -> Conversation:
        """Claude Code reports tokens of the query, but the cost of the session so far."""
        if conversation.cost_usd is None:
            return conversation
        before, self._spent = self._spent, conversation.cost_usd
        return conversation.model_copy(update={"cost_usd": max(0.0, conversation.cost_usd - before)})

    async def _rewound(self, client: ClaudeSDKClient, measured: FirstCall) -> bool:
        if not measured.clean or self._trials >= TRIALS_PER_SESSION:
            return False
        with suppress(Exception):
            return await rewind(client, measured.query_id)
        return False
