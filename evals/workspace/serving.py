"""Running the repository server over standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from evals.workspace.safe import SafeWorkspace
from evals.workspace.server import build_server
from evals.workspace.task import load_task


def serve_stdio(workspace: str, tasks: Sequence[str]) -> None:
    """Serve until standard input ends."""
    with SafeWorkspace(workspace) as opened:
        build_server(opened, [load_task(task) for task in tasks]).run("stdio")
