"""``twogate show``: the conversations of a run, to read."""

from __future__ import annotations

import click


@click.command()
@click.argument("run")
@click.argument("item", required=False)
@click.option("--failed", is_flag=True, help="Only trials that did not pass.")
@click.option("--embedded", is_flag=True, help="Read the embedded store, whatever LANGFUSE_* say.")
def show(run: str, item: str | None, failed: bool, embedded: bool) -> None:
    """Show the trials of RUN: query, each call with its arguments, answers, the reason, and how to rerun the item.

    RUN is a run's name, an unambiguous part of it, or `latest`; ITEM an id or a regular expression. A run that is not
    in this folder is read from Langfuse by its whole name.
    """
    from evals.reports.show import show_lines, shown_from_journal, shown_from_langfuse
    from evals.runs.reading import locate_run, read_record
    from evals.settings import Settings, withhold_secrets

    settings = Settings.load()
    withhold_secrets()
    settings, folder = locate_run(settings, run)
    requested = None
    if folder is not None:
        trials, requested = shown_from_journal(folder), read_record(folder).requested
    else:
        from evals.recording.client import open_recorder
        from evals.recording.server import open_server

        with open_server(settings, embedded=embedded) as server, open_recorder(server) as recorder:
            trials = shown_from_langfuse(recorder, run)
    for line in show_lines(trials, item=item, failed=failed, requested=requested):
        click.echo(line)
