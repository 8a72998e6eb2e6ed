"""A folder with everything a run needs, and the command run in it as its users do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from evals.runs.journal import read_journal
from evals.runs.models import RunSummary
from evals.runs.trial import TrialResult

REPOSITORY = Path(__file__).resolve().parent.parent

# Variables of the machine that would change what a run does.
_UNWANTED = ("CI", "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
_UNWANTED_PREFIXES = ("LANGFUSE_", "ANTHROPIC_", "CLAUDE_", "OPENROUTER_", "TWOGATE_")


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change a run, and with what is given."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _UNWANTED and not name.startswith(_UNWANTED_PREFIXES)
    }
    return {**kept, **more}


@dataclass(frozen=True)
class Lab:
    """A project of its own: twogate.toml, a dataset in the embedded store, a script."""

    root: Path

    def target(self, text: str) -> None:
        (self.root / "twogate.toml").write_text(text, encoding="utf-8")

    def dataset(self, items: list[dict[str, Any]], name: str = "mcp-server-evals-pr") -> None:
        """Put items into a dataset of the embedded store, as their author would: a shipped one of that name is not."""
        from evals.embedded.langfuse import EmbeddedStore

        (self.root / ".twogate").mkdir(exist_ok=True)
        with (
            EmbeddedStore(self.root / ".twogate" / "langfuse.db") as store,
            httpx.Client(base_url=f"{store.base_url}/api/public", auth=(store.public_key, store.secret_key)) as http,
        ):
            http.post("/v2/datasets", json={"name": name}).raise_for_status()
            for item in items:
                http.post("/dataset-items", json={"datasetName": name, **item}).raise_for_status()

    def script(self, agent: list[dict[str, Any]], judge: list[dict[str, Any]] | None = None) -> Path:
        path = self.root / "script.json"
        script: dict[str, Any] = {"version": 1, "agent": agent}
        if judge is not None:
            script["judge"] = judge
        path.write_text(json.dumps(script), encoding="utf-8")
        return path

    def twogate(self, *arguments: str, seconds: float = 150, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``twogate`` here to its end; standard error comes apart from standard output."""
        return subprocess.run(
            [sys.executable, "-m", "evals", *arguments],
            cwd=self.root,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), **environment),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def runs(self) -> list[Path]:
        folder = self.root / ".twogate" / "runs"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def summary(self, run: Path | None = None) -> RunSummary:
        folder = run or self.runs()[-1]
        return RunSummary.model_validate_json((folder / "summary.json").read_text(encoding="utf-8"))

    def trials(self, run: Path | None = None) -> dict[str, TrialResult]:
        """The journal's trials by item (the last of each)."""
        return {result.item: result for result in read_journal(run or self.runs()[-1])}


REPOSITORY_TARGET = f"""
[servers.repository]
command = "${{TWOGATE_PYTHON}}"
args = ["-m", "evals", "serve", "{REPOSITORY}/fixtures/repository"]
env = {{ PYTHONPATH = "{REPOSITORY}" }}
"""


def tool_call_item(slug: str, query: str, tools: list[str], /, **metadata: Any) -> dict[str, Any]:
    """A tool-call item as a dataset file holds it."""
    return {
        "id": f"pr/{tools[0]}/{slug}",
        "input": {"query": query},
        "metadata": {"category": tools[0], "kind": "tool-call", "expectedTools": tools, **metadata},
    }


def agent_item(slug: str, query: str, /, **metadata: Any) -> dict[str, Any]:
    """An agent item as a dataset file holds it."""
    return {
        "id": f"merge/repository/{slug}",
        "input": {"query": query},
        "expectedOutput": "PASS only if the answer names README.md. FAIL if not.",
        "metadata": {"category": "search_text", "kind": "agent", **metadata},
    }
