"""Which entry, turn and conversation a request belongs to, over many shapes of requests."""

from __future__ import annotations

import html
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evals.embedded.model import parse_script
from evals.embedded.model.conversations import Matcher, Said, issued_mark, resolve_tool

TURNS = [{"text": "done"}]
REMINDER = "<system-reminder>\nToday is Monday.\n</system-reminder>"

queries = (
    st.text(min_size=1, max_size=60)
    .map(str.strip)
    .filter(lambda text: bool(text) and not text.startswith("<system-reminder>"))
)
spaces = st.text(alphabet=" \n\t", max_size=4)


def matcher(agent: list[Any] | None = None, judge: list[Any] | None = None, **more: Any) -> Matcher:
    return Matcher(parse_script({"version": 1, "agent": agent or [], "judge": judge or [], **more}))


def user(*texts: str, results: bool = False) -> Said:
    return Said("user", texts, has_results=results)


def assistant(*marks: str) -> Said:
    return Said("assistant", ("…",), marks)


@given(st.lists(queries, min_size=1, max_size=6, unique=True), st.data(), spaces, spaces)
def test_the_exact_query_is_found_among_reminders_and_spaces(
    texts: list[str], data: st.DataObject, before: str, after: str
) -> None:
    wanted = data.draw(st.sampled_from(texts))
    find = matcher([{"query": text, "turns": TURNS} for text in texts]).find
    asked = find([user(REMINDER, before + wanted + after, REMINDER), Said("system", ("# Environment",))], "m")
    assert (asked.kind, asked.query, asked.turn) == ("agent", wanted, 0)
    assert texts[asked.index] == wanted


@given(queries, queries)
def test_an_unscripted_query_matches_nothing(scripted: str, asked: str) -> None:
    if asked == scripted:
        asked += "?"
    found = matcher([{"query": scripted, "turns": TURNS}]).find([user(REMINDER, asked)], "m")
    assert (found.kind, found.query) == ("unmatched", asked)


@given(queries, st.integers(0, 5), st.integers(0, 9), st.booleans())
def test_the_turn_counts_answers_and_the_conversation_is_read_from_ids(
    query: str, turns: int, number: int, split: bool
) -> None:
    said = [user(REMINDER, query)]
    for turn in range(turns):
        mark = f"toolu_{issued_mark(1, number, turn)}_c0"
        # Some clients send one answer as several messages.
        said += [assistant(mark), assistant()] if split else [assistant(mark)]
        said += [user(REMINDER, results=True), Said("system", ("mid-conversation",))]
    asked = matcher([{"query": query, "turns": TURNS}]).find(said, "m")
    assert (asked.kind, asked.turn) == ("agent", turns)
    assert asked.conversation == (number if turns else None)


def test_ids_of_another_entry_or_another_server_are_not_taken_for_ours() -> None:
    find = matcher([{"query": "q", "turns": TURNS}]).find
    for mark in ("toolu_01ABC", f"toolu_{issued_mark(2, 7, 0)}_c0", "scripted_e1_n9_t0_c0_x"):
        asked = find([user("q"), assistant(mark), user(results=True)], "m")
        assert (asked.turn, asked.conversation) == (1, None)


def test_the_last_query_of_a_session_counts_not_an_earlier_one() -> None:
    find = matcher([{"query": "one", "turns": TURNS}, {"query": "two", "turns": TURNS}]).find
    said = [user("one"), assistant(), user("two")]
    assert (find(said, "m").query, find(said, "m").turn) == ("two", 0)
    # A follow-up that is not scripted must not be answered with the earlier query's script.
    assert find([user("one"), assistant(), user("three")], "m").kind == "unmatched"


def test_a_remark_beside_tool_results_is_no_query() -> None:
    said = [user("one"), assistant(f"toolu_{issued_mark(1, 0, 0)}_c0"), user("[interrupted]", results=True)]
    asked = matcher([{"query": "one", "turns": TURNS}]).find(said, "m")
    assert (asked.kind, asked.query, asked.turn) == ("agent", "one", 1)


def test_patterns_come_after_exact_queries_and_judges() -> None:
    find = matcher(
        [
            {"match": {"regex": r"^deploy (\w+)$"}, "turns": TURNS},
            {"query": "deploy api", "turns": TURNS},
            {"match": {"contains": "roll back"}, "turns": TURNS},
        ],
        [{"query": "please roll back web", "verdict": "PASS"}],
    ).find
    assert find([user("deploy web")], "m").index == 0
    assert find([user("deploy api")], "m").index == 1
    agent = find([user("please roll back web")], "m")
    assert (agent.kind, agent.index) == ("agent", 2)
    assert find([user("Query: please roll back web. Answer: done.")], "m").kind == "judge"


@given(queries)
def test_a_judge_is_known_by_a_longer_text_that_quotes_the_query(query: str) -> None:
    find = matcher([{"query": query, "turns": TURNS}], [{"query": query, "verdict": "PASS"}]).find
    quoted = (query, json.dumps(query), json.dumps(query, ensure_ascii=False), html.escape(query))
    for form in quoted:
        asked = find([Said("system", ("You judge.",)), user(f"<query>{form}</query>")], "m")
        assert (asked.kind, asked.index) == ("judge", 0)
    assert find([user(query)], "m").kind == "agent"


def test_the_judge_of_the_longest_query_answers_and_a_model_of_its_own_goes_first() -> None:
    find = matcher(
        judge=[
            {"query": "find foo", "verdict": "FAIL"},
            {"query": "find foo and bar", "verdict": "PASS"},
            {"query": "find foo", "model": "strict", "verdict": "FAIL"},
        ]
    ).find
    assert find([user("judge: find foo and bar")], "strict").index == 1
    assert find([user("judge: find foo")], "strict").index == 2
    assert find([user("judge: find foo")], "kind").index == 0


def test_an_agent_with_tools_is_never_answered_with_a_verdict() -> None:
    find = matcher(judge=[{"query": "find foo", "verdict": "PASS"}]).find
    assert find([user("find foo, please")], "m", may_judge=False).kind == "unmatched"


def test_a_default_answers_what_nothing_matches() -> None:
    asked = matcher(default={"turns": TURNS}).find([user("anything")], "m")
    assert (asked.kind, asked.query, asked.turn) == ("default", "anything", 0)


def test_a_tools_own_name_means_the_prefixed_one() -> None:
    tools = ("Read", "mcp__repository__search_text", "mcp__repository__text")
    assert resolve_tool("search_text", tools) == "mcp__repository__search_text"
    assert resolve_tool("text", tools) == "mcp__repository__text"
    assert resolve_tool("mcp__repository__text", tools) == "mcp__repository__text"
    assert resolve_tool("Read", tools) == "Read"
    assert resolve_tool("no_such_tool", tools) == "no_such_tool"
