"""Cron expressions of five fields: strict parsing, and the next time one matches. No I/O.

The format is crontab(5)'s: minute, hour, day of month, month, day of week, each ``*``, a number, a range, a list, or a
step over ``*`` or a range; three-letter English names for months and days; 0 and 7 are Sunday. As there, a day
matches when either day field does, once both are restricted. ``@hourly`` and its like are accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from examples.tasks_server.errors import InvalidError

CRON_MAX = 100
PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# "0 0 29 2 */7" means a 29 February that is a Sunday: up to 40 years apart (2088 to 2128).
_HORIZON_DAYS = 366 * 41


@dataclass(frozen=True)
class _Field:
    title: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first_name: int = 0


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS, 1),
    _Field("day of week", 0, 7, _DAYS, 0),
)


@dataclass(frozen=True)
class Cron:
    """A parsed expression: the values each field allows; weekdays are 0 (Sunday) to 6."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def matches_day(self, day: date) -> bool:
        """Whether the expression has times on this day."""
        if day.month not in self.months:
            return False
        by_day = day.day in self.days
        by_weekday = day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first match later than ``moment`` (aware), in UTC.

        The expression is read in ``zone``. A local time that a clock change skips moves on by the length of the
        gap; of one that comes twice the first counts.
        """
        day = moment.astimezone(zone).date()
        for _ in range(_HORIZON_DAYS):
            if self.matches_day(day):
                # Not the first in wall-clock order: a time moved on out of a gap may come after a later one.
                times = (
                    datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).astimezone(UTC)
                    for hour in self.hours
                    for minute in self.minutes
                )
                found = min((time for time in times if time > moment), default=None)
                if found is not None:
                    return found
            day += timedelta(days=1)
        raise AssertionError("parse() refuses what never matches")


def parse(expression: str) -> Cron:
    """Parse five fields or a preset. Raises InvalidError (``invalid-cron``) that names the field and the fault."""
    text = expression.strip().lower()
    if len(expression) > CRON_MAX:
        raise _invalid(f"The cron expression has {len(expression)} characters; {CRON_MAX} are allowed.")
    if text.startswith("@"):
        if text not in PRESETS:
            raise _invalid(f"{expression!r} is not a known preset; known are {', '.join(sorted(PRESETS))}.")
        text = PRESETS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise _invalid(f"The cron expression {expression!r} has {len(parts)} fields; it needs 5.")
    minutes, hours, days, months, weekdays = (
        _parse_field(part, field) for part, field in zip(parts, _FIELDS, strict=True)
    )
    cron = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=parts[2].startswith("*"),
        any_weekday=parts[4].startswith("*"),
    )
    never = min(days) > max(_DAYS_IN_MONTH[month - 1] for month in months)
    if never and (cron.any_day or cron.any_weekday):
        raise _invalid(f"The cron expression {expression!r} names a day that its months do not have.")
    return cron


def _invalid(message: str) -> InvalidError:
    return InvalidError(
        "invalid-cron",
        message,
        'Send minute, hour, day of month, month and day of week, such as "30 6 * * 1-5" for 06:30 on weekdays, '
        "or @hourly, @daily, @weekly or @monthly.",
    )


def _parse_field(text: str, field: _Field) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = 1
        if slash:
            if not re.fullmatch(r"[0-9]{1,4}", step_text) or int(step_text) == 0:
                raise _invalid(f"The {field.title} field has the step {step_text!r}; it must be 1 or more.")
            step = int(step_text)
        if span == "*":
            low, high = field.low, field.high
        else:
            first, dash, last = span.partition("-")
            low = _number(first, field)
            high = _number(last, field) if dash else low
            if slash and not dash:
                raise _invalid(f"The {field.title} field has a step after {span!r}; it needs a range or *.")
            if high < low:
                raise _invalid(f"The {field.title} field has the range {span!r}, which runs backwards.")
        values.update(range(low, high + 1, step))
    return frozenset(values)


def _number(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.first_name
    if not re.fullmatch(r"[0-9]{1,2}", text) or not field.low <= int(text) <= field.high:
        raise _invalid(f"The {field.title} field has {text!r}; it takes {field.low} to {field.high}.")
    return int(text)
