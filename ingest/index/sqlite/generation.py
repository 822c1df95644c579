"""One generation's file: documents written whole, or not at all, and searched in one read transaction."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path

from ingest.errors import IdentityMismatch, IndexingError
from ingest.index import Vectors
from ingest.index.payload import checked, from_json
from ingest.index.sqlite import mapping, query
from ingest.index.sqlite.pointer import file_of
from ingest.index.sqlite.query import Snapshot
from ingest.index.sqlite.wire import REBUILD, WAIT_SECONDS, Wire
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Scored, Where

_OPCODES = 2000
"""Steps of SQLite's machine between two looks at the clock."""


class StoredGeneration:
    """One generation's file, read and written by any thread of any process."""

    def __init__(self, path: Path, expected: str) -> None:
        self.path = path
        self._wire = Wire(path)
        self._loading = threading.Lock()
        self._snapshot: Snapshot | None = None
        self.file = file_of(path)
        with self._wire.connection() as connection:
            found = dict(connection.execute("SELECT name, value FROM meta"))
        if not {"identity", "created_at"} <= found.keys():
            raise IndexingError(f"{str(path)!r} is not an index of ours; {REBUILD}")
        self.created_at = datetime.fromisoformat(found["created_at"])
        if found["identity"] != expected:
            raise IdentityMismatch(
                f"the index {str(path)!r} was built with {found['identity']!r}, "
                f"but the settings say {expected!r}; {REBUILD} or set them back"
            )

    def close(self) -> None:
        """Close the connections that nobody uses; the others follow when they are given back."""
        self._wire.close()

    def revisions(self, source: str) -> Mapping[str, str]:
        with self._wire.connection() as connection:
            return dict(
                connection.execute(
                    "SELECT uri, revision FROM documents WHERE source = ?", (source,)
                ).fetchall()
            )

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors, now: datetime) -> None:
        rows = checked(document, chunks, vectors)
        with self._wire.writing() as connection:
            mapping.write(connection, document, chunks, rows, now)

    def delete(self, uri: str) -> None:
        with self._wire.writing() as connection:
            mapping.remove(connection, uri)

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        with self._wire.connection() as connection:
            found = mapping.documents(connection, where.kind)
        readable = [
            info for info in found if info.readers & where.readers and _in_force(info, where.in_force_on)
        ]
        return tuple(sorted(readable, key=lambda info: (info.title.casefold(), info.uri)))

    def optimize(self) -> str:
        """Make the file ready to be read for long, and return why it is damaged, empty where it is not."""
        with self._wire.connection() as connection:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
            (found,) = connection.execute("PRAGMA integrity_check").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return "" if found == "ok" else str(found)

    def rank(
        self, text: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Rank in one read transaction: every arm, the filter and the chunks are those of one commit."""
        text = text.encode("utf-8", "replace").decode()
        arms: list[Arm] = ["lexical", "codes"] if vector is None else ["lexical", "dense", "codes"]
        found: dict[Arm, list[tuple[int, float]]] = {}
        failed: dict[Arm, str] = {}
        seconds: dict[Arm, float] = {}
        with self._wire.connection() as connection:
            connection.execute("BEGIN")
            snapshot = self._current(connection, deadline)
            if snapshot is None:
                return Rankings(
                    {}, dict.fromkeys(arms, "late: the index was still being read at the deadline")
                )
            mask = snapshot.allowed(where)
            connection.set_progress_handler(lambda: time.monotonic() >= deadline, _OPCODES)
            try:
                for arm in arms:
                    if time.monotonic() >= deadline:
                        failed[arm] = "late: the deadline passed before it began"
                        continue
                    began = time.perf_counter()
                    try:
                        match arm:
                            case "lexical":
                                rows, scores = query.lexical(connection, snapshot, text)
                            case "codes":
                                rows, scores = query.codes(connection, snapshot, text)
                            case _:
                                rows, scores = query.dense(snapshot, vector, mask)
                        found[arm] = snapshot.best(rows[mask[rows]], scores[mask[rows]], k)
                    except (sqlite3.Error, ValueError) as error:
                        late = time.monotonic() >= deadline
                        failed[arm] = "late: stopped at the deadline" if late else str(error)
                    seconds[arm] = time.perf_counter() - began
            finally:
                connection.set_progress_handler(None, 0)
            held = query.payloads(connection, {key for ranking in found.values() for key, _ in ranking})

        def scored(key: int, score: float) -> Scored:
            id_, payload = held[key]
            return Scored(id_, score, partial(from_json, payload))

        return Rankings(
            {arm: tuple(scored(*place) for place in of) for arm, of in found.items()},
            failed,
            seconds,
        )

    def _current(self, connection: sqlite3.Connection, deadline: float) -> Snapshot | None:
        """Return the snapshot of this transaction's commit; None when another thread reads it too long.

        The counter is read from the database, so that another process's commits are seen too. Who reads a
        snapshot finishes it even beyond the deadline: the next question needs it.
        """
        (commit,) = connection.execute(
            "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'commits'"
        ).fetchone()
        snapshot = self._snapshot
        if snapshot and snapshot.commit == commit:
            return snapshot
        if not self._loading.acquire(timeout=max(0.0, min(deadline - time.monotonic(), WAIT_SECONDS))):
            return None
        try:
            snapshot = self._snapshot
            if snapshot is None or snapshot.commit != commit:
                newest = snapshot
                snapshot = query.load(connection, commit, newest)
                if newest is None or newest.commit < commit:
                    self._snapshot = snapshot
            return snapshot
        finally:
            self._loading.release()


def _in_force(info: DocumentInfo, day: date | None) -> bool:
    return day is None or (info.effective_from or date.min) <= day < (info.superseded_on or date.max)
