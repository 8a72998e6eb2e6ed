"""``twogate items`` as its users meet it: output, exit codes, files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from items_support import ITEMS, Items, failed_run, write
from lab import REPOSITORY, REPOSITORY_TARGET, Lab, agent_item, clean_environment, tool_call_item


def test_the_whole_way_of_a_dataset(items: Items) -> None:
    file = write("pr.json", ITEMS)
    assert items("format", "--check", file).errors == ["pr.json: is not formatted; run twogate items format pr.json"]
    assert items("format", file).out == "pr.json: formatted\n"
    assert items("format", "--check", file).code == 0
    assert items("validate", file).out == "pr.json: 2 items are valid\n"

    dry = items("push", "--dry-run", file)
    assert dry.out.splitlines()[0] == (
        "+ dataset things-pr: there is none of that name in the embedded store; it is created"
    )
    assert dry.out.endswith(
        "2 new, 0 changed, 0 unchanged in things-pr (the embedded store); dry run, nothing is sent\n"
    )
    assert items("validate", "--dataset", "things-pr").errors == [
        "there is no dataset 'things-pr' in the embedded store; push a file into it, or name another"
    ]
    assert items("push", file).out.endswith("; sent and read back\n")
    assert items("push", file).out == (
        "0 new, 0 changed, 2 unchanged in things-pr (the embedded store); nothing to send\n"
    )
    assert items("export", "--dataset", "things-pr").out == Path(file).read_text()
    assert items("diff", file, "things-pr").out == "no difference between pr.json and dataset things-pr\n"

    raw = json.loads(Path(file).read_text())
    del raw["items"][0]["metadata"]["expectedArgs"]
    Path("changed.json").write_text(json.dumps(raw))
    changed = items("diff", "things-pr", "changed.json")
    assert (changed.code, changed.out) == (
        1,
        '~ pr/read_file/about\n    metadata.expectedArgs\n      - {"path": "README.md"}\n',
    )
    assert items("push", "changed.json").code == 0
    assert "expectedArgs" not in items("export", "--dataset", "things-pr").out

    assert "archived (things-pr)" in items("archive", "pr/read_file/about").out
    kept = items("export", "--dataset", "things-pr", "--keep-archived", "-o", file)
    assert kept.out == "pr.json: 2 items of things-pr, 1 of them archived\n"
    assert '"status": "ARCHIVED"' in Path(file).read_text()
    # a dataset's archived items can't be listed, and are compared all the same
    assert items("diff", file, "things-pr").out == "no difference between pr.json and dataset things-pr\n"
    assert items("diff", "things-pr", file).code == 0
    revived = items("diff", "things-pr", "changed.json")
    assert (revived.code, revived.out) == (
        1,
        '~ pr/read_file/about\n    status\n      - "ARCHIVED"\n      + "ACTIVE"\n',
    )
    write("other.json", [tool_call_item("else", "What else?", ["read_file"])], "other-pr")
    assert items("push", "other.json").code == 0
    assert items("diff", "other-pr", file).out.count("+ pr/read_file/about") == 1  # it is archived in another dataset


def test_the_documented_way_to_see_a_diff_against_git(tmp_path: Path, lab: Lab) -> None:
    lab.dataset(ITEMS, "things-pr")
    exported = lab.twogate("items", "export", "--dataset", "things-pr", "-o", "pr.json")
    assert exported.returncode == 0, exported.stderr
    text = (lab.root / "pr.json").read_text()
    (lab.root / "pr.json").write_text(text.replace("round_amount", "something else"))
    script = REPOSITORY / "scripts" / "export_dataset.py"
    again = subprocess.run(
        [sys.executable, str(script), "--dataset", "things-pr"],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, again.stdout) == (0, text)
    git = shutil.which("git")
    assert git is not None
    diff = subprocess.run(
        [git, "diff", "--no-index", "pr.json", "-"],
        cwd=lab.root,
        input=again.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert diff.returncode == 1
    changed = [line for line in diff.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        '-        "query": "Who calls something else?"',
        '+        "query": "Who calls round_amount?"',
    ]
    missing = subprocess.run(
        [sys.executable, str(script), "--dataset", "none"],
        cwd=lab.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 1
    assert missing.stderr == (
        "error: there is no dataset 'none' in the embedded store; push a file into it, or name another\n"
    )


def test_problems_of_all_files_at_once(items: Items) -> None:
    one = write("one.json", [{**ITEMS[0], "note": 1}, {"id": "pr/a/b", "input": {"query": ""}}])
    two = write("two.json", [tool_call_item("x", "TODO: ask", ["read_file"])])
    said = items("validate", one, two)
    assert said.code == 1
    assert said.errors == [
        "one.json: pr/read_file/about: note: is not a known key; use id, input, expectedOutput, metadata, status",
        "one.json: pr/a/b: input.query: is empty; write a text",
        "one.json: pr/a/b: metadata: is missing; add it",
        "two.json: pr/read_file/x: input.query: is a draft; edit it and take TODO away",
    ]
    assert items("validate", "none.json", "other.json").errors == [
        "none.json: cannot be read: No such file or directory",
        "other.json: cannot be read: No such file or directory",
    ]
    assert items("push", one).code == 1
    assert items("validate", "--dataset", "things-pr").code == 1


def test_every_command_refuses_half_of_a_character_in_one_line(items: Items) -> None:
    file = write("half.json", [tool_call_item("x", "q \ud800", ["read_file"])])
    before = Path(file).read_bytes()
    for command in (
        ["format"],
        ["format", "--check"],
        ["validate"],
        ["lint", "--no-target"],
        ["coverage"],
        ["push"],
        ["diff", file],
        ["export", "--keep-archived", "--previous"],
    ):
        said = items(*command, file)
        assert said.code == 1, command
        assert said.errors[-1] == (
            "half.json: pr/read_file/x: input.query: holds \\ud800, half of a surrogate pair and no character; "
            "write the whole one"
        ), command
    assert Path(file).read_bytes() == before


def test_a_plain_list_of_items_is_taken_by_every_command(items: Items) -> None:
    Path("list.json").write_text(json.dumps(ITEMS))
    assert items("validate", "list.json").out == "list.json: 2 items are valid\n"
    # the dataset only says what the list is for: it need not exist, and is not looked at
    assert items("validate", "list.json", "--dataset", "things-pr").out == "list.json: 2 items are valid\n"
    wrong = items("validate", "list.json", "--dataset", "things-merge").errors
    assert len(wrong) == 4
    assert wrong[0].startswith(
        "list.json: pr/read_file/about: id: belongs to the pr gate, the dataset to the merge gate"
    )
    assert items("lint", "--no-target", "list.json").code == 0
    assert items("lint", "--no-target", "list.json", "--dataset", "things-pr").code == 0
    assert items("coverage", "--format", "json", "list.json").code == 0

    assert items("format", "list.json").out == "list.json: formatted\n"
    assert [item["id"] for item in json.loads(Path("list.json").read_text())] == [item["id"] for item in ITEMS]
    assert items("format", "--check", "list.json").code == 0
    assert items("push", "list.json").errors == [
        "list.json: is a plain list of items; say by --dataset which dataset they are for"
    ]
    assert items("push", "list.json", "--dataset", "things-pr").code == 0
    assert items("diff", "list.json", "things-pr").out == "no difference between list.json and dataset things-pr\n"

    # a file with a name of its own is read beside the dataset
    named = write("named.json", [ITEMS[0]], "other-pr")
    said = items("validate", named, "--dataset", "things-pr")
    assert said.out == "named.json: 1 items are valid\ndataset things-pr: 2 items are valid\n"
    assert items("validate", named, "list.json", "--dataset", "things-pr").out == (
        "named.json: 1 items are valid\nlist.json: 2 items are valid\n"
    )
    assert items("validate", "list.json", "--dataset", "things-pr", "--dataset", "other-pr").errors[0] == (
        "list.json: is a plain list of items; say by one --dataset which dataset they are for"
    )


def test_a_plain_list_of_both_gates_is_no_dataset(items: Items) -> None:
    Path("mixed.json").write_text(json.dumps([ITEMS[0], agent_item("x", "What is this?")]))
    for command in ("validate", "lint", "coverage"):
        assert items(command, "mixed.json").errors == [
            "mixed.json: is a plain list of items of both gates (ids merge/… and pr/…), but a dataset belongs to one; "
            "make two files of it"
        ]
    Path("nowhere.json").write_text(json.dumps([{**ITEMS[0], "id": "x"}]))
    assert items("validate", "nowhere.json").errors == [
        "nowhere.json: x: id: does not have the form pr/<tool>/<slug> or merge/<family>/<slug>; rename the item"
    ]


def test_only_a_push_brings_a_projects_files_into_its_store(items: Items) -> None:
    """Else a dry run would write, a refused change would be made, and a draft would be an item."""
    shutil.copytree(REPOSITORY / "fixtures" / "datasets", "fixtures/datasets")
    nothing = items("validate")
    assert nothing.code == 1
    assert "neither mcp-server-evals-pr nor mcp-server-evals-merge" in nothing.errors[0]
    for gate in ("pr", "merge"):
        assert items("push", "--dry-run", f"fixtures/datasets/{gate}.json").out.endswith("nothing is sent\n")
    assert items("validate").code == 1
    for gate in ("pr", "merge"):
        assert items("push", f"fixtures/datasets/{gate}.json").code == 0
    path = Path("fixtures/datasets/merge.json")
    before = items("export", "--dataset", "mcp-server-evals-merge").out
    assert before == path.read_text(encoding="utf-8")
    edited = json.loads(before)
    del edited["items"][0]
    edited["items"][0]["input"]["query"] += " Please."
    edited["items"][1]["expectedOutput"] = None
    edited["items"].append({"id": "nonsense", "metadata": {"bogus": 1}})
    path.write_text(json.dumps(edited))
    assert items("push", "--dry-run", str(path)).code == 1
    assert items("push", str(path)).code == 1
    assert items("export", "--dataset", "mcp-server-evals-merge").out == before
    path.write_text(before)
    said = items("validate")
    assert said.code == 0
    assert [line.split(":")[0] for line in said.out.splitlines()] == [
        "dataset mcp-server-evals-pr",
        "dataset mcp-server-evals-merge",
    ]


def test_lint_findings_codes_and_exit_codes(items: Items) -> None:
    file = write("pr.json", [*ITEMS, tool_call_item("bad", "Use read_file on README.md.", ["read_file"])])
    said = items("lint", file)
    assert said.code == 1
    assert said.out.splitlines() == [
        'pr.json: pr/read_file/bad: TW101 error: input.query: "Use read_file" names the tool read_file',
        "    why: a user knows no such name, so the case measures reading instead of choosing",
        "    fix: say what the user wants in the user's words, as one who has never seen the tool list "
        f"({REPOSITORY / 'docs' / 'authoring.md'}#tw101)",
        "1 error, 0 warnings in 3 items",
    ]
    assert items("lint", "--ignore", "TW101:pr/read_file/bad", file).code == 0
    assert items("lint", "--select", "TW2", file).code == 0
    without = items("lint", "--no-target", file)
    assert (without.code, without.out.splitlines()[0][:32]) == (0, "without a target, not looked at:")
    plain = json.loads(items("lint", "--json", file).out)
    assert (plain["errors"], plain["findings"][0]["item"]) == (1, "pr/read_file/bad")
    usage = items("lint", "--select", "TW9", file)
    assert (usage.code, "TW9: no such code" in usage.errors[-1]) == (2, True)
    assert items("lint", "--no-target", "--target", "twogate.toml", file).code == 2
    assert items("lint", "--target", "none.toml", file).errors == ["--target none.toml: there is no such file"]


def test_coverage_with_groups_a_run_and_a_limit(items: Items, tmp_path: Path) -> None:
    file = write("pr.json", ITEMS)
    groups = '\n[coverage.read_file]\ngroups = { range = ["start_line", "end_line"] }\n'
    Path("twogate.toml").write_text(REPOSITORY_TARGET + groups)
    said = items("coverage", "--format", "json", file)
    plain = json.loads(said.out)
    rows = {(cell["tool"], cell["group"]): cell for cell in plain["cells"]}
    assert ("read_file", "start_line") not in rows
    assert rows["read_file", "range"]["covered"] is False
    assert rows["read_file", "path"]["dedicated"] == ["pr/read_file/about"]

    failed_run(tmp_path / ".twogate" / "runs" / "some-run")
    called = json.loads(items("coverage", "--format", "json", "--run", "latest", file).out)
    rows = {(cell["tool"], cell["group"]): cell for cell in called["cells"]}
    assert (rows["read_file", "range"]["covered"], rows["read_file", "range"]["called_dedicated"]) == (True, 1)
    assert called["covered"] == plain["covered"] + 1
    assert items("coverage", "--run", "some-rum", file).errors == [
        "there is no run 'some-rum' in .twogate/runs; name one that is there, or its folder"
    ]

    assert items("coverage", "--fail-under", "20", file).code == 0
    low = items("coverage", "--fail-under", "90", "--format", "markdown", "-o", "coverage.md", file)
    assert (low.code, low.out) == (1, "")
    assert low.errors == [f"coverage is {plain['percent']:.1f} %, under the 90 % asked for"]
    assert Path("coverage.md").read_text().startswith("| Tool | Parameter or outcome |")

    items("push", file)
    drafted = items("import", "--from-run", "some-run", "-o", "drafts.json")
    assert drafted.out == (
        "drafts.json: 1 drafts for things-pr, 1 to be edited before a push; next: twogate items lint drafts.json\n"
    )
    assert items("push", "drafts.json").errors == [
        "drafts.json: pr/read_file/about-draft: input.query: is a draft; edit it and take TODO away"
    ]

    Path("twogate.toml").write_text(REPOSITORY_TARGET + "\n[coverage.read_file]\ngroups = { range = [] }\nall = 1\n")
    assert items("coverage", file).errors == [
        "twogate.toml: coverage.read_file.groups.range: tuple should have at least 1 item after validation, not 0 "
        "(is [])",
        "twogate.toml: coverage.read_file.all: is not a known key; use groups",
    ]


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ('{"dataset": "other-pr", "items": []}', "holds the dataset other-pr, not things-pr"),
        ("# Notes", "is there and is no dataset file"),
        ("{}", "is there and is no dataset file"),
        ('[{"users": "my data"}]', "is there and is no dataset file"),
        ('{"dataset": "things-pr", "items": [1, "x"]}', "is there and is no dataset file"),
    ],
)
def test_an_export_replaces_no_file_of_something_else(items: Items, there: str, says: str) -> None:
    write("pr.json", ITEMS)
    assert items("push", "pr.json").code == 0
    Path("there.json").write_text(there)
    done = items("export", "--dataset", "things-pr", "-o", "there.json")
    assert done.code == 1
    assert done.errors == [f"there.json: {says}; name another file, or remove this one first"]
    assert Path("there.json").read_text() == there
    for mine in ("", '{"dataset": "things-pr", "items": []}', "[]"):
        Path("there.json").write_text(mine)
        assert items("export", "--dataset", "things-pr", "-o", "there.json").code == 0


def test_usage_errors(items: Items) -> None:
    assert items("export", "--keep-archived").code == 2
    assert items("export", "--previous", "x.json", "-o", "y.json").code == 2
    assert items("archive").code == 2
    assert items("push").code == 2
    assert items("archive", "pr/a/b").errors == ["pr/a/b: there is no such item in the embedded store"]
    write("pr.json", ITEMS)
    assert items("push", "pr.json").code == 0
    assert items("export", "--dataset", "things-pr", "-o", "none/x.json").errors == [
        "none/x.json: cannot be written: No such file or directory"
    ]
