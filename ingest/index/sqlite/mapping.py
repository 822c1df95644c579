"""What a generation's file holds: its tables, and documents and chunks as their rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import date, datetime

from ingest.errors import IndexingError
from ingest.index import Vectors
from ingest.index.payload import graded_codes, to_json
from ingest.index.sqlite.wire import REBUILD
from ingest.types import Chunk, Document, DocumentInfo, Kind

SCHEMA_VERSION = 2
"""Part of the index's identity: raise it when the tables or what is written into them change."""

SCHEMA = """
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


def identity(embedder_name: str, dimensions: int, chunker_version: str) -> str:
    """Return what an index's content depends on besides the documents, `name@384 + chunker 1 + schema 1`."""
    return f"{embedder_name}@{dimensions} + chunker {chunker_version} + schema {SCHEMA_VERSION}"


def create(connection: sqlite3.Connection, identity: str, created_at: datetime) -> None:
    """Make the tables of an empty generation."""
    for statement in SCHEMA.split(";\n"):
        values = {"identity": identity, "created_at": created_at.isoformat()}
        connection.execute(statement, values if ":identity" in statement else ())


def write(
    connection: sqlite3.Connection,
    document: Document,
    chunks: Sequence[Chunk],
    vectors: Vectors,
    now: datetime,
) -> None:
    """Write a document with its chunks in place of what was there; inside a transaction."""
    remove(connection, document.uri)
    if chunks:
        _check_dimensions(connection, document.uri, vectors.shape[1])
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.uri,
            document.source,
            document.revision,
            document.title,
            document.link,
            document.kind,
            _labels(document.readers),
            document.authority,
            _iso(document.effective_from),
            _iso(document.superseded_on),
            now.isoformat(),
            len(chunks),
        ),
    )
    for chunk, vector in zip(chunks, vectors, strict=True):
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
                _labels(chunk.readers),
                bool(chunk.rules),
                chunk.language,
                _iso(chunk.effective_from),
                _iso(chunk.superseded_on),
                vector.tobytes(),
            ),
        ).lastrowid
        graded = graded_codes(f"{chunk.title}\n{chunk.section}\n{chunk.text}")
        connection.executemany(
            "INSERT INTO codes VALUES (?, ?, ?)", [(code, key, whole) for code, whole in graded.items()]
        )
    connection.execute(
        "INSERT INTO words (rowid, title, text) SELECT key, title, text FROM chunks WHERE uri = ?",
        (document.uri,),
    )


def remove(connection: sqlite3.Connection, uri: str) -> None:
    """Take a document out of every table; the words go first, because FTS5 needs the text that it indexed."""
    connection.execute(
        "INSERT INTO words (words, rowid, title, text)"
        " SELECT 'delete', key, title, text FROM chunks WHERE uri = ?",
        (uri,),
    )
    connection.execute("DELETE FROM documents WHERE uri = ?", (uri,))


def documents(connection: sqlite3.Connection, kind: Kind) -> list[DocumentInfo]:
    """Return what is held of one kind of document, in no order."""
    return [
        DocumentInfo(
            *(uri, source, title, link, kind, frozenset(json.loads(readers)), authority),
            *(_day(since), _day(until), datetime.fromisoformat(indexed_at), chunks),
        )
        for uri, source, title, link, readers, authority, since, until, indexed_at, chunks in connection.execute(
            "SELECT uri, source, title, link, readers, authority, effective, superseded, indexed_at, chunks"
            " FROM documents WHERE kind = ?",
            (kind,),
        )
    ]


def _check_dimensions(connection: sqlite3.Connection, uri: str, dimensions: int) -> None:
    """Refuse a vector of another length than those that are there."""
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'dimensions' AND value = '0'", (str(dimensions),)
    )
    (stored,) = connection.execute("SELECT value FROM meta WHERE name = 'dimensions'").fetchone()
    if int(stored) != dimensions:
        raise IndexingError(
            f"document {uri!r} has vectors of {dimensions} dimensions, the index holds {stored}; {REBUILD}"
        )


def _labels(readers: frozenset[str]) -> str:
    return json.dumps(sorted(readers), ensure_ascii=False)


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
