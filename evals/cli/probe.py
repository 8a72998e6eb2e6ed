"""``twogate probe``."""

from __future__ import annotations

from pathlib import Path

import click

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("tool")
@click.option(
    "--args", "arguments", default="{}", metavar="JSON", help="The arguments, as JSON or @FILE.  [default: {}]"
)
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Calls, one after the other."
)
@click.option("--server", metavar="NAME", help="The server, where several have the tool.")
@click.option("--target", type=_FILE, help="The target's file.  [default: twogate.toml, else .mcp.json]")
@click.option("--tools", "families", metavar="FAMILIES", help="Families of tools to launch with, with commas.")
@click.option(
    "--tool-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds one call may take.",
)
@click.option(
    "--save", metavar="PATH", help="Keep it as JSON: a new file, or a folder; one that ends in / is made if need be."
)
def probe(
    tool: str,
    arguments: str,
    repeat: int,
    server: str | None,
    target: Path | None,
    families: str | None,
    tool_timeout: float,
    save: str | None,
) -> None:
    """Call TOOL of the target directly, and show result, error text and type, sizes and timing.

    No model is involved: this is how to learn what the platform does before a case relies on it. The tool really runs.
    See scripts/probe_template.py for probes of several steps.

    Exit codes: 0 every call was answered, by a result or an error; 1 one was not, or nothing could be called; 2 usage.
    """
    import asyncio

    from evals.probe import ProbeReport, open_prober, parse_arguments, save_report
    from evals.reports.probe import probe_lines
    from evals.settings import Settings, withhold_secrets

    parsed = parse_arguments(arguments)
    # Before the call: what it did could not be asked again for a folder that can't be made.
    kept = None if save is None else _place(save)
    settings = Settings.load()
    withhold_secrets()
    names = [name for part in (families or "").split(",") if (name := part.strip())]

    async def run() -> tuple[ProbeReport, tuple[str, ...]]:
        async with open_prober(
            settings, target=target, server=server, tools=names, tool_timeout=tool_timeout
        ) as prober:
            report = await prober.report(tool, parsed, repeat)
        return report, prober.broken

    report, broken = asyncio.run(run())
    for line in probe_lines(report):
        click.echo(line)
    for line in broken:
        click.echo(f"warning: {line}", err=True)
    if kept is not None:
        click.echo(f"saved: {save_report(report, kept)}")
    raise SystemExit(0 if report.answered else 1)


def _place(save: str) -> Path:
    """The file or folder of --save; one that ends in a slash is made a folder. Raises TwogateError if it is neither."""
    import os

    from evals.errors import TwogateError

    place = Path(save)
    if save.endswith(tuple(filter(None, (os.sep, os.altsep)))):
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TwogateError(f"--save {save}: this folder cannot be made: {error.strerror}") from None
    elif not place.is_dir() and (not save or place.exists() or not place.absolute().parent.is_dir()):
        raise TwogateError(
            f"--save {save}: must be a new file in a folder that exists, or a folder (with / at its end it is made)"
        )
    return place
