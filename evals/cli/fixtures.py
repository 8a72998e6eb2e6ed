"""``twogate fixtures``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("family")
@click.argument("action", type=click.Choice(["seed", "clean", "status"]), metavar="seed|clean|status")
@click.option("--dry-run", is_flag=True, help="Say what would be done; send no request that writes.")
@click.option(
    "--families",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The folder of family files.  [default: fixtures/families, else the shipped one]",
)
def fixtures(family: str, action: str, dry_run: bool, folder: Path | None) -> None:
    """Reset a product's state between stateful runs, over its REST API.

    seed removes what runs left (names with the family's prefix, eval- by default) and makes or mends the permanent
    fixtures (eval-fixture-...), which nothing here deletes; clean removes only; status compares. Whatever has another
    name is never touched. Families that need this one are cleaned before it, families it needs are seeded before it.

    Exit codes: 0 done (status: everything is as seeded); 1 it is not, or something failed; 2 usage.
    """
    from evals.fixtures import Fixtures
    from evals.settings import Settings

    settings = Settings.load()
    with Fixtures(
        [family], settings, click.echo, folder=folder, dry_run=dry_run, read_only=action == "status"
    ) as opened:
        if action == "seed":
            opened.seed()
        elif action == "clean":
            opened.clean()
        else:
            ready = True
            for one in opened.status():
                ready = ready and one.ready
                for leftover in one.leftovers:
                    click.echo(f"{one.family}: leftover {leftover}")
                for permanent in one.permanent:
                    click.echo(f"{one.family}: {permanent.name}: {'; '.join(permanent.differences) or 'as declared'}")
                click.echo(
                    f"{one.family}: {len(one.leftovers)} leftovers, "
                    f"{sum(not found.differences for found in one.permanent)} of {len(one.permanent)} "
                    "permanent fixtures as declared"
                )
            raise SystemExit(0 if ready else 1)
