"""The process behind `evals.workspace.bounded`: reads one JSON request on standard input, answers on standard output.

Started by its path under ``python -I -S``, so that it imports the standard library and this package's verifier only.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve one request. Its own CPU limit ends it even when the parent died and cannot kill it."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    import resource

    from evals.workspace.paths import WorkspaceError

    request = json.load(sys.stdin)
    seconds = float(request["seconds"])
    cpu = int(seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    try:
        answer: dict[str, Any] = {"answer": _answer(request, time.monotonic() + seconds)}
    except WorkspaceError as error:
        answer = {"refused": {"reason": error.reason, "path": error.path, "message": error.message}}
    json.dump(answer, sys.stdout)


def _answer(request: dict[str, Any], deadline: float) -> dict[str, Any]:
    from dataclasses import asdict

    from evals.workspace.safe import Limits, SafeWorkspace
    from evals.workspace.searching import Query, scan
    from evals.workspace.task import Pattern

    limits = Limits(**request["limits"])
    with SafeWorkspace.from_descriptor(request["root"], request["root_path"], limits) as workspace:
        if request["operation"] == "search":
            return asdict(scan(workspace, Query(**request["query"]), deadline))
        pattern = Pattern(**request["pattern"])
        return {"line": pattern.first_line(workspace.read_text(request["file"]))}


if __name__ == "__main__":
    main()
