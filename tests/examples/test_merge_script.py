"""The shipped merge dataset and its scripted answers, held against the two bundled servers themselves."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent, Tool
from tasks_server_support import ROOT, stdio

from evals.embedded.model.loading import load_script
from evals.embedded.model.script import AgentEntry, Call, JudgeEntry
from evals.items import Item, parse_items

DATASET = ROOT / "fixtures" / "datasets" / "merge.json"
SCRIPT = ROOT / "fixtures" / "scripts" / "merge.json"
# What references say that the servers answer: a tool, and a part of one of its results.
FACTS = {
    "merge/repository/chain-how-long-we-wait": ("read_file", 'INVOICING_REQUEST_TIMEOUT = \\"20\\"'),
    "merge/repository/chain-is-the-cent-fixed": ("verify_task", '"passed": false'),
    "merge/repository/hard-runbook-by-wrong-path": ("read_file", "Charges are idempotent by invoice number"),
    "merge/repository/hard-stale-exchange-rates": ("read_file", "the monthly report and the CSV export"),
    "merge/repository/single-who-must-review": ("read_file", "invoicing/storage/      @ledgerline/data"),
    "merge/schedules/chain-drop-the-hourly-one": ("run_task", '"words": 3'),
    "merge/schedules/single-what-is-switched-off": ("list_schedules", '"name": "example-nightly-count"'),
    "merge/schedules/single-when-on-mondays": ("get_schedule", '"cron": "0 8 * * mon"'),
    "merge/tasks/chain-correct-a-draft": ("run_task", "Ana\\nBen\\nKim\\nTom"),
    "merge/tasks/chain-look-back-at-runs": ("list_runs", '"total": 30'),
    "merge/tasks/chain-mend-a-mail": ("run_task", "Dear Lin, your order 7731 has shipped"),
    "merge/tasks/chain-note-from-the-code": ("run_task", "Letters go out after 14 days"),
    "merge/tasks/chain-other-figures-once": ("run_task", '"total": 65.4'),
    "merge/tasks/hard-half-remembered": ("run_task", "Dear Grace, welcome to Acme!"),
    "merge/tasks/single-total-of-invoices": ("run_task", '"total": 240.45'),
    "merge/tasks/single-what-is-public": ("list_tasks", '"name": "example-word-count"'),
}
WRONG_ON_PURPOSE = "merge/tasks/chain-other-figures-once"


def dataset() -> list[dict[str, Any]]:
    raw: list[dict[str, Any]] = json.loads(DATASET.read_text(encoding="utf-8"))["items"]
    return raw


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return parse_items(dataset(), "merge")


@pytest.fixture(scope="module")
def agents() -> Mapping[str, AgentEntry]:
    return {entry.query or "": entry for entry in load_script(SCRIPT).agent}


@pytest.fixture(scope="module")
def judges() -> Mapping[str, JudgeEntry]:
    return {entry.query or "": entry for entry in load_script(SCRIPT).judge}


@dataclass(frozen=True)
class Servers:
    """Both bundled servers, running, and which of them has which tool."""

    tasks: Client
    tools: Mapping[str, tuple[Client, Tool]]

    async def call(self, call: Call) -> tuple[bool, str]:
        """Whether a call succeeded, and its text."""
        result = await self.tools[call.name][0].call_tool(call.name, call.input)
        assert isinstance(result.content[0], TextContent)
        return not result.is_error, result.content[0].text

    async def names(self) -> set[str]:
        """Everything with a name that the tasks server holds."""
        found: set[str] = set()
        for tool in ("list_tasks", "list_schedules"):
            result = await self.tasks.call_tool(tool, {"limit": 100})
            assert result.structured_content is not None
            found |= {entry["name"] for entry in result.structured_content["items"]}
        return found


@asynccontextmanager
async def both_servers() -> AsyncIterator[Servers]:
    checks = [
        argument
        for path in sorted((ROOT / "fixtures" / "tasks").glob("*/task.json"))
        for argument in ("--task", str(path))
    ]
    repository = StdioServerParameters(
        command=sys.executable, args=["-m", "evals", "serve", "fixtures/repository", *checks], cwd=ROOT
    )
    async with Client(stdio()) as tasks, Client(repository) as files:
        tools: dict[str, tuple[Client, Tool]] = {}
        for client in (tasks, files):
            for tool in (await client.list_tools()).tools:
                assert tool.name not in tools, "a scripted name must mean one tool"
                tools[tool.name] = (client, tool)
        yield Servers(tasks, tools)


async def test_every_scripted_call_does_what_the_item_expects(
    items: list[Item], agents: Mapping[str, AgentEntry]
) -> None:
    problems: list[str] = []
    async with both_servers() as servers:
        permanent = await servers.names()
        assert all(name.startswith("example-") for name in permanent)
        assert {item.id for item in items} > set(FACTS)
        for item in items:
            refused = set(item.metadata.fail_tools or ())
            expected = set(item.metadata.expected_errors or ())
            failed: set[str] = set()
            called: set[str] = set()
            seen: list[tuple[str, str]] = []
            turns = agents[item.query].turns
            assert turns is not None
            for call in (call for turn in turns for call in turn.calls):
                called.add(call.name)
                if call.name in refused:
                    # A hook refuses it before it reaches the server.
                    failed.add(call.name)
                    continue
                succeeded, text = await servers.call(call)
                seen += [(call.name, text)] if succeeded else []
                if not succeeded:
                    failed.add(call.name)
                    if call.name not in expected:
                        problems.append(f"{item.id}: {call.name} failed: {text}")
            missing = refused - called if failed else expected
            if missing:
                problems.append(f"{item.id}: the script never meets the failure it is about: {sorted(missing)}")
            if item.metadata.category not in called:
                problems.append(f"{item.id}: the script never calls {item.metadata.category}")
            if item.id in FACTS:
                tool, fragment = FACTS[item.id]
                if not any(name == tool and fragment in text for name, text in seen):
                    problems.append(f"{item.id}: no {tool} answered {fragment!r}: {seen}")
            left = await servers.names() - permanent
            if left:
                problems.append(f"{item.id}: leaves {sorted(left)} behind")
    assert problems == []


async def test_queries_are_written_from_the_users_side(items: list[Item]) -> None:
    def words(text: str) -> list[str]:
        return re.findall(r"[a-z0-9]+", text.lower())

    async with both_servers() as servers:
        names = {" ".join(words(name)) for name in servers.tools}
        phrases: set[str] = set()
        for _, tool in servers.tools.values():
            texts = [tool.description or ""]
            texts += [schema.get("description", "") for schema in tool.input_schema["properties"].values()]
            for text in map(words, texts):
                phrases |= {" ".join(text[at : at + 5]) for at in range(len(text) - 4)}
    for item in items:
        query = f" {' '.join(words(item.query))} "
        assert not [name for name in names if f" {name} " in query], f"{item.id} names a tool"
        assert not [phrase for phrase in phrases if f" {phrase} " in query], f"{item.id} copies a description"


def test_the_dataset_is_sorted_and_of_three_difficulties_over_three_families() -> None:
    raw = dataset()
    ids = [item["id"] for item in raw]
    assert ids == sorted(ids)
    assert 24 <= len(ids) <= 28
    groups = {tuple(re.fullmatch(r"merge/(\w+)/(single|chain|hard)-[a-z-]+", name).groups()) for name in ids}  # type: ignore[union-attr]
    assert groups == {
        (family, level) for family in ("tasks", "schedules", "repository") for level in ("single", "chain", "hard")
    }


def test_references_have_the_form_judges_need(items: list[Item]) -> None:
    for item in items:
        reference = item.expected_output or ""
        assert re.fullmatch(r"PASS only if .+\. FAIL if .+\.", reference), item.id
        # A judge sees no tool's result.
        assert not re.search(r"\b(result|returns?|response|error message)\b", reference), item.id


def test_every_item_has_its_script_and_nothing_else_does(
    items: list[Item], agents: Mapping[str, AgentEntry], judges: Mapping[str, JudgeEntry]
) -> None:
    queries = {item.query for item in items}
    assert len(queries) == len(items)
    assert set(agents) == queries
    assert set(judges) == queries
    for item in items:
        turns = agents[item.query].turns
        assert turns is not None
        assert len(turns) <= (item.metadata.max_turns or 10), item.id
        assert all(turn.calls for turn in turns[:-1]), item.id
        assert turns[-1].text, item.id
        assert not turns[-1].calls, item.id


def test_one_scripted_conversation_fails_on_purpose_and_the_gate_still_passes(
    items: list[Item], judges: Mapping[str, JudgeEntry]
) -> None:
    failing = [item.id for item in items if judges[item.query].verdict != "PASS"]
    assert failing == [WRONG_ON_PURPOSE]
    assert (len(items) - 1) / len(items) >= 0.9
    assert all(judges[item.query].reason for item in items)


def test_two_items_refuse_a_tool_on_purpose(items: list[Item]) -> None:
    assert len([item for item in items if item.metadata.fail_tools]) == 2


def test_what_items_make_carries_the_prefix_that_fixtures_clean(
    items: list[Item], agents: Mapping[str, AgentEntry]
) -> None:
    for item in items:
        for turn in agents[item.query].turns or ():
            for call in turn.calls:
                if call.name.startswith("create_"):
                    assert str(call.input["name"]).lower().startswith("eval-"), item.id
