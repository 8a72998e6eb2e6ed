"""``twogate serve``: a workspace as an MCP server."""

from __future__ import annotations

import os

import click


@click.command()
@click.argument("workspace", type=click.Path())
@click.option("--task", "tasks", multiple=True, metavar="TASK.json", help="A task that may be verified; repeatable.")
def serve(workspace: str, tasks: tuple[str, ...]) -> None:
    """Serve WORKSPACE to agents as the MCP server `repository`."""
    # Read by pydantic when it is imported: a link in every refused argument is noise to a model.
    os.environ.setdefault("PYDANTIC_ERRORS_INCLUDE_URL", "0")
    from evals.workspace.serving import serve_stdio

    serve_stdio(workspace, tasks)
