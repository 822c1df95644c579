"""The tickets of a desk, wherever they are kept: looked up by number, listed, counted, and told to the index."""

from __future__ import annotations

import logging
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from math import inf
from pathlib import Path
from types import MappingProxyType
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, RowMapping, and_, func, null, or_, select, true
from sqlalchemy.exc import SQLAlchemyError

from ingest.config import CalendarSettings, TicketSettings
from ingest.database import Outage, database_url, shown
from ingest.errors import DatabaseAway, TicketImportError, TicketsUnavailable, TwohopError
from ingest.sources import Failed
from ingest.tickets import engines
from ingest.tickets.filter import TicketFilter, TicketPage, conditions, ordering, utc
from ingest.tickets.guess import describe
from ingest.tickets.imported import Imported, ImportReport, batches
from ingest.tickets.mapped import Mapped
from ingest.tickets.names import Known, ordered
from ingest.tickets.numbers import Mention
from ingest.tickets.personal import by_values
from ingest.tickets.rows import decode
from ingest.tickets.shape import STRANGE, Shape, dated
from ingest.tickets.table import CONTROL
from ingest.types import Ticket

_NAMES_SECONDS = 60.0
_SAMPLE = 200
"""Values that are looked at to tell what a column holds."""

_log = logging.getLogger(__name__)


class TicketStore:
    """The tickets of a desk: our own table of imported files, or a company's own table or view.

    Who may read tickets is in the settings; others find nothing. Reading raises TicketsUnavailable where the database
    does not answer; the names that the tickets know are then the ones read last.
    """

    def __init__(
        self,
        url: str,
        settings: TicketSettings,
        calendar: CalendarSettings,
        clock: Callable[[], float] = time.monotonic,
        *,
        may_be_away: bool = False,
    ) -> None:
        """Open what `url` names: the company's database where the settings name its table, else a file of ours.

        Names of a company's own database are read again a minute after they were read, by `clock` (seconds). One that
        `may_be_away` and is stays so: `away` says why, nothing is known of it and reading raises TicketsUnavailable.

        Raises:
            ConfigError: the database cannot be used, or the settings contradict it or themselves.
            DatabaseAway: it does not answer, and may not be away.
        """
        self.away = ""
        """Why the database did not answer at the start; empty where it did."""
        self._zone = ZoneInfo(calendar.zone)
        self._clock = clock
        self._url = database_url(url, "TICKETS_DATABASE_URL")
        self._outage = Outage(_log, f"the tickets' database {shown(self._url)} cannot be read")
        self._names: Known | None = None
        self._given = settings
        try:
            self._open(settings)
        except DatabaseAway as error:
            if not (may_be_away and settings.table):
                raise
            self.away = str(error)
            self._shape = Shape("away", settings, select(null().label("number")).subquery())
            values = {**dict.fromkeys(settings.facets, ()), "priority": (), "status": ()}
            self._names = Known("away", inf, MappingProxyType(values), (), (), None)

    def _open(self, settings: TicketSettings) -> None:
        self._held: Imported | Mapped = (Mapped if settings.table else Imported)(
            self._url, settings, self._zone
        )
        try:
            with engines.starting(self._held.engine, self._url, settings) as connection:
                self._shape = self._held.shape(connection)
                # A database that goes away later still leaves the questions' names known.
                self._names = self._read_names(connection)
        except BaseException:
            self._held.close()
            raise

    @property
    def settings(self) -> TicketSettings:
        """The effective settings: what is configured, and what was guessed where nothing is."""
        return self._shape.settings

    @property
    def read_engine(self) -> Engine:
        """The engine that questions go through; the database itself refuses to write there."""
        return self._held.engine

    def close(self) -> None:
        """Release the database."""
        if not self.away:
            self._held.close()

    def describe(self) -> tuple[str, ...]:
        """Say in a few lines what the columns are taken for."""
        with self._reading():
            return describe(self.settings, self._given.personal)

    @property
    def place(self) -> str:
        """Where the tickets are kept, without a password."""
        table = f", {self.settings.table}, only read" if self.settings.table else ""
        return f"{shown(self._url)}{table}"

    def problems(self) -> tuple[str, ...]:
        """Say which mapped columns and which rows cannot be what they should be."""
        with self._reading() as connection:
            return self._held.problems(connection, self._shape)

    def warnings(self) -> tuple[str, ...]:
        """Say what works, and would better be otherwise."""
        with self._reading() as connection:
            return (*self._held.warnings(connection, self._shape), *self._shown_personal(connection))

    def _shown_personal(self, connection: Connection) -> Iterator[str]:
        """Name the columns that hold what reaches somebody and are shown, since the settings name them as facets."""
        for name, column in self._given.facets.items():
            cell = self._shape.rows.c[self._shape.facet(name)]
            values = connection.execute(select(cell).where(cell != "").limit(_SAMPLE)).scalars().all()
            if reason := by_values(values):
                yield (
                    f"column {column!r} looks personal ({reason}) and is shown, as [tickets.facets] names it; take it out "
                    "there, and name it in tickets.personal, to have it kept out"
                )

    def canonical(self, text: str) -> str | None:
        """Return the number that a text spells (`tck 4812` is 4812), None when it spells none."""
        return self._shape.numbers.canonical(text)

    def mentioned(self, text: str) -> tuple[Mention, ...]:
        """Find the ticket numbers in a text; one that is not explicit counts only if such a ticket exists."""
        return self._shape.numbers.mentioned(text)

    def get(self, number: str, readers: frozenset[str]) -> Ticket | None:
        """Return a ticket, or None: whoever may not read it cannot tell whether it exists.

        Raises:
            TwohopError: several rows have the number.
        """
        with self._reading() as connection:
            if not self._may_read(readers):
                return None
            shape = self._shape
            wanted = self.canonical(number) or number
            query = select(shape.rows).where(shape.key.in_(shape.spellings(wanted))).limit(2)
            rows = connection.execute(query).mappings().all()
            if len(rows) > 1:
                raise TwohopError(
                    f"more than one row of the ticket database has the number {wanted!r}, so that nobody can tell "
                    "which is meant"
                )
            return self._ticket(shape, rows[0]) if rows else None

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
            rows = shape.rows
            where = and_(true(), *conditions(filters, shape, known, self._zone))
            total = connection.execute(select(func.count()).select_from(rows).where(where)).scalar_one()
            counts: dict[str, int] = {}
            if filters.count_by is not None:
                column = rows.c[shape.countable(filters.count_by)]
                amount = func.count().label("amount")
                grouped = select(column, amount).where(where).group_by(column).order_by(amount.desc(), column)
                counts = {row[0]: row[1] for row in connection.execute(grouped)}
            listed = select(*shape.public).where(where).order_by(*ordering(rows, filters.order, known))
            found = connection.execute(listed.limit(filters.limit)).mappings()
            return TicketPage(tuple(self._ticket(shape, row) for row in found), total, counts)

    def values(self) -> Mapping[str, tuple[str, ...]]:
        """Return the values in use of every facet, of `priority` and of `status`."""
        return self.known().values

    def customers(self) -> tuple[str, ...]:
        """Return the customers' names."""
        return self.known().customers

    def assignees(self) -> tuple[str, ...]:
        """Return the names of those who work on tickets."""
        return self.known().assignees

    def as_of(self) -> datetime | None:
        """Return when tickets were last imported, or the newest update in a company's own table.

        None where nothing was imported, or where the table does not say when a row was updated: it is read as it is.
        """
        return self.known().as_of

    def known(self) -> Known:
        """Return the names that the tickets know; the ones read last where the database does not answer."""
        if self.settings.table and self._names and self._clock() < self._names.until:
            return self._names
        try:
            with self._reading() as connection:
                return self._known(connection)
        except TicketsUnavailable:
            if self._names is None:
                raise
            # It is not tried again for each question: one that is out of reach takes its time to say so.
            self._names = replace(self._names, until=self._clock() + _NAMES_SECONDS)
            return self._names

    def all_for_index(self, now: datetime) -> Iterator[Ticket | Failed]:
        """Yield the tickets to search by similarity, newest first, within the settings' age and number.

        A row of a company's own table that cannot be a ticket is a Failed with its reason.
        """
        with self._reading() as connection:
            shape = self._shape
            settings, rows = shape.settings, shape.rows
            oldest = utc(now, self._zone) - timedelta(days=settings.index_max_age_days)
            opened = func.coalesce(rows.c.opened_at, rows.c.updated_at, rows.c.imported_at)
            query = select(shape.key, rows.c.number).where(or_(opened.is_(None), opened >= oldest))
            newest = query.order_by(opened.desc().nulls_last(), rows.c.number.desc())
            found = connection.execute(newest.limit(settings.index_max_count)).all()
            nameless = self._held.nameless(connection) if isinstance(self._held, Mapped) else 0
        if nameless:
            yield Failed("tickets:", f"{nameless} rows have no number in {settings.columns['number']!r}")
        keys: dict[str, object] = {}
        seen = Counter(shape.numbers.canonical(spelled) or "" for _, spelled in found)
        for key, spelled in found:
            number = shape.numbers.canonical(spelled)
            if number is None:
                reason = f"{spelled!r} is not a ticket number; the pattern is {settings.number_pattern}"
                yield Failed(f"tickets:{spelled}", reason)
            elif seen[number] == 1:
                keys[number] = key
        yield from (
            Failed(f"tickets:{number}", f"{times} rows have this number")
            for number, times in seen.items()
            if number and times > 1
        )
        unfit = [column for column in rows.c if column.name.startswith("unread_")]
        for batch in batches(list(keys)):
            query = select(*shape.public, *unfit).where(shape.key.in_([keys[number] for number in batch]))
            with self._reading() as connection:
                read = connection.execute(query).mappings().all()
            by_number = {shape.numbers.canonical(row["number"]): row for row in read}
            for number in batch:
                if row := by_number.get(number):
                    reason = _unfit(shape, row)
                    yield Failed(f"tickets:{number}", reason) if reason else self._ticket(shape, row)

    def import_csv(
        self,
        path: Path,
        now: datetime,
        *,
        anew: bool = True,
        replace: bool = False,
        allow_removal: bool = False,
    ) -> ImportReport:
        """Import a ticket file in one transaction; a bad row is named and skipped.

        Importing the same file again changes nothing. Spellings of a value (team, TEAM) become the commonest. Unless
        `anew`, a file that nobody touched since its import is not read again. With `replace`, tickets that the file
        brought before and does not have any more are removed; where they are most of them only with `allow_removal`,
        else the file is refused.

        Raises:
            TicketImportError: the file cannot be read or lacks a configured column, reads known dates otherwise than
                before, or the tickets are a company's own database; nothing was imported.
        """
        if self.away or isinstance(self._held, Mapped):
            raise TicketImportError(
                f"{path} was not imported: the tickets are read from {self.settings.table!r} of TICKETS_DATABASE_URL, "
                "where Twohop writes nothing; take the file out of tickets.csv, or unset both to import files"
            )
        report = self._held.import_csv(path, now, anew=anew, replace=replace, allow_removal=allow_removal)
        with engines.starting(self._held.engine, self._url, self.settings) as connection:
            self._shape = self._held.shape(connection, self._shape)
        return report

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Read one consistent state with the settings that belong to it: others may have imported."""
        if self.away:
            raise TicketsUnavailable(engines.AWAY, "it did not answer at the start; start again when it does")
        try:
            with engines.reading(self._held.engine, self.settings) as connection:
                self._shape = self._held.shape(connection, self._shape)
                yield connection
        except TicketsUnavailable as error:
            if isinstance(error.__cause__, SQLAlchemyError):
                self._outage.failed(error.__cause__)
            raise
        self._outage.over()

    def _may_read(self, readers: frozenset[str]) -> bool:
        return not readers.isdisjoint(self.settings.readers)

    def _known(self, connection: Connection) -> Known:
        names = self._names
        if names is None or names.version != self._shape.version or self._clock() >= names.until:
            self._names = names = self._read_names(connection)
        return names

    def _read_names(self, connection: Connection) -> Known:
        shape = self._shape

        def distinct(column: str) -> tuple[str, ...]:
            cell = shape.rows.c[column]
            return ordered(connection.execute(select(cell).distinct().where(cell != "")).scalars().all())

        columns = {**shape.of("facets"), "priority": "priority", "status": "status"}
        return Known(
            version=shape.version,
            until=self._clock() + _NAMES_SECONDS if isinstance(self._held, Mapped) else inf,
            values=MappingProxyType({name: distinct(column) for name, column in columns.items()}),
            customers=distinct("customer"),
            assignees=distinct("assignee"),
            as_of=self._held.as_of(connection, shape),
        )

    def _ticket(self, shape: Shape, row: RowMapping) -> Ticket:
        def moment(name: str) -> datetime | None:
            value: datetime | None = row[name]
            return value.replace(tzinfo=UTC).astimezone(self._zone) if value else None

        def dates(section: str) -> dict[str, date | datetime]:
            return {
                name: _written(decode(row[c], self._zone)) for name, c in shape.of(section).items() if row[c]
            }

        opened = moment("opened_at")
        return Ticket(
            number=shape.numbers.canonical(row["number"]) or _line(row["number"]),
            customer=_line(row["customer"]),
            subject=_line(row["subject"]),
            body=_text(row["body"]),
            resolution=_text(row["resolution"]),
            status=_line(row["status"]),
            priority=_line(row["priority"]),
            assignee=_line(row["assignee"]),
            opened_at=opened,
            updated_at=moment("updated_at"),
            facets={name: _line(row[column]) for name, column in shape.of("facets").items() if row[column]},
            events={**dates("events"), **({"opening": _written(opened)} if opened else {})},
            actions=dates("actions"),
            personal=shape.personal(row),
            unread=shape.unread(row),
            readers=frozenset(shape.settings.readers),
            imported_at=moment("imported_at"),
        )


def _written(when: date | datetime) -> date | datetime:
    """Return a day for its first moment: that is how a column of times keeps a day that came without one."""
    return when.date() if isinstance(when, datetime) and when.time() == clock() else when


def _unfit(shape: Shape, row: RowMapping) -> str:
    """Say which values of a company's row cannot be read as they are; empty text where all can."""
    columns = dated(shape.settings)
    reasons = [f"{columns[name]}: {why}; " for name, why in shape.unread(row).items()]
    return "".join([*reasons, row.get(STRANGE) or ""]).rstrip("; ")


def _text(held: str) -> str:
    """Return a text without control characters, with one way to end a line and to write an accent."""
    plain = held.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", CONTROL.sub(" ", plain)).strip()


def _line(held: str) -> str:
    return " ".join(_text(held).split())
