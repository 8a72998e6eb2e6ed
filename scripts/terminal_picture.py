"""Make a picture of a command's output, for the README.

    twogate demo | python scripts/terminal_picture.py docs/images/demo.svg --title "make demo"

Runs of lines of passed trials are folded to the first two and a mark, so that the picture fits a page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

import click
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

_PASSED = re.compile(r"\[ *\d+/\d+\] ✅")
_SHOWN = 2  # lines of a run of passed trials
_FONT_ADDRESS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def folded(lines: Iterable[str]) -> Iterator[str]:
    """The lines with runs of passed trials cut short."""
    run = 0
    for line in lines:
        run = run + 1 if _PASSED.match(line) else 0
        if run <= _SHOWN:
            yield line
        elif run == _SHOWN + 1:
            yield "   ⋮"


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--title", default="twogate", show_default=True)
@click.option("--width", default=118, show_default=True, help="Columns.")
def main(path: Path, title: str, width: int) -> None:
    """Write standard input as an SVG picture of a terminal to PATH."""
    console = Console(record=True, width=width, file=StringIO(), force_terminal=True, highlight=False)
    for line in folded(sys.stdin.read().splitlines()):
        style = "bold" if line.startswith("📊") else "red" if "❌" in line else ""
        console.print(Text(line, style=style))
    picture = console.export_svg(title=title, theme=MONOKAI)
    # Whoever opens the picture should not fetch fonts from somewhere for it.
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_FONT_ADDRESS.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
