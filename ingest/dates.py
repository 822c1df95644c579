"""Windows and deadlines: days, business days, hours and business hours, on the desk's calendar and in its zone."""

from __future__ import annotations

import calendar as months
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ingest.atoms import MONTHS, WEEKDAYS, fold
from ingest.config import CalendarSettings
from ingest.types import Unit

_NAMES = ("", *months.month_name[1:])


@dataclass(frozen=True, slots=True)
class Calendar:
    """The desk's clock: zone, open hours, business days, holidays."""

    zone: ZoneInfo
    opens: time = time(9)
    closes: time = time(17)
    workdays: frozenset[int] = frozenset(range(5))
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

    def open_spans(self, start: datetime) -> tuple[datetime, datetime]:
        """Return the open hours of the moment's day."""
        day = start.date()
        return datetime.combine(day, self.opens, self.zone), datetime.combine(day, self.closes, self.zone)


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a moment is from a deadline; positive is in time."""

    amount: timedelta
    text: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a period with its formula; a `date` end lasts through its whole day."""

    start: date | datetime
    amount: int
    unit: Unit
    at: date | datetime
    formula: str
    calendar: Calendar
    before: bool = False

    def met_by(self, when: date | datetime) -> bool:
        """Tell whether something at `when` is in time; the last day counts."""
        if not isinstance(self.at, datetime):
            return _day(when, self.calendar) <= self.at
        return _moment(when, self.calendar) <= self.at

    def margin(self, when: date | datetime) -> Margin:
        """Return how early or late `when` is."""
        if not isinstance(self.at, datetime):
            day = _day(when, self.calendar)
            left = (self.at - day).days
            nth = ""
            if self.unit == "day" and not self.before and (gone := (day - _day(self.start, self.calendar)).days) >= 0:
                nth = f", day {gone} of {self.amount}"
            if left == 0:
                return Margin(timedelta(0), f"on the last day{nth}")
            text = f"{_count(abs(left), 'day')} {'before it closed' if left > 0 else 'after it closed'}"
            return Margin(timedelta(days=left), text + nth)
        moment = _moment(when, self.calendar)
        early = moment <= self.at
        first, last = (moment, self.at) if early else (self.at, moment)
        if self.unit == "business_hour":
            span, kind = business_time(first, last, self.calendar), "business "
        else:
            span, kind = last.astimezone(UTC) - first.astimezone(UTC), ""
        text = f"{_span(span, kind)} {'before it was due' if early else 'after it was due'}"
        return Margin(span if early else -span, text)


def deadline(
    start: date | datetime, amount: int, unit: Unit, calendar: Calendar, *, before: bool = False
) -> Deadline:
    """Return when a period that runs from (or up to) `start` ends.

    Day 0 is the day of the event and the last day counts. Days, weeks, months and years end on a date, months at the
    month's last day where it is shorter; business days skip days on which the desk is closed. Hours end at a moment,
    elapsed on the clock of the zone; business hours are counted inside the open hours only. Raises OverflowError
    beyond the calendar's years.
    """
    sign = -1 if before else 1
    at: date | datetime
    if unit in ("hour", "business_hour"):
        moment = _moment(start, calendar)
        if unit == "hour":
            at = (moment.astimezone(UTC) + sign * timedelta(hours=amount)).astimezone(calendar.zone)
        else:
            at = _add_business_time(moment, timedelta(hours=amount), calendar, before=before)
        said = format_moment(moment)
        note = "counted in open hours" if unit == "business_hour" else "counted on the clock"
    else:
        day = _day(start, calendar)
        match unit:
            case "day":
                at = day + sign * timedelta(days=amount)
            case "week":
                at = day + sign * timedelta(weeks=amount)
            case "month":
                at = _add_months(day, sign * amount)
            case "year":
                at = _add_months(day, sign * 12 * amount)
            case "business_day":
                at = _add_business_days(day, amount, calendar, sign)
        said = format_date(day)
        note = f"day 0 is {day.day} {_NAMES[day.month]}, the last day counts"
    formula = f"{said} {'−' if before else '+'} {format_duration(amount, unit)} = {format_date(at)} ({note})"
    return Deadline(start, amount, unit, at, formula, calendar, before)


def business_time(start: datetime, end: datetime, calendar: Calendar) -> timedelta:
    """Return the open time between two moments."""
    start, end = calendar.local(start), calendar.local(end)
    total = timedelta(0)
    day = start
    while day.date() <= end.date():
        opens, closes = calendar.open_spans(day)
        if calendar.is_business_day(day.date()):
            first, last = max(start, opens), min(end, closes)
            if last > first:
                total += last.astimezone(UTC) - first.astimezone(UTC)
        day = datetime.combine(day.date() + timedelta(days=1), time(12), calendar.zone)
    return total


def _add_business_time(moment: datetime, left: timedelta, calendar: Calendar, *, before: bool) -> datetime:
    if not calendar.workdays:
        raise OverflowError("the calendar has no business day")
    step = -1 if before else 1
    while True:
        opens, closes = calendar.open_spans(moment)
        if calendar.is_business_day(moment.date()):
            if before:
                here = min(moment, closes)
                room = max(timedelta(0), here.astimezone(UTC) - opens.astimezone(UTC))
            else:
                here = max(moment, opens)
                room = max(timedelta(0), closes.astimezone(UTC) - here.astimezone(UTC))
            if left <= room:
                return (here.astimezone(UTC) + step * left).astimezone(calendar.zone)
            left -= room
        edge = calendar.closes if before else calendar.opens
        moment = datetime.combine(moment.date() + timedelta(days=step), edge, calendar.zone)


def _add_business_days(day: date, amount: int, calendar: Calendar, sign: int) -> date:
    if not calendar.workdays:
        raise OverflowError("the calendar has no business day")
    while amount:
        day += timedelta(days=sign)
        amount -= calendar.is_business_day(day)
    return day


def _add_months(day: date, amount: int) -> date:
    index = day.year * 12 + day.month - 1 + amount
    year, month = divmod(index, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"year {year} is beyond the calendar")
    return date(year, month + 1, min(day.day, months.monthrange(year, month + 1)[1]))


def _day(when: date | datetime, calendar: Calendar) -> date:
    return calendar.local(when).date() if isinstance(when, datetime) else when


def _moment(when: date | datetime, calendar: Calendar) -> datetime:
    return calendar.local(when) if isinstance(when, datetime) else datetime.combine(when, time(0), calendar.zone)


def _count(amount: int, word: str) -> str:
    return f"{amount} {word}{'' if amount == 1 else 's'}"


def _span(span: timedelta, kind: str) -> str:
    minutes = round(span.total_seconds() / 60)
    days, rest = (0, minutes) if kind else divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [_count(days, "day")] if days else []
    parts += [_count(hours, f"{kind}hour")] if hours else []
    parts += [_count(minutes, f"{kind if not hours else ''}minute")] if minutes or not parts else []
    return " ".join(parts)


def format_date(when: date | datetime) -> str:
    """Write a date as `13 September 2026`, a moment with its time."""
    return format_moment(when) if isinstance(when, datetime) else f"{when.day} {_NAMES[when.month]} {when.year}"


def format_moment(when: datetime) -> str:
    """Write a moment as `13 September 2026, 16:30`."""
    return f"{when.day} {_NAMES[when.month]} {when.year}, {when:%H:%M}"


def format_duration(amount: int, unit: Unit) -> str:
    """Write a duration as `30 days` or `8 business hours`."""
    return _count(amount, unit.replace("_", " "))


_AGO = re.compile(r"\b(\d{1,3}) (day|week|month)s? ago\b|\bhace (\d{1,3}) (dia|semana|mes)(?:e?s)?\b")
_WORDS = re.compile(
    r"\b(?:(?P<single>the day before yesterday|yesterday|today|anteayer|ayer|hoy)"
    r"|(?P<span>(?:this|last|past|previous) (?:week|month|year)|(?:esta|la) semana(?: pasada)?|(?:este|el) mes(?: pasado)?)"
    rf"|(?:last|on|el|this|el pasado) (?P<weekday>{'|'.join(WEEKDAYS)})"
    rf"|(?:in|during|en|since|this|last) (?P<month>{'|'.join(MONTHS)})(?: (?:of |de )?(?P<year>\d{{4}}))?)\b(?! \d)"
)


def relative_date(text: str, today: date) -> tuple[tuple[str, date, date], ...]:
    """Find phrases such as "yesterday", "last week", "in September", "3 days ago"; return (phrase, first, last day)."""
    folded = fold(text)
    found: list[tuple[int, str, date, date]] = []
    for match in _AGO.finditer(folded):
        amount = int(match[1] or match[3])
        unit = match[2] or match[4]
        day = (
            _add_months(today, -amount)
            if unit in ("month", "mes")
            else today - timedelta(days=amount * (7 if unit in ("week", "semana") else 1))
        )
        found.append((match.start(), text[match.start() : match.end()], day, day))
    for match in _WORDS.finditer(folded):
        start, end = _resolved(match, today)
        found.append((match.start(), text[match.start() : match.end()], start, end))
    return tuple((phrase, start, end) for _, phrase, start, end in sorted(found))


def _resolved(match: re.Match[str], today: date) -> tuple[date, date]:
    if single := match["single"]:
        back = {"today": 0, "hoy": 0, "yesterday": 1, "ayer": 1}.get(single, 2)
        return today - timedelta(days=back), today - timedelta(days=back)
    if weekday := match["weekday"]:
        back = (today.weekday() - WEEKDAYS[weekday]) % 7 or 7
        return today - timedelta(days=back), today - timedelta(days=back)
    if month := match["month"]:
        number = MONTHS[month]
        year = int(match["year"]) if match["year"] else today.year - (number > today.month)
        return date(year, number, 1), date(year, number, months.monthrange(year, number)[1])
    span = match["span"]
    past = bool(re.match(r"last|past|previous", span)) or "pasad" in span
    if "week" in span or "semana" in span:
        start = today - timedelta(days=today.weekday() + 7 * past)
        return start, start + timedelta(days=6)
    if "year" in span:
        return date(today.year - past, 1, 1), date(today.year - past, 12, 31)
    first = _add_months(today.replace(day=1), -past)
    return first, date(first.year, first.month, months.monthrange(first.year, first.month)[1])
