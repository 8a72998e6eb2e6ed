"""``twogate doctor``: is everything there that a run needs?"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--target", type=click.Path(path_type=Path, dir_okay=False), help="The target's file, as in `twogate run`."
)
@click.option("--subscription", is_flag=True, help="Check for a run with the local Claude login.")
@click.option("--embedded", is_flag=True, help="Check for a run that records into the embedded store.")
def doctor(target: Path | None, subscription: bool, embedded: bool) -> None:
    """Check environment, Claude Code, target, Langfuse and judge, and say what to fix.

    Nothing is spent: no model is called. Exit code 1 when something a run needs is missing.
    """
    from evals.doctor import examine
    from evals.settings import Settings, withhold_secrets

    settings = Settings.load()
    withhold_secrets()
    failed = False
    for finding in examine(settings, target=target, subscription=subscription, embedded=embedded):
        failed = failed or finding.mark == "❌"
        click.echo(f"{finding.mark} {finding.subject}: {finding.message}")
    raise SystemExit(1 if failed else 0)
