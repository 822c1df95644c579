"""A company's own ticket table or view, mapped by the settings and only read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import (
    JSON,
    URL,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    FromClause,
    Inspector,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    cast,
    func,
    inspect,
    literal,
    null,
    select,
)
from sqlalchemy import Column as TableColumn
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.types import Uuid

from ingest.config import TicketSettings
from ingest.errors import ConfigError
from ingest.tickets import engines
from ingest.tickets.dialects import LONGEST, Dialect, Postgresql, Sqlite, refuse_writes
from ingest.tickets.guess import FIELDS, TIMES
from ingest.tickets.mapping import columns_named
from ingest.tickets.shape import STRANGE, Shape, column_names, dated, personal_column, unread_column

_SAMPLE = 50
_TITLE = 80
_SHOWN = 30


class Mapped:
    """The tickets of a database that is not ours."""

    def __init__(self, url: URL, given: TicketSettings, zone: ZoneInfo) -> None:
        """Connect, look at the columns that the settings name, and make sure that nothing can be written.

        Raises:
            ConfigError: the database cannot be used, a table or column is not there or of a type that cannot be what it
                is mapped to, no number is one, or the database would let us write.
        """
        self._url = url
        self._zone = zone
        self._given = given
        self._names = column_names(given)
        self._dialect: Dialect = (
            Sqlite(given, zone) if url.get_backend_name() == "sqlite" else Postgresql(zone)
        )
        self.engine = self._dialect.engine(url, given.timeout_seconds)
        try:
            with engines.starting(self.engine, url, given) as connection:
                self._dialect.check(connection)
                self._table = _reflected(connection, given)
                self._settings, rows = self._mapped()
                self._shape = Shape("mapped", self._settings, rows, "key", self._spellings)
                self._refuse_strange(connection)
            refuse_writes(self.engine, self._dialect, self._table)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the connections."""
        self.engine.dispose()

    def shape(self, _connection: Connection, _before: Shape | None = None) -> Shape:
        """Return the shape of the mapped rows, which the settings alone decide."""
        return self._shape

    def as_of(self, connection: Connection, shape: Shape) -> datetime | None:
        """Return when a ticket was last updated, as far as the database has it; None where no column says so."""
        if "updated_at" not in self._settings.columns:
            return None
        newest: datetime | None = connection.execute(select(func.max(shape.rows.c.updated_at))).scalar()
        return newest.replace(tzinfo=UTC).astimezone(self._zone) if newest else None

    def problems(self, _connection: Connection, _shape: Shape) -> tuple[str, ...]:
        """Say nothing: a mapping that cannot be stops the start."""
        return ()

    def warnings(self, connection: Connection, shape: Shape) -> tuple[str, ...]:
        """Say what the account may do that it need not, and which numbers several rows have."""
        doubled = select(shape.key).group_by(shape.key).having(func.count() > 1).order_by(shape.key)
        twice = [str(found) for found in connection.execute(doubled.limit(_SHOWN)).scalars()]
        rights = self._dialect.rights(connection, self._table)
        if not twice:
            return rights
        return (
            *rights,
            f"several rows of {self._given.table!r} have the number {', '.join(twice)}; map a view with one row a ticket",
        )

    def nameless(self, connection: Connection) -> int:
        """Count the rows without a number."""
        number = self._table.c[self._settings.columns["number"]]
        return connection.execute(
            select(func.count()).select_from(self._table).where(number.is_(None))
        ).scalar_one()

    def _spellings(self, number: str) -> Sequence[Any]:
        """Return what the number's column may hold for a canonical number."""
        if isinstance(self._shape.key.type, Integer):
            return [int(number)] if number.isdecimal() and len(number) < 19 else []
        plain = dict.fromkeys((number, number.lower()))
        before = [
            "",
            "#",
            *(p for prefix in self._settings.prefixes for p in (prefix, prefix.lower(), prefix.upper())),
        ]
        return list(dict.fromkeys(f"{prefix}{spelled}" for prefix in before for spelled in plain))

    def _mapped(self) -> tuple[TicketSettings, FromClause]:
        """Return the settings with the fields that are called by their own names, and the rows under our names."""
        given, table, make = self._given, self._table, self._dialect
        place = repr(given.table)
        named = columns_named(given)
        if lost := [f"{column!r}, which {where}" for column, where in named if column not in table.c]:
            raise ConfigError(
                f"{place} has no column {'; and no column '.join(lost)}; its columns are {_listed(table.c.keys())}"
            )
        taken = {column for column, _ in named}
        columns = {n: n for n in FIELDS if n in table.c and n not in taken and n not in given.columns}
        columns |= given.columns
        if "number" not in columns:
            raise ConfigError(
                f"no column of {place} is said to hold ticket numbers; name it, [tickets.columns] number = …; "
                f"its columns are {_listed(table.c.keys())}"
            )
        settings = given.model_copy(update={"columns": columns})
        _refuse_types(table, settings, dated=make.typed_dates)
        number = table.c[columns["number"]]

        def text(column: str) -> ColumnElement[str]:
            held = func.substr(func.trim(cast(table.c[column], Text)), 1, LONGEST)
            return func.coalesce(held, "", type_=Text)

        def field(name: str) -> ColumnElement[str]:
            return text(columns[name]) if name in columns else literal("", Text)

        def moment(name: str) -> ColumnElement[datetime]:
            return make.moment(table.c[columns[name]]) if name in columns else cast(null(), DateTime)

        found: dict[str, ColumnElement[Any]] = {
            "key": number if isinstance(number.type, Integer | String) else cast(number, Text),
            "number": text(columns["number"]),
            **{name: field(name) for name in FIELDS if name not in TIMES and name != "number"},
            **{name: moment(name) for name in sorted(TIMES)},
            "imported_at": cast(null(), DateTime),
            **{personal_column(at): text(column) for at, column in enumerate(settings.personal)},
        }
        if "subject" not in columns:
            found["subject"] = func.replace(func.substr(found["body"], 1, _TITLE), "\n", " ", type_=Text)
        found["folded"] = make.folded(
            func.concat(found["subject"], "\n", found["body"], "\n", found["resolution"], type_=Text)
            if make.typed_dates
            else found["subject"] + "\n" + found["body"] + "\n" + found["resolution"]
        )
        for (section, name), column in self._names.items():
            source = getattr(settings, section)[name]
            found[column] = text(source) if section == "facets" else make.when(table.c[source])
        times = dated(settings)
        found |= {unread_column(at): make.undated(table.c[c]) for at, c in enumerate(times.values())}
        texts = dict.fromkeys(c for c, _ in columns_named(settings) if c not in times.values())
        found[STRANGE] = make.strange([table.c[column] for column in texts])
        rows = select(*(value.label(name) for name, value in found.items())).where(number.is_not(None))
        return settings, rows.subquery("tickets")

    def _refuse_strange(self, connection: Connection) -> None:
        """Refuse a column of numbers, or of dates, of which no row in a sample is one."""
        shape, table, columns = self._shape, self._table, self._settings.columns
        numbers = connection.execute(select(shape.rows.c.number).limit(_SAMPLE)).scalars().all()
        if numbers and not any(map(shape.numbers.canonical, numbers)):
            raise ConfigError(
                f"column {columns['number']!r} holds {', '.join(map(repr, numbers[:3]))}, which do not fit "
                f"number_pattern {self._settings.number_pattern!r} with the prefixes "
                f"{', '.join(self._settings.prefixes) or 'none'}; set [tickets] number_pattern and prefixes"
            )
        for column in dated(self._settings).values():
            held = select(cast(table.c[column], Text)).where(table.c[column].is_not(None)).limit(_SAMPLE)
            values = connection.execute(held).scalars().all()
            if values and (reason := self._dialect.no_date(values)):
                raise ConfigError(
                    f"column {column!r} of {self._given.table!r} holds no dates: {reason}; map another column, or a "
                    f"view that makes dates of it{_counted(column, values)}"
                )


def _reflected(connection: Connection, given: TicketSettings) -> Table:
    """Return the table or view that the settings name, as the database describes it."""
    schema, name = engines.named(given.table)
    found = inspect(connection)
    schemas = found.get_schema_names()
    try:
        if schema and schema not in schemas:
            raise NoSuchTableError
        columns = found.get_columns(name, schema or None)
    except NoSuchTableError:
        # Near in another schema, or written in another case, is as near as anything.
        own = {found.default_schema_name, "main", "information_schema"}
        there = {
            (f"{of}.{known}" if of else known): known
            for of in (None, *(of for of in schemas if of not in own))
            for known in _tables(found, of)
        }

        def far(place: str) -> tuple[bool, float]:
            alike = difflib.SequenceMatcher(None, given.table.casefold(), place.casefold()).ratio()
            return there[place].casefold() != name.casefold(), -alike

        raise ConfigError(
            f"the tickets' database has no table or view {given.table!r}, which [tickets] table names; "
            f"there are {_listed(sorted(there, key=far))}"
        ) from None
    return Table(
        name, MetaData(), *(TableColumn(c["name"], c["type"]) for c in columns), schema=schema or None
    )


def _tables(found: Inspector, schema: str | None) -> list[str]:
    """Return the names of what can be read like a table."""
    names = [*found.get_table_names(schema), *found.get_view_names(schema)]
    return names + found.get_materialized_view_names(schema) if found.dialect.name == "postgresql" else names


def _refuse_types(table: Table, settings: TicketSettings, *, dated: bool) -> None:
    """Refuse columns whose type cannot be what they are mapped to."""
    wrong: list[str] = []
    times: dict[str, str] = {c: f"[tickets.columns] {n}" for n, c in settings.columns.items() if n in TIMES}
    for section in ("events", "actions"):
        times |= {c: f"[tickets.{section}] {n}" for n, c in getattr(settings, section).items()}
    for column, place in times.items():
        if dated and not isinstance(table.c[column].type, Date | DateTime):
            wrong.append(f"{column!r} ({place}) is {table.c[column].type!r}, not a date or a timestamp")
    number = table.c[settings.columns["number"]]
    if dated and not isinstance(number.type, Integer | String | Uuid):
        wrong.append(
            f"{number.name!r} ([tickets.columns] number) is {number.type!r}, not a whole number or text"
        )
    for column, _ in columns_named(settings):
        if isinstance(table.c[column].type, LargeBinary | JSON):
            wrong.append(f"{column!r} is {table.c[column].type!r}, not text")
    if wrong:
        raise ConfigError(
            f"of {settings.table!r}, column {'; column '.join(wrong)}; map another column, or a view that casts it"
        )


def _counted(column: str, values: Sequence[str]) -> str:
    """Say how a view makes dates of seconds or milliseconds since 1970; nothing where that is not what they are."""
    if not all(re.fullmatch(r"\d{9,10}(\.\d+)?|\d{12,13}", value) for value in values):
        return ""
    seconds = f'"{column}" / 1000' if len(values[0].partition(".")[0]) > len("1758362400") else f'"{column}"'
    return f": SELECT …, datetime({seconds}, 'unixepoch') AS \"{column}\" …"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) or "none"
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
