"""An MCP server whose tools answer in the ways a probe must tell apart."""

from __future__ import annotations

import itertools
import os
import time

from mcp.server.mcpserver import Image, MCPServer

app = MCPServer("odd")
_count = itertools.count(1)


@app.tool(structured_output=False)
def same(text: str) -> str:
    return f"Straße {text}"


@app.tool(structured_output=False)
def counted() -> str:
    return f"call {next(_count)}"


@app.tool(structured_output=False)
def leak() -> str:
    return f"the token is {os.environ['ODD_TOKEN']}"


@app.tool(structured_output=False)
def slow(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


@app.tool(structured_output=False)
def end() -> str:
    os._exit(3)


@app.tool(structured_output=False)
def picture() -> Image:
    return Image(data=b"\x89PNG\r\n", format="png")


app.run("stdio")
