"""Items, tools and a target without a server, for tests of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.authoring.catalog import Catalog
from evals.authoring.checking import check_content
from evals.authoring.dataset_file import DatasetContent
from evals.authoring.lint.engine import Finding, Selection, lint
from evals.authoring.stored import StoredItem
from evals.items import Item
from evals.target import CoverageConfig, Server, ServerConfig, Target
from evals.tool_listing import Tool, ToolList

REPOSITORY = Path(__file__).resolve().parents[2]


def tool_call(identifier: str, query: str, tools: list[str], **metadata: Any) -> StoredItem:
    values = {"category": tools[0], "kind": "tool-call", "expectedTools": tools, **metadata}
    return StoredItem(identifier, {"query": query}, None, values)


def agent(
    identifier: str,
    query: str,
    reference: str = "PASS only if it says 3. FAIL if it says another number.",
    category: str = "get_task",
    **metadata: Any,
) -> StoredItem:
    return StoredItem(identifier, {"query": query}, reference, {"category": category, "kind": "agent", **metadata})


def good(query: str = "What does nightly-report do?", **metadata: object) -> StoredItem:
    """An item that no rule has anything against."""
    return agent("merge/tasks/single-good", query, **metadata)  # type: ignore[arg-type]


def parsed(*stored: StoredItem, name: str = "test") -> tuple[Item, ...]:
    return check_content(DatasetContent(name, stored)).or_raise("test")


def tool(name: str, parameters: dict[str, Any], needs: list[str] | None = None, **more: Any) -> Tool:
    schema = {"type": "object", "properties": parameters, "required": needs or [], "additionalProperties": False}
    return Tool(server="things", name=name, input_schema=schema, **more)


TOOLS = (
    tool(
        "get_task",
        {"task": {"type": "string", "description": "Name or id of the task"}},
        ["task"],
        description="Read one saved task with its action and all of its schedules.",
        read_only=True,
    ),
    tool(
        "list_tasks",
        {
            "search": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "action": {"$ref": "#/$defs/action"},
            "limit": {"type": "integer", "maximum": 100},
            "cursor": {"type": "string"},
        },
        read_only=True,
    ).model_copy(
        update={
            "input_schema": {
                "type": "object",
                "properties": {
                    "search": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "action": {"$ref": "#/$defs/action"},
                    "limit": {"type": "integer", "maximum": 100},
                    "cursor": {"type": "string"},
                },
                "$defs": {"action": {"enum": ["count", "sort"]}},
            }
        }
    ),
    tool("create_task", {"name": {"type": "string"}, "max_lines": {"type": "integer"}}, ["name"]),
    tool("search", {"query": {"type": "string"}, "case_sensitive": {"type": "boolean"}}, ["query"], read_only=True),
)


def catalog(groups: dict[str, dict[str, tuple[str, ...]]] | None = None, tools: tuple[Tool, ...] = TOOLS) -> Catalog:
    config = ServerConfig(command="things", tools_arg="--tools={tools}")
    server = Server(name="things", config=config, folder=REPOSITORY, variables={})
    coverage = {name: CoverageConfig(groups=members) for name, members in (groups or {}).items()}
    target = Target(source=Path("twogate.toml"), servers=(server,), coverage=coverage)
    families = (None, ("docs",), ("web-search",))
    listed = ToolList({server.launch(one): tools for one in families})
    return Catalog(target, listed, families, frozenset({"Bash", "Read", "Grep", "Skill"}))


def findings(
    *stored: StoredItem, select: str = "", live: bool = True, tools: tuple[Tool, ...] = TOOLS
) -> list[Finding]:
    checked = check_content(DatasetContent("test", stored))
    assert not checked.problems, checked.problems
    selection = Selection.parse([select] if select else [], [])
    return list(lint([("test", checked)], catalog(tools=tools) if live else None, selection).findings)


def codes(*stored: StoredItem) -> list[str]:
    return [finding.code for finding in findings(*stored)]
