"""Tool-call mode: ask, measure the first call, end the turn. Nothing runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from claude_agent_sdk import ClaudeSDKClient

from evals.agents import AgentError
from evals.agents.folding import check_ending
from evals.agents.hooks import DenyAll
from evals.agents.prompting import send_query
from evals.conversation import Conversation
from evals.items import Item
from evals.scoring.tool_call import TOOL_SEARCH, measured_call

if TYPE_CHECKING:
    from evals.agents.claude_code import ClaudeCode

# ToolSearch may come first; the call is then in the second turn.
MAX_TURNS = 2


@dataclass(frozen=True)
class FirstCall:
    """The conversation up to the first call, and what the session needs to be used again."""

    conversation: Conversation
    query_id: str
    clean: bool
    """The turn ended by an answer or by the refusal of all its calls: nothing ran."""


async def first_call(agent: ClaudeCode, item: Item) -> Conversation:
    """The conversation up to the first call that is not ToolSearch, in a session of its own.

    Raises AgentError when it could not be measured, or when any tool ran in spite of the hook.
    """
    deny = DenyAll()
    async with agent.session(item, hooks=deny.hooks(), permission_mode="dontAsk", max_turns=MAX_TURNS) as client:
        return (await ask_for_first_call(agent, client, item, deny)).conversation


async def ask_for_first_call(agent: ClaudeCode, client: ClaudeSDKClient, item: Item, deny: DenyAll) -> FirstCall:
    """Ask in a session whose calls `deny` refuses, and read the first call off the assistant's message.

    The hook does not see every call, and parallel ones in any order, so it is not asked.
    """
    folder = agent.folder(item, deny.denied)
    query_id = await send_query(client, item.query)
    async for message in client.receive_response():
        folder.add(message)
    conversation = folder.conversation()
    ran = [call.tool for call in conversation.calls if call.executed and call.name != TOOL_SEARCH]
    if ran or folder.subagents:
        what = ", ".join(ran) or "a subagent"
        raise AgentError(f"{what} ran although every call is denied", conversation)
    if measured_call(conversation.calls) is None:
        check_ending(folder, conversation)
    clean = (
        folder.api_error is None and conversation.stop == "success" and all(call.denied for call in conversation.calls)
    )
    return FirstCall(conversation, query_id, clean)
