"""How a run ends when something around it does not wait: signals, closed pipes, a folder that is taken away."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from lab import REPOSITORY, Lab, clean_environment, tool_call_item

SEARCH_TURN: dict[str, Any] = {"calls": [{"name": "search_text", "input": {"query": "timeout"}}]}


def test_a_run_whose_folder_is_taken_away_still_comes_to_its_verdict(lab: Lab) -> None:
    lab.dataset([tool_call_item("one", "q1", ["search_text"]), tool_call_item("two", "q2", ["search_text"])])
    slow = {"faults": [], "latency_ms": 4000}
    script = lab.script([{"query": query, "turns": [SEARCH_TURN], **slow} for query in ("q1", "q2")])
    process = subprocess.Popen(
        [sys.executable, "-m", "evals", "run", "--scripted", str(script)],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (lab.runs() and (lab.runs()[0] / "trials.jsonl").exists()):
        time.sleep(0.05)
    shutil.rmtree(lab.runs()[0])
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert "there is no summary.json" in output
    assert output.splitlines()[-1] == "📊 2/2 passed (100.0 %), threshold 90 %: gate passed"


def _interrupted(lab: Lab, signals: list[tuple[float, int]], *, ignore_sigint: bool = False) -> tuple[int, str]:
    """Start a run whose second trial hangs, send signals (seconds after the one before), and wait for its end."""
    lab.dataset([tool_call_item("a-quick", "q1", ["search_text"]), tool_call_item("b-slow", "q2", ["search_text"])])
    hang = {"faults": [{"kind": "hang", "times": "always"}]}
    script = lab.script([{"query": "q1", "turns": [SEARCH_TURN]}, {"query": "q2", "turns": [SEARCH_TURN], **hang}])
    process = subprocess.Popen(
        [sys.executable, "-m", "evals", "run", "--scripted", str(script), "--concurrency", "1"],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # what a shell does to a command it starts in the background
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignore_sigint else None,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (lab.runs() and lab.trials()):
        time.sleep(0.2)
    for wait, number in signals:
        time.sleep(wait)
        process.send_signal(number)
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, output


@pytest.mark.parametrize(
    ("signals", "ignore_sigint"),
    [
        ([(1.0, signal.SIGTERM)], False),
        ([(1.0, signal.SIGTERM)], True),
        ([(1.0, signal.SIGHUP)], False),
        ([(1.0, signal.SIGINT), (0.7, signal.SIGINT), (0.5, signal.SIGINT)], False),
        ([(0.5, signal.SIGINT), *[(0.1, signal.SIGINT)] * 30], False),
    ],
    ids=[
        "terminated",
        "terminated in the background",
        "its terminal is closed",
        "three times Ctrl-C",
        "Ctrl-C without end",
    ],
)
def test_an_interrupted_run_ends_and_reports_what_is_finished(
    lab: Lab, signals: list[tuple[float, int]], ignore_sigint: bool
) -> None:
    code, output = _interrupted(lab, signals, ignore_sigint=ignore_sigint)
    assert code == 130, output
    summary = lab.summary()
    assert (summary.passed, summary.not_run, summary.requested, summary.interrupted) == (1, 1, 2, True)
    if len(signals) == 1:
        assert "interrupted" in output
        assert output.splitlines()[-1] == "📊 1/2 passed (50.0 %), threshold 90 %: gate failed"


@pytest.mark.parametrize("redirection", ["| head -1", "> /dev/full", ">&-"])
def test_output_that_nobody_takes_costs_no_trial(lab: Lab, redirection: str) -> None:
    lab.dataset([tool_call_item("one", "q1", ["search_text"]), tool_call_item("two", "q2", ["search_text"])])
    script = lab.script([{"query": query, "turns": [SEARCH_TURN]} for query in ("q1", "q2")])
    command = f'"{sys.executable}" -m evals run --scripted "{script}"'
    done = subprocess.run(
        ["bash", "-c", f"{command} {redirection}; exit ${{PIPESTATUS[0]}}"],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert lab.summary().passed == 2
