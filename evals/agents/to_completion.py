"""Agent mode: the agent works until it is done, tools execute."""

from __future__ import annotations

import re

from evals.agents import AgentError, partial_conversation
from evals.agents.claude_code import ClaudeCode
from evals.agents.folding import Folder, check_ending
from evals.agents.hooks import CallClock, FailTools
from evals.agents.prompting import send_query
from evals.conversation import Conversation
from evals.items import DEFAULT_MAX_TURNS, Item

# What Claude Code 2.1 answers a call with whose server is gone; it starts the server again for the next one.
_ENDED = re.compile(r"(MCP error -32000: )?Connection closed\.?")


async def to_completion(agent: ClaudeCode, item: Item) -> Conversation:
    """The whole conversation about an item, with a fresh Claude Code and fresh servers.

    Running into the limit of turns is an ending like another: what was done until then is judged.

    Raises AgentError on any other unsuccessful end.
    """
    metadata = item.metadata
    fail = FailTools(
        metadata.fail_tools or (), {server.name: server.config.fail_message for server in agent.target.under_test}
    )
    clock = CallClock()
    async with agent.session(
        item,
        hooks={**fail.hooks(), **clock.hooks()},
        permission_mode="bypassPermissions",
        max_turns=metadata.max_turns or DEFAULT_MAX_TURNS,
    ) as client:
        folder = Folder(item.query, tuple(server.name for server in agent.target.servers), fail.denied, clock.ran)
        partial_conversation(folder.conversation)
        await send_query(client, item.query)
        async for message in client.receive_response():
            folder.add(message)
        conversation = folder.conversation()
        check_ending(folder, conversation)
        # A server that ended under a call gives the model an error like any other; no expectedErrors stand for that.
        for call in conversation.calls:
            if call.server is not None and call.is_error and _ENDED.fullmatch((call.result or "").strip()):
                raise AgentError(f"the server {call.server!r} ended during the call of {call.tool}", conversation)
        if gone := await agent.servers_gone(client, item):
            raise AgentError(gone, conversation)
        return conversation
