"""What is put aside before repeats are compared, and where the first difference is found."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.workspace.compare import RunOutput, first_difference
from evals.workspace.normalising import Normalised, Normaliser, Whole, normalise


def output(stdout: str = "", stderr: str = "", status: str = "exit status 0") -> RunOutput:
    return RunOutput(status, Normalised(stdout, ()), Normalised(stderr, ()))


def test_the_copys_path_and_elapsed_times_are_put_aside_and_named() -> None:
    done = normalise(b"File /tmp/x/workspace/a.py\nRan 3 tests in 0.123s\n", [("/tmp/x/workspace", "<workspace>")])
    assert done.text == "File <workspace>/a.py\nRan 3 tests in <elapsed>s\n"
    assert done.rules == ("path of the workspace", "unittest elapsed time")


def test_pytest_summaries_lose_their_time_only() -> None:
    for line, expected in (
        (b"3 passed in 0.12s", "3 passed in <elapsed>s"),
        (b"==== 1 failed, 2 passed in 61.40s (0:01:01) ====", "==== 1 failed, 2 passed in <elapsed>s ===="),
        (b"no tests ran in 0.01s", "no tests ran in <elapsed>s"),
        (b"5 passed, 2 subtests passed in 0.12s", "5 passed, 2 subtests passed in <elapsed>s"),
        (b"1/3 tests collected (2 deselected) in 0.01s", "1/3 tests collected (2 deselected) in <elapsed>s"),
        (b"no tests collected in 0.01s", "no tests collected in <elapsed>s"),
        (b"1 passed in 90061.00s (1 day, 1:01:01)", "1 passed in <elapsed>s"),
    ):
        assert normalise(line, []).text == expected


def test_the_filling_around_a_pytest_summary_does_not_tell_how_long_the_time_was() -> None:
    def summary(seconds: str) -> bytes:
        return f" 1 failed, 2 passed in {seconds} ".center(80, "=").encode() + b"\n"

    texts = {normalise(summary(seconds), []).text for seconds in ("9.98s", "10.02s", "61.40s (0:01:01)")}
    assert texts == {"==== 1 failed, 2 passed in <elapsed>s ====\n"}


def test_other_times_and_numbers_stay() -> None:
    text = "finished in 0.5s\nRan away in 3s\nit took 1.2 s\nRan 3 tests quickly in 0.1s\n"
    assert normalise(text.encode(), []) == Normalised(text, ())


def test_bytes_that_are_not_text_stay_visible() -> None:
    assert normalise(b"a\xffb", []).text == "a\\xffb"


PATHS = [("/tmp/x/workspace", "<workspace>"), ("/tmp/x", "<scratch folder>")]
PIECES = [*(path.encode() for path, _ in PATHS), b"Ran 3 tests in 0.1s", b"==== 1 passed in 1.25s ====", b"\n", b"a",
          "é".encode(), b"\xff", b"\xe2\x82", b"/tmp", b" in "]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.integers(1, 9), max_size=20))
def test_a_stream_in_any_chunks_is_normalised_as_a_whole(pieces: list[bytes], sizes: list[int]) -> None:
    content = b"".join(pieces)
    stream = Normaliser(PATHS)
    rest = content
    for size in sizes:
        stream.feed(rest[:size])
        rest = rest[size:]
    stream.feed(rest)
    assert stream.finish() == normalise(content, PATHS)


@pytest.mark.parametrize("offset", range(-20, 21))
def test_a_path_is_replaced_wherever_a_very_long_line_is_cut(offset: int) -> None:
    filler = b"x" * ((1 << 16) + offset)
    stream = Normaliser(PATHS)
    for part in (filler, b"/tmp/x/works", b"pace/a", filler, b"/tmp/x", b"\nRan 1 test in 0.5s"):
        stream.feed(part)
    expected = f"{filler.decode()}<workspace>/a{filler.decode()}<scratch folder>\nRan 1 test in <elapsed>s"
    done = stream.finish()
    assert done.text == expected
    assert done.rules == ("path of the workspace", "path of the scratch folder", "unittest elapsed time")


def test_all_of_a_stream_counts_and_its_first_bytes_are_kept() -> None:
    stream = Normaliser([], limit=10)
    for _ in range(100_000):
        stream.feed("é\n".encode())
    stream.feed(b"Ran 1 test in 0.5s")
    whole = "é\n" * 100_000 + "Ran 1 test in <elapsed>s"
    content = whole.encode()
    assert stream.finish() == Normalised(
        "é\n" * 3, ("unittest elapsed time",), Whole(len(content), hashlib.sha256(content).hexdigest())
    )


def test_output_that_fits_exactly_is_not_cut() -> None:
    stream = Normaliser([], limit=4)
    stream.feed(b"abcd")
    assert stream.finish() == Normalised("abcd", ())


def cut(text: str, size: int, digest: str) -> RunOutput:
    return RunOutput("exit status 0", Normalised(text, (), Whole(size, digest)), Normalised("", ()))


def test_a_difference_past_the_kept_part_is_one_and_says_so() -> None:
    assert first_difference([cut("a", 9, "12"), cut("a", 9, "12")]) is None
    found = first_difference([cut("a", 9, "12"), cut("a", 9, "12"), cut("a", 9, "34")])
    assert found is not None
    assert (found.stream, found.line, found.run) == ("stdout", None, 3)
    assert found.expected == "past the part that is kept: 9 bytes in all, sha256:12"
    assert found.found == "past the part that is kept: 9 bytes in all, sha256:34"
    only_one = first_difference([output("a"), cut("a", 9, "12")])
    assert only_one is not None
    assert only_one.expected == "nothing past the part that is kept"
    assert cut("a", 9, "12").digest != cut("a", 9, "34").digest
    # What is kept is looked at first: there the line can be told.
    line = first_difference([cut("a\nb", 9, "12"), cut("a\nc", 9, "34")])
    assert line is not None
    assert (line.line, line.expected, line.found) == (2, "b", "c")


def test_runs_that_agree_have_no_difference() -> None:
    assert first_difference([output("a\n", "b\n")] * 3) is None


def test_the_first_differing_line_and_run_are_found() -> None:
    found = first_difference([output("a\nb\nc\n"), output("a\nb\nc\n"), output("a\nX\nY\n")])
    assert found is not None
    assert (found.stream, found.line, found.run, found.expected, found.found) == ("stdout", 2, 3, "b", "X")


def test_a_missing_line_and_a_missing_last_line_feed_are_differences() -> None:
    shorter = first_difference([output("a\nb"), output("a")])
    assert shorter is not None
    assert (shorter.line, shorter.expected, shorter.found) == (2, "b", None)
    unended = first_difference([output("a\n"), output("a")])
    assert unended is not None
    assert (unended.line, unended.expected, unended.found) == (2, "", None)


def test_the_exit_status_is_compared_before_the_output() -> None:
    found = first_difference([output("a"), output("b", status="exit status 1")])
    assert found is not None
    assert (found.stream, found.line, found.expected, found.found) == (
        "exit status",
        None,
        "exit status 0",
        "exit status 1",
    )


def test_standard_error_counts() -> None:
    found = first_difference([output("a", "x"), output("a", "y")])
    assert found is not None
    assert found.stream == "stderr"


def test_the_digest_is_what_the_documentation_says() -> None:
    expected = hashlib.sha256(b"out\n\0err\n").hexdigest()
    assert output("out\n", "err\n").digest == f"sha256:{expected}"
    # Moving text between the streams changes it.
    assert output("a", "b").digest != output("ab", "").digest
