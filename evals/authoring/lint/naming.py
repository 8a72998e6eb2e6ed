"""Rules about queries that give the answer away: names and phrases of the target's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evals.authoring.catalog import properties
from evals.authoring.difficulty import is_hard
from evals.authoring.lint.rules import Context, Hit, Severity
from evals.authoring.mentions import CERTAIN, LIKELY, SLIGHT, Mention, NamedText, NameKind
from evals.authoring.text import STOP_WORDS, words
from evals.items import Item
from evals.tool_listing import Tool

_QUERY = "input.query"
PHRASE_WORDS = 5
"""So many words in a row, two of them with a meaning of their own, are copied and not met by chance."""
_MEANING_WORDS = 2


def names_a_tool(item: Item, context: Context) -> Iterator[Hit]:
    """TW101."""
    if is_hard(item):
        return  # TW104 is stricter
    found = _heaviest(context.query(item), _tool_names(item, context), "tool")
    if found is not None and found.weight >= LIKELY:
        yield Hit(
            item.id,
            _QUERY,
            f"{_quoted(found)} names the tool {found.name}",
            "say what the user wants in the user's words, as one who has never seen the tool list",
            _severity(found),
        )


def names_a_parameter(item: Item, context: Context) -> Iterator[Hit]:
    """TW102."""
    names = dict.fromkeys(name for tool in _concerned(item, context) for name in properties(tool))
    found = _heaviest(context.query(item), names, "parameter")
    if found is not None and found.weight >= LIKELY:
        yield Hit(
            item.id,
            _QUERY,
            f"{_quoted(found)} names the parameter {found.name}",
            'say the value in a sentence, e.g. "the first five" instead of "limit=5"',
            _severity(found),
        )


def names_a_family(item: Item, context: Context) -> Iterator[Hit]:
    """TW103. Families are what items pass by `tools`; a server's name counts as one, but may be its product's too."""
    families = dict.fromkeys(family for one in context.items for family in one.metadata.tools or ())
    servers = context.catalog.servers if context.catalog is not None else ()
    found = _heaviest(context.query(item), {**families, **dict.fromkeys(servers)}, "family")
    if found is not None and found.weight >= LIKELY:
        yield Hit(
            item.id,
            _QUERY,
            f"{_quoted(found)} names the family {found.name}",
            "leave it out: users ask for things, not for groups of tools",
            _severity(found) if found.name in families else "warning",
        )


def hard_item_names_a_tool(item: Item, context: Context) -> Iterator[Hit]:
    """TW104. For a hard item the words of a name alone, one after the other, are a hint already."""
    if not is_hard(item):
        return
    found = _heaviest(context.query(item), _tool_names(item, context), "tool")
    if found is not None and found.weight >= SLIGHT:
        yield Hit(
            item.id,
            _QUERY,
            f"{_quoted(found)} hints at the tool {found.name} in a hard item",
            "describe the result the user wants; finding the tool is the hard part",
        )


def copies_a_description(context: Context) -> Iterator[Hit]:
    """TW105."""
    phrases: dict[tuple[str, ...] | None, dict[tuple[str, ...], _Phrase]] = {}
    for item in context.items:
        families = item.metadata.tools
        if families not in phrases:
            phrases[families] = _phrases(context.live.tools(item))
        query = words(item.query)
        for at in range(len(query) - PHRASE_WORDS + 1):
            found = phrases[families].get(tuple(query[at : at + PHRASE_WORDS]))
            if found is None:
                continue
            length = _common_length(query[at:], found.text[found.at :])
            yield Hit(
                item.id,
                _QUERY,
                f'copies "{" ".join(query[at : at + length])}" from the description of {found.tool}',
                "write it anew without looking at the description",
            )
            break


@dataclass(frozen=True)
class _Phrase:
    """Where a run of words stands: the tool, all words of the text, and the position in them."""

    tool: str
    text: list[str]
    at: int


def _phrases(tools: Iterable[Tool]) -> dict[tuple[str, ...], _Phrase]:
    """The runs of words of all descriptions that are not met by chance."""
    found: dict[tuple[str, ...], _Phrase] = {}
    for tool in tools:
        for text in map(words, _descriptions(tool)):
            for at in range(len(text) - PHRASE_WORDS + 1):
                run = tuple(text[at : at + PHRASE_WORDS])
                if sum(word not in STOP_WORDS for word in run) >= _MEANING_WORDS:
                    found.setdefault(run, _Phrase(tool.name, text, at))
    return found


def _tool_names(item: Item, context: Context) -> Iterable[str]:
    return dict.fromkeys(tool.name for tool in context.live.tools(item))


def _concerned(item: Item, context: Context) -> tuple[Tool, ...]:
    """The tools the item is about, else all that its agent sees."""
    tools = context.live.tools(item)
    wanted = {*item.expected_tools, item.metadata.category}
    return tuple(tool for tool in tools if tool.name in wanted) or tools


def _heaviest(query: NamedText, names: Iterable[str], kind: NameKind) -> Mention | None:
    found = [mention for name in names if (mention := query.mention(name, kind)) is not None]
    # of equal ones the longest: `list_task_runs` says more than `list_task`
    return max(found, key=lambda one: (one.weight, len(one.name))) if found else None


def _severity(found: Mention) -> Severity:
    return "error" if found.weight >= CERTAIN else "warning"


def _quoted(found: Mention) -> str:
    return f'"{found.words}"'


def _descriptions(tool: Tool) -> Iterator[str]:
    yield tool.description
    for schema in properties(tool).values():
        description = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(description, str):
            yield description


def _common_length(one: list[str], other: list[str]) -> int:
    length = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        length += 1
    return length
