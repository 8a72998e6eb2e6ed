"""The servers of one question, connected: their tools as the Messages API takes them, and calls of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from evals.agents import AgentError
from evals.connections import open_in
from evals.errors import TwogateError
from evals.target import Launch
from evals.tool_definitions import MAX_NAME, fit_name

MAX_IMAGE = 5 * 1024 * 1024
"""Base64 characters of the largest image the Messages API takes."""
_PROBE = 10.0  # seconds a server may take to show that it still lives


@dataclass(frozen=True)
class Result:
    """A call's result: blocks for the Messages API, and the same as text, with what is no text described."""

    blocks: tuple[dict[str, Any], ...]
    text: str
    is_error: bool


@dataclass(frozen=True)
class _Tool:
    """A tool, and the connection to its server."""

    launch: Launch
    client: Any
    listed: Any


class ServerTools:
    """Every tool of the connected servers, under names that the Messages API takes and that are unique."""

    def __init__(self, tools: Sequence[_Tool]) -> None:
        plain = [_plain_name(tool.listed.name) for tool in tools]
        self._tools: dict[str, _Tool] = {}
        for tool, name in zip(tools, plain, strict=True):
            if plain.count(name) > 1:
                name = f"mcp__{_plain_name(tool.launch.server)}__{name}"[:MAX_NAME]
            number = 1
            unique = name
            while unique in self._tools:
                number += 1
                unique = f"{name[: MAX_NAME - 4]}_{number}"
            self._tools[unique] = tool
        self._used: dict[Launch, Any] = {}

    def definitions(self) -> list[dict[str, Any]]:
        """For the `tools` of a request."""
        return [
            {
                "name": name,
                "description": tool.listed.description or "",
                "input_schema": {"type": "object", **(tool.listed.input_schema or {})},
            }
            for name, tool in self._tools.items()
        ]

    def full_name(self, name: str) -> str:
        """`mcp__<server>__<tool>` for a name a request gave out; the name itself where no tool has it."""
        tool = self._tools.get(name)
        return f"mcp__{tool.launch.server}__{tool.listed.name}" if tool is not None else name

    async def call(self, name: str, arguments: dict[str, Any], tool_timeout: float) -> Result:
        """Call a tool. What a live server refuses is an error result; only a dead server raises AgentError.

        tool_timeout: seconds, where the server's launch does not set its own.
        """
        from mcp.shared.exceptions import MCPError
        from mcp.types import REQUEST_TIMEOUT

        tool = self._tools.get(name)
        if tool is None:
            return _error(f"There is no tool {name!r}. The tools are: {', '.join(self._tools)}.")
        self._used[tool.launch] = tool.client
        limit = tool.launch.tool_timeout or tool_timeout
        try:
            async with asyncio.timeout(limit + 5):
                result = await tool.client.call_tool(tool.listed.name, arguments, read_timeout_seconds=limit)
        except TimeoutError:
            return _error(f"{tool.listed.name} did not answer within {limit:g} s.")
        except Exception as error:
            if isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT:
                return _error(f"{tool.listed.name} did not answer within {limit:g} s.")
            if not await _alive(tool.client):
                raise AgentError(
                    f"the server {tool.launch.server!r} was gone during the call of {tool.listed.name}: "
                    f"{one_line(error)}"
                ) from error
            return _error(one_line(error) if isinstance(error, MCPError) else f"{type(error).__name__}: {error}")
        return as_result(result)

    async def check_used(self) -> None:
        """Raise AgentError when a server that was called is gone. Takes 10 s at most.

        A server that only does not answer in that time lives: it may still be busy with a call that took too long.
        """
        used = list(self._used.items())
        answers = await asyncio.gather(*(_probe(client) for _, client in used))
        gone = [
            f"the server {launch.server!r} was gone when the conversation ended: {answer}"
            for (launch, _), answer in zip(used, answers, strict=True)
            if answer is not None
        ]
        if gone:
            raise AgentError("; ".join(gone))


@asynccontextmanager
async def connected(launches: Iterable[Launch]) -> AsyncGenerator[ServerTools, None]:
    """Connect to every server and list all pages of its tools, for the length of the block.

    Raises AgentError when a server does not come up within its connect_timeout, or lists no tools.
    """
    tools: list[_Tool] = []
    async with AsyncExitStack() as stack:
        for launch in launches:
            try:
                client, listed = await open_in(stack, launch)
            except TwogateError as error:
                raise AgentError("; ".join(error.lines)) from error
            tools += [_Tool(launch, client, one) for one in listed]
        if not tools:
            raise AgentError("the target lists no tools")
        yield ServerTools(tools)


async def _probe(client: Any) -> str | None:
    """Why a server can no longer be had; None when it lives, even if it refuses the request or takes too long."""
    from mcp.shared.exceptions import MCPError
    from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST

    try:
        async with asyncio.timeout(_PROBE):
            await client.list_tools(cache_mode="bypass")
    except TimeoutError:
        return None
    except MCPError as error:
        # The SDK's own words for an HTTP answer that is none of the protocol's: from a gateway before a dead server,
        # or from one that was started anew and does not know the session.
        lost = error.code == CONNECTION_CLOSED or (error.code, error.message) in (
            (INVALID_REQUEST, "Session terminated"),
            (INTERNAL_ERROR, "Server returned an error response"),
        )
        return one_line(error) if lost else None
    except Exception as error:
        return one_line(error)
    return None


async def _alive(client: Any) -> bool:
    """Whether the server still answers. Listing tools is the one request that every server under test takes."""
    try:
        async with asyncio.timeout(_PROBE):
            await client.list_tools(cache_mode="bypass")
    except Exception:
        return False
    return True


def as_result(result: Any) -> Result:
    """An `mcp` CallToolResult for the Messages API, by the SDK's MCP helpers where they know the content.

    An error result is text alone: the API takes nothing else in one.
    """
    blocks: list[dict[str, Any]] = []
    texts: list[str] = []
    for content in result.content:
        block, text = _block(content)
        texts.append(text)
        blocks.append(block if not result.is_error else {"type": "text", "text": text})
    if not result.content and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
        blocks.append({"type": "text", "text": texts[0]})
    # The API refuses an empty text block.
    blocks = [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
    return Result(tuple(blocks), "\n".join(texts), bool(result.is_error))


def _block(content: Any) -> tuple[dict[str, Any], str]:
    """A content block for the API, and as text. What the API does not take is described to the model instead."""
    from anthropic.lib.tools.mcp import UnsupportedMCPValueError, mcp_content

    if content.type == "text":
        return {"type": "text", "text": content.text}, content.text
    description = _description(content)
    if _image_size(content) > MAX_IMAGE:
        description = description.replace("]", f", over the {MAX_IMAGE} that can be shown]")
        return {"type": "text", "text": description}, description
    try:
        block = dict(mcp_content(content))
    except (UnsupportedMCPValueError, ValueError):
        return {"type": "text", "text": description}, description
    text = getattr(getattr(content, "resource", None), "text", None)
    if block.get("type") == "document" and text is not None:
        # As plain text it stands under its address; a document block would lose that.
        shown = f"{content.resource.uri}\n{text}"
        return {"type": "text", "text": shown}, shown
    return block, description


def _description(content: Any) -> str:
    if content.type == "resource_link":
        about = ", ".join(filter(None, (content.name, content.mime_type, content.description)))
        return f"[resource {content.uri}: {about}]"
    if content.type == "resource":
        size = len(getattr(content.resource, "blob", "") or "")
        return f"[resource {content.resource.uri}: {content.resource.mime_type or 'binary'}, {size} base64 characters]"
    if content.type in ("image", "audio"):
        return f"[{content.mime_type}, {len(content.data)} base64 characters]"
    return f"[content of the type {content.type}]"


def _image_size(content: Any) -> int:
    if content.type == "image":
        return len(content.data)
    resource = getattr(content, "resource", None)
    is_image = str(getattr(resource, "mime_type", "") or "").startswith("image/")
    return len(getattr(resource, "blob", "") or "") if is_image else 0


def _error(text: str) -> Result:
    return Result(({"type": "text", "text": text},), text, is_error=True)


def _plain_name(name: str) -> str:
    return fit_name(name)[:MAX_NAME] or "tool"


def one_line(error: BaseException) -> str:
    """The innermost error of an exception group, in one line."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__
