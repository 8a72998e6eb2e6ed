"""A plain loop over the Messages API: a model with nothing but the target's tools.

The Anthropic SDK's own tool runner is not used: it runs the calls of one turn one after another, gives a tool neither
the id nor the time of its call, and answers the model with an error where the server has died, which must end the
trial as an `error` instead of counting against the model. Its MCP helpers turn results into the API's blocks.

How a conversation can end (`Conversation.stop`), and whose doing that is:

``end_turn``          the model has answered.
``max_turns``         the model asked for yet another call after the last turn it was given.
``max_tokens``        one answer was longer than a request allows, and is cut off.
``refusal``           the model, or the API on its behalf, would not answer.
``context_overflow``  the tools' results outgrew the model's context window (or a request's size). A user of the
                      server would be left without an answer just so: it counts as the model's doing, not an error.

Everything else raises AgentError: a server that does not come up or dies, an API that cannot be had after bounded
retries or refuses the request, and the time limit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evals.agents import AgentError
from evals.agents.server_tools import Result, ServerTools, connected, one_line
from evals.conversation import Conversation, ConversationBuilder, Usage
from evals.settings import ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
from evals.target import Launch

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

DEFAULT_MODEL = "claude-sonnet-5"
DEFAULT_MAX_TURNS = 50
DEFAULT_TIME_LIMIT = 900.0
DEFAULT_TOOL_TIMEOUT = 60.0

DEFAULT_MAX_RETRIES = 5
_MAX_TOKENS = 16_384  # of one answer; above about 21,000 the SDK asks for streaming
_MAX_PAUSES = 10
_OVERFLOW = re.compile(r"prompt is too long|too many tokens|context (?:window|length|limit)", re.IGNORECASE)


@dataclass(frozen=True)
class MessagesAgent:
    """How questions are put to a model. Each question has its own connections to the servers, and its own client."""

    launches: tuple[Launch, ...]
    system: str
    """The instructions. The question stands alone in the user's message."""
    model: str = DEFAULT_MODEL
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL for another endpoint than the API's own."""
    max_turns: int = DEFAULT_MAX_TURNS
    """Answers of the model, those that make calls too."""
    time_limit: float = DEFAULT_TIME_LIMIT
    """Seconds one question may take."""
    tool_timeout: float = DEFAULT_TOOL_TIMEOUT
    """Seconds one call of a tool may take."""
    max_retries: int = DEFAULT_MAX_RETRIES
    """Times a request is sent again after 408, 409, 429, 5xx or a broken connection, waiting as Retry-After says, else
    longer each time (8 s at most)."""

    async def answer(self, query: str) -> Conversation:
        """Put a question and run its tool calls until the model has answered or cannot.

        Raises AgentError, with the conversation until then, when the question could not be measured.
        """
        talk = _Talk(self, query)
        try:
            async with asyncio.timeout(self.time_limit), connected(self.launches) as tools, self._client() as client:
                await talk.hold(client, tools)
        except TimeoutError:
            # A conversation that is over may still be looking whether its servers live, or closing them: that is no
            # failure of the trial.
            talk.stop = talk.stop or talk.reached
            if talk.stop is None:
                talk.failure = talk.failure or f"did not finish within {self.time_limit:g} s (--trial-timeout)"
        except AgentError as error:
            talk.failure = talk.failure or error.cause
        except Exception as error:
            if talk.stop is None:
                talk.failure = talk.failure or f"{talk.what_broke()}: {one_line(error)}"
        conversation = talk.conversation()
        if talk.failure is not None:
            raise AgentError(talk.failure, conversation)
        return conversation

    def _client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(
            api_key=self.credentials.get(ANTHROPIC_API_KEY),
            base_url=self.credentials.get(ANTHROPIC_BASE_URL),
            max_retries=self.max_retries,
            timeout=self.time_limit,
        )


class _Talk:
    """One question while it is answered. `failure` or `stop` says how it ended."""

    def __init__(self, agent: MessagesAgent, query: str) -> None:
        self._agent = agent
        self._query = query
        servers = tuple(launch.server for launch in agent.launches)
        self._builder = ConversationBuilder(query, servers, datetime.now(UTC))
        self._usage: Usage | None = None
        self._cost: float | None = None
        self._model: str | None = None
        self.reached: str | None = None
        """How the model ended, before its servers were looked at once more."""
        self.stop: str | None = None
        self.failure: str | None = None

    async def hold(self, client: AsyncAnthropic, tools: ServerTools) -> None:
        """Turn after turn. A failure is noted, not raised: the connections then close as usual."""
        try:
            self.reached = await self._turns(client, tools)
            # A call that was answered just before its server died raised nothing: what followed measures no server.
            # Over HTTP this breaks the block of the connection itself, so the conversation has not ended well yet.
            await tools.check_used()
            self.stop = self.reached
        except AgentError as error:
            self.failure = error.cause

    async def _turns(self, client: AsyncAnthropic, tools: ServerTools) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": self._query}]
        definitions = tools.definitions()
        pauses = 0
        turns = 0
        while True:
            reply = await self._ask(client, messages, definitions)
            if reply is None:
                return "context_overflow"
            turns += 1
            calls = self._note(reply, tools)
            # As it came: thinking blocks are signed.
            messages.append({"role": "assistant", "content": reply.content})
            if reply.stop_reason == "pause_turn" and pauses < _MAX_PAUSES:
                pauses += 1
                continue
            if reply.stop_reason == "model_context_window_exceeded":
                return "context_overflow"
            if reply.stop_reason != "tool_use" or not calls:
                return str(reply.stop_reason or "end_turn")
            if turns >= self._agent.max_turns:
                return "max_turns"
            results = await self._run(tools, calls)
            messages.append(
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": call.id,
                            "content": list(result.blocks),
                            "is_error": result.is_error,
                        }
                        for call, result in zip(calls, results, strict=True)
                    ],
                }
            )

    async def _ask(
        self, client: AsyncAnthropic, messages: list[dict[str, Any]], definitions: list[dict[str, Any]]
    ) -> Message | None:
        """One answer of the model; None when the conversation is too long for it."""
        import anthropic

        create: Any = client.messages.create  # its overloads do not take messages as plain mappings
        try:
            reply = await create(
                model=self._agent.model,
                max_tokens=_MAX_TOKENS,
                system=self._agent.system,
                messages=messages,
                tools=definitions,
                # Each turn sends the whole conversation again: let the API read what it has seen from its cache.
                cache_control={"type": "ephemeral"},
            )
        except anthropic.APIStatusError as error:
            said = _said(error)
            if error.status_code == 413 or (error.status_code == 400 and _OVERFLOW.search(said)):
                return None
            retried = error.status_code in (408, 409, 429) or error.status_code >= 500
            tries = f" after {self._agent.max_retries + 1} tries" if retried else ""
            which = _named_tool(said, definitions)
            raise AgentError(f"the model's API answered {error.status_code}{tries}: {said}{which}") from error
        except anthropic.APIConnectionError as error:
            reason = one_line(error.__cause__ or error)
            tries = f"after {self._agent.max_retries + 1} tries"
            raise AgentError(f"the model's API cannot be reached {tries}: {reason}") from error
        except (anthropic.AnthropicError, ValueError, TypeError) as error:
            raise AgentError(f"the model's API gave an answer that cannot be read: {one_line(error)}") from error
        if not isinstance(reply, anthropic.types.Message) or not isinstance(reply.content, list):
            raise AgentError("the model's API gave an answer that is not a message")
        return reply

    def _note(self, reply: Message, tools: ServerTools) -> list[Any]:
        """Into the conversation; the reply's calls."""
        now = datetime.now(UTC)
        self._model = reply.model
        self._add_usage(reply)
        calls = []
        for block in reply.content:
            if block.type == "text":
                self._builder.add_text(reply.id, block.text, now)
            elif block.type == "thinking":
                self._builder.add_thinking(reply.id, block.thinking, now)
            elif block.type == "tool_use":
                arguments = block.input if isinstance(block.input, dict) else {"": block.input}
                self._builder.add_call(reply.id, block.id, tools.full_name(block.name), arguments, now)
                calls.append(block)
        return calls

    async def _run(self, tools: ServerTools, calls: list[Any]) -> list[Result]:
        """Run a turn's calls at the same time; their results in the order of the calls."""

        async def run(call: Any) -> Result | AgentError:
            try:
                result = await tools.call(call.name, dict(call.input or {}), self._agent.tool_timeout)
            except AgentError as error:
                return error
            self._builder.add_result(call.id, result.text, is_error=result.is_error, at=datetime.now(UTC))
            return result

        results = await asyncio.gather(*(run(call) for call in calls))
        for result in results:
            if isinstance(result, AgentError):
                raise result
        return [result for result in results if isinstance(result, Result)]

    def _add_usage(self, reply: Message) -> None:
        usage, before = reply.usage, self._usage or Usage()
        self._usage = Usage(
            input_tokens=before.input_tokens + (usage.input_tokens or 0),
            output_tokens=before.output_tokens + (usage.output_tokens or 0),
            cache_read_tokens=before.cache_read_tokens + (usage.cache_read_input_tokens or 0),
            cache_write_tokens=before.cache_write_tokens + (usage.cache_creation_input_tokens or 0),
        )
        # The API itself gives no cost; gateways that do say it here. Prices are not guessed.
        cost = (usage.model_extra or {}).get("cost")
        if isinstance(cost, int | float):
            self._cost = (self._cost or 0.0) + float(cost)

    def what_broke(self) -> str:
        """The connection that is gone, and what was being called by it, as far as can be told."""
        servers = " or ".join(repr(launch.server) for launch in self._agent.launches)
        waiting = ", ".join(call.tool for call in self._builder.calls if call.result is None)
        return f"the connection to the server {servers} broke{f' during the call of {waiting}' if waiting else ''}"

    def conversation(self) -> Conversation:
        return self._builder.build(
            ended_at=datetime.now(UTC),
            model=self._model,
            usage=self._usage,
            cost_usd=self._cost,
            stop=self.stop,
        )


def _named_tool(said: str, definitions: list[dict[str, Any]]) -> str:
    """The tool that the API knows by its place in the request alone."""
    place = re.search(r"\btools\.(\d+)\.", said)
    found = int(place[1]) if place else len(definitions)
    return f" (the tool {definitions[found]['name']})" if found < len(definitions) else ""


def _said(error: Any) -> str:
    """The API's own message of an error."""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict) and body["error"].get("message"):
        return " ".join(str(body["error"]["message"]).split())
    return one_line(error)
