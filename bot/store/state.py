"""The database of our own state: its metadata and how it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlmodel import create_engine

from ingest.runs import STATE as STATE


def opened(url: str) -> Engine:
    """Open the database; a SQLite file's folder is made where it is missing."""
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    # Parameters are people's questions: they stay out of error messages and so out of logs.
    engine = create_engine(url, hide_parameters=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _wal)
    STATE.create_all(engine)
    return engine


def _wal(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA busy_timeout=5000")
