"""Workflow files read, and their `run:` steps executed as a runner does: GitHub's own expression library evaluates
`env` and `if`, bash gets the flags a runner gives it. Steps with `uses:` are noted, not run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from lab import REPOSITORY, clean_environment

WORKFLOWS = REPOSITORY / ".github" / "workflows"
NPM = REPOSITORY / "tests" / "real" / "npm"

GATES = ["pr-gate.yml", "merge-gate.yml"]
SECRETS = {
    "pr-gate.yml": {"ANTHROPIC_API_KEY", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL"},
    "merge-gate.yml": {
        "ANTHROPIC_API_KEY",
        "LANGFUSE_PUBLIC_KEY",
        "LANGFUSE_SECRET_KEY",
        "LANGFUSE_BASE_URL",
        "OPENROUTER_API_KEY",
    },
}

_SHELLS = {
    "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
    None: ["bash", "-e"],  # a workflow that names no shell gets no pipefail
}
_CHECKOUT = (
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "twogate.toml",
    ".env.example",
    ".github",
    "evals",
    "docs",
    "examples",
    "fixtures",
)


def workflow_files() -> list[Path]:
    return sorted([*WORKFLOWS.glob("*.yml"), *WORKFLOWS.glob("*.yaml")])


def read_workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in workflow.items()}


def scripts(workflow: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every job's id with each of its steps."""
    for job_id, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield job_id, step


def texts(value: Any) -> Iterator[str]:
    """Every text in a value of a workflow, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


@dataclass(frozen=True)
class Evaluated:
    text: str
    truthy: bool


def evaluate(
    expressions: Mapping[str, str], contexts: Mapping[str, Any], status: str = "success"
) -> dict[str, Evaluated]:
    """The values of expressions (without their braces), by name."""
    done = subprocess.run(
        ["node", str(NPM / "expressions.mjs")],
        input=json.dumps({"contexts": contexts, "status": status, "expressions": expressions}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: Evaluated(**value) for name, value in json.loads(done.stdout).items()}


def _fill(values: Mapping[str, Any], contexts: Mapping[str, Any]) -> dict[str, str]:
    """An `env` or `outputs` with its expressions evaluated: a value is a text, or one expression and nothing else."""
    plain = {name: str(value) for name, value in values.items()}
    inside = {
        name: value.removeprefix("${{").removesuffix("}}").strip()
        for name, value in plain.items()
        if value.startswith("${{")
    }
    assert not [value for name, value in plain.items() if name not in inside and "${{" in value]
    filled = evaluate(inside, contexts) if inside else {}
    return {name: filled[name].text if name in filled else value for name, value in plain.items()}


@dataclass
class StepRun:
    name: str
    outcome: str
    """`success`, `failure`, `skipped`, or `noted` for a step with `uses:`."""
    output: str = ""
    with_: dict[str, Any] = field(default_factory=dict)


@dataclass
class JobRun:
    steps: dict[str, StepRun]
    outputs: dict[str, str]
    failed: bool
    summary: str
    """What the steps wrote into $GITHUB_STEP_SUMMARY."""

    def outcomes(self) -> dict[str, str]:
        return {name: step.outcome for name, step in self.steps.items()}


def step_name(step: Mapping[str, Any]) -> str:
    return str(step.get("name") or step["uses"].split("@")[0])


@dataclass(frozen=True)
class Runner:
    """A checkout of its own in `root`, and what GitHub says of the event."""

    root: Path
    contexts: dict[str, Any]
    environment: dict[str, str]
    """More variables of the machine, GITHUB_* among them."""

    def job(self, workflow: Mapping[str, Any], job_id: str, without: tuple[str, ...] = ()) -> JobRun:
        """Run a job's steps in order; those named in `without` are taken as successful."""
        job = workflow["jobs"][job_id]
        shell = _SHELLS[workflow.get("defaults", {}).get("run", {}).get("shell")]
        files = {name: self.root.parent / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        summary, steps = "", {}
        contexts = {**self.contexts, "steps": {}}
        status = "success"
        for step in job["steps"]:
            run = StepRun(step_name(step), "success", with_=step.get("with", {}))
            steps[run.name] = run
            outputs: dict[str, str] = {}
            if not self._wanted(step, contexts, status):
                run.outcome = "skipped"
            elif "uses" in step:
                run.outcome = "noted"
            elif run.name not in without:
                for file in files.values():
                    file.write_text("", encoding="utf-8")
                done = self._bash(shell, step, contexts, files)
                run.output = done.stdout
                run.outcome = "success" if done.returncode == 0 else "failure"
                summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
                lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
                outputs = dict(line.split("=", 1) for line in lines)
            if run.outcome == "failure":
                status = "failure"
            if "id" in step:
                contexts["steps"][step["id"]] = {"outcome": run.outcome, "outputs": outputs}
        return JobRun(steps, _fill(job.get("outputs", {}), contexts), status == "failure", summary)

    def _wanted(self, step: Mapping[str, Any], contexts: Mapping[str, Any], status: str) -> bool:
        if "if" not in step:
            return status == "success"
        condition = step["if"]
        if not any(f"{function}()" in condition for function in ("always", "success", "failure", "cancelled")):
            condition = f"success() && ({condition})"
        return evaluate({"if": condition}, contexts, status)["if"].truthy

    def _bash(
        self, shell: list[str], step: Mapping[str, Any], contexts: Mapping[str, Any], files: Mapping[str, Path]
    ) -> subprocess.CompletedProcess[str]:
        script = self.root.parent / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        environment = clean_environment(
            CI="true",
            PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            PYTHONPATH=str(self.root),
            **{name: str(file) for name, file in files.items()},
        )
        return subprocess.run(
            [*shell, str(script)],
            cwd=self.root,
            env={**environment, **self.environment, **_fill(step.get("env", {}), contexts)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )


def checkout(root: Path) -> Path:
    """The parts of the repository that the gates use, copied to `root`."""
    for name in _CHECKOUT:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            root.mkdir(exist_ok=True)
            shutil.copy2(source, root / name)
    return root
