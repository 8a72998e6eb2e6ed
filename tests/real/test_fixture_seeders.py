"""Real seeder processes against the tasks server's REST API: side by side, killed half-way, interrupted, in trouble."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lab import REPOSITORY, clean_environment
from starlette.types import ASGIApp, Receive, Scope, Send

from evals.embedded.serving import LoopbackServer
from examples.tasks_server.database import Database
from examples.tasks_server.faults import FaultyApp, parse_fault
from examples.tasks_server.models import NewSchedule, NewTask, Slice
from examples.tasks_server.rest import build_rest
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService

TOKEN = "token-of-a-test"
AS_SEEDED = {
    "tasks": ["evaluations", "eval-fixture-quarter-total", "eval-fixture-word-count"],
    "schedules": ["eval-fixture-monday-total", "evaluations-nightly"],
}


@dataclass
class Served:
    """The tasks server in this process, with a log of what it was asked."""

    tasks: TaskService
    schedules: ScheduleService
    url: str = ""
    writes: list[tuple[str, str]] = field(default_factory=list)
    pause: float = 0.0
    """Seconds before each answer to a request that writes."""

    def state(self) -> dict[str, list[str]]:
        return {
            "tasks": sorted(one.name for one in self.tasks.list(Slice(limit=1000), highest_limit=1000).items),
            "schedules": sorted(one.name for one in self.schedules.list(Slice(limit=1000), highest_limit=1000).items),
        }

    def content(self) -> list[dict[str, Any]]:
        """Everything but ids and times."""
        varying = {"id", "task_id", "created_at", "updated_at", "next_run_at"}
        everything = [
            *self.tasks.list(Slice(limit=1000), highest_limit=1000).items,
            *self.schedules.list(Slice(limit=1000), highest_limit=1000).items,
        ]
        return sorted((one.model_dump(exclude=varying) for one in everything), key=lambda one: str(one["name"]))

    def leave(self, count: int) -> None:
        """What runs leave: tasks, every fifth published, every fourth with a schedule."""
        for number in range(count):
            name = f"eval-task-{number:03}"
            self.tasks.create(NewTask(name=name, action="count-words", description="left by a run"))
            if number % 5 == 0:
                self.tasks.publish(name)
            if number % 4 == 0:
                self.schedules.create(NewSchedule(name=f"eval-schedule-{number:03}", task=name, cron="@daily"))

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not reached():
            assert time.monotonic() < deadline, "the seeder did not get that far"
            time.sleep(0.01)


class Logged:
    """Notes and slows requests that write."""

    def __init__(self, app: ASGIApp, served: Served) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] != "GET":
            self._served.writes.append((scope["method"], scope["path"]))
            await asyncio.sleep(self._served.pause)
        await self._app(scope, receive, send)


@contextmanager
def serving(*faults: str) -> Iterator[Served]:
    with closing(Database(None)) as database:
        served = Served(TaskService(database), ScheduleService(database))
        served.tasks.create(NewTask(name="evaluations", action="count-words", description="A user's own"))
        served.schedules.create(NewSchedule(name="evaluations-nightly", task="evaluations", cron="@daily"))
        app: ASGIApp = build_rest(served.tasks, served.schedules, token=TOKEN)
        if faults:
            app = FaultyApp(app, [parse_fault(fault) for fault in faults])
        with LoopbackServer(Logged(app, served)) as server:
            served.url = server.url
            yield served


def start(served: Served, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=REPOSITORY,
        env=clean_environment(TASKS_API_URL=served.url, TASKS_API_TOKEN=TOKEN, PYTHONPATH=str(REPOSITORY)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return out


def test_two_seeders_at_once_end_in_the_state_of_one() -> None:
    with serving() as served:
        finish(start(served, "scripts/schedules_fixtures.py", "seed"))
        alone = served.content()
        assert served.state() == {key: sorted(names) for key, names in AS_SEEDED.items()}
    with serving() as served:
        served.leave(30)
        served.pause = 0.005
        both = [start(served, "scripts/fixtures.py", "tasks", "seed") for _ in range(2)]
        for process in both:
            finish(process)
        # only the schedules family makes its permanent fixture
        assert served.state()["tasks"] == sorted(AS_SEEDED["tasks"])
        both = [start(served, "scripts/schedules_fixtures.py", "seed") for _ in range(2)]
        for process in both:
            finish(process)
        assert served.content() == alone
        finish(start(served, "scripts/schedules_fixtures.py", "status"))


@pytest.mark.parametrize("after", [1, 14, 20])
def test_a_seeder_killed_half_way_is_made_good_by_the_next(after: int) -> None:
    with serving() as served:
        finish(start(served, "scripts/schedules_fixtures.py", "seed"))
        alone = served.content()
    with serving() as served:
        served.leave(12)  # with schedules and unpublishing: 3 + 3 + 12 writes, then 3 that seed
        served.pause = 0.05
        killed = start(served, "-m", "evals", "fixtures", "tasks", "seed")
        served.until(lambda: len(served.writes) >= after or killed.poll() is not None)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=30)
        assert killed.returncode == -signal.SIGKILL
        served.pause = 0.0
        finish(start(served, "-m", "evals", "fixtures", "tasks", "seed"))
        finish(start(served, "-m", "evals", "fixtures", "schedules", "seed"))
        assert served.content() == alone
        assert not [path for method, path in served.writes if "evaluations" in path]


def test_trouble_on_the_way_is_waited_out_and_a_dry_run_writes_nothing() -> None:
    with serving("429:2:0", "503:2:0", "500:1") as served:
        served.leave(4)
        before = served.content()
        said = finish(start(served, "scripts/tasks_fixtures.py", "seed", "--dry-run"))
        assert "tasks: would delete eval-task-000" in said
        assert "schedules: would delete eval-schedule-000" in said
        assert "tasks: would create eval-fixture-word-count" in said
        assert served.writes == []
        assert served.content() == before


def test_a_resource_of_somebody_else_that_holds_a_leftover_is_named_and_kept() -> None:
    with serving() as served:
        served.leave(1)
        served.schedules.create(NewSchedule(name="payday", task="eval-task-000", cron="@monthly"))
        process = start(served, "scripts/tasks_fixtures.py", "clean")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "409 task-has-schedules" in err
        assert "payday" in err
        assert served.state()["schedules"] == ["evaluations-nightly", "payday"]


AROUND_A_RUN = """
import sys, time
from evals.fixtures import seeded
from evals.settings import Settings
with seeded(["tasks"], Settings.load(), print):
    print("running", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_is_cleaned_after(number: int) -> None:
    with serving() as served:
        run = start(served, "-c", AROUND_A_RUN)
        assert run.stdout is not None
        watchdog = threading.Timer(60, run.kill)
        watchdog.start()
        while "running" not in (line := run.stdout.readline()):
            assert line, "the run ended before it ran"
        watchdog.cancel()
        served.leave(3)
        os.kill(run.pid, number)
        run.communicate(timeout=60)
        assert run.returncode != 0
        assert served.state() == {
            "tasks": sorted(AS_SEEDED["tasks"]),
            "schedules": ["evaluations-nightly"],
        }


def test_the_scripts_explain_themselves(tmp_path: Path) -> None:
    for script in ("fixtures.py", "tasks_fixtures.py", "schedules_fixtures.py"):
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "scripts" / script), "--help"],
            cwd=tmp_path,
            env=clean_environment(PYTHONPATH=str(REPOSITORY)),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "seed|clean|status" in done.stdout
