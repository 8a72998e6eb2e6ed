"""What the live target offers to the items: its tools by family, and the names that are technical."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evals.errors import TwogateError
from evals.items import Item
from evals.target import Target
from evals.tool_listing import Tool, ToolList, list_all

Families = tuple[str, ...] | None

# The parameters of those of its own tools that a case is likely to expect, as Claude Code 2.1 sends them to the model;
# of Glob and Grep, which only some builds offer, as its documentation has them. Those not listed may take anything.
_BUILTIN_PARAMETERS: Mapping[str, str] = {
    "Bash": "command timeout description run_in_background dangerouslyDisableSandbox",
    "Edit": "file_path old_string new_string replace_all",
    "Glob": "pattern path",
    "Grep": "pattern path glob output_mode -A -B -C -n -i type head_limit offset multiline",
    "NotebookEdit": "notebook_path cell_id new_source cell_type edit_mode",
    "Read": "file_path offset limit pages allow_large",
    "WebFetch": "url prompt offset",
    "WebSearch": "query allowed_domains blocked_domains",
    "Write": "file_path content",
}


@dataclass(frozen=True)
class Catalog:
    """The tools of every launch the items need, and of the target's plain launch."""

    target: Target
    listed: ToolList
    families: tuple[Families, ...]
    builtins: frozenset[str] = frozenset()
    """Names of the agent's own tools, which an item may expect too."""

    def tools(self, item: Item) -> tuple[Tool, ...]:
        """The tools under test that the item's agent sees."""
        return self.listed.of(self.target, item.metadata.tools)

    def auxiliary(self, item: Item) -> dict[str, str]:
        """The tools of servers not under test that the item's agent sees, with their servers."""
        return self.listed.auxiliary(self.target, item.metadata.tools)

    def all_tools(self) -> tuple[Tool, ...]:
        """Every tool under test, each name once, sorted by server and name."""
        found: dict[tuple[str, str], Tool] = {}
        for families in self.families:
            for tool in self.listed.of(self.target, families):
                found.setdefault((tool.server, tool.name), tool)
        return tuple(found[key] for key in sorted(found))

    def named(self, item: Item, name: str) -> tuple[Tool, ...]:
        """The tools of that name that the item's agent sees; more than one where servers share a name."""
        return tuple(tool for tool in self.tools(item) if tool.name == name)

    def expected(self, item: Item) -> tuple[Tool, ...]:
        """The tools the item expects, as far as they are there: the servers' and, unless left out, the agent's own."""
        found: dict[tuple[str, str], Tool] = {}
        for name in item.expected_tools:
            named = self.named(item, name)
            if not named and name in self.builtins and not item.metadata.mcp_tools_only:
                named = (_builtin(name),)
            found.update({(tool.server, tool.name): tool for tool in named})
        return tuple(found.values())

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers under test."""
        return tuple(server.name for server in self.target.under_test)


def read_catalog(target: Target, items: Iterable[Item], builtins: frozenset[str] = frozenset()) -> Catalog:
    """Connect to the target once for each distinct launch. Blocks.

    Raises TwogateError naming each server that fails.
    """
    # where no server takes families, all launches are the same: one connection
    families: tuple[Families, ...] = tuple(dict.fromkeys([None, *(item.metadata.tools for item in items)]))
    listed = asyncio.run(list_all(target, families))
    if listed.failed:
        raise TwogateError(listed.failed.values())
    return Catalog(target, listed, families, builtins)


def _builtin(name: str) -> Tool:
    """A tool of the agent's own. Only the names of its parameters are known, and of some tools not even those."""
    known = _BUILTIN_PARAMETERS.get(name)
    if known is None:
        return Tool(server="", name=name, input_schema={"type": "object"})
    schema = {"properties": {parameter: {} for parameter in known.split()}, "additionalProperties": False}
    return Tool(server="", name=name, input_schema={"type": "object", **schema})


def properties(tool: Tool) -> dict[str, object]:
    """The tool's parameters by name, with their schemas."""
    found = tool.input_schema.get("properties")
    return dict(found) if isinstance(found, dict) else {}


def required(tool: Tool) -> frozenset[str]:
    """The parameters no call can leave out."""
    found = tool.input_schema.get("required")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()


def is_open(tool: Tool) -> bool:
    """Whether the tool may take parameters that its schema does not list by name.

    JSON Schema lets any property in unless additionalProperties is false, but servers that list theirs and say nothing
    more mean that list, an empty one too. A schema without `properties` accepts any object, as the MCP specification
    says of {"type": "object"}; one that is put together of others (anyOf, $ref, …) may have more in them.
    """
    schema = tool.input_schema
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict) or extra is True:
        return True
    composed = {"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"}
    if composed & schema.keys():
        return True
    return extra is not False and "properties" not in schema
