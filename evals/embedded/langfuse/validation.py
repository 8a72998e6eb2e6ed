"""Checks of request bodies and query parameters, with the issues that zod reports for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.datastructures import QueryParams

from evals.embedded.langfuse import errors, times
from evals.embedded.langfuse.errors import Issue

Path = list[str | int]


class Missing:
    """A field that is not there at all (JavaScript's undefined)."""


MISSING = Missing()


def js_type(value: Any) -> str:
    """The type's name in zod's messages."""
    if value is None:
        return "null"
    for kind, name in (
        (Missing, "undefined"),
        (bool, "boolean"),
        (int | float, "number"),
        (str, "string"),
        (Mapping, "object"),
    ):
        if isinstance(value, kind):
            return name
    return "array"


def wrong_type(expected: str, value: Any, path: Sequence[str | int]) -> Issue:
    """``Invalid input: expected string, received number``."""
    return {
        "expected": expected,
        "code": "invalid_type",
        "path": list(path),
        "message": f"Invalid input: expected {expected}, received {js_type(value)}",
    }


def wrong_option(options: Sequence[str], path: Sequence[str | int]) -> Issue:
    """``Invalid option: expected one of "A"|"B"``."""
    listed = "|".join(f'"{option}"' for option in options)
    return {
        "code": "invalid_value",
        "values": list(options),
        "path": list(path),
        "message": f"Invalid option: expected one of {listed}",
    }


def too_big(maximum: int, path: Sequence[str | int]) -> Issue:
    """A number above its maximum."""
    return {
        "origin": "number",
        "code": "too_big",
        "maximum": maximum,
        "inclusive": True,
        "path": list(path),
        "message": f"Too big: expected number to be <={maximum}",
    }


def too_small(minimum: int, path: Sequence[str | int], *, inclusive: bool = True) -> Issue:
    """A number below its minimum."""
    return {
        "origin": "number",
        "code": "too_small",
        "minimum": minimum,
        "inclusive": inclusive,
        "path": list(path),
        "message": f"Too small: expected number to be {'>=' if inclusive else '>'}{minimum}",
    }


def invalid_datetime(path: Sequence[str | int]) -> Issue:
    """A text that is no datetime, or one without a zone."""
    return {
        "origin": "string",
        "code": "invalid_format",
        "format": "datetime",
        "pattern": f"/{times.ISO_DATETIME}/",
        "path": list(path),
        "message": "Invalid ISO datetime",
    }


def custom(message: str, path: Sequence[str | int]) -> Issue:
    """A rule of the endpoint's own."""
    return {"code": "custom", "path": list(path), "message": message}


def expect_object(body: Any) -> dict[str, Any]:
    """The body as an object; raises the 400 otherwise."""
    if not isinstance(body, dict):
        raise errors.invalid([wrong_type("object", body, [])])
    return body


class BodyReader:
    """Reads the fields of a JSON object and collects everything that is wrong with them."""

    def __init__(self, body: Mapping[str, Any], prefix: Sequence[str | int] = ()) -> None:
        self.body = body
        self.issues: list[Issue] = []
        self._prefix = list(prefix)

    def path(self, field: str) -> Path:
        """Where the field is, for an issue."""
        return [*self._prefix, field]

    def text(self, field: str, *, required: bool = False) -> str | None:
        """A text; null counts as left out unless it is required."""
        value = self.body.get(field, MISSING)
        if isinstance(value, str):
            return value
        if required or not (value is None or isinstance(value, Missing)):
            self.issues.append(wrong_type("string", value, self.path(field)))
        return None

    def option(self, field: str, options: Sequence[str]) -> str | None:
        """One of a few texts; null counts as left out."""
        value = self.body.get(field)
        if value is None:
            return None
        if value in options and isinstance(value, str):
            return value
        self.issues.append(wrong_option(options, self.path(field)))
        return None

    def done(self) -> None:
        """Raise the 400 with all issues, if there are any."""
        if self.issues:
            raise errors.invalid(self.issues)


class QueryReader:
    """Reads query parameters and collects everything that is wrong with them."""

    def __init__(self, query: QueryParams) -> None:
        self.query = query
        self.issues: list[Issue] = []

    def text(self, name: str) -> str | None:
        """A text; None when left out."""
        values = self.query.getlist(name)
        if len(values) > 1:
            self.issues.append(wrong_type("string", values, [name]))
        return values[0] if values else None

    def texts(self, name: str) -> list[str]:
        """Several texts, as a repeated parameter or separated by commas; empty when left out."""
        return [part for value in self.query.getlist(name) for part in value.split(",") if part]

    def repeated(self, name: str) -> list[str]:
        """The values of a parameter that may be repeated."""
        return [value for value in self.query.getlist(name) if value]

    def integer(self, name: str, default: int, *, minimum: int, maximum: int | None = None, above: bool = False) -> int:
        """A whole number; `above` words a minimum of 1 as "above 0", as zod does for pages."""
        raw = self.text(name)
        if raw is None or raw == "":
            return default
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.issues.append(
                {
                    "expected": "number",
                    "code": "invalid_type",
                    "received": "NaN",
                    "path": [name],
                    "message": "Invalid input: expected number, received NaN",
                }
            )
            return default
        if not value.is_integer():
            self.issues.append(
                {
                    "expected": "int",
                    "format": "safeint",
                    "code": "invalid_type",
                    "path": [name],
                    "message": "Invalid input: expected int, received number",
                }
            )
            return default
        if value < minimum:
            self.issues.append(too_small(minimum - 1, [name], inclusive=False) if above else too_small(minimum, [name]))
            return default
        if maximum is not None and value > maximum:
            self.issues.append(too_big(maximum, [name]))
            return default
        # SQLite integers have 64 bits; a page so far out is past the end anyway.
        return int(min(value, 2**53))

    def decimal(self, name: str) -> float | None:
        """A finite number; None when left out."""
        raw = self.text(name)
        if raw is None:
            return None
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
        self.issues.append(
            {
                "expected": "number",
                "code": "invalid_type",
                "received": "NaN",
                "path": [name],
                "message": "Invalid input: expected number, received NaN",
            }
        )
        return None

    def zoned(self, name: str, *, required: bool = False) -> int | None:
        """A datetime that names its zone, in milliseconds."""
        raw = self.text(name)
        if raw is None:
            if required:
                self.issues.append(wrong_type("string", MISSING, [name]))
            return None
        ms = times.parse_zoned(raw)
        if ms is None:
            self.issues.append(invalid_datetime([name]))
        return ms

    def lenient(self, name: str) -> int | None:
        """A date or datetime, with or without a zone, in milliseconds."""
        raw = self.text(name)
        if raw is None:
            return None
        ms = times.parse_lenient(raw)
        if ms is None:
            self.issues.append(
                {
                    "expected": "date",
                    "code": "invalid_type",
                    "received": "Invalid Date",
                    "path": [name],
                    "message": "Invalid input: expected date, received Date",
                }
            )
        return ms

    def option(self, name: str, options: Sequence[str]) -> str | None:
        """One of a few texts, case and all."""
        value = self.text(name)
        if value is not None and value not in options:
            self.issues.append(wrong_option(options, [name]))
        return value

    def flag(self, name: str) -> bool | None:
        """``true`` or ``false``."""
        value = self.option(name, ["true", "false"])
        return None if value is None else value == "true"

    def groups(self, known: Sequence[str]) -> list[str] | None:
        """The field groups asked for; an unknown one is an issue. None when left out."""
        raw = self.text("fields")
        if raw is None or not raw.strip():
            return None
        named = [group.strip() for group in raw.split(",")]
        self.issues += [
            wrong_option(known, ["fields", position]) for position, group in enumerate(named) if group not in known
        ]
        return named

    def only(self, known: Sequence[str]) -> None:
        """Report parameters that the endpoint does not have."""
        extra = [name for name in dict.fromkeys(self.query.keys()) if name not in known]
        if extra:
            listed = ", ".join(f'"{name}"' for name in extra)
            plural = "s" if len(extra) > 1 else ""
            self.issues.append(
                {
                    "code": "unrecognized_keys",
                    "keys": extra,
                    "path": [],
                    "message": f"Unrecognized key{plural}: {listed}",
                }
            )

    def done(self) -> None:
        """Raise the 400 with all issues, if there are any."""
        if self.issues:
            raise errors.invalid(self.issues)
