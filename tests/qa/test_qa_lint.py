"""The rules of good question sets: each finds what it is for, and is silent about what only looks like it."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from evals.qa.file import QaFile, parse_qa
from evals.qa.lint import CODES, Finding, lint_file
from evals.shipped import shipped

# Ten pairs that break no rule, of several kinds.
CLEAN = [
    ("Which team owns the module that computes the tax? Answer with its handle as it is written.", "@acme/finance"),
    ("How many retries does the payment client make? Answer with a whole number.", "3"),
    ("On which day was the first decision accepted? Answer in the format YYYY-MM-DD.", "2024-03-05"),
    ("Which class is raised when a rate is missing?", "UnknownRate"),
    ("Who wrote the runbook on lost mails?", "Ada Lovelace"),
    ("What is the path of the file that holds the exporter, from the root?", "exports/csv.py"),
    ("Is the export turned on in staging? Answer yes or no.", "no"),
    ("How long may one attempt take in production? Answer in seconds, without the unit.", "20"),
    ("Which text does the client log when it gives up? Answer exactly as it is written.", "service cannot be reached"),
    ("Which colour has the label of the oldest open bug of 2023?", "teal"),
]


def build(*pairs: tuple[str, str]) -> QaFile:
    text = "".join(
        f"<qa_pair><question>{escape(question)}</question><answer>{escape(answer)}</answer></qa_pair>"
        for question, answer in pairs
    )
    return parse_qa(f"<evaluation>{text}</evaluation>".encode(), Path("q.xml"))


def codes(question: str, answer: str) -> list[str]:
    """The codes found for a pair among pairs that break no rule."""
    return [one.code for one in lint_file(build((question, answer), *CLEAN)) if one.pair == 1]


def of_file(*pairs: tuple[str, str]) -> list[Finding]:
    return [one for one in lint_file(build(*pairs)) if one.pair is None]


def test_good_pairs_have_no_finding() -> None:
    assert lint_file(build(*CLEAN)) == []


@pytest.mark.parametrize("name", ["repository.xml", "tasks.xml"])
def test_the_shipped_files_have_no_finding(name: str) -> None:
    path = shipped("fixtures", "qa", name)
    assert lint_file(parse_qa(path.read_bytes(), path)) == []


FOUND = {
    "answer-list": [
        ("Which tools does it have?", "list_files, read_file, search_text"),
        ("Who may approve it?", "Ada, Grace and Edsger"),
        ("Which ports are open?", "80; 443"),
        ("Which states are there?", "- draft\n- issued"),
        ("List all tags of the issue, comma-separated.", "bug, ui"),
        ("Which two teams own it?", "backend and finance"),
        ("How is it called?", "three or four"),
        ("Who are the two owners of the project?", "Ann and Bob"),
        ("What are the tags of release 2.1?", "alpha, beta"),
        ("What files were changed in commit abc?", "a.py,b.py"),
        ("Which open source licenses are used?", "MIT, Apache 2.0"),
        ("Which people reviewed it?", "Ann & Bob"),
        ("Name the reviewers of the change.", "Ann, Bob"),
        ("Give the three ports.", "80, 443 and 8080"),
        ("Which of the services were stopped?", "mail and search"),
        ("Which tool is it?", "list_files, read_file, search_text"),
        ("Who is the owner?", "Ann, Bob and Carl"),
    ],
    "answer-structured": [
        ("What is the configuration?", '{"retries": 3}'),
        ("What does it return?", '["a", "b"]'),
        ("What is the element?", "<net>12</net>"),
        ("What are its fields?", "name: a\nkind: b"),
    ],
    "answer-prose": [
        ("Why was it rejected?", "It was rejected since the tests of the exporter failed twice."),
        ("What happened?", "The disk was full. The job stopped."),
        ("Why?", "one\ntwo three four five six seven"),
    ],
    "answer-vague": [
        ("How many users has it?", "about 500"),
        ("How many users has it?", "~500"),
        ("How many users has it?", "several hundred"),
        ("How fast is it?", "it depends"),
    ],
    "format-unstated": [
        ("When was it released?", "2024-03-05"),
        ("When was it released?", "March 5, 2024"),
        ("When was it released?", "5 March 2024"),
        ("At what time does it run?", "08:00"),
        ("What is the total?", "240.45"),
        ("How many bytes has it?", "1,048,576"),
        ("How long does it wait?", "15 ms"),
        ("Which share is covered?", "85%"),
        ("What does it cost?", "$12.50"),
        ("Is it turned on?", "yes"),
        ("Does the export check its rows?", "True"),
    ],
    "relative-time": [
        ("Who is currently on call?", "Ada"),
        ("How many issues are open now?", "12"),
        ("What is the latest release?", "v2"),
        ("Which job ran most recently?", "nightly"),
        ("Who joined last month?", "Ada"),
        ("How many were merged in the last 30 days?", "12"),
        ("What was added three weeks ago?", "teal"),
        ("What is the current status of the job?", "failed"),
        ("Who is the current maintainer?", "Ada"),
        ("What's the project's current licence?", "MIT"),
        ("Who is presently on call?", "Ada"),
        ("Who is the present CEO?", "Ada"),
        ("Which version is deployed at this time?", "v2"),
        ("How many issues were closed since last Monday?", "12"),
        ("Who was hired last summer?", "Ada"),
        ("How many were closed last week in Berlin?", "12"),
        ("How many were sold up to now?", "12"),
        ("Which job is still running?", "nightly"),
        ("Who holds the upcoming talk?", "Ada"),
    ],
    "not-read-only": [
        ("Create a task named x and answer with its action.", "count"),
        ("Look for the oldest task, then delete it. What was its name?", "alpha"),
        ("Please rename the report. What is its id?", "r1"),
        ("Set the status of the invoice to paid. Which total does it show?", "12"),
        ("Can you cancel the run? Answer with its id.", "r1"),
        ("Remove the label from the issue. How many are left?", "2"),
        ("Run the nightly job. What does it print?", "done"),
        ("Register a new user and give the id.", "u1"),
        ("Book a flight to Rome. What is its number?", "AZ12"),
        ("Remind the customer of the invoice. Which total does it show?", "12"),
        ("Pay the invoice of March 2023. What is left?", "12"),
        ("Please revoke the key of the tester. What was its prefix?", "ab"),
        ("Schedule a meeting with Ada. Answer with its id.", "m1"),
        ("Order a new laptop. What is its id?", "l1"),
        ("Turn off the alarm. What did it watch?", "disk"),
    ],
    "answer-in-question": [
        ("Which team, finance or not, owns the ledger of finance?", "Finance"),
        ("What does the client raise instead of UnknownRate when a rate is missing?", "UnknownRate"),
        ("Where is docs/guide.md kept?", "docs/guide.md"),
    ],
    "title-quoted": [
        ('Who wrote the page "How we ship on Fridays"?', "Ada"),
        ("Who closed the issue “Totals are off by one”?", "Ada"),
        ("Which label has the issue 'Totals are off by one'?", "teal"),
    ],
    "duplicate-question": [],
}


@pytest.mark.parametrize(("code", "pair"), [(code, pair) for code, pairs in FOUND.items() for pair in pairs])
def test_a_rule_finds_what_it_is_for(code: str, pair: tuple[str, str]) -> None:
    assert code in codes(*pair)


SILENT = [
    # one thing with commas, and the like
    ("Where was it signed?", "Paris, France"),
    ("Which title?", "The Good, the Bad and the Ugly"),
    ("Which place?", "Paris, Texas, USA"),
    ("Where was it made?", "Springfield, Illinois, United States"),
    ("What is the firm called?", "Smith, Jones and Partners"),
    ("Which sports team won it in 2020?", "Paris, Texas"),
    ("Which class has it?", "Arts and Crafts"),
    ("Which team owns the two services?", "Research and Development"),
    ("What are the total costs? Answer in euros, as it is written.", "1,234 EUR"),
    ("What were the coordinates? Answer exactly as they are stored.", "52.5,13.4"),
    ("Which files are read first?", "conf/main.toml"),
    ("What is the signature of the function?", "convert(amount, source, target)"),
    ("Which cron field has it? Answer exactly as it is stored.", "0 8 * * 1,3,5"),
    ("Which character separates the columns of the comma-separated export?", ";"),
    ("Which team reads the list of all releases?", "platform"),
    ("Which placeholder has the template?", "{id}"),
    ("What does the endpoint return when there is nothing?", "[]"),
    ("What is the full title of the decision about the database?", "Why we keep one file and one writer for good"),
    ("Which error does it raise? Answer exactly as it is written.", "Cannot cancel an order. It was shipped already."),
    # forms with one spelling, or a form that is said
    ("In which year was the rate fixed?", "2021"),
    ("Which version of Python does the image use?", "3.12"),
    ("Which version is it?", "2.4.0"),
    ("How many decimals has it? Round to two decimals.", "2.50"),
    ("At what time does it run? Answer as HH:MM in UTC.", "08:00"),
    ("When was it released? Answer like 2020-12-31.", "2024-03-05"),
    ("Is it on? Answer true or false.", "true"),
    # words that are names, or fixed by a date
    ("How many releases have the tag `latest`?", "1"),
    ("Which command shows the status 'currently running'?", "ps"),
    ("What was the latest release in 2024?", "v2"),
    ("Which document keeps the team up to date?", "handbook"),
    ("Who knows the answer?", "Ada"),
    ("Which function returns the current user?", "whoami"),
    ("What is the current directory of the job called in its configuration?", "cwd"),
    ("How many were sold in the last week of 2023?", "12"),
    ("What is the net present value of the plan of 2020, as a whole number?", "12"),
    ("Which rule may this fall under?", "privacy"),
    ("Which rated current has the motor, in ampere, as a whole number?", "12"),
    # words of change that are no orders
    ("Which command creates a task?", "add"),
    ("Who may delete the repository?", "owner"),
    ("Which module was added to update the rates?", "rates.py"),
    ("How many were sold? Remove the unit from the number.", "12"),
    ("Add the three amounts. What is the total, as a whole number?", "12"),
    ("Write the name in lower case: which team owns it?", "platform"),
    ("Which setting must be set to turn it on?", "xml_export"),
    ("Write the name of the file: which one holds the rates?", "fx"),
    ("Remind me which team owns the ledger.", "finance"),
    ("Order the releases by date. Which is the first?", "v1"),
    ("Who may book a flight?", "staff"),
    ("Which module can register a new user?", "signup"),
    # the answer is one of those to choose from, or too short to mean anything
    ("Is the invoice draft, issued or paid?", "issued"),
    ("Which is older, the CSV or the XML export?", "XML"),
    ("How many of the 3 jobs failed?", "3"),
    # quotations that are short, or a form
    ("Which module sets the header 'X-Team'?", "http.py"),
    ('Who was told? Answer in the format "Last, First Middle".', "Hopper"),
]


@pytest.mark.parametrize("pair", SILENT)
def test_what_only_looks_like_a_mistake_is_none(pair: tuple[str, str]) -> None:
    assert codes(*pair) == []


def test_the_same_question_twice() -> None:
    question, answer = CLEAN[1]
    (one,) = lint_file(build(*CLEAN, (question.upper().replace("?", " ?"), answer)))
    assert (one.code, one.pair, one.why) == ("duplicate-question", 11, "asks what pair 2 asks")


def test_nearly_the_same_question_with_the_same_answer() -> None:
    question, answer = CLEAN[0]
    changed = question.replace("computes the tax", "computes tax")
    assert [one.code for one in lint_file(build(*CLEAN, (changed, answer)))] == ["duplicate-question"]
    assert lint_file(build(*CLEAN, (changed, "@acme/data"))) == []


def test_fewer_than_ten_pairs() -> None:
    (one,) = of_file(*CLEAN[:6])
    assert (one.code, one.severity) == ("few-questions", "error")
    assert one.why.startswith("has 6 pairs")
    assert one.fix == "write 4 more"


def test_answers_of_one_kind() -> None:
    numbers = [(f"How many rows has table {letter}?", str(index + 10)) for index, letter in enumerate("abcdefghij")]
    (one,) = of_file(*numbers)
    assert (one.code, one.severity) == ("answers-alike", "warning")
    assert "10 of 10 answers are of one kind (number)" in one.why


def test_answers_that_can_be_guessed() -> None:
    asked = [(f"Is the flag {letter} on? Answer yes or no.", "yes") for letter in "abcd"]
    assert [one.code for one in of_file(*asked, *CLEAN[:6])] == ["guessable"]


def test_one_answer_to_many_questions() -> None:
    asked = [(f"Who owns the service {letter}?", "Ada Lovelace") for letter in "ab"]
    (one,) = of_file(*CLEAN, *asked)
    assert one.code == "same-answer"
    assert one.why.startswith("pairs 5, 11, 12 have the same answer")


def test_every_finding_says_where_why_and_how() -> None:
    seen = set()
    for pairs in FOUND.values():
        for pair in pairs:
            for one in lint_file(build(pair, *CLEAN)):
                seen.add(one.code)
                assert one.code in CODES
                assert one.why
                assert one.fix
                assert str(one).startswith("pair 1 (line 1): error [" if one.pair else "the file: ")
    assert seen >= set(FOUND) - {"duplicate-question"}
