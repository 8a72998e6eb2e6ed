"""An MCP server over stdio, of the protocol before 2026, that asks its client for roots as server-filesystem does.

Its one tool answers with those it was offered. Its instructions are long.
"""

from __future__ import annotations

import json
import sys
from typing import Any

INSTRUCTIONS = "Ask for roots. " * 300
TOOLS = [{"name": "roots", "description": "Gives the roots.", "inputSchema": {"type": "object"}}]


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    offered: list[str] = []
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "roots", "version": "1"},
                "instructions": INSTRUCTIONS,
            }
            able = "roots" in message["params"]["capabilities"]
            send({"id": number, "result": result})
        elif method == "notifications/initialized" and able:
            send({"id": "ask", "method": "roots/list"})
        elif number == "ask":
            offered = [root["uri"] for root in message["result"]["roots"]]
        elif method == "tools/list":
            send({"id": number, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            send({"id": number, "result": {"content": [{"type": "text", "text": " ".join(offered)}]}})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    main()
