"""Windows and deadlines: days, business days, hours and business hours, on the desk's calendar and in its zone."""

from __future__ import annotations

import calendar as months
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ingest.atoms import MONTHS, NUMBERS, WEEKDAYS
from ingest.config import CalendarSettings
from ingest.types import Unit
from ingest.words import fold

_NAMES = ("", *months.month_name[1:])


@dataclass(frozen=True, slots=True)
class Calendar:
    """The desk's clock: zone, open hours, business days, holidays."""

    zone: ZoneInfo
    opens: time = time(9)
    closes: time = time(17)
    workdays: frozenset[int] = frozenset(range(5))
    """Monday is 0."""
    holidays: frozenset[date] = frozenset()

    @classmethod
    def from_settings(cls, settings: CalendarSettings) -> Calendar:
        """Build it from its settings."""
        return cls(
            ZoneInfo(settings.zone),
            settings.opens,
            settings.closes,
            frozenset(settings.workdays),
            frozenset(settings.holidays),
        )

    def is_business_day(self, day: date) -> bool:
        """Tell whether the desk is open on that day."""
        return day.weekday() in self.workdays and day not in self.holidays

    def local(self, moment: datetime) -> datetime:
        """Return the moment in the desk's zone; a naive one is already in it."""
        return moment.replace(tzinfo=self.zone) if moment.tzinfo is None else moment.astimezone(self.zone)

    def day(self, when: date | datetime) -> date:
        """Return the desk's day of a date or moment."""
        return self.local(when).date() if isinstance(when, datetime) else when

    def instant(self, when: date | datetime) -> datetime:
        """Return the moment in UTC; a date is its first moment in the desk's zone.

        Clock arithmetic belongs into UTC: two moments of one zone are otherwise compared by what the wall clock
        shows, which is wrong on the two days a year when it is changed.
        """
        if isinstance(when, datetime):
            return self.local(when).astimezone(UTC)
        return datetime.combine(when, time(), self.zone).astimezone(UTC)

    def open_hours(self, day: date) -> tuple[datetime, datetime] | None:
        """Return when the desk opens and closes on that day, in UTC; None on a day on which it is closed."""
        if not self.is_business_day(day):
            return None
        opens, closes = (
            datetime.combine(day, at, self.zone).astimezone(UTC) for at in (self.opens, self.closes)
        )
        return opens, closes


@dataclass(frozen=True, slots=True)
class Margin:
    """How far something was from a deadline."""

    amount: int
    """Positive in time, negative too late, in `unit`."""
    unit: str
    """`day`, `minute` or `business_minute`."""
    text: str
    """`11 days before it closed, day 19 of 30`, `on the last day`, `1 business hour 30 minutes to spare`."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a period with its formula; a `date` end lasts through its whole day."""

    start: date | datetime
    amount: int
    unit: Unit
    at: date | datetime
    """A date, or a moment in the desk's zone for hours."""
    formula: str
    """`14 August 2026 + 30 days = 13 September 2026 (day 0 is 14 August, the last day counts)`."""
    calendar: Calendar
    before: bool = False

    def met_by(self, when: date | datetime) -> bool:
        """Tell whether something at `when` is in time; the last day counts."""
        if isinstance(self.at, datetime):
            return self.calendar.instant(when) <= self.calendar.instant(self.at)
        return self.calendar.day(when) <= self.at

    def margin(self, when: date | datetime) -> Margin:
        """Return how early or late `when` is."""
        if isinstance(self.at, datetime):
            return self._margin_of_moment(self.calendar.instant(when), self.calendar.instant(self.at))
        day = self.calendar.day(when)
        left = (self.at - day).days
        gone = (day - self.calendar.day(self.start)).days
        counted = self.unit == "day" and not self.before and left >= 0 <= gone
        nth = f", day {gone} of {self.amount}" if counted else ""
        if left == 0:
            return Margin(0, "day", f"on the last day{nth}")
        return Margin(
            left, "day", f"{_count(abs(left), 'day')} {'before' if left > 0 else 'after'} it closed{nth}"
        )

    def _margin_of_moment(self, moment: datetime, at: datetime) -> Margin:
        early = moment <= at
        first, last = (moment, at) if early else (at, moment)
        business = self.unit == "business_hour"
        span = business_time(first, last, self.calendar) if business else last - first
        minutes = round(span.total_seconds() / 60)
        text = f"{_span(minutes, 'business ' if business else '')} {'to spare' if early else 'late'}"
        return Margin(minutes if early else -minutes, "business_minute" if business else "minute", text)


def deadline(
    start: date | datetime, amount: int, unit: Unit, calendar: Calendar, *, before: bool = False
) -> Deadline:
    """Return when a period that runs from (or, with `before`, up to) `start` ends.

    Day 0 is the day of the event and the last day counts. Days, weeks, months and years end on a date, months on
    the month's last day where it is shorter; business days skip the days on which the desk is closed. Hours end at
    a moment, elapsed whatever the wall clock does; business hours pass inside the open hours only.

    Raises:
        OverflowError: the end is beyond the calendar's years, or the calendar has no business day.
    """
    sign = -1 if before else 1
    day = calendar.day(start)
    at: date | datetime
    match unit:
        case "hour":
            at = calendar.instant(start) + sign * timedelta(hours=amount)
        case "business_hour":
            at = _add_business_time(calendar.instant(start), timedelta(hours=amount), calendar, sign)
        case "day":
            at = day + sign * timedelta(days=amount)
        case "business_day":
            at = _add_business_days(day, amount, calendar, sign)
        case "week":
            at = day + sign * timedelta(weeks=amount)
        case "month":
            at = _add_months(day, sign * amount)
        case "year":
            at = _add_months(day, sign * 12 * amount)
    if isinstance(at, datetime):
        at = at.astimezone(calendar.zone)
        said = format_moment(calendar.local(calendar.instant(start)))
        note = "counted in open hours" if unit == "business_hour" else "every hour counts"
    else:
        said = format_date(day)
        note = f"day 0 is {day.day} {_NAMES[day.month]}, the last day counts"
    formula = f"{said} {'−' if before else '+'} {format_duration(amount, unit)} = {format_date(at)} ({note})"
    return Deadline(start, amount, unit, at, formula, calendar, before)


def business_time(start: date | datetime, end: date | datetime, calendar: Calendar) -> timedelta:
    """Return the open time between two moments; none where the end is not later."""
    first, last = calendar.instant(start), calendar.instant(end)
    total = timedelta()
    day = calendar.day(first)
    while day <= calendar.day(last):
        if hours := calendar.open_hours(day):
            total += max(timedelta(), min(last, hours[1]) - max(first, hours[0]))
        day += timedelta(days=1)
    return total


def _add_business_time(moment: datetime, left: timedelta, calendar: Calendar, sign: int) -> datetime:
    _needs_business_days(calendar)
    day = calendar.day(moment)
    while True:
        if hours := calendar.open_hours(day):
            opens, closes = hours
            here = max(moment, opens) if sign > 0 else min(moment, closes)
            room = max(timedelta(), closes - here if sign > 0 else here - opens)
            # Nothing to count still waits for the next opening; a full day ends at its closing.
            if left <= room and (left or opens <= here <= closes):
                return here + sign * left
            left -= room
        day += timedelta(days=sign)


def _add_business_days(day: date, amount: int, calendar: Calendar, sign: int) -> date:
    _needs_business_days(calendar)
    while amount:
        day += timedelta(days=sign)
        amount -= calendar.is_business_day(day)
    return day


def _needs_business_days(calendar: Calendar) -> None:
    if not calendar.workdays:
        raise OverflowError("the calendar has no business day")


def _add_months(day: date, amount: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + amount, 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError(f"year {year} is beyond the calendar")
    return _day_in(year, month + 1, day.day)


def _day_in(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, months.monthrange(year, month)[1]))


def _count(amount: int, word: str) -> str:
    return f"{amount} {word}{'' if amount == 1 else 's'}"


def _span(minutes: int, kind: str) -> str:
    # Business time has no days: how long one is depends on the desk.
    days, rest = (0, minutes) if kind else divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [_count(days, "day")] if days else []
    parts += [_count(hours, f"{kind}hour")] if hours else []
    parts += [_count(minutes, "minute" if hours else f"{kind}minute")] if minutes or not parts else []
    return " ".join(parts)


def format_date(when: date | datetime) -> str:
    """Write a date as `13 September 2026`, a moment with its time."""
    if isinstance(when, datetime):
        return format_moment(when)
    return f"{when.day} {_NAMES[when.month]} {when.year}"


def format_moment(when: datetime, zone: ZoneInfo | None = None) -> str:
    """Write a moment as `13 September 2026, 16:30`, in `zone` if given."""
    when = when.astimezone(zone) if zone else when
    return f"{format_date(when.date())}, {when:%H:%M}"


def format_duration(amount: int, unit: Unit) -> str:
    """Write a duration as `30 days` or `8 business hours`."""
    return _count(amount, unit.replace("_", " "))


_BACK = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0,
    "hoy": 0, "esta manana": 0, "esta tarde": 0, "esta noche": 0,
    "yesterday": 1, "last night": 1, "ayer": 1, "anoche": 1,
    "the day before yesterday": 2, "day before yesterday": 2, "anteayer": 2, "antes de ayer": 2,
    "tomorrow": -1, "manana": -1, "the day after tomorrow": -2, "day after tomorrow": -2, "pasado manana": -2,
}  # fmt: skip
_SPANS = {
    "day": "day", "days": "day", "dia": "day", "dias": "day",
    "week": "week", "weeks": "week", "semana": "week", "semanas": "week",
    "month": "month", "months": "month", "mes": "month", "meses": "month",
    "year": "year", "years": "year", "ano": "year", "anos": "year",
}  # fmt: skip


def _any(forms: Iterable[str]) -> str:
    return "|".join(sorted(forms, key=len, reverse=True))


_NUMBER = rf"\d{{1,3}}|an?|una?|{_any(NUMBERS)}"
_SPAN = _any(_SPANS)
# "The last day" and "the next day" mean another day's neighbour, not today's.
_WHOLE = _any(form for form, span in _SPANS.items() if span != "day")
_PAST, _NEXT = r"pasad[oa]|anterior", r"que viene|proxim[oa]|siguiente"
_PHRASE = re.compile(
    rf"(?<![\w-])(?:(?P<ago>{_NUMBER}) (?P<ago_span>{_SPAN}) ago"
    rf"|hace (?P<hace>{_NUMBER}) (?P<hace_span>{_SPAN})"
    rf"|(?:in |over |during |en |durante )?(?:the |los |las )?(?:last|past|previous|ultim[oa]s) (?P<run>{_NUMBER}) (?P<run_span>{_SPAN})"
    rf"|(?P<which>this|last|past|previous|next|est[ea]) (?P<span>{_WHOLE})"
    rf"|(?:el|la) (?P<span_es>{_WHOLE}) (?P<which_es>{_PAST}|{_NEXT})"
    rf"|(?:last|on|this|past|el|este) (?P<weekday>{_any(WEEKDAYS)})(?: pasado)?"
    rf"|(?P<at>in|during|since|last|this|en|desde|durante) (?P<month>{_any(MONTHS)})(?:,? (?:of |de |del )?(?P<year>(?:19|20)\d\d))?"
    rf"|(?<!\bla )(?P<single>{_any(_BACK)}))(?: morning| afternoon| evening)?(?!\w)(?! \d{{1,2}}\b)"
)


def relative_date(text: str, today: date) -> tuple[tuple[str, date, date], ...]:
    """Find phrases such as "yesterday", "last week", "in September", "3 days ago", "la semana pasada".

    Returns (phrase as written, first day, last day) in order. Months and weekdays are the latest ones that began
    by `today`; a week begins on Monday.
    """
    return tuple(_found(text, today))


def _found(text: str, today: date) -> Iterator[tuple[str, date, date]]:
    for match in _PHRASE.finditer(fold(text)):
        phrase = text[match.start() : match.end()]
        # "This may be late" is no month.
        if match["at"] in ("this", "last") and match["month"] == "may" and "May" not in phrase:
            continue
        try:
            first, last = _resolved(
                {name: group for name, group in match.groupdict().items() if group}, today
            )
        except (OverflowError, ValueError):  # beyond the calendar's years
            continue
        yield phrase, first, last


def _resolved(said: dict[str, str], today: date) -> tuple[date, date]:
    match said:
        case {"ago": number, "ago_span": span} | {"hace": number, "hace_span": span}:
            day = _back(today, number, span)
            return day, day
        case {"run": number, "run_span": span}:
            return _back(today, number, span), today
        case {"which": which, "span": span} | {"which_es": which, "span_es": span}:
            past = which in ("last", "past", "previous", "pasado", "pasada", "anterior")
            step = 0 if which in ("this", "este", "esta") else -1 if past else 1
            return _whole(today, _SPANS[span], step)
        case {"weekday": weekday}:
            day = today - timedelta(days=(today.weekday() - WEEKDAYS[weekday]) % 7 or 7)
            return day, day
        case {"month": month, "at": at}:
            number_of = MONTHS[month]
            year = int(said["year"]) if "year" in said else today.year - (number_of > today.month)
            first = date(year, number_of, 1)
            until = _day_in(year, number_of, 31)
            return first, max(first, today) if at in ("since", "desde") else until
        case _:
            day = today - timedelta(days=_BACK[said["single"]])
            return day, day


def _back(today: date, number: str, span: str) -> date:
    amount = int(number) if number.isdigit() else NUMBERS.get(number, 1)
    match _SPANS[span]:
        case "month":
            return _add_months(today, -amount)
        case "year":
            return _add_months(today, -12 * amount)
        case unit:
            return today - timedelta(days=amount * (7 if unit == "week" else 1))


def _whole(today: date, span: str, step: int) -> tuple[date, date]:
    """Return the first and last day of today's week, month or year, or of one beside it."""
    match span:
        case "week":
            first = today - timedelta(days=today.weekday() - 7 * step)
            return first, first + timedelta(days=6)
        case "month":
            first = _add_months(today.replace(day=1), step)
            return first, _day_in(first.year, first.month, 31)
        case _:
            return date(today.year + step, 1, 1), date(today.year + step, 12, 31)
