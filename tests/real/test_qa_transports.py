"""`twogate qa` with real servers over all three transports. The model is scripted; the calls really run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from lab import REPOSITORY, Lab, clean_environment
from langfuse import Langfuse

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.serving import LoopbackServer
from evals.qa.file import parse_qa
from evals.qa.report import QaReport
from evals.workspace.safe import SafeWorkspace
from evals.workspace.server import RepositoryServer
from examples.tasks_server.database import Database
from examples.tasks_server.mcp_app import build_mcp
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.seed import BUILT_IN, plant, read_seed
from examples.tasks_server.tasks import TaskService

TRANSPORTS = ("stdio", "sse", "http")
ODD = REPOSITORY / "tests" / "agents" / "odd_server.py"
# A server that tells the variables it was started with.
SERVER = '''
import os
import sys
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("variables")

@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def variable(name: str) -> str:
    """The value of a variable."""
    if name == "ARGUMENTS":
        return " ".join(sys.argv)
    return os.environ.get(name, "not set")

@mcp.tool()
def remember(text: str) -> str:
    """Keep a text."""
    return "kept"

mcp.run("stdio")
'''


def final(answer: str, feedback: str = "read_file: fine.") -> dict[str, Any]:
    return {"text": f"<summary>Looked.</summary>\n<feedback>{feedback}</feedback>\n<response>{answer}</response>"}


def questions(lab: Lab, *pairs: tuple[str, str]) -> Path:
    """A question file in the lab; a run takes few questions, whatever lint says."""
    text = "".join(
        f"<qa_pair><question>{escape(question)}</question><answer>{escape(answer)}</answer></qa_pair>"
        for question, answer in pairs
    )
    path = lab.root / "evaluation.xml"
    path.write_text(f"<evaluation>{text}</evaluation>", encoding="utf-8")
    return path


def report_of(path: Path) -> QaReport:
    return QaReport.model_validate_json(path.read_text(encoding="utf-8"))


@contextmanager
def options_for(target: str, transport: str) -> Iterator[list[str]]:
    """The options that reach a bundled server over a transport."""
    if transport == "stdio":
        words = ["-m", "evals", "serve", str(REPOSITORY / "fixtures" / "repository")]
        words = words if target == "repository" else ["-m", "examples.tasks_server", "--read-only"]
        yield ["-t", "stdio", "-c", sys.executable, "-e", f"PYTHONPATH={REPOSITORY}", "-a", "--", *words]
        return
    with SafeWorkspace(REPOSITORY / "fixtures" / "repository") as workspace:
        if target == "repository":
            mcp: Any = RepositoryServer(workspace).mcp
        else:
            database = Database(None)
            plant(database, read_seed(BUILT_IN))
            mcp = build_mcp(TaskService(database), ScheduleService(database), read_only=True)
        app = mcp.sse_app() if transport == "sse" else mcp.streamable_http_app()
        with LoopbackServer(app) as server:
            yield ["-t", transport, "-u", f"{server.url}/{'sse' if transport == 'sse' else 'mcp'}"]


@pytest.mark.parametrize("target", ["repository", "tasks"])
def test_a_shipped_example_gives_the_same_over_the_three_transports(lab: Lab, target: str) -> None:
    came: dict[str, list[tuple[Any, ...]]] = {}
    for transport in TRANSPORTS:
        json_path = lab.root / f"{transport}.json"
        with options_for(target, transport) as options:
            done = lab.twogate(
                "qa",
                str(REPOSITORY / "fixtures" / "qa" / f"{target}.xml"),
                *("--scripted", str(REPOSITORY / "fixtures" / "scripts" / f"qa-{target}.json")),
                *("--json", str(json_path), "--pass-threshold", "0.9"),
                *options,
            )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"# Evaluation report: {target}.xml\n")
        report = report_of(json_path)
        came[transport] = [
            (task.item, task.actual, task.outcome, [(use.tool, use.calls, use.errors) for use in task.tools])
            for task in report.tasks
        ]
        assert report.total == 12
        assert report.total_tool_calls >= 12
        trials = lab.trials()
        assert all(call.result for trial in trials.values() for call in trial.conversation.calls)  # type: ignore[union-attr]
    assert came["stdio"] == came["sse"] == came["http"]
    outcomes = [outcome for _, _, outcome, _ in came["stdio"]]
    # One answer of the repository's script is a near miss on purpose.
    assert outcomes.count("failed") == (1 if target == "repository" else 0)
    assert outcomes.count("error") == 0


def test_the_example_target_needs_no_options_and_no_keys(lab: Lab) -> None:
    done = lab.twogate(
        "qa",
        str(REPOSITORY / "fixtures" / "qa" / "repository.xml"),
        *("--scripted", str(REPOSITORY / "fixtures" / "scripts" / "qa-repository.json")),
        *("--id", "/0[45]$", "--pass-threshold", "0.6"),
    )
    assert done.returncode == 1, "one of two is below 0.6"
    assert "- **Accuracy**: 1/2 (50.0 %)" in done.stdout
    assert "The model was scripted" in done.stdout
    assert "- **Near miss**: differs in punctuation alone" in done.stdout
    assert "1 with an error" in done.stdout
    summary = lab.summary()
    assert (summary.gate, summary.passed, summary.failed, summary.requested) == ("qa", 1, 1, 2)
    assert summary.trials_recorded == summary.trials_expected == 2
    # exact_match, tool_calls and total_tokens a trial, accuracy for the run
    assert summary.scores_recorded == summary.scores_expected == 7
    with EmbeddedStore(lab.root / ".twogate" / "langfuse.db") as store:
        client = Langfuse(public_key=store.public_key, secret_key=store.secret_key, base_url=store.base_url)
        (experiment,) = client.api.experiments.list(
            from_start_time=summary.started_at, id=summary.experiment_id, fields="core,scores", score_limit=50
        ).data
        client.shutdown()
    assert {score.name: score.value for score in experiment.scores or []}["accuracy"] == 0.5


def test_a_server_that_dies_in_the_middle_costs_one_trial(lab: Lab) -> None:
    file = questions(lab, ("First?", "plain"), ("Second?", "plain"), ("Third?", "plain"))
    script = lab.script(
        [
            {"query": "First?", "turns": [{"calls": [{"name": "text"}]}, final("plain")]},
            {"query": "Second?", "turns": [{"calls": [{"name": "text"}]}, {"calls": [{"name": "die"}]}, final("x")]},
            {"query": "Third?", "turns": [{"calls": [{"name": "text"}]}, final("other")]},
        ]
    )
    done = lab.twogate("qa", "-c", sys.executable, "-a", str(ODD), "stdio", str(file), "--scripted", str(script))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    outcomes = {item: trial.outcome for item, trial in lab.trials().items()}
    assert outcomes == {"evaluation/01": "passed", "evaluation/02": "error", "evaluation/03": "failed"}
    report = report_of(lab.runs()[-1] / "report.json")
    assert (report.correct, report.total, report.errors) == (1, 3, 1)
    (second,) = [task for task in report.tasks if task.number == 2]
    assert "the server 'server' was gone during the call of die" in second.reason
    assert [(use.tool, use.calls) for use in second.tools] == [("text", 1), ("die", 1)]
    assert "🔥 error" in done.stdout
    assert "- **Never completed**: 1 errors, 0 not run" in done.stdout


def evaluation_script(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    """``python scripts/evaluation.py …`` as it is written, in the lab's folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["python", str(REPOSITORY / "scripts" / "evaluation.py"), *words],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY), PATH=path),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_the_well_known_script_works_as_written_and_keeps_secrets(lab: Lab) -> None:
    (lab.root / "server.py").write_text(SERVER, encoding="utf-8")
    file = questions(lab, ("What is A?", "1"), ("What is B?", "2"), ("What is the key?", "no"))
    turns = {name: [{"calls": [{"name": "variable", "input": {"name": name}}]}] for name in ("A", "B", "API_KEY")}
    turns["API_KEY"] += [
        {
            "calls": [
                {"name": "variable", "input": {"name": name}} for name in ("GITHUB_PAT", "DATABASE_URL", "ARGUMENTS")
            ]
        }
    ]
    script = lab.script(
        [
            {"query": "What is A?", "turns": [*turns["A"], final("1")]},
            {"query": "What is B?", "turns": [*turns["B"], final("2")]},
            {"query": "What is the key?", "turns": [*turns["API_KEY"], final("sesame-8731")]},
        ]
    )
    options = ["-t", "stdio", "-c", "python", "-a", "server.py", "-e", "A=1", "-e", "B=2", "API_KEY=sesame-8731"]
    options += ["GITHUB_PAT=ghp-sesame-1", "DATABASE_URL=postgres://u:sesame-2@h/d"]
    options += ["-a=--api-key=sesame-3333", "-a=--password", "-a", "sesame-4444"]
    done = evaluation_script(lab, *options, file.name, "--scripted", script.name, "-o", "report.md")
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert "- **Accuracy**: 2/3 (66.7 %)" in (lab.root / "report.md").read_text(encoding="utf-8")
    results = {item: trial.conversation.calls[0].result for item, trial in lab.trials().items()}  # type: ignore[union-attr]
    assert results == {"evaluation/01": "1", "evaluation/02": "2", "evaluation/03": "[secret]"}
    written = [*lab.runs()[-1].iterdir(), lab.root / "report.md", lab.root / ".twogate" / "langfuse.db"]
    assert len(written) > 5
    assert not any(b"sesame" in path.read_bytes() for path in written)
    assert "sesame" not in done.stderr
    told = [call.result for call in lab.trials()["evaluation/03"].conversation.calls[1:]]  # type: ignore[union-attr]
    assert told == ["[secret]", "[secret]", "server.py --api-key=[secret] --password [secret]"]
    assert "server.py --api-key=… --password … (stdio)" in done.stderr
    record = json.loads((lab.runs()[-1] / "run.json").read_text(encoding="utf-8"))
    assert "API_KEY=…" in record["command"]


def test_without_a_key_and_a_script_nothing_is_spent(lab: Lab) -> None:
    file = questions(lab, ("What is A?", "TODO"))
    done = lab.twogate("qa", str(file), "--target", "nowhere.toml")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert "pair 1 (line 1): answer: is the placeholder 'TODO'" in lines[0]
    assert "there is no such file" in lines[1]
    assert "ANTHROPIC_API_KEY is not set" in lines[2]
    assert "--scripted SCRIPT" in lines[2]
    assert lab.runs() == []


def test_a_server_that_does_not_connect_is_said_before_anything_is_spent(lab: Lab) -> None:
    file = questions(lab, ("What is A?", "1"))
    script = lab.script([{"query": "What is A?", "turns": [final("1")]}])
    done = lab.twogate("qa", str(file), "-c", sys.executable, "-a", "nowhere.py", "--scripted", str(script))
    assert done.returncode == 1
    assert "server 'server'" in done.stderr
    assert "can't open file" in done.stderr
    assert lab.runs() == []


def test_solving_proposes_in_a_new_file(lab: Lab) -> None:
    (lab.root / "server.py").write_text(SERVER, encoding="utf-8")
    file = questions(lab, ("Right?", "1"), ("Wrong?", "1"), ("Torn?", "1"), ("Spelt?", "a"), ("Unsolved?", "1"))
    before = file.read_bytes()
    keep = {"calls": [{"name": "remember", "input": {"text": "x"}}]}
    script = lab.script(
        [
            {"query": "Right?", "turns": [{"calls": [{"name": "variable", "input": {"name": "A"}}]}, final("1")]},
            {"query": "Wrong?", "turns": [keep, final("2 < 3")]},
            {"query": "Torn?", "trials": [[final("1")], [final("2")]]},
            {"query": "Spelt?", "turns": [final("A")]},
            {"query": "Unsolved?", "turns": [final("NOT_FOUND")]},
        ]
    )
    words = ["qa", "solve", str(file), "-n", "2", "-c", sys.executable, "-a", "server.py", "--scripted", str(script)]
    done = lab.twogate(*words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("confirmed, 2 of 2 solvers answer '1'")
    assert "'1' is likely wrong: 2 of 2 solvers answer '2 < 3'" in lines[1]
    assert lines[1].endswith("solving it called remember, not marked read-only")
    assert "the solvers disagree" in lines[2]
    assert "differ in case alone" in lines[3]
    assert "0 of 2 solvers had an answer" in lines[4]
    assert lines[5].startswith("5 pairs: 1 confirmed, 2 with another answer proposed, 2 undecided, 1 that called")
    assert file.read_bytes() == before
    solved = (lab.root / "evaluation.solved.xml").read_text(encoding="utf-8")
    assert "<question>Wrong?</question><answer>2 &lt; 3</answer> <!-- solve: pair 2" in solved
    assert "<question>Right?</question><answer>1</answer></qa_pair>" in solved
    assert "gate passed" not in done.stderr
    assert ": expected " not in done.stderr, "another answer than the written one is no failure"
    again = lab.twogate(*words)
    assert again.returncode == 1
    assert "is there already; move it away" in again.stderr


def test_solving_without_a_measured_trial_fails_and_says_why(lab: Lab) -> None:
    (lab.root / "server.py").write_text(SERVER, encoding="utf-8")
    file = questions(lab, ("Right?", "1"), ("Bare?", "2"), ("Odd?", "3"))
    script = lab.script(
        [
            {"query": "Right?", "turns": [final("1")], "faults": [{"kind": "401", "times": "always"}]},
            {"query": "Bare?", "turns": [final("TODO")]},
            {"query": "Odd?", "turns": [final("bell\x07")]},
        ]
    )
    words = ["-n", "2", "-c", sys.executable, "-a", "server.py", "--scripted", str(script)]
    done = lab.twogate("qa", "solve", str(file), *words)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "2 ended in an error: the model's API answered 401: invalid x-api-key" in lines[0]
    assert "is no answer for a file: 'TODO' is a placeholder" in lines[1]
    assert "'bell\\x07' has characters that no XML file can hold" in lines[2]
    assert done.stderr.splitlines()[-1] == "error: every trial of pair 1 ended in an error; solve them again by --id"
    assert "gate passed" not in done.stderr
    new = lab.root / "evaluation.solved.xml"
    assert [one.answer for one in parse_qa(new.read_bytes(), new).pairs] == ["1", "2", "3"]
