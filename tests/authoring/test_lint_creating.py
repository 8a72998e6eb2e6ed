"""What a query has an agent create, and whether a clean-up would find it."""

from __future__ import annotations

import pytest
from authoring_support import REPOSITORY, codes, good, tool_call

from evals.authoring.checking import check_content
from evals.authoring.dataset_file import read_dataset_file
from evals.authoring.lint.creating import created_names
from evals.fixtures.naming import Names


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Save a counter named report.", True),
        ("Create one called 'my.report' for nightly-report.", True),
        ("Create one called eval-report for the one named nightly-report.", False),
        ("Create one named `eval-report`.", False),
        ("Save what the one named nightly-report gave. It is called nightly.", True),
        ("What does the thing called nightly-report do?", False),
        ("Add up the numbers 3 and 4.", False),
        ('Create a task "weekly-sums" that adds 2 and 3.', True),
        ('Create a task "weekly" that adds 2 and 3.', True),
        ('Create a task "eval-weekly" that adds 2 and 3.', False),
        ("Create a new task weekly-sums that adds 2 and 3.", True),
        ('Create a counter "weekly-sums" for nightly-report.', True),
        ('Create a counter for the word "hello", as eval-a.', False),
        ("Create a schedule eval-a for a task nightly-report.", False),
        ("Create a task with the name lonely-report.", True),
        ("Create a task with the name eval-report.", False),
        ("Create a greeting named eval-hello with the name Grace filled in.", False),
        ("I need a new task called lonely-report", True),
        ("I'd like a counter called lonely-report.", True),
        ("I need two of these: one for Zoe, called nightly, and one for Mia, called eval-mia.", True),
        ("There should be a task called lonely-report.", True),
        ("Create a document as up-to-date as possible, called eval-doc.", False),
        ("I need a new task called eval-report", False),
        ("I need a word on the task called lonely-report", False),
        ("I want a summary of a task called lonely-report", False),
        ("Why does the new task called lonely-report fail?", False),
        ("Schedule a job called nightly", True),
        ("Please schedule the job called nightly", False),
        ("Show me the schedule of a task called nightly", False),
        ("Write a file called notes.txt", True),
        ("Write a file called docs/eval-notes.txt", False),
        ("Write me a summary of the file called notes.txt", False),
        ("Create one task named eval-a and a second one named nightly-b", True),
        ("Create one task named eval-a and a second one named eval-b", False),
        ("Create two tasks named eval-a and nightly-b", True),
        ("Create two tasks named eval-a, eval-b and eval-c. Then re-run both.", False),
        ("Create a task named eval-a and re-run it.", False),
        ("Create a task named Eval-Report", True),
        ("Create a task named EVAL-report", True),
        ("Create a task called something that starts with eval-.", False),
        ("Save 3 and 4 as nightly-total.", True),
        ("Save 3 and 4 as eval-total.", False),
        ("Save 3 and 4 as eval-total, and mark it as read-only.", False),
        ("Keep a counter for me. Call it nightly.", True),
        ("I saved something; I call it nightly. What does it do?", False),
        ("Which task creates a file called notes.txt?", False),
        ("Don't create a task called nightly, tell me what it would do.", False),
        ("Make sure that the task called nightly is there.", False),
        ("Make a list of tasks called nightly.", False),
        ("Make eval-a for a task called nightly.", False),
        ("Make a schedule eval-a for nightly-report, then rename it to nightly-a.", True),
        ("Rename eval-a to eval-b.", False),
        ("I believe it was called nightly-report. How would it read for a person named Grace?", False),
        ('Save a counter of the words in "All quiet", named eval-quiet, described as "Counts two".', False),
    ],
)
def test_created_things_have_the_prefix(query: str, found: bool) -> None:
    assert codes(good(query)) == (["TW108"] if found else [])
    assert codes(tool_call("pr/create_task/a", query, ["create_task"])) == []


def test_what_the_shipped_cases_create_is_seen_and_cleaned_up() -> None:
    items = check_content(read_dataset_file(REPOSITORY / "fixtures" / "datasets" / "merge.json")).items
    names = [name for item in items for name in created_names(item.query)]
    assert len(names) >= 12
    assert all(map(Names().is_removable, names)), names
