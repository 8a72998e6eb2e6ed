"""The coverage matrix for people and machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table

from evals.authoring.coverage import Cell, Coverage

_NOTHING = "—"
_IDS_SHOWN = 2
_UNSEEN_WIDTH = 160  # columns in a file or a log, which have no edge to keep
_WIDTH = 100  # columns at least; less would cut too much off


def coverage_table(matrix: Coverage, width: int, *, holes_only: bool = False) -> Table:
    """For a terminal of so many columns: one line a cell, only the lists of cases cut off."""
    shown = _shown(matrix, holes_only)
    heads = ["tool", "parameter or outcome", "dedicated cases", "in passing"]
    heads += ["called", "in passing"] if matrix.run is not None else []
    table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        column.no_wrap = True
    names = [max((len(text) for text in texts), default=0) for texts in ([c.tool for c in shown], map(_group, shown))]
    room = max(width - sum(names) - 20 * (matrix.run is not None) - 3 * len(heads), 2 * len(heads[2]))
    previous = ""
    for cell in shown:
        style = "" if cell.covered else "yellow" if cell.in_passing else "bold red"
        if previous and cell.tool != previous:
            table.add_section()
        table.add_row(
            cell.tool if cell.tool != previous else "",
            _group(cell),
            _slugs(cell.dedicated, room * 2 // 3),
            _slugs(cell.passing, room // 3),
            *_called(matrix, cell),
            style=style,
        )
        previous = cell.tool
    return table


def coverage_text(matrix: Coverage, *, holes_only: bool = False) -> str:
    """The table as text, in colour where standard output is a terminal."""
    width = max(Console().width, _WIDTH) if sys.stdout.isatty() else _UNSEEN_WIDTH
    console = Console(file=StringIO(), force_terminal=sys.stdout.isatty(), width=width)
    console.print(coverage_table(matrix, width, holes_only=holes_only))
    for line in summary_lines(matrix):
        console.print(line, markup=False, highlight=False)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def coverage_markdown(matrix: Coverage, *, holes_only: bool = False) -> str:
    """For a pull request."""
    heads = ["Tool", "Parameter or outcome", "Dedicated cases", "In passing"]
    heads += ["Called", "Called in passing"] if matrix.run is not None else []
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for cell in _shown(matrix, holes_only):
        mark = "✅" if cell.covered else "🟡" if cell.in_passing else "❌"
        row = [f"`{cell.tool}`", f"{mark} {_group(cell)}", _ids(cell.dedicated), _ids(cell.passing)]
        lines.append("| " + " | ".join(one.replace("|", "\\|") for one in [*row, *_called(matrix, cell)]) + " |")
    return "\n".join([*lines, "", *summary_lines(matrix)]) + "\n"


def coverage_json(matrix: Coverage) -> str:
    """For machines: every cell with its items, the counts and the percentage."""
    whole = matrix.model_dump(mode="json")
    whole["covered"], whole["total"], whole["percent"] = matrix.covered, len(matrix.cells), round(matrix.percent, 2)
    for cell, plain in zip(matrix.cells, whole["cells"], strict=True):
        plain["covered"] = cell.covered
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def summary_lines(matrix: Coverage) -> Iterator[str]:
    """The verdict, and the tools no case is dedicated to."""
    passing = sum(cell.in_passing for cell in matrix.cells)
    yield (
        f"{matrix.covered} of {len(matrix.cells)} covered by a dedicated case ({matrix.percent:.1f} %), "
        f"{passing} more in passing, {len(matrix.holes) - passing} by nothing"
    )
    bare = [cell.tool for cell in matrix.holes if cell.kind == "tool"]
    if bare:
        yield f"no case is dedicated to {', '.join(bare)}"
    yield from matrix.notes


def _shown(matrix: Coverage, holes_only: bool) -> tuple[Cell, ...]:
    return matrix.holes if holes_only else matrix.cells


def _group(cell: Cell) -> str:
    return f"{cell.group} ({', '.join(cell.parameters)})" if cell.kind == "group" else cell.group


def _ids(ids: tuple[str, ...]) -> str:
    if not ids:
        return _NOTHING
    more = f" +{len(ids) - _IDS_SHOWN}" if len(ids) > _IDS_SHOWN else ""
    return ", ".join(ids[:_IDS_SHOWN]) + more


def _slugs(ids: tuple[str, ...], room: int) -> str:
    """How many, and the last parts of their ids, as many as there is room for."""
    text = f"{len(ids)}: {', '.join(one.split('/')[-1] for one in ids)}" if ids else _NOTHING
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _called(matrix: Coverage, cell: Cell) -> list[str]:
    if matrix.run is None:
        return []
    return [str(count) if count else _NOTHING for count in (cell.called_dedicated, cell.called_passing)]
