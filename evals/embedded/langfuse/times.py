"""Instants as whole milliseconds since the Unix epoch (UTC), the precision Langfuse answers with."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# zod's `z.string().datetime({ offset: true })`; the server repeats it in its 400 answers.
ISO_DATETIME = (
    r"^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29"
    r"|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|(?:02)-(?:0[1-9]|1\d|2[0-8])))"
    r"T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|([+-](?:[01]\d|2[0-3]):[0-5]\d)))$"
)
_ISO_DATETIME = re.compile(ISO_DATETIME, re.ASCII)


def now_ms() -> int:
    """The time now in milliseconds."""
    return _to_ms(datetime.now(UTC))


def iso(ms: int) -> str:
    """``2026-11-29T19:07:43.746Z``."""
    return _utc(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(ms: int | None) -> str | None:
    """Like `iso`; None stays None."""
    return None if ms is None else iso(ms)


def parse_zoned(text: str) -> int | None:
    """An ISO 8601 datetime that names its zone, cut to milliseconds; None when it is not one."""
    if not _ISO_DATETIME.match(text):
        return None
    return parse_lenient(text)


def parse_lenient(text: str) -> int | None:
    """Any ISO 8601 date or datetime; one without a zone is taken as UTC. None when it is not one."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        return _to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except OverflowError:
        return None


def clickhouse(ms: int) -> str:
    """``2026-11-29 19:07:51.762000``: how experiment cursors write an instant."""
    return _utc(ms).strftime("%Y-%m-%d %H:%M:%S.%f")


def _to_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _utc(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
