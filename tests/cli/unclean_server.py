"""An MCP server whose standard output is not clean UTF-8, written without the SDK, which keeps tools off that stream.

Its tools: `after` answers, and Latin-1 follows when the connection is closed; `instead` writes Latin-1 and no answer;
`gone` does so and ends; `half` ends inside a character of its answer.
"""

from __future__ import annotations

import json
import sys
from typing import Any

LATIN = "prêt\n".encode("latin-1")


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for what is refused as unknown."""
    if request["method"] == "initialize":
        return {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "unclean", "version": "1"},
        }
    if request["method"] == "tools/list":
        names = ("after", "instead", "gone", "half")
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    if request["method"] == "tools/call":
        return {"content": [{"type": "text", "text": "le café est prêt"}]}
    return None


def main() -> None:
    out = sys.stdout.buffer
    last = b""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request)
        said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}}
        whole = json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}, ensure_ascii=False).encode() + b"\n"
        tool = request["params"]["name"] if request["method"] == "tools/call" else ""
        if tool == "half":
            out.write(whole[: whole.index("é".encode()) + 1])
        elif tool in ("instead", "gone"):
            out.write(LATIN)
        else:
            out.write(whole)
        out.flush()
        if tool in ("gone", "half"):
            return
        if tool == "after":
            last = LATIN
    out.write(last)


main()
