"""A stateful run with `--fixtures`: Claude Code, the tasks server over MCP, and its REST API over the same state."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab, agent_item

from evals.embedded.serving import LoopbackServer
from examples.tasks_server.database import Database
from examples.tasks_server.models import NewTask, Slice
from examples.tasks_server.rest import build_rest
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService

DATASET = "stateful-merge"
QUESTION = "Please set up a word count called eval-report."


@pytest.fixture
def stateful(lab: Lab) -> Lab:
    lab.target(
        f"""
[servers.tasks]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "examples.tasks_server", "--db", "{lab.root}/tasks.db"]
env = {{ PYTHONPATH = "{REPOSITORY}" }}
"""
    )
    lab.dataset([agent_item("make", QUESTION)], DATASET)
    return lab


def script(lab: Lab) -> Path:
    arguments = {"name": "eval-report", "action": "count-words"}
    turns = [{"calls": [{"name": "create_task", "input": arguments}]}, {"text": "It is there."}]
    return lab.script(
        [{"query": QUESTION, "turns": turns}],
        [{"query": QUESTION, "answers": [{"verdict": "PASS", "reason": "it is there"}]}],
    )


def test_a_run_starts_from_seeded_state_and_leaves_none(stateful: Lab) -> None:
    with closing(Database(stateful.root / "tasks.db")) as database:
        tasks, schedules = TaskService(database), ScheduleService(database)
        # the name that the agent needs is still taken: without seeding its call fails
        tasks.create(NewTask(name="eval-report", action="count-words"))
        tasks.create(NewTask(name="payroll", action="count-words"))
        with LoopbackServer(build_rest(tasks, schedules)) as server:
            done = stateful.twogate(
                "run",
                f"--dataset={DATASET}",
                "--fixtures=tasks",
                f"--scripted={script(stateful)}",
                TASKS_API_URL=server.url,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        (trial,) = stateful.trials().values()
        assert trial.outcome == "passed"
        assert "tasks: deleted eval-report" in done.stdout
        assert "fixtures: 1 removed that the run had left" in done.stdout
        names = sorted(one.name for one in tasks.list(Slice(limit=100)).items)
        assert [name for name in names if not name.startswith("example-")] == [
            "eval-fixture-quarter-total",
            "eval-fixture-word-count",
            "payroll",
        ]


def test_a_run_whose_fixtures_cant_be_seeded_spends_nothing(stateful: Lab) -> None:
    unknown = stateful.twogate("run", f"--dataset={DATASET}", "--fixtures=task", f"--scripted={script(stateful)}")
    assert unknown.returncode == 1
    assert "there is no family 'task'" in unknown.stderr
    away = stateful.twogate(
        "run",
        f"--dataset={DATASET}",
        "--fixtures=tasks",
        f"--scripted={script(stateful)}",
        TASKS_API_URL="http://127.0.0.1:9",
    )
    assert away.returncode == 1
    assert "error: fixtures tasks: list of tasks: GET http://127.0.0.1:9/v1/tasks: nothing answers there" in away.stderr
    assert stateful.runs() == []
