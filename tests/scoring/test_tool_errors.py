from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evals.conversation import Conversation, ToolCall, Turn
from evals.items import Item
from evals.scoring.tool_errors import score_tool_errors

NOW = datetime(2026, 11, 1, tzinfo=UTC)
UNDER_TEST = ("tasks", "repository")


def item(*expected_errors: str) -> Item:
    metadata: dict[str, Any] = {"category": "tasks", "kind": "agent"}
    if expected_errors:
        metadata["expectedErrors"] = list(expected_errors)
    return Item.model_validate(
        {"id": "merge/tasks/x", "input": {"query": "q"}, "expectedOutput": "PASS only if …", "metadata": metadata}
    )


def call(tool: str, *, server: str | None = "tasks", error: str | None = None, denied: bool = False) -> ToolCall:
    return ToolCall(
        id=f"{server}-{tool}-{error}",
        name=f"mcp__{server}__{tool}" if server else tool,
        server=server,
        called_at=NOW,
        result=error or "ok",
        is_error=error is not None,
        denied=denied,
    )


def conversation(*calls: ToolCall) -> Conversation:
    turn = Turn(message_id="1", calls=calls, started_at=NOW, ended_at=NOW)
    return Conversation(query="q", turns=(turn,), started_at=NOW, ended_at=NOW)


def test_no_failed_call_passes() -> None:
    score = score_tool_errors(conversation(call("create_task"), call("get_task")), item(), UNDER_TEST)
    assert (score.passed, score.reason, score.unexpected) == (True, "none of 2 calls failed", ())


def test_a_failed_call_to_a_server_under_test_fails_the_trial() -> None:
    failed = call("create_task", error="409 conflict:\n  the name is taken")
    score = score_tool_errors(conversation(call("list_tasks"), failed), item(), UNDER_TEST)
    assert not score.passed
    assert score.reason == "1 call failed unexpectedly: create_task: 409 conflict: the name is taken"
    assert score.unexpected == (failed,)


def test_a_failed_probe_that_only_reads_fails_it_too() -> None:
    failed = call("get_task", error="404 not found")
    assert score_tool_errors(conversation(failed, call("create_task")), item("create_task"), UNDER_TEST).unexpected == (
        failed,
    )


def test_expected_errors_excuse_their_tools_alone() -> None:
    expected, other = call("create_task", error="409"), call("delete_task", error="404")
    assert score_tool_errors(conversation(expected), item("create_task"), UNDER_TEST).passed
    score = score_tool_errors(conversation(expected, other), item("create_task"), UNDER_TEST)
    assert (score.passed, score.unexpected) == (False, (other,))


def test_a_refused_call_counts_as_its_tools_error() -> None:
    refused = call("run_task", denied=True)
    assert not score_tool_errors(conversation(refused), item(), UNDER_TEST).passed
    score = score_tool_errors(conversation(refused), item("run_task"), UNDER_TEST)
    assert (score.passed, score.reason) == (True, "only expected errors: 1 call of run_task")


@pytest.mark.parametrize("server", [None, "clock"])
def test_built_in_tools_and_auxiliary_servers_do_not_count(server: str | None) -> None:
    failed = call("Read", server=server, error="no such file")
    score = score_tool_errors(conversation(failed), item(), UNDER_TEST)
    assert (score.passed, score.reason) == (True, "no call to a server under test")


def test_a_tool_the_server_does_not_have_counts() -> None:
    failed = call("no_such_tool", error="No such tool available")
    assert score_tool_errors(conversation(failed), item(), UNDER_TEST).unexpected == (failed,)


def test_every_unexpected_call_is_named_in_order_and_long_messages_are_cut() -> None:
    first, second = call("a", error="x" * 500), call("b", server="repository", error=" ")
    score = score_tool_errors(conversation(first, second), item(), UNDER_TEST)
    assert score.unexpected == (first, second)
    assert score.reason == f"2 calls failed unexpectedly: a: {'x' * 199}…; b: no message"


def test_no_call_at_all_passes() -> None:
    assert score_tool_errors(conversation(), item(), UNDER_TEST).passed
