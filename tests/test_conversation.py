from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evals.conversation import ConversationBuilder, Usage

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def builder() -> ConversationBuilder:
    return ConversationBuilder("q", ("repo", "repo__two"), START)


def test_blocks_that_share_a_message_id_are_one_turn() -> None:
    fold = builder()
    fold.add_thinking("m1", "hm", at(1))
    fold.add_text("m1", "Let me look.", at(2))
    fold.add_call("m1", "c1", "mcp__repo__search", {"q": 1}, at(3))
    fold.add_result("c1", "found", is_error=False, at=at(5))
    fold.add_text("m2", "Here it is.", at(7))
    conversation = fold.build(ended_at=at(8))
    first, second = conversation.turns
    assert (first.text, first.thinking, [call.tool for call in first.calls]) == ("Let me look.", "hm", ["search"])
    # the second turn began when the result was there to be read
    assert (second.started_at, second.ended_at) == (at(5), at(7))
    assert conversation.final_answer == "Here it is."
    assert conversation.answers == ("Here it is.",)
    call = first.calls[0]
    assert (call.called_at, call.returned_at, call.executed) == (at(3), at(5), True)


def test_results_of_parallel_calls_are_paired_in_any_order() -> None:
    fold = builder()
    for number in (1, 2, 3):
        fold.add_call("m", f"c{number}", "mcp__repo__get", {"n": number}, at(number))
    fold.add_result("c3", "three", is_error=False, at=at(4))
    fold.add_result("c1", "one", is_error=True, at=at(5))
    calls = fold.build(ended_at=at(6)).calls
    assert [(call.arguments["n"], call.result, call.is_error) for call in calls] == [
        (1, "one", True),
        (2, None, False),
        (3, "three", False),
    ]
    assert [call.executed for call in calls] == [False, False, True]


def test_a_result_of_an_unknown_call_is_left_out_and_a_repeated_block_counts_once() -> None:
    fold = builder()
    assert fold.add_result("nobody", "x", is_error=False, at=at(1)) is None
    fold.add_call("m", "c", "mcp__repo__get", {}, at(1))
    fold.add_call("m", "c", "mcp__repo__get", {}, at(2))
    assert len(fold.build(ended_at=at(3)).calls) == 1


def test_a_subagents_calls_to_a_server_follow_the_call_that_started_it() -> None:
    fold = builder()
    fold.add_call("m", "a", "Agent", {}, at(1))
    fold.add_call("m", "b", "Agent", {}, at(1))
    fold.add_call("m", "own", "mcp__repo__get", {}, at(1))
    fold.add_delegated_call("b", "b1", "mcp__repo__get", {}, at(2))
    fold.add_delegated_call("a", "a1", "Bash", {}, at(2))  # its own affair
    fold.add_delegated_call("a", "a2", "Agent", {}, at(3))  # a subagent's subagent
    fold.add_delegated_call("a2", "a3", "mcp__repo__put", {}, at(4))
    fold.add_delegated_call("a", "a4", "mcp__repo__get", {}, at(5))
    fold.add_delegated_call("nobody", "x", "mcp__repo__get", {}, at(5))
    fold.add_delegated_call("a", "a4", "mcp__repo__get", {}, at(5))
    assert fold.add_result("a1", "x", is_error=True, at=at(6)) is None
    fold.add_result("a3", "no such thing", is_error=True, at=at(6))
    (turn,) = fold.build(ended_at=at(7)).turns
    assert [(call.id, call.parent, call.is_error) for call in turn.calls] == [
        ("a", None, False),
        ("a3", "a", True),
        ("a4", "a", False),
        ("b", None, False),
        ("b1", "b", False),
        ("own", None, False),
    ]


def test_the_servers_prefix_is_taken_off_the_longest_name_first() -> None:
    fold = builder()
    names = ["mcp__repo__get", "mcp__repo__two__get", "mcp__other__get", "Bash"]
    for number, name in enumerate(names):
        fold.add_call("m", str(number), name, {}, at(1))
    calls = fold.build(ended_at=at(2)).calls
    assert [(call.server, call.tool) for call in calls] == [
        ("repo", "get"),
        ("repo__two", "get"),
        (None, "mcp__other__get"),
        (None, "Bash"),
    ]


def test_narration_beside_a_call_is_no_answer() -> None:
    fold = builder()
    fold.add_text("m1", "I will look.", at(1))
    fold.add_call("m1", "c", "mcp__repo__get", {}, at(1))
    conversation = fold.build(ended_at=at(2))
    assert conversation.answers == ()
    assert conversation.final_answer is None


def test_half_a_surrogate_pair_cannot_lose_a_conversation() -> None:
    fold = builder()
    fold.add_text("m", "a\ud800b", at(1))
    fold.add_call("m", "c", "mcp__repo__get", {"k\udc00": ["\ud83d"]}, at(1))
    fold.add_result("c", "\ud800 \U0001f600", is_error=False, at=at(2))
    conversation = fold.build(ended_at=at(3))
    assert conversation.calls[0].result == "\ufffd \U0001f600"
    assert type(conversation).model_validate_json(conversation.model_dump_json()) == conversation


def test_total_tokens_count_the_cache() -> None:
    assert Usage(input_tokens=1, output_tokens=2, cache_read_tokens=4, cache_write_tokens=8).total_tokens == 15


EVENTS = st.lists(
    st.tuples(st.sampled_from(["text", "call", "result"]), st.integers(0, 4), st.integers(0, 6)), max_size=40
)


@given(EVENTS)
def test_every_call_stands_once_in_the_order_it_was_made_whatever_arrives(events: list[tuple[str, int, int]]) -> None:
    fold = builder()
    made: list[str] = []
    for moment, (kind, message, call) in enumerate(events):
        if kind == "text":
            fold.add_text(f"m{message}", "x", at(moment))
        elif kind == "call":
            fold.add_call(f"m{message}", f"c{call}", "mcp__repo__get", {}, at(moment))
            if f"c{call}" not in made:
                made.append(f"c{call}")
        else:
            fold.add_result(f"c{call}", "r", is_error=False, at=at(moment))
    conversation = fold.build(ended_at=at(100))
    assert sorted(call.id for call in conversation.calls) == sorted(made)
    for turn in conversation.turns:
        ids = [call.id for call in turn.calls]
        assert ids == sorted(ids, key=made.index)
        assert turn.started_at <= turn.ended_at


def test_a_conversation_survives_a_trip_through_json() -> None:
    fold = builder()
    arguments: dict[str, Any] = {"a": [1, {"b": None}], "c": "ü"}
    fold.add_call("m", "c", "mcp__repo__get", arguments, at(1))
    conversation = fold.build(ended_at=at(2), usage=Usage(input_tokens=1), cost_usd=0.1, stop="success")
    assert type(conversation).model_validate_json(conversation.model_dump_json()) == conversation
