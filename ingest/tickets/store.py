"""The ticket table: built from settings, written by imports, read through an engine that cannot write."""

from __future__ import annotations

import difflib
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, assert_never
from urllib.parse import quote
from zoneinfo import ZoneInfo

from sqlalchemy import (
    JSON,
    URL,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Engine,
    MetaData,
    NullPool,
    RowMapping,
    String,
    Table,
    Text,
    and_,
    bindparam,
    case,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    not_,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.schema import CreateColumn

from ingest.atoms import fold, words
from ingest.config import CalendarSettings, TicketSettings
from ingest.errors import ConfigError, TwohopError
from ingest.tickets.guess import FIELDS, TIMES, describe
from ingest.tickets.mapping import SECTIONS, Stored, effective, lacking, learned, mapping_of
from ingest.tickets.numbers import Mention, Numbers
from ingest.tickets.rows import Record, columns_of, decode, records
from ingest.tickets.table import Skipped, read
from ingest.types import EMPTY, Ticket

Order = Literal["newest", "oldest", "updated", "priority"]
Values = str | Sequence[str] | None
"""One value of a field, or several."""
COUNTED = ("customer", "status", "priority", "assignee")
"""The fixed fields that can be counted by; every facet can, too."""

_MOST = 50
_BATCH = 500
_WAIT_SECONDS = 30
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


class AmbiguousName(TwohopError):
    """A name fits several customers or assignees; the text names them."""


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

    def __post_init__(self) -> None:
        """Refuse a limit outside 1 to 50, and days of nothing."""
        if not 1 <= self.limit <= _MOST:
            raise TwohopError(f"limit {self.limit!r} is not between 1 and {_MOST}")
        if (self.has_from or self.has_to) and not self.has:
            raise TwohopError("has_from and has_to are the days of an action; name it under has")


@dataclass(frozen=True, slots=True)
class TicketPage:
    """The first tickets that match, how many match, and counts if they were asked for."""

    tickets: tuple[Ticket, ...] = ()
    total: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Value to number, most first; the empty value stands for tickets without one."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    file: Path
    added: int
    changed: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    """Line number and why, in the file's order."""
    guessed: TicketSettings | None
    """What the file's columns were taken for, where the settings do not say."""
    seconds: float
    notes: tuple[str, ...] = ()
    """Assumptions worth a look."""

    @property
    def failed(self) -> bool:
        """Tell whether the file has rows and none of them is a ticket."""
        return bool(self.skipped) and not self.added + self.changed + self.unchanged

    def summary(self) -> str:
        """Write the report as text lines."""
        lines = [
            f"{self.file.name}: {self.added} tickets added, {self.changed} changed, "
            f"{self.unchanged} unchanged, {len(self.skipped)} rows skipped ({self.seconds:.1f} s)"
        ]
        lines += [f"  line {line}: {reason}" for line, reason in self.skipped]
        if self.failed:
            lines.append(
                "  no row is a ticket: nothing was imported; mend the file or [tickets] in twohop.toml"
            )
        lines += [f"  note: {note}" for note in self.notes]
        if self.guessed is not None:
            lines.append("  the columns were taken for (mend a wrong guess under [tickets] in twohop.toml):")
            lines += [f"    {line}" for line in describe(self.guessed)]
        return "\n".join(lines)


class _Shape:
    """One version of the settings with the table and the spellings that follow from it."""

    def __init__(self, version: str, settings: TicketSettings) -> None:
        _refuse_contradictions(settings)
        self.version = version
        self.settings = settings
        self.numbers = Numbers(settings.prefixes, settings.number_pattern)
        self.names = {
            (section, name): column
            for section in SECTIONS
            for name, column in _column_names(section, getattr(settings, section)).items()
        }

        def words_column(name: str) -> Column[str]:
            return Column(name, Text, nullable=False, server_default="")

        self.table = Table(
            "tickets",
            MetaData(),
            Column("number", String(200), primary_key=True),
            *(words_column(name) for name in FIELDS if name not in TIMES and name != "number"),
            Column("opened_at", DateTime),
            Column("updated_at", DateTime),
            Column("imported_at", DateTime),
            words_column("folded"),
            *(words_column(column) for (section, _), column in self.names.items() if section == "facets"),
            *(
                Column(column, String(40))
                for (section, _), column in self.names.items()
                if section != "facets"
            ),
            Column("personal", JSON),
        )
        self.public = tuple(column for column in self.table.c if column.name not in ("personal", "folded"))

    def of(self, section: str) -> dict[str, str]:
        """Return the columns of a section by the names in the settings."""
        return {name: column for (named, name), column in self.names.items() if named == section}

    def facet(self, name: str) -> str:
        """Return a facet's column."""
        facets = self.of("facets")
        wanted = words(name.replace("_", " "))
        for known, column in facets.items():
            if known == name or words(known.replace("_", " ")) == wanted:
                return column
        raise TwohopError(
            f"there is no facet {name!r}; the facets are {', '.join(facets) or 'not known yet'}"
        )

    def moment(self, name: str) -> Column[Any] | None:
        """Return the column of a declared action or event, None when there is none of that name."""
        wanted = words(name.replace("_", " "))
        for (section, known), column in self.names.items():
            if section != "facets" and words(known.replace("_", " ")) == wanted:
                return self.table.c[column]
        return self.table.c.opened_at if wanted == ("opening",) else None

    def field(self, name: str) -> Column[Any]:
        """Return the column of a fixed field or facet that a ticket may lack."""
        if name in COUNTED:
            return self.table.c[name]
        try:
            return self.table.c[self.facet(name)]
        except TwohopError:
            moments = [known for section, known in self.names if section != "facets"]
            raise TwohopError(
                f"there is no action, event or field {name!r}; there are "
                f"{', '.join((*moments, *COUNTED, *self.of('facets')))}"
            ) from None

    def countable(self, name: str) -> str:
        """Return the column to count by."""
        if name in COUNTED:
            return name
        if name in self.of("facets"):
            return self.names["facets", name]
        raise TwohopError(f"cannot count by {name!r}; count by {', '.join((*COUNTED, *self.of('facets')))}")


@dataclass(frozen=True, slots=True)
class _Known:
    """The names that the tickets know, in one version of the table."""

    version: str
    values: Mapping[str, tuple[str, ...]]
    customers: tuple[str, ...]
    assignees: tuple[str, ...]


_META = Table(
    "ticket_meta",
    MetaData(),
    Column("key", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)


class TicketStore:
    """The tickets of a desk.

    Empty sections of the settings are guessed from the imported files; the guess is kept in the database, so
    that every process reads the table alike. Who may read tickets is in the settings; others find nothing.
    """

    def __init__(self, url: str, settings: TicketSettings, calendar: CalendarSettings) -> None:
        """Open or create the table; columns that an older one lacks are added.

        Raises:
            ConfigError: the database cannot be used, or the settings contradict themselves.
        """
        self._given = settings
        self._zone = ZoneInfo(calendar.zone)
        self._url = _checked(url)
        self._write, self._read = _engines(self._url)
        self._names: _Known | None = None
        with self._using(self._write) as connection:
            _META.create(connection, checkfirst=True)
            self._shape = self._adopt(connection)
            _prepare(connection, self._shape.table)

    @property
    def settings(self) -> TicketSettings:
        """The effective settings: what is configured, and what was guessed where nothing is."""
        return self._shape.settings

    @property
    def read_engine(self) -> Engine:
        """The engine that questions go through; the database itself refuses to write there."""
        return self._read

    def close(self) -> None:
        """Release the database."""
        self._read.dispose()
        self._write.dispose()

    def describe(self) -> tuple[str, ...]:
        """Say in a few lines what the columns are taken for."""
        with self._reading():
            return describe(self.settings)

    def missing(self) -> tuple[str, ...]:
        """Name each column of the settings that no imported file had; nothing before the first import."""
        with self._reading() as connection:
            meta = _meta(connection)
        return lacking(self._given, _stored(meta)) if "mapping" in meta else ()

    def canonical(self, text: str) -> str | None:
        """Return the number that a text spells (`tck 4812` is 4812), None when it spells none."""
        return self._shape.numbers.canonical(text)

    def mentioned(self, text: str) -> tuple[Mention, ...]:
        """Find the ticket numbers in a text; one that is not explicit counts only if such a ticket exists."""
        return self._shape.numbers.mentioned(text)

    def get(self, number: str, readers: frozenset[str]) -> Ticket | None:
        """Return a ticket, or None: whoever may not read it cannot tell whether it exists."""
        with self._reading() as connection:
            if not self._may_read(readers):
                return None
            table = self._shape.table
            wanted = self.canonical(number) or number
            row = connection.execute(select(table).where(table.c.number == wanted)).mappings().first()
            return self._ticket(self._shape, row) if row is not None else None

    def find(self, filters: TicketFilter, readers: frozenset[str]) -> TicketPage:
        """Find tickets; total and counts are over all that match, personal columns are never among them.

        Raises:
            AmbiguousName: the customer or the assignee could be several.
            TwohopError: a facet, a value or a name that is not known; the text names those that are.
        """
        with self._reading() as connection:
            if not self._may_read(readers):
                return TicketPage()
            shape, known = self._shape, self._known(connection)
            table = shape.table
            where = and_(true(), *self._conditions(shape, known, filters))
            total = connection.execute(select(func.count()).select_from(table).where(where)).scalar_one()
            counts: dict[str, int] = {}
            if filters.count_by is not None:
                column = table.c[shape.countable(filters.count_by)]
                amount = func.count().label("amount")
                grouped = select(column, amount).where(where).group_by(column).order_by(amount.desc(), column)
                counts = {row[0]: row[1] for row in connection.execute(grouped)}
            listed = select(*shape.public).where(where).order_by(*_ordered(table, filters.order, known))
            rows = connection.execute(listed.limit(filters.limit)).mappings()
            return TicketPage(tuple(self._ticket(shape, row) for row in rows), total, counts)

    def values(self) -> Mapping[str, tuple[str, ...]]:
        """Return the values in use of every facet, of `priority` and of `status`."""
        with self._reading() as connection:
            return self._known(connection).values

    def customers(self) -> tuple[str, ...]:
        """Return the customers' names."""
        with self._reading() as connection:
            return self._known(connection).customers

    def assignees(self) -> tuple[str, ...]:
        """Return the names of those who work on tickets."""
        with self._reading() as connection:
            return self._known(connection).assignees

    def as_of(self) -> datetime | None:
        """Return when tickets were last imported."""
        with self._reading() as connection:
            at = _meta(connection).get("imported_at")
            return datetime.fromisoformat(at).astimezone(self._zone) if at else None

    def all_for_index(self, now: datetime) -> Iterator[Ticket]:
        """Yield the tickets to search by similarity, newest first, within the settings' age and number."""
        with self._reading() as connection:
            shape = self._shape
            table, settings = shape.table, shape.settings
            oldest = self._utc(now) - timedelta(days=settings.index_max_age_days)
            opened = func.coalesce(table.c.opened_at, table.c.updated_at, table.c.imported_at)
            query = (
                select(table.c.number).where(opened >= oldest).order_by(opened.desc(), table.c.number.desc())
            )
            numbers = connection.execute(query.limit(settings.index_max_count)).scalars().all()
        for batch in _batches(numbers):
            with self._reading() as connection:
                rows = (
                    connection.execute(select(*shape.public).where(table.c.number.in_(batch)))
                    .mappings()
                    .all()
                )
            found = {row["number"]: row for row in rows}
            yield from (self._ticket(shape, found[number]) for number in batch if number in found)

    def import_csv(self, path: Path, now: datetime) -> ImportReport:
        """Import a ticket file in one transaction; a bad row is named and skipped.

        Importing the same file again changes nothing. Spellings of a value (team, TEAM) become the commonest.

        Raises:
            TicketImportError: the file cannot be read or lacks a configured column; nothing was imported.
        """
        began = time.monotonic()
        content = read(path)
        day_first = self._given.day_first if "day_first" in self._given.model_fields_set else None
        with self._using(self._write) as connection:
            stored = _stored(_meta(connection))
            mapping = mapping_of(path, content, self._given, stored)
            stored = learned(mapping, stored)
            shape = _Shape("", effective(self._given, stored))
            found = records(content, mapping, shape.numbers, self._zone, day_first)
            if not found.good:
                # A file that brings no ticket teaches nothing either.
                skipped = tuple(sorted((*content.skipped, *found.skipped)))
                return ImportReport(path, 0, 0, 0, skipped, None, time.monotonic() - began)
            _prepare(connection, shape.table)
            added, changed = _upsert(connection, shape, found.good, self._utc(now))
            _keep(connection, stored, self._local(now))
            adopted = self._adopt(connection)
        self._shape = adopted
        return ImportReport(
            file=path,
            added=added,
            changed=changed,
            unchanged=len(found.good) - added - changed,
            skipped=tuple(sorted((*content.skipped, *found.skipped))),
            guessed=adopted.settings if _is_guess(adopted.settings, self._given) else None,
            seconds=time.monotonic() - began,
            notes=found.notes,
        )

    @contextmanager
    def _using(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise ConfigError(
                f"the tickets' database {self._url.render_as_string()!r} cannot be used: {error.orig}; "
                "check TICKETS_DATABASE_URL, the file and its disk"
            ) from error

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Read one consistent state with the settings that belong to it: others may have imported."""
        with self._using(self._read) as connection:
            if _meta(connection).get("version", "") != self._shape.version:
                self._shape = self._adopt(connection)
            yield connection

    def _adopt(self, connection: Connection) -> _Shape:
        meta = _meta(connection)
        return _Shape(meta.get("version", ""), effective(self._given, _stored(meta)))

    def _may_read(self, readers: frozenset[str]) -> bool:
        return not readers.isdisjoint(self.settings.readers)

    def _known(self, connection: Connection) -> _Known:
        shape, names = self._shape, self._names
        if names is None or names.version != shape.version:

            def distinct(column: str) -> tuple[str, ...]:
                cell = shape.table.c[column]
                found = connection.execute(select(cell).distinct().where(cell != "")).scalars()
                return tuple(sorted(found, key=lambda value: (fold(value), value)))

            columns = {**shape.of("facets"), "priority": "priority", "status": "status"}
            values = {name: distinct(column) for name, column in columns.items()}
            names = _Known(
                shape.version, MappingProxyType(values), distinct("customer"), distinct("assignee")
            )
            self._names = names
        return names

    def _conditions(
        self, shape: _Shape, known: _Known, filters: TicketFilter
    ) -> Iterator[ColumnElement[bool]]:
        table = shape.table
        fixed: tuple[tuple[str, Values, Values, Sequence[str]], ...] = (
            ("customer", filters.customer, filters.not_customer, known.customers),
            ("assignee", filters.assignee, filters.not_assignee, known.assignees),
            ("status", filters.status, filters.not_status, known.values["status"]),
            ("priority", filters.priority, filters.not_priority, known.values["priority"]),
        )
        for name, wanted, unwanted, options in fixed:
            meant = _named if name in ("customer", "assignee") else _valued
            if wanted:
                yield table.c[name].in_([v for said in _each(wanted) for v in meant(name, said, options)])
            if unwanted:
                yield table.c[name].not_in(
                    [v for said in _each(unwanted) for v in meant(name, said, options)]
                )
        by_column = {column: known.values[name] for name, column in shape.of("facets").items()}
        for facets, keep in ((filters.facets, True), (filters.not_facets, False)):
            for name, values in facets.items():
                column = shape.facet(name)
                meant_values = [v for said in _each(values) for v in _valued(name, said, by_column[column])]
                yield table.c[column].in_(meant_values) if keep else table.c[column].not_in(meant_values)
        for name in _each(filters.has):
            moment = shape.moment(name)
            if moment is None:
                yield shape.field(name) != ""
            else:
                yield moment.is_not(None)
                yield from self._within(moment, filters.has_from, filters.has_to)
        for name in _each(filters.lacks):
            moment = shape.moment(name)
            yield shape.field(name) == "" if moment is None else moment.is_(None)
        yield from self._within(table.c.opened_at, filters.opened_from, filters.opened_to)
        yield from self._within(table.c.updated_at, filters.updated_from, filters.updated_to)
        if texts := _each(filters.text):
            yield or_(*(_holds(table.c.folded, text) for text in texts))
        for text in _each(filters.not_text):
            yield not_(_holds(table.c.folded, text))

    def _within(
        self, column: Column[Any], begin: date | datetime | None, end: date | datetime | None
    ) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions of a time between two moments; a day as the end lasts through its whole day."""
        # An action's time is text: a day alone, or a moment in UTC. A moment asked for means its day there.
        text = isinstance(column.type, String)

        def is_at(when: datetime) -> Any:
            return when.replace(tzinfo=UTC).isoformat() if text else when

        alone = func.length(column) == len("2026-09-02")
        if begin is not None:
            after = column >= is_at(self._utc(begin))
            yield (
                case((alone, column >= self._local(begin).date().isoformat()), else_=after) if text else after
            )
        if end is not None:
            until = (
                column <= is_at(self._utc(end))
                if isinstance(end, datetime)
                else column < is_at(self._utc(end + timedelta(days=1)))
            )
            yield case((alone, column <= self._local(end).date().isoformat()), else_=until) if text else until

    def _local(self, when: date | datetime) -> datetime:
        if not isinstance(when, datetime):
            return datetime.combine(when, clock(), self._zone)
        return when.replace(tzinfo=self._zone) if when.tzinfo is None else when.astimezone(self._zone)

    def _utc(self, when: date | datetime) -> datetime:
        """Return the moment as the table keeps it: UTC without a zone."""
        return self._local(when).astimezone(UTC).replace(tzinfo=None)

    def _ticket(self, shape: _Shape, row: RowMapping) -> Ticket:
        def moment(name: str) -> datetime | None:
            value: datetime | None = row[name]
            return value.replace(tzinfo=UTC).astimezone(self._zone) if value else None

        def dates(section: str) -> dict[str, date | datetime]:
            return {name: decode(row[c], self._zone) for name, c in shape.of(section).items() if row[c]}

        opened = moment("opened_at")
        return Ticket(
            number=row["number"],
            customer=row["customer"],
            subject=row["subject"],
            body=row["body"],
            resolution=row["resolution"],
            status=row["status"],
            priority=row["priority"],
            assignee=row["assignee"],
            opened_at=opened,
            updated_at=moment("updated_at"),
            facets={name: row[column] for name, column in shape.of("facets").items() if row[column]},
            events={**dates("events"), **({"opening": opened} if opened else {})},
            actions=dates("actions"),
            personal=row.get("personal") or {},
            readers=frozenset(shape.settings.readers),
            imported_at=moment("imported_at"),
        )


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError(
            f"TICKETS_DATABASE_URL {url!r} is no database URL; write sqlite:///tickets.db"
        ) from error
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError(f"TICKETS_DATABASE_URL names {backend!r}; tickets are kept in sqlite or postgresql")
    if backend == "sqlite" and (parsed.database or ":memory:").startswith((":memory:", "file:")):
        raise ConfigError(f"TICKETS_DATABASE_URL {url!r} names no file; write sqlite:///tickets.db")
    return parsed


def _engines(url: URL) -> tuple[Engine, Engine]:
    """Return the engine that imports write through, and one through which the database refuses to write."""
    if url.get_backend_name() != "sqlite":
        try:
            write = create_engine(url, pool_pre_ping=True)
        except ImportError as error:
            raise ConfigError(f"TICKETS_DATABASE_URL needs the package {error.name!r}; install it") from error
        return write, create_engine(url, pool_pre_ping=True, execution_options={"postgresql_readonly": True})
    path = Path(url.database or "").absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the tickets' folder {str(path.parent)!r} cannot be made: {error.strerror}"
        ) from error
    guarded = URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"})
    options: dict[str, Any] = {"poolclass": NullPool, "connect_args": {"timeout": _WAIT_SECONDS}}
    write, reader = create_engine(url, **options), create_engine(guarded, **options)
    for engine, begin in ((write, "BEGIN IMMEDIATE"), (reader, "BEGIN")):
        event.listen(engine, "connect", _guard if engine is reader else _plain)
        event.listen(engine, "begin", _beginning(begin))
    return write, reader


def _plain(connection: sqlite3.Connection, _record: object) -> None:
    """Leave transactions to the engine: Python's own would not cover a change of the table."""
    connection.isolation_level = None


def _guard(connection: sqlite3.Connection, _record: object) -> None:
    """Refuse to write, and to attach: VACUUM INTO writes another file through an attached one."""
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _beginning(statement: str) -> Callable[[Connection], None]:
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    return begin


def _prepare(connection: Connection, table: Table) -> None:
    """Create the table, or add the columns that it lacks."""
    table.create(connection, checkfirst=True)
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in there:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")


def _refuse_contradictions(settings: TicketSettings) -> None:
    for name in settings.columns:
        if name not in FIELDS:
            raise ConfigError(f"[tickets.columns] has no field {name!r}; the fields are {', '.join(FIELDS)}")
    for name in settings.facets:
        if name in FIELDS:
            raise ConfigError(f"[tickets.facets] {name!r} is a fixed field; map it under [tickets.columns]")
    for section in ("columns", *SECTIONS):
        for name, column in getattr(settings, section).items():
            if column in settings.personal:
                raise ConfigError(
                    f"column {column!r} is personal and cannot be {name!r} of [tickets.{section}] too"
                )


def _column_names(section: str, declared: Mapping[str, str]) -> dict[str, str]:
    """Name the columns of a section so that every database takes them."""
    names: dict[str, str] = {}
    for name in declared:
        column = f"{section[:-1]}_{'_'.join(words(name.replace('_', ' ')))}"[:60]
        if column in names.values():
            raise ConfigError(
                f"[tickets.{section}] {name!r} is written like another name there; rename one of them"
            )
        names[name] = column
    return names


def _is_guess(settings: TicketSettings, given: TicketSettings) -> bool:
    """Tell whether the settings hold more than what was given and fields called by their own names."""
    same = {name: column for name, column in settings.columns.items() if given.columns or name != column}
    return settings.model_copy(update={"columns": same}) != given


def _meta(connection: Connection) -> dict[str, str]:
    return {row.key: row.value for row in connection.execute(select(_META))}


def _stored(meta: Mapping[str, str]) -> Stored:
    kept: dict[str, Any] = json.loads(meta.get("mapping", "{}"))
    for name in ("personal", "prefixes"):
        kept[name] = tuple(kept.get(name, ()))
    return Stored(**kept)


def _keep(connection: Connection, stored: Stored, now: datetime) -> None:
    meta = _meta(connection)
    version = str(int(meta.get("version", "0")) + 1)
    mapping = json.dumps(asdict(stored), ensure_ascii=False)
    for key, value in (("version", version), ("mapping", mapping), ("imported_at", now.isoformat())):
        if key in meta:
            connection.execute(update(_META).where(_META.c.key == key).values(value=value))
        else:
            connection.execute(insert(_META).values(key=key, value=value))


def _upsert(connection: Connection, shape: _Shape, found: Sequence[Record], now: datetime) -> tuple[int, int]:
    """Write what is new or differs; return how many tickets were added and changed."""
    table = shape.table
    rows = [columns_of(record, shape.names) for record in found]
    existing: dict[str, RowMapping] = {}
    for batch in _batches([row["number"] for row in rows]):
        for old in connection.execute(select(table).where(table.c.number.in_(batch))).mappings():
            existing[old["number"]] = old
    _share_spellings(connection, shape, rows, existing)
    added, changed = [], []
    for row in rows:
        before = existing.get(row["number"])
        personal = {**((before["personal"] if before else None) or {}), **row["personal"]}
        row["personal"] = {name: value for name, value in personal.items() if value}
        if before is None:
            texts = dict.fromkeys(("subject", "body", "resolution"), "") | row
            added.append({**row, "folded": _folded(texts), "imported_at": now})
        elif any(before[name] != value for name, value in row.items() if name != "personal") or (
            (before["personal"] or {}) != row["personal"]
        ):
            changed.append(
                {**row, "of": row["number"], "folded": _folded({**before, **row}), "imported_at": now}
            )
    if added:
        connection.execute(insert(table), added)
    if changed:
        connection.execute(update(table).where(table.c.number == bindparam("of")), changed)
    return len(added), len(changed)


def _folded(row: Mapping[str, Any]) -> str:
    """Return what a search for words looks through."""
    return fold("\n".join((row["subject"], row["body"], row["resolution"])))


def _share_spellings(
    connection: Connection, shape: _Shape, rows: Sequence[dict[str, Any]], existing: Mapping[str, RowMapping]
) -> None:
    """Give values that differ only in case the commonest spelling, in the new rows and in the table."""
    for name in ("status", "priority", *shape.of("facets").values()):
        column = shape.table.c[name]
        grouped = select(column, func.count()).group_by(column)
        stored: dict[str, int] = {row[0]: row[1] for row in connection.execute(grouped)}
        used = Counter(stored)
        if rows and name in rows[0]:
            used.subtract(Counter(row[name] for row in existing.values()))
            used.update(row[name] for row in rows)
        groups: dict[str, list[str]] = {}
        for value in used:
            groups.setdefault(value.casefold(), []).append(value)
        best: dict[str, str] = {}
        for variants in groups.values():
            chosen = max(
                variants, key=lambda v: (used[v], v in stored, v != v.upper() and v[:1].isupper(), v)
            )
            best |= dict.fromkeys(variants, chosen)
        for row in rows:
            if name in row:
                row[name] = best[row[name]]
        for value in stored:
            if best[value] != value:
                connection.execute(update(shape.table).where(column == value).values({name: best[value]}))


def _batches(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(numbers), _BATCH):
        yield numbers[start : start + _BATCH]


def _ordered(table: Table, order: Order, known: _Known) -> tuple[ColumnElement[Any], ...]:
    newest = (table.c.opened_at.desc().nulls_last(), table.c.number.desc())
    match order:
        case "newest":
            return newest
        case "oldest":
            return (table.c.opened_at.asc().nulls_last(), table.c.number)
        case "updated":
            return (table.c.updated_at.desc().nulls_last(), *newest)
        case "priority":
            ranked = {value: _rank(value) for value in known.values["priority"]}
            first = case(ranked, value=table.c.priority, else_=_LAST) if ranked else table.c.priority
            return (first, *newest)
        case _:
            assert_never(order)


def _rank(priority: str) -> int:
    return min((_RANKS[word] for word in words(priority) if word in _RANKS), default=_LAST - 1)


def _each(values: Values) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) and values else tuple(values or ())


def _holds(column: Column[str], text: str) -> ColumnElement[bool]:
    if len(text) > 2 and text[0] == text[-1] == '"':
        return column.contains(fold(text[1:-1]), autoescape=True)
    said = [word.strip(".,;:!?¿¡\"'()") or word for word in fold(text).split()]
    return and_(true(), *(column.contains(word, autoescape=True) for word in said))


def _valued(name: str, said: str, known: Sequence[str]) -> tuple[str, ...]:
    found = tuple(value for value in known if fold(value) == fold(" ".join(said.split())))
    if not found:
        raise TwohopError(f"no ticket has {name} {said!r}; known are {', '.join(known) or 'none'}")
    return found


def _named(kind: str, said: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the spellings of the one name that is meant: the same words, words in it, or a part of it."""
    wanted = words(said)
    plain = f" {' '.join(wanted)} "
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: fold(name) == fold(said.strip()),
        lambda name: words(name) == wanted,
        lambda name: plain in f" {' '.join(words(name))} ",
        lambda name: set(wanted) <= set(words(name)),
        lambda name: fold(said.strip()) in fold(name),
        lambda name: f" {' '.join(words(name))} " in plain,
    )
    for fits in tests if wanted else tests[:1]:
        found = tuple(name for name in known if fits(name))
        if len({words(name) for name in found}) > 1:
            listed = ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
            raise AmbiguousName(f"{kind} {said!r} could be {listed}; give the full name")
        if found:
            return found
    close = difflib.get_close_matches(fold(said), [fold(name) for name in known], n=3)
    hint = ", ".join(name for name in known if fold(name) in close)
    raise TwohopError(f"no ticket has the {kind} {said!r}" + (f"; close names are {hint}" if hint else ""))
