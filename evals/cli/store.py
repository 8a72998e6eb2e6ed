"""``twogate store``: the embedded Langfuse-compatible store as a server of its own."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from shlex import quote

import click


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=3000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free port.")
@click.option(
    "--db",
    default=Path(".twogate/langfuse.db"),
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The store's SQLite file; several processes may use it at once.",
)
@click.option(
    "--public-key", envvar="TWOGATE_STORE_PUBLIC_KEY", show_envvar=True, help="Public key that clients must send."
)
@click.option(
    "--secret-key",
    envvar="TWOGATE_STORE_SECRET_KEY",
    show_envvar=True,
    help="Secret key that clients must send. Prefer the environment variable: others can see options.",
)
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option(
    "--refuse-score-arrays",
    is_flag=True,
    help="Answer 400 to an array of scores, as Langfuse 4.16.0 does (for tests of clients).",
)
def store(
    host: str,
    port: int,
    db: Path,
    public_key: str | None,
    secret_key: str | None,
    allow_remote: bool,
    refuse_score_arrays: bool,
) -> None:
    """Serve the embedded Langfuse-compatible store until Ctrl-C or SIGTERM.

    Prints its URL and the environment variables by which Twogate, the Langfuse SDK and langfuse-cli reach it.
    """
    from evals.embedded.langfuse import DEFAULT_PUBLIC_KEY, DEFAULT_SECRET_KEY, EmbeddedStore, is_loopback
    from evals.errors import TwogateError
    from evals.settings import Settings

    problems = []
    if not is_loopback(host):
        if not allow_remote:
            problems.append(f"--host {host} can be reached from other machines; add --allow-remote if you mean it")
        if secret_key in (None, "", DEFAULT_SECRET_KEY):
            problems.append(
                f"--host {host} needs a secret key of its own: set TWOGATE_STORE_SECRET_KEY to something secret"
            )
    if problems:
        raise TwogateError(problems)

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with EmbeddedStore(
        db,
        host=host,
        port=port,
        shipped_datasets=Settings(root=Path.cwd(), variables={}).shipped_datasets,
        refuse_score_arrays=refuse_score_arrays,
        public_key=public_key or DEFAULT_PUBLIC_KEY,
        secret_key=secret_key or DEFAULT_SECRET_KEY,
    ) as running:
        click.echo(f"Twogate store on {running.base_url} (database {db}); Ctrl-C ends it")
        click.echo(f"export LANGFUSE_BASE_URL={quote(running.base_url)}")
        click.echo(f"export LANGFUSE_PUBLIC_KEY={quote(running.public_key)}")
        if running.secret_key == DEFAULT_SECRET_KEY:
            click.echo(f"export LANGFUSE_SECRET_KEY={quote(running.secret_key)}")
        else:
            click.echo("export LANGFUSE_SECRET_KEY=…  # the secret key you gave")
        ended.wait()
