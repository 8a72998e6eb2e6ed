"""The Markdown report for a GitHub step summary, read back with a Markdown parser."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lab import REPOSITORY, clean_environment
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evals.errors import TwogateError
from evals.reports.github import MOST_CHARACTERS, MOST_ROWS, NO_RUN, escape, markdown, report
from evals.runs.models import AtKNote, Repeats, RunSummary, SweepNote, TrialNote

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def summary(**changes: Any) -> RunSummary:
    base: dict[str, Any] = {
        "run": "main-claude-haiku-4-5-2026-01-02T03-04-05Z",
        "gate": "pr",
        "dataset": "mcp-server-evals-pr",
        "passed": 19,
        "failed": 1,
        "error": 0,
        "not_run": 0,
        "requested": 20,
        "pass_rate": 0.95,
        "threshold": 0.9,
        "met": True,
        "line": "19/20 passed (95.0 %), threshold 90 %: gate passed",
        "failures": (TrialNote(item="pr/list_files/sql", iteration=1, reason="called search_text"),),
        "never_completed": (),
        "total_tokens": 12345,
        "cost_usd": 0.25,
        "repeats": None,
        "started_at": START,
        "ended_at": START + timedelta(seconds=75),
        "experiment_id": "e1",
        "url": "https://langfuse.example/project/p/datasets/d/runs/r?x=1",
        "trials_recorded": 20,
        "trials_expected": 20,
        "scores_recorded": 41,
        "scores_expected": 41,
        "scripted": False,
        "embedded": False,
        "interrupted": False,
        "metadata": {"agent_model": "claude-haiku-4-5", "target": "repository (stdio)"},
    }
    return RunSummary.model_validate(base | changes)


def parse(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def plain(token: Token) -> str:
    """The text of an inline token; anything that is markup is named, so that a test sees it."""
    return "".join(
        child.content if child.type in ("text", "text_special") else f"<{child.type}>" for child in token.children or []
    )


def rows(text: str) -> list[list[str]]:
    """The cells of every table row."""
    found: list[list[str]] = []
    for token in parse(text):
        if token.type == "tr_open":
            found.append([])
        elif token.type == "inline" and found and token.level >= 4:
            found[-1].append(plain(token))
    return found


def folded(text: str) -> str:
    """What a reader may expect to see of a text: no control or format characters, white space folded."""
    import unicodedata

    kinds = {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": " ", "Cf": ""}
    return " ".join("".join(kinds.get(unicodedata.category(one), one) for one in text).split())


@given(
    st.text(alphabet=st.one_of(st.sampled_from("|\\`*_[]()<>&#!~:@.-+ \n$\u200b\u202e"), st.characters()), max_size=60)
)
@example("a | b\n| c | d |")
@example("\\| `x|y` \\")
@example("<img src=x onerror=alert(1)> &lt; &amp;#124;")
@example("[here](https://evil.example) ![x](y) <https://evil.example> https://evil.example www.evil.example")
@example("- # 1. item **bold** ~~gone~~ _so_")
def test_any_text_stays_one_cell_and_shows_as_it_is(text: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {escape(text)} | end |"
    assert rows(table) == [["a", "b"], [folded(text), "end"]]


@pytest.mark.parametrize("text", ["- item", "+ item", "1. item", "1) item", "# title", "> quote", "=== x", "``` x"])
def test_a_text_in_a_list_begins_no_other_block(text: str) -> None:
    tokens = parse(f"- {escape(text)}")
    assert [token.type for token in tokens if token.type.endswith("_open")] == [
        *("bullet_list_open", "list_item_open", "paragraph_open")
    ]
    assert [plain(token) for token in tokens if token.type == "inline"] == [text]


def test_a_bare_address_does_not_become_a_link() -> None:
    """GitHub links bare addresses by their first characters, `://` and `www.`; the parser here does not."""
    assert escape("https://evil.example www.evil.example") == r"https\://evil\.example www\.evil\.example"


def test_a_long_text_is_cut_and_shows_it() -> None:
    assert escape("a" * MOST_CHARACTERS) == "a" * MOST_CHARACTERS
    assert escape("a" * (MOST_CHARACTERS + 1)) == "a" * (MOST_CHARACTERS - 1) + "…"


def test_the_report_of_a_passed_run() -> None:
    text = markdown(summary())
    headings = [
        plain(token)
        for before, token in zip(parse(text), parse(text)[1:], strict=False)
        if before.type == "heading_open"
    ]
    assert headings == ["✅ pr gate: 19/20 passed (95.0 %), threshold 90 %: gate passed", "❌ Failed"]
    table = rows(text)
    assert ["Trials", "19 passed, 1 failed, 0 error, 0 not run"] in table
    assert ["Model", "claude-haiku-4-5"] in table
    assert ["Target", "repository (stdio)"] in table
    assert ["Tokens", "12,345"] in table
    assert ["Cost", "0.2500 USD"] in table
    assert ["Time", "75 s"] in table
    assert ["Recorded", "20/20 trials, 41/41 scores"] in table
    assert ["pr/list_files/sql", "called search_text"] in table
    assert "](<https://langfuse.example/project/p/datasets/d/runs/r?x=1>)" in text
    assert not any(word in text for word in ("scripted", "Interrupted", "⚠️", "Flaky", "Never completed"))


def test_the_report_of_a_run_that_went_wrong() -> None:
    missing = TrialNote(item="merge/tasks/a", iteration=2, reason="529 | overloaded\nagain")
    text = markdown(
        summary(
            gate="merge",
            met=False,
            line="1/4 passed (25.0 %), threshold 90 %: gate not passed",
            never_completed=(missing,),
            repeats=Repeats(
                mean=(AtKNote(k=1, pass_at_k=0.25, pass_hat_k=0.25), AtKNote(k=2, pass_at_k=0.5, pass_hat_k=0)),
                interval_95=(0.05, 0.7),
                flaky=("merge/tasks/b",),
                items=(),
            ),
            sweep=SweepNote(errors=3, unexpected=("merge/tasks/c: create_task: <b>boom</b>",), problem="503 | later"),
            scripted=True,
            embedded=True,
            interrupted=True,
            scores_recorded=40,
            url=None,
        )
    )
    assert text.startswith("## ❌ merge gate: 1/4 passed")
    table = rows(text)
    assert ["merge/tasks/a #2", "529 | overloaded again"] in table
    assert ["pr/list_files/sql #1", "called search_text"] in table
    assert ["Pass rate, 95 % interval", "5.0% to 70.0%"] in table
    assert ["k = 2", "pass@k 50.0%, pass^k 0.0%"] in table
    assert ["Recorded", "20/20 trials, 40/41 scores, in the embedded store"] in table
    assert ["Run", "main-claude-haiku-4-5-2026-01-02T03-04-05Z"] in table
    assert "Cost" not in [row[0] for row in table]
    lines = [plain(token) for token in parse(text) if token.type == "inline"]
    assert "merge/tasks/b" in lines
    assert "merge/tasks/c: create_task: <b>boom</b>" in lines
    for notice in (
        "The model was scripted",
        "Interrupted",
        "Not everything could be recorded",
        "The sweep was not made",
    ):
        assert f"**{notice}" in text.replace("⏹️ ", "").replace("🎭 ", "").replace("⚠️ ", "")


def test_a_link_is_made_of_a_plain_address_alone() -> None:
    for url in ("javascript:alert(1)", "https://langfuse.example/a>b", "https://langfuse.example/a b)"):
        assert "](" not in markdown(summary(url=url))


def test_many_failures_stay_far_below_what_github_takes() -> None:
    notes = tuple(
        TrialNote(item=f"pr/tool/{number:04}", iteration=1, reason="|" * 5000) for number in range(MOST_ROWS + 30)
    )
    text = markdown(summary(failures=notes, never_completed=notes))
    assert len(text.encode()) < 1024 * 1024
    assert text.count("… and 30 more") == 2


def test_no_summary_is_told_as_a_gate_without_a_verdict(tmp_path: Path) -> None:
    assert report(tmp_path / "none.json") == NO_RUN


def test_a_file_that_is_no_summary_is_refused_with_its_fields(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    whole = summary().model_dump_json()
    file.write_text(whole.replace('"passed":19', '"passed":"many"').replace('"gate":"pr",', ""), encoding="utf-8")
    with pytest.raises(TwogateError) as raised:
        report(file)
    assert [line.split(": ")[1] for line in raised.value.lines] == ["gate", "passed"]
    file.write_bytes(b"\xff")
    with pytest.raises(TwogateError, match="cannot be read"):
        report(file)


def test_the_command_writes_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    file.write_text(summary().model_dump_json(), encoding="utf-8")

    def run(path: Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "evals.reports.github", str(path)],
            cwd=tmp_path,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii"),
            capture_output=True,
            timeout=60,
            check=False,
        )

    done = run(file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8") == markdown(summary())
    file.write_text("{}", encoding="utf-8")
    refused = run(file)
    assert refused.returncode == 1
    assert refused.stdout == b""
    assert b"error: " in refused.stderr
    assert b"Traceback" not in refused.stderr
