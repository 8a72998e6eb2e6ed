"""The families of a real product, against a stand-in of its documented endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apify_standin import HELLO_WORLD, Apify

from evals.embedded.serving import LoopbackServer
from evals.errors import TwogateError
from evals.fixtures import Fixtures, seeded
from evals.settings import Settings

pytest_plugins = ["seeding_fixtures"]

TOKEN = "apify_api_of_a_test"


@pytest.fixture
def apify() -> Apify:
    return Apify(TOKEN)


@pytest.fixture
def settings(apify: Apify, tmp_path: Path) -> Iterator[Settings]:
    with LoopbackServer(apify.app()) as server:
        yield Settings.load(tmp_path, {"APIFY_TOKEN": TOKEN, "APIFY_API_BASE_URL": server.url})


def test_schedules_are_seeded_with_the_tasks_they_run(apify: Apify, settings: Settings) -> None:
    apify.add("actor-tasks", "eval-left", actId=HELLO_WORLD)
    apify.add("actor-tasks", "daily-prices", actId=HELLO_WORLD)
    apify.add("schedules", "eval-left")
    notes: list[str] = []
    with Fixtures(["apify-tasks", "apify-schedules"], settings, notes.append) as fixtures:
        fixtures.seed()
        assert apify.names("actor-tasks") == ["daily-prices", "eval-fixture-hello"]
        assert apify.names("schedules") == ["eval-fixture-weekly-hello"]
        (schedule,) = apify.kept["schedules"].values()
        task = next(one for one in apify.kept["actor-tasks"].values() if one["name"] == "eval-fixture-hello")
        assert task["actId"] == HELLO_WORLD
        assert schedule["actions"][0]["actorTaskId"] == task["id"]
        assert schedule["isEnabled"] is False
        assert all(status.ready for status in fixtures.status())
        before = len(apify.writes())
        fixtures.seed()
        assert len(apify.writes()) == before


def test_leftover_schedules_go_before_the_tasks_they_run(apify: Apify, settings: Settings) -> None:
    apify.add("actor-tasks", "eval-left", actId=HELLO_WORLD)
    apify.add("schedules", "eval-left")
    with Fixtures(["apify-tasks"], settings, lambda _: None) as fixtures:
        fixtures.clean()
    assert [path.split("/")[2] for method, path in apify.writes()] == ["schedules", "actor-tasks"]


def test_a_changed_task_is_put_right_without_its_actor(apify: Apify, settings: Settings) -> None:
    apify.add("actor-tasks", "eval-fixture-hello", actId=HELLO_WORLD, input={"message": "changed"})
    with Fixtures(["apify-tasks"], settings, lambda _: None) as fixtures:
        fixtures.seed()
        assert [status.ready for status in fixtures.status()] == [True, False]
    (task,) = apify.kept["actor-tasks"].values()
    assert task["input"] == {"message": "Hello from the evaluation"}


def test_a_dry_run_over_an_empty_account_sends_nothing_that_writes(apify: Apify, settings: Settings) -> None:
    apify.add("actor-tasks", "eval-left", actId=HELLO_WORLD)
    notes: list[str] = []
    with Fixtures(["apify-schedules"], settings, notes.append, dry_run=True) as fixtures:
        fixtures.seed()
    assert apify.writes() == []
    assert "apify-schedules: would create eval-fixture-weekly-hello" in notes
    with Fixtures(["apify-tasks"], settings, notes.append, dry_run=True) as fixtures:
        fixtures.seed()
    assert apify.writes() == []
    assert any(note.startswith("apify-tasks: would delete eval-left") for note in notes)


def test_a_wrong_token_is_refused_with_the_products_words_and_without_the_token(
    apify: Apify, settings: Settings
) -> None:
    wrong = Settings(settings.root, {**settings.variables, "APIFY_TOKEN": "a-wrong-token"})
    with Fixtures(["apify-tasks"], wrong, lambda _: None) as fixtures, pytest.raises(TwogateError) as caught:
        fixtures.clean()
    assert len(caught.value.lines) == 2
    assert all("401 user-or-token-not-found: User was not found" in line for line in caught.value.lines)
    assert "a-wrong-token" not in str(caught.value)


def test_a_run_is_seeded_before_and_cleaned_after_also_when_it_fails(apify: Apify, settings: Settings) -> None:
    def fail() -> None:
        assert apify.names("actor-tasks") == ["eval-fixture-hello"]
        apify.add("actor-tasks", "eval-by-the-run", actId=HELLO_WORLD)
        raise ValueError("the run fails")

    with pytest.raises(ValueError, match="the run fails"), seeded(["apify-tasks"], settings, lambda _: None):
        fail()
    assert apify.names("actor-tasks") == ["eval-fixture-hello"]


def test_a_failure_to_clean_after_a_run_is_a_warning(apify: Apify, settings: Settings) -> None:
    notes: list[str] = []
    with seeded(["apify-tasks"], settings, notes.append):
        apify.token = "another"
    assert [note for note in notes if note.startswith("warning: fixtures apify-tasks")]


def test_without_families_nothing_is_loaded_or_asked(tmp_path: Path) -> None:
    (tmp_path / "fixtures" / "families").mkdir(parents=True)
    (tmp_path / "fixtures" / "families" / "broken.toml").write_text("broken", encoding="utf-8")
    with seeded([], Settings.load(tmp_path, {}), lambda _: None):
        pass


def test_a_run_does_not_start_when_seeding_fails(apify: Apify, settings: Settings) -> None:
    apify.token = "another"
    started = False
    with pytest.raises(TwogateError, match="401"), seeded(["apify-tasks"], settings, lambda _: None):
        started = True
    assert not started
