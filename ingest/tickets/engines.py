"""Engines that read: the database itself refuses to write through them, and no statement lasts for ever."""

from __future__ import annotations

import os
import re
import select
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError

from ingest.config import TicketSettings
from ingest.database import NOT_NOW, Trouble, shown, trouble, words
from ingest.errors import ConfigError, DatabaseAway, TicketsUnavailable

_BUSY_SECONDS = 30
_GRACE_SECONDS = 1.0
"""How much longer than the server a statement is waited for."""
_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""

AWAY = "the ticket database cannot be read at the moment"
"""What whoever asked is told of a database that does not answer."""
_SLOW = "the ticket database took too long to answer"
_REFUSED = "the ticket database cannot be read as it is set up; whoever runs Twohop has to mend that"
_NAMES_ONLY: frozenset[Trouble] = frozenset({"rights", "changed", "read-only"})
"""Where the database's own words hold no more than names of its tables and columns."""


def writing(url: URL) -> Engine:
    """Return the engine that imports write through, into a SQLite file that is created with its folder."""
    path = Path(url.database or "").absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the tickets' folder {str(path.parent)!r} cannot be made: {error.strerror}"
        ) from error
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _plain)
    event.listen(engine, "begin", _beginning("BEGIN IMMEDIATE"))
    return engine


Setup = Callable[[sqlite3.Connection], None]


def reading_sqlite(url: URL, seconds: float = 0, setup: Setup = lambda _: None) -> Engine:
    """Return an engine that reads a file; `seconds` is the longest time for a transaction, 0 for any."""
    path = Path(url.database or "").absolute()
    guarded = URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(guarded, poolclass=NullPool, connect_args={"timeout": seconds or _BUSY_SECONDS})

    def guard(connection: sqlite3.Connection, _record: object) -> None:
        """Refuse to write, and to attach: VACUUM INTO writes another file through an attached one."""
        connection.isolation_level = None
        setup(connection)
        connection.execute("PRAGMA query_only=ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        if seconds:
            until = time.monotonic() + seconds
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)

    event.listen(engine, "connect", guard)
    event.listen(engine, "begin", _beginning("BEGIN"))
    return engine


def reading_postgresql(url: URL, seconds: float) -> Engine:
    """Return an engine whose sessions and transactions are read-only; `seconds` is the longest time for a statement."""
    options = {
        "default_transaction_read_only": "on",
        "statement_timeout": f"{round(seconds * 1000)}",
        "lock_timeout": f"{round(seconds * 1000)}",
        "idle_in_transaction_session_timeout": "60000",
        "TimeZone": "UTC",
    }
    engine = create_engine(
        url,
        pool_size=2,
        execution_options={"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"},
        connect_args={
            "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
            "connect_timeout": max(2, round(seconds)),
            "application_name": "twohop",
            "client_encoding": "utf8",
            # A pooler may put the next statement on another connection, which knows none of ours.
            "prepare_threshold": None,
        },
    )
    event.listen(engine, "connect", _lenient)
    event.listen(engine, "checkout", _alive)
    _watch(engine, seconds + _GRACE_SECONDS)
    return engine


def _lenient(connection: Any, _record: object) -> None:
    """Replace bytes that are no text: a server of encoding SQL_ASCII keeps any, and one row would end every answer."""
    from psycopg.adapt import Loader

    class Text(Loader):
        def load(self, data: bytes | bytearray | memoryview) -> str:
            return bytes(data).decode("utf-8", "replace")

    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.execute("SET client_encoding TO SQL_ASCII")
        connection.commit()
        for kind in ("text", "varchar", "bpchar", "name"):
            connection.adapters.register_loader(kind, Text)


def _alive(connection: Any, _record: object, _proxy: object) -> None:
    """Take another connection where the server closed this one: an idle one has nothing to say."""
    if connection.closed:
        raise DisconnectionError
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    if look.poll(0):
        raise DisconnectionError


def _watch(engine: Engine, seconds: float) -> None:
    """Cut the connection of a statement that lasts longer: a server that hangs does not keep its own time."""

    def begin(connection: Connection, *_: object) -> None:
        timer = threading.Timer(seconds, _cut, [connection.connection.driver_connection])
        timer.daemon = True
        connection.info["watch"] = timer
        timer.start()

    def end(connection: Connection | None) -> None:
        if connection is not None and (timer := connection.info.pop("watch", None)):
            timer.cancel()

    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "after_cursor_execute", lambda connection, *_: end(connection))
    event.listen(engine, "handle_error", lambda context: end(context.connection))


def _cut(connection: Any) -> None:
    # It may have been closed in the meantime.
    with suppress(OSError, ValueError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def reading(engine: Engine, settings: TicketSettings) -> Iterator[Connection]:
    """Read in one transaction.

    Raises:
        TicketsUnavailable: the database cannot be reached, is too slow, or refuses; its cause is the database's error.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        kind = trouble(error)
        own = f": {words(error)}" if kind in _NAMES_ONLY else ""
        said = _SLOW if kind == "slow" else _REFUSED if kind in ("rights", "account", "changed") else AWAY
        raise TicketsUnavailable(said, f"{_matter(kind)}{own}; {_step(kind, settings)}") from error


@contextmanager
def starting(engine: Engine, url: URL, settings: TicketSettings) -> Iterator[Connection]:
    """Use the database in one transaction; raises ConfigError, or DatabaseAway, with the database's own words."""
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        kind = trouble(error)
        step = _step(kind, settings)
        if url.get_backend_name() == "sqlite" and kind not in ("slow", "changed"):
            step = (
                "see that whoever runs Twohop may use the file and its folder, and that the disk is not full"
            )
        elif kind == "rights":
            schema, name = named(settings.table)
            given = grants(engine, url.database or "", schema or "public", name, url.username or "…")
            step = f"let its account read {settings.table!r}: {given}"
        raise (DatabaseAway if kind in NOT_NOW else ConfigError)(
            f"the tickets' database {shown(url)!r} cannot be used: {words(error)}; {step}"
        ) from error


def named(table: str) -> tuple[str, str]:
    """Return the schema, empty where there is none, and the name of a table, each of which may be quoted."""
    parts = re.findall(r'"(?:[^"]|"")+"|[^".]+', table)
    plain = [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts]
    return ".".join(plain[:-1]), plain[-1] if plain else table


def grants(engine: Engine, database: str, schema: str, table: str, account: str) -> str:
    """Write the statements that let an account read one table, and do nothing else."""
    quote = engine.dialect.identifier_preparer.quote
    to = f"TO {account if account == '…' else quote(account)}"
    return (
        f"GRANT CONNECT ON DATABASE {quote(database)} {to}; GRANT USAGE ON SCHEMA {quote(schema)} {to}; "
        f"GRANT SELECT ON {quote(schema)}.{quote(table)} {to}"
    )


def _matter(kind: Trouble) -> str:
    match kind:
        case "away":
            return "it does not answer"
        case "slow":
            return "a statement took too long"
        case "busy":
            return "its server takes no more connections"
        case "full":
            return "its server's disk is full"
        case "rights":
            return "its account may not read"
        case "account":
            return "its server refuses the account, or has no such database"
        case "changed":
            return "the table is not what the settings say"
        case "read-only" | "other":
            return "it refuses"
        case _:
            assert_never(kind)


def _step(kind: Trouble, settings: TicketSettings) -> str:
    """Say what to do about a database that cannot be used, without naming its account."""
    table = repr(settings.table)
    match kind:
        case "away":
            return "check TICKETS_DATABASE_URL, and that the server runs"
        case "slow":
            return (
                f"it may take tickets.timeout_seconds ({settings.timeout_seconds:g} s): see what {table} waits for, give it an "
                "index or a materialized view, or raise the setting"
            )
        case "busy":
            return "raise max_connections there, or end what holds them; each bot takes two"
        case "full":
            return "make room there"
        case "rights":
            return f"grant SELECT on {table} to the account; `twohop doctor` writes the statements"
        case "account":
            return "check the account, its password and the database's name in TICKETS_DATABASE_URL"
        case "changed":
            return f"mend {table}, or what [tickets] in twohop.toml says of it; `twohop doctor` names what is missing"
        case "read-only" | "other":
            return "the log has its own words; `twohop doctor` looks again"
        case _:
            assert_never(kind)


def _plain(connection: sqlite3.Connection, _record: object) -> None:
    """Leave transactions to the engine: Python's own would not cover a change of the table."""
    connection.isolation_level = None


def _beginning(statement: str) -> Callable[[Connection], None]:
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    return begin
