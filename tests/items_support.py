"""``twogate items`` run in the tests' own process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import tool_call_item

from evals.conversation import Conversation, ToolCall, Turn
from evals.runs.journal import RUN_FILE, Journal, write_json
from evals.runs.models import RunRecord
from evals.runs.trial import TrialResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ITEMS = [
    tool_call_item("about", "What is this project about?", ["read_file"], expectedArgs={"path": "README.md"}),
    tool_call_item("who-calls", "Who calls round_amount?", ["search_text"]),
]


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    errors: list[str]


Items = Callable[..., Said]


def write(name: str, items: list[dict[str, Any]], dataset: str = "things-pr") -> str:
    Path(name).write_text(json.dumps({"dataset": dataset, "items": items}))
    return name


def failed_run(folder: Path, dataset: str = "things-pr") -> None:
    """A run in which an agent called the right tool with another argument."""
    folder.mkdir(parents=True)
    record = RunRecord(
        run=folder.name,
        started_at=NOW,
        command=(),
        gate="pr",
        dataset=dataset,
        items=("pr/read_file/about",),
        iterations=1,
        requested=1,
        threshold="1",
        experiment_id="e",
        metadata={},
    )
    write_json(folder / RUN_FILE, record)
    arguments = {"path": "README.md", "end_line": 5}
    call = ToolCall(id="1", name="mcp__repository__read_file", server="repository", arguments=arguments, called_at=NOW)
    turn = Turn(message_id="m", calls=(call,), started_at=NOW, ended_at=NOW)
    result = TrialResult(
        run=folder.name,
        item="pr/read_file/about",
        iteration=1,
        kind="tool-call",
        category="read_file",
        outcome="failed",
        reason="expected something else",
        conversation=Conversation(query="What?", turns=(turn,), started_at=NOW, ended_at=NOW),
        started_at=NOW,
        ended_at=NOW,
    )
    with Journal(folder) as journal:
        journal.append(result)
