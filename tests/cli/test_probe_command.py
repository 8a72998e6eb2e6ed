"""``twogate probe`` against real servers: what it shows, what it keeps, what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab

from evals.probe import Prober, ProbeReport, open_prober, type_slug
from evals.settings import Settings

ODD = Path(__file__).with_name("probe_server.py")
UNCLEAN = Path(__file__).with_name("unclean_server.py")
TARGET = f"""
[servers.odd]
command = "${{TWOGATE_PYTHON}}"
args = ["{ODD}"]
env = {{ ODD_TOKEN = "${{ODD_TOKEN}}" }}

[servers.tasks]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "examples.tasks_server"]
env = {{ PYTHONPATH = "{REPOSITORY}" }}
tools_arg = "--tools={{tools}}"

[servers.more-tasks]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "examples.tasks_server", "--tools=tasks"]
env = {{ PYTHONPATH = "{REPOSITORY}" }}
"""
TOKEN = "token-that-must-not-be-shown"


@pytest.fixture
def odd(lab: Lab) -> Lab:
    lab.target(TARGET)
    (lab.root / ".env").write_text(f"ODD_TOKEN={TOKEN}\n", encoding="utf-8")
    return lab


def test_repeats_that_agree_and_sizes(odd: Lab) -> None:
    done = odd.twogate("probe", "same", "--server", "odd", "--args", '{"text": "x"}', "--repeat", "3")
    assert done.returncode == 0, done.stderr
    assert "  | Straße x" in done.stdout
    assert "size: 8 characters, 9 bytes of text, approximately 2 tokens" in done.stdout
    assert done.stdout.count("the same as call 1") == 2
    assert "repeats: all 3 calls came back identical" in done.stdout
    assert "median" in done.stdout


def test_repeats_that_differ_are_shown_each(odd: Lab) -> None:
    done = odd.twogate("probe", "counted", "--server", "odd", "--repeat", "2")
    assert "  | call 1\n" in done.stdout
    assert "  | call 2\n" in done.stdout
    assert "repeats: 2 different answers in 2 calls (1; 2)" in done.stdout


def test_an_error_is_shown_exactly_with_its_type_and_kept_as_evidence(odd: Lab) -> None:
    done = odd.twogate(
        "probe", "get_task", "--server", "tasks", "--tools", "tasks", "--args", '{"task": "nope"}', "--save", "."
    )
    assert done.returncode == 0, done.stderr
    assert "type: task-not-found" in done.stdout
    assert "  | [task-not-found] There is no task with the name or id 'nope'." in done.stdout
    (saved,) = odd.root.glob("probe-get_task-*.json")
    report = ProbeReport.model_validate_json(saved.read_text(encoding="utf-8"))
    assert (report.tool, report.arguments, report.server) == ("get_task", {"task": "nope"}, "tasks")
    assert report.calls[0].outcome == "error"
    assert report.calls[0].error_type == "task-not-found"
    assert report.calls[0].seconds > 0
    assert set(report.versions) == {"twogate", "mcp_sdk"}
    again = odd.twogate("probe", "same", "--server", "odd", "--args", '{"text": "x"}', "--save", saved.name)
    assert again.returncode == 1
    assert "must be a new file" in again.stderr


def test_a_folder_with_a_slash_at_its_end_is_made_and_kept_in_again(odd: Lab) -> None:
    for tool in ("same", "counted", "leak"):
        arguments = ["--args", '{"text": "x"}'] if tool == "same" else []
        done = odd.twogate("probe", tool, "--server", "odd", *arguments, "--save", "kept/evidence/")
        assert done.returncode == 0, done.stderr
        assert f"saved: kept/evidence/probe-{tool}-" in done.stdout
    assert len(list((odd.root / "kept" / "evidence").iterdir())) == 3
    (odd.root / "file").write_text("", encoding="utf-8")
    for taken in ("file/", "file/below/"):
        done = odd.twogate("probe", "counted", "--server", "odd", "--save", taken)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: --save {taken}: this folder cannot be made: ")
        assert done.stdout == ""


def test_secrets_are_neither_shown_nor_kept(odd: Lab) -> None:
    done = odd.twogate("probe", "leak", "--server", "odd", "--save", "kept.json")
    kept = (odd.root / "kept.json").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "the token is [secret]" in done.stdout
    assert "the token is [secret]" in kept
    assert TOKEN not in done.stdout + done.stderr + kept


def test_a_call_that_is_not_answered_ends_with_exit_code_1(odd: Lab) -> None:
    slow = odd.twogate("probe", "slow", "--server", "odd", "--args", '{"seconds": 20}', "--tool-timeout", "0.5")
    assert slow.returncode == 1
    assert "slow did not answer within 0.5 s" in slow.stdout
    gone = odd.twogate("probe", "end", "--server", "odd")
    assert gone.returncode == 1
    assert "no answer" in gone.stdout
    assert "Traceback" not in slow.stderr + gone.stderr


BROKE = "warning: server 'unclean': the connection broke: UnicodeDecodeError: 'utf-8' codec can't decode byte"


@pytest.mark.parametrize(
    ("tool", "code", "outcome", "text"),
    [
        ("after", 0, "result", "le café est prêt"),
        ("instead", 1, "no-answer", "instead did not answer within 1 s"),
        ("gone", 1, "no-answer", "MCPError: Connection closed"),
        ("half", 1, "no-answer", "MCPError: Connection closed"),
    ],
)
def test_output_that_is_no_utf_8_hides_nothing_of_what_was_answered(
    lab: Lab, tool: str, code: int, outcome: str, text: str
) -> None:
    lab.target(f'[servers.unclean]\ncommand = "${{TWOGATE_PYTHON}}"\nargs = ["{UNCLEAN}"]\n')
    done = lab.twogate("probe", tool, "--repeat", "2", "--tool-timeout", "1", "--save", "kept.json")
    assert done.returncode == code, done.stderr
    assert f"  | {text}\n" in done.stdout
    assert "repeats: all 2 calls came back identical" in done.stdout
    assert "saved: kept.json" in done.stdout
    assert done.stderr.startswith(BROKE)
    assert len(done.stderr.splitlines()) == 1
    report = ProbeReport.model_validate_json((lab.root / "kept.json").read_text(encoding="utf-8"))
    assert [(call.outcome, call.text) for call in report.calls] == [(outcome, text)] * 2
    assert report.server_version == "unclean 1"


async def test_a_broken_connection_leaves_the_others_and_the_block_as_they_are(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lab.root)
    lab.target(f"""
[servers.unclean]
command = "{sys.executable}"
args = ["{UNCLEAN}"]

[servers.odd]
command = "{sys.executable}"
args = ["{ODD}"]
""")
    probers: list[Prober] = []

    async def block() -> None:
        async with open_prober(Settings.load()) as prober:
            probers.append(prober)
            assert (await prober.call("gone")).outcome == "no-answer"
            assert (await prober.call("same", {"text": "x"})).text == "Straße x"
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        await block()
    (line,) = probers[0].broken
    assert "server 'unclean'" in line


def test_what_is_no_text_is_named(odd: Lab) -> None:
    done = odd.twogate("probe", "picture", "--server", "odd")
    assert "+ a block of type image image/png" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get_task"], "get_task: several servers have this tool: tasks, more-tasks; choose one by --server"),
        (["get_tsk", "--server", "tasks"], "get_tsk: the target has no such tool; did you mean get_task"),
        (["same", "--server", "od"], "--server 'od': twogate.toml has no such server; did you mean odd?"),
        (["same", "--server", "odd", "--tools", "x"], "--tools: no server asked has a tools_arg in twogate.toml"),
        (["same", "--args", "{"], "--args: is not valid JSON"),
        (["same", "--args", "[1]"], "--args: is list; must be a JSON object"),
        (["same", "--args", "@none.json"], "--args @none.json: cannot be read"),
        (["same", "--save", "no/such/folder.json"], "must be a new file in a folder that exists, or a folder"),
    ],
)
def test_what_cant_be_called_is_one_clear_line(odd: Lab, arguments: list[str], said: str) -> None:
    done = odd.twogate("probe", *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_server_that_does_not_connect_is_named_with_its_last_words(odd: Lab) -> None:
    odd.target('[servers.bad]\ncommand = "/bin/sh"\nargs = ["-c", "echo no database >&2; exit 1"]\n')
    done = odd.twogate("probe", "x")
    assert done.returncode == 1
    assert "error: server 'bad' (/bin/sh -c echo no database >&2; exit 1) does not connect" in done.stderr
    assert "it said: no database" in done.stderr


def test_arguments_may_come_from_a_file(odd: Lab) -> None:
    (odd.root / "args.json").write_text(json.dumps({"text": "from a file"}), encoding="utf-8")
    done = odd.twogate("probe", "same", "--server", "odd", "--args", "@args.json")
    assert "  | Straße from a file" in done.stdout


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("[not-found] There is none", "not-found"),
        ("  [not_found.2] x", "not_found.2"),
        ('{"type": "x-y", "message": "m"}', "x-y"),
        ('{"error": {"code": 404}}', "404"),
        ('{"error": "boom"}', None),
        ("Error: [not-found]", None),
        ("[Two words] x", None),
        ('["a"]', None),
        ("", None),
    ],
)
def test_the_type_of_an_error_is_read_off_its_text(text: str, slug: str | None) -> None:
    assert type_slug(text) == slug
