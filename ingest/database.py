"""The address of a database, as people write it and as SQLAlchemy opens it."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ingest.errors import ConfigError

_DRIVERS = {"sqlite": "sqlite", "postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}


def database_url(text: str, setting: str) -> URL:
    """Return the address of a SQLite or PostgreSQL database; `postgres://` is PostgreSQL too, always through psycopg.

    Raises ConfigError that names `setting`; the address is not shown, since it may hold a password.
    """
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise ConfigError(
            f"{setting} cannot be read as an address; write it like postgresql://user@host/name or sqlite:///file.db"
        ) from error
    backend = url.get_backend_name()
    if backend not in _DRIVERS:
        raise ConfigError(
            f"{setting} names a database of the kind {backend!r}; write postgresql://… or sqlite:///…"
        )
    if backend == "sqlite" and (url.database or ":memory:").startswith((":memory:", "file:")):
        raise ConfigError(f"{setting} names no file; write sqlite:///file.db")
    return url.set(drivername=_DRIVERS[backend])
