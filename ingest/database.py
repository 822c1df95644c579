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
    backend = text.partition("://")[0].partition("+")[0]
    if _DRIVERS.get(backend, "sqlite") != "sqlite" and text.count("@") > 1:
        # What stands between the two would be taken for a part of the host, and shown as one.
        raise ConfigError(
            f"{setting} has more than one @; write the password, and whatever else is not the address's own, "
            "percent-encoded: %40 for @, %3A for :, %2F for /"
        )
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The cause would show a part of the address.
        raise ConfigError(
            f"{setting} cannot be read as an address; write it like postgresql://user@host:5432/name or sqlite:///file.db, a "
            "password percent-encoded"
        ) from None
    backend = url.get_backend_name()
    if backend not in _DRIVERS:
        raise ConfigError(
            f"{setting} names a database of the kind {backend!r}; write postgresql://… or sqlite:///…"
        )
    if backend == "sqlite" and (url.database or ":memory:").startswith((":memory:", "file:")):
        raise ConfigError(f"{setting} names no file; write sqlite:///file.db")
    return url.set(drivername=_DRIVERS[backend])


def shown(url: URL) -> str:
    """Return an address without its passwords, one among its parameters too."""
    return url.difference_update_query(["password", "sslpassword"]).render_as_string()
