"""How tests write to an index of any backend and search it."""

from __future__ import annotations

import time
from typing import Any

from ingest.index import Writable
from ingest.index.sqlite import identity
from ingest.types import Arm, Chunk, Document, Rankings, Where
from tests.fakes import HashingEmbedder

ARMS: tuple[Arm, ...] = ("lexical", "dense", "codes")
EMBEDDER = HashingEmbedder()
IDENTITY = identity(EMBEDDER.name, EMBEDDER.dimensions, "1")
MEMBERS = Where(readers=frozenset({"members"}))


def write(
    index: Writable, uri: str, *texts: str, title: str = "Page", revision: str = "1", **fields: Any
) -> list[Chunk]:
    """Write a document of one chunk a text; `fields` are those that a document and its chunks share."""
    headings, rules = fields.pop("headings", ()), fields.pop("rules", ())
    document = Document(uri, uri.partition(":")[0], revision, title, "\n".join(texts), f"/{uri}", **fields)
    chunks = [
        Chunk(
            *(f"{uri}#{i}", uri, i, title, headings, f"{title}\n{text}"),
            link=document.link,
            rules=rules,
            **fields,
        )
        for i, text in enumerate(texts)
    ]
    index.replace(document, chunks, EMBEDDER.embed([chunk.text for chunk in chunks]))
    index.flush()
    return chunks


def rank(index: Any, query: str, where: Where = MEMBERS, k: int = 10, seconds: float = 30) -> Rankings:
    found: Rankings = index.rank(
        query, EMBEDDER.embed([query], "query")[0], k, where, time.monotonic() + seconds
    )
    return found


def ids(rankings: Rankings, arm: Arm) -> list[str]:
    return [scored.chunk.id for scored in rankings.arms[arm]]


def everywhere(rankings: Rankings) -> set[str]:
    return {scored.chunk.id for ranking in rankings.arms.values() for scored in ranking}
