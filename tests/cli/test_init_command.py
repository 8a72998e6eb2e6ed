"""``twogate init``: the first files of a repository, from the author's own words; never over what is there."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from lab import REPOSITORY, Lab, clean_environment

from evals.authoring.checking import check_content
from evals.authoring.dataset_file import read_dataset_file
from evals.init.installation import installed_from
from evals.init.workflows import workflow_text
from evals.init.writing import Answers, initialise
from evals.items import check_item
from evals.shipped import shipped
from evals.target import load_target

WANTS = ["Which invoices are overdue?", "Send a reminder to everyone who owes us money", "Which invoices are overdue?"]
EVERYTHING = {
    "twogate.toml",
    ".env.example",
    "fixtures/datasets/pr.json",
    "fixtures/datasets/merge.json",
    ".github/workflows/pr-gate.yml",
    ".github/workflows/merge-gate.yml",
}
SECRETS = [
    "sk-live-1234567890",
    "ghp_abcdefghijk",
    "bearer-of-a-test",
    "query-of-a-test",
    "flag-of-a-test",
    "hunter2secret",
    "hunter3secret",
    "team-of-a-test",
]
MCP_JSON = {
    "mcpServers": {
        "my server": {
            "command": "node",
            "args": ["dist/index.js", "--api-key=ghp_abcdefghijk", "--token", "flag-of-a-test", 'a "quoted" \\ name'],
            "env": {
                "API_TOKEN": "sk-live-1234567890",
                "NODE_ENV": "test",
                "OTHER_KEY": "${OTHER_KEY}",
                "DATABASE_URL": "postgres://u:hunter3secret@h/d",
            },
            "disabled": False,
        },
        "remote": {
            "type": "http",
            "url": "https://mcp.example.com/mcp?api_key=query-of-a-test&tools=all",
            "headers": {"Authorization": "Bearer bearer-of-a-test", "X-Team": "team-of-a-test"},
        },
        "old": {"command": "node", "args": ["old.js"], "disabled": True},
        "db": {"command": "npx", "args": ["-y", "server-postgres", "postgresql://admin:hunter2secret@db/prod"]},
    }
}


@pytest.fixture
def repository(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def wants() -> list[str]:
    return [part for want in WANTS for part in ("--want", want)]


def test_everything_is_written_once_and_never_again(repository: Lab) -> None:
    done = repository.twogate("init", *wants(), "--start", "node dist/index.js", "--name", "billing")
    assert done.returncode == 0, done.stderr
    first = files(repository.root)
    assert set(first) == EVERYTHING
    assert "next:" in done.stdout
    assert "twogate items push fixtures/datasets/pr.json" in done.stdout
    assert load_target(repository.root, {}).describe() == "billing"
    again = repository.twogate("init", "--want", "Something else", "--start", "other")
    assert again.returncode == 1
    assert again.stdout.count("left as it is: ") == len(EVERYTHING)
    assert "nothing was written" in again.stdout
    assert files(repository.root) == first


def test_drafts_hold_the_authors_words_and_are_refused_until_they_are_finished(repository: Lab) -> None:
    repository.twogate("init", *wants())
    for gate in ("pr", "merge"):
        path = repository.root / "fixtures" / "datasets" / f"{gate}.json"
        content = read_dataset_file(path)
        assert content.name == f"mcp-server-evals-{gate}"
        assert [item.input["query"] for item in content.items] == sorted(WANTS[:2])
        checked = check_content(content)
        assert not checked.items
        assert {problem.item for problem in checked.problems} == {item.id for item in content.items}
        done = repository.twogate("items", "validate", str(path))
        assert done.returncode == 1
        assert f"{gate}/which-invoices-are-overdue: id: does not have the form" in done.stderr
        assert "metadata.category: is empty" in done.stderr
        pushed = repository.twogate("items", "push", str(path), "--embedded")
        assert pushed.returncode == 1
        for item in content.items:
            finished = json.loads(json.dumps(item.raw()))
            finished["id"] = item.id.replace("/", "/get_invoice/")
            finished["metadata"]["category"] = "get_invoice"
            if gate == "pr":
                finished["metadata"]["expectedTools"] = ["get_invoice"]
            assert check_item(finished, gate) == []
    assert (
        "expectedTools: is needed with kind 'tool-call'"
        in repository.twogate("items", "validate", "fixtures/datasets/pr.json").stderr
    )


def test_wishes_may_come_from_a_file(repository: Lab) -> None:
    (repository.root / "wants.txt").write_text("# ours\n\n- Pay an invoice\n* 支付发票\n  Pay an invoice \n", "utf-8")
    done = repository.twogate("init", "--wants", "wants.txt")
    assert done.returncode == 0, done.stderr
    content = read_dataset_file(repository.root / "fixtures" / "datasets" / "pr.json")
    assert {item.id: item.input["query"] for item in content.items} == {
        "pr/pay-an-invoice": "Pay an invoice",
        "pr/wish-2": "支付发票",
    }


def test_without_wishes_no_dataset_is_drafted_and_that_is_said(repository: Lab) -> None:
    done = repository.twogate("init")
    assert done.returncode == 0, done.stderr
    assert set(files(repository.root)) == {name for name in EVERYTHING if "datasets" not in name}
    assert "note: no dataset is drafted" in done.stdout
    assert "note: twogate.toml: names no server yet" in done.stdout
    run = repository.twogate("doctor", "--embedded")
    assert "twogate.toml: describes no server" in run.stdout


def test_an_mcp_file_is_taken_over_without_its_secrets(repository: Lab) -> None:
    (repository.root / ".mcp.json").write_text(json.dumps(MCP_JSON), encoding="utf-8")
    done = repository.twogate("init", *wants())
    assert done.returncode == 0, done.stderr
    written = "".join(text for name, text in files(repository.root).items() if name != ".mcp.json")
    for secret in SECRETS:
        assert secret not in written + done.stdout
    servers = tomllib.loads((repository.root / "twogate.toml").read_text("utf-8"))["servers"]
    assert servers == {
        "my-server": {
            "command": "node",
            "args": [
                "dist/index.js",
                "--api-key=${MY_SERVER_API_KEY}",
                "--token",
                "${MY_SERVER_TOKEN}",
                'a "quoted" \\ name',
            ],
            "env": {
                "API_TOKEN": "${API_TOKEN}",
                "NODE_ENV": "test",
                "OTHER_KEY": "${OTHER_KEY}",
                "DATABASE_URL": "${DATABASE_URL}",
            },
        },
        "remote": {
            "url": "https://mcp.example.com/mcp?api_key=${REMOTE_API_KEY}&tools=all",
            "headers": {"Authorization": "Bearer ${REMOTE_TOKEN}", "X-Team": "${REMOTE_X_TEAM}"},
        },
        "db": {"command": "npx", "args": ["-y", "server-postgres", "postgresql://${DB_USER_INFO}@db/prod"]},
    }
    variables = [
        "API_TOKEN",
        "OTHER_KEY",
        "DATABASE_URL",
        "MY_SERVER_API_KEY",
        "MY_SERVER_TOKEN",
        "REMOTE_API_KEY",
        "REMOTE_TOKEN",
        "REMOTE_X_TEAM",
        "DB_USER_INFO",
    ]
    example = (repository.root / ".env.example").read_text("utf-8").splitlines()
    assert all(f"{name}=" in example for name in variables)
    assert "note: twogate.toml: the server 'my server' is called my-server" in done.stdout
    assert "note: twogate.toml: old: is disabled in .mcp.json and left out" in done.stdout
    target = load_target(repository.root, dict.fromkeys(variables, "value"))
    assert target.describe() == "my-server, remote, db"
    assert "note: twogate.toml: db: args[2] is taken from ${DB_USER_INFO}" in done.stdout


def test_a_broken_mcp_file_is_refused_before_anything_is_written(repository: Lab) -> None:
    broken = {"mcpServers": {"a": {"command": 3}, "b": {"url": "ftp://x"}, "c": [], "d": {}}}
    (repository.root / ".mcp.json").write_text(json.dumps(broken), encoding="utf-8")
    done = repository.twogate("init", *wants())
    assert done.returncode == 1
    for name in "abcd":
        assert f"error: .mcp.json: {name}" in done.stderr
    assert set(files(repository.root)) == {".mcp.json"}


def test_an_existing_environment_file_gets_only_what_it_lacks(repository: Lab) -> None:
    path = repository.root / ".env.example"
    path.write_bytes(b"# ours\r\nDATABASE_URL=\r\n#ANTHROPIC_API_KEY=\r\nLANGFUSE_BASE_URL=https://ours")
    done = repository.twogate("init", *wants())
    assert done.returncode == 0, done.stderr
    text = path.read_bytes().decode()
    assert text.startswith(
        "# ours\r\nDATABASE_URL=\r\n#ANTHROPIC_API_KEY=\r\nLANGFUSE_BASE_URL=https://ours\r\n\r\n# --- Twogate"
    )
    assert text.count("ANTHROPIC_API_KEY=") == 1
    assert text.count("LANGFUSE_BASE_URL=") == 1
    assert "\r\nLANGFUSE_PUBLIC_KEY=\r\n" in text
    assert "added to: .env.example (" in done.stdout
    repository.twogate("init", *wants())
    assert path.read_bytes().decode() == text


def test_a_link_to_nowhere_is_not_written_through(repository: Lab) -> None:
    outside = repository.root / "outside.toml"
    (repository.root / "twogate.toml").symlink_to(outside)
    done = repository.twogate("init", *wants())
    assert "left as it is: twogate.toml" in done.stdout
    assert not outside.exists()


def test_the_workflows_fit_a_repository_that_installs_twogate(repository: Lab) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=repository.root, check=True)
    subprocess.run(
        ["git", "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"],
        cwd=repository.root,
        check=True,
    )
    repository.twogate("init", *wants(), "--install", "twogate @ git+https://git.example.com/o'r/twogate")
    pr = (repository.root / ".github" / "workflows" / "pr-gate.yml").read_text("utf-8")
    merge = (repository.root / ".github" / "workflows" / "merge-gate.yml").read_text("utf-8")
    for text in (pr, merge):
        assert "constraints.txt" not in text
        assert "--editable" not in text
        assert "'twogate @ git+https://git.example.com/o'\"'\"'r/twogate'" in text
    assert 'twogate fixtures "$TWOGATE_FIXTURES" seed' in merge
    assert "scripts/" not in pr + merge
    assert "branches: [trunk]" in merge


@pytest.mark.parametrize(
    ("branch", "commits", "noted"),
    [("master", False, False), ("master", True, False), ("main", True, False), ("trunk", True, True)],
)
def test_without_a_remote_head_the_current_branch_is_the_main_one(
    repository: Lab, branch: str, commits: bool, noted: bool
) -> None:
    subprocess.run(["git", "init", "-q", "-b", branch], cwd=repository.root, check=True)
    if commits:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "m"], cwd=repository.root, check=True)
    done = repository.twogate("init")
    merge = (repository.root / ".github" / "workflows" / "merge-gate.yml").read_text("utf-8")
    assert f"branches: [{branch}]" in merge
    assert (f"runs on pushes to {branch}, the current branch" in done.stdout) is noted


@pytest.mark.parametrize("repository_of_git", [True, False])
def test_where_nothing_names_a_branch_it_is_main(repository: Lab, repository_of_git: bool) -> None:
    if repository_of_git:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        for command in (["init", "-q", "-b", "x"], [*who, "commit", "-q", "--allow-empty", "-m", "m"]):
            subprocess.run(["git", *command], cwd=repository.root, check=True)
        subprocess.run(["git", "checkout", "-q", "--detach"], cwd=repository.root, check=True)
    repository.twogate("init")
    assert "branches: [main]" in (repository.root / ".github" / "workflows" / "merge-gate.yml").read_text("utf-8")


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"url": "file:///src/twogate", "dir_info": {"editable": True}}, "a folder"),
        ({"url": "https://git.example.com/twogate", "vcs_info": {"vcs": "git", "commit_id": "0"}}, "a repository"),
        ({"url": "file:///twogate.whl", "archive_info": {}}, "a file"),
        (None, None),
    ],
)
def test_a_twogate_that_is_not_from_the_index_is_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None, words: str | None
) -> None:
    about = tmp_path / "site" / "twogate-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: twogate\nVersion: 0\n", encoding="utf-8")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    monkeypatch.syspath_prepend(about.parent)
    assert installed_from() == words
    roots = [tmp_path / name for name in ("unsaid", "said")]
    for root in roots:
        root.mkdir()
    unsaid, said = (initialise(root, Answers(requirement=spec)) for root, spec in zip(roots, (None, "x"), strict=True))
    notes = [note for note in unsaid.notes if "--install SPEC" in note]
    assert [f"this Twogate was installed from {words};" in note for note in notes] == ([True] if words else [])
    assert not [note for note in said.notes if "--install SPEC" in note]
    again = initialise(roots[0], Answers())
    assert not [note for note in again.notes if "--install SPEC" in note]


@pytest.mark.parametrize("gate", ["pr", "merge"])
def test_the_shipped_workflows_are_as_their_adaptation_knows_them(gate: str) -> None:
    text = workflow_text(shipped(".github", "workflows", f"{gate}-gate.yml"), gate, "twogate==1", "main")  # type: ignore[arg-type]
    assert "--quiet twogate==1\n" in text


def test_a_folder_below_the_top_is_pointed_out(repository: Lab) -> None:
    subprocess.run(["git", "init", "-q"], cwd=repository.root, check=True)
    below = repository.root / "packages" / "server"
    below.mkdir(parents=True)
    done = Lab(below).twogate("init", *wants())
    assert "note: this is not the top folder of the git repository" in done.stdout


def test_what_cant_be_written_is_named_and_the_rest_is_written(repository: Lab) -> None:
    (repository.root / "fixtures").write_text("a file", encoding="utf-8")
    done = repository.twogate("init", *wants())
    assert done.returncode == 1
    assert "error: fixtures/datasets/pr.json: cannot be written" in done.stderr
    assert (repository.root / "twogate.toml").is_file()
    assert "Traceback" not in done.stderr


def test_on_a_terminal_the_author_is_asked(repository: Lab) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "evals", "init"],
        cwd=repository.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY), TERM="dumb"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    os.write(controller, b"node 'dist/my index.js'\nWhich invoices are overdue?\nPay one\n\n")
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([controller], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(controller, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(controller)
    assert process.wait(timeout=30) == 0, seen.decode()
    assert b"What do your users want?" in seen
    servers = tomllib.loads((repository.root / "twogate.toml").read_text("utf-8"))["servers"]
    assert servers == {"server": {"command": "node", "args": ["dist/my index.js"]}}
    content = read_dataset_file(repository.root / "fixtures" / "datasets" / "merge.json")
    assert [item.input["query"] for item in content.items] == ["Pay one", "Which invoices are overdue?"]
