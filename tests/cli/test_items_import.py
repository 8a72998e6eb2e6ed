"""``twogate items import``: drafts of other lists and of a run's failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from items_support import Items, failed_run
from lab import REPOSITORY

from evals.runs.journal import TRIALS_FILE


def test_failures_are_drafted_where_the_dataset_is_gone(items: Items, tmp_path: Path) -> None:
    failed_run(tmp_path / ".twogate" / "runs" / "some-run", "gone-pr")
    said = items("import", "--from-run", "latest", "-o", "drafts.json")
    assert said.code == 0
    assert said.errors[1].startswith(f"note: read {REPOSITORY / 'docs' / 'diagnosis.md'} first: ")
    assert said.errors[0] == "note: the dataset gone-pr is not there (any more); drafted from the journal alone"
    (draft,) = json.loads(Path("drafts.json").read_text())["items"]
    assert draft["id"] == "pr/read_file/about-draft"


@pytest.mark.parametrize("name", ["latest", ".twogate/demo/runs/some-run"])
def test_failures_of_a_demo_are_drafted_from_the_demos_own_store(
    items: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In a project of its own a demo keeps a store apart, also where the environment names a server."""
    failed_run(tmp_path / ".twogate" / "demo" / "runs" / "some-run", "mcp-server-evals-pr")
    shipped_item = json.loads((REPOSITORY / "fixtures" / "datasets" / "pr.json").read_text())["items"][0]
    journal = tmp_path / ".twogate" / "demo" / "runs" / "some-run" / TRIALS_FILE
    journal.write_text(journal.read_text().replace("pr/read_file/about", shipped_item["id"]))
    for variable in ("PUBLIC_KEY", "SECRET_KEY"):
        monkeypatch.setenv(f"LANGFUSE_{variable}", "x")
    monkeypatch.setenv("LANGFUSE_BASE_URL", "http://127.0.0.1:9")
    said = items("import", "--from-run", name, "-o", "drafts.json")
    assert (said.code, len(said.errors)) == (0, 1)
    (draft,) = json.loads(Path("drafts.json").read_text())["items"]
    assert draft["metadata"] == shipped_item["metadata"]
    assert draft["input"]["query"].endswith(shipped_item["input"]["query"])


def test_import_writes_new_files_only(items: Items) -> None:
    Path("cases.json").write_text(
        json.dumps({"testCases": [{"id": "a", "category": "c", "query": "q?", "expectedTools": ["t"]}]})
    )
    said = items("import", "cases.json", "-o", "drafts.json")
    assert (said.code, items("validate", "drafts.json").code) == (0, 0)
    assert items("import", "cases.json", "-o", "drafts.json").errors == ["drafts.json: exists already; name a new file"]
    for arguments in (
        ["-o", "x.json"],
        ["cases.json", "--from-run", "r", "-o", "x.json"],
        ["qa.xml", "--gate", "pr", "-o", "x.json"],
        ["cases.json", "--category", "c", "-o", "x.json"],
        ["cases.json"],
    ):
        assert items("import", *arguments).code == 2
    assert not Path("x.json").exists()
    qa = str(REPOSITORY / "fixtures" / "qa")
    for path in sorted(Path(qa).glob("*.xml")):
        assert items("import", str(path), "-o", f"{path.stem}.json").code == 0
        assert items("validate", f"{path.stem}.json").code == 0
