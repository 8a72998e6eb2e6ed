"""Agent mode: the agent works until it is done, tools execute."""

from __future__ import annotations

import re

from evals.agents import AgentError, partial_conversation
from evals.agents.claude_code import ClaudeCode
from evals.agents.folding import check_ending
from evals.agents.hooks import CallClock, FailTools
from evals.agents.prompting import send_query
from evals.conversation import Conversation
from evals.items import DEFAULT_MAX_TURNS, Item

# What Claude Code 2.1 answers a call with whose server is gone; it starts or reaches the server again for the next one.
_ENDED = re.compile(r"(MCP error -32000: )?Connection closed\.?|MCP server .{1,200} is not connected.*", re.DOTALL)
# The same of a server behind an address, in the words of the runtime Claude Code is built on.
_UNREACHABLE = re.compile(
    r"(ECONN\w+|\w*Error): (Unable to connect\. Is the computer able to access the url\?"
    r"|The socket connection was closed unexpectedly\..*)",
    re.DOTALL,
)


async def to_completion(agent: ClaudeCode, item: Item) -> Conversation:
    """The whole conversation about an item, with a fresh Claude Code and fresh servers.

    Running into the limit of turns is an ending like another: what was done until then is judged.

    Raises AgentError on any other unsuccessful end.
    """
    fail, clock = FailTools(_failures(agent, item)), CallClock()
    async with agent.session(
        item,
        hooks={**fail.hooks(), **clock.hooks()},
        permission_mode="bypassPermissions",
        max_turns=item.metadata.max_turns or DEFAULT_MAX_TURNS,
    ) as client:
        folder = agent.folder(item, fail.denied, clock.ran)
        partial_conversation(folder.conversation)
        await send_query(client, item.query)
        async for message in client.receive_response():
            folder.add(message)
        conversation = folder.conversation()
        check_ending(folder, conversation)
        _check_calls(agent, conversation, fail)
        if gone := await agent.servers_gone(client, item):
            raise AgentError(gone, conversation)
        return conversation


def _failures(agent: ClaudeCode, item: Item) -> dict[str, str]:
    """What the item's failTools say when they fail, by Claude Code's names of them."""
    messages = {server.name: server.config.fail_message for server in agent.target.under_test}
    listed = agent.tools.of(agent.target, item.metadata.tools)
    return {tool.client_name: messages[tool.server] for tool in listed if tool.name in (item.metadata.fail_tools or ())}


def _check_calls(agent: ClaudeCode, conversation: Conversation, fail: FailTools) -> None:
    """Raise AgentError when a call was not what the trial is about: it ran although it was to fail, or it ended a
    server, which gives the model an error like any other that no expectedErrors stand for.
    """
    remote = {server.name for server in agent.target.servers if server.config.url is not None}
    for call in conversation.calls:
        if call.executed and call.name in fail.tools:
            raise AgentError(f"{call.tool} ran although failTools names it", conversation)
        if call.server is None or not call.is_error or call.denied:
            continue
        said = (call.result or "").strip()
        if _ENDED.fullmatch(said) or (call.server in remote and _UNREACHABLE.fullmatch(said)):
            raise AgentError(f"the server {call.server!r} was gone during the call of {call.tool}", conversation)
