"""How tests write to an index of any backend and search it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from elastic_transport.client_utils import DEFAULT
from elasticsearch import Elasticsearch

from bot.config import load
from ingest.config import ElasticsearchSettings
from ingest.embed import Vectors
from ingest.index import Writable
from ingest.index.sqlite import identity
from ingest.types import Arm, Chunk, Document, Rankings, Where
from tests.fakes import HashingEmbedder

ARMS: tuple[Arm, ...] = ("lexical", "dense", "codes")
EMBEDDER = HashingEmbedder()
IDENTITY = identity(EMBEDDER.name, EMBEDDER.dimensions, "1")
MEMBERS = Where(readers=frozenset({"members"}))


class Searchable(Protocol):
    """An index, a generation being built, or one that a backend keeps: whatever ranks."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float, /
    ) -> Rankings: ...


@contextmanager
def cluster(url: str) -> Iterator[tuple[ElasticsearchSettings, Elasticsearch]]:
    """Lend a prefix of one test's own on a cluster, of which nothing is left; keys are those of the environment."""
    names = {name: value for name, value in os.environ.items() if name.startswith("ELASTICSEARCH_")}
    settings = load(None, {**names, "ELASTICSEARCH_URL": url}).elasticsearch
    settings = settings.model_copy(update={"prefix": f"twohop-test-{uuid.uuid4().hex[:12]}"})
    client = Elasticsearch(
        url,
        api_key=settings.api_key.get_secret_value() or None,
        basic_auth=(settings.username, settings.password.get_secret_value()) if settings.username else None,
        ca_certs=str(settings.ca_certs) if settings.ca_certs else DEFAULT,
        ssl_assert_fingerprint=settings.fingerprint or DEFAULT,
    )
    with client:
        yield settings, client
        for name in client.indices.get(index=f"{settings.prefix}-*"):
            client.indices.delete(index=name)


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


def rank(index: Searchable, query: str, where: Where = MEMBERS, k: int = 10, seconds: float = 30) -> Rankings:
    return index.rank(query, EMBEDDER.embed([query], "query")[0], k, where, time.monotonic() + seconds)


def ids(rankings: Rankings, arm: Arm) -> list[str]:
    return [scored.chunk.id for scored in rankings.arms[arm]]


def everywhere(rankings: Rankings) -> set[str]:
    return {scored.chunk.id for ranking in rankings.arms.values() for scored in ranking}
