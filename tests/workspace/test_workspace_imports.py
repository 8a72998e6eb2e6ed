"""The verifier needs the standard library alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVER_PARTS = {"results", "server", "serving", "verifications"}


def isolated(code: str) -> str:
    """Run code in an interpreter that has no site-packages."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_part_but_the_server_imports_nothing_outside_the_standard_library() -> None:
    parts = sorted(
        file.stem
        for file in (ROOT / "evals" / "workspace").glob("*.py")
        if file.stem not in {"__init__", *SERVER_PARTS}
    )
    assert "verifier" in parts
    imports = "; ".join(f"import evals.workspace.{part}" for part in parts)
    loaded = json.loads(isolated(f"import json; {imports}; print(json.dumps(sorted(sys.modules)))"))
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"evals", "__main__"}
    assert foreign == set()
    ours = {name for name in loaded if name.startswith("evals")}
    assert ours == {"evals", "evals.errors", "evals.workspace", *(f"evals.workspace.{part}" for part in parts)}


def test_a_task_is_verified_without_site_packages() -> None:
    task = ROOT / "fixtures" / "tasks" / "rounding-bug"
    code = (
        "from evals.workspace import SafeWorkspace, load_task, verify; "
        f"report = verify(load_task({str(task / 'task.json')!r}), SafeWorkspace({str(task / 'mended')!r})); "
        "print(report.passed, report.deterministic)"
    )
    assert isolated(code) == "True True\n"
