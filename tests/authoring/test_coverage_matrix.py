"""The matrix: what counts as a case for a tool, a parameter, an outcome."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from authoring_support import REPOSITORY, TOOLS, agent, catalog, parsed, tool, tool_call

from evals.authoring.catalog import read_catalog
from evals.authoring.checking import check_content
from evals.authoring.coverage import Cell, Coverage, coverage, is_get_like, says_missing
from evals.authoring.coverage_report import coverage_json, coverage_markdown, coverage_text
from evals.authoring.dataset_file import read_dataset_file
from evals.conversation import Conversation, ToolCall, Turn
from evals.errors import TwogateError
from evals.items import Item
from evals.runs.trial import TrialResult
from evals.target import load_target

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cell(matrix: Coverage, tool: str, group: str) -> Cell:
    (found,) = (one for one in matrix.cells if (one.tool, one.group) == (tool, group))
    return found


def trial(item: Item, *calls: ToolCall) -> TrialResult:
    turn = Turn(message_id="m", calls=calls, started_at=NOW, ended_at=NOW)
    return TrialResult(
        run="r",
        item=item.id,
        iteration=1,
        kind=item.kind,
        category=item.metadata.category,
        outcome="passed",
        reason="",
        conversation=Conversation(query=item.query, turns=(turn,), started_at=NOW, ended_at=NOW),
        started_at=NOW,
        ended_at=NOW,
    )


def call(tool: str, server: str | None = "things", **more: Any) -> ToolCall:
    name = f"mcp__{server}__{tool}" if server else tool
    return ToolCall(id=tool, name=name, server=server, called_at=NOW, **more)


def test_rows() -> None:
    matrix = coverage(catalog(), [])
    rows = [(one.tool, one.group) for one in matrix.cells]
    assert rows == [
        ("create_task", "any call"),
        ("create_task", "name"),
        ("create_task", "max_lines"),
        ("get_task", "any call"),
        ("get_task", "task"),
        ("get_task", "found"),
        ("get_task", "not found"),
        ("list_tasks", "any call"),
        ("list_tasks", "search"),
        ("list_tasks", "action"),
        ("list_tasks", "limit"),
        ("list_tasks", "cursor"),
        ("search", "any call"),
        ("search", "query"),
        ("search", "case_sensitive"),
    ]
    assert (matrix.percent, len(matrix.holes)) == (0.0, 15)


def test_tool_call_items() -> None:
    items = parsed(
        tool_call("pr/list_tasks/a", "Which are there?", ["list_tasks", "search"], expectedArgs={"limit": 5}),
        tool_call("pr/get_task/a", "What is x?", ["get_task"]),
        tool_call("pr/get_task/b-not-found", "What is y?", ["get_task"]),
    )
    matrix = coverage(catalog(), items)
    assert cell(matrix, "list_tasks", "any call").dedicated == ("pr/list_tasks/a",)
    assert cell(matrix, "list_tasks", "limit").dedicated == ("pr/list_tasks/a",)
    assert cell(matrix, "list_tasks", "cursor").dedicated == ()
    # one of several right tools, and not the item's own
    assert cell(matrix, "search", "any call").passing == ("pr/list_tasks/a",)
    assert cell(matrix, "search", "any call").in_passing
    # no call can leave a required parameter out
    assert cell(matrix, "get_task", "task").dedicated == ("pr/get_task/a", "pr/get_task/b-not-found")
    assert cell(matrix, "get_task", "found").dedicated == ("pr/get_task/a",)
    assert cell(matrix, "get_task", "not found").dedicated == ("pr/get_task/b-not-found",)


def test_agent_items() -> None:
    reference = (
        "PASS only if the agent calls list_tasks with limit 5 and action 'sort', and says which. "
        "FAIL if it searches by itself or the cursor is off."
    )
    items = parsed(
        agent("merge/tasks/a", "Which are sorted?", reference, category="list_tasks"),
        agent("merge/tasks/b", "Which are sorted?", reference, category="create_task"),
        agent("merge/tasks/c", "What is no-such-y?", category="create_task", expectedErrors=["get_task"]),
    )
    matrix = coverage(catalog(), items)
    assert cell(matrix, "list_tasks", "limit").dedicated == ("merge/tasks/a",)
    assert cell(matrix, "list_tasks", "limit").passing == ("merge/tasks/b",)
    assert cell(matrix, "list_tasks", "action").dedicated == ("merge/tasks/a",)
    assert not cell(matrix, "list_tasks", "cursor").covered
    assert not cell(matrix, "search", "any call").in_passing
    assert cell(matrix, "get_task", "not found").passing == ("merge/tasks/c",)
    assert cell(matrix, "get_task", "found").passing == ()


def exercised(reference: str, **more: Any) -> set[str]:
    """What one agent item of list_tasks exercises, as tool/row."""
    items = parsed(agent("merge/tasks/a", "Which?", reference, **{"category": "list_tasks", **more}))
    cells = coverage(catalog(), items).cells
    return {f"{one.tool}/{one.group}" for one in cells if one.dedicated or one.passing}


@pytest.mark.parametrize(
    ("passing", "more"),
    [
        ("the agent calls list_tasks with limit 5", {"limit"}),
        ("the agent looks, with a limit of 5 and the action set to 'sort',", {"limit", "action"}),
        ('the agent passes `cursor` of "x" or limit=5', {"cursor", "limit"}),
        ("it answers 3 and calls it with action 'sum', limit 5", {"action", "limit"}),
        ("the search is \"x\" and its action is 'sort'", {"search", "action"}),
        ("the agent answers within the limit of 5 minutes", set()),
        ("it stays under the limit of 5", set()),
        ("it looks with limit 5 minutes in mind", set()),
        ("it answers in action 3", set()),
        ("the answer names action 'sum'", set()),
        ("it answers that the limit is 5 and the action is 'sum'", set()),
        ("it looks without limit 5 and never with action 'sum'", set()),
    ],
)
def test_only_what_a_passing_conversation_does_with_a_parameter_counts(passing: str, more: set[str]) -> None:
    base = {"list_tasks/any call"}
    wanted = base | {f"list_tasks/{one}" for one in more}
    assert exercised(f"PASS only if {passing}. FAIL if the agent says otherwise.") == wanted
    assert exercised(f"FAIL if it says otherwise. PASS only if {passing}.") == wanted
    assert exercised(f"FAIL if {passing}. PASS only if it looks.") == base
    assert exercised(f"PASS only if it looks. FAIL if {passing}.") == base


def test_tools_that_must_not_be_called_are_not_exercised_in_passing() -> None:
    base = {"list_tasks/any call"}
    assert exercised("PASS only if it answers 3. FAIL if create_task or get_task was called.") == base
    assert exercised("PASS only if it answers 3 without calling create_task. FAIL if not.") == base
    assert exercised("PASS only if it never calls create_task, but search_x. FAIL if not.") == base
    assert exercised("PASS only if it calls create_task. FAIL if not.") == base | {
        "create_task/any call",
        "create_task/name",
    }


@pytest.mark.parametrize(
    ("more", "outcomes"),
    [
        ({}, {"found"}),
        ({"expectedErrors": ["get_task"]}, set()),
        ({"expectedErrors": ["get_task"], "failTools": ["get_task"]}, set()),
        ({"expectedErrors": ["create_task"]}, {"found"}),
    ],
)
def test_an_expected_failure_is_not_found_only_where_the_item_says_so(more: dict[str, Any], outcomes: set[str]) -> None:
    def found(query: str, reference: str, slug: str = "a") -> set[str]:
        items = parsed(agent(f"merge/tasks/{slug}", query, reference, **more))
        rows = [cell(coverage(catalog(), items), "get_task", group) for group in ("found", "not found")]
        return {one.group for one in rows if one.dedicated}

    plain = "PASS only if it says 3. FAIL if it says 4."
    assert found("What does x do?", plain) == outcomes
    if "failTools" in more:
        assert found("What does no-such-x do?", plain, "x-not-found") == set()
    elif more.get("expectedErrors") == ["get_task"]:
        assert found("What does no-such-x do?", plain) == {"not found"}
        assert found("What does x do?", "PASS only if it says that there is no x. FAIL if not.") == {"not found"}
        assert found("What does x do?", plain, "missing-x") == {"not found"}


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        ("[task-not-found] There is none.", True),
        ('{"error": {"type": "not_found"}}', True),
        ("Error executing tool get_task: 'x': no such file or directory.", True),
        ("Error executing tool get_task: task not found", True),
        ("There is no task 'x'.", True),
        ("Unknown task: x", True),
        ("HTTP 404", True),
        ("the task x doesn't exist", True),
        ("[internal-error] 500 the disk is broken", False),
        ("Tool get_task not found", False),
        ("MCP error -32601: Method not found", False),
        ("unknown error", False),
        ("no task given", False),
        ("Input validation error: 'task' is a required property", False),
        ("", False),
    ],
)
def test_errors_that_say_that_a_thing_is_not_there(error: str, missing: bool) -> None:
    (tool,) = (one for one in catalog().all_tools() if one.name == "get_task")
    assert says_missing(tool, error) is missing
    one = parsed(agent("merge/tasks/a", "Which?"))[0]
    trials = [trial(one, call("get_task", arguments={"task": "x"}, result=error, is_error=True))]
    row = cell(coverage(catalog(), [], run="r", trials=trials), "get_task", "not found")
    assert row.called_dedicated == int(missing)


def test_a_page_that_is_not_found_is_one_for_a_tool_that_reads_pages() -> None:
    (tool,) = (one for one in catalog().all_tools() if one.name == "get_task")
    assert not says_missing(tool, "page not found")
    assert says_missing(tool.model_copy(update={"name": "get_page"}), "page not found")


def test_a_target_without_tools_is_an_error_and_one_silent_server_is_noted() -> None:
    with pytest.raises(TwogateError) as caught:
        coverage(catalog(tools=()), parsed(agent("merge/tasks/a", "Which?")))
    assert caught.value.lines == [
        "twogate.toml: the target lists no tools (things), so there is nothing to cover; "
        "see what its servers list with twogate doctor"
    ]
    elsewhere = tuple(tool.model_copy(update={"server": "others"}) for tool in catalog().all_tools())
    assert coverage(catalog(tools=elsewhere), []).notes == (
        "the server things lists no tools, so nothing of it is counted",
    )


def test_a_tool_that_no_model_is_shown_needs_no_case() -> None:
    matrix = coverage(catalog(tools=(tool("query", {"$filter": {"type": "string"}}), *TOOLS)), [])
    assert {one.tool for one in matrix.cells} == {one.name for one in TOOLS}
    (note,) = matrix.notes
    assert note.startswith("Claude Code does not show query to the model, so nothing of it is counted: its argument")


def test_groups() -> None:
    items = parsed(tool_call("pr/list_tasks/a", "Which?", ["list_tasks"], expectedArgs={"limit": 5}))
    matrix = coverage(catalog({"list_tasks": {"paging": ("limit", "cursor")}}), items)
    paging = cell(matrix, "list_tasks", "paging")
    assert (paging.kind, paging.parameters, paging.covered) == ("group", ("limit", "cursor"), True)
    assert {one.group for one in matrix.cells if one.tool == "list_tasks"} == {"any call", "search", "action", "paging"}


def test_groups_that_name_what_is_not_there() -> None:
    with pytest.raises(TwogateError) as caught:
        coverage(catalog({"list_tasks": {"paging": ("limit", "page")}, "lists": {"a": ("b",)}}), [])
    assert caught.value.lines == [
        "twogate.toml: coverage.list_tasks.groups.paging: list_tasks has no parameter page; "
        "it has search, action, limit, cursor",
        "twogate.toml: coverage.lists: the target has no such tool; it has create_task, get_task, list_tasks, search",
    ]


def test_what_a_run_really_called() -> None:
    one, two = parsed(
        agent("merge/tasks/a", "Which?", category="list_tasks"), agent("merge/tasks/b", "What?", category="create_task")
    )
    trials = [
        trial(
            one,
            call("list_tasks", arguments={"cursor": "x", "search": None}, result="…"),
            call("list_tasks", arguments={"limit": 3}, result="…"),
            call("get_task", arguments={"task": "x"}, result="[task-not-found] There is none.", is_error=True),
            call("Bash", server=None, arguments={"command": "ls"}),
            call("search", server="elsewhere", arguments={"query": "x"}),
        ),
        trial(two, call("get_task", arguments={"task": "x"}, result="it")),
        trial(two, call("get_task", arguments={"task": "x"}, result="denied", is_error=True, denied=True)),
    ]
    matrix = coverage(catalog(), [one, two], run="r", trials=trials)

    def counts(tool: str, group: str) -> tuple[int | None, int | None]:
        found = cell(matrix, tool, group)
        return found.called_dedicated, found.called_passing

    # trials are counted, not calls
    assert counts("list_tasks", "any call") == (1, 0)
    assert counts("list_tasks", "cursor") == counts("list_tasks", "limit") == (1, 0)
    assert counts("list_tasks", "search") == (0, 0)
    assert cell(matrix, "list_tasks", "cursor").covered
    assert counts("get_task", "any call") == (0, 3)
    assert counts("get_task", "found") == (0, 1)
    assert counts("get_task", "not found") == (0, 1)
    assert counts("search", "any call") == (0, 0)
    assert coverage(catalog(), [one]).cells[0].called_dedicated is None


def test_a_category_that_is_no_tool_is_noted() -> None:
    matrix = coverage(catalog(), parsed(agent("merge/tasks/a", "Which?", category="everything")))
    assert matrix.notes == ("the category everything is no tool of the target: its items are dedicated to none",)


def test_forms() -> None:
    items = parsed(tool_call("pr/list_tasks/a|b", "Which?", ["list_tasks"], expectedArgs={"limit": 5}))
    matrix = coverage(catalog(), items)
    plain = json.loads(coverage_json(matrix))
    assert (plain["covered"], plain["total"], plain["percent"]) == (2, 15, 13.33)
    assert plain["cells"][7]["dedicated"] == ["pr/list_tasks/a|b"]
    markdown = coverage_markdown(matrix)
    assert "| `list_tasks` | ✅ limit | pr/list_tasks/a\\|b | — |" in markdown
    assert "| `search` | ❌ query | — | — |" in markdown
    assert "✅" not in coverage_markdown(matrix, holes_only=True)
    text = coverage_text(matrix)
    assert "2 of 15 covered by a dedicated case (13.3 %), 0 more in passing, 13 by nothing" in text
    assert "no case is dedicated to create_task, get_task, search" in text
    assert all(len(line) <= 200 for line in text.splitlines())


def test_the_bundled_targets_and_the_hole_that_a_removed_item_leaves() -> None:
    paths = [REPOSITORY / "fixtures" / "datasets" / f"{gate}.json" for gate in ("pr", "merge")]
    items = [item for path in paths for item in check_content(read_dataset_file(path)).items]
    target = load_target(REPOSITORY, {}, REPOSITORY / "twogate.toml")
    live = read_catalog(target, items)
    whole = coverage(live, items)
    assert {one.server for one in whole.cells} == {"repository", "tasks"}
    # every tool of both servers has a case of its own
    assert [one.tool for one in whole.holes if one.kind == "tool"] == []
    get_like = [tool.name for tool in live.all_tools() if is_get_like(tool)]
    assert get_like == ["read_file", "verify_task", "get_run", "get_schedule", "get_task", "list_runs"]
    one = next(cell for cell in whole.cells if cell.kind == "parameter" and len(cell.dedicated) == 1)
    without = coverage(live, [item for item in items if item.id != one.dedicated[0]])
    before = {(hole.tool, hole.group) for hole in whole.holes}
    assert (one.tool, one.group) in {(hole.tool, hole.group) for hole in without.holes} - before
