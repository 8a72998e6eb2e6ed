"""The command line's own words: usage, missing keys, datasets with mistakes. No model is ever asked here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab, agent_item, clean_environment, tool_call_item

HEAVY = ("langfuse", "claude_agent_sdk", "anthropic", "openai", "mcp", "pydantic", "starlette", "httpx")


def test_help_imports_nothing_heavy() -> None:
    """What keeps `twogate --help` quick, whatever machine it runs on."""
    program = (
        "import sys\nfrom click.testing import CliRunner\nfrom evals.cli.main import cli\n"
        "done = CliRunner().invoke(cli, ['--help'])\nassert done.exit_code == 0, done.output\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.strip() == "[]"


def test_every_command_has_help() -> None:
    from evals.cli.main import COMMANDS

    for name in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "evals", name, "--help"], capture_output=True, text=True, check=False, cwd=REPOSITORY
        )
        assert done.returncode == 0, done.stderr
        assert "Usage: twogate" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--nonsense"],
        ["run", "--gate", "nightly"],
        ["run", "--pass-threshold", "90"],
        ["run", "--pass-threshold", "often"],
        ["run", "--iterations", "0"],
        ["run", "--concurrency", "0"],
        ["run", "--tool-timeout", "0"],
        ["nonsense"],
    ],
)
def test_usage_errors_exit_2(lab: Lab, arguments: list[str]) -> None:
    done = lab.twogate(*arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert not (lab.root / ".twogate").exists()


def test_without_a_model_key_both_ways_out_are_named(lab: Lab) -> None:
    done = lab.twogate("run")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ANTHROPIC_API_KEY is not set")
    assert "--scripted" in line
    assert "twogate demo" in line
    assert "Traceback" not in done.stderr


def test_everything_that_is_missing_is_told_at_once(lab: Lab) -> None:
    lab.target('[servers.one]\ncommand = "x"\nenv = { A = "${NEEDED_TOKEN}" }\n')
    done = lab.twogate("run", "--gate", "merge", CI="true")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    needed = ("LANGFUSE_PUBLIC_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "NEEDED_TOKEN")
    assert [any(name in line for line in lines) for name in needed] == [True] * 4
    assert len(lines) == 4


def test_a_state_folder_that_cannot_be_made_is_one_line(lab: Lab) -> None:
    (lab.root / ".twogate").write_text("in the way")
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q", "turns": [{"text": "x"}]}])))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert ".twogate: cannot be made" in done.stderr


def test_a_target_without_tools_is_refused_by_both_gates(lab: Lab) -> None:
    """An agent could pass a case without the server under test, and the gate would be green."""
    (lab.root / "empty.py").write_text("from mcp.server.mcpserver import MCPServer\nMCPServer('empty').run('stdio')\n")
    lab.target('[servers.empty]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["empty.py"]\n')
    lab.dataset([agent_item("one", "q")], "mcp-server-evals-merge")
    script = str(lab.script([{"query": "q", "turns": [{"text": "x"}]}], [{"query": "q", "verdict": "PASS"}]))
    done = lab.twogate("run", "--gate", "merge", "--scripted", script)
    assert done.returncode == 1
    assert "merge/repository/one: the target (empty) lists no tools; see twogate doctor" in done.stderr


def test_output_that_cannot_hold_a_character_gets_its_escape(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q", ["search_text"])])
    script = str(lab.script([{"query": "q", "turns": [{"calls": [{"name": "search_text", "input": {"query": "x"}}]}]}]))
    done = lab.twogate("run", "--scripted", script, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("gate passed")


def test_a_built_in_tool_is_not_there_when_the_run_has_none(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q", ["Bash"])])
    script = str(lab.script([{"query": "q", "turns": [{"text": "x"}]}]))
    done = lab.twogate("run", "--scripted", script, "--mcp-tools-only")
    assert done.returncode == 1
    assert "pr/Bash/one: metadata.expectedTools: the target has no Bash" in done.stderr


def test_under_ci_without_keys_the_embedded_store_must_be_asked_for(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q", ["search_text"])])
    script = lab.script([{"query": "q", "turns": [{"text": "x"}]}])
    done = lab.twogate("run", "--scripted", str(script), CI="true")
    assert done.returncode == 1
    assert "--embedded" in done.stderr
    assert lab.runs() == []


def test_ten_mistakes_are_ten_lines_and_nothing_is_run(lab: Lab) -> None:
    good = tool_call_item("good", "q", ["search_text"])
    bad = [
        {**tool_call_item("m01", "q", ["a"]), "metadata": {"category": "a", "kind": "tool-call"}},
        {**tool_call_item("m02", "q", ["a"]), "expectedOutput": "PASS only if"},
        tool_call_item("m03", "q", ["a"], maxTurns=3),
        tool_call_item("m04", "  ", ["a"]),
        tool_call_item("m05", "q", ["a"], expectedTool="x"),
        tool_call_item("m06", "q", ["a", "a"]),
        tool_call_item("m07", "q", ["a"], category=""),
        tool_call_item("m08", "q", ["a"], mcpToolsOnly="yes"),
        {**tool_call_item("m09", "q", ["a"]), "id": "tasks/m09"},
        {**agent_item("m10", "q"), "id": "pr/a/m10"},
    ]
    lab.dataset([good, *bad])
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q", "turns": [{"text": "x"}]}])))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 10, done.stderr
    assert [re.match(r"error: ([^:]+): ", line)[1] for line in lines] == sorted(item["id"] for item in bad)  # type: ignore[index]
    assert lab.runs() == []


def test_a_case_whose_tools_do_not_exist_is_refused_before_anything_is_spent(lab: Lab) -> None:
    lab.dataset(
        [
            tool_call_item("gone", "q1", ["find_text", "grep_text"]),
            tool_call_item("built-in", "q2", ["Grep"]),
            tool_call_item("only-mcp", "q3", ["Grep"], mcpToolsOnly=True),
        ]
    )
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q", "turns": [{"text": "x"}]}])))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "pr/Grep/only-mcp: metadata.expectedTools: the target has no Grep" in lines[0]
    assert "the target has no find_text and no grep_text; it has list_files, read_file" in lines[1]
    assert lab.runs() == []


def test_item_tools_without_a_way_to_pass_them_are_refused(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q", ["search_text"], tools=["docs"])])
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q", "turns": [{"text": "x"}]}])))
    assert done.returncode == 1
    assert "pr/search_text/one: metadata.tools: no server of twogate.toml has a tools_arg" in done.stderr


def test_nothing_selected_and_no_such_dataset(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q", ["search_text"])])
    script = str(lab.script([{"query": "q", "turns": [{"text": "x"}]}]))
    nothing = lab.twogate("run", "--scripted", script, "--id", "^pr/search_text/two$")
    assert nothing.returncode == 1
    assert "selects none of the 1 active items; near: pr/search_text/one" in nothing.stderr
    unknown = lab.twogate("run", "--scripted", script, "--dataset", "mine-pr")
    assert unknown.returncode == 1
    assert "there is no dataset 'mine-pr' in the embedded store" in unknown.stderr


def test_a_langfuse_that_cannot_be_reached_or_refuses_the_keys_is_one_line(lab: Lab) -> None:
    from evals.embedded.langfuse import EmbeddedStore

    lab.dataset([tool_call_item("one", "q", ["search_text"])])
    script = str(lab.script([{"query": "q", "turns": [{"text": "x"}]}]))
    keys = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-wrong-1"}

    def run(url: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "evals", "run", "--scripted", script],
            cwd=lab.root,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), LANGFUSE_BASE_URL=url, **keys),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 1, done.stdout
        assert "sk-lf-wrong-1" not in done.stdout + done.stderr
        return done.stderr

    down = [line for line in run("http://127.0.0.1:9").splitlines() if line.startswith("error: ")]
    assert len(down) == 1
    assert "cannot be reached" in down[0]
    with EmbeddedStore(lab.root / "other.db") as store:
        refused = [line for line in run(store.base_url).splitlines() if line.startswith("error: ")]
    assert len(refused) == 1
    assert "refuses the keys (401)" in refused[0]


def test_a_summary_goes_where_it_is_wanted_or_the_run_does_not_start(lab: Lab) -> None:
    done = lab.twogate("run", "--scripted", "x.json", "--json", "no/such/folder/out.json")
    assert done.returncode == 1
    assert "its folder does not exist" in done.stderr
    # nor over what it reads, the server's program among it
    (lab.root / "server.py").write_text("import sys")
    (lab.root / "x.json").write_text("{}")
    lab.target('[servers.one]\ncommand = "${TWOGATE_PYTHON}"\nargs = ["server.py"]\n')
    for path, what in (
        ("x.json", "the script"),
        ("twogate.toml", "this folder's settings"),
        ("server.py", "an argument of the server"),
    ):
        before = (lab.root / path).read_bytes()
        done = lab.twogate("run", "--scripted", "x.json", "--json", path)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert f"--json {path}: is {what}, which it would overwrite" in done.stderr
        assert (lab.root / path).read_bytes() == before


def test_doctor_says_what_to_fix_and_spends_nothing(lab: Lab, tmp_path: Path) -> None:
    lab.dataset([tool_call_item("one", "q", ["search_text"])])
    done = lab.twogate("doctor")
    assert done.returncode == 1
    assert "❌ model key: ANTHROPIC_API_KEY is not set" in done.stdout
    assert "✅ Claude Code: " in done.stdout
    assert "✅ target repository: 4 tools" in done.stdout
    assert "✅ pr dataset: mcp-server-evals-pr, 1 active items" in done.stdout
    good = lab.twogate("doctor", ANTHROPIC_API_KEY="sk-ant-anything")
    assert good.returncode == 0, good.stdout
    assert "sk-ant-anything" not in good.stdout
    assert "✅ model key: ANTHROPIC_AUTH_TOKEN is set" in lab.twogate("doctor", ANTHROPIC_AUTH_TOKEN="tok").stdout
    lab.target('[servers.a]\ncommand = "false"\n[servers.b]\ncomand = "x"\n')
    broken = lab.twogate("doctor", "--subscription", LANGFUSE_PUBLIC_KEY="pk")
    assert broken.returncode == 1
    assert "❌ target: twogate.toml: servers.b.comand" in broken.stdout
    assert "❌ Langfuse: LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL not set" in broken.stdout


def test_the_shipped_datasets_are_valid_and_have_the_size_that_is_promised() -> None:
    from evals.items import parse_items

    for gate, least in (("pr", 20), ("merge", 24)):
        file = json.loads((REPOSITORY / "fixtures" / "datasets" / f"{gate}.json").read_text(encoding="utf-8"))
        assert len(parse_items(file["items"], gate)) >= least  # type: ignore[arg-type]


def test_a_demo_in_ones_own_project_is_kept_apart_from_it(lab: Lab) -> None:
    """The shipped datasets have the default names: in one's own store they would be run with one's own cases."""
    lab.dataset([tool_call_item("mine", "q", ["search_text"])])
    demo = lab.twogate("demo", "--id", "(read_file/head|single-what-is-public)$", seconds=250)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "🔗 .twogate/demo/runs/" in demo.stdout
    # what is asked for may be in one of the two gates alone, and must be in one
    one = lab.twogate("demo", "--id", "read_file/head$", seconds=250)
    assert one.returncode == 0, one.stdout + one.stderr
    assert one.stdout.count("📊") == 1
    none = lab.twogate("demo", "--id", "no-such-item")
    assert none.returncode == 1
    assert [line.split(" selects")[0] for line in none.stderr.splitlines()] == ["error: --id 'no-such-item'"] * 2
    assert lab.twogate("demo", "--gate", "merge", "--id", "read_file/head$").returncode == 1
    assert lab.twogate("demo", "--gate", "merge", "--id", "single-what-is-public$", seconds=250).returncode == 0
    script = str(lab.script([{"query": "q", "turns": [{"calls": [{"name": "search_text", "input": {"query": "x"}}]}]}]))
    shown, swept = lab.twogate("show", "latest"), lab.twogate("sweep", "latest")
    assert "merge/tasks/single-what-is-public" in shown.stdout
    assert "nothing unexpected" in swept.stdout, swept.stderr
    mine = lab.twogate("run", "--scripted", script)
    assert "📊 1/1 passed" in mine.stdout, mine.stdout + mine.stderr
    assert "pr/search_text/mine" in lab.twogate("show", "latest").stdout
