from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tasks_server_support import untimed

from examples.tasks_server import cron
from examples.tasks_server.errors import InvalidError

PRAGUE = ZoneInfo("Europe/Prague")


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    part = st.one_of(
        number.map(str),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(pair, st.integers(1, high)).map(lambda both: f"{both[0][0]}-{both[0][1]}/{both[1]}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.just("*"),
    )
    return st.lists(part, min_size=1, max_size=3).map(",".join)


# Days up to 28 exist in every month, so that each of these expressions has a next time.
expressions = st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7)).map(" ".join)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


def following(expression: str, moment: str, zone: ZoneInfo = PRAGUE) -> str:
    found = cron.parse(expression).next_after(datetime.fromisoformat(moment), zone)
    return found.astimezone(zone).isoformat(timespec="minutes")


@untimed
@given(expressions, moments)
def test_the_next_time_is_later_and_matches(expression: str, moment: datetime) -> None:
    parsed = cron.parse(expression)
    found = parsed.next_after(moment, UTC)
    assert found > moment
    assert found.minute in parsed.minutes
    assert found.hour in parsed.hours
    assert found.second == 0
    assert parsed.matches_day(found.date())


@untimed
@given(field(0, 59), field(0, 23), moments)
def test_no_earlier_minute_matches(minute: str, hour: str, moment: datetime) -> None:
    parsed = cron.parse(f"{minute} {hour} * * *")
    found = parsed.next_after(moment, UTC)
    walked = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while walked.minute not in parsed.minutes or walked.hour not in parsed.hours:
        walked += timedelta(minutes=1)
    assert found == walked


@pytest.mark.parametrize(
    ("expression", "moment", "expected"),
    [
        ("30 6 * * 1-5", "2026-08-07T06:30+02:00", "2026-08-10T06:30+02:00"),
        ("30 6 * * mon-fri", "2026-08-07T06:29+02:00", "2026-08-07T06:30+02:00"),
        ("0 9 1 jan *", "2026-08-07T00:00+02:00", "2027-01-01T09:00+01:00"),
        ("*/15 * * * *", "2026-08-07T10:16+02:00", "2026-08-07T10:30+02:00"),
        ("0 8 * * 7", "2026-08-07T10:00+02:00", "2026-08-09T08:00+02:00"),
        # Either day field, once both are restricted (crontab(5)): the 13th, and every Friday.
        ("0 0 13 * 5", "2026-08-08T00:00+02:00", "2026-08-13T00:00+02:00"),
        ("0 0 29 2 *", "2026-08-08T00:00+02:00", "2028-02-29T00:00+01:00"),
        ("@weekly", "2026-08-07T00:00+02:00", "2026-08-09T00:00+02:00"),
        ("@DAILY", "2026-08-07T00:00+02:00", "2026-08-08T00:00+02:00"),
        # 02:30 does not exist on 28 March 2027 in Prague, and comes twice on 31 October.
        ("30 2 * * *", "2027-03-27T12:00+01:00", "2027-03-28T03:30+02:00"),
        ("30 2 * * *", "2027-10-30T12:00+02:00", "2027-10-31T02:30+02:00"),
        ("30 2 * * *", "2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"),
        # Moved on out of the gap, 02:45 comes after 03:00.
        ("0,45 2,3 * * *", "2027-03-28T01:59+01:00", "2027-03-28T03:00+02:00"),
    ],
)
def test_known_next_times(expression: str, moment: str, expected: str) -> None:
    assert following(expression, moment) == expected


def test_a_time_that_a_clock_change_always_skips_still_has_a_next() -> None:
    # The second Sunday of March at 02:00 is when New York's clocks go forward.
    new_york = ZoneInfo("America/New_York")
    assert following("0 2 8-14 3 */7", "2027-01-01T00:00+00:00", new_york) == "2027-03-14T03:00-04:00"


def test_a_leap_day_on_a_given_weekday_is_found_decades_ahead() -> None:
    assert following("0 0 29 2 */7", "2088-03-01T00:00+00:00", ZoneInfo("UTC")) == "2128-02-29T00:00+00:00"


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * *", "6 fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of week"),
        ("* * * * someday", "day of week"),
        ("jan * * * *", "minute"),
        ("5-1 * * * *", "backwards"),
        ("*/0 * * * *", "step"),
        ("5/10 * * * *", "range or *"),
        ("1,,2 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("١ * * * *", "minute"),
        ("0 0 30 2 *", "do not have"),
        ("0 0 31 4,6,9,11 *", "do not have"),
        ("@noon", "preset"),
        ("@reboot", "preset"),
        ("* " * 60, "characters"),
    ],
)
def test_a_bad_expression_is_refused_and_the_fault_named(expression: str, fault: str) -> None:
    with pytest.raises(InvalidError, match=fault) as caught:
        cron.parse(expression)
    assert caught.value.type == "invalid-cron"


@untimed
@given(st.text(max_size=110))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    kind = "invalid-cron"
    try:
        cron.parse(text)
    except InvalidError as error:
        kind = error.type
    assert kind == "invalid-cron"


@untimed
@given(st.text("0123456789*/-,@ abcdefjmnostuw", max_size=30), moments)
def test_whatever_parses_has_a_next_time(text: str, moment: datetime) -> None:
    try:
        parsed = cron.parse(text)
    except InvalidError:
        return
    assert parsed.next_after(moment, PRAGUE) > moment
