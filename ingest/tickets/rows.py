"""Turns the rows of a ticket file into records of the table, with a reason for each that cannot be one."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import RowMapping

from ingest.config import TicketSettings
from ingest.tickets.guess import FIELDS, TIMES
from ingest.tickets.numbers import Numbers
from ingest.tickets.shape import dated
from ingest.tickets.table import Row, Skipped, Table, Unreadable, order_of, orders, read_date

_TITLE = 80


@dataclass(frozen=True, slots=True)
class Record:
    """One ticket as a file gives it: only what the file has a column for."""

    line: int
    number: str
    fields: Mapping[str, str]
    times: Mapping[str, datetime | None]
    facets: Mapping[str, str]
    events: Mapping[str, date | datetime | None]
    actions: Mapping[str, date | datetime | None]
    personal: Mapping[str, str]
    unread: Mapping[str, str]
    """Each date's name to the reason why it cannot be read, empty where it can."""
    doubtful: Mapping[str, tuple[str, date | datetime]]
    """Each date's name to how it is written and its other reading, where day and month could be exchanged."""

    def says_the_same(self, other: Record) -> bool:
        """Compare everything but the line."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("fields", "times", "facets", "events", "actions", "personal", "unread")
        )


@dataclass(frozen=True, slots=True)
class Records:
    """The tickets of a file, the rows that are none, and what had to be assumed."""

    good: tuple[Record, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Each date that cannot be read, with its line, its column and the reason."""


def records(
    table: Table, mapping: TicketSettings, numbers: Numbers, zone: ZoneInfo, day_first: bool | None
) -> Records:
    """Read every row; the first of two different rows with one number counts.

    A date that cannot be read leaves its ticket without it, and a note with the reason.
    """
    at = {name: place for place, name in enumerate(table.header)}
    times = {name: column for name, column in mapping.columns.items() if name in TIMES}
    names = {name: column for name, column in dated(mapping).items() if column in at}
    columns = set(names.values())
    first, notes = orders({name: table.column(name) for name in table.header if name in columns}, day_first)

    def record(row: Row) -> Record:
        def cell(column: str) -> str:
            return row.cells[at[column]]

        reasons: dict[str, str] = {}
        doubtful: dict[str, tuple[str, date | datetime]] = {}

        def when(column: str) -> date | datetime | None:
            try:
                found = read_date(cell(column), first[column], zone)
            except Unreadable as error:
                reasons[column] = str(error)
                return None
            if order_of([cell(column)]).doubtful and (
                other := read_date(cell(column), not first[column], zone)
            ):
                doubtful[column] = cell(column), other
            return found

        spelled = cell(mapping.columns["number"])
        number = numbers.canonical(spelled)
        if not spelled:
            raise Unreadable(f"no ticket number in {mapping.columns['number']!r}")
        if number is None:
            raise Unreadable(f"{spelled!r} is not a ticket number; the pattern is {mapping.number_pattern}")
        fields = {
            name: cell(column) if name in ("body", "resolution") else _one_line(cell(column))
            for name, column in mapping.columns.items()
            if name in FIELDS and name not in TIMES and name != "number"
        }
        if "subject" not in fields and fields.get("body"):
            fields["subject"] = textwrap.shorten(fields["body"].partition("\n")[0], _TITLE, placeholder="…")
        return Record(
            row.line,
            number,
            fields,
            {name: _moment(when(column), zone) for name, column in times.items()},
            {name: _one_line(cell(column)) for name, column in mapping.facets.items()},
            {name: when(column) for name, column in mapping.events.items()},
            {name: when(column) for name, column in mapping.actions.items()},
            {column: cell(column) for column in mapping.personal if column in at},
            {name: reasons.get(column, "") for name, column in names.items()},
            {name: doubtful[column] for name, column in names.items() if column in doubtful},
        )

    good: dict[str, Record] = {}
    skipped: list[Skipped] = []
    for row in table.rows:
        try:
            read = record(row)
        except Unreadable as error:
            skipped.append((row.line, str(error)))
            continue
        before = good.setdefault(read.number, read)
        if not before.says_the_same(read):
            skipped.append(
                (row.line, f"number {read.number} is on line {before.line} too, with other content")
            )
    unread = tuple(
        f"line {found.line}: {names[name]}: {why}; the ticket was taken without this date, write it like 2026-09-02"
        for found in good.values()
        for name, why in found.unread.items()
        if why
    )
    return Records(tuple(good.values()), tuple(skipped), notes, unread)


def encode(when: date | datetime | None) -> str | None:
    """Write an event's time for the table: a day stays a day, a moment becomes UTC."""
    if when is None:
        return None
    return when.astimezone(UTC).isoformat() if isinstance(when, datetime) else when.isoformat()


def decode(text: str, zone: ZoneInfo) -> date | datetime:
    """Read what `encode` wrote, in the desk's zone."""
    return (
        date.fromisoformat(text)
        if len(text) == len("2026-09-02")
        else datetime.fromisoformat(text).astimezone(zone)
    )


def _moment(when: date | datetime | None, zone: ZoneInfo) -> datetime | None:
    if when is None or isinstance(when, datetime):
        return when
    return datetime.combine(when, time(), zone)


def kept_moment(moment: datetime | None) -> datetime | None:
    """Return a moment as a column of times keeps it, in UTC without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment else None


def exchanged(
    record: Record, before: RowMapping, names: Mapping[tuple[str, str], str], zone: ZoneInfo
) -> str:
    """Say which date of a record was read with day and month the other way round before; empty text for none.

    `before` is the ticket's row of the table, and `names` maps (section, name) to its columns.
    """
    row = columns_of(record, names)
    for name, (cell, other) in record.doubtful.items():
        column = {"opening": "opened_at", "update": "updated_at"}.get(name) or names.get(
            ("events", name), names.get(("actions", name), "")
        )
        kept = kept_moment(_moment(other, zone)) if name in ("opening", "update") else encode(other)
        if before[column] == kept != row[column]:
            was = f"{other.day} {other:%B}"
            # The other way round: what was its month is its day now.
            now = f"{other.month} {date(other.year, other.day, 1):%B}"
            return (
                f"line {record.line}, {name} {cell!r} was read as {was} {other.year} before, and is {now} now"
            )
    return ""


def _one_line(cell: str) -> str:
    return " ".join(cell.split())


def columns_of(record: Record, names: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return a record as values of the table's columns; `names` maps (section, name) to a column."""
    row: dict[str, Any] = {"number": record.number, **record.fields}
    for name, moment in record.times.items():
        row[name] = kept_moment(moment)
    row |= {names["facets", name]: value for name, value in record.facets.items()}
    row |= {names["events", name]: encode(when) for name, when in record.events.items()}
    row |= {names["actions", name]: encode(when) for name, when in record.actions.items()}
    row["personal"] = dict(record.personal)
    row["unread"] = dict(record.unread)
    return row
