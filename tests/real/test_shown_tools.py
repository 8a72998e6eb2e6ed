"""What the bundled Claude Code really shows a model of odd tools, against what `evals.tool_definitions` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lab import REPOSITORY, agent_item
from odd_schemas_server import LONG_DESCRIPTION, SCHEMAS

from evals.agents.claude_code import ClaudeCode
from evals.agents.to_completion import to_completion
from evals.embedded.model import ScriptedModel, parse_script
from evals.items import Item
from evals.target import load_target
from evals.tool_definitions import MAX_TEXT, not_shown, shown_otherwise
from evals.tool_listing import list_all

TARGET = f"""
[servers.odd]
command = "{sys.executable}"
args = ["{REPOSITORY}/tests/odd_schemas_server.py"]
"""


async def test_what_a_model_is_shown_of_odd_tools_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "twogate.toml").write_text(TARGET)
    target = load_target(tmp_path, {})
    tools = await list_all(target, [None])
    script = parse_script({"version": 1, "agent": [{"query": "Look", "turns": [{"text": "Done."}]}]})
    with ScriptedModel(script, record_bodies=True) as model:
        credentials = {"ANTHROPIC_API_KEY": "scripted", "ANTHROPIC_BASE_URL": model.base_url}
        agent = ClaudeCode(target, tools, credentials=credentials)
        # The scripted model refuses what the API does, so this ends without an answer if Claude Code sends such a tool.
        conversation = await to_completion(agent, Item.model_validate(agent_item("look", "Look")))
        (request,) = [record for record in model.requests if record.query == "Look"]
    assert conversation.final_answer == "Done."

    listed = {tool.name: tool for tool in tools.of(target)}
    assert set(listed) == set(SCHEMAS)
    body: Any = request.body
    sent = {tool["name"].removeprefix("mcp__odd__"): tool for tool in body["tools"] if tool["name"].startswith("mcp__")}
    assert set(sent) == {name for name, tool in listed.items() if not_shown(tool) is None}

    otherwise = {name for name in sent if shown_otherwise(listed[name])}
    assert otherwise == {"described", "top_any", "top_one", "top_all", "top_any_key"}
    assert LONG_DESCRIPTION[:MAX_TEXT] in sent["described"]["description"]
    assert LONG_DESCRIPTION[: MAX_TEXT + 1] not in sent["described"]["description"]
    for name, tool in sent.items():
        schema = tool["input_schema"]
        if name.startswith("top_"):
            assert not {"anyOf", "oneOf", "allOf"} & set(schema)
        else:
            assert schema == {"type": "object", **SCHEMAS[name]}
