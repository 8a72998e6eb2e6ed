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
from evals.authoring.mentions import CERTAIN, NamedText, done_only, gives_value
from evals.authoring.text import parts, split_reference
from evals.errors import TwogateError
from evals.items import Item
from evals.runs.trial import TrialResult
from evals.target import CoverageConfig
from evals.tool_definitions import not_shown
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

_SAYS_MISSING = (
    r"not[-_ ]?found|no[-_ ]such|(?:does|do|did)(?:[-_ ]not|n['’]t)[-_ ]exist|no longer exists|non-?existent"
    r"|(?:could|can)(?: ?not|n['’]t) (?:be )?(?:found|find|locate)|\b404\b|\bENOENT\b"
)
# "Tool x not found": what lacks is no resource, so the tool never ran.
_NO_RESOURCES = frozenset("tool method function command module route endpoint host page".split())
_TELLS_MISSING = re.compile(rf"{_SAYS_MISSING}|not-a-real-|\bis(?:n['’]t| not) there\b", re.IGNORECASE)
# A reference speaks more freely: "gives up because there is no welcome-letter".
_REFERENCE_TELLS_MISSING = re.compile(rf"{_TELLS_MISSING.pattern}|\bthere (?:is|was|are) no\b", re.IGNORECASE)


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

    Raises TwogateError when the target lists no tools at all, or when a configured group names a tool or a parameter
    the target lacks.
    """
    tools = catalog.all_tools()
    if not tools:
        servers = ", ".join(catalog.servers)
        raise TwogateError(
            f"{catalog.target.source.name}: the target lists no tools ({servers}), so there is nothing to cover; "
            "see what its servers list with twogate doctor"
        )
    _check_groups(tools, catalog.target.coverage, catalog.target.source.name)
    notes = _notes(catalog, tools, items)
    # Of a tool that no model is shown no case could pass.
    tools = tuple(tool for tool in tools if not_shown(tool) is None)
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
    return Coverage(run=run, cells=tuple(cells), notes=notes)


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
        reference = done_only(split_reference(item.expected_output or "").passing)
        mention = NamedText(reference).mention(tool.name, "tool")
        if not dedicated and not expects_error and (mention is None or mention.weight < CERTAIN):
            return None
        pinned = {name for name in properties(tool) if gives_value(name, reference)}
    # No right call can leave a required parameter out.
    return _Use(
        item=item.id,
        dedicated=dedicated,
        parameters=frozenset(pinned | required(tool)),
        outcomes=_outcomes(tool, item),
    )


def _outcomes(tool: Tool, item: Item) -> frozenset[str]:
    """What the item says becomes of its lookup. A failure that is no `not found` is neither of the two."""
    if tool.name in (item.metadata.fail_tools or ()):
        return frozenset()  # the call never reaches the server
    expected = item.metadata.expected_errors or ()
    slug = item.id.split("/")[-1].casefold()
    missing = "not-found" in slug or bool(_MISSING_WORDS.intersection(re.split(r"[-_.]", slug)))
    if not expected:
        return frozenset({NOT_FOUND if missing else FOUND})
    if tool.name not in expected:
        return frozenset({FOUND})
    told = _TELLS_MISSING.search(item.query) or _REFERENCE_TELLS_MISSING.search(item.expected_output or "")
    return frozenset({NOT_FOUND} if missing or told else ())


def says_missing(tool: Tool, error: str) -> bool:
    """Whether an error's type or text says that the thing asked for is not there; other failures say nothing of it."""
    own = {part.removesuffix("s") for part in parts(tool.name)[1:]}
    others = "|".join(sorted(_NO_RESOURCES - own))
    if re.search(rf"\b(?:{others})\b[^.:\n]{{0,60}}\bnot[-_ ]?found|\bno such (?:{others})\b", error, re.IGNORECASE):
        return False
    things = "|".join(map(re.escape, sorted(own | {"resource", "object", "record", "item", "file"})))
    named = rf"\b(?:unknown|(?:there (?:is|was) )?no) (?:{things})s?\b(?! (?:is |was )?(?:given|provided|specified))"
    return bool(re.search(rf"{_SAYS_MISSING}|{named}|\bunknown (?:id|name|path|key)\b", error, re.IGNORECASE))


def _calls(tools: Sequence[Tool], trials: Iterable[TrialResult]) -> dict[str, list[_Use]]:
    """By tool, what each trial called: one use a trial."""
    known = {(tool.server, tool.name): tool for tool in tools}
    found: dict[str, list[_Use]] = {}
    for trial in trials:
        by_tool: dict[str, _Use] = {}
        for call in trial.conversation.calls if trial.conversation else ():
            tool = known.get((call.server or "", call.tool))
            if tool is None:
                continue
            given = {key for key, value in call.arguments.items() if value is not None}
            # a refused call (failTools) has an error, too, but none of the server's
            missing = call.is_error and not call.denied and says_missing(tool, call.result or "")
            outcomes = {FOUND} if call.executed else {NOT_FOUND} if missing else set()
            before = by_tool.get(call.tool)
            by_tool[call.tool] = _Use(
                item=trial.item,
                dedicated=trial.category == call.tool,
                parameters=frozenset(given | (before.parameters if before else set())),
                outcomes=frozenset(outcomes | (before.outcomes if before else set())),
            )
        for name, use in by_tool.items():
            found.setdefault(name, []).append(use)
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


def _notes(catalog: Catalog, tools: Sequence[Tool], items: Sequence[Item]) -> tuple[str, ...]:
    names = {tool.name for tool in tools}
    strange = sorted({item.metadata.category for item in items} - names)
    empty = sorted(set(catalog.servers) - {tool.server for tool in tools})
    return (
        *(f"the server {server} lists no tools, so nothing of it is counted" for server in empty),
        *(
            f"Claude Code does not show {tool.name} to the model, so nothing of it is counted: {why}"
            for tool in tools
            if (why := not_shown(tool)) is not None
        ),
        *(f"the category {category} is no tool of the target: its items are dedicated to none" for category in strange),
    )
