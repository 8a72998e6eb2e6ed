"""Sending a query so that it can be taken back, and taking it back."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import ClaudeSDKClient

# Rewinding is not in the SDK's public surface: these are the versions of Claude Code it was measured on, where the
# request after a rewind is byte-identical to a fresh session's. Another version gets fresh sessions.
REWINDABLE_VERSIONS = frozenset({"2.1.332"})
_TIMEOUT = 10.0  # seconds a rewind may take; measured: 3 to 16 ms


async def send_query(client: ClaudeSDKClient, query: str) -> str:
    """Send a query as a user would type it; the id it can be rewound by."""
    identifier = str(uuid.uuid4())
    message: dict[str, Any] = {
        "type": "user",
        "message": {"role": "user", "content": query},
        "parent_tool_use_id": None,
        "uuid": identifier,
    }
    if query.lstrip().startswith("/"):
        # What looks like a command of Claude Code's own is a question like any other.
        message["client_composed"] = True

    async def messages() -> AsyncIterator[dict[str, Any]]:
        yield message

    await client.query(messages())
    return identifier


async def rewind(client: ClaudeSDKClient, identifier: str) -> bool:
    """Take a query and all that followed it out of the session; False when Claude Code does not confirm it."""
    control = getattr(client, "_query", None)
    if control is None:
        return False
    request = {"subtype": "rewind_conversation", "target_message_uuid": identifier}
    answer = await control._send_control_request(request, timeout=_TIMEOUT)
    return bool(answer.get("rewound"))
