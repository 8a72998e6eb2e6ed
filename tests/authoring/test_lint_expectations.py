"""What an item expects of tools, held against what they are."""

from __future__ import annotations

import pytest
from authoring_support import TOOLS, catalog, codes, findings, good, tool, tool_call

from evals.authoring.checking import check_content
from evals.authoring.dataset_file import DatasetContent
from evals.authoring.lint.engine import lint
from evals.tool_listing import Tool


@pytest.mark.parametrize(
    ("tools", "arguments", "expected"),
    [
        (["get_tasks"], {}, [("TW301", "metadata.expectedTools")]),
        (["Bash", "get_task"], {}, []),
        (["list_tasks"], {"page": 2}, [("TW302", "metadata.expectedArgs.page")]),
        (["list_tasks"], {"limit": 5, "action": "sort", "search": None}, []),
        (["list_tasks"], {"limit": 5.0}, []),
        (["list_tasks"], {"limit": "5"}, [("TW303", "metadata.expectedArgs.limit")]),
        (["list_tasks"], {"limit": 101}, [("TW303", "metadata.expectedArgs.limit")]),
        (["list_tasks"], {"action": "drop"}, [("TW303", "metadata.expectedArgs.action")]),
        (["list_tasks"], {"search": 5}, [("TW303", "metadata.expectedArgs.search")]),
        (["list_tasks", "get_task"], {"limit": 5}, [("TW304", "metadata.expectedArgs.limit")]),
        (["list_tasks", "get_task"], {"page": 5}, [("TW302", "metadata.expectedArgs.page")]),
        (["search", "Read"], {"query": "x"}, [("TW304", "metadata.expectedArgs.query")]),
        (["search", "Skill"], {"query": "x"}, []),  # of Skill no parameters are known
        (["search", "Grep"], {"pattern": "x"}, [("TW304", "metadata.expectedArgs.pattern")]),
        (["Grep"], {"pattern": 3}, []),
        (["Read"], {"path": "x"}, [("TW302", "metadata.expectedArgs.path")]),
    ],
)
def test_expectations_and_schemas(tools: list[str], arguments: dict[str, object], expected: list[object]) -> None:
    more = {"expectedArgs": arguments} if arguments else {}
    found = findings(tool_call(f"pr/{tools[0]}/a", "What is there to see?", tools, **more))
    assert [(finding.code, finding.field) for finding in found] == expected


@pytest.mark.parametrize(
    ("schema", "takes_more"),
    [
        ({"type": "object"}, True),
        ({}, True),
        ({"type": "object", "additionalProperties": True, "properties": {}}, True),
        ({"type": "object", "additionalProperties": {"type": "string"}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"page": {}}}}}, True),
        ({"properties": {}, "anyOf": [{"properties": {"page": {}}}]}, True),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {}, "required": []}, False),
        ({"type": "object", "additionalProperties": False}, False),
        ({"properties": {"task": {}}}, False),
    ],
)
def test_schemas_that_take_more_than_they_list(schema: dict[str, object], takes_more: bool) -> None:
    tools = (Tool(server="things", name="status", input_schema=schema), *TOOLS)
    one = tool_call("pr/status/a", "Is it up?", ["status"], expectedArgs={"page": 2})
    both = tool_call("pr/search/a", "Is it there?", ["search", "status"], expectedArgs={"query": "x"})
    assert [each.code for each in findings(one, tools=tools)] == ([] if takes_more else ["TW302"])
    assert [each.code for each in findings(both, tools=tools)] == ([] if takes_more else ["TW304"])


def test_a_servers_tool_goes_before_a_builtin_of_the_same_name() -> None:
    tools = (tool("Read", {"path": {"type": "string"}}), *TOOLS)
    item = tool_call("pr/Read/a", "What is there?", ["Read"], expectedArgs={"path": "x"})
    assert findings(item, tools=tools) == []


def test_tools_that_may_fail_are_looked_up_too_and_builtins_only_where_they_are() -> None:
    item = good(expectedErrors=["fetch_task"], failTools=["fetch_task"])
    assert [(one.code, one.field) for one in findings(item)] == [
        ("TW301", "metadata.expectedErrors"),
        ("TW301", "metadata.failTools"),
    ]
    assert codes(tool_call("pr/Bash/a", "What is there?", ["Bash"], mcpToolsOnly=True)) == ["TW301"]


def test_an_item_that_needs_a_tool_no_model_is_shown_can_never_pass() -> None:
    tools = (tool("query", {"$filter": {"type": "string"}}), *TOOLS)
    (found,) = findings(tool_call("pr/query/a", "What is there?", ["query"]), tools=tools)
    assert (found.code, found.field) == ("TW301", "metadata.expectedTools")
    assert "Claude Code does not show query to the model" in str(found)
    assert "its argument '$filter' has a name outside" in str(found)


@pytest.mark.parametrize(
    "schema",
    [
        # a draft that nobody checks, and a reference that leads nowhere
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"task": {"type": "text"}}},
        {"properties": {"task": {"$ref": "#/nowhere"}}},
    ],
)
def test_a_mistake_in_the_servers_schema_is_not_the_items(schema: dict[str, object]) -> None:
    broken = catalog()
    tools = tuple(one.model_copy(update={"input_schema": schema}) for one in broken.all_tools())
    item = tool_call("pr/get_task/a", "What is there?", ["get_task"], expectedArgs={"task": 3})
    assert lint([("t", check_content(DatasetContent("t", (item,))))], catalog(tools=tools)).findings == ()
