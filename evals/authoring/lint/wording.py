"""Rules about what queries ask for and what has to stand beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evals.authoring.difficulty import level, steps, turns_needed
from evals.authoring.lint.rules import Context, Hit
from evals.authoring.text import words
from evals.items import DEFAULT_MAX_TURNS, Item

_QUERY = "input.query"

# RFC 2606 and 6761: reserved for documentation or never to be resolved. The three hosts themselves do answer.
_RESERVED_ENDINGS = (".example", ".test", ".invalid", ".localhost")
_FINE_HOSTS = re.compile(r"(?:www\.)?(?:example\.(?:com|org|net)|rfc-editor\.org)")
_PLACEHOLDER_LABEL = re.compile(
    r"(?:my|your|our|some|the|an?)?-?(?:example|sample|dummy|placeholder|fake|foo|bar|foobar|test|tests|testing|mysite|"
    r"site|website|web|domain|company|business|shop|store|blog)(?:-?(?:site|website|domain|company|shop|store|blog|url|"
    r"page|app|\d+))*"
    r"|(?:[\w-]+-)?(?<!by-)(?:example|placeholder|dummy)(?:-[\w-]+)?"
    r"|(?:example|sample|dummy|placeholder|fake|foobar|test|your)-?"
    r"(?:corp|corporation|inc|llc|ltd|gmbh|org|organi[sz]ation|api|server|host|bank|mail)\d*"
)
# Under these a country sells names one level lower: example.co.uk.
_SECOND_LEVEL = frozenset("co com org net ac gov edu or ne go gob".split())
# Words that are real sites by themselves; only with a my, your or second part are they placeholders.
_BARE_LABEL = re.compile(r"(?:site|website|web|domain|company|business|shop|store|blog|an?|the|bar)")
_URL_HOST = re.compile(r"\bhttps?://(?:[^\s/@]*@)?([A-Za-z0-9.-]+)", re.IGNORECASE)
_BARE_HOST = re.compile(
    r"(?<![@\w./-])((?:[a-z0-9-]+\.)+(?:(?:co|com|org|net|ac)\.(?:uk|au|br|nz|za|jp|kr|il|tr|mx|sg|in)|com|org|net|io|dev|app|ai|co|eu|uk|de|fr|"
    r"nl|us|ca|au|jp|br|biz|xyz|example|test|invalid))\b(?!\.\w|\()",
    re.IGNORECASE,
)

_LINES = r"(?:every|each|all(?: of)?(?: the| its)?) (?:single )?(?:lines?|words?|sentences?|paragraphs?)\b"
_WHOLE = (
    r"(?:verbatim|word[ -]for[ -]word|character[ -]for[ -]character|letter[ -]for[ -]letter|"
    r"in full(?=\s*(?:[.,;:!?)\"”]|$|(?:and|here|please|to|for)\b))|unabridged|"
    r"(?:the |its )?(?:full|entire|whole|complete) (?:text|contents?|files?|documents?|articles?|pages?|output|"
    r"transcript|body|message|source)|"
    rf"{_LINES}[^.;!?\n]{{0,60}}?\b(?:exactly (?:as|like|the way) (?:it|they|written|printed|in)|just as (?:it|they)|"
    r"unchanged|unaltered))"
)
_REPEAT = (
    r"\b(?:repeat|reproduce|recite|print|quote|show|output|return|give|copy|paste|dump|contains?|includes?|write)\w*\b"
)
# Texts that are copied and written as often as they are repeated, so that the verb has to say which.
_WHOLE_TEXT = (
    r"(?:(?:the|its|this|that|your|our|my) (?:[\w-]+[’']s )?(?:full|entire|whole|complete) "
    r"(?:change ?log|readme|licen[cs]e|guide|manual|runbook|handbook|chapter|book|specification|[\w/-]+\.[a-z]{1,4})|"
    r"from (?:beginning|start) to (?:end|finish)|from top to bottom)"
)
_SHOW = r"\b(?:repeat|reproduce|recite|print|quote|show|output|return|give|dump|contains?|includes?)\w*\b"
# A dot in a file's name ends no sentence; "show whether the whole text …" asks something else.
_UNTIL = r"(?:(?![.;!?](?:\s|$)|\n|\b(?:whether|if|how|where|which|what|who|when)\b).){0,80}?"
_VERBATIM = re.compile(rf"{_REPEAT}{_UNTIL}\b{_WHOLE}(?!\w)|{_SHOW}{_UNTIL}\b{_WHOLE_TEXT}(?!\w)", re.IGNORECASE)

_PROVOKING_WORDS = re.compile(
    r"\b(?:(?:does|do|did)(?: not|n't|n’t) exist|non-?existent|no-such-[\w-]+|does-not-exist[\w-]*|not-a-real-[\w-]+|"
    r"invalid[\w-]*|malformed|bogus)\b",
    re.IGNORECASE,
)
_PROVOKING_SLUG = frozenset(
    "missing invalid unknown nonexistent conflict duplicate error fails malformed forbidden unauthorized".split()
)
# A search that finds nothing answers with an empty list; only a lookup of one thing fails.
_ANSWERS_EMPTY = frozenset("list search find query filter".split())


def placeholder_host(item: Item, context: Context) -> Iterator[Hit]:
    """TW106."""
    hosts = [*_URL_HOST.findall(item.query), *_BARE_HOST.findall(item.query)]
    for host in dict.fromkeys(host.casefold().strip(".") for host in hosts):
        if _is_placeholder(host):
            yield Hit(
                item.id,
                _QUERY,
                f"{host} is a made-up host",
                "use a host that answers and stays: example.com, www.rfc-editor.org, or one of your own",
            )
            return


def verbatim_repetition(item: Item, context: Context) -> Iterator[Hit]:
    """TW107. Only where an agent answers: a tool-call item runs nothing."""
    if item.kind != "agent":
        return
    for field, text in ((_QUERY, item.query), ("expectedOutput", item.expected_output or "")):
        found = _VERBATIM.search(text)
        if found:
            yield Hit(
                item.id,
                field,
                f'demands a long text word for word ("{_short(found.group())}")',
                "ask for something that shows the text was read: its third heading, how often a word stands in it",
            )
            return


def provokes_an_error(item: Item, context: Context) -> Iterator[Hit]:
    """TW109."""
    if item.kind != "agent" or item.metadata.expected_errors:
        return
    if _ANSWERS_EMPTY & set(words(item.metadata.category.replace("_", " "))):
        return
    slug = item.id.split("/")[-1].casefold()
    in_query = _PROVOKING_WORDS.search(item.query)
    in_slug = next((word for word in re.split(r"[-_.]", slug) if word in _PROVOKING_SLUG), None)
    if "not-found" in slug or in_slug or in_query:
        cause = f'"{in_query.group()}"' if in_query else f"the id's {in_slug or 'not-found'}"
        yield Hit(
            item.id,
            "metadata.expectedErrors",
            f"the query provokes a tool error ({cause}), and none is expected",
            "name in expectedErrors the tool that will fail; probe it first: twogate probe TOOL --args JSON",
        )


def too_few_turns(item: Item, context: Context) -> Iterator[Hit]:
    """TW110."""
    limit = item.metadata.max_turns or DEFAULT_MAX_TURNS
    needed = turns_needed(item)
    if item.kind != "agent" or limit >= needed:
        return
    named = level(item)
    by_level = named is not None and steps(item.query) + 1 < needed
    reason = f"its id calls it {named}" if by_level else f"its query makes {steps(item.query)} requests"
    is_set = item.metadata.max_turns is not None
    yield Hit(
        item.id,
        "metadata.maxTurns",
        f"is {limit if is_set else f'not set, so {limit}'}, and {reason}: {needed} are needed at least",
        f"set it to {max(needed, 2 * limit)} or so; it is a guard against loops, not a measure",
    )


def _is_placeholder(host: str) -> bool:
    if _FINE_HOSTS.fullmatch(host):
        return False
    if host.endswith(_RESERVED_ENDINGS):
        return True
    labels = host.split(".")
    if len(labels) < 2:
        return False
    # below example.com nothing answers: api.example.com
    if re.search(r"\.example\.(?:com|org|net)$", host):
        return True
    is_country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    name = labels[-3 if is_country else -2]
    return bool(_PLACEHOLDER_LABEL.fullmatch(name)) and not _BARE_LABEL.fullmatch(name)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:59]}…"
