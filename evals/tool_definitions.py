"""What a model is shown of a tool: clients leave out or rewrite the definitions that the Messages API would refuse.

A server's authors see nothing of it: the server lists the tool, and no agent ever calls it. What is said here of Claude
Code was measured with the bundled one, and tests/real/test_shown_tools.py compares it with what that sends. The limits
are the API's own: https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError

if TYPE_CHECKING:
    from evals.tool_listing import Tool

MAX_NAME = 128
"""Characters of a tool's name."""
MAX_TEXT = 4096
"""UTF-16 code units of a tool's description, or of a server's instructions, that Claude Code shows."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_COMBINATORS = ("anyOf", "oneOf", "allOf")
PROPERTY_NAME = "^[a-zA-Z0-9_.-]{1,64}$"
"""What the name of an argument must match."""
_PROPERTY = re.compile(PROPERTY_NAME)
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SAID = 160  # characters of a validator's message
# Neither Claude Code nor the API looks whether a `pattern` is a regular expression.
_NO_FORMATS = FormatChecker(())


def fit_name(name: str) -> str:
    """A tool's name with `_` for each character that the Messages API does not take; Claude Code does the same."""
    return _NOT_IN_NAMES.sub("_", name)


def not_shown(tool: Tool) -> str | None:
    """Why Claude Code does not show a tool to the model at all, with the fix; None when it does."""
    if len(tool.client_name) > MAX_NAME:
        long = f"{tool.client_name[:24]}… is {len(tool.client_name)} characters long"
        return f"its name {long}, and the Messages API takes {MAX_NAME}; shorten it, or the server's name"
    schema = tool.input_schema
    combined = _combinators(schema)
    if unlisted := [one for one in combined if not isinstance(schema[one], list)]:
        return f"{' and '.join(unlisted)} at the top of its input schema must be a list"
    if combined:  # only what stays when they are taken out
        return _invalid({key: value for key, value in schema.items() if key not in _COMBINATORS})
    return _odd_property(schema) or _invalid(schema)


def shown_and_hidden(tools: Sequence[Tool]) -> tuple[list[Tool], dict[str, str]]:
    """The tools that a model is shown, and of the others by name why it is not."""
    why = [(tool, not_shown(tool)) for tool in tools]
    return [tool for tool, reason in why if reason is None], {
        tool.name: reason for tool, reason in why if reason is not None
    }


def shown_otherwise(tool: Tool) -> list[str]:
    """What a model is shown otherwise than the server lists it, with the fixes."""
    lines = []
    if combined := _combinators(tool.input_schema):
        lines.append(
            f"Claude Code shows the model the tool {tool.name} with the {' and '.join(combined)} at the top of its "
            f"input schema merged into one list of arguments; {_NO_COMBINATORS}"
        )
    length = units(tool.description)
    if length > MAX_TEXT:
        lines.append(
            f"Claude Code cuts the description of the tool {tool.name} after {MAX_TEXT:,} of its {length:,} "
            "characters; shorten it"
        )
    return lines


def units(text: str) -> int:
    """Its length as JavaScript counts it: in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def unlike_listed(tools: Sequence[Tool]) -> list[str]:
    """A line for each of a server's tools that a model is not shown, or not as it is listed. Each is told once."""
    lines: dict[str, None] = {}
    by_name: dict[str, list[str]] = {}
    for tool in tools:
        by_name.setdefault(tool.client_name, []).append(tool.name)
    for name, own in by_name.items():
        if len(own) > 1:
            told = f"the tools {' and '.join(own)} are both {name} to Claude Code, which sees one of them; rename one"
            lines[told] = None
    for tool in tools:
        why = not_shown(tool)
        if why is not None:
            lines[f"Claude Code does not show the tool {tool.name} to the model: {why}"] = None
        else:
            lines |= dict.fromkeys(shown_otherwise(tool))
    return list(lines)


def refused(tool: Tool) -> str | None:
    """Why the Messages API refuses each request with the tool as it is listed, with the fix; None if it does not."""
    if combined := _combinators(tool.input_schema):
        return f"it takes no {' and no '.join(combined)} at the top of an input schema; {_NO_COMBINATORS}"
    return _odd_property(tool.input_schema) or _invalid(tool.input_schema)


_NO_COMBINATORS = "list one object's properties there"


def _combinators(schema: dict[str, Any]) -> list[str]:
    return [one for one in _COMBINATORS if one in schema]


def _odd_property(schema: dict[str, Any]) -> str | None:
    if not (odd := odd_properties(schema)):
        return None
    return f"its argument {', '.join(map(repr, odd))} has a name outside {PROPERTY_NAME}; rename it"


def _invalid(schema: dict[str, Any]) -> str | None:
    error = schema_error(schema)
    if error is None:
        return None
    said = error.message if len(error.message) <= _SAID else f"{error.message[:_SAID]}…"
    return f"its input schema is not valid JSON Schema (2020-12) at {error.json_path}: {said}; mend it"


def odd_properties(schema: dict[str, Any]) -> list[str]:
    """The names of a schema's properties that the Messages API takes none of."""
    properties = schema.get("properties")
    return [name for name in properties if not _PROPERTY.fullmatch(name)] if isinstance(properties, dict) else []


def schema_error(schema: dict[str, Any]) -> SchemaError | None:
    """What is wrong with a schema by JSON Schema 2020-12; None where it declares another draft."""
    declared = schema.get("$schema")
    if isinstance(declared, str) and declared.rstrip("#") != _DRAFT:
        return None
    try:
        return _schema_error(json.dumps(schema))
    except RecursionError:
        return None  # nested too deep to be looked through


@lru_cache(maxsize=4096)
def _schema_error(text: str) -> SchemaError | None:
    try:
        Draft202012Validator.check_schema(json.loads(text), format_checker=_NO_FORMATS)
    except SchemaError as error:
        return error
    return None
