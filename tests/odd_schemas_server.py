"""An MCP server whose tools are defined in the odd ways that are seen in the wild. Run it for stdio."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NAMED = {"a": {"type": "string"}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
LONG_DESCRIPTION = "Waits. " * 600
# tool -> its input schema; every one has "type": "object", which the protocol demands
SCHEMAS: dict[str, dict[str, Any]] = {
    "plain": {"properties": NAMED},
    "empty": {},
    "described": {"properties": NAMED},
    "dotted_key": {"properties": {"a.b-c_d": {"type": "string"}}},
    "nested_key": {"properties": {"a": {"type": "object", "properties": {"x y": {"type": "string"}}}}},
    "odd_pattern": {"properties": {"a": {"type": "string", "pattern": "("}}},
    "declared_draft": {"$schema": DRAFT_7, "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}},
    "n" * 118: {},  # with the prefix of its server 128 characters
    "top_any": {"properties": NAMED, "anyOf": [{"required": ["a"]}]},
    "top_one": {"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]},
    "top_all": {"allOf": [{"properties": NAMED}]},
    "top_any_key": {"properties": {"$a": {"type": "string"}}, "anyOf": [{"required": ["$a"]}]},
    "dollar_key": {"properties": {"$filter": {"type": "string"}}},
    "bracket_key": {"properties": {"ids[]": {"type": "string"}}},
    "long_key": {"properties": {"a" * 65: {"type": "string"}}},
    "empty_key": {"properties": {"": {"type": "string"}}},
    "newline_key": {"properties": {"a\n": {"type": "string"}}},
    "no_type": {"properties": {"a": {"type": "strin"}}},
    "draft_4": {"properties": {"a": {"type": "number", "exclusiveMinimum": True}}},
    "draft_7_items": {"properties": {"a": {"type": "array", "items": [{"type": "string"}]}}},
    "required_text": {"properties": NAMED, "required": "a"},
    "required_twice": {"properties": NAMED, "required": ["a", "a"]},
    "null_property": {"properties": {"a": None}},
    "odd_definition": {"properties": {}, "$defs": {"x": {"type": "foo"}}},
    "all_no_list": {"allOf": {"properties": NAMED}},
    "top_any_odd": {"properties": {"a": {"type": "strin"}}, "anyOf": [{"required": ["a"]}]},
    "n" * 119: {},
}


async def list_tools(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=LONG_DESCRIPTION if name == "described" else f"Takes {name[:20]}.",
                input_schema={"type": "object", **schema},
            )
            for name, schema in SCHEMAS.items()
        ]
    )


async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.name)])


async def serve() -> None:
    server = Server("odd", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
