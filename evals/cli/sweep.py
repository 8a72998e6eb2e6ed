"""``twogate sweep``: the look for ERROR observations of a run."""

from __future__ import annotations

from datetime import datetime

import click


@click.command()
@click.argument("run")
@click.option(
    "--since",
    type=click.DateTime(),
    help="When the run started (UTC), for one that is not in this folder.  [default: 7 days ago]",
)
@click.option("--strict", is_flag=True, help="Exit 1 when there is an unexpected row.")
@click.option("--embedded", is_flag=True, help="Read the embedded store, whatever LANGFUSE_* say.")
def sweep(run: str, since: datetime | None, strict: bool, embedded: bool) -> None:
    """Look for ERROR observations of RUN that no expectedErrors explain.

    RUN is a run's name, an unambiguous part of it, or `latest`; a run of another machine is found in Langfuse by its
    whole name.
    """
    from datetime import UTC, timedelta

    from evals.recording.client import open_recorder
    from evals.recording.experiment import project_id
    from evals.recording.server import open_server
    from evals.recording.sweep import sweep_experiment
    from evals.runs.reading import locate_run, read_record, read_summary
    from evals.settings import Settings, withhold_secrets

    settings = Settings.load()
    withhold_secrets()
    settings, folder = locate_run(settings, run)
    name, until = run, None
    under_test: tuple[str, ...] | None = None
    start = since.replace(tzinfo=UTC) if since is not None else datetime.now(UTC) - timedelta(days=7)
    if folder is not None:
        record, summary = read_record(folder), read_summary(folder)
        name, start = record.run, record.started_at
        until = summary.ended_at if summary is not None else None
        under_test = tuple(record.metadata.get("target", "").split(", "))
    with open_server(settings, embedded=embedded) as server, open_recorder(server) as recorder:
        found = sweep_experiment(
            recorder, project_id(recorder), name=name, since=start, until=until, under_test=under_test
        )
    for line in found.lines():
        click.echo(line)
    raise SystemExit(1 if strict and found.unexpected else 0)
