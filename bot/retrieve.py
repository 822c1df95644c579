"""The retriever: one hybrid search is lexical, dense and codes ranked apart, then fused by rank."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import fsum

from bot.evidence import RRF_K
from ingest.embed import Embedder
from ingest.index import SearchIndex, Vectors
from ingest.types import Arm, Chunk, DocumentInfo, Hit, Rankings, Where

_log = logging.getLogger(__name__)


def fuse(rankings: Mapping[Arm, Sequence[Chunk]], k: int = RRF_K) -> list[Hit]:
    """Fuse by reciprocal rank: score = sum over lists of 1/(k+rank), ranks from 1 in each list.

    A chunk counts once a list, at its best rank; ties are broken by id, so the order of the lists does not matter.
    Cormack, Clarke, Büttcher: "Reciprocal rank fusion outperforms Condorcet" (SIGIR 2009).
    """
    chunks: dict[str, Chunk] = {}
    ranks: dict[str, dict[Arm, int]] = {}
    for arm, ranking in rankings.items():
        unique = {chunk.id: chunk for chunk in reversed(ranking)}
        ordered = dict.fromkeys(chunk.id for chunk in ranking)
        chunks |= unique
        for rank, id_ in enumerate(ordered, start=1):
            ranks.setdefault(id_, {})[arm] = rank
    # fsum: the sum must not depend on the order of the lists
    hits = [Hit(chunks[id_], fsum(1 / (k + rank) for rank in of.values()), of) for id_, of in ranks.items()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.id))


class Retriever:
    """Searches one index with one embedder; synchronous, for the compute executor."""

    def __init__(self, index: SearchIndex, embedder: Embedder, candidates: int = 50) -> None:
        self._index = index
        self._embedder = embedder
        self._candidates = candidates

    def rank(self, query: str, where: Where, deadline: float, k: int | None = None) -> Rankings:
        """Return the separate rankings of one search."""
        vector: Vectors = self._embedder.embed([query], kind="query")[0]
        found = self._index.rank(query, vector, k or self._candidates, where, deadline)
        for arm, reason in found.failed.items():
            _log.warning("the %s arm of a search did not answer: %s", arm, reason)
        return found

    def search(self, query: str, where: Where, k: int, deadline: float) -> list[Hit]:
        """Return the `k` best chunks of one hybrid search."""
        return fused(self.rank(query, where, deadline))[:k]

    def baseline(self, query: str, where: Where, k: int, arms: Collection[Arm], deadline: float) -> list[Hit]:
        """Return the `k` best of documents and tickets in one ranking: what a bot without control would search."""
        found = [self.rank(query, replace(where, kind=kind), deadline).arms for kind in ("doc", "ticket")]
        merged = {
            arm: [
                s.chunk for s in sorted((s for of in found for s in of.get(arm, ())), key=lambda s: -s.score)
            ]
            for arm in arms
        }
        return fuse(merged)[:k]

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return what the index holds for these readers."""
        return self._index.documents(where)


def fused(rankings: Rankings) -> list[Hit]:
    """Fuse the arms of one search."""
    return fuse({arm: [scored.chunk for scored in ranking] for arm, ranking in rankings.arms.items()})
