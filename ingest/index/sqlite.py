"""The embedded index: one SQLite file a generation, FTS5 for words, a table for codes, exact cosine by numpy.

A folder holds `generation-<n>.db` files, `current` and `lock`. `current` names the live generation on its
first line and the ones to roll back to below it; it is the only thing that is ever swapped. A database is
never renamed: a `-wal` that is still there would be replayed onto the other file. Generations that `current` does
not name are left by rollbacks and crashes and are removed by the next rebuild. `lock` is held by whoever
changes `current`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import log1p
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ingest.atoms import stems, words
from ingest.errors import IdentityMismatch, IndexingError
from ingest.index import GenerationInfo, Vectors
from ingest.index.payload import checked, from_json, graded_codes, to_json
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Scored, Where

SCHEMA_VERSION = 2
"""Part of the index's identity: raise it when the tables or what is written into them change."""

MOST_WORDS = 64
"""Words of a query that are searched for: of a longer one, a pasted log file, the rarest."""

_WAIT_SECONDS = 30.0
"""How long a writer waits for another one."""
_CONSIDERED_WORDS = 1000
_COMMON = 1000
_PART_WEIGHT = 0.1
"""Weight of a code that is only a part of a longer one, in the question or in the chunk."""
_OPCODES = 2000
"""Steps of SQLite's machine between two looks at the clock."""
_REBUILD = "run `twohop index --rebuild`"

_log = logging.getLogger(__name__)

_SCHEMA = """
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    uri TEXT PRIMARY KEY, source TEXT NOT NULL, revision TEXT NOT NULL, title TEXT NOT NULL,
    link TEXT NOT NULL, kind TEXT NOT NULL, readers TEXT NOT NULL, authority TEXT NOT NULL,
    effective TEXT, superseded TEXT, indexed_at TEXT NOT NULL, chunks INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX documents_of ON documents (source);
-- Rows are never updated and AUTOINCREMENT never gives a key twice: a key always means the same content.
CREATE TABLE chunks (
    key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    uri TEXT NOT NULL REFERENCES documents (uri) ON DELETE CASCADE, position INTEGER NOT NULL,
    payload TEXT NOT NULL, kind TEXT NOT NULL, facets TEXT NOT NULL, readers TEXT NOT NULL,
    has_rules INTEGER NOT NULL, language TEXT NOT NULL, effective TEXT, superseded TEXT, vector BLOB NOT NULL,
    title TEXT AS (json_extract(payload, '$.title') || ' ' || json_extract(payload, '$.headings')),
    text TEXT AS (json_extract(payload, '$.text'))
);
CREATE INDEX chunks_of ON chunks (uri);
CREATE VIRTUAL TABLE words USING fts5 (
    title, text, content = 'chunks', content_rowid = 'key', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(2.0, 1.0)');
CREATE TABLE codes (
    code TEXT NOT NULL, chunk INTEGER NOT NULL REFERENCES chunks (key) ON DELETE CASCADE,
    whole INTEGER NOT NULL, PRIMARY KEY (code, chunk)
) WITHOUT ROWID;
CREATE INDEX codes_of ON codes (chunk);
INSERT INTO meta VALUES
    ('identity', :identity), ('created_at', :created_at), ('commits', '0'), ('dimensions', '0');
COMMIT;
"""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def identity(embedder_name: str, dimensions: int, chunker_version: str) -> str:
    """Return what an index's content depends on besides the documents, `name@384 + chunker 1 + schema 1`."""
    return f"{embedder_name}@{dimensions} + chunker {chunker_version} + schema {SCHEMA_VERSION}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Keys, vectors and filter columns of one commit, row by row; replaced whole, never changed."""

    commit: int
    keys: Integers
    """Ascending."""
    ids: tuple[str, ...]
    matrix: Vectors
    """Unit vectors."""
    columns: npt.NDArray[np.int64]
    """(rows, 7): audience, kind, facets, has rules, language, first day in force, first day no longer in force."""
    audiences: tuple[frozenset[str], ...]
    kinds: tuple[str, ...]
    facets: tuple[Mapping[str, str], ...]
    languages: tuple[str, ...]

    def allowed(self, where: Where) -> Mask:
        """Tell row by row what `where` lets through: the one filter of all three arms."""
        audience, kind, facets, has_rules, language, effective, superseded = self.columns.T
        wanted = _folded(where.facets)
        mask: Mask = np.isin(audience, [i for i, of in enumerate(self.audiences) if of & where.readers])
        mask &= np.isin(kind, [i for i, of in enumerate(self.kinds) if of == where.kind])
        if wanted:
            mask &= np.isin(facets, [i for i, of in enumerate(self.facets) if wanted.items() <= of.items()])
        if where.rules_only:
            mask &= has_rules == 1
        if where.language:
            mask &= np.isin(language, [i for i, of in enumerate(self.languages) if of == where.language])
        if where.in_force_on:
            day = where.in_force_on.toordinal()
            mask &= (effective <= day) & (day < superseded)
        return mask

    def best(self, rows: Integers, scores: Floats, k: int) -> list[tuple[int, float]]:
        """Return the `k` best as (key, score), by score and then by id."""
        if 0 < k < len(rows):
            keep = scores >= np.partition(scores, -k)[-k]
            rows, scores = rows[keep], scores[keep]
        found = sorted(
            zip(rows.tolist(), scores.tolist(), strict=True), key=lambda of: (-of[1], self.ids[of[0]])
        )
        return [(int(self.keys[row]), score) for row, score in found[:k]]


def _folded(facets: Mapping[str, str]) -> dict[str, str]:
    return {name.casefold(): value.casefold() for name, value in facets.items()}


def _ordinal(day: str | None, without: date) -> int:
    return (date.fromisoformat(day) if day else without).toordinal()


class _Numbered(dict[Any, int]):
    """Number values in the order in which they are first seen."""

    def __missing__(self, value: Any) -> int:
        self[value] = len(self)
        return self[value]


def _load(connection: sqlite3.Connection, commit: int, before: Snapshot | None) -> Snapshot:
    """Read a snapshot inside a transaction; rows that `before` has are taken from it."""
    keys: Integers = np.array(
        [key for (key,) in connection.execute("SELECT key FROM chunks ORDER BY key")], np.int64
    )
    audiences, kinds, facets, languages = _Numbered(), _Numbered(), _Numbered(), _Numbered()
    if before:
        for numbered, values in (
            (audiences, before.audiences),
            (kinds, before.kinds),
            (facets, (tuple(sorted(of.items())) for of in before.facets)),
            (languages, before.languages),
        ):
            for value in values:
                numbered[value]
    known: Mask = np.isin(keys, before.keys, assume_unique=True) if before else np.zeros(len(keys), np.bool_)
    missing = keys[~known]
    select = (
        "SELECT id, vector, readers, kind, facets, has_rules, language, effective, superseded FROM chunks"
    )
    if len(missing) == len(keys):
        rows = connection.execute(f"{select} ORDER BY key")
    else:
        some = json.dumps(missing.tolist())
        rows = connection.execute(
            f"{select} WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key",  # noqa: S608 - constant text, bound values
            (some,),
        )
    new_ids: list[str] = []
    blobs: list[bytes] = []
    new_columns: list[tuple[int, ...]] = []
    for id_, blob, readers, kind, of, has_rules, language, effective, superseded in rows:
        new_ids.append(id_)
        blobs.append(blob)
        new_columns.append(
            (
                audiences[frozenset(json.loads(readers))],
                kinds[kind],
                facets[tuple(sorted(_folded(json.loads(of)).items()))],
                has_rules,
                languages[language],
                _ordinal(effective, date.min),
                _ordinal(superseded, date.max),
            )
        )
    dimensions = len(blobs[0]) // 4 if blobs else before.matrix.shape[1] if before else 0
    fresh = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), dimensions)
    norms = np.linalg.norm(fresh, axis=1, keepdims=True)
    fresh = np.divide(fresh, norms, out=np.zeros_like(fresh), where=norms > 0)
    matrix = np.empty((len(keys), dimensions), np.float32)
    columns = np.empty((len(keys), 7), np.int64)
    matrix[~known] = fresh
    columns[~known] = np.array(new_columns, np.int64).reshape(len(new_columns), 7)
    ids = np.empty(len(keys), object)
    ids[~known] = new_ids
    if before and known.any():
        kept = np.searchsorted(before.keys, keys[known])
        matrix[known] = before.matrix[kept]
        columns[known] = before.columns[kept]
        ids[known] = [before.ids[row] for row in kept.tolist()]
    for array in (keys, matrix, columns):
        array.flags.writeable = False
    return Snapshot(
        commit=commit,
        keys=keys,
        ids=tuple(ids.tolist()),
        matrix=matrix,
        columns=columns,
        audiences=tuple(audiences),
        kinds=tuple(kinds),
        facets=tuple(MappingProxyType(dict(of)) for of in facets),
        languages=tuple(languages),
    )


class _Database:
    """One generation's file, read and written by any thread of any process.

    A connection serves one thread at a time and goes back to a pool; the pool is closed when nobody holds the
    object any more, so that a question which began in an old generation ends there.
    """

    def __init__(self, path: Path, expected: str) -> None:
        self.path = path
        self._pool: list[sqlite3.Connection] = []
        self._close = weakref.finalize(self, _close_all, self._pool)
        self._loading = threading.Lock()
        self._snapshot: Snapshot | None = None
        self.file = _file(path)
        with self.connection() as connection:
            found = dict(connection.execute("SELECT name, value FROM meta"))
        if not {"identity", "created_at"} <= found.keys():
            raise IndexingError(f"{str(path)!r} is not an index of ours; {_REBUILD}")
        self.created_at = datetime.fromisoformat(found["created_at"])
        if found["identity"] != expected:
            raise IdentityMismatch(
                f"the index {str(path)!r} was built with {found['identity']!r}, "
                f"but the settings say {expected!r}; {_REBUILD} or set them back"
            )

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; SQLite's errors become IndexingErrors that name the file."""
        try:
            try:
                connection = self._pool.pop()
            except IndexError:
                connection = _connect(self.path)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._pool.append(connection)
                if not self._close.alive:
                    _close_all(self._pool)
        except sqlite3.Error as error:
            raise _explained(self.path, error) from error

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

    def revisions(self, source: str) -> Mapping[str, str]:
        with self.connection() as connection:
            return dict(
                connection.execute(
                    "SELECT uri, revision FROM documents WHERE source = ?", (source,)
                ).fetchall()
            )

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors, now: datetime) -> None:
        rows = checked(document, chunks, vectors)
        readers = json.dumps(sorted(document.readers), ensure_ascii=False)
        graded = [graded_codes(f"{chunk.title}\n{chunk.section}\n{chunk.text}") for chunk in chunks]
        with self.writing() as connection:
            _remove(connection, document.uri)
            if chunks:
                _check_dimensions(connection, document.uri, rows.shape[1])
            connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    document.uri,
                    document.source,
                    document.revision,
                    document.title,
                    document.link,
                    document.kind,
                    readers,
                    document.authority,
                    _iso(document.effective_from),
                    _iso(document.superseded_on),
                    now.isoformat(),
                    len(chunks),
                ),
            )
            for chunk, row, held in zip(chunks, rows, graded, strict=True):
                key = connection.execute(
                    "INSERT INTO chunks (id, uri, position, payload, kind, facets, readers, has_rules,"
                    " language, effective, superseded, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        chunk.id,
                        chunk.uri,
                        chunk.position,
                        to_json(chunk),
                        chunk.kind,
                        json.dumps(dict(chunk.facets), ensure_ascii=False),
                        json.dumps(sorted(chunk.readers), ensure_ascii=False),
                        bool(chunk.rules),
                        chunk.language,
                        _iso(chunk.effective_from),
                        _iso(chunk.superseded_on),
                        row.tobytes(),
                    ),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO codes VALUES (?, ?, ?)", [(code, key, whole) for code, whole in held.items()]
                )
            connection.execute(
                "INSERT INTO words (rowid, title, text) SELECT key, title, text FROM chunks WHERE uri = ?",
                (document.uri,),
            )

    def delete(self, uri: str) -> None:
        with self.writing() as connection:
            _remove(connection, uri)

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        with self.connection() as connection:
            rows = connection.execute(
                "SELECT uri, source, title, link, kind, readers, authority, effective, superseded,"
                " indexed_at, chunks FROM documents WHERE kind = ?",
                (where.kind,),
            ).fetchall()
        found = [
            DocumentInfo(
                *(uri, source, title, link, kind, frozenset(json.loads(readers)), authority),
                *(_day(since), _day(until), datetime.fromisoformat(indexed_at), chunks),
            )
            for uri, source, title, link, kind, readers, authority, since, until, indexed_at, chunks in rows
        ]
        return tuple(
            sorted(
                (
                    info
                    for info in found
                    if info.readers & where.readers and _in_force(info, where.in_force_on)
                ),
                key=lambda info: (info.title.casefold(), info.uri),
            )
        )

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Rank in one read transaction: every arm, the filter and the chunks are those of one commit."""
        query = query.encode("utf-8", "replace").decode()
        arms: list[Arm] = ["lexical", "codes"] if vector is None else ["lexical", "dense", "codes"]
        found: dict[Arm, list[tuple[int, float]]] = {}
        failed: dict[Arm, str] = {}
        seconds: dict[Arm, float] = {}
        with self.connection() as connection:
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
                                rows, scores = _lexical(connection, snapshot, query)
                            case "codes":
                                rows, scores = _codes(connection, snapshot, query)
                            case _:
                                rows, scores = _dense(snapshot, vector, mask)
                        found[arm] = snapshot.best(rows[mask[rows]], scores[mask[rows]], k)
                    except (sqlite3.Error, ValueError) as error:
                        late = time.monotonic() >= deadline
                        failed[arm] = "late: stopped at the deadline" if late else str(error)
                    seconds[arm] = time.perf_counter() - began
            finally:
                connection.set_progress_handler(None, 0)
            chunks = _chunks(connection, {key for ranking in found.values() for key, _ in ranking})
        return Rankings(
            {arm: tuple(Scored(chunks[key], score) for key, score in of) for arm, of in found.items()},
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
        if not self._loading.acquire(timeout=max(0.0, min(deadline - time.monotonic(), _WAIT_SECONDS))):
            return None
        try:
            snapshot = self._snapshot
            if snapshot is None or snapshot.commit != commit:
                newest = snapshot
                snapshot = _load(connection, commit, newest)
                if newest is None or newest.commit < commit:
                    self._snapshot = snapshot
            return snapshot
        finally:
            self._loading.release()


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a database that exists (`rw`) or a new one (`rwc`); no missing file is created by accident."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_WAIT_SECONDS,
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


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _explained(path: Path, error: sqlite3.Error) -> IndexingError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return IndexingError(
            f"the index {str(path)!r} is being written by another process; try again when it is done"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return IndexingError(
            f"the index {str(path)!r} cannot be used ({error}); check the disk and its rights, or {_REBUILD}"
        )
    return IndexingError(f"{str(path)!r} is damaged or is not an index of ours ({error}); {_REBUILD}")


def _check_dimensions(connection: sqlite3.Connection, uri: str, dimensions: int) -> None:
    """Refuse a vector of another length than those that are there."""
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'dimensions' AND value = '0'", (str(dimensions),)
    )
    (stored,) = connection.execute("SELECT value FROM meta WHERE name = 'dimensions'").fetchone()
    if int(stored) != dimensions:
        raise IndexingError(
            f"document {uri!r} has vectors of {dimensions} dimensions, the index holds {stored}; {_REBUILD}"
        )


def _remove(connection: sqlite3.Connection, uri: str) -> None:
    """Take a document out of every table; the words go first, because FTS5 needs the text that it indexed."""
    connection.execute(
        "INSERT INTO words (words, rowid, title, text)"
        " SELECT 'delete', key, title, text FROM chunks WHERE uri = ?",
        (uri,),
    )
    connection.execute("DELETE FROM documents WHERE uri = ?", (uri,))


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _in_force(info: DocumentInfo, day: date | None) -> bool:
    return day is None or (info.effective_from or date.min) <= day < (info.superseded_on or date.max)


def _rows(snapshot: Snapshot, keys: Sequence[int]) -> Integers:
    """Return the snapshot's rows of keys of the same commit."""
    return np.searchsorted(snapshot.keys, np.array(keys, np.int64)).astype(np.int64)


def _lexical(connection: sqlite3.Connection, snapshot: Snapshot, query: str) -> tuple[Integers, Floats]:
    """Rank by BM25, the title twice as heavy as the text (Robertson and Zaragoza 2009, as in FTS5)."""
    said = dict.fromkeys(words(query))
    wanted = [word for word in said if stems(word)] or list(said)
    if len(wanted) > MOST_WORDS:
        wanted = _rarest(connection, wanted)
    if not wanted:
        return np.zeros(0, np.int64), np.zeros(0)
    # The rank of FTS5 is the negative BM25: the smaller, the better.
    found = connection.execute(
        "SELECT rowid, rank FROM words WHERE words MATCH ?", (_match(wanted),)
    ).fetchall()
    scores = -np.array([rank for _, rank in found], np.float64)
    return _rows(snapshot, [key for key, _ in found]), scores


def _match(wanted: Sequence[str]) -> str:
    """Return an FTS5 expression in which every word is a quoted string and nothing is syntax."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in wanted)


def _rarest(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[str]:
    """Return the words that the fewest chunks hold, of those that any holds."""
    frequencies: dict[str, int] = {}
    for word in wanted[:_CONSIDERED_WORDS]:
        (count,) = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
            (_match([word]), _COMMON),
        ).fetchone()
        if count:
            frequencies[word] = count
    return sorted(frequencies, key=frequencies.__getitem__)[:MOST_WORDS]


def _dense(
    snapshot: Snapshot, vector: Sequence[float] | Vectors | None, mask: Mask
) -> tuple[Integers, Floats]:
    """Rank by the exact cosine; six digits, because the last ones depend on where a row lies in memory."""
    asked = np.asarray(vector, np.float32).reshape(-1)
    rows: Integers = np.flatnonzero(mask)
    if not len(rows):
        return rows, np.zeros(0)
    if len(asked) != snapshot.matrix.shape[1]:
        raise ValueError(
            f"the query has {len(asked)} dimensions, the index holds {snapshot.matrix.shape[1]}; {_REBUILD}"
        )
    norm = float(np.linalg.norm(asked))
    if not np.isfinite(norm) or not norm:
        raise ValueError("the query's vector is zero or not finite; check the embedding model")
    scores = (snapshot.matrix @ (asked / norm)).astype(np.float64)
    return rows, np.round(scores[rows], 6)


def _codes(connection: sqlite3.Connection, snapshot: Snapshot, query: str) -> tuple[Integers, Floats]:
    """Rank by the codes of the query that a chunk holds, the rarer the heavier, whole ones above parts."""
    asked = graded_codes(query)
    if not asked:
        return np.zeros(0, np.int64), np.zeros(0)
    scores = np.zeros(len(snapshot.keys))
    for code, stands_alone in asked.items():
        held = connection.execute("SELECT chunk, whole FROM codes WHERE code = ?", (code,)).fetchall()
        if held:
            whole = np.array([alone for _, alone in held], np.bool_) & stands_alone
            rarity = log1p(len(scores) / len(held))
            scores[_rows(snapshot, [key for key, _ in held])] += np.where(
                whole, rarity, _PART_WEIGHT * rarity
            )
    found: Integers = np.flatnonzero(scores)
    return found, np.round(scores[found], 9)


def _chunks(connection: sqlite3.Connection, keys: Collection[int]) -> dict[int, Chunk]:
    return {
        key: from_json(payload)
        for key, payload in connection.execute(
            "SELECT key, payload FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(list(keys)),),
        )
    }


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteIndex:
    """SearchIndex in a folder of this machine; any number of threads and processes may use it at once.

    `for_rebuild` opens without looking at what is there, so that an index of another identity or a damaged
    one can be rebuilt. `keep` generations are kept to roll back to. Raises IdentityMismatch and IndexingError.
    """

    def __init__(
        self,
        folder: Path,
        identity: str,
        *,
        for_rebuild: bool = False,
        keep: int = 2,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._folder = folder
        self._identity = identity
        self._keep = keep
        self._clock = clock
        self._lock = threading.Lock()
        self._database: _Database | None = None
        self._foreign = ("", 0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexingError(
                f"the index folder {str(folder)!r} cannot be made ({error}); choose another place"
            ) from error
        if not (folder / "current").exists():
            self._begin()
        if not for_rebuild:
            self._live()

    @property
    def identity(self) -> str:
        """What the index was opened with."""
        return self._identity

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source."""
        return self._live().revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors in one transaction."""
        self._live().replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks."""
        self._live().delete(uri)

    def flush(self) -> None:
        """Do nothing: a committed document is visible to the next `rank`, in every process."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings, at most `k` each, best first."""
        return self._readable().rank(query, vector, k, where, deadline)

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return the documents of `where.kind` that these readers may read, in force if asked, by title."""
        return self._readable().documents(where)

    def rebuild(self) -> SqliteGeneration:
        """Start a new generation; raises IndexingError while another rebuild runs, in any process."""
        lock = self._locked(
            0.0, "another rebuild is running; wait until it is done, or stop it, and try again"
        )
        try:
            number = self._unused()
            self._sweep()
            database = self._create(number)
        except BaseException:
            lock.close()
            raise
        return SqliteGeneration(self._folder, database, lock, self._keep, self._clock)

    def generations(self) -> tuple[GenerationInfo, ...]:
        """Return the live generation and those to roll back to, newest first."""
        names = _names(self._folder)
        found = [
            GenerationInfo(name.removesuffix(".db"), created, name == names[0])
            for name in names
            if (created := _created_at(self._folder / name))
        ]
        return tuple(sorted(found, key=lambda info: _number(info.name), reverse=True))

    def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again; the next rebuild removes what was live."""
        lock = self._locked(0.0, "a rebuild is running; stop it first, then roll back")
        try:
            live, *older = _names(self._folder)
            if not older:
                raise IndexingError(
                    f"there is no generation before {live!r} in {str(self._folder)!r}; {_REBUILD} instead"
                )
            database = _Database(self._folder / older[0], self._identity)
            database.close()
            _point(self._folder, older)
        finally:
            lock.close()
        return GenerationInfo(older[0].removesuffix(".db"), database.created_at, True)

    def sweep(self) -> tuple[str, ...]:
        """Remove the generations that the pointer does not name; nothing while a rebuild is under way."""
        try:
            lock = self._locked(0.0, "a rebuild is running")
        except IndexingError:
            return ()
        try:
            return self._sweep()
        finally:
            lock.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            database, self._database = self._database, None
        if database:
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def _live(self) -> _Database:
        """Return the generation that the pointer names now; who still holds another one may finish there."""
        with self._lock:
            name = _names(self._folder)[0]
            if self._database is None or self._database.file != _file(self._folder / name):
                try:
                    self._database = _Database(self._folder / name, self._identity)
                except IndexingError:
                    # Rebuilds may have been published, and this file removed, since the pointer was read.
                    newer = _names(self._folder)[0]
                    if newer == name:
                        raise
                    self._database = _Database(self._folder / newer, self._identity)
            return self._database

    def _readable(self) -> _Database:
        """Return the live generation, or the one before where the live one was rebuilt for other settings than ours.

        Whoever was started with another embedding model goes on answering from what it has until it is started anew.
        """
        held = self._database
        if held is not None and _file(self._folder / _names(self._folder)[0]) == self._foreign:
            return held
        try:
            return self._live()
        except IdentityMismatch as error:
            if held is None:
                raise
            self._foreign = _file(self._folder / _names(self._folder)[0])
            _log.warning("answering from %s: %s", held.path.name, error)
            return held

    def _begin(self) -> None:
        """Make the first, empty generation, unless another process does."""
        lock = self._locked(_WAIT_SECONDS, "another process is making the index; try again when it is done")
        try:
            if not (self._folder / "current").exists():
                database = self._create(self._unused())
                database.close()
                _point(self._folder, [database.path.name])
        finally:
            lock.close()

    def _unused(self) -> int:
        return max((_number(path.name) for path in self._folder.glob("generation-*.db*")), default=0) + 1

    def _create(self, number: int) -> _Database:
        """Make an empty generation; called with the lock held."""
        path = self._folder / f"generation-{number}.db"
        try:
            with contextlib.closing(_connect(path, "rwc")) as connection:
                for statement in _SCHEMA.split(";\n"):
                    values = {"identity": self._identity, "created_at": self._clock().isoformat()}
                    connection.execute(statement, values if ":identity" in statement else ())
        except sqlite3.Error as error:
            raise _explained(path, error) from error
        return _Database(path, self._identity)

    def _locked(self, seconds: float, otherwise: str) -> sqlite3.Connection:
        """Take the folder's lock until the connection is closed or the process ends."""
        path = self._folder / "lock"
        try:
            connection = sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise _explained(path, error) from error
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            connection.close()
            if (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_BUSY"):
                raise IndexingError(f"{str(self._folder)!r}: {otherwise}") from error
            raise _explained(path, error) from error
        return connection

    def _sweep(self) -> tuple[str, ...]:
        """Remove the generations that the pointer does not name and return them; called with the lock held."""
        try:
            named = set(_names(self._folder))
        except IndexingError:
            return ()
        orphans = [path for path in self._folder.glob("generation-*.db") if path.name not in named]
        for path in orphans:
            _unlink(path)
        return tuple(path.stem for path in orphans)


class SqliteGeneration:
    """A generation beside the live one; whoever holds it is the only one who rebuilds."""

    def __init__(
        self,
        folder: Path,
        database: _Database,
        lock: sqlite3.Connection,
        keep: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._folder = folder
        self._database = database
        self._held = lock
        self._keep = keep
        self._clock = clock

    @property
    def name(self) -> str:
        """Name as in `GenerationInfo`."""
        return self._database.path.stem

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source."""
        return self._database.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors in one transaction."""
        self._database.replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks."""
        self._database.delete(uri)

    def flush(self) -> None:
        """Do nothing: a committed document is visible to the next `rank`."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Search the generation before anybody else can, to check it."""
        return self._database.rank(query, vector, k, where, deadline)

    def publish(self) -> None:
        """Check the file and make it the live generation; a damaged one raises IndexingError."""
        path = self._database.path
        with self._database.connection() as connection:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
            (found,) = connection.execute("PRAGMA integrity_check").fetchone()
            if found != "ok":
                raise IndexingError(
                    f"the new generation {str(path)!r} is damaged ({found}); {_REBUILD} again"
                )
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        try:
            before = _names(self._folder)
        except IndexingError:
            before = []
        _point(self._folder, [path.name, *before[: self._keep]])
        for name in before[self._keep :]:
            _unlink(self._folder / name)
        self._held.close()

    def discard(self) -> None:
        """Remove the file; harmless after `publish`."""
        path = self._database.path
        self._database.close()
        with contextlib.suppress(IndexingError):
            if path.name in _names(self._folder):
                return
        _unlink(path)
        self._held.close()


def _file(path: Path) -> tuple[str, int]:
    """Tell one generation's file from another, even where a later one got the name of a removed one."""
    try:
        return path.name, path.stat().st_ino
    except OSError:
        return path.name, 0


def _number(name: str) -> int:
    found = re.match(r"generation-(\d+)", name)
    return int(found[1]) if found else 0


def _names(folder: Path) -> list[str]:
    """Read the pointer: the live generation's file, then those to roll back to."""
    path = folder / "current"
    try:
        names = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise IndexingError(
            f"the index's pointer {str(path)!r} cannot be read ({error}); {_REBUILD}"
        ) from error
    names = [name for name in names if name]
    if not names or not all(re.fullmatch(r"generation-\d+\.db", name) for name in names):
        raise IndexingError(f"the index's pointer {str(path)!r} is not one of ours; {_REBUILD}")
    return names


def _point(folder: Path, names: Sequence[str]) -> None:
    """Replace the pointer in one step that survives a power cut."""
    temporary = folder / "current.new"
    with temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(f"{name}\n" for name in names))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(folder / "current")
    # A folder cannot be opened, and need not be, on Windows.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _created_at(path: Path) -> datetime | None:
    try:
        with contextlib.closing(_connect(path)) as connection:
            (created,) = connection.execute("SELECT value FROM meta WHERE name = 'created_at'").fetchone()
            return datetime.fromisoformat(created)
    except sqlite3.Error:
        return None


def _unlink(path: Path) -> None:
    """Remove a generation with its log; where an open file cannot be removed, the next rebuild does it."""
    with contextlib.suppress(OSError):
        for suffix in ("-wal", "-shm", ""):
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
