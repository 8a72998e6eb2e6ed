"""Each rule on what it must find and on what it must leave alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from authoring_support import REPOSITORY, agent, catalog, codes, findings, good, tool_call

from evals.agents.claude_code import BUILTIN_TOOLS
from evals.authoring.catalog import Catalog, read_catalog
from evals.authoring.checking import check_content
from evals.authoring.dataset_file import DatasetContent, read_dataset_file
from evals.authoring.lint.engine import Selection, lint
from evals.authoring.lint.registry import CODES, RULES
from evals.authoring.lint.report import lint_json, lint_lines
from evals.authoring.stored import StoredItem
from evals.target import load_target

GUIDE = (REPOSITORY / "docs" / "authoring.md").read_text(encoding="utf-8")
BAD = {gate: REPOSITORY / "fixtures" / "lint" / f"bad-{gate}.json" for gate in ("pr", "merge")}
GOOD = sorted((REPOSITORY / "fixtures" / "datasets").glob("*.json"))


@pytest.fixture(scope="module")
def shipped_target() -> Catalog:
    """The tools of the two bundled servers, asked for live."""
    checked = [check_content(read_dataset_file(path)) for path in (*BAD.values(), *GOOD)]
    target = load_target(REPOSITORY, {}, REPOSITORY / "twogate.toml")
    return read_catalog(target, [item for one in checked for item in one.items], BUILTIN_TOOLS)


def test_the_shipped_bad_cases_are_found_each_exactly_once(shipped_target: Catalog) -> None:
    checked = [(gate, check_content(read_dataset_file(path))) for gate, path in BAD.items()]
    found = lint(checked, shipped_target).findings
    assert sorted(finding.code for finding in found) == sorted(CODES)
    for finding in found:
        # the slug says which rule the case breaks
        assert finding.code.lower() in finding.item or finding.code == "TW003", finding


def test_nothing_is_found_in_the_shipped_good_datasets(shipped_target: Catalog) -> None:
    assert GOOD
    report = lint([(path.name, check_content(read_dataset_file(path))) for path in GOOD], shipped_target)
    assert report.findings == ()
    assert report.items >= 40


def test_every_code_is_documented_under_its_link() -> None:
    headings = re.findall(r"^#+ (TW\d{3})$", GUIDE, re.MULTILINE)
    assert headings == sorted(CODES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_a_good_item_of_each_kind() -> None:
    assert codes(good()) == []
    assert codes(tool_call("pr/get_task/good", "What does nightly-report do?", ["get_task"])) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Use get_task on nightly-report.", ["TW101 error"]),
        ("Please use get task on nightly-report.", ["TW101 warning"]),
        ("Get task nightly-report for me.", []),
        ("Show me what nightly-report does, caseSensitive please.", []),
        ("Show the last five, limit=5.", []),  # a parameter of another tool than the item's
        ("Show nightly-report, task=nightly-report.", ["TW102 error"]),
        ('Show {"task": "nightly-report"}.', ["TW102 error"]),
        ("Show it to me, task: nightly-report.", ["TW102 warning"]),
        ("Show me this task: nightly-report.", []),
        ("Ask things.get_task about it.", ["TW101 error"]),
        ("Ask things.search about it.", ["TW101 error"]),
        ("Run get_task—then tell me.", ["TW101 error"]),
        ("Pick get_task|list_tasks for it.", ["TW101 error"]),
        ("Which things tools are there?", ["TW103 warning"]),
        ("Give me one saved task with its action, please.", ["TW105 error"]),
        ("Give me a saved task with the action it has.", []),
    ],
)
def test_what_gives_the_answer_away(query: str, expected: list[str]) -> None:
    assert [f"{finding.code} {finding.severity}" for finding in findings(good(query))] == expected


def test_a_family_is_a_word_of_the_harness_and_a_server_may_be_a_product() -> None:
    (found,) = findings(good("Which billing tools are there?", tools=["billing"]))
    assert (found.code, found.severity) == ("TW103", "error")
    (found,) = findings(good("Which things tools are there?", tools=["billing"]))
    assert (found.code, found.severity) == ("TW103", "warning")


def test_all_parameters_count_where_the_item_is_about_no_single_tool() -> None:
    item = agent("merge/tasks/single-any", "Show five at most, limit=5.", category="everything")
    assert codes(item) == ["TW102"]


def test_hard_items_are_held_to_more() -> None:
    assert codes(agent("merge/tasks/hard-one", "Get task nightly-report for me.")) == ["TW104"]
    assert codes(agent("merge/tasks/hard-one", "Use get_task for nightly-report.")) == ["TW104"]
    assert codes(agent("merge/tasks/hard-one", "Go by get_task…and then tell me.")) == ["TW104"]
    assert codes(agent("merge/tasks/hard-one", "What is nightly-report for?")) == []


def test_a_name_inside_what_the_first_call_must_search_for_is_fine() -> None:
    query = "Where is get_task mentioned?"
    assert codes(tool_call("pr/search/a", query, ["search"], expectedArgs={"query": "get_task"})) == []
    assert codes(tool_call("pr/search/a", query, ["search"])) == ["TW101"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Fetch https://your-site.com/a", True),
        ("Fetch https://www.mysite.io", True),
        ("Fetch example-shop.com please", True),
        ("Fetch https://api.example.com/v1", True),
        ("Fetch https://shop.example", True),
        ("Fetch http://foo.com", True),
        ("Fetch https://test-domain.org", True),
        ("Fetch https://example.co.uk/a", True),
        ("Fetch www.yourdomain.co.uk please", True),
        ("Fetch example.com.au", True),
        ("Fetch https://shop-example.com", True),
        ("Fetch https://my-example-api.io", True),
        ("Fetch examplecorp.com or so", True),
        ("Fetch https://your-api.com/v1", True),
        ("Fetch test.de", True),
        ("Fetch https://www.bbc.co.uk, gov.uk and shop.co.uk", False),
        ("Fetch https://gobyexample.com and https://learn-by-example.com", False),
        ("Fetch https://co.uk", False),
        ("Fetch https://example.com/a and https://www.example.org", False),
        ("Fetch https://www.rfc-editor.org/rfc/rfc9110", False),
        ("Fetch https://shop.com and https://www.website.com", False),
        ("Fetch python.org, docs.python.org and contest.io", False),
        ("Write to jane@foo.com", False),
        ("Open src/foo.test.ts and my-site.config.dev.ts and foo.com.py", False),
        ("Fetch http://127.0.0.1:80/ and http://localhost/x", False),
    ],
)
def test_placeholder_hosts(query: str, found: bool) -> None:
    assert codes(good(query)) == (["TW106"] if found else [])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Repeat nightly-report's description word for word.", True),
        ("Copy the whole text of it.", True),
        ("Show me the entire contents of it.", True),
        ("Print the entire README.md here.", True),
        ("Reproduce the whole changelog", True),
        ("Print docs/README.md in full.", True),
        ("Give me every line of it exactly as it is written.", True),
        ("Read it and output its text from beginning to end.", True),
        ("Show whether the entire changelog is in French.", False),
        ("Write a letter to the board in full sentences.", False),
        ("Copy the whole config.yaml to another folder.", False),
        ("Give me a full guide to it.", False),
        ("Show every line that raises an error.", False),
        ("Give the whole thing the heading Guests.", False),
        ("Show the whole team.", False),
        ("Is the entire text of it in French?", False),
        ("What is written in its third line?", False),
    ],
)
def test_long_repetitions(query: str, found: bool) -> None:
    assert codes(good(query)) == (["TW107"] if found else [])
    # nothing is repeated where nothing runs
    assert codes(tool_call("pr/get_task/a", query, ["get_task"])) == []


def test_errors_that_are_provoked_are_expected() -> None:
    query = "What does no-such-report do?"
    assert codes(good(query)) == ["TW109"]
    assert codes(good(query, expectedErrors=["get_task"])) == []
    assert codes(agent("merge/tasks/single-not-found", "What does the old report do?")) == ["TW109"]
    assert codes(good("What does the report that does not exist say?")) == ["TW109"]
    # a list without hits is no error
    assert codes(agent("merge/tasks/single-a", query, category="list_tasks")) == []


def test_turns_leave_room_for_what_is_asked() -> None:
    query = "Save it as eval-a. Then run it. Then show me the result. Finally remove it."
    assert codes(good(query, maxTurns=4)) == ["TW110"]
    assert codes(good(query, maxTurns=5)) == []
    assert codes(good(query)) == []
    assert codes(agent("merge/tasks/hard-a", "Why is the total wrong?", maxTurns=7)) == ["TW110"]
    many = "Do this:\n" + "\n".join(f"{number}. thing" for number in range(14))
    (found,) = findings(good(many))
    assert found.code == "TW110"
    assert "is not set, so 10, and its query makes 14 requests: 15" in found.message
    assert codes(good(many, maxTurns=20)) == []
    numbered = "Do this:\n1. first\n2. second\n3. third\n4. fourth"
    assert codes(good(numbered, maxTurns=3)) == ["TW110"]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("It says 3.", ["TW201"]),
        ("PASS only if it says 3.", ["TW201"]),
        ("FAIL if it says 4. PASS only if it says 3.", ["TW201"]),
        ("pass only if it says 3. fail if not.", ["TW201"]),
        ("PASS only if it says 3.\nFAIL if it says 4.", []),
        ("PASS only if the tool returned 3. FAIL if it says 4.", ["TW202"]),
        ("PASS only if the server's response is 3. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it handles the error gracefully. FAIL if it gives up.", ["TW202"]),
        ("PASS only if it gives a helpful answer. FAIL if it gives up.", ["TW202"]),
        ("PASS only if the agent calls get_task and answers 3. FAIL if it answers without a call.", []),
        ("PASS only if get_task returned the title. FAIL if it says 4.", ["TW202"]),
        ("PASS only if `get_task` answers 3. FAIL if it says 4.", ["TW202"]),
        ("PASS only if the result of list_tasks has five tasks. FAIL if it says 4.", ["TW202"]),
        ("PASS only if create_task succeeded. FAIL if it says 4.", ["TW202"]),
        ("PASS only if create_task was successful. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it gives what was returned by mcp__things__get_task. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it says 3 and list_tasks's output has it. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it answers that it is 3, and the tool result has it. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it reports the output of create_task. FAIL if it says 4.", ["TW202"]),
        ("PASS only if its reasoning is sound. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it calls create_task, then get_task, and reports 3. FAIL if it says 4.", []),
        ("PASS only if it finds the first search result. FAIL if it says 4.", []),
        ("PASS only if the answer says that the server responded with 503. FAIL if it says 502.", []),
        ("PASS only if the answer says the server responded with 503. FAIL if it says 502.", []),
        ("PASS only if it tells that the payment API returned 402. FAIL if it says 502.", []),
        ("PASS only if it tells the user plainly that the call succeeded. FAIL if it says 502.", []),
        ("PASS only if it explains its reasoning step by step, as the user asked. FAIL if it says 4.", []),
        ("PASS only if it saves 3. FAIL if it claims that create_task succeeded.", []),
        ('PASS only if it answers with the text "The tool returned 3". FAIL if it says 4.', []),
        ("PASS only if it responds that the import works correctly. FAIL if it says 4.", []),
        ("PASS only if it responds correctly. FAIL if it says 4.", ["TW202"]),
        ("PASS only if it says 3. FAIL if it doesn't mention the author.", ["TW203"]),
        ("PASS only if it says 3. FAIL if it omits the date.", ["TW203"]),
        ("PASS only if it says 3 and does not mention 4. FAIL if it says 5.", []),
        ("PASS only if it says 3. FAIL if it gives another number or does not look.", []),
        ("PASS only if it says 3. FAIL if the answer does not include the date.", ["TW203"]),
        ("PASS only if it says 3. FAIL if the date is not mentioned.", ["TW203"]),
        ("PASS only if it says 3. FAIL if it says 4 or there is no mention of the date.", ["TW203"]),
        ("PASS only if it says 3. FAIL if the answer lacks the date.", ["TW203"]),
        ("PASS only if it says 3. FAIL if it lacks the date.", ["TW203"]),
        ("PASS only if it says 3. FAIL if the date is missing from the answer.", ["TW203"]),
        ("PASS only if it says 3. FAIL if the date goes unmentioned.", ["TW203"]),
        # what the user asked for stands under PASS; saying it again is no other demand
        ("PASS only if it names the date. FAIL if it does not mention the date.", []),
        ("PASS only if it names the date. FAIL if the date is not mentioned or wrong.", []),
        ("PASS only if it names the date. FAIL if it does not mention the date or is not told the hour.", ["TW203"]),
        ("PASS only if it names the date. FAIL if it does not name the date.", []),
        ("PASS only if it names the date. FAIL if it does not say so.", []),
        ("PASS only if it deletes nightly. FAIL if it does not say so.", ["TW203"]),
        ("PASS only if it deletes nightly. FAIL if the deletion of nightly is not mentioned.", ["TW203"]),
        ("PASS only if it deletes nightly. FAIL if it does not mention nightly.", ["TW203"]),
        ("PASS only if it saves 3. FAIL if the saved list does not include Ben.", []),
        ("PASS only if it saves 3. FAIL if one of the times is missing at the end.", []),
        ("PASS only if it says 3 and apologizes. FAIL if it says 4.", ["TW204"]),
        ("PASS only if it says 3 in a user-friendly way. FAIL if it says 4.", ["TW204"]),
        ("PASS only if it runs mobile-friendly-sums. FAIL if it says 4.", []),
        ("PASS only if it runs `polite`. FAIL if it says 4.", []),
        ('PASS only if it answers "Kindly, Ann". FAIL if it says 4.', []),
        ("PASS only if it says 3 in a friendly way. FAIL if it says 4.", ["TW204"]),
        ("PASS only if it saves another kind of task. FAIL if it says 4.", []),
    ],
)
def test_references(reference: str, expected: list[str]) -> None:
    assert codes(agent("merge/tasks/single-a", "How many are there?", reference)) == expected


def test_near_duplicates_are_reported_once_each() -> None:
    one = tool_call("pr/get_task/a", "What does the report of each night do?", ["get_task"])
    two = tool_call("pr/get_task/b", "what does the REPORT of each night do", ["get_task"])
    three = tool_call("pr/get_task/c", "What does the report of each night do!", ["get_task"])
    other = tool_call("pr/get_task/d", "What does the report of each month do?", ["get_task"])
    found = findings(one, two, three, other, select="TW003")
    assert [finding.item for finding in found] == ["pr/get_task/b", "pr/get_task/c"]
    assert "of pr/get_task/a" in found[1].message


def test_without_a_target_the_rules_that_need_one_are_named() -> None:
    item = tool_call("pr/get_task/a", "Use get_task. Fetch foo.com.", ["get_task"])
    report = lint([("t", check_content(DatasetContent("t", (item,))))], None)
    assert [finding.code for finding in report.findings] == ["TW106"]
    assert report.skipped == tuple(rule.code for rule in RULES if rule.needs_target)
    assert any("TW101" in line.text and "without a target" in line.text for line in lint_lines(report))


def test_selection() -> None:
    item = tool_call("pr/get_task/a", "Use get_task on foo.com with get_task.", ["get_task"])
    twin = tool_call("pr/get_task/b", "Use get_task at foo.com.", ["get_task"])

    def chosen(select: list[str], ignore: list[str]) -> Counter[str]:
        checked = check_content(DatasetContent("t", (item, twin)))
        report = lint([("t", checked)], catalog(), Selection.parse(select, ignore))
        return Counter(finding.code for finding in report.findings)

    assert chosen([], []) == {"TW101": 2, "TW106": 2}
    assert chosen(["tw101"], []) == {"TW101": 2}
    assert chosen(["TW1"], ["TW106"]) == {"TW101": 2}
    assert chosen([], ["TW101:pr/get_task/a, TW106"]) == {"TW101": 1}
    with pytest.raises(ValueError, match="TW9: no such code"):
        Selection.parse(["TW9"], [])


def test_invalid_items_are_reported_beside_the_findings_of_the_others() -> None:
    content = DatasetContent("x-pr", (StoredItem("pr/a/b"), tool_call("pr/get_task/a", "Fetch foo.com", ["get_task"])))
    report = lint([("x", check_content(content))], catalog())
    assert {(finding.item, finding.code) for finding in report.findings} == {
        ("pr/a/b", "TW001"),
        ("pr/get_task/a", "TW106"),
    }
    assert '"link": "docs/authoring.md#tw106"' in lint_json(report)
    assert Path("docs/authoring.md").name in report.findings[0].link
