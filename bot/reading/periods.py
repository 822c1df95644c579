"""The days that a question names: "between 20 and 25 September", "since March", "in 2025", "older than 3 weeks"."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from ingest.atoms import MONTHS, atoms, resolve_date
from ingest.dates import relative_date
from ingest.words import fold


@dataclass(frozen=True, slots=True)
class Span:
    """Some days, both ends included, and where the text says so; None is an open end."""

    first: date | None
    last: date | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Period:
    """A day, month, quarter, year or range as written, without the word before it."""

    first: date
    last: date
    start: int
    end: int
    dated: bool = True
    """Its year is written or follows from today; otherwise it is the latest one."""


def _any(forms: Iterable[str]) -> str:
    return "|".join(sorted(forms, key=len, reverse=True))


_MONTH = _any(MONTHS)
_TO = r"(?:to|until|till|up to|through|thru|a|al|hasta|hasta el|and|y|e|&|[-–—])"
_NTH = r"(?:st|nd|rd|th|º)?"
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_OF_YEAR = rf"(?:,? (?:of |de |del )?{_YEAR}\b)?"
_DAYS = re.compile(
    rf"(?<![\w.,:/-])(?P<a>\d\d?){_NTH} ?{_TO} ?(?:the |el )?(?P<b>\d\d?){_NTH} (?:of |de )?(?P<month>{_MONTH})\b\.?{_OF_YEAR}"
)
_DAYS_BEHIND = re.compile(
    rf"\b(?P<month>{_MONTH})\.? (?P<a>\d\d?){_NTH} ?{_TO} ?(?P<b>\d\d?){_NTH}(?!\w){_OF_YEAR}"
)
_IN_MONTH = re.compile(rf"\b(?P<month>{_MONTH})\b\.?{_OF_YEAR}")
_ISO_MONTH = re.compile(rf"(?<![\w-]){_YEAR}-(?P<m>0[1-9]|1[0-2])(?![\w-])")
_NTHS = {
    form: n
    for n, forms in enumerate(("1 1st first primer", "2 2nd second segundo", "3 3rd third tercer", "4 4th fourth last cuarto"), 1)
    for form in forms.split()
}  # fmt: skip
_QUARTER = re.compile(
    rf"\b(?:q(?P<q>[1-4])|(?P<nth>{_any(_NTHS)}) (?:quarter|trimestre)|(?P<this>this|current|este) (?:quarter|trimestre))"
    rf"\b(?:[ /-]?(?:of |de |del )?{_YEAR}\b)?"
)
_ONE_YEAR = re.compile(rf"(?<![\w#€$£.,-])(?:the year |el ano )?{_YEAR}(?![\w%-]|[.,]\d)")
_LED = re.compile(
    r"(?:\b(?:in|during|since|from|before|after|until|till|by|between|and|to|of|through|last|this|en|desde|de|entre|y|hasta|durante))\s*$"
)
_OLDER = re.compile(r"\b(?:older than|more than|longer than|over|mas de)\s*$")
_NEWER = re.compile(r"\b(?:newer than|younger than|less than|fewer than|within(?: the last)?|menos de)\s*$")
_AGE_BEFORE = re.compile(
    r"\b(?:older than|newer than|younger than|(?:open|opened|waiting|pending|unanswered|unresolved|untouched|abiert[oa]s?) "
    r"(?:for |since |desde hace )?(?:more than|longer than|over|mas de))\s*$"
)
_AGE_BEHIND = re.compile(r"\s*(?:old|ago|de antiguedad)\b")

_OPS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (op, re.compile(rf"(?:^|(?<=[^\w]))(?:{forms})(?: (?:the|on|in|el|la|al?))?\s*$"))
    for op, forms in (
        ("since", r"since|starting(?: from| on)?|beginning|as of|on or after|not before|no earlier than|not earlier than|desde|a partir de(?:l)?"),
        ("until", r"until|till|up to|up until|through|by|no later than|not later than|not after|on or before|hasta"),
        ("after", r"after|later than|newer than|tras|despues de(?:l)?|posteriores a(?:l)?"),
        ("before", r"before|prior to|earlier than|older than|more than|antes de(?:l)?|anteriores a(?:l)?"),
        ("from", r"from"),
        ("in", r"between|entre|in|on|during|throughout|over|within|of|for|dated|en|durante|de|del|el"),
    )
)  # fmt: skip


def spans(text: str, today: date) -> tuple[Span, ...]:
    """Return the days that a text names, in order; days without a year are the latest ones that began by `today`."""
    folded = fold(text)
    found = [
        *_ages(folded, text, today),
        *(_worded(period, folded) for period in _joined(folded, text, today)),
    ]
    found.sort(key=lambda span: span.start)
    merged: list[Span] = []
    for span in found:
        before = merged[-1] if merged else None
        if before and before.last is None and span.first is None and before.first and span.last:
            merged[-1] = Span(before.first, span.last, before.start, span.end)
        elif before and before.first is None and span.last is None and before.last and span.first:
            merged[-1] = Span(span.first, before.last, before.start, span.end)
        else:
            merged.append(span)
    return tuple(merged)


def _worded(period: _Period, folded: str) -> Span:
    """Open or close a period by the words around it: since, until, before, after."""
    start, end = period.start, period.end
    one_day = period.first == period.last
    op = "in"
    # "Before between the 14th and the 20th" is what is left when "last week" is written out.
    for _ in range(2):
        for name, pattern in _OPS:
            if match := pattern.search(folded[:start]):
                start = match.start()
                op = name if op in ("in", "from") else op
                break
        else:
            break
    if behind := re.compile(r"\s*(?:onwards?|or later|and later|en adelante)\b").match(folded, end):
        end, op = behind.end(), "since"
    if op == "since" or (op == "from" and one_day):
        return Span(period.first, None, start, end)
    if op == "after":
        return Span(period.last + timedelta(days=1), None, start, end)
    if op == "before":
        return Span(None, period.first - timedelta(days=1), start, end)
    if op == "until":
        return Span(None, period.last, start, end)
    return Span(period.first, period.last, start, end)


def _joined(folded: str, text: str, today: date) -> Iterator[_Period]:
    """Yield the periods, two of them joined where the text names both ends of one."""
    found = sorted(_periods(folded, text, today), key=lambda period: period.start)
    while found:
        one = found.pop(0)
        if found:
            between = folded[one.end : found[0].start].strip()
            between = re.sub(r" (?:the|el|on|in|de|del)$", "", between)
            opened = re.search(
                r"\b(?:between|entre|from|desde|del?)(?: (?:the|el))?\s*$", folded[: one.start]
            )
            pair = _aligned(one, found[0])
            touching = pair[0].last + timedelta(days=1) == pair[1].first
            both = between in ("and", "y", "e", "&") and (opened or touching)
            if both or (between not in ("and", "y", "e", "&") and re.fullmatch(_TO, between)):
                found.pop(0)
                first, last = pair
                one = _Period(min(first.first, last.first), max(first.last, last.last), one.start, last.end)
        yield one


def _aligned(one: _Period, other: _Period) -> tuple[_Period, _Period]:
    """Give the end without a year the year that fits the other end."""
    if not one.dated and other.dated:
        one = _in_year(one, other.last.year)
        return (_in_year(one, one.first.year - 1) if one.first > other.last else one), other
    if one.first > other.last and not other.dated:
        other = _in_year(other, one.first.year)
        return one, (_in_year(other, other.first.year + 1) if one.first > other.last else other)
    return one, other


def _in_year(period: _Period, year: int) -> _Period:
    def moved(day: date) -> date:
        return day.replace(year=year, day=min(day.day, calendar.monthrange(year, day.month)[1]))

    return replace(period, first=moved(period.first), last=moved(period.last))


def _periods(folded: str, text: str, today: date) -> Iterator[_Period]:
    taken = bytearray(len(folded))
    for period in _candidates(folded, text, today):
        if not any(taken[period.start : period.end]):
            taken[period.start : period.end] = b"\x01" * (period.end - period.start)
            yield period


def _candidates(folded: str, text: str, today: date) -> Iterator[_Period]:
    """Yield every reading of a place, the longest kinds first."""
    for pattern in (_DAYS, _DAYS_BEHIND):
        for match in pattern.finditer(folded):
            days = [_day(match, name, today) for name in ("a", "b")]
            if days[0] and days[1]:
                first = days[0] if days[0] <= days[1] else days[0].replace(year=days[1].year)
                yield _Period(first, days[1], *match.span(), dated=bool(match["y"]))
    for atom in atoms(text):
        if atom.kind == "date" and (day := resolve_date(atom, today)):
            yield _Period(day, day, atom.start, atom.end, dated=not atom.value.startswith("--"))
    for match in _QUARTER.finditer(folded):
        number = int(match["q"] or _NTHS.get(match["nth"] or "", (today.month + 2) // 3))
        year = int(match["y"] or today.year)
        if match["nth"] == "last" and not match["y"]:
            year, number = divmod(today.year * 4 + (today.month - 1) // 3 - 1, 4)
            number += 1
        elif not match["y"] and date(year, 3 * number - 2, 1) > today:
            year -= 1
        yield _Period(date(year, 3 * number - 2, 1), _month_end(year, 3 * number), *match.span())
    at = 0
    for phrase, first, last in relative_date(text, today):
        start = text.find(phrase, at)
        at = start + len(phrase)
        # The word in front says what the period means; it is read with the others.
        lead = re.match(r"(?:in|during|since|on|en|desde|durante|over) (?:the )?", fold(phrase))
        month = re.search(rf"\b(?:{_MONTH})\b", fold(phrase))
        if not month:
            yield _Period(first, last, start + (lead.end() if lead else 0), at)
    for match in _ISO_MONTH.finditer(folded):
        year, month_number = int(match["y"]), int(match["m"])
        yield _Period(date(year, month_number, 1), _month_end(year, month_number), *match.span())
    for match in _IN_MONTH.finditer(folded):
        number = MONTHS[match["month"]]
        led = _LED.search(folded[: match.start()])
        if not match["y"] and (len(match["month"]) < 4 or match["month"] == "march") and not led:
            continue
        year = int(match["y"] or today.year - (number > today.month))
        yield _Period(date(year, number, 1), _month_end(year, number), *match.span(), dated=bool(match["y"]))
    for match in _ONE_YEAR.finditer(folded):
        year = int(match["y"])
        alone = not re.match(r"\s*\w", folded[match.end() :])
        if (alone or _LED.search(folded[: match.start()])) and 2000 <= year <= today.year + 1:
            yield _Period(date(year, 1, 1), date(year, 12, 31), *match.span())


def _ages(folded: str, text: str, today: date) -> Iterator[Span]:
    """Yield "older than 3 days" and its kin; hours are no days."""
    for atom in atoms(text):
        amount, _, unit = atom.value.partition(" ")
        if atom.kind != "duration" or not amount.isdigit() or unit not in ("day", "month", "year"):
            continue
        front, behind = folded[: atom.start], _AGE_BEHIND.match(folded, atom.end)
        if not behind and not _AGE_BEFORE.search(front):
            continue
        cut = _back(today, int(amount), unit)
        end = behind.end() if behind else atom.end
        if match := _OLDER.search(front):
            yield Span(None, cut - timedelta(days=1), match.start(), end)
        elif match := _NEWER.search(front):
            yield Span(cut, None, match.start(), end)


def _back(today: date, amount: int, unit: str) -> date:
    if unit == "day":
        return today - timedelta(days=amount)
    year, month = divmod(today.year * 12 + today.month - 1 - amount * (12 if unit == "year" else 1), 12)
    return date(year, month + 1, min(today.day, calendar.monthrange(year, month + 1)[1]))


def _day(match: re.Match[str], name: str, today: date) -> date | None:
    month, year = MONTHS[match["month"]], match["y"]
    try:
        if year:
            return date(int(year), month, int(match[name]))
        day = date(today.year, month, int(match[name]))
        return day if day <= today else day.replace(year=today.year - 1)
    except ValueError:
        return None


def _month_end(year: int, month: int) -> date:
    return date(year, month, calendar.monthrange(year, month)[1])
