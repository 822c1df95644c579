"""What Elasticsearch holds: the settings and the mapping of a generation, and documents and chunks as its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ingest.index import Vectors
from ingest.index.payload import graded_codes, to_json
from ingest.types import Chunk, Document, DocumentInfo

SCHEMA_VERSION = 2
"""Part of the index's identity: raise it when the mapping or what is written into it changes."""

_MOST_CODE = 1000
"""Characters of a code; a longer one is no code that anybody types."""

Source = dict[str, Any]


def identity(embedder_name: str, dimensions: int, chunker_version: str, language: str) -> str:
    """Return what an index's content depends on besides the documents."""
    return (
        f"{embedder_name}@{dimensions} + chunker {chunker_version} "
        f"+ schema elastic {SCHEMA_VERSION} {language}"
    )


def settings(language: str) -> Source:
    """Return an index's settings; nothing is visible before a refresh, and a single node needs no replica."""
    stemmers = ["possessive", "stems"] if language == "english" else ["stems"]
    return {
        "number_of_shards": 1,
        "auto_expand_replicas": "0-1",
        "refresh_interval": "-1",
        "analysis": {
            "filter": {
                "possessive": {"type": "stemmer", "language": "possessive_english"},
                "stems": {"type": "stemmer", "language": language},
            },
            # Stop words stay in the index: a query leaves them out unless it has no other words.
            "analyzer": {
                "stemmed": {
                    "type": "custom",
                    "tokenizer": "standard",
                    "filter": ["lowercase", *stemmers, "asciifolding"],
                },
                "exact": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "asciifolding"]},
            },
        },
    }


def mappings(index: str, identity: str, dimensions: int, created_at: datetime) -> Source:
    """Return an index's mapping: rows of documents have `source` and `revision`, rows of chunks the rest."""
    keyword = {"type": "keyword"}
    kept = {"type": "keyword", "index": False, "doc_values": False}
    words = {
        "type": "text",
        "analyzer": "stemmed",
        "fields": {"exact": {"type": "text", "analyzer": "exact"}},
    }
    day = {"type": "date", "format": "strict_date"}
    return {
        "dynamic": "strict",
        "_meta": {
            "index": index,
            "identity": identity,
            "dimensions": dimensions,
            "created_at": created_at.isoformat(),
        },
        "properties": {
            "uri": keyword,
            "kind": keyword,
            "readers": keyword,
            "effective": day,
            "superseded": day,
            "payload": kept,
            "source": keyword,
            "revision": kept,
            "versions": {"type": "object", "enabled": False},
            "chunks": {"type": "integer"},
            "id": keyword,
            "version": keyword,
            "facets": keyword,
            "language": keyword,
            "has_rules": {"type": "boolean"},
            "title": words,
            "text": words,
            "codes": {"type": "keyword", "ignore_above": _MOST_CODE},
            "parts": {"type": "keyword", "ignore_above": _MOST_CODE},
            # The default has changed from version to version, so it is named.
            "vector": {
                "type": "dense_vector",
                "dims": dimensions,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": "int8_hnsw", "m": 16, "ef_construction": 100},
            },
        },
    }


def version_of(document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> str:
    """Return a name for this content: the same content, written again, gets the same rows."""
    digest = hashlib.blake2b(document.uri.encode(), digest_size=16)
    for chunk in chunks:
        digest.update(to_json(chunk).encode())
    digest.update(vectors.tobytes())
    return digest.hexdigest()


def record_id(uri: str) -> str:
    """Return the id of a document's row; a uri may be longer than an id."""
    return f"document-{hashlib.blake2b(uri.encode(), digest_size=16).hexdigest()}"


def chunk_ids(versions: Mapping[str, int]) -> list[str]:
    """Return the ids of the chunks of some versions, each with how many it has."""
    return [f"{version}-{position}" for version, count in versions.items() for position in range(count)]


def record(
    document: Document, versions: Mapping[str, int], *, whole: bool, chunks: int, now: datetime
) -> Source:
    """Return a document's row; one that is not `whole` has no revision, so that the next run writes it again."""
    about = {"title": document.title, "link": document.link, "authority": document.authority}
    return {
        "uri": document.uri,
        "source": document.source,
        "revision": document.revision if whole else "",
        "versions": dict(versions),
        "chunks": chunks,
        "payload": json.dumps({**about, "indexed_at": now.isoformat()}, ensure_ascii=False),
        **_filtered(document),
    }


def info(row: Mapping[str, Any]) -> DocumentInfo:
    """Return what a document's row says."""
    about = json.loads(row["payload"])
    effective, superseded = date.fromisoformat(row["effective"]), date.fromisoformat(row["superseded"])
    return DocumentInfo(
        uri=row["uri"],
        source=row["source"],
        title=about["title"],
        link=about["link"],
        kind=row["kind"],
        readers=frozenset(row["readers"]),
        authority=about["authority"],
        effective_from=None if effective == date.min else effective,
        superseded_on=None if superseded == date.max else superseded,
        indexed_at=datetime.fromisoformat(about["indexed_at"]),
        chunks=row["chunks"],
    )


def row(chunk: Chunk, version: str, vector: Sequence[float]) -> str:
    """Return a chunk's row as JSON."""
    graded = graded_codes(f"{chunk.title}\n{chunk.section}\n{chunk.text}")
    source = {
        "uri": chunk.uri,
        "id": chunk.id,
        "version": version,
        "facets": [f"{name}={value}".casefold() for name, value in sorted(chunk.facets.items())],
        "language": chunk.language,
        "has_rules": bool(chunk.rules),
        "title": f"{chunk.title} {' '.join(chunk.headings)}",
        "text": chunk.text,
        "codes": [code for code, whole in graded.items() if whole],
        "parts": [code for code, whole in graded.items() if not whole],
        "payload": to_json(chunk),
        "vector": vector,
        **_filtered(chunk),
    }
    return json.dumps(source, ensure_ascii=False, separators=(",", ":"))


def _filtered(of: Document | Chunk) -> Source:
    return {
        "kind": of.kind,
        "readers": sorted(of.readers),
        "effective": (of.effective_from or date.min).isoformat(),
        "superseded": (of.superseded_on or date.max).isoformat(),
    }
