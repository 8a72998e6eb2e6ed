"""What a JSON value becomes when Langfuse stores it (JavaScript numbers, PostgreSQL ``jsonb``).

Source of every rule: exchanges recorded with a Langfuse 4.16.0 server (tests/embedded/langfuse/data).
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Mapping
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SAFE_INTEGER = 2**53
_DEEPEST = 500  # levels


class Keep(enum.Enum):
    """The field was left out, or null: an upsert keeps the stored value."""

    KEEP = "keep"


KEEP = Keep.KEEP


def loads(text: str | bytes) -> Any:
    """Parse JSON: no NaN; a number too large for a double is null; lone surrogates are replaced.

    Raises ValueError, also for a value nested over 500 levels deep.
    """
    if isinstance(text, bytes):
        text = text.decode()
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int, parse_float=_parse_float)
        # From Python 3.12 on far deeper values can be parsed than the store's own functions can walk.
        if text.count("[") + text.count("{") > _DEEPEST and _is_too_deep(value):
            raise ValueError("nested too deeply")
        return _without_surrogates(value) if _ESCAPED_SURROGATE.search(text) else value
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        lists = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [child for one in lists for child in one]
    return any(isinstance(one, dict | list) for one in level)


def dumps(value: Any) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pretty(value: Any) -> str:
    """JSON text as ``JSON.stringify(value, null, 2)`` writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def valid_text(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be written as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def clean_text(text: str) -> str:
    """The text without control characters, tab and newline excepted."""
    return valid_text(_CONTROL.sub("", text))


def number(value: int | float) -> int | float | None:
    """The number as it reads back: doubles, whole ones without ``.0``, no Infinity (null)."""
    if isinstance(value, int) and abs(value) <= _SAFE_INTEGER:
        return value
    try:
        double = float(value)
    except OverflowError:
        return None
    if not math.isfinite(double):
        return None
    if not double.is_integer() or abs(double) >= 1e21:
        return double
    if abs(double) <= _SAFE_INTEGER:
        return int(double)
    # 12345678901234567890 read back as 12345678901234570000: 16 significant digits are kept.
    return _whole(f"{double:.15e}")


def normalise(value: Any) -> Any:
    """A JSON value as it reads back: numbers as `number`, texts as `clean_text`, keys ordered as in jsonb."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        pairs = {clean_text(key): normalise(each) for key, each in value.items()}
        return {key: pairs[key] for key in sorted(pairs, key=_jsonb_order)}
    return [normalise(each) for each in value]


def item_value(body: Mapping[str, Any], field: str) -> Any | Keep:
    """What a dataset item's ``input``, ``expectedOutput`` or ``metadata`` becomes.

    Left out or null: `KEEP`. ``""``: None, the one way to clear a value. A text that is JSON: parsed.
    """
    value = body.get(field)
    if value is None:
        return KEEP
    if not isinstance(value, str):
        return normalise(value)
    text = clean_text(value)
    if text == "":
        return None
    try:
        parsed = loads(text)
    except ValueError:
        return text
    return KEEP if parsed is None else normalise(parsed)


def merged(sent: Any | Keep, stored: Any) -> Any:
    """The value after an upsert: what was sent, or what was stored where nothing was. Never a deep merge."""
    return stored if sent is KEEP else sent


def looks_parsed(text: str) -> Any:
    """A metadata value as observations show it: parsed where it is JSON, the text otherwise."""
    try:
        return loads(text)
    except ValueError:
        return text


def _jsonb_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


def _whole(digits: str) -> int:
    mantissa, exponent = digits.split("e")
    whole = mantissa.replace(".", "")
    zeros = int(exponent) - (len(whole.lstrip("-")) - 1)
    return int(whole + "0" * zeros)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_int(digits: str) -> int | float | None:
    return int(digits) if len(digits) < 300 else _parse_float(digits)


def _parse_float(digits: str) -> float | None:
    double = float(digits)
    return double if math.isfinite(double) else None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {valid_text(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    return value
