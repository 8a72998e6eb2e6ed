"""An MCP server with the results and the manners that are seen in the wild. Run with ``stdio``, ``sse`` or ``http``.

Its tools come on pages of three. `die` ends the process in the middle of a call, `last_error` just after one was
answered.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from typing import Any

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

PAGE = 3
PIXEL = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()
TEXT = types.TextContent(type="text", text="plain")


def _results() -> dict[str, types.CallToolResult]:
    image = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    note = types.TextResourceContents(uri="memo://note", mime_type="text/plain", text="remember")
    blob = types.BlobResourceContents(uri="memo://zip", mime_type="application/zip", blob="AAAA")
    link = types.ResourceLink(
        type="resource_link", name="report", uri="memo://report", mime_type="text/csv", description="Sales"
    )
    return {
        "text": types.CallToolResult(content=[TEXT]),
        "image": types.CallToolResult(content=[image, TEXT]),
        "tiff": types.CallToolResult(content=[types.ImageContent(type="image", data="AAAA", mime_type="image/tiff")]),
        "audio": types.CallToolResult(content=[types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav")]),
        "resource": types.CallToolResult(content=[types.EmbeddedResource(type="resource", resource=note)]),
        "blob": types.CallToolResult(content=[types.EmbeddedResource(type="resource", resource=blob)]),
        "link": types.CallToolResult(content=[link]),
        "structured": types.CallToolResult(content=[], structured_content={"total": 3}),
        "nothing": types.CallToolResult(content=[]),
        "blank": types.CallToolResult(content=[types.TextContent(type="text", text="  ")]),
        "failing": types.CallToolResult(content=[TEXT, image], is_error=True),
        "dotted.name/x": types.CallToolResult(content=[types.TextContent(type="text", text="dotted")]),
    }


RESULTS = _results()
NAMES = [*RESULTS, "protocol_error", "sleep", "die", "who", "echo", "last_error", "block", "large"]


async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor else 0
    tools = [
        types.Tool(name=name, description=f"Gives {name}.", input_schema={"type": "object"})
        for name in NAMES[start : start + PAGE]
    ]
    end = start + PAGE
    return types.ListToolsResult(tools=tools, next_cursor=str(end) if end < len(NAMES) else None)


async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name in RESULTS:
        return RESULTS[params.name]
    arguments = params.arguments or {}
    if params.name == "sleep":
        await asyncio.sleep(float(arguments.get("seconds", 0)))
        return RESULTS["text"]
    if params.name == "die":
        print("out of memory, giving up", file=sys.stderr, flush=True)
        os._exit(3)
    if params.name == "last_error":
        # It answers first: the client sees an error result of a live server, and nothing of the end.
        asyncio.get_running_loop().call_later(0.3, os._exit, 3)
        return RESULTS["failing"]
    if params.name == "block":
        time.sleep(float(arguments.get("seconds", 0)))  # noqa: ASYNC251  the whole server waits
        return RESULTS["text"]
    if params.name == "who":
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(os.getpid()))])
    if params.name == "large":
        return types.CallToolResult(content=[types.TextContent(type="text", text="row " * 125_000)])
    if params.name == "echo":
        text = f"{os.environ.get('ODD', '')} {' '.join(sys.argv[2:])}".strip()
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
    raise ValueError("this one only fails")


def build() -> Server[Any]:
    return Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def sse_app() -> Starlette:
    """The older transport, which the SDK's low-level server does not wrap."""
    server, transport = build(), SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", app=transport.handle_post_message)])


def http_app() -> Starlette:
    return build().streamable_http_app()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        asyncio.run(serve_stdio())
    else:
        app = sse_app() if sys.argv[1] == "sse" else http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
