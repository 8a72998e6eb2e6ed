"""Pydantic's findings as short plain sentences."""

from __future__ import annotations

from pydantic import ValidationError


def describe_problems(error: ValidationError) -> list[str]:
    """One line a problem, ``field: what is wrong``, without the rejected values."""
    lines: dict[str, None] = {}
    for problem in error.errors(include_url=False, include_input=False):
        # The members of a union are numbered or named by type after the field; the field alone is enough.
        where = ".".join(str(part) for part in problem["loc"] if not _is_type_name(part)) or "the object"
        line = f"{where}: {problem['msg']}"
        # A field's name comes from the caller, and may be no valid text.
        lines[line.encode("utf-8", "backslashreplace").decode()] = None
    return list(lines)


def _is_type_name(part: int | str) -> bool:
    return part in {"int", "float", "str", "constrained-str"} or (isinstance(part, str) and "[" in part)
