"""What is put aside before repeats are compared, and where the first difference is found."""

from __future__ import annotations

import hashlib

from evals.workspace.compare import Normalised, RunOutput, first_difference, normalise


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
    ):
        assert normalise(line, []).text == expected


def test_other_times_and_numbers_stay() -> None:
    text = "finished in 0.5s\nRan away in 3s\nit took 1.2 s\nRan 3 tests quickly in 0.1s\n"
    assert normalise(text.encode(), []) == Normalised(text, ())


def test_bytes_that_are_not_text_stay_visible() -> None:
    assert normalise(b"a\xffb", []).text == "a\\xffb"


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
