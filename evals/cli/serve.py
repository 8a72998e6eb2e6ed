"""``twogate serve``: a workspace as an MCP server."""

from __future__ import annotations

import gc
import os

import click


@click.command()
@click.argument("workspace", type=click.Path())
@click.option("--task", "tasks", multiple=True, metavar="TASK.json", help="A task agents may verify; repeatable.")
@click.option(
    "--sandbox",
    type=click.Choice(["none", "bwrap"]),
    default="none",
    show_default=True,
    help="How tasks' commands are isolated. With none, serve only tasks and code you trust.",
)
@click.option("--pass-env", multiple=True, metavar="NAME", help="Pass this variable to tasks' commands; repeatable.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp instead of standard input and output.")
@click.option("--host", help="Address to listen on, with --http.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port, 0 for a free one, with --http.  [default: 8765]")
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="A further Host header to accept, with --http; repeatable.",
)
def serve(
    workspace: str,
    tasks: tuple[str, ...],
    sandbox: str,
    pass_env: tuple[str, ...],
    http: bool,
    host: str | None,
    port: int | None,
    allowed_hosts: tuple[str, ...],
) -> None:
    """Serve WORKSPACE to agents as the MCP server `repository`: list, read and search its files, verify the tasks
    named with --task.

    Any address but a loopback one needs a bearer token in the variable TWOGATE_SERVE_TOKEN; a loopback one asks for it
    when the variable is set.
    """
    given = {"--host": host, "--port": port, "--allow-host": allowed_hosts or None}
    if not http and (misplaced := [name for name, value in given.items() if value is not None]):
        raise click.UsageError(f"{', '.join(misplaced)} needs --http")
    # Read by pydantic when it is imported: a link in every refused argument is noise to a model.
    os.environ.setdefault("PYDANTIC_ERRORS_INCLUDE_URL", "0")
    # Each trial of a gate may start this server, and nearly all of its start is importing the SDK, whose many model
    # classes make the collector walk everything again and again for nothing: 0.1 s of 0.9.
    gc.disable()
    from evals.workspace import serving
    from evals.workspace.verifier import Options, passed_variables

    gc.freeze()
    gc.enable()
    options = Options(
        sandbox="bwrap" if sandbox == "bwrap" else "none", environment=passed_variables(pass_env, os.environ)
    )
    address = serving.Http(
        host=host or "127.0.0.1",
        port=8765 if port is None else port,
        token=os.environ.get(serving.TOKEN_VARIABLE) or None,
        allowed_hosts=allowed_hosts,
    )
    serving.serve(workspace, tasks, options, address if http else None)
