"""What a rule is, and what it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from evals.authoring.catalog import Catalog
from evals.authoring.mentions import NamedText
from evals.items import Item

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Hit:
    """What a rule found: where, what it is, and how to mend it."""

    item: str
    field: str
    message: str
    fix: str
    severity: Severity | None = None
    """Another severity than the rule's own."""


@dataclass(frozen=True)
class Context:
    """The valid items of one dataset, and the live target where there is one."""

    items: tuple[Item, ...]
    catalog: Catalog | None = None
    _queries: Mapping[str, NamedText] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owners = self.catalog.servers if self.catalog is not None else ()
        queries = {item.id: NamedText(item.query, _content(item), owners) for item in self.items}
        object.__setattr__(self, "_queries", queries)

    def query(self, item: Item) -> NamedText:
        """The item's query, taken apart; what its expectedArgs hold is what the user asks about, not a hint."""
        return self._queries[item.id]

    @property
    def live(self) -> Catalog:
        """The target; only rules that need it ask."""
        assert self.catalog is not None, "the rule needs a target"
        return self.catalog


Check = Callable[[Context], Iterable[Hit]]
ItemCheck = Callable[[Item, Context], Iterable[Hit]]


@dataclass(frozen=True)
class Rule:
    """A rule with its stable code, its reason and its function."""

    code: str
    name: str
    severity: Severity
    why: str
    check: Check
    needs_target: bool = False


def each_item(check: ItemCheck) -> Check:
    """A rule about single items as one about the dataset."""

    def over_all(context: Context) -> Iterator[Hit]:
        for item in context.items:
            yield from check(item, context)

    return over_all


def _content(item: Item) -> tuple[str, ...]:
    return tuple(value for value in (item.metadata.expected_args or {}).values() if isinstance(value, str))
