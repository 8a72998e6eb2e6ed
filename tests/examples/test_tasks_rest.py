"""The REST API: in the process for its rules, as a process of its own for ports, tokens and faults."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp
from tasks_server_support import serving

from examples.tasks_server.database import Database
from examples.tasks_server.faults import Fault, FaultyApp, parse_fault
from examples.tasks_server.rest import build_rest
from examples.tasks_server.schedules import ScheduleService
from examples.tasks_server.tasks import TaskService


def connect(app: ASGIApp) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/v1")


def app_over(database: Database, token: str | None = None, read_only: bool = False) -> ASGIApp:
    return build_rest(TaskService(database), ScheduleService(database), token=token, read_only=read_only)


@pytest.fixture
async def api() -> AsyncIterator[httpx.AsyncClient]:
    database = Database(None)
    async with connect(app_over(database)) as client:
        yield client
    database.close()


def error(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"type", "message"}
    kind: str = body["error"]["type"]
    return kind


async def make_task(api: httpx.AsyncClient, name: str = "eval-one", **fields: Any) -> dict[str, Any]:
    answer = await api.post("/tasks", json={"name": name, "action": "count-words", **fields})
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    assert answer.headers["location"] == f"/v1/tasks/{data['id']}"
    return data


async def test_a_task_is_made_read_changed_and_deleted(api: httpx.AsyncClient) -> None:
    made = await make_task(api, input={"text": "a b"})
    for reference in (made["id"], "EVAL-ONE"):
        assert (await api.get(f"/tasks/{reference}")).json()["data"] == made
    changed = await api.put("/tasks/eval-one", json={"title": "One"})
    assert (changed.json()["data"]["title"], changed.json()["data"]["input"]) == ("One", {"text": "a b"})
    gone = await api.delete("/tasks/eval-one")
    assert (gone.status_code, gone.content) == (204, b"")
    assert error(await api.delete("/tasks/eval-one"), 404) == "task-not-found"


async def test_runs_are_started_and_read(api: httpx.AsyncClient) -> None:
    made = await make_task(api, input={"text": "a b"})
    first = await api.post("/tasks/eval-one/runs")
    assert first.status_code == 201
    assert first.headers["location"] == f"/v1/tasks/{made['id']}/runs/1"
    second = await api.post("/tasks/eval-one/runs", json={"input": {"text": 3}})
    assert second.json()["data"]["status"] == "failed"
    assert (await api.get("/tasks/eval-one/runs/1")).json() == first.json()
    assert (await api.get("/tasks/eval-one/runs/last")).json() == second.json()
    listed = (await api.get("/tasks/eval-one/runs", params={"status": "succeeded"})).json()["data"]
    assert (listed["total"], listed["items"]) == (1, [first.json()["data"]])
    assert error(await api.get("/tasks/eval-one/runs/3"), 404) == "run-not-found"
    assert error(await api.get("/tasks/eval-one/runs", params={"status": "odd"}), 400) == "invalid-status"


async def test_states_conflict(api: httpx.AsyncClient) -> None:
    await make_task(api)
    assert error(await api.post("/tasks/eval-one/publish"), 409) == "description-missing"
    await api.put("/tasks/eval-one", json={"description": "d"})
    assert (await api.post("/tasks/eval-one/publish")).json()["data"]["published"] is True
    assert error(await api.delete("/tasks/eval-one?force=true"), 409) == "task-is-published"
    await api.post("/tasks/eval-one/unpublish")
    planned = await api.post("/schedules", json={"name": "eval-s", "task": "eval-one", "cron": "@daily"})
    assert planned.headers["location"] == f"/v1/schedules/{planned.json()['data']['id']}"
    assert error(await api.delete("/tasks/eval-one"), 409) == "task-has-schedules"
    assert (await api.delete("/tasks/eval-one?force=1")).status_code == 204
    assert error(await api.get("/schedules/eval-s"), 404) == "schedule-not-found"


async def test_a_schedule_is_made_read_changed_and_deleted(api: httpx.AsyncClient) -> None:
    await make_task(api)
    body = {"name": "eval-s", "task": "eval-one", "cron": "0 6 * * *", "timezone": "Europe/Prague"}
    made = (await api.post("/schedules", json=body)).json()["data"]
    assert made["task_name"] == "eval-one"
    paused = await api.put(f"/schedules/{made['id']}", json={"enabled": False})
    assert paused.json()["data"]["next_run_at"] is None
    assert (await api.get("/schedules", params={"enabled": "false"})).json()["data"]["total"] == 1
    assert (await api.get("/schedules", params={"task": "eval-one", "enabled": "true"})).json()["data"]["total"] == 0
    assert error(await api.post("/schedules", json=body), 409) == "schedule-name-taken"
    assert error(await api.put("/schedules/eval-s", json={"cron": "x"}), 400) == "invalid-cron"
    assert error(await api.put("/schedules/eval-s", json={"task": "eval-\x00"}), 404) == "task-not-found"
    broken = await api.put(
        "/schedules/eval-s", content=b'{"task": "\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert error(broken, 404) == "task-not-found"
    assert (await api.delete("/schedules/eval-s")).status_code == 204


async def test_lists_are_paged_by_offset_in_both_orders(api: httpx.AsyncClient) -> None:
    for number in range(5):
        await make_task(api, f"eval-{number}-x")
    page = (await api.get("/tasks", params={"offset": 1, "limit": 2})).json()["data"]
    assert [task["name"] for task in page.pop("items")] == ["eval-1-x", "eval-2-x"]
    assert page == {"total": 5, "offset": 1, "limit": 2, "desc": False, "count": 2}
    newest = (await api.get("/tasks?desc=1&limit=1")).json()["data"]["items"]
    assert [task["name"] for task in newest] == ["eval-4-x"]
    assert (await api.get("/tasks?offset=9")).json()["data"]["items"] == []
    assert (await api.get("/tasks?limit=1000")).json()["data"]["count"] == 5


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("limit=0", "invalid-limit"),
        ("limit=1001", "invalid-limit"),
        ("limit=-1", "invalid-parameter"),
        ("offset=99999999999999999999", "invalid-parameter"),
        ("desc=maybe", "invalid-parameter"),
        ("page=2", "unknown-parameter"),
        ("action=dance", "unknown-action"),
    ],
)
async def test_a_bad_query_is_refused(api: httpx.AsyncClient, query: str, kind: str) -> None:
    assert error(await api.get(f"/tasks?{query}"), 400) == kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "invalid-json"),
        (b"[" * 10_000, "invalid-json"),
        (b"[]", "invalid-body"),
        (b'{"name": "eval-x"}', "invalid-body"),
        (b'{"name": "eval-x", "action": "count-words", "owner": "me"}', "invalid-body"),
        (b'{"name": 5, "action": "count-words"}', "invalid-body"),
        (b'{"name": "no spaces", "action": "count-words"}', "invalid-name"),
        (b'{"name": "eval-x", "action": "count-words", "input": {"a": NaN}}', "invalid-input"),
        (b'{"name": "eval-\\ud800", "action": "count-words"}', "invalid-name"),
        (b'{"name": "eval-x", "action": "count-words", "title": "\\ud800"}', "invalid-title"),
        (b'{"name": "eval-x", "action": "count-words", "\\ud800": 1}', "invalid-body"),
    ],
)
async def test_a_bad_body_is_refused(api: httpx.AsyncClient, body: bytes, kind: str) -> None:
    answer = await api.post("/tasks", content=body, headers={"Content-Type": "application/json"})
    assert error(answer, 400) == kind
    assert (await api.get("/tasks")).json()["data"]["total"] == 0


async def test_http_itself_is_answered_in_the_same_form(api: httpx.AsyncClient) -> None:
    assert error(await api.get("/nothing"), 404) == "page-not-found"
    wrong = await api.patch("/tasks")
    assert error(wrong, 405) == "method-not-allowed"
    assert set(wrong.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD", "POST"}
    form = await api.post("/tasks", content=b"{}", headers={"Content-Type": "text/plain"})
    assert error(form, 415) == "not-json"
    assert error(await api.post("/tasks", json={"x": "y" * 70_000}), 413) == "body-too-large"


async def test_a_crash_shows_nothing_inside() -> None:
    database = Database(None)
    app = app_over(database)
    database.close()
    async with connect(app) as api:
        answer = await api.get("/tasks")
    assert error(answer, 500) == "internal-error"
    assert "database" not in answer.text


async def test_a_read_only_server_takes_no_changes() -> None:
    database = Database(None)
    async with connect(app_over(database, read_only=True)) as api:
        assert (await api.get("/tasks")).status_code == 200
        refused = await api.post("/tasks", json={"name": "eval-x", "action": "count-words"})
        assert error(refused, 403) == "server-is-read-only"


async def test_another_host_name_is_refused() -> None:
    async with connect(app_over(Database(None))) as api:
        assert (await api.get("/tasks", headers={"Host": "attacker.example.com"})).status_code == 400
        assert (await api.get("/tasks", headers={"Host": "localhost:8080"})).status_code == 200


def test_a_token_from_the_environment_is_asked_for() -> None:
    # A trailing newline is what secrets of CI systems come with.
    with serving("--rest", "0", env={"TASKS_API_TOKEN": "secret\n"}) as server:
        url = f"{server.urls['REST']}/tasks"
        without = httpx.get(url)
        assert error(without, 401) == "token-missing"
        assert without.headers["www-authenticate"] == "Bearer"
        assert error(httpx.get(url, headers={"Authorization": "Bearer wrong"}), 401) == "token-invalid"
        assert error(httpx.get(url, headers={b"Authorization": "Bearer sécret".encode()}), 401) == "token-invalid"
        assert httpx.get(url, headers={"Authorization": "Bearer secret"}).status_code == 200


def test_faults_come_first_in_order_and_change_nothing() -> None:
    with serving("--rest", "0", "--flaky", "429:2", "--flaky", "503:1:7", "--flaky", "500:1") as server:
        body = {"name": "eval-x", "action": "count-words"}
        with httpx.Client(base_url=server.urls["REST"]) as client:
            answers = [client.post("/tasks", json=body) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [429, 429, 503, 500, 201, 409]
        assert [answer.headers.get("retry-after") for answer in answers[:4]] == ["1", "1", "7", None]
        assert error(answers[0], 429) == "rate-limit-exceeded"


async def test_faults_are_counted_over_requests_at_once() -> None:
    app = FaultyApp(app_over(Database(None)), [Fault(503, 2)])
    async with connect(app) as api:
        statuses = [(await api.get("/tasks")).status_code for _ in range(3)]
    assert statuses == [503, 503, 200]


@pytest.mark.parametrize("text", ["", "429", "429:", "429:x", "429:-1", "200:1", "600:1", "429:1:2:3", "٤٢٩:1"])
def test_a_fault_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"429:3|400 to 599"):
        parse_fault(text)
