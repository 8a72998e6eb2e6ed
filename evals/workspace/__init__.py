"""The deterministic verifier of repository tasks, and the MCP server around it.

The verifier needs the standard library alone. The server does not: `server`, `serving`, `results` and `verifications`
are imported by name where they are wanted. The names below are imported when they are first used: a search's worker
process needs a third of them, and starts for every regular expression.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evals.workspace.globs import Glob
    from evals.workspace.paths import WorkspaceError
    from evals.workspace.report import Check, Run, VerificationReport
    from evals.workspace.safe import Limits, Listing, SafeWorkspace
    from evals.workspace.searching import Match, Query, SearchResult, search
    from evals.workspace.task import Pattern, Task, load_task, parse_task
    from evals.workspace.verifier import Options, verify

_HOMES: Final = {
    "Check": "report",
    "Glob": "globs",
    "Limits": "safe",
    "Listing": "safe",
    "Match": "searching",
    "Options": "verifier",
    "Pattern": "task",
    "Query": "searching",
    "Run": "report",
    "SafeWorkspace": "safe",
    "SearchResult": "searching",
    "Task": "task",
    "VerificationReport": "report",
    "WorkspaceError": "paths",
    "load_task": "task",
    "parse_task": "task",
    "search": "searching",
    "verify": "verifier",
}

__all__ = [
    "Check",
    "Glob",
    "Limits",
    "Listing",
    "Match",
    "Options",
    "Pattern",
    "Query",
    "Run",
    "SafeWorkspace",
    "SearchResult",
    "Task",
    "VerificationReport",
    "WorkspaceError",
    "load_task",
    "parse_task",
    "search",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
