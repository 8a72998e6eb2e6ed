"""The real Claude Code against the scripted model: a text, a tool call, a retried error, a structured verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from evals.embedded.model import ScriptedModel, parse_script

VERDICT_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["PASS", "FAIL"]}, "reason": {"type": "string"}},
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}


@tool("search_text", "Find text in the repository", {"query": str})
async def search_text(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"src/greet.py:1: {arguments['query']}"}]}


def options(model: ScriptedModel, home: Path, *, quiet: bool = True, **more: Any) -> ClaudeAgentOptions:
    workdir, config = home / "empty", home / "config"
    workdir.mkdir()
    config.mkdir()
    env = {
        "ANTHROPIC_BASE_URL": model.base_url,
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CONFIG_DIR": str(config),
        "IS_SANDBOX": "1",
    }
    if quiet:
        env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    return ClaudeAgentOptions(
        setting_sources=[],
        strict_mcp_config=True,
        permission_mode="bypassPermissions",
        cwd=workdir,
        env=env,
        **more,
    )


async def run(prompt: str, chosen: ClaudeAgentOptions) -> tuple[list[Message], ResultMessage]:
    messages = [message async for message in query(prompt=prompt, options=chosen)]
    result = messages[-1]
    assert isinstance(result, ResultMessage)
    return messages, result


async def test_a_text_turn_with_all_of_claude_codes_side_requests(tmp_path: Path) -> None:
    script = {
        "version": 1,
        "agent": [{"query": "What is this?", "turns": [{"text": "A test.", "thinking": "Easy."}]}],
        # A verdict on this query must not answer the request for the session's title, which quotes it.
        "judge": [{"query": "What is this?", "verdict": "FAIL"}],
    }
    with ScriptedModel(parse_script(script)) as model:
        _, result = await run("What is this?", options(model, tmp_path, quiet=False))
        assert (result.subtype, result.is_error, result.result) == ("success", False, "A test.")
        assert result.usage is not None
        counted = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        assert all(result.usage[name] > 0 for name in counted)
        kinds = [seen.kind for seen in model.requests]
        assert kinds.count("agent") == 1
        assert set(kinds) <= {"agent", "title", "quota", "models", "other", "count_tokens"}


async def test_a_tool_call_is_executed_and_a_rate_limit_is_retried(tmp_path: Path) -> None:
    calls = [{"name": "search_text", "input": {"query": "def greet"}}, {"name": "no_such_tool", "input": {}}]
    script = {
        "version": 1,
        "agent": [
            {
                "query": "Where is greet defined?",
                "turns": [{"text": "Looking.", "calls": calls}, {"text": "In src/greet.py."}],
                "faults": [{"kind": "429", "retry_after": 0.1}],
            }
        ],
    }
    server: Any = {**create_sdk_mcp_server("repository", tools=[search_text]), "alwaysLoad": True}
    with ScriptedModel(parse_script(script)) as model:
        chosen = options(model, tmp_path, mcp_servers={"repository": server})
        messages, result = await run("Where is greet defined?", chosen)
        assert (result.subtype, result.result) == ("success", "In src/greet.py.")
        uses = [
            block
            for message in messages
            if isinstance(message, AssistantMessage)
            for block in message.content
            if isinstance(block, ToolUseBlock)
        ]
        assert [use.name for use in uses] == ["mcp__repository__search_text", "no_such_tool"]
        results = [
            block
            for message in messages
            if isinstance(message, UserMessage)
            for block in message.content
            if isinstance(block, ToolResultBlock)
        ]
        assert [found.tool_use_id for found in results] == [use.id for use in uses]
        assert [bool(found.is_error) for found in results] == [False, True]
        assert "src/greet.py:1: def greet" in str(results[0].content)
        assert [(seen.turn, seen.status) for seen in model.requests if seen.kind == "agent"] == [
            (0, 429),
            (0, 200),
            (1, 200),
        ]


async def test_a_judge_answers_through_structured_output_at_the_second_try(tmp_path: Path) -> None:
    answers = [{"output": {"verdict": "MAYBE"}}, {"verdict": "FAIL", "reason": "No file is named."}]
    script = {
        "version": 1,
        "agent": [{"query": "Where is greet defined?", "turns": [{"text": "Somewhere."}]}],
        "judge": [{"query": "Where is greet defined?", "answers": answers}],
    }
    with ScriptedModel(parse_script(script)) as model:
        chosen = options(model, tmp_path, tools=[], output_format={"type": "json_schema", "schema": VERDICT_SCHEMA})
        prompt = "Judge this.\n<query>Where is greet defined?</query>\n<answer>Somewhere.</answer>"
        _, result = await run(prompt, chosen)
        assert result.structured_output == {"verdict": "FAIL", "reason": "No file is named."}
        assert [(seen.kind, seen.turn) for seen in model.requests] == [("judge", 0), ("judge", 1)]
