"""The database of our own state: how it is opened, and brought to the tables that this version knows."""

from __future__ import annotations

import logging
import sqlite3
import time
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, delete, event, false, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import create_engine

from ingest.database import NOT_NOW, database_url, shown, trouble, words
from ingest.errors import ConfigError
from ingest.runs import STATE as STATE

VERSION_TABLE = "twohop_version"
"""Alembic's own table; in a database with other tables its usual name may be another program's."""

_POSTGRES_LOCK = 7_021_959_046
"""The advisory lock of a migration: any number that nothing else in the database takes."""
_SQLITE_WAIT_MS = 5000
_MIGRATION_WAIT_MS = 60_000
"""How long a SQLite file may be locked: by another process's write, and by its migration."""
_POSTGRES = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 30_000}
"""Seconds, seconds and milliseconds, after which a server that is gone is an error."""

_log = logging.getLogger(__name__)


def opened(url: str, migrations: str = "bot:migrations") -> Engine:
    """Open the database and bring its tables up to date; raises ConfigError where it cannot be used, or not be written.

    Several processes may open one database at the same moment. A SQLite file's folder is made where it is missing.
    `migrations` is where Alembic finds them.
    """
    engine = engine_of(url)
    try:
        with engine.begin() as connection:
            _lock(connection)
            _migrate(connection, migrations)
            _write_nothing(connection)
    except DBAPIError as error:
        raise ConfigError(f"the database {_named(engine)} cannot be used: {reason(error, engine)}") from error
    finally:
        # What was set for the migration ends with its connection.
        engine.dispose()
    return engine


def prove(engine: Engine) -> None:
    """Prove that each table can be written, by statements that change no row; raises DBAPIError where one cannot."""
    with engine.connect() as connection:
        _write_nothing(connection)
        connection.rollback()


def reason(error: SQLAlchemyError, engine: Engine, *, plain: bool = False) -> str:
    """Say what is the matter with our database, and the next step.

    With `plain` neither account nor address is named: the database's own words are left out where they may hold one.
    """
    kind = trouble(error)
    said = words(error)
    sqlite = engine.dialect.name == "sqlite"
    account = (
        "…"
        if plain or not engine.url.username
        else engine.dialect.identifier_preparer.quote(engine.url.username)
    )
    match kind:
        case "rights" if not sqlite and "for table" in said:
            step = (
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {account}; so that a later version can "
                f"change them too it has to own them, REASSIGN OWNED BY … TO {account}"
            )
        case "rights" if not sqlite:
            step = f"its account makes tables there: GRANT USAGE, CREATE ON SCHEMA public TO {account}"
        case "read-only" if not sqlite:
            step = "name the primary in DATABASE_URL, not a standby, and let no default_transaction_read_only be on"
        case "rights" | "read-only" | "away" | "other" if sqlite:
            step = "see that whoever runs Twohop may write the file and its folder"
        case "full":
            step = "make room on its disk"
        case "slow" if sqlite:
            step = "another process keeps it locked; end that one"
        case "busy":
            step = "raise max_connections there, or end what holds them"
        case "account":
            step = "check the account, its password and the database's name in DATABASE_URL"
        case "changed":
            step = "restore its tables from a backup, or name an empty database in DATABASE_URL"
        case _:
            step = "check that it runs, and what DATABASE_URL says"
    if plain and kind not in ("rights", "read-only", "full", "changed"):
        said = (
            "it does not answer"
            if kind in NOT_NOW
            else "it refuses the account"
            if kind == "account"
            else "it fails"
        )
    return f"{said}; {step}"


def _named(engine: Engine) -> str:
    if engine.dialect.name == "sqlite":
        return repr(engine.url.database)
    return f"of DATABASE_URL, {shown(engine.url)!r},"


def _write_nothing(connection: Connection) -> None:
    # Rights are looked at before rows are, so that no row is needed.
    for table in STATE.sorted_tables:
        keys = {column.name: column for column in table.primary_key}
        none = select(*keys.values()).where(false())
        connection.execute(insert(table).from_select(list(keys), none, include_defaults=False))
        connection.execute(update(table).where(false()).values(keys))
        connection.execute(delete(table).where(false()))


def engine_of(url: str) -> Engine:
    """Return the engine of a database, whose tables may be of any version; raises ConfigError."""
    address = database_url(url, "DATABASE_URL")
    options: dict[str, Any] = {}
    if address.get_backend_name() == "sqlite":
        Path(address.database or "").parent.mkdir(parents=True, exist_ok=True)
    else:
        # A connection that the server cut while nobody used it is replaced before it is used.
        options = {"pool_pre_ping": True, "isolation_level": "READ COMMITTED", "connect_args": _POSTGRES}
    # Parameters are people's questions: they stay out of error messages and so out of logs.
    engine = create_engine(address, hide_parameters=True, **options)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _wal)
    return engine


def _wal(connection: Any, _record: object) -> None:
    connection.execute(f"PRAGMA busy_timeout={_SQLITE_WAIT_MS}")
    # A switch to WAL that meets another process's does not wait by itself.
    ends = time.monotonic() + _MIGRATION_WAIT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
            time.sleep(0.05)
        else:
            return


def _lock(connection: Connection) -> None:
    """Let one process at a time change the tables, until its transaction ends."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA busy_timeout={_MIGRATION_WAIT_MS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})")


def _migrate(connection: Connection, migrations: str) -> None:
    """Bring the tables to the newest revision; nothing is changed where an error is raised."""
    if _revision(connection) == _newest(migrations):
        # Alembic takes longer to load than most of what is asked of the state.
        return
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", migrations)
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    found = _revision(connection)
    if found is None:
        _refuse_strangers(connection)
    elif found not in revisions:
        raise ConfigError(
            f"the database of DATABASE_URL is at revision {found!r}, and this version knows only up to {revisions[0]!r}: "
            f"install the version that wrote it, or restore a backup from before"
        )
    _log.info("the tables of the state are brought from revision %s to %s", found, revisions[0])
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    """Return the revision of the tables that are there, None where nothing says it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608 - ours
    return found


def _newest(migrations: str) -> str:
    """Return the newest revision: the name of a migration's file begins with it, and they count upwards."""
    package, _, folder = migrations.rpartition(":")
    root = resources.files(package) / folder if package else Path(folder)
    names = (file.name for file in (root / "versions").iterdir())
    return max(name.partition("_")[0] for name in names if name.endswith(".py"))


def _refuse_strangers(connection: Connection) -> None:
    """Refuse tables of our names that are not ours, as they are where nothing says which version made them."""
    inspector = inspect(connection)
    for table in STATE.sorted_tables:
        if inspector.has_table(table.name):
            there = {column["name"] for column in inspector.get_columns(table.name)}
            if missing := {column.name for column in table.columns} - there:
                raise ConfigError(
                    f"the database of DATABASE_URL has a table {table.name!r} without {', '.join(sorted(missing))}: it is "
                    f"another program's, or of a version before the first; name another database or file"
                )
