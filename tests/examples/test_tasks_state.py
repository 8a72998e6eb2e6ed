"""The rules about state, on the services themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from examples.tasks_server.database import Database, DatabaseError
from examples.tasks_server.errors import TasksError
from examples.tasks_server.models import NewRun, NewSchedule, NewTask, ScheduleChanges, Slice, TaskChanges
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.seed import BUILT_IN, SeedError, plant, read_seed
from examples.tasks_server.tasks import TaskService

NOW = datetime(2026, 8, 7, 9, 30, tzinfo=UTC)


@dataclass(frozen=True)
class State:
    database: Database
    tasks: TaskService
    schedules: ScheduleService

    def task(self, name: str = "eval-sum", description: str = "") -> str:
        new = NewTask(name=name, action="sum-numbers", input={"numbers": [1, 2]}, description=description)
        return self.tasks.create(new).id

    def schedule(self, name: str = "eval-daily", task: str = "eval-sum") -> str:
        return self.schedules.create(NewSchedule(name=name, task=task, cron="@daily")).id


@pytest.fixture
def state() -> Iterator[State]:
    database = Database(None)
    yield State(database, TaskService(database, lambda: NOW), ScheduleService(database, lambda: NOW))
    database.close()


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(TasksError) as caught:
        act()
    text = caught.value.tool_text()
    assert text.startswith(f"[{caught.value.type}] ")
    assert "report it at" in text
    return caught.value.type


def test_names_are_unique_and_found_whatever_the_case(state: State) -> None:
    task_id = state.task("Eval-Sum")
    assert refusal(lambda: state.task("eval-SUM")) == "task-name-taken"
    assert state.tasks.get("EVAL-sum").id == task_id
    assert state.tasks.get(task_id).name == "Eval-Sum"
    state.schedule("Eval-Daily", "eval-sum")
    assert refusal(lambda: state.schedule("eval-daily")) == "schedule-name-taken"
    # A task's name does not take a schedule's.
    state.schedule("eval-sum")


def test_the_refusal_of_a_taken_name_says_which_task_has_it(state: State) -> None:
    task_id = state.task("eval-sum")
    with pytest.raises(TasksError) as caught:
        state.task("EVAL-SUM")
    assert f'"eval-sum" exists already (id {task_id})' in str(caught.value)


def test_a_task_may_change_the_case_of_its_own_name(state: State) -> None:
    state.task("eval-sum")
    assert state.tasks.update("eval-sum", TaskChanges(name="Eval-Sum")).name == "Eval-Sum"
    state.task("eval-other")
    assert refusal(lambda: state.tasks.update("eval-other", TaskChanges(name="EVAL-SUM"))) == "task-name-taken"


def test_an_update_keeps_what_it_does_not_name(state: State) -> None:
    state.task(description="Adds up")
    changed = state.tasks.update("eval-sum", TaskChanges(title="Sum", input={"numbers": [9]}))
    assert (changed.title, changed.description, changed.input) == ("Sum", "Adds up", {"numbers": [9]})
    assert state.tasks.update("eval-sum", TaskChanges(description="")).description == ""
    assert refusal(lambda: state.tasks.update("eval-sum", TaskChanges())) == "nothing-to-change"


def test_a_published_task_is_not_deleted_or_renamed(state: State) -> None:
    state.task(description="Adds up")
    published = state.tasks.publish("eval-sum")
    assert published.public_url == "https://tasks.example.com/public/eval-sum"
    assert refusal(lambda: state.tasks.delete("eval-sum", force=True)) == "task-is-published"
    assert refusal(lambda: state.tasks.update("eval-sum", TaskChanges(name="eval-new"))) == "task-is-published"
    assert refusal(lambda: state.tasks.update("eval-sum", TaskChanges(description=" "))) == "task-is-published"
    assert state.tasks.publish("eval-sum") == published
    assert state.tasks.unpublish("eval-sum").public_url is None
    assert state.tasks.unpublish("eval-sum").published is False
    state.tasks.delete("eval-sum")
    assert refusal(lambda: state.tasks.get("eval-sum")) == "task-not-found"


def test_only_a_described_task_is_published(state: State) -> None:
    state.task()
    assert refusal(lambda: state.tasks.publish("eval-sum")) == "description-missing"
    assert state.tasks.get("eval-sum").published is False


def test_a_task_with_schedules_needs_force(state: State) -> None:
    state.task()
    state.schedule("eval-a")
    state.schedule("eval-b")
    with pytest.raises(TasksError, match=r"\[task-has-schedules\].*eval-a, eval-b"):
        state.tasks.delete("eval-sum")
    assert state.tasks.delete("eval-sum", force=True).deleted_schedules == ["eval-a", "eval-b"]
    assert state.schedules.list(Slice()).total == 0


def test_a_run_lays_its_input_over_the_saved_one(state: State) -> None:
    state.tasks.create(
        NewTask(name="eval-mail", action="fill-template", input={"template": "{{a}}", "values": {"a": "x"}})
    )
    first = state.tasks.run("eval-mail", NewRun())
    second = state.tasks.run("EVAL-MAIL", NewRun(input={"values": {"a": "y"}}))
    third = state.tasks.run("eval-mail", NewRun(input={"values": {}}))
    assert [(run.number, run.status, run.result) for run in (first, second, third)] == [
        (1, "succeeded", {"text": "x"}),
        (2, "succeeded", {"text": "y"}),
        (3, "failed", None),
    ]
    assert third.error == "the template needs values for: a"
    assert state.tasks.get("eval-mail").input["values"] == {"a": "x"}
    assert state.tasks.get_run("eval-mail") == third
    assert state.tasks.get_run("eval-mail", 1) == first
    assert state.tasks.get("eval-mail").run_count == 3
    failed = state.tasks.list_runs(Slice(), task="eval-mail", status="failed")
    assert failed.items == [third]
    assert refusal(lambda: state.tasks.get_run("eval-mail", 4)) == "run-not-found"
    assert refusal(lambda: state.tasks.get_run("eval-mail", 10**30)) == "run-not-found"


def test_an_override_may_not_grow_past_the_limit_of_an_input(state: State) -> None:
    state.tasks.create(NewTask(name="eval-big", action="count-words", input={"text": "x" * 10_000}))
    assert refusal(lambda: state.tasks.run("eval-big", NewRun(input={"more": "y" * 10_000}))) == "input-too-large"
    assert state.tasks.get("eval-big").run_count == 0


def test_a_schedule_says_when_it_runs_next(state: State) -> None:
    state.task()
    new = NewSchedule(name="eval-daily", task="eval-sum", cron="0 9 * * *", timezone="Europe/Prague")
    assert state.schedules.create(new).next_run_at == "2026-08-08T07:00:00Z"
    assert state.schedules.update("eval-daily", ScheduleChanges(enabled=False)).next_run_at is None
    moved = state.schedules.update("eval-daily", ScheduleChanges(enabled=True, timezone="UTC", cron=" @hourly "))
    assert (moved.next_run_at, moved.cron) == ("2026-08-07T10:00:00Z", "@hourly")


def test_a_schedule_can_move_to_another_task_and_outlives_neither_check(state: State) -> None:
    state.task("eval-one")
    two = state.task("eval-two")
    state.schedule(task="eval-one")
    assert refusal(lambda: state.schedules.update("eval-daily", ScheduleChanges(task="eval-3"))) == "task-not-found"
    assert state.schedules.update("eval-daily", ScheduleChanges(task="EVAL-TWO")).task_id == two
    assert state.tasks.delete("eval-one").deleted_schedules == []
    assert refusal(lambda: state.tasks.delete("eval-two")) == "task-has-schedules"
    state.schedules.delete("eval-daily")
    state.tasks.delete("eval-two")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"cron": "61 * * * *"}, "invalid-cron"),
        ({"timezone": "Prague"}, "invalid-timezone"),
        ({"name": "no spaces"}, "invalid-name"),
        ({"task": "eval-missing"}, "task-not-found"),
        ({"task": "x" * 10_000}, "task-not-found"),
        ({"input": {"x": "y" * 20_000}}, "input-too-large"),
    ],
)
def test_a_bad_schedule_is_refused_and_nothing_saved(state: State, fields: dict[str, object], kind: str) -> None:
    state.task()
    good = NewSchedule(name="eval-daily", task="eval-sum", cron="@daily")
    assert refusal(lambda: state.schedules.create(good.model_copy(update=fields))) == kind
    assert state.schedules.list(Slice()).total == 0


def test_pages_neither_skip_nor_repeat_while_the_list_changes(state: State) -> None:
    for number in range(7):
        state.task(f"eval-{number}00")
    first = state.tasks.list(Slice(limit=3))
    assert [task.name for task in first.items] == ["eval-600", "eval-500", "eval-400"]
    assert first.total == 7
    state.task("eval-new")
    state.tasks.delete("eval-500")
    second = state.tasks.list(Slice(limit=3, cursor=first.next_cursor))
    third = state.tasks.list(Slice(limit=3, cursor=second.next_cursor))
    assert [task.name for task in second.items + third.items] == ["eval-300", "eval-200", "eval-100", "eval-000"]
    assert third.next_cursor is None
    assert refusal(lambda: state.tasks.list(Slice(cursor="page-2"))) == "invalid-cursor"
    assert refusal(lambda: state.tasks.list(Slice(limit=0))) == "invalid-limit"


def test_filters_take_texts_literally_and_combine(state: State) -> None:
    state.task("eval-100", description="d")
    state.tasks.create(NewTask(name="eval-percent", action="count-words", title="100% of_it"))
    state.tasks.publish("eval-100")

    def found(search: str | None = None, action: str | None = None, published: bool | None = None) -> list[str]:
        page = state.tasks.list(Slice(), search=search, action=action, published=published)
        assert page.total == len(page.items)
        return [task.name for task in page.items]

    assert found(search="100") == ["eval-percent", "eval-100"]
    assert found(search="100%") == ["eval-percent"]
    assert found(search="F_I") == ["eval-percent"]
    assert found(action="sum-numbers") == ["eval-100"]
    assert found(published=True) == ["eval-100"]
    assert found(search="100", published=False) == ["eval-percent"]
    assert refusal(lambda: found(action="dance")) == "unknown-action"


def test_permanent_examples_can_be_run_but_not_changed(state: State) -> None:
    plant(state.database, read_seed(BUILT_IN))
    task, schedule = "example-invoice-total", "example-monday-total"
    assert state.tasks.run(task, NewRun()).result == {"total": 240.45, "count": 3, "average": 80.15}
    assert refusal(lambda: state.tasks.update(task, TaskChanges(title="x"))) == "task-is-read-only"
    assert refusal(lambda: state.tasks.delete(task, force=True)) == "task-is-read-only"
    assert refusal(lambda: state.tasks.publish(task)) == "task-is-read-only"
    assert refusal(lambda: state.tasks.unpublish("example-word-count")) == "task-is-read-only"
    assert refusal(lambda: state.schedules.delete(schedule)) == "schedule-is-read-only"
    assert refusal(lambda: state.schedules.update(schedule, ScheduleChanges(enabled=False))) == "schedule-is-read-only"


def test_planting_twice_adds_nothing_and_leaves_what_users_made(state: State) -> None:
    mine = state.task("EXAMPLE-word-count")
    seed = read_seed(BUILT_IN)
    plant(state.database, seed)
    before = state.tasks.list(Slice())
    plant(state.database, seed)
    assert state.tasks.list(Slice()) == before
    assert before.total == 3
    assert state.tasks.get("example-word-count").id == mine
    assert state.tasks.delete("example-word-count").deleted_schedules == []


def test_a_bad_seed_file_yields_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    path.write_text(
        """{"tasks": [{"name": "a b", "action": "dance"}, {"name": "twin", "action": "count-words"},
                      {"name": "TWIN", "action": "count-words", "published": true}],
            "schedules": [{"name": "sched", "task": "gone", "cron": "never", "timezone": "Mars"}]}"""
    )
    with pytest.raises(SeedError) as caught:
        read_seed(path)
    text = str(caught.value)
    assert len(caught.value.lines) == 7
    for part in ("a b", "dance", "twin: is there twice", "needs a description", "'gone'", "never", "Mars"):
        assert part in text
    path.write_text('{"tasks": [{"nom": "x"}]}')
    with pytest.raises(SeedError, match=r"tasks\.0\.name: Field required"):
        read_seed(path)
    path.write_text("{")
    with pytest.raises(SeedError, match="not valid JSON"):
        read_seed(path)


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(DatabaseError, match="not one of this server"):
        Database(path)
    path.write_text("no database at all, but long enough to be read as the header of one" * 20)
    with pytest.raises(DatabaseError, match="cannot use"):
        Database(path)
    with pytest.raises(DatabaseError, match="cannot use"):
        Database(tmp_path / "missing" / "tasks.db")


def test_a_failed_change_leaves_no_trace(state: State) -> None:
    state.task()

    def fail_half_way() -> None:
        with state.database.writing() as db:
            db.execute("DELETE FROM tasks")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert state.tasks.get("eval-sum").name == "eval-sum"
