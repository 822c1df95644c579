"""What differs between the databases that tickets are read from: their dates, their folding, their rights."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Engine,
    LargeBinary,
    Table,
    Text,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
)
from sqlalchemy.exc import DBAPIError

from ingest.config import TicketSettings
from ingest.database import words
from ingest.errors import ConfigError, DatabaseAway
from ingest.tickets import engines
from ingest.tickets.filter import local, utc
from ingest.tickets.rows import encode
from ingest.tickets.table import YEARS, Unlikely, Unreadable, read_date
from ingest.words import fold

_OLDEST_POSTGRESQL = 13
_READ_ONLY = "25006"
LONGEST = 100_000
"""Characters of a text that are read: one row of many megabytes would make every search wait for it."""
_TOO_LONG = f"is longer than {LONGEST} characters, and no more is read"
_ACCENTS = "[\\u0300-\\u036f]"


class Sqlite:
    """What is SQLite's own: dates are text, and functions of ours read them."""

    typed_dates = False

    def __init__(self, settings: TicketSettings, zone: ZoneInfo) -> None:
        # Where nobody says which is first, a date that can be read two ways is not read.
        self._day_first = settings.day_first if "day_first" in settings.model_fields_set else None
        self._zone = zone
        self._encoding = "UTF-8"

    def engine(self, url: URL, seconds: float) -> Engine:
        """Return the engine that reads."""
        path = Path(url.database or "").absolute()
        if not path.is_file():
            raise DatabaseAway(f"TICKETS_DATABASE_URL names {str(path)!r}, which is no file; check the path")

        def setup(connection: sqlite3.Connection) -> None:
            connection.text_factory = lambda held: held.decode("utf-8", "replace")
            for name, work in (
                ("fold", self._fold),
                ("moment", self._moment),
                ("happened", self._when),
                ("undated", self._why),
                ("strange", self._strange),
            ):
                connection.create_function(f"twohop_{name}", 1, work, deterministic=True)

        return engines.reading_sqlite(url, seconds, setup)

    def check(self, connection: Connection) -> None:
        """Read the file's header: opening alone does not."""
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        self._encoding = str(connection.exec_driver_sql("PRAGMA encoding").scalar())

    def write(self, connection: Connection, _table: Table) -> None:
        """Write what is there already."""
        version = connection.exec_driver_sql("PRAGMA user_version").scalar()
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")

    def refused(self, error: DBAPIError) -> bool:
        """Tell whether an error says that nothing can be written."""
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY

    def rights(self, _connection: Connection, _table: Table) -> tuple[str, ...]:
        """Say nothing: who may write a file is the file system's."""
        return ()

    def folded(self, text: ColumnElement[str]) -> ColumnElement[str]:
        """Return a text as `ingest.atoms.fold` writes it, as far as the database can."""
        return func.twohop_fold(_bytes(text), type_=Text)

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[datetime]:
        """Return a time in UTC without a zone, NULL where it cannot be read."""
        return func.twohop_moment(_bytes(column), type_=DateTime)

    def when(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """Return a time as `ingest.tickets.rows.encode` writes it, NULL where it cannot be read."""
        return func.twohop_happened(_bytes(column), type_=Text)

    def undated(self, column: Column[Any]) -> ColumnElement[str]:
        """Say why a time cannot be read; empty text where it can."""
        return func.twohop_undated(_bytes(column), type_=Text)

    def strange(self, columns: Sequence[Column[Any]]) -> ColumnElement[str]:
        """Say which texts are not read as they are; empty text where all are."""
        return _named([(column, func.twohop_strange(_bytes(column), type_=Text)) for column in columns])

    def no_date(self, values: Sequence[str]) -> str:
        """Say why none of the values is a date; empty text where one is."""
        reasons = []
        for value in values:
            try:
                self._read(value)
            except Unlikely:
                return ""
            except Unreadable as error:
                reasons.append(str(error))
            else:
                return ""
        return reasons[0]

    def _read(self, text: str) -> date | datetime | None:
        if len(text) > len("2026-09-02"):
            # The commonest spelling, and by far the fastest to read.
            with suppress(ValueError):
                found = datetime.fromisoformat(text)
                if found.year in YEARS:
                    return local(found, self._zone)
        return read_date(text, self._day_first, self._zone)

    def _decoded(self, held: bytes | None) -> str:
        return (held or b"").decode(self._encoding, "replace")

    def _fold(self, held: bytes | None) -> str:
        # SQLite's LIKE reads no further than a NUL.
        return fold(self._decoded(held).replace("\0", " "))

    def _moment(self, held: bytes | None) -> str | None:
        try:
            found = self._read(self._decoded(held))
        except Unreadable:
            return None
        return utc(found, self._zone).isoformat(" ", "microseconds") if found else None

    def _when(self, held: bytes | None) -> str | None:
        try:
            return encode(self._read(self._decoded(held)))
        except Unreadable:
            return None

    def _why(self, held: bytes | None) -> str:
        try:
            self._read(self._decoded(held))
        except Unreadable as error:
            return str(error)
        return ""

    def _strange(self, held: bytes | None) -> str:
        try:
            text = (held or b"").decode(self._encoding)
        except UnicodeDecodeError:
            return f"holds bytes that are not {self._encoding}"
        return _TOO_LONG if len(text) > LONGEST else ""


class Postgresql:
    """What is PostgreSQL's own: dates have types, and its functions bring them to UTC."""

    typed_dates = True

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone.key
        self._unicode = True

    def engine(self, url: URL, seconds: float) -> Engine:
        """Return the engine that reads."""
        return engines.reading_postgresql(url, seconds)

    def check(self, connection: Connection) -> None:
        """Refuse an old server, and a pooler that swallows the session's limits."""
        setting = "SELECT current_setting(%(name)s)"

        def said(name: str) -> str:
            return str(connection.exec_driver_sql(setting, {"name": name}).scalar())

        if said("default_transaction_read_only") != "on" or said("statement_timeout") in ("0", ""):
            raise ConfigError(
                "the tickets' database does not take the session's settings (read-only, statement_timeout): a pooler "
                "leaves them out; let TICKETS_DATABASE_URL go to PostgreSQL itself"
            )
        if int(said("server_version_num")) < _OLDEST_POSTGRESQL * 10_000:
            raise ConfigError(
                f"TICKETS_DATABASE_URL is a PostgreSQL {said('server_version')}; "
                f"{_OLDEST_POSTGRESQL} or newer is needed"
            )
        self._unicode = said("server_encoding") == "UTF8"

    def write(self, connection: Connection, table: Table) -> None:
        """Make a table that is there already, which does nothing where it is allowed."""
        name = connection.dialect.identifier_preparer.format_table(table)
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {name} ()")

    def refused(self, error: DBAPIError) -> bool:
        """Tell whether an error says that nothing can be written."""
        return getattr(error.orig, "sqlstate", None) == _READ_ONLY

    def rights(self, connection: Connection, table: Table) -> tuple[str, ...]:
        """Say where the account could write if our own locks were gone."""
        name = connection.dialect.identifier_preparer.format_table(table)
        row = connection.exec_driver_sql(
            "SELECT current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), "
            "has_table_privilege(%(table)s, 'INSERT, UPDATE, DELETE, TRUNCATE'), current_database(), "
            "(SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE pg_class.oid = %(table)s::regclass)",
            {"table": name},
        ).one()
        if not (row[1] or row[2]):
            return ()
        what = "is a superuser" if row[1] else f"may write {name}"
        return (
            f"the account {row[0]!r} {what}; Twohop writes nothing, but an account that cannot is safer: "
            f"CREATE ROLE twohop_tickets LOGIN PASSWORD '…'; "
            f"{engines.grants(connection.engine, row[3], row[4], table.name, 'twohop_tickets')};",
        )

    def folded(self, text: ColumnElement[str]) -> ColumnElement[str]:
        """Return a text as `ingest.atoms.fold` writes it, as far as the database can."""
        if not self._unicode:
            return func.lower(text, type_=Text)
        apart = func.normalize(text, literal_column("NFD"))
        return func.lower(func.regexp_replace(apart, _ACCENTS, "", "g"), type_=Text)

    def moment(self, column: ColumnElement[Any]) -> ColumnElement[datetime]:
        """Return a time in UTC without a zone, NULL where it cannot be read."""
        return case((_within_years(column), self._utc(column)), else_=null())

    def when(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """Return a time as `ingest.tickets.rows.encode` writes it, NULL where it cannot be read."""
        if isinstance(column.type, Date):
            said = func.to_char(column, "YYYY-MM-DD", type_=Text)
        else:
            said = func.to_char(self._utc(column), 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"', type_=Text)
        return case((_within_years(column), said.collate("C")), else_=null())

    def undated(self, column: Column[Any]) -> ColumnElement[str]:
        """Say why a time cannot be read; empty text where it can."""
        why = f"' is not of a year from {YEARS[0]} to {YEARS[-1]}"
        said = literal("'", Text) + cast(column, Text) + literal(why, Text)
        return case((column.is_not(None) & ~_within_years(column), said), else_="")

    def strange(self, columns: Sequence[Column[Any]]) -> ColumnElement[str]:
        """Say which texts are not read as they are; empty text where all are."""
        long = [(column, func.length(cast(column, Text)) > LONGEST) for column in columns]
        return _named([(column, case((is_long, _TOO_LONG), else_="")) for column, is_long in long])

    def no_date(self, _values: Sequence[str]) -> str:
        """Say nothing: the column's type says that they are dates."""
        return ""

    def _utc(self, column: ColumnElement[Any]) -> ColumnElement[datetime]:
        """Return a moment in UTC without a zone; what has no zone is the desk's."""
        if isinstance(column.type, DateTime) and column.type.timezone:
            return func.timezone("UTC", column, type_=DateTime)
        plain = cast(column, DateTime)
        return func.timezone("UTC", func.timezone(self._zone, plain), type_=DateTime)


Dialect = Sqlite | Postgresql


def refuse_writes(engine: Engine, dialect: Dialect, table: Table) -> None:
    """Try to write, with a statement that would change nothing, and make sure that the database refuses.

    Raises:
        ConfigError: it does not, or it cannot be told.
    """
    with engine.connect() as connection:
        try:
            dialect.write(connection, table)
        except DBAPIError as error:
            if dialect.refused(error):
                return
            raise ConfigError(
                f"it cannot be told whether the tickets' database lets us write: {words(error)}; nothing is read from it "
                "until that is certain: let its account use the schema of [tickets] table, GRANT USAGE ON SCHEMA …"
            ) from error
        finally:
            connection.rollback()
    raise ConfigError(
        "the tickets' database let a statement through that writes, although it was opened read-only; "
        "give TICKETS_DATABASE_URL an account that may only SELECT"
    )


def _within_years(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Leave out infinity and years that no date of ours can have."""
    return (column >= literal_column(f"'{YEARS.start}-01-01'")) & (
        column < literal_column(f"'{YEARS.stop}-01-01'")
    )


def _bytes(column: ColumnElement[Any]) -> ColumnElement[bytes]:
    """Hand a text to a function as bytes: SQLite's texts may be in no encoding, and Python would refuse the statement."""
    return cast(cast(column, Text), LargeBinary)


def _named(reasons: Sequence[tuple[Column[Any], ColumnElement[str]]]) -> ColumnElement[str]:
    """Write each reason that is not empty with its column before it and a semicolon behind it."""
    said: ColumnElement[str] = literal("", Text)
    for column, why in reasons:
        said = said + case((why != "", literal(f"{column.name} ", Text) + why + "; "), else_="")
    return said
