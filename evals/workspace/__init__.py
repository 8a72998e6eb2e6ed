"""The deterministic verifier of repository tasks, and the MCP server around it.

The verifier needs the standard library alone. The server does not: `server`, `serving`, `results` and `verifications`
are imported by name where they are wanted.
"""

from evals.workspace.globs import Glob
from evals.workspace.paths import WorkspaceError
from evals.workspace.report import Check, Run, VerificationReport
from evals.workspace.safe import Limits, Listing, SafeWorkspace
from evals.workspace.search import Match, Query, SearchResult, search
from evals.workspace.task import Pattern, Task, load_task, parse_task
from evals.workspace.verifier import Options, verify

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
