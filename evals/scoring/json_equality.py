"""Equality of JSON values, which Python's ``==`` is not: to Python, 1 equals true."""

from __future__ import annotations

from typing import Any


def json_equal(left: Any, right: Any) -> bool:
    """Deep equality as JSON sees it: 5 equals 5.0, true is not 1, key order is nothing, list order counts."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return type(left) is type(right) and bool(left == right)
