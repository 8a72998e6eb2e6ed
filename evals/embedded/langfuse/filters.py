"""The ``filter`` parameter: a JSON array of conditions, as SQL.

Source: the documentation of ``GET /v2/observations`` in the Langfuse SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.embedded.langfuse import errors, jsonvalues, times

_COMPARISONS = ("=", ">", "<", ">=", "<=")


@dataclass
class Conditions:
    """SQL conditions that all must hold, with their parameters."""

    sql: list[str] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)

    def add(self, sql: str, *parameters: Any) -> None:
        """One more condition."""
        self.sql.append(sql)
        self.parameters.extend(parameters)

    def any_of(self, expression: str, values: Sequence[Any]) -> None:
        """The expression is one of the values; no values, no condition."""
        if values:
            self.add(f"{expression} IN ({marks(values)})", *values)

    def where(self) -> str:
        """Everything joined; true when there is nothing."""
        return " AND ".join(f"({each})" for each in self.sql) or "1"


@dataclass(frozen=True)
class Column:
    """Where a filter column is: an SQL expression, or a JSON column of keys or of a list."""

    sql: str


Columns = Mapping[str, Column]


def marks(values: Sequence[Any]) -> str:
    """``?, ?, ?``."""
    return ", ".join("?" * len(values))


def parse(raw: str | None, columns: Columns) -> list[dict[str, Any]]:
    """The conditions of a filter. Raises the 400 when it is not a list of conditions on known columns."""
    if raw is None or raw == "":
        return []
    try:
        found = jsonvalues.loads(raw)
    except ValueError:
        raise errors.invalid_request("Invalid JSON in filter parameter") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _bad("it must be an array of conditions")
    for condition in found:
        for name in ("type", "column", "operator"):
            if not isinstance(condition.get(name), str):
                raise _bad(f"each condition needs a text as {name!r}")
        if condition["column"] not in columns:
            raise errors.invalid_request(f"Column {condition['column']} does not match a UI / CH table mapping.")
    return found


def apply(conditions: Sequence[Mapping[str, Any]], columns: Columns, found: Conditions) -> None:
    """Add the SQL of the conditions to `found`. Raises the 400 for an operator or value that does not fit."""
    for condition in conditions:
        build = _BUILDERS.get(condition["type"])
        if build is None:
            raise _bad(f"type {condition['type']!r} is not one of {', '.join(_BUILDERS)}")
        build(columns[condition["column"]].sql, condition, found)


def _bad(message: str) -> errors.ApiError:
    return errors.invalid_request(f"Invalid filter parameter: {message}")


def _operator(condition: Mapping[str, Any], allowed: Sequence[str]) -> str:
    operator: str = condition["operator"]
    if operator not in allowed:
        raise _bad(f"operator {operator!r} of type {condition['type']!r} is not one of {', '.join(allowed)}")
    return operator


def _string_value(condition: Mapping[str, Any], name: str = "value") -> str:
    value = condition.get(name)
    if not isinstance(value, str):
        raise _bad(f"{name} of type {condition['type']!r} must be a string")
    return value


def _number_value(condition: Mapping[str, Any]) -> float:
    value = condition.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(f"value of type {condition['type']!r} must be a number")
    return float(value)


def _list_value(condition: Mapping[str, Any]) -> list[str]:
    value = condition.get("value")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _bad(f"value of type {condition['type']!r} must be an array of strings")
    return value


def _text_test(operator: str, expression: str, value: str) -> tuple[str, list[Any]]:
    match operator:
        case "=":
            return f"{expression} = ?", [value]
        case "contains":
            return f"instr({expression}, ?) > 0", [value]
        case "does not contain":
            return f"instr(coalesce({expression}, ''), ?) = 0", [value]
        case "starts with":
            return f"substr({expression}, 1, length(?)) = ?", [value, value]
        case "ends with":
            return f"(? = '' OR substr({expression}, -length(?)) = ?)", [value, value, value]
        case _:  # matches
            return f"instr(lower({expression}), lower(?)) > 0", [value]


_TEXT_OPERATORS = ("=", "contains", "does not contain", "starts with", "ends with", "matches")


def _string(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, _TEXT_OPERATORS)
    if operator == "matches" and condition["column"] not in ("input", "output"):
        raise _bad("operator 'matches' is for input, output and metadata")
    sql, parameters = _text_test(operator, expression, _string_value(condition))
    found.add(sql, *parameters)


def _options(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, ("any of", "none of"))
    values = _list_value(condition)
    negation = "NOT " if operator == "none of" else ""
    found.add(f"coalesce({expression}, '') {negation}IN ({marks(values)})", *values)


def _array(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, ("any of", "none of", "all of"))
    values = _list_value(condition)
    count = f"(SELECT count(DISTINCT value) FROM json_each({expression}) WHERE value IN ({marks(values)}))"  # noqa: S608
    if operator == "all of":
        found.add(f"{count} = ?", *values, len(set(values)))
    else:
        found.add(f"{count} {'>' if operator == 'any of' else '='} 0", *values)


def _datetime(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, (">", "<", ">=", "<="))
    ms = times.parse_lenient(_string_value(condition))
    if ms is None:
        raise _bad("value of type 'datetime' must be an ISO 8601 datetime")
    found.add(f"{expression} {operator} ?", ms)


def _number(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, _COMPARISONS)
    found.add(f"{expression} {operator} ?", _number_value(condition))


def _boolean(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, ("=", "<>"))
    value = condition.get("value")
    if not isinstance(value, bool):
        raise _bad("value of type 'boolean' must be true or false")
    found.add(f"{expression} {operator} ?", int(value))


def _null(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, ("is null", "is not null"))
    # Unset texts are stored as empty ones.
    found.add(f"coalesce({expression}, '') {'=' if operator == 'is null' else '<>'} ''")


def _keyed(expression: str, condition: Mapping[str, Any], test: str, parameters: Sequence[Any]) -> tuple[str, Any]:
    key = _string_value(condition, "key")
    sql = f"EXISTS (SELECT 1 FROM json_each({expression}) WHERE key = ? AND {test})"  # noqa: S608
    return sql, [key, *parameters]


def _string_object(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, (*_TEXT_OPERATORS, "is set", "is not set"))
    if operator in ("is set", "is not set"):
        sql, parameters = _keyed(expression, condition, "1", [])
        found.add(sql if operator == "is set" else f"NOT {sql}", *parameters)
        return
    value = _string_value(condition)
    # Unlike those of texts, matches on metadata values mind the case.
    test, values = _text_test("contains" if operator == "matches" else operator, "value", value)
    sql, parameters = _keyed(expression, condition, test, values)
    found.add(sql, *parameters)


def _number_object(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, _COMPARISONS)
    sql, parameters = _keyed(
        expression,
        condition,
        f"json_valid(value) AND json_type(value) IN ('integer', 'real') AND CAST(value AS REAL) {operator} ?",
        [_number_value(condition)],
    )
    found.add(sql, *parameters)


def _category(expression: str, condition: Mapping[str, Any], found: Conditions) -> None:
    operator = _operator(condition, ("any of", "none of"))
    values = _list_value(condition)
    sql, parameters = _keyed(expression, condition, f"value IN ({marks(values)})", values)
    found.add(sql if operator == "any of" else f"NOT {sql}", *parameters)


_BUILDERS: Mapping[str, Callable[[str, Mapping[str, Any], Conditions], None]] = {
    "datetime": _datetime,
    "string": _string,
    "number": _number,
    "stringOptions": _options,
    "categoryOptions": _category,
    "arrayOptions": _array,
    "stringObject": _string_object,
    "numberObject": _number_object,
    "boolean": _boolean,
    "null": _null,
}
