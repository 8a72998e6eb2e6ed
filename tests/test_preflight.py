"""Items against the live target: what is refused before a run, and what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY, REPOSITORY_TARGET, agent_item, tool_call_item

from evals.connections import connect
from evals.errors import TwogateError
from evals.items import Item
from evals.preflight import preflight
from evals.target import Target, load_target


def load(folder: Path, text: str) -> Target:
    (folder / "twogate.toml").write_text(text, encoding="utf-8")
    return load_target(folder, {})


@pytest.mark.parametrize(
    ("metadata", "problem", "warning"),
    [
        (
            {"failTools": ["raed_file"], "expectedErrors": ["raed_file"]},
            "failTools: the target has no raed_file, so",
            "",
        ),
        ({"expectedErrors": ["raed_file"]}, "", "expectedErrors: the target has no raed_file"),
        ({"failTools": ["read_file"], "expectedErrors": ["read_file"]}, "", ""),
    ],
)
async def test_a_misspelt_tool_of_an_agent_item_is_seen_before_the_run(
    tmp_path: Path, metadata: dict[str, Any], problem: str, warning: str
) -> None:
    """A failTools that names no tool lets everything through, and the trial passes for nothing."""
    target = load(tmp_path, REPOSITORY_TARGET)
    item = Item.model_validate(agent_item("x", "Find it", **metadata))
    if problem:
        with pytest.raises(TwogateError, match=problem):
            await preflight(target, [item], frozenset())
    else:
        found = await preflight(target, [item], frozenset())
        assert [line.split(": ", 1)[1].removeprefix("metadata.") for line in found.warnings] == [warning] * bool(
            warning
        )


async def test_two_tools_that_claude_code_gives_one_name_are_warned_of(tmp_path: Path) -> None:
    names = ("read.file", "read_file", "other")
    lines = [f"server.add_tool(lambda: 'x', name='{name}', description='x')" for name in names]
    code = ["from mcp.server.mcpserver import MCPServer", "server = MCPServer('one')", *lines, "server.run('stdio')"]
    (tmp_path / "server.py").write_text("\n".join(code))
    target = load(tmp_path, '[servers.one]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["server.py"]\n')
    item = Item.model_validate(agent_item("x", "Find it"))
    assert (await preflight(target, [item], frozenset())).warnings == (
        "server 'one': the tools read.file and read_file are both mcp__one__read_file to Claude Code, which "
        "sees one of them; rename one",
    )


async def test_a_server_that_asks_for_roots_is_offered_its_own_or_told_of(tmp_path: Path) -> None:
    server = Path(__file__).parent / "agents" / "roots_server.py"
    text = f'[servers.files]\ncommand = "${{TWOGATE_PYTHON}}"\nargs = ["{server}"]\n'
    item = Item.model_validate(agent_item("x", "Find it"))
    long = "server 'files': Claude Code cuts its instructions after 4,096 of their 4,500 characters; shorten them"
    assert (await preflight(load(tmp_path, text), [item], frozenset())).warnings == (
        long,
        "server 'files': it asks which folders it may use (roots), and is offered an empty one in each trial; "
        'name them by roots = ["…"]',
    )
    # what a server is that nobody here can mend
    auxiliary = load(tmp_path, text + "auxiliary = true\n" + REPOSITORY_TARGET)
    assert (await preflight(auxiliary, [item], frozenset())).warnings == ()

    (tmp_path / "data").mkdir()
    target = load(tmp_path, text + 'roots = ["data"]\n')
    assert (await preflight(target, [item], frozenset())).warnings == (long,)
    async with connect(target.servers[0].launch()) as client:
        await client.list_tools()
        result = await client.call_tool("roots", {})
    assert result.content[0].text == (tmp_path / "data").as_uri()

    with pytest.raises(TwogateError, match=r"files\.roots: there is no folder .*/gone; make it, or name another"):
        load(tmp_path, text + 'roots = ["gone"]\n')


async def test_a_tool_of_an_auxiliary_server_or_of_several_is_told_so(tmp_path: Path) -> None:
    tasks = '[servers.tasks]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["-m", "examples.tasks_server"]\n'
    environment = f'env = {{ PYTHONPATH = "{REPOSITORY}" }}\n'
    target = load(tmp_path, REPOSITORY_TARGET + tasks + environment + "auxiliary = true\n")
    item = Item.model_validate(tool_call_item("one", "q", ["get_task"]))
    with pytest.raises(TwogateError, match=r"expectedTools: get_task is a tool of the auxiliary server tasks; it has"):
        await preflight(target, [item], frozenset())
    twice = load(tmp_path, REPOSITORY_TARGET + REPOSITORY_TARGET.replace("servers.repository", "servers.copy"))
    item = Item.model_validate(tool_call_item("one", "q", ["read_file"]))
    assert (await preflight(twice, [item], frozenset())).warnings == (
        "pr/read_file/one: metadata.expectedTools: read_file is a tool of repository and of copy; "
        "a call of either passes",
    )


async def test_a_tool_that_is_not_shown_hides_no_other_servers_of_its_name(tmp_path: Path) -> None:
    odd = REPOSITORY / "tests" / "odd_schemas_server.py"
    code = ["from mcp.server.mcpserver import MCPServer", "server = MCPServer('one')"]
    code += ["server.add_tool(lambda: 'x', name='dollar_key', description='x')", "server.run('stdio')"]
    (tmp_path / "server.py").write_text("\n".join(code), encoding="utf-8")
    text = f"""
[servers.fine]
command = "${{TWOGATE_PYTHON}}"
args = ["server.py"]
[servers.odd]
command = "${{TWOGATE_PYTHON}}"
args = ["{odd}"]
"""
    item = Item.model_validate(tool_call_item("one", "q", ["dollar_key"]))
    warnings = (await preflight(load(tmp_path, text), [item], frozenset())).warnings
    assert not [line for line in warnings if line.startswith("pr/")]
