"""Which tickets to find: a filter, and the conditions and the order that it becomes over the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from typing import Any, Literal, assert_never
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, FromClause, String, and_, case, func, not_, or_, select, true

from ingest.errors import TwohopError
from ingest.tickets.names import Known, named, valued
from ingest.tickets.shape import Shape
from ingest.types import EMPTY, Ticket
from ingest.words import fold, words

Order = Literal["newest", "oldest", "updated", "priority"]
Values = str | Sequence[str] | None
"""One value of a field, or several."""

_MOST = 50
_LAST = 9
_RANKS: Mapping[str, int] = {
    word: rank
    for rank, names in enumerate(
        (
            "p0 sev0 critical critica critico blocker emergency emergencia",
            "p1 sev1 1 urgent urgente highest maxima",
            "p2 sev2 2 high alta alto",
            "p3 sev3 3 normal medium media medio moderate standard",
            "p4 sev4 4 low baja bajo minor",
            "p5 sev5 5 lowest trivial minima none",
        )
    )
    for word in names.split()
}


@dataclass(frozen=True, slots=True)
class TicketFilter:
    """Which tickets to find; days are the desk's and inclusive, case and accents of names do not matter.

    Several values of one field mean any of them; those under `not_` are left out, all of them.
    """

    customer: Values = None
    status: Values = None
    priority: Values = None
    assignee: Values = None
    facets: Mapping[str, str | Sequence[str]] = field(default_factory=lambda: EMPTY)
    not_customer: Values = None
    not_status: Values = None
    not_priority: Values = None
    not_assignee: Values = None
    not_facets: Mapping[str, str | Sequence[str]] = field(default_factory=lambda: EMPTY)
    has: Values = None
    """Declared actions or events that took place, or fields that are filled; all of them."""
    lacks: Values = None
    """Declared actions or events that did not take place, or fields that are empty; all of them."""
    has_from: date | datetime | None = None
    """With `has_to`: when each action or event under `has` took place."""
    has_to: date | datetime | None = None
    opened_from: date | datetime | None = None
    opened_to: date | datetime | None = None
    updated_from: date | datetime | None = None
    updated_to: date | datetime | None = None
    text: Values = None
    """Words that must all occur in subject, body or resolution, also inside longer words; of several texts, one.

    In double quotes they must stand side by side.
    """
    not_text: Values = None
    order: Order = "newest"
    limit: int = 10
    """1 to 50."""
    count_by: str | None = None
    """A facet, or customer, status, priority or assignee."""
    at_least: int | None = None
    """With `at_most`: how many matching tickets a value of `count_by` must have to be counted; 1 or more."""
    at_most: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit outside 1 to 50, and days or numbers of nothing."""
        if not 1 <= self.limit <= _MOST:
            raise TwohopError(f"limit {self.limit!r} is not between 1 and {_MOST}")
        if (self.at_least or self.at_most) and not self.count_by:
            raise TwohopError(
                "at_least and at_most are numbers of tickets by a field; name it under count_by"
            )
        if (self.has_from or self.has_to) and not self.has:
            raise TwohopError("has_from and has_to are the days of an action; name it under has")


@dataclass(frozen=True, slots=True)
class TicketPage:
    """The first tickets that match, how many match, and counts if they were asked for."""

    tickets: tuple[Ticket, ...] = ()
    total: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Value to number, most first; the empty value stands for tickets without one."""


def conditions(
    filters: TicketFilter, shape: Shape, known: Known, zone: ZoneInfo
) -> Iterator[ColumnElement[bool]]:
    """Yield what a row must fulfil; raises TwohopError for names and values that no ticket has."""
    stated = tuple(_stated(filters, shape, known, zone))
    yield from stated
    if filters.count_by and (filters.at_least or filters.at_most):
        column = shape.rows.c[shape.countable(filters.count_by)]
        many = select(column).where(and_(column != "", *stated)).group_by(column)
        if filters.at_least:
            many = many.having(func.count() >= filters.at_least)
        if filters.at_most:
            many = many.having(func.count() <= filters.at_most)
        yield column.in_(many)


def _stated(
    filters: TicketFilter, shape: Shape, known: Known, zone: ZoneInfo
) -> Iterator[ColumnElement[bool]]:
    rows = shape.rows
    fixed: tuple[tuple[str, Values, Values, Sequence[str]], ...] = (
        ("customer", filters.customer, filters.not_customer, known.customers),
        ("assignee", filters.assignee, filters.not_assignee, known.assignees),
        ("status", filters.status, filters.not_status, known.values["status"]),
        ("priority", filters.priority, filters.not_priority, known.values["priority"]),
    )
    for name, wanted, unwanted, options in fixed:
        meant = named if name in ("customer", "assignee") else valued
        if wanted:
            yield rows.c[name].in_([v for said in _each(wanted) for v in meant(name, said, options)])
        if unwanted:
            yield rows.c[name].not_in([v for said in _each(unwanted) for v in meant(name, said, options)])
    by_column = {column: known.values[name] for name, column in shape.of("facets").items()}
    for facets, keep in ((filters.facets, True), (filters.not_facets, False)):
        for name, values in facets.items():
            column = shape.facet(name)
            meant_values = [v for said in _each(values) for v in valued(name, said, by_column[column])]
            yield rows.c[column].in_(meant_values) if keep else rows.c[column].not_in(meant_values)
    for name in _each(filters.has):
        moment = shape.moment(name)
        if moment is None:
            yield shape.field(name) != ""
        else:
            yield moment.is_not(None)
            yield from _within(moment, filters.has_from, filters.has_to, zone)
    for name in _each(filters.lacks):
        moment = shape.moment(name)
        yield shape.field(name) == "" if moment is None else moment.is_(None)
    yield from _within(rows.c.opened_at, filters.opened_from, filters.opened_to, zone)
    yield from _within(rows.c.updated_at, filters.updated_from, filters.updated_to, zone)
    if texts := _each(filters.text):
        yield or_(*(_holds(rows.c.folded, text) for text in texts))
    for text in _each(filters.not_text):
        yield not_(_holds(rows.c.folded, text))


def _within(
    column: ColumnElement[Any], begin: date | datetime | None, end: date | datetime | None, zone: ZoneInfo
) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of a time between two moments; a day as the end lasts through its whole day."""
    # An action's time is text: a day alone, or a moment in UTC. A moment asked for means its day there.
    text = isinstance(column.type, String)

    def is_at(when: datetime) -> Any:
        return when.replace(tzinfo=UTC).isoformat() if text else when

    alone = func.length(column) == len("2026-09-02")
    if begin is not None:
        after = column >= is_at(utc(begin, zone))
        yield (case((alone, column >= local(begin, zone).date().isoformat()), else_=after) if text else after)
    if end is not None:
        until = (
            column <= is_at(utc(end, zone))
            if isinstance(end, datetime)
            else column < is_at(utc(end + timedelta(days=1), zone))
        )
        yield case((alone, column <= local(end, zone).date().isoformat()), else_=until) if text else until


def local(when: date | datetime, zone: ZoneInfo) -> datetime:
    """Return the moment in the desk's zone; a day is its first moment."""
    if not isinstance(when, datetime):
        return datetime.combine(when, clock(), zone)
    return when.replace(tzinfo=zone) if when.tzinfo is None else when.astimezone(zone)


def utc(when: date | datetime, zone: ZoneInfo) -> datetime:
    """Return the moment as the rows have it: UTC without a zone."""
    return local(when, zone).astimezone(UTC).replace(tzinfo=None)


def ordering(rows: FromClause, order: Order, known: Known) -> tuple[ColumnElement[Any], ...]:
    """Return what the rows are sorted by."""
    newest = (rows.c.opened_at.desc().nulls_last(), rows.c.number.desc())
    match order:
        case "newest":
            return newest
        case "oldest":
            return (rows.c.opened_at.asc().nulls_last(), rows.c.number)
        case "updated":
            return (rows.c.updated_at.desc().nulls_last(), *newest)
        case "priority":
            ranked = {value: _rank(value) for value in known.values["priority"]}
            first = case(ranked, value=rows.c.priority, else_=_LAST) if ranked else rows.c.priority
            return (first, *newest)
        case _:
            assert_never(order)


def _rank(priority: str) -> int:
    return min((_RANKS[word] for word in words(priority) if word in _RANKS), default=_LAST - 1)


def _each(values: Values) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) and values else tuple(values or ())


def _holds(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    if len(text) > 2 and text[0] == text[-1] == '"':
        return column.contains(fold(text[1:-1]), autoescape=True)
    said = [word.strip(".,;:!?¿¡\"'()") or word for word in fold(text).split()]
    return and_(true(), *(column.contains(word, autoescape=True) for word in said))
