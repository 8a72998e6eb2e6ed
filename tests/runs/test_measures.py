"""What a trial is scored by, and what of it is told."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from lab import agent_item

from evals.agents.claude_code import ClaudeCode
from evals.conversation import Conversation, ConversationBuilder
from evals.items import Item
from evals.judges import Judge, Judgement
from evals.redact import Redactor
from evals.runs import measures
from evals.target import load_target
from evals.tool_listing import ToolList

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_secret_in_a_servers_name_hides_no_failed_call_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "twogate.toml").write_text('[servers.invoices]\ncommand = "x"\n', encoding="utf-8")
    agent = ClaudeCode(load_target(tmp_path, {}), ToolList({}))
    told = ConversationBuilder("q", ("invoices",), NOW)
    told.add_call("turn", "c1", "mcp__invoices__send_invoices", {}, NOW)
    told.add_result("c1", "no invoices today", is_error=True, at=NOW)
    told.add_text("turn-2", "Done.", NOW)

    async def to_completion(*_: object) -> Conversation:
        return told.build(ended_at=NOW, model=None, usage=None, cost_usd=None, stop="success")

    class Lenient:
        async def judge(self, query: str, reference: str, conversation: Conversation) -> Judgement:
            assert "invoices" not in conversation.model_dump_json()
            return Judgement(verdict="PASS", reason="fine", votes=())

    monkeypatch.setattr(measures, "to_completion", to_completion)
    items = [Item.model_validate(agent_item("one", "q"))]
    (case,) = measures.agent_cases(items, agent, cast(Judge, Lenient()), Redactor(["invoices"]))
    verdict = (await case.measure()).verdict
    assert not verdict.passed
    assert verdict.reason == ("judge says PASS, but 1 call failed unexpectedly: send_[secret]: no [secret] today")
