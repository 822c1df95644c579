"""Both backends rank one corpus alike: 1,000 chunks, the same questions, each arm compared by what it promises."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from bot.bench.corpus import EVERYTHING, FILTERED, Corpus, FakeEmbedder
from ingest.config import ChunkSettings, SourceSettings
from ingest.embed import Vectors
from ingest.index import SearchIndex
from ingest.index.elastic import ElasticIndex
from ingest.index.sqlite import SqliteIndex
from ingest.parse import to_document
from ingest.sources.folder import FolderSource
from ingest.sync import sync
from ingest.types import Arm, Rankings, Scored, Where
from tests.indexes import cluster

pytestmark = pytest.mark.elasticsearch

EMBEDDER = FakeEmbedder()
QUESTIONS = Corpus(1).questions(60)
VECTORS = EMBEDDER.embed(QUESTIONS, kind="query")
PLACES = 50
NEAR = 0.03
"""Of a cosine: what eight bits a dimension leave open; chunks that are nearer to each other than that are a tie."""


@dataclass(frozen=True, slots=True)
class Both:
    """One corpus in both backends, and the exact vectors of its chunks."""

    sqlite: SearchIndex
    elastic: SearchIndex
    vectors: dict[str, Vectors]

    def ranked(self, where: Where) -> Iterator[tuple[Vectors, Rankings, Rankings]]:
        for question, vector in zip(QUESTIONS, VECTORS, strict=True):
            yield (
                vector,
                *(
                    index.rank(question, vector, PLACES, where, time.monotonic() + 60)
                    for index in (self.sqlite, self.elastic)
                ),
            )


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("agree")
    Corpus(1).write(folder / "docs", 1000)
    with cluster(request.config.getoption("--elasticsearch")) as (settings, _):
        sqlite = SqliteIndex(folder / "index", "fake@384")
        elastic = ElasticIndex(settings, "fake@384", EMBEDDER.dimensions)
        with closing(sqlite), closing(elastic):
            for index in (sqlite, elastic):
                fill(index, folder / "docs")
            every = sqlite.rank("", VECTORS[0], 2000, EVERYTHING, time.monotonic() + 60).arms["dense"]
            assert len(every) >= 1000
            exact = EMBEDDER.embed([place.chunk.text for place in every])
            yield Both(sqlite, elastic, {place.id: row for place, row in zip(every, exact, strict=True)})


def fill(index: SearchIndex, folder: Path) -> None:
    sources = SourceSettings(paths=(folder,))
    source = FolderSource(sources)
    report = sync(
        source,
        index,
        EMBEDDER,
        lambda changed: to_document(changed, sources, source.name),
        ChunkSettings(),
        now=datetime(2026, 9, 26, tzinfo=UTC),
    )
    assert not report.skipped


def ids(ranking: Sequence[Scored], k: int = PLACES) -> list[str]:
    return [place.id for place in ranking[:k]]


def overlap(one: Sequence[Scored], other: Sequence[Scored], k: int = 10) -> float:
    return len(set(ids(one, k)) & set(ids(other, k))) / max(1, len(ids(one, k)))


@pytest.mark.parametrize("where", [EVERYTHING, FILTERED], ids=["no filter", "filter"])
def test_by_meaning_the_order_is_the_exact_one_within_what_quantisation_leaves_open(
    both: Both, where: Where
) -> None:
    shared = []
    for vector, exact, found in both.ranked(where):
        mine, theirs = exact.arms["dense"], found.arms["dense"]
        assert len(mine) == len(theirs)
        cosines = [float(np.dot(both.vectors[place.id], vector)) for place in theirs]
        assert all(cosine >= place.score - NEAR for cosine, place in zip(cosines, mine, strict=True)), ids(
            theirs, 3
        )
        shared.append(overlap(mine, theirs))
    print(f"dense, 10 best: {statistics.mean(shared):.3f} shared")  # noqa: T201 - the report of the comparison
    assert statistics.mean(shared) >= 0.9


@pytest.mark.parametrize("where", [EVERYTHING, FILTERED], ids=["no filter", "filter"])
def test_by_codes_the_same_chunks_are_found_and_whole_codes_stand_first(both: Both, where: Where) -> None:
    compared = 0
    for _, exact, found in both.ranked(where):
        mine, theirs = exact.arms["codes"], found.arms["codes"]
        if len(mine) < PLACES:
            assert set(ids(mine)) == set(ids(theirs))
        first = [place.id for place in mine if place.score == mine[0].score] if mine else []
        assert set(ids(theirs, len(first))) == set(first)
        compared += bool(mine)
    assert compared >= 5


@pytest.mark.parametrize("where", [EVERYTHING, FILTERED], ids=["no filter", "filter"])
def test_by_words_most_of_the_best_are_shared(both: Both, where: Where) -> None:
    """Both are BM25 with Porter's stems, but no more alike than that.

    FTS5 counts a word in title and text as one and weighs it once; Elasticsearch adds up fields that each have their own
    rarity, and those of unstemmed words besides.
    """
    arm: Arm = "lexical"
    shared = [overlap(exact.arms[arm], found.arms[arm]) for _, exact, found in both.ranked(where)]
    print(f"lexical, 10 best: {statistics.mean(shared):.3f} shared")  # noqa: T201 - the report of the comparison
    assert statistics.mean(shared) >= 0.4
