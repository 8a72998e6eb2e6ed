"""Several processes on one file, and a process that is killed: nothing that was answered is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from evals.embedded.langfuse import EmbeddedStore

_WRITES_A_PROCESS = 40

_WRITER = """
import sys
from pathlib import Path
import httpx
from evals.embedded.langfuse import EmbeddedStore
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with EmbeddedStore(path) as store, httpx.Client(
    base_url=store.base_url, auth=(store.public_key, store.secret_key), timeout=120
) as client:
    client.post("/api/public/v2/datasets", json={"name": "shared"}).raise_for_status()
    for number in range(count):
        client.post("/api/public/dataset-items", json={
            "datasetName": "shared", "id": f"{name}/{number}", "input": {"n": number}}).raise_for_status()
        answer = client.post("/api/public/scores", json=[
            {"id": f"{name}-{number}", "traceId": "t" * 32, "name": name, "value": number}])
        assert answer.status_code == 202, answer.text
        assert client.get(f"/api/public/dataset-items/{name}%2F{number}").status_code == 200
"""

_ENDLESS_WRITER = """
import sys
from pathlib import Path
import httpx
from evals.embedded.langfuse import EmbeddedStore
with EmbeddedStore(Path(sys.argv[1])) as store, httpx.Client(
    base_url=store.base_url, auth=(store.public_key, store.secret_key)
) as client:
    client.post("/api/public/v2/datasets", json={"name": "shared"}).raise_for_status()
    number = 0
    while True:
        client.post("/api/public/dataset-items", json={
            "datasetName": "shared", "id": str(number), "input": "x" * 2000}).raise_for_status()
        print(number, flush=True)
        number += 1
"""


def _items(path: Path) -> set[str]:
    with (
        EmbeddedStore(path) as store,
        httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key)) as client,
    ):
        found: set[str] = set()
        page = 1
        while True:
            answer = client.get("/api/public/dataset-items", params={"page": str(page), "limit": "100"}).json()
            found |= {each["id"] for each in answer["data"]}
            if page >= answer["meta"]["totalPages"]:
                return found
            page += 1


def test_processes_that_start_and_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "langfuse.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), name, str(_WRITES_A_PROCESS)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c")
    ]
    for writer in writers:
        _, problems = writer.communicate(timeout=240)
        assert writer.returncode == 0, problems
    assert _items(path) == {f"{name}/{number}" for name in ("a", "b", "c") for number in range(_WRITES_A_PROCESS)}


def test_answered_writes_outlive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "langfuse.db"
    writer = subprocess.Popen([sys.executable, "-c", _ENDLESS_WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    answered = [writer.stdout.readline().strip() for _ in range(30)]
    os.kill(writer.pid, signal.SIGKILL)
    answered += writer.stdout.read().split()
    assert writer.wait(timeout=30) == -signal.SIGKILL
    assert set(answered) <= _items(path)


def test_one_process_sees_at_once_what_another_wrote(tmp_path: Path) -> None:
    path = tmp_path / "langfuse.db"
    with EmbeddedStore(path) as store, EmbeddedStore(path) as other:
        auth = (store.public_key, store.secret_key)
        httpx.post(f"{store.base_url}/api/public/v2/datasets", json={"name": "shared"}, auth=auth).raise_for_status()
        assert httpx.get(f"{other.base_url}/api/public/v2/datasets/shared", auth=auth).status_code == 200
