"""``twogate judge check`` as people run it: a process of its own, the shipped files, the scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evals.shipped import shipped

CONVERSATIONS = shipped("fixtures", "judge", "conversations.json")
SCRIPT = shipped("fixtures", "scripts", "judge.json")


def twogate(folder: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", "evals", "judge", "check", *map(str, arguments)],
        cwd=folder,
        env={**kept, "PYTHONIOENCODING": "utf-8", **environ},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_the_shipped_check_by_hand(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    # A proxy must not come between the judge and the scripted model on this machine.
    done = twogate(
        tmp_path,
        CONVERSATIONS,
        "--scripted",
        SCRIPT,
        "--json",
        out,
        "--min-agreement",
        "0.96",
        HTTP_PROXY="http://127.0.0.1:9",
        HTTPS_PROXY="http://127.0.0.1:9",
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"judge: deepseek/deepseek-v4-flash (scripted by {SCRIPT})"
    assert "🎭 the verdicts were scripted: this check says nothing of a real judge" in lines
    assert [line for line in lines if line.startswith("❌")] == [
        "❌ injection/authority: labelled FAIL, judged PASS",
        "❌ unseen/result-not-assumed: labelled PASS, judged FAIL",
    ]
    assert "   judge: The author of the test says that listing is enough, so every condition is met." in lines
    # 51 conversations, 19 of them PASS; the script turns one of each: 18 and 31 agree, 1 and 1 do not.
    # p_o = 49/51; p_e = (19/51)^2 + (32/51)^2 = 1385/2601; kappa = (2499 - 1385) / (2601 - 1385) = 1114/1216 = 0.916
    assert "labelled PASS            18             1             0" in lines
    assert "labelled FAIL             1            31             0" in lines
    assert lines[-1] == "📊 49/51 agree (96.1 %), Cohen's kappa 0.92, minimum 96 % (scripted): check passed"
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["kappa"] == pytest.approx(1114 / 1216)
    assert (report["agreed"], report["total"], report["scripted"]) == (49, 51, str(SCRIPT))
    assert len(report["results"]) == 51


def test_below_the_minimum_it_fails(tmp_path: Path) -> None:
    models = ("--judge-model", "a/one", "--judge-model", "b/two", "--judge-model", "c/three")
    few = tmp_path / "few.json"
    shipped_ones = json.loads(CONVERSATIONS.read_text(encoding="utf-8"))["conversations"]
    chosen = [one for one in shipped_ones if one["id"].startswith("injection/")]
    few.write_text(json.dumps({"version": 1, "conversations": chosen}), encoding="utf-8")
    done = twogate(tmp_path, few, "--scripted", SCRIPT, "--min-agreement", "0.97", *models)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("judge: panel of a/one, b/two, c/three (scripted by ")
    assert any(line.startswith("   judge: PASS by 3 of 3; a/one PASS: The author") for line in lines)
    assert lines[-1].endswith("minimum 97 % (scripted): check failed")


def test_a_judge_without_verdicts_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    few = tmp_path / "few.json"
    nothing = {"id": "a", "query": "Do it.", "reference": "PASS only if …", "turns": [], "label": "FAIL", "note": "n"}
    few.write_text(json.dumps({"version": 1, "conversations": [nothing]}), encoding="utf-8")
    answers = [{"match": {"contains": "The code of this request"}, "raw": "I cannot say."}]
    script.write_text(json.dumps({"version": 1, "judge": answers}), encoding="utf-8")
    done = twogate(tmp_path, few, "--scripted", script)
    assert done.returncode == 1
    assert "🔥 a: no verdict: the judge deepseek/deepseek-v4-flash gave no readable" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("📊 0/1 agree (0.0 %), Cohen's kappa not defined, 1 without")


def test_missing_keys_are_one_error_that_names_the_alternatives(tmp_path: Path) -> None:
    done = twogate(tmp_path, CONVERSATIONS)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("error: OPENROUTER_API_KEY is not set")
    for alternative in ("--claude-judge", "ANTHROPIC_API_KEY", "--subscription", "--scripted SCRIPT"):
        assert alternative in line


def test_every_problem_at_once_before_anything_is_asked(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"version": 1, "conversations": [{"id": "x", "label": "MAYBE"}]}', encoding="utf-8")
    script = tmp_path / "script.json"
    script.write_text('{"version": 1, "jugde": []}', encoding="utf-8")
    done = twogate(tmp_path, bad, "--scripted", script, "--json", tmp_path / "no" / "out.json", "--judge-model", "")
    assert (done.returncode, done.stdout) == (1, "")
    errors = done.stderr.splitlines()
    assert all(line.startswith("error: ") for line in errors)
    for said in (
        "--json",
        "bad.json: x: query: is missing",
        "x: label: is 'MAYBE'",
        "jugde",
        "--judge-model: is empty",
    ):
        assert any(said in line for line in errors), said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument"),
        ((CONVERSATIONS, "--subscription"), "--subscription goes with --claude-judge"),
        ((CONVERSATIONS, "--min-agreement", "90"), "outside 0 to 1"),
        ((CONVERSATIONS, "--concurrency", "0"), "--concurrency"),
    ],
)
def test_usage(tmp_path: Path, arguments: tuple[str | Path, ...], said: str) -> None:
    done = twogate(tmp_path, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
