"""The README is kept true: every command in it is run, as it stands there.

The commands that need keys get them, of a scripted model and a store that stand in for Anthropic, OpenRouter and
Langfuse; the datasets there are a few of the shipped items, so that a whole gate takes seconds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import REPOSITORY, clean_environment

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.model import ScriptedModel

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
ITEMS = {
    "pr": ("pr/search_text/callers", "pr/read_file/head"),
    "merge": ("merge/tasks/hard-same-name-twice", "merge/tasks/single-what-is-public"),
}
SCRIPTS = ("pr", "merge", "qa-repository", "judge")


def commands(block: str) -> list[str]:
    """The commands of a block, continued lines joined, comments taken off."""
    lines = block.replace("\\\n", " ").splitlines()
    return [command for line in lines if (command := re.sub(r"\s{2,}#.*$|\s+#\s.*$", "", line).strip())]


def block_with(text: str) -> list[str]:
    (found,) = [block for block in BLOCKS if text in block]
    return commands(found)


class Machine:
    """A checkout, and an environment in which the commands of the README find what they call."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.environment = environment

    def run(self, command: str, *, expected: int = 0, seconds: float = 280, **more: str) -> str:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=self.root,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `twogate` and `python` of the interpreter that runs the tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, line in (("twogate", f'"{sys.executable}" -m evals'), ("python", f'"{sys.executable}"')):
        (folder / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What git tracks, copied: what a clone would hold."""
    root = tmp_path / "checkout"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, tracked):
        source = REPOSITORY / name
        if source.is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, root / name)
    return root


def few_items(folder: Path) -> Path:
    """A folder of dataset files with a few of the shipped items."""
    folder.mkdir()
    for gate, ids in ITEMS.items():
        content = json.loads((REPOSITORY / "fixtures" / "datasets" / f"{gate}.json").read_text(encoding="utf-8"))
        content["items"] = [item for item in content["items"] if item["id"] in ids]
        assert len(content["items"]) == len(ids)
        (folder / f"{gate}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture
def machine(tmp_path: Path, checkout: Path, programs: Path) -> Iterator[Machine]:
    """A machine with keys for everything."""
    scripts = [REPOSITORY / "fixtures" / "scripts" / f"{name}.json" for name in SCRIPTS]
    with (
        EmbeddedStore(tmp_path / "langfuse.db", shipped_datasets=few_items(tmp_path / "items")) as store,
        ScriptedModel.from_files(scripts) as model,
    ):
        yield Machine(
            checkout,
            clean_environment(
                PATH=f"{programs}:{os.environ['PATH']}",
                PYTHONPATH=str(checkout),
                ANTHROPIC_API_KEY="sk-ant-test",
                ANTHROPIC_BASE_URL=model.base_url,
                OPENROUTER_API_KEY="sk-or-test",
                OPENROUTER_BASE_URL=model.openai_base_url,
                LANGFUSE_PUBLIC_KEY=store.public_key,
                LANGFUSE_SECRET_KEY=store.secret_key,
                LANGFUSE_BASE_URL=store.base_url,
            ),
        )


def test_every_block_is_covered_by_a_test_here() -> None:
    """A new block of commands needs a test of its own."""
    known = [
        "make demo",
        "twogate init",
        "twogate items validate",
        "twogate doctor   ",
        "npx langfuse-cli",
        "twogate qa",
        "twogate verify",
    ]
    assert len(known) == len(BLOCKS)
    for block in BLOCKS:
        assert sum(text in block for text in known) == 1, block


def test_make_demo_runs_both_gates_without_keys(checkout: Path, programs: Path) -> None:
    assert block_with("make demo") == ["make demo", "make test"]
    environment = clean_environment(PATH=f"{programs}:{os.environ['PATH']}", PYTHONPATH=str(checkout))
    plan = subprocess.run(
        ["make", "-n", "demo", "test"], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert ".venv/bin/twogate demo" in plan
    assert "-m pytest" in plan
    output = Machine(checkout, environment).run("twogate demo", seconds=400)
    verdicts = [line for line in output.splitlines() if line.startswith("📊")]
    assert verdicts == [
        "📊 19/20 passed (95.0 %), threshold 90 %: gate passed",
        "📊 27/28 passed (96.4 %), threshold 90 %: gate passed",
    ]
    assert output.count("the model was scripted") == 2
    assert output.count("❌ pr/") + output.count("❌ merge/") == 4  # each failure as it happens, and at the end
    assert "unexpected\n" not in output.replace("nothing unexpected\n", "")
    Machine(checkout, environment).run("twogate demo --gate pr --id /head$ --pass-threshold 1.0")
    Machine(checkout, environment).run("twogate demo --gate pr --id sql-migrations --pass-threshold 1.0", expected=1)


def test_your_server(tmp_path: Path, machine: Machine) -> None:
    root = tmp_path / "mine"
    root.mkdir()
    server = {"command": sys.executable, "args": ["-m", "evals", "serve", str(REPOSITORY / "fixtures" / "repository")]}
    server["env"] = {"PYTHONPATH": str(REPOSITORY)}  # type: ignore[assignment]
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"repository": server}}))
    init, doctor = block_with("twogate init")
    mine = Machine(root, machine.environment)
    mine.run(init)
    for name in ("twogate.toml", ".env.example", ".github/workflows/pr-gate.yml", ".github/workflows/merge-gate.yml"):
        assert (root / name).is_file(), name
    assert "✅ target repository: 4 tools" in mine.run(doctor)


def test_cases(machine: Machine) -> None:
    validate, lint, coverage, push, export = block_with("twogate items validate")
    machine.run(validate)
    machine.run(lint)
    assert "search_text" in machine.run(coverage)
    assert "pr/verify_task/rounding-bug" in machine.run(push)
    assert json.loads(machine.run(export))["dataset"] == "mcp-server-evals-pr"


def test_running(machine: Machine, npm_bin: Path, programs: Path) -> None:
    copy, doctor, pr, merge, one, repeated, show, sweep = block_with("twogate doctor   ")
    machine.run(copy)
    assert "❌" not in machine.run(doctor)
    assert "📊 2/2 passed" in machine.run(pr)
    assert "📊 2/2 passed" in machine.run(merge)
    assert "📊 1/1 passed" in machine.run(one)
    assert "k=3: pass@k" in machine.run(repeated)
    assert "every trial shown passed" in machine.run(show)
    assert "nothing unexpected" in machine.run(sweep)

    (langfuse,) = block_with("npx langfuse-cli")
    (programs / "npx").write_text(f'#!/bin/sh\ntest "$1" = langfuse-cli && shift && exec "{npm_bin}/langfuse" "$@"\n')
    (programs / "npx").chmod(0o755)
    failing = "twogate run --id read_file/head --agent-model claude-sonnet-5 --scripted broken.json"
    script = {"version": 1, "agent": [{"match": {"regex": "."}, "turns": [{"text": "I would rather not."}]}]}
    (machine.root / "broken.json").write_text(json.dumps(script))
    machine.run(failing, expected=1)
    run = max((machine.root / ".twogate" / "runs").iterdir(), key=lambda one: one.stat().st_mtime_ns).name
    output = machine.run(
        langfuse,
        RUN=run,
        PATH=f"{npm_bin}:{machine.environment['PATH']}".replace(f"{npm_bin}:", f"{programs}:{npm_bin}:"),
    )
    assert output.splitlines() == ["pr/read_file/head", "expected a call of read_file, the model made no call"]


def test_questions_and_answers(machine: Machine) -> None:
    qa, lint, script = block_with("twogate qa")
    keyless = Machine(machine.root, clean_environment(PATH=machine.environment["PATH"], PYTHONPATH=str(machine.root)))
    assert "11/12" in keyless.run(qa)
    keyless.run(lint)
    assert "11/12" in machine.run(script)


def test_the_verifier(machine: Machine) -> None:
    verify, serve = block_with("twogate verify")
    assert "passed" in machine.run(verify)
    machine.run(serve)  # its standard input is at its end, so it ends too
