"""The database of our own state: its metadata and how it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError
from sqlmodel import create_engine

from ingest.errors import ConfigError
from ingest.runs import STATE as STATE


def opened(url: str) -> Engine:
    """Open the database; a SQLite file's folder is made where it is missing."""
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    # Parameters are people's questions: they stay out of error messages and so out of logs.
    try:
        engine = create_engine(url, hide_parameters=True)
    except ImportError as error:
        raise ConfigError(f"DATABASE_URL needs the package {error.name!r}; install it") from error
    except ArgumentError as error:
        raise ConfigError(
            f"DATABASE_URL cannot be read: {error}; write it like postgresql+psycopg://user@host/name"
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _wal)
    _create(engine)
    return engine


def _create(engine: Engine) -> None:
    """Create the tables that are not there; a process that starts at the same moment may be the one that does."""
    for _ in STATE.tables:
        try:
            STATE.create_all(engine)
        except (IntegrityError, OperationalError, ProgrammingError):
            continue
        return
    STATE.create_all(engine)


def _wal(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA busy_timeout=5000")
    connection.execute("PRAGMA journal_mode=WAL")
