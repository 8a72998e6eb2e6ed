"""What the live target offers to the items: its tools by family, and the names that are technical."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from evals.errors import TwogateError
from evals.items import Item
from evals.target import Target
from evals.tool_listing import Tool, ToolList, list_all

Families = tuple[str, ...] | None


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


def properties(tool: Tool) -> dict[str, object]:
    """The tool's parameters by name, with their schemas."""
    found = tool.input_schema.get("properties")
    return dict(found) if isinstance(found, dict) else {}


def required(tool: Tool) -> frozenset[str]:
    """The parameters no call can leave out."""
    found = tool.input_schema.get("required")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()
