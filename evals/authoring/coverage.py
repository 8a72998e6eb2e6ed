"""Which tools and parameters have a case: the matrix of the live target against the items, and against a run.

A cell is covered when a *dedicated* item (its category is the tool) exercises it; what other items exercise *in
passing* is counted apart, since nobody sees it go when those items change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evals.authoring.catalog import Catalog, properties, required
from evals.authoring.mentions import CERTAIN, NamedText
from evals.authoring.text import parts
from evals.errors import TwogateError
from evals.items import Item
from evals.runs.trial import TrialResult
from evals.target import CoverageConfig
from evals.tool_listing import Tool

ANY_CALL = "any call"
FOUND = "found"
NOT_FOUND = "not found"

CellKind = Literal["tool", "parameter", "group", "outcome"]

_MISSING_WORDS = frozenset("missing unknown nonexistent".split())
# A tool is get-like when it only reads and needs to be told which thing: by a parameter called so, …
_KEY_NAMES = frozenset("id ids path name key slug url uri file filename".split())
# … or described so ("Name or id of the task").
_KEY_DESCRIPTION = re.compile(
    r"(?:the |an? )?(?:unique )?(?:name|id|identifier|path|key|slug|url|file)\b", re.IGNORECASE
)


class Cell(BaseModel):
    """One row of the matrix: a tool and one of its parameter groups or outcomes."""

    model_config = ConfigDict(frozen=True)

    server: str
    tool: str
    group: str
    kind: CellKind
    parameters: tuple[str, ...] = ()
    dedicated: tuple[str, ...] = ()
    """Ids of items whose category is the tool."""
    passing: tuple[str, ...] = ()
    """Ids of other items."""
    called_dedicated: int | None = None
    """Trials of the tool's own items that really called it so; None without a run."""
    called_passing: int | None = None

    @property
    def covered(self) -> bool:
        return bool(self.dedicated or self.called_dedicated)

    @property
    def in_passing(self) -> bool:
        """Exercised, but by no case of its own."""
        return not self.covered and bool(self.passing or self.called_passing)


class Coverage(BaseModel):
    """The matrix."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    run: str | None
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    @property
    def covered(self) -> int:
        return sum(cell.covered for cell in self.cells)

    @property
    def percent(self) -> float:
        """Cells with a dedicated case, of 100."""
        return 100 * self.covered / len(self.cells) if self.cells else 100.0

    @property
    def holes(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if not cell.covered)


def coverage(
    catalog: Catalog, items: Sequence[Item], *, run: str | None = None, trials: Iterable[TrialResult] | None = None
) -> Coverage:
    """The matrix of all tools under test. trials: the journal of the run named by `run`.

    Raises TwogateError when a configured group names a tool or a parameter the target lacks.
    """
    tools = catalog.all_tools()
    _check_groups(tools, catalog.target.coverage, catalog.target.source.name)
    by_tool = {tool.name: _uses(tool, items) for tool in tools}
    called = None if trials is None else _calls(tools, trials)
    cells: list[Cell] = []
    for tool in tools:
        uses = by_tool[tool.name]
        for cell in _rows(tool, catalog.target.coverage.get(tool.name)):
            filled = cell.model_copy(
                update={
                    "dedicated": tuple(use.item for use in uses if use.dedicated and use.exercises(cell)),
                    "passing": tuple(use.item for use in uses if not use.dedicated and use.exercises(cell)),
                }
            )
            if called is not None:
                mine = [use for use in called.get(tool.name, ()) if use.exercises(cell)]
                filled = filled.model_copy(
                    update={
                        "called_dedicated": sum(use.dedicated for use in mine),
                        "called_passing": sum(not use.dedicated for use in mine),
                    }
                )
            cells.append(filled)
    return Coverage(run=run, cells=tuple(cells), notes=_notes(tools, items))


class _Use(BaseModel):
    """What one item (or one trial) does with one tool."""

    model_config = ConfigDict(frozen=True)

    item: str
    dedicated: bool
    parameters: frozenset[str] = frozenset()
    outcomes: frozenset[str] = frozenset()

    def exercises(self, cell: Cell) -> bool:
        if cell.kind == "tool":
            return True
        if cell.kind == "outcome":
            return cell.group in self.outcomes
        return bool(self.parameters.intersection(cell.parameters))


def _rows(tool: Tool, config: CoverageConfig | None) -> list[Cell]:
    groups = dict(config.groups) if config else {}
    grouped = {name for names in groups.values() for name in names}
    rows = [Cell(server=tool.server, tool=tool.name, group=ANY_CALL, kind="tool")]
    for name in properties(tool):
        if name not in grouped:
            rows.append(Cell(server=tool.server, tool=tool.name, group=name, kind="parameter", parameters=(name,)))
    for group, names in groups.items():
        rows.append(Cell(server=tool.server, tool=tool.name, group=group, kind="group", parameters=tuple(names)))
    if is_get_like(tool):
        rows += [Cell(server=tool.server, tool=tool.name, group=one, kind="outcome") for one in (FOUND, NOT_FOUND)]
    return rows


def is_get_like(tool: Tool) -> bool:
    """Whether the tool reads one thing it must be pointed to, so that it may be there or not."""
    if not tool.read_only:
        return False
    schemas = properties(tool)
    nouns = set(parts(tool.name)[1:])
    for name in required(tool):
        schema = schemas.get(name)
        described = schema.get("description") if isinstance(schema, dict) else None
        last = parts(name)[-1:] or ("",)
        if last[0] in _KEY_NAMES or name.casefold() in nouns:
            return True
        if isinstance(described, str) and _KEY_DESCRIPTION.match(described):
            return True
    return False


def _uses(tool: Tool, items: Iterable[Item]) -> list[_Use]:
    return [use for item in items if (use := _use(tool, item)) is not None]


def _use(tool: Tool, item: Item) -> _Use | None:
    """What the item says it does with the tool; None when it says nothing of it."""
    dedicated = item.metadata.category == tool.name
    expects_error = tool.name in (item.metadata.expected_errors or ())
    if item.kind == "tool-call":
        if tool.name not in item.expected_tools:
            return None
        pinned = {name for name in item.metadata.expected_args or {} if name in properties(tool)}
    else:
        reference = item.expected_output or ""
        mention = NamedText(reference).mention(tool.name, "tool")
        if not dedicated and not expects_error and (mention is None or mention.weight < CERTAIN):
            return None
        pinned = {name for name in properties(tool) if _as_argument(name, reference)}
    slug = item.id.split("/")[-1].casefold()
    says_missing = "not-found" in slug or bool(_MISSING_WORDS.intersection(re.split(r"[-_.]", slug)))
    # No right call can leave a required parameter out.
    return _Use(
        item=item.id,
        dedicated=dedicated,
        parameters=frozenset(pinned | required(tool)),
        outcomes=frozenset({NOT_FOUND} if says_missing or expects_error else {FOUND}),
    )


def _as_argument(name: str, reference: str) -> bool:
    """Whether a reference gives a parameter a value: `limit 5`, `enabled is false`, `cron '0 8 * * 1'`."""
    spelled = r"[ _-]?".join(map(re.escape, parts(name)))
    value = r"(?:[`\"'“‘@{\[]|-?\d|true\b|false\b|null\b)"
    return bool(re.search(rf"(?<![\w-]){spelled}[`\"”]?\s*(?:=|:|is|of|to|at)?\s*{value}", reference, re.IGNORECASE))


def _calls(tools: Sequence[Tool], trials: Iterable[TrialResult]) -> dict[str, list[_Use]]:
    """By tool, what each trial called: one use a trial."""
    servers = {tool.server for tool in tools}
    names = {tool.name for tool in tools}
    found: dict[str, list[_Use]] = {}
    for trial in trials:
        by_tool: dict[str, _Use] = {}
        for call in trial.conversation.calls if trial.conversation else ():
            if call.server not in servers or call.tool not in names:
                continue
            given = {key for key, value in call.arguments.items() if value is not None}
            failed = call.is_error and not call.denied
            outcomes = {FOUND} if call.executed else {NOT_FOUND} if failed else set()
            before = by_tool.get(call.tool)
            by_tool[call.tool] = _Use(
                item=trial.item,
                dedicated=trial.category == call.tool,
                parameters=frozenset(given | (before.parameters if before else set())),
                outcomes=frozenset(outcomes | (before.outcomes if before else set())),
            )
        for tool, use in by_tool.items():
            found.setdefault(tool, []).append(use)
    return found


def _check_groups(tools: Sequence[Tool], groups: Mapping[str, CoverageConfig], source: str) -> None:
    by_name = {tool.name: tool for tool in tools}
    problems: list[str] = []
    for name, config in groups.items():
        tool = by_name.get(name)
        if tool is None:
            problems.append(f"{source}: coverage.{name}: the target has no such tool; it has {', '.join(by_name)}")
            continue
        known = properties(tool)
        problems += [
            f"{source}: coverage.{name}.groups.{group}: {name} has no parameter {one}; it has {', '.join(known)}"
            for group, members in config.groups.items()
            for one in members
            if one not in known
        ]
    if problems:
        raise TwogateError(problems)


def _notes(tools: Sequence[Tool], items: Sequence[Item]) -> tuple[str, ...]:
    names = {tool.name for tool in tools}
    strange = sorted({item.metadata.category for item in items} - names)
    return tuple(
        f"the category {category} is no tool of the target: its items are dedicated to none" for category in strange
    )
