"""The way to SQLite files: a pool of connections, the folder's lock, and errors that name the file and the next step."""

from __future__ import annotations

import contextlib
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path

from ingest.errors import IndexingError

WAIT_SECONDS = 30.0
"""How long a writer waits for another one."""
REBUILD = "run `twohop index --rebuild`"


class Wire:
    """Connections to one generation's file, for any thread of this process.

    A connection serves one thread at a time and goes back to a pool; the pool is closed when nobody holds the
    object any more, so that a question which began in an old generation ends there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pool: list[sqlite3.Connection] = []
        self._close = weakref.finalize(self, _close_all, self._pool)

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; SQLite's errors become IndexingErrors that name the file."""
        try:
            try:
                connection = self._pool.pop()
            except IndexError:
                connection = connect(self.path)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._pool.append(connection)
                if not self._close.alive:
                    _close_all(self._pool)
        except sqlite3.Error as error:
            raise explained(self.path, error) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside one transaction, committed whole or not at all; wait for other writers."""
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'commits'")
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connections that nobody uses; the others follow when they are given back."""
        self._close()


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a database that exists (`rw`) or a new one (`rwc`); no missing file is created by accident."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def locked(folder: Path, seconds: float, otherwise: str) -> sqlite3.Connection:
    """Take the folder's lock until the connection is closed or the process ends; `otherwise` is what a second one is told."""
    path = folder / "lock"
    try:
        connection = sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise explained(path, error) from error
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        connection.close()
        if (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_BUSY"):
            raise IndexingError(f"{str(folder)!r}: {otherwise}") from error
        raise explained(path, error) from error
    return connection


def explained(path: Path, error: sqlite3.Error) -> IndexingError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return IndexingError(
            f"the index {str(path)!r} is being written by another process; try again when it is done"
        )
    if name.startswith("SQLITE_CANTOPEN") and path.parent.is_dir() and not path.exists():
        return IndexingError(
            f"the index {str(path)!r} is gone; run `twohop index rollback` to answer from an earlier one, if there is one, "
            f"or `twohop index --rebuild`"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return IndexingError(
            f"the index {str(path)!r} cannot be used ({error}); check the disk and its rights, or {REBUILD}"
        )
    return IndexingError(f"{str(path)!r} is damaged or is not an index of ours ({error}); {REBUILD}")


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()
