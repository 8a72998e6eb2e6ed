"""What is said of tools that a model is not shown as they are listed: which, why and what mends it."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY, Lab, agent_item, tool_call_item
from odd_schemas_server import SCHEMAS

from evals.agents import AgentError
from evals.agents.messages import MessagesAgent
from evals.embedded.model import ScriptedModel, parse_script
from evals.errors import TwogateError
from evals.items import Item
from evals.preflight import preflight
from evals.target import Target, load_target
from evals.tool_definitions import MAX_NAME, MAX_TEXT, not_shown, refused, shown_otherwise, unlike_listed
from evals.tool_listing import Tool

# tool -> what is said of why it is not shown; those that are shown are not in it
HIDDEN = {
    "dollar_key": "its argument '$filter' has a name outside ^[a-zA-Z0-9_.-]{1,64}$; rename it",
    "bracket_key": "'ids[]'",
    "long_key": f"'{'a' * 65}'",
    "empty_key": "its argument '' has",
    "newline_key": r"'a\n'",
    "no_type": "not valid JSON Schema (2020-12) at $.properties.a.type: 'strin' is not valid under any",
    "draft_4": "at $.properties.a.exclusiveMinimum: True is not of type 'number'; mend it",
    "draft_7_items": "at $.properties.a.items: ",
    "required_text": "at $.required: 'a' is not of type 'array'",
    "required_twice": "at $.required: ",
    "null_property": "at $.properties.a: None is not of type 'object', 'boolean'",
    "odd_definition": "at $['$defs'].x.type: ",
    "all_no_list": "allOf at the top of its input schema must be a list",
    "top_any_odd": "at $.properties.a.type: ",
    "n" * 119: "is 129 characters long, and the Messages API takes 128; shorten it, or the server's name",
}
COMBINED = {"top_any", "top_one", "top_all", "top_any_key"}


def tool(name: str, schema: dict[str, Any] | None = None, description: str = "", server: str = "odd") -> Tool:
    return Tool(server=server, name=name, input_schema={"type": "object", **(schema or {})}, description=description)


@pytest.mark.parametrize("name", SCHEMAS)
def test_why_a_tool_is_not_shown(name: str) -> None:
    why = not_shown(tool(name, SCHEMAS[name]))
    if name in HIDDEN:
        assert why is not None
        assert HIDDEN[name] in why
        assert "\n" not in why
        (line,) = unlike_listed([tool(name, SCHEMAS[name])])
        assert line == f"Claude Code does not show the tool {name} to the model: {why}"
    else:
        assert why is None
        assert bool(unlike_listed([tool(name, SCHEMAS[name])])) == (name in COMBINED)


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_the_api_refuses(name: str) -> None:
    """Names are cut for it; the combinations that Claude Code takes apart are refused as they are."""
    why = refused(tool(name, SCHEMAS[name]))
    combined = [one for one in ("anyOf", "oneOf", "allOf") if one in SCHEMAS[name]]
    if combined:
        assert why == f"it takes no {combined[0]} at the top of an input schema; list one object's properties there"
    elif name in HIDDEN and name != "n" * 119:
        assert why == not_shown(tool(name, SCHEMAS[name]))
    else:
        assert why is None


def test_the_limits_of_names_and_descriptions_are_exact() -> None:
    prefix = len("mcp__odd__")
    assert not_shown(tool("n" * (MAX_NAME - prefix))) is None
    assert not_shown(tool("n" * (MAX_NAME - prefix + 1))) is not None
    assert not_shown(tool("n", server="s" * MAX_NAME)) is not None
    assert shown_otherwise(tool("x", description="d" * MAX_TEXT)) == []
    # as JavaScript counts: an emoji is two
    (line,) = shown_otherwise(tool("x", description="d" * (MAX_TEXT - 1) + "🙂"))
    assert line == "Claude Code cuts the description of the tool x after 4,096 of its 4,097 characters; shorten it"


@pytest.mark.parametrize("keyword", ["items", "not", "additionalProperties"])
def test_a_schema_too_deep_to_be_looked_through_ends_nothing(keyword: str) -> None:
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {keyword: schema}
    assert unlike_listed([tool("deep", {"properties": {"a": schema}})]) == []


def odd_target(folder: Path) -> Target:
    server = REPOSITORY / "tests" / "odd_schemas_server.py"
    (folder / "twogate.toml").write_text(f'[servers.odd]\ncommand = "{sys.executable}"\nargs = ["{server}"]\n')
    return load_target(folder, {})


async def test_an_item_that_needs_a_tool_nobody_sees_is_refused_with_the_cause(tmp_path: Path) -> None:
    target = odd_target(tmp_path)
    items = [
        Item.model_validate(tool_call_item("one", "q", ["dollar_key"])),
        Item.model_validate(tool_call_item("other", "q", ["dollar_key", "gone"])),
        Item.model_validate(agent_item("fail", "q", failTools=["dollar_key"])),
    ]
    with pytest.raises(TwogateError) as raised:
        await preflight(target, items, frozenset())
    hidden = f"Claude Code does not show dollar_key to the model ({HIDDEN['dollar_key']})"
    one, other, fail = raised.value.lines
    assert one.startswith(f"pr/dollar_key/one: metadata.expectedTools: {hidden}; it has declared_draft, ")
    assert f"metadata.expectedTools: the target has no gone, and {hidden}; it has" in other
    assert f"metadata.failTools: {hidden}, so nothing would fail; it has" in fail
    assert not re.search(r"it has .*dollar_key", one)


async def test_a_tool_nobody_sees_is_told_of_and_no_reason_not_to_run(tmp_path: Path) -> None:
    items = [
        Item.model_validate(tool_call_item("one", "q", ["plain", "dollar_key"])),
        Item.model_validate(agent_item("two", "q", expectedErrors=["dollar_key"])),
    ]
    warnings = (await preflight(odd_target(tmp_path), items, frozenset())).warnings
    hidden = f"Claude Code does not show dollar_key to the model ({HIDDEN['dollar_key']})"
    assert warnings[-2:] == (
        f"pr/plain/one: metadata.expectedTools: {hidden}",
        f"merge/repository/two: metadata.expectedErrors: {hidden}",
    )
    told = [line for line in warnings if line.startswith("server 'odd': Claude Code does not show the tool ")]
    assert len(told) == len(HIDDEN)
    assert len(warnings) == len(HIDDEN) + len(COMBINED) + len({"described"}) + 2


def test_an_api_that_refuses_a_tool_by_its_place_is_told_with_the_tools_name(tmp_path: Path) -> None:
    launches = odd_target(tmp_path).launches()
    script = parse_script({"version": 1, "agent": [{"query": "Which?", "turns": [{"text": "Done."}]}]})
    with ScriptedModel(script) as model:
        credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
        agent = MessagesAgent(launches=launches, system="Answer.", credentials=credentials)
        with pytest.raises(AgentError) as raised:
            asyncio.run(agent.answer("Which?"))
    assert raised.value.cause == (
        "the model's API answered 400: tools.8.custom.input_schema: input_schema does not support oneOf, allOf, or "
        "anyOf at the top level (the tool top_any)"
    )


def test_doctor_and_a_run_of_questions_tell_of_them(lab: Lab) -> None:
    server = REPOSITORY / "tests" / "odd_schemas_server.py"
    lab.target(f'[servers.odd]\ncommand = "{sys.executable}"\nargs = ["{server}"]\n')
    hidden = f"Claude Code does not show the tool dollar_key to the model: {HIDDEN['dollar_key']}"
    assert f"⚠️ target odd: {hidden}" in lab.twogate("doctor").stdout

    file = lab.root / "questions.xml"
    file.write_text(
        "<evaluation><qa_pair><question>Which?</question><answer>1</answer></qa_pair></evaluation>", encoding="utf-8"
    )
    script = lab.script([{"query": "Which?", "turns": [{"text": "<response>1</response>"}]}])
    done = lab.twogate("qa", str(file), "--scripted", str(script))
    assert done.returncode == 1
    warning = "warning: the Messages API refuses every request that offers the tool dollar_key: " + HIDDEN["dollar_key"]
    assert warning in done.stdout + done.stderr
    assert "at the top level (the tool top_any)" in done.stdout
