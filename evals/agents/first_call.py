"""Tool-call mode: ask, measure the first call, end the session. Nothing runs."""

from __future__ import annotations

from evals.agents import AgentError
from evals.agents.claude_code import ClaudeCode
from evals.agents.folding import Folder, check_ending
from evals.agents.hooks import DenyAll
from evals.conversation import Conversation
from evals.items import Item
from evals.scoring.tool_call import TOOL_SEARCH, measured_call

# ToolSearch may come first; the call is then in the second turn.
_MAX_TURNS = 2


async def first_call(agent: ClaudeCode, item: Item) -> Conversation:
    """The conversation up to the first call that is not ToolSearch, or to an answer without one.

    The call is read off the assistant's message, since the hook does not see every call (see `DenyAll`).

    Raises AgentError when it could not be measured, or when any tool ran in spite of the hook.
    """
    deny = DenyAll()
    async with agent.session(item, hooks=deny.matchers(), permission_mode="dontAsk", max_turns=_MAX_TURNS) as client:
        folder = Folder(item.query, tuple(server.name for server in agent.target.servers), deny.denied)
        await client.query(item.query)
        interrupted = False
        async for message in client.receive_response():
            for call in folder.add(message):
                # Answered by Claude Code itself, unseen by the hook: without this the model would be asked again.
                if call.name != TOOL_SEARCH and not interrupted and call.id not in deny.denied:
                    interrupted = True
                    await client.interrupt()
        conversation = folder.conversation()
        ran = [call.tool for call in conversation.calls if call.executed and call.name != TOOL_SEARCH]
        if ran or folder.subagents:
            what = ", ".join(ran) or "a subagent"
            raise AgentError(f"{what} ran although every call is denied", conversation)
        if measured_call(conversation.calls) is not None:
            return conversation
        check_ending(folder, conversation)
        return conversation
