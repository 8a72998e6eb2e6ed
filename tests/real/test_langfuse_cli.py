"""The official ``langfuse-cli`` against ``twogate store``, both as processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langfuse import Evaluation, Langfuse

LONG_AGO = "2020-01-01T00:00:00Z"
RUN = "files run 1"


@dataclass(frozen=True)
class Ended:
    """How a call of the CLI ended."""

    code: int
    output: str
    errors: str

    def json(self) -> Any:
        """What it printed; with ``--json`` that is ``{"status", "headers", "body"}``."""
        assert self.code == 0, self
        return json.loads(self.output)


@dataclass(frozen=True)
class Cli:
    """The CLI with a store's keys in its environment."""

    program: Path
    environment: dict[str, str]
    experiment_id: str

    def __call__(self, *arguments: str, body: Any = None, **environment: str) -> Ended:
        ended = subprocess.run(
            [str(self.program), *arguments],
            input="" if body is None else json.dumps(body),
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def cli(npm_bin: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The CLI and a store that holds a dataset and an experiment on it: 3 items, 2 trials each, one fails."""
    folder = tmp_path_factory.mktemp("store")
    store = subprocess.Popen(
        [sys.executable, "-m", "evals", "store", "--port", "0", "--public-key", f"pk-lf-{uuid.uuid4().hex}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert store.stdout is not None
    printed = "".join(store.stdout.readline() for _ in range(4))
    environment = dict(re.findall(r"^export (\w+)=(\S+)", printed, re.MULTILINE))
    try:
        yield Cli(npm_bin / "langfuse", environment, _write(environment))
    finally:
        store.terminate()
        store.communicate(timeout=30)
    assert store.returncode == 0


def _write(environment: dict[str, str]) -> str:
    langfuse = Langfuse(
        base_url=environment["LANGFUSE_BASE_URL"],
        public_key=environment["LANGFUSE_PUBLIC_KEY"],
        secret_key=environment["LANGFUSE_SECRET_KEY"],
    )
    langfuse.create_dataset(name="pr/files", description="Files")
    langfuse.create_dataset(name="pr/other")
    for number in range(3):
        langfuse.create_dataset_item(dataset_name="pr/files", id=f"pr/files/{number}", input={"n": number})

    def task(*, item: Any, **_: Any) -> str:
        if item.id == "pr/files/2":
            raise RuntimeError("the target went away")
        return f"answer to {item.id}"

    def correct(**_: Any) -> Evaluation:
        return Evaluation(name="correct", value=True, data_type="BOOLEAN")

    def pass_rate(**_: Any) -> Evaluation:
        return Evaluation(name="pass_rate", value=0.5)

    result = langfuse.run_experiment(
        name="files",
        run_name=RUN,
        data=list(langfuse.get_dataset("pr/files").items) * 2,
        task=task,
        evaluators=[correct],
        run_evaluators=[pass_rate],
    )
    langfuse.shutdown()
    return result.experiment_id


@pytest.mark.parametrize("limit", ["2", "50"])
def test_all_trials_of_an_experiment(cli: Cli, limit: str) -> None:
    ended = cli(
        *("api", "experiment-items", "list", "--experiment-name", RUN, "--from-start-time", LONG_AGO),
        *("--fields", "core,io", "--limit", limit, "--all", "--json"),
    )
    trials = ended.json()["body"]["data"]
    assert Counter(each["experimentItemId"] for each in trials) == {f"pr/files/{number}": 2 for number in range(3)}
    assert {each["output"] for each in trials if each["experimentItemId"] == "pr/files/0"} == {"answer to pr/files/0"}
    assert {each["level"] for each in trials if each["experimentItemId"] == "pr/files/2"} == {"ERROR"}


def test_errors_of_a_run(cli: Cli) -> None:
    ended = cli(
        *("api", "observations", "list", "--level", "ERROR", "--from-start-time", LONG_AGO),
        *("--fields", "core,basic,io", "--limit", "100"),
    )
    found = ended.json()["data"]
    assert len(found) == 4
    assert {each["statusMessage"] for each in found} == {"the target went away"}


def test_experiments_and_their_scores(cli: Cli) -> None:
    (run,) = cli("api", "experiments", "list", "--from-start-time", LONG_AGO, "--name", RUN).json()["data"]
    assert (run["id"], run["itemCount"]) == (cli.experiment_id, 6)
    ended = cli("api", "scores", "list", "--experiment-id", run["id"], "--fields", "details,subject", "--json")
    assert [(each["name"], each["value"]) for each in ended.json()["body"]["data"]] == [("pass_rate", 0.5)]
    listed = cli("api", "scores", "list", "--name", "correct", "--limit", "3", "--all").json()["data"]
    assert [each["value"] for each in listed] == [True] * 4


def test_score_is_created_and_deleted(cli: Cli) -> None:
    body = {"id": "cli-score", "traceId": "0" * 31 + "1", "name": "cli", "value": 1}
    assert cli("api", "scores", "create", "--body-json", json.dumps(body)).json() == {"id": "cli-score"}
    assert len(cli("api", "scores", "list", "--name", "cli").json()["data"]) == 1
    assert cli("api", "scores", "delete", "cli-score").code == 0
    assert cli("api", "scores", "list", "--name", "cli").json()["data"] == []


def test_item_from_standard_input_to_deletion(cli: Cli) -> None:
    item = {"datasetName": "pr/other", "id": "pr/other/new", "input": {"query": "List"}, "metadata": {"suite": "x"}}
    created = cli("api", "dataset-items", "create", "--body-file", "-", body=item).json()
    assert (created["id"], created["input"], created["status"]) == ("pr/other/new", {"query": "List"}, "ACTIVE")
    archived = cli("api", "dataset-items", "create", "--body-file", "-", body={**item, "status": "ARCHIVED"})
    assert archived.json()["status"] == "ARCHIVED"
    assert cli("api", "dataset-items", "list", "--dataset-name", "pr/other").json()["data"] == []
    assert cli("api", "dataset-items", "get", "pr/other/new").json()["metadata"] == {"suite": "x"}
    assert cli("api", "dataset-items", "delete", "pr/other/new").code == 0
    gone = cli("api", "dataset-items", "get", "pr/other/new")
    assert (gone.code, json.loads(gone.output)["error"]) == (5, "LangfuseNotFoundError")


def test_items_page_by_page(cli: Cli) -> None:
    ended = cli("api", "dataset-items", "list", "--dataset-name", "pr/files", "--limit", "2", "--all", "--json")
    assert [each["id"] for each in ended.json()["body"]["data"]] == ["pr/files/2", "pr/files/1", "pr/files/0"]


def test_datasets(cli: Cli) -> None:
    listed = cli("--api-version", "auto", "api", "datasets", "list", "--json").json()["body"]["data"]
    assert [each["name"] for each in listed[:2]] == ["pr/other", "pr/files"]
    assert cli("api", "datasets", "get", "pr/files").json()["description"] == "Files"


def test_refusals_end_with_exit_code_5(cli: Cli) -> None:
    wrong = cli("api", "datasets", "list", LANGFUSE_SECRET_KEY="sk-lf-wrong")
    assert (wrong.code, "Invalid credentials" in wrong.output) == (5, True)
    level = cli("api", "observations", "list", "--level", "FATAL")
    assert (level.code, "Invalid option" in level.output) == (5, True)
    taken = cli(
        *("api", "dataset-items", "create", "--body-file", "-"),
        body={"datasetName": "pr/other", "id": "pr/files/0", "input": 1},
    )
    assert (taken.code, "item ids are unique per project" in taken.output) == (5, True)
