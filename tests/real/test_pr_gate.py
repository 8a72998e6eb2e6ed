"""The PR gate with real parts: Claude Code, the repository MCP server, the Langfuse SDK. The model is scripted."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from lab import REPOSITORY, Lab, tool_call_item
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evals.embedded.langfuse import EmbeddedStore
from evals.embedded.serving import LoopbackServer


def turn(*calls: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    made = [{"name": name, "input": arguments} for name, arguments in calls]
    return {"text": text, "calls": made} if text else {"calls": made}


DONE = {"text": "Done."}
SEARCH = ("search_text", {"query": "timeout"})

# slug -> query, expected tools, more metadata, the model's turns, outcome, words of the reason
CASES: dict[str, tuple[str, list[str], dict[str, Any], list[dict[str, Any]], str, str]] = {
    "right": ("q right", ["search_text"], {}, [turn(SEARCH, text="Let me look."), DONE], "passed", "search_text"),
    "right-args": (
        "q right args",
        ["search_text"],
        {"expectedArgs": {"query": "timeout", "max_results": 5}},
        [turn(("search_text", {"query": "timeout", "max_results": 5.0, "path": "."})), DONE],
        "passed",
        '"max_results": 5',
    ),
    "parallel": (
        "q parallel",
        ["read_file"],
        {},
        [turn(("read_file", {"path": "README.md"}), SEARCH), DONE],
        "passed",
        "read_file",
    ),
    "search-first": (
        "q deferred",
        ["search_text"],
        {},
        [turn(("ToolSearch", {"query": "select:Foo"})), turn(SEARCH), DONE],
        "passed",
        "search_text",
    ),
    "wrong-args": (
        "q wrong args",
        ["search_text"],
        {"expectedArgs": {"query": "time out"}},
        [turn(SEARCH), DONE],
        "failed",
        'query: expected "time out", got "timeout"',
    ),
    "other-tool": ("q other", ["read_file"], {}, [turn(SEARCH), DONE], "failed", "expected read_file"),
    "no-such-tool": (
        "q nowhere",
        ["search_text"],
        {},
        [turn(("mcp__repository__nope", {"x": 1})), DONE],
        "failed",
        "the server has no such tool",
    ),
    "no-such-tool-beside": (
        "q nowhere twice",
        ["search_text"],
        {},
        [turn(("ToolSearch", {"query": "select:Foo"}), ("mcp__repository__nope", {}), ("Gone", {})), DONE],
        "failed",
        "the server has no such tool",
    ),
    "no-such-tool-late": (
        "q nowhere late",
        ["search_text"],
        {},
        [turn(("ToolSearch", {"query": "select:Foo"})), turn(("mcp__repository__nope", {})), DONE],
        "failed",
        "the server has no such tool",
    ),
    "built-in": (
        "q built-in",
        ["search_text"],
        {},
        [turn(("Bash", {"command": "touch ran"})), DONE],
        "failed",
        "set mcpToolsOnly",
    ),
    "bad-built-in": ("q bad", ["search_text"], {}, [turn(("Read", {"no": 1})), DONE], "failed", "called Read"),
    "no-call": ("q silent", ["search_text"], {}, [{"text": "I know that."}], "failed", "made no call"),
    "refused": ("q refused", ["search_text"], {}, [DONE], "error", "the model's API failed 400"),
}
TWO_TURNS = {"search-first", "no-such-tool-late"}


def cases_items() -> list[dict[str, Any]]:
    return [tool_call_item(slug, case[0], case[1], **case[2]) for slug, case in CASES.items()]


def cases_script(lab: Lab) -> Path:
    entries: list[dict[str, Any]] = []
    for slug, case in CASES.items():
        faults: dict[str, Any] = {"faults": [{"kind": "400", "times": "always"}]} if slug == "refused" else {}
        entries.append({"query": case[0], "turns": case[3], **faults})
    return lab.script(entries)


def test_every_way_a_first_call_can_go(lab: Lab) -> None:
    lab.dataset(cases_items())
    done = lab.twogate("run", "--scripted", str(cases_script(lab)), "--concurrency", "4")
    assert done.returncode == 1, done.stdout + done.stderr
    trials = {name.rsplit("/", 1)[1]: result for name, result in lab.trials().items()}
    assert {slug: trials[slug].outcome for slug in CASES} == {slug: case[4] for slug, case in CASES.items()}
    for slug, case in CASES.items():
        assert case[5] in trials[slug].reason
    # nothing ran, and the model was asked once, or twice where ToolSearch came first
    for slug, result in trials.items():
        assert result.conversation is not None
        assert not [call for call in result.conversation.calls if call.executed and call.name != "ToolSearch"]
        assert len(result.conversation.turns) == (2 if slug in TWO_TURNS else 0 if slug == "refused" else 1)

    lines = done.stdout.splitlines()
    assert lines[-1] == "📊 4/13 passed (30.8 %), threshold 90 %: gate failed"
    assert sum(line.startswith("❌ pr/") for line in lines) == 8
    assert "🔥 never completed: pr/search_text/refused" in lines
    assert "the model was scripted" in done.stdout
    assert "embedded store" in done.stdout
    (run,) = lab.runs()
    assert f"🔗 .twogate/runs/{run.name}" in lines
    assert "recorded: 13/13 trials, 26/26 scores" in lines

    summary = lab.summary()
    assert (summary.passed, summary.failed, summary.error, summary.not_run) == (4, 8, 1, 0)
    assert summary.total_tokens is not None
    assert summary.total_tokens > 13 * 1000
    assert summary.metadata["claude_code"]
    record = json.loads((run / "run.json").read_text())
    assert record["requested"] == 13
    assert record["metadata"]["agent_model"] == "claude-haiku-4-5 (scripted)"
    _check_recording(lab)


def _check_recording(lab: Lab) -> None:
    """What Langfuse holds of the run above: one experiment, real observations with real times."""
    summary = lab.summary()
    with (
        EmbeddedStore(lab.root / ".twogate" / "langfuse.db") as store,
        httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key)) as http,
    ):
        query: dict[str, Any] = {
            "fromStartTime": "2020-01-01T00:00:00Z",
            "experimentId": summary.experiment_id,
            "limit": 100,
        }
        rows = http.get("/api/public/experiment-items", params={**query, "fields": "core,io,scores"}).json()["data"]
        assert len(rows) == 13
        by_id = {row["experimentItemId"]: row for row in rows}
        right = by_id["pr/search_text/right"]
        output = json.loads(right["output"])
        assert output["transcript"][1] == {"tool": "search_text", "arguments": {"query": "timeout"}, "denied": True}
        assert {score["name"] for score in right["scores"]} == {"tool_call_match", "total_tokens"}
        match = next(score for score in right["scores"] if score["name"] == "tool_call_match")
        assert match["value"] is True
        # an error is no verdict: no tool_call_match
        assert not [score for score in by_id["pr/search_text/refused"]["scores"] if score["name"] == "tool_call_match"]

        fields: dict[str, Any] = {"fields": "core,basic,io,usage,metadata", "limit": 1000, "traceId": right["traceId"]}
        observations = http.get("/api/public/v2/observations", params=fields).json()["data"]
        by_type = {one["type"]: one for one in observations if one["type"] in ("AGENT", "GENERATION", "TOOL")}
        assert set(by_type) == {"AGENT", "GENERATION", "TOOL"}
        assert by_type["AGENT"]["input"] == "q right"
        tool = by_type["TOOL"]
        assert (tool["name"], tool["level"]) == ("search_text", "ERROR")  # denied, by design
        assert json.loads(tool["input"]) == {"query": "timeout"}
        assert tool["parentObservationId"] == by_type["AGENT"]["id"]
        assert by_type["AGENT"]["startTime"] <= tool["startTime"] <= tool["endTime"] <= by_type["AGENT"]["endTime"]
        usage = by_type["GENERATION"]["usageDetails"]
        assert usage["output"] > 0
        assert usage["cache_read_input_tokens"] > 0


def test_two_runs_are_two_experiments_and_one_item_can_be_rerun(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q1", ["search_text"]), tool_call_item("two", "q2", ["search_text"])])
    script = lab.script([{"query": "q1", "turns": [turn(SEARCH)]}, {"query": "q2", "turns": [turn(SEARCH)]}])
    # Choices of the user around it, a real model's provider among them, are not the run's.
    around: dict[str, Any] = {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_USE_VERTEX": "1",
        "ANTHROPIC_MODEL": "another",
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "LANGFUSE_TRACING_ENABLED": "false",
    }
    arguments = ("--id", "^pr/search_text/one$", "--iterations", "2")
    first = lab.twogate("run", "--scripted", str(script), *arguments, **around)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "📊 2/2 passed (100.0 %), threshold 90 %: gate passed" in first.stdout
    assert "recorded: 2/2 trials, 5/5 scores" in first.stdout
    second = lab.twogate("run", "--scripted", str(script), "--category", "search_*", "--json", "out.json")
    assert second.returncode == 0, second.stdout + second.stderr
    assert len(lab.runs()) == 2
    summaries = [lab.summary(run) for run in lab.runs()]
    assert summaries[0].experiment_id != summaries[1].experiment_id
    assert json.loads((lab.root / "out.json").read_text())["passed"] == 2
    with (
        EmbeddedStore(lab.root / ".twogate" / "langfuse.db") as store,
        httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key)) as http,
    ):
        query = {"fromStartTime": "2020-01-01T00:00:00Z"}
        experiments = http.get("/api/public/experiments", params=query).json()["data"]
    assert sorted(one["itemCount"] for one in experiments) == [2, 2]


def test_a_secret_of_the_target_is_written_nowhere(lab: Lab) -> None:
    secret = "tok-5d41402abc4b2a76"
    lab.target(
        f"""
[servers.repository]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "evals", "serve", "{REPOSITORY}/fixtures/repository"]
env = {{ PYTHONPATH = "{REPOSITORY}", SERVICE_TOKEN = "${{SERVICE_TOKEN}}" }}
"""
    )
    lab.dataset([tool_call_item("leak", "q", ["search_text"])])
    script = lab.script([{"query": "q", "turns": [turn(("search_text", {"query": f"a {secret} b"}), text=secret)]}])
    done = lab.twogate("run", "--scripted", str(script), SERVICE_TOKEN=secret)
    assert done.returncode == 0, done.stdout + done.stderr
    assert secret not in done.stdout + done.stderr
    assert lab.trials()["pr/search_text/leak"].conversation is not None
    for path in (lab.root / ".twogate").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    (call,) = lab.trials()["pr/search_text/leak"].conversation.calls  # type: ignore[union-attr]
    assert call.arguments == {"query": "a [secret] b"}


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ('command = "sleep"\nargs = ["60"]\nconnect_timeout = 1', "did not connect within 1 s (connect_timeout)"),
        ('command = "false"', "does not connect"),
        ('command = "no-such-command-here"', "not found"),
        ('url = "http://127.0.0.1:9/mcp"\nconnect_timeout = 3', "does not connect"),
    ],
)
def test_a_target_that_never_connects_is_an_error_not_a_miss(lab: Lab, target: str, cause: str) -> None:
    lab.target(f"[servers.broken]\n{target}\n")
    lab.dataset([tool_call_item("one", "q1", ["search_text"])])
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q1", "turns": [turn(SEARCH)]}])))
    assert done.returncode == 1, done.stdout + done.stderr
    (result,) = lab.trials().values()
    assert result.outcome == "error"
    assert cause in result.reason
    assert "🔥 never completed: pr/search_text/one" in done.stdout
    assert cause in done.stdout
    assert done.stdout.splitlines()[-1] == "📊 0/1 passed (0.0 %), threshold 90 %: gate failed"


def test_a_target_that_connects_once_and_then_never_again(lab: Lab) -> None:
    """Claude Code would go on without its tools; the model must not be blamed, nor even be asked."""
    launcher = lab.root / "once.sh"
    launcher.write_text(
        f'#!/bin/sh\nif [ -e "{lab.root}/started" ]; then sleep 60; fi\ntouch "{lab.root}/started"\nexec "$@"\n'
    )
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    lab.target(
        f"""
[servers.repository]
command = "{launcher}"
args = ["${{TWOGATE_PYTHON}}", "-m", "evals", "serve", "{REPOSITORY}/fixtures/repository"]
env = {{ PYTHONPATH = "{REPOSITORY}" }}
connect_timeout = 6
"""
    )
    lab.dataset([tool_call_item("one", "q1", ["search_text"])])
    done = lab.twogate("run", "--scripted", str(lab.script([{"query": "q1", "turns": [turn(SEARCH)]}])))
    assert done.returncode == 1, done.stdout + done.stderr
    (result,) = lab.trials().values()
    assert result.outcome == "error"
    assert "'repository' did not connect" in result.reason


def test_a_claude_code_that_dies_is_an_error_with_its_last_words(lab: Lab) -> None:
    broken = lab.root / "claude"
    broken.write_text(
        '#!/bin/sh\ncase "$1" in -v|--version) echo "2.0.1 (Claude Code)"; exit 0;; esac\n'
        "echo out of cheese >&2\nexit 3\n"
    )
    broken.chmod(0o755)
    lab.dataset([tool_call_item("one", "q1", ["search_text"])])
    script = lab.script([{"query": "q1", "turns": [turn(SEARCH)]}])
    done = lab.twogate("run", "--scripted", str(script), "--claude-code", "./claude")
    assert done.returncode == 1, done.stdout + done.stderr
    assert lab.summary().metadata["claude_code"] == "2.0.1"
    (result,) = lab.trials().values()
    assert result.outcome == "error"
    assert "Claude Code failed" in result.reason
    assert "out of cheese" in result.reason


def test_a_model_that_hangs_ends_at_the_trials_time_limit_and_leaves_no_process(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q1", ["search_text"])])
    script = lab.script([{"query": "q1", "turns": [turn(SEARCH)], "faults": [{"kind": "hang", "times": "always"}]}])
    (lab.root / "tmp").mkdir()
    done = lab.twogate("run", "--scripted", str(script), "--trial-timeout", "12", TMPDIR=str(lab.root / "tmp"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "did not finish within 12 s (--trial-timeout)" in done.stdout
    # Claude Code works in a folder of the lab's, and its servers inherit where that is
    here = str(lab.root).encode()
    left = [path.parent for path in Path("/proc").glob("[0-9]*/environ") if here in _read(path)]
    assert left == []
    assert list((lab.root / "tmp").iterdir()) == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


class TestLangfuseServers:
    """Servers that differ from the embedded store, in front of a run that must not care."""

    @staticmethod
    def _run(lab: Lab, url: str, store: EmbeddedStore) -> subprocess.CompletedProcess[str]:
        script = lab.script([{"query": "q1", "turns": [turn(SEARCH)]}])
        return lab.twogate(
            "run",
            "--scripted",
            str(script),
            LANGFUSE_BASE_URL=url,
            LANGFUSE_PUBLIC_KEY=store.public_key,
            LANGFUSE_SECRET_KEY=store.secret_key + "\n",
        )

    @pytest.fixture
    def store_file(self, lab: Lab) -> Path:
        lab.dataset([tool_call_item("one", "q1", ["search_text"])])
        return lab.root / ".twogate" / "langfuse.db"

    def test_scores_a_server_refuses_as_an_array_are_sent_again(self, lab: Lab, store_file: Path) -> None:
        with EmbeddedStore(store_file, refuse_score_arrays=True) as store:
            done = self._run(lab, store.base_url, store)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "recorded: 1/1 trials, 3/3 scores (3 scores sent again)" in done.stdout
            assert f"🔗 {store.base_url}/project/" in done.stdout
            assert "embedded store" not in done.stdout
            with httpx.Client(base_url=store.base_url, auth=(store.public_key, store.secret_key)) as http:
                scores = http.get("/api/public/v3/scores", params={"fields": "details,subject"}).json()["data"]
        assert sorted(score["name"] for score in scores) == ["pass_rate", "tool_call_match", "total_tokens"]
        assert next(score for score in scores if score["name"] == "tool_call_match")["comment"] == "search_text"

    def test_a_server_that_stops_taking_anything_changes_no_outcome(self, lab: Lab, store_file: Path) -> None:
        with EmbeddedStore(store_file) as store, LoopbackServer(_read_only(store)) as proxy:
            started = time.monotonic()
            done = self._run(lab, proxy.url, store)
            assert time.monotonic() - started < 140
        assert done.returncode == 0, done.stdout + done.stderr
        assert "⚠️ recorded: 0/1 trials, 0/3 scores" in done.stdout
        assert "INCOMPLETE" in done.stdout
        assert done.stdout.splitlines()[-1] == "📊 1/1 passed (100.0 %), threshold 90 %: gate passed"
        assert lab.summary().trials_recorded == 0


def _read_only(store: EmbeddedStore) -> Starlette:
    """A proxy that lets reads of datasets and projects through and answers everything else with 503."""

    async def forward(request: Request) -> Response:
        path = request.url.path
        if request.method != "GET" or not path.startswith(
            ("/api/public/v2/datasets", "/api/public/dataset-items", "/api/public/projects")
        ):
            return Response("down", status_code=503)
        async with httpx.AsyncClient(base_url=store.base_url) as http:
            headers = {"authorization": request.headers.get("authorization", "")}
            answer = await http.get(request.url.path, params=dict(request.query_params), headers=headers)
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))

    return Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST", "PUT", "DELETE"])])


assert os.name == "posix", "these tests drive POSIX processes"
