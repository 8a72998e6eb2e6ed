"""Rules that hold what an item expects against the live target's tools and their schemas."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from evals.authoring.catalog import is_open, properties
from evals.authoring.lint.rules import Context, Hit
from evals.items import Item
from evals.tool_definitions import shown_and_hidden
from evals.tool_listing import Tool


def lacking_tool(item: Item, context: Context) -> Iterator[Hit]:
    """TW301."""
    shown, hidden = shown_and_hidden(context.live.tools(item))
    there = {tool.name for tool in shown}
    auxiliary = context.live.auxiliary(item)
    known = there if item.metadata.mcp_tools_only else there | context.live.builtins
    named = {
        "metadata.expectedTools": item.metadata.expected_tools,
        "metadata.expectedErrors": item.metadata.expected_errors,
        "metadata.failTools": item.metadata.fail_tools,
    }
    for field, names in named.items():
        for name in names or ():
            if name in known:
                continue
            if name in hidden:
                yield Hit(item.id, field, f"Claude Code does not show {name} to the model", hidden[name])
                continue
            if name in auxiliary:
                what = f"{name} is a tool of the auxiliary server {auxiliary[name]}"
                yield Hit(item.id, field, what, "expect one of a server under test")
                continue
            near = difflib.get_close_matches(name, sorted(there), n=1)
            hint = f"did you mean {near[0]}? It has" if near else "it has"
            yield Hit(
                item.id,
                field,
                f"the target has no {name}",
                f"{hint} {', '.join(sorted(there)) or 'no tools'}",
            )


def unknown_argument(item: Item, context: Context) -> Iterator[Hit]:
    """TW302."""
    tools = context.live.expected(item)
    if not tools:
        return
    for key in item.metadata.expected_args or {}:
        if not any(key in properties(tool) for tool in tools) and not any(map(is_open, tools)):
            known = sorted({name for tool in tools for name in properties(tool)})
            yield Hit(
                item.id,
                f"metadata.expectedArgs.{key}",
                f"{' and '.join(tool.name for tool in tools)} has no such parameter",
                f"it has {', '.join(known) or 'no parameters'}",
            )


def impossible_value(item: Item, context: Context) -> Iterator[Hit]:
    """TW303."""
    for key, value in (item.metadata.expected_args or {}).items():
        tools = [tool for tool in context.live.expected(item) if key in properties(tool)]
        reasons = [(tool.name, _mismatch(tool, key, value)) for tool in tools]
        # a value that one of the expected tools takes can be met
        if reasons and all(reason for _, reason in reasons):
            name, reason = reasons[0]
            yield Hit(
                item.id,
                f"metadata.expectedArgs.{key}",
                f"{json.dumps(value, ensure_ascii=False)} can be no argument of {name}: {reason}",
                "write a value of the schema's type and range",
            )


def unshared_argument(item: Item, context: Context) -> Iterator[Hit]:
    """TW304."""
    tools = context.live.expected(item)
    if len(tools) < 2:
        return
    for key in item.metadata.expected_args or {}:
        without = [tool.name for tool in tools if key not in properties(tool) and not is_open(tool)]
        if without and len(without) < len(tools):
            yield Hit(
                item.id,
                f"metadata.expectedArgs.{key}",
                f"{' and '.join(without)} has no such parameter, so a right first call of it could never pass",
                "expect one tool, or only arguments that all of them have",
            )


def _mismatch(tool: Tool, key: str, value: Any) -> str | None:
    # the parameter's schema may point into the tool's own definitions
    shared = ("$schema", "$defs", "definitions")
    schema: dict[str, Any] = {name: tool.input_schema[name] for name in shared if name in tool.input_schema}
    schema["properties"] = {key: properties(tool)[key]}
    try:
        validator = validator_for(schema)
        validator.check_schema(schema)
        errors = list(validator(schema).iter_errors({key: value}))
    except SchemaError:
        return None  # the server's mistake, not the item's
    except Exception:  # a reference that leads nowhere raises an error of another library
        return None
    return _reason(errors[0]) if errors else None


def _reason(error: Any) -> str:
    """The innermost cause: of an anyOf the branch that comes closest, which is never the null one."""
    branches = [each for each in error.context or () if each.validator_value != "null"]
    return _reason(branches[0]) if branches else str(error.message)
