"""A list or count of tickets as a person tells it: what is listed, the tickets or numbers, and what it is not narrowed by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from bot.reading.lists import TicketList
from bot.reading.lists.vocabulary import data
from ingest.dates import format_date
from ingest.tickets import TicketPage
from ingest.types import Ticket
from ingest.words import fold, words

_IN_A_ROW = 8
"""Counts up to which they stand in one line."""
_MOST = 20
"""Counts that are shown of more."""


def listing(listed: TicketList, page: TicketPage, label: Callable[[str], str]) -> tuple[str, ...]:
    """Return the lines that tell a list: "2 open tickets of Ortega Hardware:" and one line a ticket.

    `label` writes a ticket's number as the company does.
    """
    counted = str(listed.filters.get("count_by", ""))
    what = described(listed.filters, many=page.total != 1)
    notes = [*_loosely(listed), *_not_narrowed(listed)]
    if not page.total:
        return (f"No {what}.", *notes)
    if counted:
        return (f"{page.total} {what}, by {_plain(counted)}:", *_counts(page.counts), *notes)
    one = isinstance(listed.filters.get("customer"), str)
    lines = (f"- {_line(ticket, label, customer=not one)}" for ticket in page.tickets)
    return (f"{_how_many(listed.filters, page, what)}:", *lines, *notes)


def described(filters: Mapping[str, Any], *, many: bool = True) -> str:
    """Return which tickets some filters mean: "open Team tickets of Ortega Hardware without first response"."""
    kinds = [_or(filters["status"])] if filters.get("status") else []
    kinds += [f"{_or(filters['priority'])} priority"] if filters.get("priority") else []
    kinds += [_flagged(name, value) or _or(value) for name, value in _facets(filters, "facets")]
    kinds += [said for name, v in _facets(filters, "not_facets") if (said := _flagged(name, v, denied=True))]
    clauses = [*_whose(filters), *_not(filters), *_done(filters), *_when(filters), *_said(filters)]
    return " ".join([*kinds, "tickets" if many else "ticket", *clauses])


def _whose(filters: Mapping[str, Any]) -> Iterator[str]:
    for name, led in (("customer", "of"), ("assignee", "assigned to")):
        if value := filters.get(name):
            yield f"{led} {_or(value)}"
        if value := filters.get(f"not_{name}"):
            yield f"not {led} {_or(value)}"


def _not(filters: Mapping[str, Any]) -> Iterator[str]:
    values = [_or(filters[name]) for name in ("not_status", "not_priority") if filters.get(name)]
    values += [_or(v) for name, v in _facets(filters, "not_facets") if not _flagged(name, v)]
    if values:
        yield f"that are not {' or '.join(values)}"


def _done(filters: Mapping[str, Any]) -> Iterator[str]:
    if value := filters.get("has"):
        days = _days(filters, "has")
        yield f"with {_or(value, ' and ')}{' ' if days else ''}{days}"
    if value := filters.get("lacks"):
        yield f"without {_or(value)}"


def _when(filters: Mapping[str, Any]) -> Iterator[str]:
    for name in ("opened", "updated"):
        if days := _days(filters, name):
            yield f"{name} {days}"


def _said(filters: Mapping[str, Any]) -> Iterator[str]:
    for name, led in (("text", "that mention"), ("not_text", "that do not mention")):
        if value := filters.get(name):
            # The settings' other ways of saying the first are not what was asked.
            first = value if isinstance(value, str) else value[0]
            yield f"{led} “{first.strip(chr(34))}”"


def _days(filters: Mapping[str, Any], name: str) -> str:
    first, last = (_day(filters.get(f"{name}_{end}")) for end in ("from", "to"))
    if first and last:
        return f"on {first}" if first == last else f"between {first} and {last}"
    return f"since {first}" if first else f"until {last}" if last else ""


def _day(value: str | date | None) -> str:
    return format_date(date.fromisoformat(value) if isinstance(value, str) else value) if value else ""


def _how_many(filters: Mapping[str, Any], page: TicketPage, what: str) -> str:
    shown = len(page.tickets)
    if shown == page.total and (shown > 1 or "limit" not in filters):
        return f"{page.total} {what}"
    order = {"oldest": "oldest", "updated": "last updated", "priority": "most urgent"}.get(
        str(filters.get("order")), "newest"
    )
    some = f"the {order} {shown}" if shown > 1 else f"the {order} one"
    return f"{page.total} {what}, {some}"


def _line(ticket: Ticket, label: Callable[[str], str], *, customer: bool) -> str:
    moment = ticket.opened
    day = moment.date() if isinstance(moment, datetime) else moment
    opened = f"opened {format_date(day)}" if day else ""
    beside = ", ".join(filter(None, (ticket.customer if customer else "", ticket.status, opened)))
    return f"{label(ticket.number)} {ticket.subject}{f' ({beside})' if beside else ''}"


def _counts(counts: Mapping[str, int]) -> list[str]:
    said = [f"{value or '(none)'} {count}" for value, count in counts.items()]
    if len(said) <= _IN_A_ROW:
        return [f"{', '.join(said)}."]
    more = [f"- and {len(said) - _MOST} more"] if len(said) > _MOST else []
    return [*(f"- {line}" for line in said[:_MOST]), *more]


def _loosely(listed: TicketList) -> list[str]:
    return [f"Read as: {'; '.join(listed.assumed)}."] if listed.assumed else []


def _not_narrowed(listed: TicketList) -> list[str]:
    said = " and ".join(f"“{one}”" for one in listed.not_understood)
    return [f"Not narrowed by {said}: no field of the tickets says so."] if said else []


def _facets(filters: Mapping[str, Any], name: str) -> Iterator[tuple[str, str | Sequence[str]]]:
    yield from filters.get(name, {}).items()


def _flagged(name: str, value: str | Sequence[str], *, denied: bool = False) -> str:
    """Return a facet of yes and no as an adjective: "vip", "non-vip"; empty for other facets."""
    sign = next(
        (sign for sign in ("yes", "no") if isinstance(value, str) and fold(value) in data()[sign]), ""
    )
    bare = " ".join(word for word in words(_plain(name)) if word not in ("is", "has"))
    return f"{'non-' if (sign == 'no') != denied else ''}{bare}" if sign else ""


def _or(values: str | Sequence[str], between: str = " or ") -> str:
    return values if isinstance(values, str) else between.join(values)


def _plain(name: str) -> str:
    return name.replace("_", " ")
