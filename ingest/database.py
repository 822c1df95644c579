"""A database's address, as people write it and as SQLAlchemy opens it, and what is the matter with one that fails."""

from __future__ import annotations

import logging
import sqlite3
from typing import Literal

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ingest.errors import ConfigError

Trouble = Literal["away", "slow", "busy", "full", "rights", "account", "changed", "read-only", "other"]
"""What is the matter: it does not answer; took too long; takes no more connections; its disk is full; the account lacks
a right; the server refuses the account or has no such database; a table or a column is not there; it cannot be written."""

NOT_NOW: frozenset[Trouble] = frozenset({"away", "slow", "busy", "full"})
"""What passes by itself or with the server; the others need somebody who mends a setting, a right or a table."""

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


_SQLITE: dict[int, Trouble] = {
    sqlite3.SQLITE_BUSY: "slow",
    sqlite3.SQLITE_LOCKED: "slow",
    sqlite3.SQLITE_INTERRUPT: "slow",
    sqlite3.SQLITE_CANTOPEN: "away",
    sqlite3.SQLITE_IOERR: "away",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_PERM: "rights",
    sqlite3.SQLITE_READONLY: "read-only",
}
_POSTGRESQL: dict[str, Trouble] = {
    "57014": "slow",
    "55P03": "slow",
    "53100": "full",
    "53": "busy",
    "08": "away",
    "55": "away",
    "57": "away",
    "58": "away",
    "42501": "rights",
    "25006": "read-only",
    "28": "account",
    "3D": "account",
    "3F": "changed",
    "42P01": "changed",
    "42703": "changed",
    "42809": "changed",
}
"""By code, and by class where the code is not named."""
_NOT_READY = ("starting up", "shutting down", "recovery")
_FULL_HOUSE = ("too many", "remaining connection slots")


def trouble(error: SQLAlchemyError) -> Trouble:
    """Tell what is the matter with a database that failed."""
    if isinstance(error, PoolTimeout):
        return "busy"
    if not isinstance(error, DBAPIError):
        return "other"
    said = str(error.orig)
    if isinstance(error.orig, sqlite3.Error):
        if said.startswith(("no such table", "no such column", "unknown database")):
            return "changed"
        # The low byte is the kind of an error.
        return _SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF, "other")
    if state := getattr(error.orig, "sqlstate", None):
        return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2], "other")
    # What happens before a session has no code, only words: the server's own where it refuses.
    if not isinstance(error, OperationalError):
        return "other"
    if any(words in said for words in _FULL_HOUSE):
        return "busy"
    return "account" if "FATAL" in said and not any(words in said for words in _NOT_READY) else "away"


def words(error: SQLAlchemyError) -> str:
    """Return the database's own words on one line, without the statement and what it was asked with."""
    cause = getattr(error, "orig", None) or error
    primary = getattr(getattr(cause, "diag", None), "message_primary", None)
    return " ".join(str(primary or cause).split())


class Outage:
    """Logs that something of a database fails: once, again where what is the matter changes, and when it is over."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        self._log = log
        self._what = what
        self._now: Trouble | None = None

    def failed(self, error: SQLAlchemyError) -> None:
        """Note a failure; one of no known kind is logged with its traceback."""
        kind = trouble(error)
        if kind != self._now:
            self._now = kind
            trace = error if kind == "other" else None
            self._log.error("%s: %s", self._what, words(error), exc_info=trace)

    def over(self) -> None:
        """Note that it works."""
        if self._now is not None:
            self._now = None
            self._log.info("over: %s", self._what)
