"""Windows and deadlines against oracles that count day by day and minute by minute."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.config import CalendarSettings
from ingest.dates import (
    Calendar,
    business_time,
    deadline,
    format_date,
    format_duration,
    format_moment,
    relative_date,
)
from ingest.types import Unit

MADRID = ZoneInfo("Europe/Madrid")
DESK = Calendar(MADRID, time(9), time(18), holidays=frozenset({date(2026, 10, 12), date(2026, 12, 25)}))
TODAY = date(2026, 9, 26)

days = st.dates(date(1990, 1, 1), date(2090, 12, 31))
near_days = st.dates(date(2026, 1, 1), date(2027, 12, 31))
calendars = st.builds(
    Calendar,
    zone=st.sampled_from([ZoneInfo(name) for name in ("UTC", "Europe/Madrid", "America/New_York", "Asia/Kathmandu")]),
    opens=st.sampled_from([time(0), time(1, 30), time(9), time(9, 15)]),
    closes=st.sampled_from([time(9, 30), time(17), time(18), time(23, 45)]),
    workdays=st.frozensets(st.integers(0, 6), min_size=1),
    holidays=st.frozensets(near_days, max_size=20),
)  # fmt: skip


def moments(zone: ZoneInfo = MADRID) -> st.SearchStrategy[datetime]:
    """Return moments on whole quarters of an hour, many of them around the changes of the clock."""
    around = [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)]  # fmt: skip
    return st.builds(
        lambda base, quarters: (base + timedelta(minutes=15 * quarters)).astimezone(zone),
        st.sampled_from(around),
        st.integers(0, 4 * 24 * 4),
    )


def test_the_calendar_comes_from_its_settings() -> None:
    calendar = Calendar.from_settings(
        CalendarSettings(zone="Europe/Madrid", opens=time(9), closes=time(18), holidays=(date(2026, 10, 12),))
    )
    assert calendar.is_business_day(date(2026, 10, 9))
    assert not calendar.is_business_day(date(2026, 10, 10))
    assert not calendar.is_business_day(date(2026, 10, 12))
    assert calendar.zone.key == "Europe/Madrid"


@pytest.mark.parametrize(
    ("start", "amount", "unit", "before", "at"),
    [
        (date(2026, 8, 14), 30, "day", False, date(2026, 9, 13)),
        (date(2026, 8, 14), 2, "week", False, date(2026, 8, 28)),
        (date(2026, 1, 31), 1, "month", False, date(2026, 2, 28)),
        (date(2024, 1, 31), 1, "month", False, date(2024, 2, 29)),
        (date(2024, 2, 29), 1, "year", False, date(2025, 2, 28)),
        (date(2024, 2, 29), 4, "year", False, date(2028, 2, 29)),
        (date(2026, 12, 31), 2, "month", False, date(2027, 2, 28)),
        (date(2026, 3, 31), 1, "month", True, date(2026, 2, 28)),
        (date(2026, 10, 9), 1, "business_day", False, date(2026, 10, 13)),
        (date(2026, 10, 10), 1, "business_day", False, date(2026, 10, 13)),
        (date(2026, 10, 13), 1, "business_day", True, date(2026, 10, 9)),
        (date(2026, 9, 13), 30, "day", True, date(2026, 8, 14)),
        (date(2026, 8, 14), 0, "day", False, date(2026, 8, 14)),
    ],
)
def test_where_periods_end(start: date, amount: int, unit: Unit, before: bool, at: date) -> None:
    assert deadline(start, amount, unit, DESK, before=before).at == at


@given(days, st.integers(0, 800), st.booleans())
def test_days_are_counted_one_by_one(start: date, amount: int, before: bool) -> None:
    day = start
    for _ in range(amount):
        day += timedelta(days=-1 if before else 1)
    assert deadline(start, amount, "day", DESK, before=before).at == day


@given(days, st.integers(0, 60), st.booleans())
def test_months_end_on_the_same_number_or_the_month_s_last_day(
    start: date, amount: int, before: bool
) -> None:
    year, month = start.year, start.month
    for _ in range(amount):
        month += -1 if before else 1
        year, month = (year - 1, 12) if month == 0 else (year + 1, 1) if month == 13 else (year, month)
    for number in range(start.day, 0, -1):
        try:
            wanted = date(year, month, number)
        except ValueError:
            continue
        break
    assert deadline(start, amount, "month", DESK, before=before).at == wanted


@given(days, st.integers(0, 30), st.booleans())
def test_a_year_is_twelve_months_and_a_week_seven_days(start: date, amount: int, before: bool) -> None:
    assert (
        deadline(start, amount, "year", DESK, before=before).at
        == deadline(start, 12 * amount, "month", DESK, before=before).at
    )
    assert (
        deadline(start, amount, "week", DESK, before=before).at
        == deadline(start, 7 * amount, "day", DESK, before=before).at
    )


@given(calendars, near_days, st.integers(1, 40), st.booleans())
def test_business_days_are_the_open_days_between(
    calendar: Calendar, start: date, amount: int, before: bool
) -> None:
    at = deadline(start, amount, "business_day", calendar, before=before).at
    first, last = (at, start - timedelta(days=1)) if before else (start + timedelta(days=1), at)
    span = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    open_days = [d for d in span if d.weekday() in calendar.workdays and d not in calendar.holidays]
    assert len(open_days) == amount
    assert at in open_days


@given(moments(), st.integers(0, 100), st.booleans())
def test_hours_pass_whatever_the_wall_clock_shows(start: datetime, amount: int, before: bool) -> None:
    end = deadline(start, amount, "hour", DESK, before=before)
    assert isinstance(end.at, datetime)
    assert end.at.tzinfo is MADRID
    elapsed = end.at.astimezone(UTC) - start.astimezone(UTC)
    assert elapsed == timedelta(hours=-amount if before else amount)


def open_minutes(start: datetime, end: datetime, calendar: Calendar) -> int:
    """Count the quarters of an hour between two moments in which the desk is open, on the wall clock."""
    minutes, at = 0, start.astimezone(UTC)
    while at < end.astimezone(UTC):
        local = at.astimezone(calendar.zone)
        open_day = local.weekday() in calendar.workdays and local.date() not in calendar.holidays
        # A quarter is open by its place between the two moments of opening and closing, not by its label alone:
        # in the repeated hour a label stands twice.
        opens = datetime.combine(local.date(), calendar.opens, calendar.zone).astimezone(UTC)
        closes = datetime.combine(local.date(), calendar.closes, calendar.zone).astimezone(UTC)
        minutes += 15 * (open_day and opens <= at < closes)
        at += timedelta(minutes=15)
    return minutes


@settings(deadline=None, max_examples=60)
@given(calendars, st.data())
def test_business_time_is_counted_quarter_by_quarter(calendar: Calendar, data: st.DataObject) -> None:
    start, end = data.draw(moments(calendar.zone)), data.draw(moments(calendar.zone))
    assert business_time(start, end, calendar) == timedelta(minutes=open_minutes(start, end, calendar))


@settings(deadline=None, max_examples=60)
@given(calendars, st.integers(1, 20), st.data())
def test_business_hours_end_when_they_have_passed(
    calendar: Calendar, amount: int, data: st.DataObject
) -> None:
    start = data.draw(moments(calendar.zone))
    at = deadline(start, amount, "business_hour", calendar).at
    assert isinstance(at, datetime)
    assert open_minutes(start, at, calendar) == 60 * amount
    before = at.astimezone(UTC) - timedelta(minutes=15)  # on the clock of the zone a quarter may not exist
    assert open_minutes(before, at, calendar) == 15, "it ends as soon as they have"


@settings(deadline=None, max_examples=40)
@given(calendars, st.integers(1, 20), st.data())
def test_business_hours_before_a_moment(calendar: Calendar, amount: int, data: st.DataObject) -> None:
    start = data.draw(moments(calendar.zone))
    at = deadline(start, amount, "business_hour", calendar, before=True).at
    assert isinstance(at, datetime)
    assert open_minutes(at, start, calendar) == 60 * amount


@pytest.mark.parametrize(
    ("start", "amount", "at"),
    [
        ("2026-09-25T17:00", 8, "2026-09-28T16:00"),
        ("2026-09-25T10:00", 8, "2026-09-25T18:00"),
        ("2026-09-26T12:00", 1, "2026-09-28T10:00"),
        ("2026-09-28T07:00", 1, "2026-09-28T10:00"),
        ("2026-09-28T18:00", 1, "2026-09-29T10:00"),
        ("2026-10-09T17:00", 2, "2026-10-13T10:00"),
        ("2026-09-26T12:00", 0, "2026-09-28T09:00"),
    ],
)
def test_where_business_hours_end(start: str, amount: int, at: str) -> None:
    end = deadline(datetime.fromisoformat(start), amount, "business_hour", DESK).at
    assert end == datetime.fromisoformat(at).replace(tzinfo=MADRID)


def test_a_calendar_without_business_days_has_no_deadline() -> None:
    closed = Calendar(MADRID, workdays=frozenset())
    for unit in ("business_day", "business_hour"):
        with pytest.raises(OverflowError):
            deadline(date(2026, 1, 1), 1, unit, closed)
    with pytest.raises(OverflowError):
        deadline(date(2026, 1, 1), 9000, "year", DESK)


@given(near_days, st.integers(0, 90), st.integers(-200, 200), st.booleans())
def test_the_last_day_counts(start: date, amount: int, offset: int, before: bool) -> None:
    end = deadline(start, amount, "day", DESK, before=before)
    assert not isinstance(end.at, datetime)
    when = end.at + timedelta(days=offset)
    assert end.met_by(when) == (offset <= 0)
    margin = end.margin(when)
    assert margin.amount == -offset
    assert ("after" in margin.text) == (offset > 0)
    assert ("before it" in margin.text) == (offset < 0)


def test_a_moment_counts_on_the_desk_s_day() -> None:
    end = deadline(date(2026, 8, 14), 30, "day", DESK)
    assert end.met_by(datetime(2026, 9, 13, 23, 59))  # noqa: DTZ001
    assert end.met_by(datetime(2026, 9, 13, 21, 59, tzinfo=UTC))
    assert not end.met_by(datetime(2026, 9, 13, 22, 0, tzinfo=UTC)), "it is past midnight in Madrid"


@given(moments(), moments(), st.integers(0, 60))
def test_moments_are_compared_as_they_pass(start: datetime, when: datetime, amount: int) -> None:
    end = deadline(start, amount, "hour", DESK)
    late = when.astimezone(UTC) - start.astimezone(UTC) - timedelta(hours=amount)
    assert end.met_by(when) == (late <= timedelta())
    assert end.margin(when).amount == -late.total_seconds() / 60


def test_formulas_and_margins_read_well() -> None:
    end = deadline(date(2026, 8, 14), 30, "day", DESK)
    assert end.formula == (
        "14 August 2026 + 30 days = 13 September 2026 (day 0 is 14 August, the last day counts)"
    )
    assert end.margin(date(2026, 9, 2)).text == "11 days before it closed, day 19 of 30"
    assert end.margin(date(2026, 9, 12)).text == "1 day before it closed, day 29 of 30"
    assert end.margin(date(2026, 9, 13)).text == "on the last day, day 30 of 30"
    assert end.margin(date(2026, 9, 15)).text == "2 days after it closed"
    assert end.margin(date(2026, 8, 1)).text == "43 days before it closed"

    hours = deadline(datetime(2026, 9, 25, 17), 8, "business_hour", DESK)  # noqa: DTZ001
    assert hours.formula == (
        "25 September 2026, 17:00 + 8 business hours = 28 September 2026, 16:00 (counted in open hours)"
    )
    assert hours.margin(datetime(2026, 9, 28, 14, 30)).text == "1 business hour 30 minutes to spare"  # noqa: DTZ001
    assert hours.margin(datetime(2026, 9, 28, 15, 15)).text == "45 business minutes to spare"  # noqa: DTZ001
    assert hours.margin(datetime(2026, 9, 29, 9, 0)).text == "2 business hours late"  # noqa: DTZ001

    clock = deadline(datetime(2026, 9, 25, 17, tzinfo=MADRID), 48, "hour", DESK)
    assert clock.margin(datetime(2026, 9, 25, 18, tzinfo=MADRID)).text == "1 day 23 hours to spare"
    assert "− 1 month" in deadline(date(2026, 3, 31), 1, "month", DESK, before=True).formula


def test_how_dates_and_durations_are_written() -> None:
    assert format_date(date(2026, 9, 3)) == "3 September 2026"
    moment = datetime(2026, 9, 13, 14, 30, tzinfo=UTC)
    assert format_date(moment) == format_moment(moment) == "13 September 2026, 14:30"
    assert format_moment(moment, MADRID) == "13 September 2026, 16:30"
    assert [format_duration(1, "month"), format_duration(8, "business_hour"), format_duration(30, "day")] == [
        "1 month",
        "8 business hours",
        "30 days",
    ]


@pytest.mark.parametrize(
    ("text", "phrase", "first", "last"),
    [
        ("opened yesterday?", "yesterday", "2026-09-25", "2026-09-25"),
        ("the day before yesterday", "the day before yesterday", "2026-09-24", "2026-09-24"),
        ("today", "today", "2026-09-26", "2026-09-26"),
        ("last Monday", "last Monday", "2026-09-21", "2026-09-21"),
        ("last Saturday", "last Saturday", "2026-09-19", "2026-09-19"),
        ("on Friday morning", "on Friday morning", "2026-09-25", "2026-09-25"),
        ("this week", "this week", "2026-09-21", "2026-09-27"),
        ("last week", "last week", "2026-09-14", "2026-09-20"),
        ("next week", "next week", "2026-09-28", "2026-10-04"),
        ("last month", "last month", "2026-08-01", "2026-08-31"),
        ("this year", "this year", "2026-01-01", "2026-12-31"),
        ("in September", "in September", "2026-09-01", "2026-09-30"),
        ("in October", "in October", "2025-10-01", "2025-10-31"),
        ("in February 2024", "in February 2024", "2024-02-01", "2024-02-29"),
        ("since August", "since August", "2026-08-01", "2026-09-26"),
        ("3 days ago", "3 days ago", "2026-09-23", "2026-09-23"),
        ("two weeks ago", "two weeks ago", "2026-09-12", "2026-09-12"),
        ("a month ago", "a month ago", "2026-08-26", "2026-08-26"),
        ("in the last 30 days", "in the last 30 days", "2026-08-27", "2026-09-26"),
        ("ayer", "ayer", "2026-09-25", "2026-09-25"),
        ("anteayer", "anteayer", "2026-09-24", "2026-09-24"),
        ("hoy", "hoy", "2026-09-26", "2026-09-26"),
        ("la semana pasada", "la semana pasada", "2026-09-14", "2026-09-20"),
        ("el mes pasado", "el mes pasado", "2026-08-01", "2026-08-31"),
        ("el lunes pasado", "el lunes pasado", "2026-09-21", "2026-09-21"),
        ("hace dos días", "hace dos días", "2026-09-24", "2026-09-24"),
        ("en septiembre de 2025", "en septiembre de 2025", "2025-09-01", "2025-09-30"),
        ("los últimos 7 días", "los últimos 7 días", "2026-09-19", "2026-09-26"),
        ("mañana", "mañana", "2026-09-27", "2026-09-27"),
    ],
)
def test_relative_dates(text: str, phrase: str, first: str, last: str) -> None:
    assert relative_date(text, TODAY) == ((phrase, date.fromisoformat(first), date.fromisoformat(last)),)


@pytest.mark.parametrize(
    "text",
    [
        "this may be late",
        "the last day counts",
        "the next day",
        "por la mañana",
        "on 14 August",
        "in May 10 people came",
        "yesterdays",
        "a week",
        "30 days",
    ],
)
def test_what_is_no_relative_date(text: str) -> None:
    assert relative_date(text, TODAY) == ()


def test_relative_dates_come_in_order() -> None:
    found = relative_date("opened last week, asked yesterday", TODAY)
    assert [phrase for phrase, _, _ in found] == ["last week", "yesterday"]


@given(st.dates(), st.sampled_from(["last year", "next month", "999 years ago", "next week", "since May"]))
def test_relative_dates_never_leave_the_calendar(today: date, text: str) -> None:
    for _, first, last in relative_date(text, today):
        assert first <= last
