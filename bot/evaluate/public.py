"""Searches a public set: its documents indexed as any others, its queries asked of the index alone."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from bot.app import Desk, build
from bot.config import Settings
from bot.evaluate.labels import Paper, PublicSet
from bot.evaluate.ranking import measured
from bot.evaluate.record import Searched
from bot.retrieve import fuse
from ingest.config import SourceSettings, TicketSettings
from ingest.embed import Embedder
from ingest.errors import ConfigError
from ingest.sources import Change, Changed, Complete
from ingest.sync import sync
from ingest.types import MEMBERS, Document, Where

_SOURCE = "corpus"
_SECONDS = 60.0
"""For one search."""


def with_distractors(of: PublicSet, more: Sequence[Paper]) -> PublicSet:
    """Return the set with more documents to search among; raises ConfigError where an id is taken."""
    taken = {paper.id for paper in of.papers}
    if both := next((paper.id for paper in more if paper.id in taken), None):
        raise ConfigError(f"{of.name} and its distractors both have a document {both!r}; give one another id")
    return replace(of, papers=(*of.papers, *more))


def search(
    of: PublicSet, settings: Settings, limit: int | None = None, embedder: Embedder | None = None
) -> tuple[Searched, ...]:
    """Index the documents in a temporary folder, ask the first `limit` queries, and measure each arm and their fusion.

    What is ranked are documents, each at its best chunk. Of the settings only those of cutting, embedding and searching hold.
    """
    queries = dict(islice(of.queries.items(), limit))
    with tempfile.TemporaryDirectory(prefix="twohop-eval-") as data:
        alone = {
            "data": Path(data),
            "index": "sqlite",
            "model": "",
            "database_url": "",
            "tickets_database_url": "",
            "sources": SourceSettings(),
            "tickets": TicketSettings(),
        }
        desk = build(settings.model_copy(update=alone), embedder)
        try:
            _index(desk, of.papers)
            ranked = {query: _ranked(desk, text) for query, text in queries.items()}
        finally:
            desk.close()
    relevant = {query: of.relevant[query] for query in queries}
    return tuple(
        Searched(of.name, arm, query, metrics)
        for arm in ("lexical", "dense", "hybrid")
        for query, metrics in measured({q: found[arm] for q, found in ranked.items()}, relevant).items()
    )


def _index(desk: Desk, papers: Sequence[Paper]) -> None:
    held = {f"{_SOURCE}:{paper.id}": paper for paper in papers}

    def read(changed: Changed) -> Document:
        paper = held[changed.uri]
        return Document(
            uri=changed.uri,
            source=_SOURCE,
            revision=changed.revision,
            title=paper.title or paper.id,
            text=paper.text,
            link="",
        )

    report = sync(_Corpus(held), desk.index, desk.embedder, read, desk.settings.chunks, now=datetime.now(UTC))
    if report.skipped:
        uri, reason = report.skipped[0]
        raise ConfigError(f"{uri!r} cannot be indexed ({reason}); mend it, or take it out of corpus.jsonl")


class _Corpus:
    """The documents of a set as a Source."""

    name = _SOURCE

    def __init__(self, papers: Mapping[str, Paper]) -> None:
        self._papers = papers

    def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
        """Yield every document; nothing is known of a new index."""
        del known
        for uri, paper in self._papers.items():
            revision = hashlib.blake2b(f"{paper.title}\n{paper.text}".encode(), digest_size=8).hexdigest()
            yield Changed(uri, revision, paper.text.encode(), "text/markdown", "", paper.id)
        yield Complete()


def _ranked(desk: Desk, text: str) -> dict[str, list[str]]:
    """Return the documents that each arm ranks, and those of their fusion."""
    vector = desk.embedder.embed([text], kind="query")[0]
    where = Where(frozenset({MEMBERS}))
    candidates = desk.settings.retrieval.candidates
    found = desk.index.rank(text, vector, candidates, where, time.monotonic() + _SECONDS)
    chunks = {arm: [scored.chunk for scored in found.arms.get(arm, ())] for arm in ("lexical", "dense")}
    chunks["hybrid"] = [hit.chunk for hit in fuse(found.arms)]
    return {
        arm: list(dict.fromkeys(chunk.uri.removeprefix(f"{_SOURCE}:") for chunk in of))
        for arm, of in chunks.items()
    }
