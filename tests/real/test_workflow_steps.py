"""The steps of the gates' workflows, run as a runner does, with forged events. The model is scripted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY
from starlette.types import ASGIApp, Receive, Scope, Send
from workflow_support import (
    GATES,
    SECRETS,
    WORKFLOWS,
    JobRun,
    Runner,
    checkout,
    read_workflow,
    scripts,
)

from evals.embedded.serving import LoopbackServer
from examples.tasks_server.database import Database
from examples.tasks_server.models import NewTask, Slice
from examples.tasks_server.rest import build_rest
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService

pytestmark = pytest.mark.usefixtures("npm_bin")

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


@pytest.mark.parametrize("name", GATES)
def test_a_package_of_the_checkout_called_evals_does_not_disturb_the_report(tmp_path: Path, name: str) -> None:
    root = tmp_path / "checkout"
    (root / "evals").mkdir(parents=True)
    (root / "evals" / "__init__.py").write_text("raise SystemExit('not this one')\n", encoding="utf-8")
    one = runner(root, {})
    one.environment["PYTHONPATH"] = str(REPOSITORY)  # where Twogate is, as an installation would be
    job = one.job(read_workflow(WORKFLOWS / name), "gate", without=("Install", "Gate"))
    assert job.steps["Report"].outcome == "success", job.steps["Report"].output
    assert "came to no verdict" in job.summary


class Recorded:
    """The REST API of a tasks server, with each request's method and how many runs the checkout held by then."""

    def __init__(self, app: ASGIApp, root: Path) -> None:
        self.requests: list[tuple[str, int]] = []
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.requests.append((scope["method"], len(list(self._root.glob(".twogate/runs/*")))))
        await self._app(scope, receive, send)


@dataclass(frozen=True)
class Product:
    url: str
    requests: list[tuple[str, int]]
    names: Callable[[], list[str]]


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """A tasks server with a task that some run left behind, and one of a user."""
    with closing(Database(tmp_path / "tasks.db")) as database:
        tasks = TaskService(database)
        for name in ("eval-left-behind", "of-a-user"):
            tasks.create(NewTask(name=name, title=name, action="count-words", input={"text": "a b"}))
        recorded = Recorded(build_rest(tasks, ScheduleService(database)), tmp_path / "checkout")
        with LoopbackServer(recorded) as server:
            yield Product(
                server.url,
                recorded.requests,
                lambda: sorted(task.name for task in tasks.list(Slice(limit=100)).items),
            )


def merge_gate(root: Path, only: str, url: str = "", **variables: str) -> JobRun:
    """The merge gate's job on one item."""
    one = runner(checkout(root), {}, secrets=KEY, variables={**scripted("merge", f"--id={only}"), **variables})
    one.environment["TASKS_API_URL"] = url
    return one.job(read_workflow(WORKFLOWS / "merge-gate.yml"), "gate", without=("Install",))


def test_the_merge_gate_seeds_before_and_cleans_after(tmp_path: Path, product: Product) -> None:
    job = merge_gate(
        tmp_path / "checkout", "^merge/repository/single-who-must-review$", product.url, TWOGATE_FIXTURES="tasks"
    )
    assert not job.failed, {name: step.output for name, step in job.steps.items()}
    assert [name for name, outcome in job.outcomes().items() if outcome == "success"] == [
        *("Install", "Seed fixtures", "Gate", "Clean fixtures", "Report")
    ]
    assert product.names() == ["eval-fixture-quarter-total", "eval-fixture-word-count", "of-a-user"]
    before = [method for method, runs in product.requests if runs == 0]
    after = [method for method, runs in product.requests if runs == 1]
    assert {"GET", "POST", "DELETE"} <= set(before)
    assert set(after) == {"GET"}  # it looks, and finds nothing left behind
    assert "## ✅ merge gate" in job.summary


def test_fixtures_are_cleaned_after_a_gate_that_failed(tmp_path: Path, product: Product) -> None:
    job = merge_gate(tmp_path / "checkout", "nothing-has-this-id", product.url, TWOGATE_FIXTURES="tasks")
    assert job.failed
    assert job.steps["Gate"].outcome == "failure"
    assert job.steps["Clean fixtures"].outcome == "success"
    assert "came to no verdict" in job.summary


def test_no_gate_runs_on_fixtures_that_could_not_be_seeded(tmp_path: Path) -> None:
    job = merge_gate(tmp_path / "checkout", "any", "ftp://no-such-api", TWOGATE_FIXTURES="tasks")
    assert job.failed
    assert job.outcomes() == {
        "actions/checkout": "noted",
        "actions/setup-python": "noted",
        "Install": "success",
        "Seed fixtures": "failure",
        "Gate": "skipped",
        "Clean fixtures": "failure",
        "Report": "skipped",
        "Keep the run's folder": "noted",
    }
    assert "error: fixtures tasks: base_url" in job.steps["Seed fixtures"].output


def test_a_server_without_state_needs_no_fixtures(tmp_path: Path, product: Product) -> None:
    job = merge_gate(tmp_path / "checkout", "nothing-has-this-id", product.url)
    assert job.steps["Seed fixtures"].outcome == "skipped"
    assert job.steps["Gate"].outcome == "failure"
    assert job.steps["Clean fixtures"].outcome == "skipped"
    assert product.requests == []


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
