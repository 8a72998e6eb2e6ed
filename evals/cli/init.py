"""``twogate init``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click


@click.command()
@click.option("--want", "wants", multiple=True, metavar="TEXT", help="What users want, in their words; repeatable.")
@click.option(
    "--wants",
    "wants_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="The same from a file, one wish a line; lines that begin with # don't count.",
)
@click.option("--start", metavar="COMMAND", help="How your server is started, or its URL; .mcp.json is read before it.")
@click.option("--name", default="server", show_default=True, metavar="NAME", help="Your server's name, with --start.")
@click.option("--install", "requirement", metavar="SPEC", help="What pip installs in CI.  [default: twogate==VERSION]")
def init(
    wants: tuple[str, ...], wants_file: Path | None, start: str | None, name: str, requirement: str | None
) -> None:
    """Set up evaluations in this folder, the top of your server's repository.

    Writes twogate.toml (from .mcp.json when there is one), two starter datasets, the two workflows and the entries of
    .env.example. The datasets are drafted from what your users want, never from your tools; on a terminal you are
    asked. Existing files are left as they are; .env.example gets the names it lacks, at its end. Values of .mcp.json
    or --start that may be secrets become variables, each named by a note; their values belong in .env.

    Exit codes: 0 something was written; 1 nothing was (all is there already), or something could not be; 2 usage.
    """
    import sys

    from evals.errors import TwogateError
    from evals.init.drafts import clean_wants
    from evals.init.writing import Answers, initialise, needs_config, needs_datasets

    root = Path.cwd()
    lines = list(wants)
    if wants_file is not None:
        try:
            lines += wants_file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TwogateError(f"--wants {wants_file}: cannot be read: {error}") from None
    if sys.stdin.isatty():
        if start is None and needs_config(root):
            start = _ask_start()
        if not lines and needs_datasets(root):
            lines = _ask_wants()
    answers = Answers(wants=tuple(clean_wants(lines)), start=start or None, name=name, requirement=requirement or None)
    report = initialise(root, answers)
    for path in report.written:
        click.echo(f"written: {path}")
    for path in report.extended:
        click.echo(f"added to: {path}")
    for path in report.left:
        click.echo(f"left as it is: {path}")
    for note in report.notes:
        click.echo(f"note: {note}")
    if not report.changed:
        click.echo("nothing was written: every file is there already")
        raise SystemExit(1)
    _next_steps(root, click.echo)


def _ask_start() -> str:
    answer: str = click.prompt(
        "How is your server started, or what is its URL? (empty: fill it in later)", default="", show_default=False
    )
    return answer.strip()


def _ask_wants() -> list[str]:
    click.echo("What do your users want? One wish a line, in their own words, as they would put it to an agent:")
    click.echo('"Which invoices are overdue?", not "call list_invoices". Don\'t look at your tools. Empty line: done.')
    found: list[str] = []
    while True:
        line: str = click.prompt(f"{len(found) + 1}", default="", show_default=False)
        if not line.strip():
            return found
        found.append(line)


def _next_steps(root: Path, say: Callable[[str], None]) -> None:
    from evals.init.writing import GATES, dataset_path

    files = [path for gate in GATES if (root / (path := dataset_path(gate))).exists()]
    ignored = root / ".gitignore"
    lines = ignored.read_text(encoding="utf-8", errors="replace").splitlines() if ignored.is_file() else []
    missing = [one for one in (".twogate/", ".env") if not {one, one.rstrip("/"), f"/{one}"} & set(lines)]
    steps = ["look through twogate.toml, then check everything that a run needs: twogate doctor"]
    if missing:
        steps.insert(0, f"add to .gitignore: {' '.join(missing)}")
    if files:
        steps.append(
            "finish the drafts: pr items need the tool in id (pr/<tool>/<slug>), category and expectedTools, "
            "merge items id (merge/<family>/<slug>), category and the reference; they are refused until then"
        )
        steps.append(f"check and store them: twogate items validate {' '.join(files)}")
        steps += [f"                      twogate items push {path}" for path in files]
    steps.append("run a gate: twogate run --gate pr")
    steps.append("in CI: set the secrets and variables named at the top of the two workflow files")
    say("next:")
    number = 0
    for step in steps:
        number += not step.startswith(" ")
        say(f"   {step}" if step.startswith(" ") else f"{number}. {step}")
