"""The retriever: one hybrid search is lexical, dense and codes ranked apart, fused by rank, and what of it is missing."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf
from threading import Lock

import numpy as np

from bot.evidence import RRF_K
from ingest.embed import Embedder, TextKind, Vectors
from ingest.errors import IndexingError
from ingest.index import MOST_WORDS, SearchIndex
from ingest.types import Arm, DocumentInfo, Hit, Rankings, Scored, Where
from ingest.words import words

_SHARE = 1 / 3
"""Part of a question's remaining time that one search may take: an index that hangs must leave time to answer without it."""
_BY: Mapping[Arm, str] = {"lexical": "by words", "dense": "by meaning", "codes": "by codes"}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What one search found, best first, and what of it is missing."""

    hits: Sequence[Hit]
    failed: Mapping[Arm, str] = field(default_factory=dict)
    """Arms that did not answer, and why."""
    whole: bool = True
    """No arm is missing, or one that answered came to its end: nothing that shares a word with the query was left out."""

    @property
    def down(self) -> bool:
        """True where nothing answered; a query without codes is no answer of the codes."""
        return not self.hits and {"lexical", "dense"} <= self.failed.keys()


class Searches:
    """The searches of one turn, and in words for the asker what they lacked."""

    def __init__(self) -> None:
        self._all: list[Found] = []

    def add(self, found: Found) -> None:
        """Keep one search."""
        self._all.append(found)

    @property
    def stopped(self) -> Found | None:
        """The search that was down, if any: the next one would be waited for in vain, too."""
        return next((found for found in self._all if found.down), None)

    @property
    def down(self) -> bool:
        """True where every search of the turn was down."""
        return bool(self._all) and all(found.down for found in self._all)

    @property
    def lack(self) -> str:
        """What did not answer, as the beginning of a sentence; empty where everything did."""
        failed = self._failed()
        if not failed:
            return ""
        if self.down:
            return "The documents could not be searched"
        return (
            f"Search {_both(failed)} did not answer" if len(failed) < len(_BY) else "A search did not answer"
        )

    @property
    def note(self) -> str:
        """What stands beside an answer: one sentence, or nothing where the searches were whole."""
        if not self.lack:
            return ""
        failed = self._failed()
        if self.down:
            rest = "so that this rests on the tickets alone"
        elif len(failed) < len(_BY):
            rest = f"so that this rests on search {_both(set(_BY) - failed)} alone"
        else:
            rest = "so that something may be missing here"
        return f"{self.lack}, {rest}."

    def _failed(self) -> set[Arm]:
        return {arm for found in self._all for arm in found.failed}


def _both(arms: Collection[Arm]) -> str:
    return " and ".join(by for arm, by in _BY.items() if arm in arms)


class Remembered:
    """An Embedder that keeps its latest vectors: a turn puts the same text to several readers, and many turns quote the
    same sentences. `most` vectors are kept, 1.5 kB each with 384 dimensions."""

    def __init__(self, embedder: Embedder, most: int = 8192) -> None:
        self._embedder = embedder
        self._most = most
        self._held: OrderedDict[tuple[TextKind, str], Vectors] = OrderedDict()
        self._lock = Lock()
        self.count = embedder.count

    @property
    def name(self) -> str:
        """Name of the embedder behind it."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        """Most tokens that the model sees."""
        return self._embedder.max_tokens

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """Return a unit vector for each text, in their order; only those that are not kept are embedded."""
        if not texts:
            return self._embedder.embed(texts, kind)
        wanted = dict.fromkeys(texts)
        with self._lock:
            found = {text: self._held[kind, text] for text in wanted if (kind, text) in self._held}
        if missing := [text for text in wanted if text not in found]:
            found |= zip(missing, self._embedder.embed(missing, kind), strict=True)
        with self._lock:
            for text in wanted:
                self._held[kind, text] = found[text]
                self._held.move_to_end((kind, text))
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return np.stack([found[text] for text in texts])

    def forget(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._held.clear()


def fuse(rankings: Mapping[Arm, Sequence[Scored]], most: int | None = None, k: int = RRF_K) -> list[Hit]:
    """Fuse by reciprocal rank: score = sum over lists of 1/(k+rank), ranks from 1 in each list; return the `most` best.

    A chunk counts once a list, at its best rank; ties are broken by id, so the order of the lists does not matter.
    Cormack, Clarke, Büttcher: "Reciprocal rank fusion outperforms Condorcet" (SIGIR 2009).
    """
    places: dict[str, Scored] = {}
    ranks: dict[str, dict[Arm, int]] = {}
    for arm, ranking in rankings.items():
        rank = 0
        for scored in ranking:
            places.setdefault(scored.id, scored)
            of = ranks.setdefault(scored.id, {})
            if arm not in of:
                rank += 1
                of[arm] = rank
    # fsum: the sum must not depend on the order of the lists
    best = sorted((-fsum([1 / (k + rank) for rank in of.values()]), id_) for id_, of in ranks.items())[:most]
    return [Hit(places[id_].chunk, -score, ranks[id_]) for score, id_ in best]


class Retriever:
    """Searches one index with one embedder; synchronous, for the compute executor."""

    def __init__(
        self, index: SearchIndex, embedder: Embedder, candidates: int = 50, seconds: float = inf
    ) -> None:
        """Search with `candidates` places an arm, for at most `seconds` a search."""
        self._seconds = seconds
        self._index = index
        self._embedder = embedder
        self._candidates = candidates
        self.down = False
        """True while what was asked of the index last was not answered at all."""

    def search(
        self, query: str, where: Where, k: int, deadline: float, *, candidates: int | None = None
    ) -> Found:
        """Return the `k` best chunks of one hybrid search; an index that cannot be used is a search that is down."""
        places = candidates or self._candidates
        found = self._rank(query, where, deadline, places)
        # By meaning everything that passes the filter has a place, by words what shares one with a query that is not cut.
        ends = {arm: len(ranking) < places for arm, ranking in found.arms.items()}
        ended = ends.get("dense") or (ends.get("lexical") and len(set(words(query))) <= MOST_WORDS)
        result = Found(fuse(found.arms, k), found.failed, bool(ended or not found.failed))
        self.down = result.down
        return result

    def baseline(self, query: str, where: Where, k: int, arms: Collection[Arm], deadline: float) -> Found:
        """Return the `k` best of documents and tickets in one ranking: what a bot without control would search."""
        found = [
            self._rank(query, replace(where, kind=kind), deadline, self._candidates)
            for kind in ("doc", "ticket")
        ]
        merged = {
            arm: [*sorted((s for of in found for s in of.arms.get(arm, ())), key=lambda s: -s.score)]
            for arm in arms
        }
        failed = {arm: why for of in found for arm, why in of.failed.items() if arm in arms}
        return Found(fuse(merged, k), failed, not failed)

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return what the index holds for these readers; raises IndexingError where it does not answer."""
        try:
            found = self._index.documents(where)
        except IndexingError:
            self.down = True
            raise
        self.down = False
        return found

    def _rank(self, query: str, where: Where, deadline: float, k: int) -> Rankings:
        vector: Vectors = self._embedder.embed([query], kind="query")[0]
        now = time.monotonic()
        try:
            seconds = min((deadline - now) * _SHARE, self._seconds)
            found = self._index.rank(query, vector, k, where, now + seconds)
        except IndexingError as error:
            found = Rankings({}, dict.fromkeys(_BY, str(error)))
        if found.failed:
            arms, reasons = ", ".join(found.failed), "; ".join(dict.fromkeys(found.failed.values()))
            _log.warning("a search was not answered by %s: %s", arms, reasons)
        return found
