"""Fusion by rank: what the score is, what it does not depend on, and what the published merge gets wrong."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

import bot
from bot.app import Desk
from bot.evidence import RRF_K
from bot.retrieve import fuse
from ingest.types import Arm, Chunk, Hit, Scored, Where


def chunk(name: str) -> Chunk:
    return Chunk(
        id=name, uri=name.partition("#")[0], position=0, title=name, headings=(), text=f"{name}\nbody"
    )


def listed(*names: str) -> list[Scored]:
    return [Scored(name, 1.0, partial(chunk, name)) for name in names]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.id for hit in hits]


def rrf_merge(dense: Sequence[str], lexical: Sequence[str], k: int = 60) -> list[str]:
    """Merge as the published bot does: ranks counted over the lists laid end to end."""
    scores: dict[str, float] = {}
    for rank, name in enumerate([*lexical, *dense]):
        scores[name] = scores.get(name, 0.0) + 1 / (k + rank + 1)
    return sorted(scores, key=lambda name: -scores[name])


def test_rank_restarts_at_one_in_each_list() -> None:
    hits = fuse({"lexical": listed("a", "b", "c", "d"), "dense": listed("w", "x", "y", "z")})
    scores = {hit.chunk.id: hit.score for hit in hits}
    assert scores["a"] == scores["w"] == 1 / 61
    assert scores["d"] == scores["z"] == 1 / 64
    assert [dict(hit.ranks) for hit in hits if hit.chunk.id in ("d", "w")] == [{"dense": 1}, {"lexical": 4}]


def test_a_document_in_two_lists_has_the_sum() -> None:
    (hit,) = fuse({"lexical": listed("a"), "dense": listed("a")})
    assert Fraction(hit.score).limit_denominator(1000) == Fraction(2, 61)
    assert dict(hit.ranks) == {"lexical": 1, "dense": 1}


def test_good_in_both_lists_beats_first_in_one() -> None:
    hits = fuse({"lexical": listed("first", "b", "both"), "dense": listed("c", "d", "e", "f", "both")})
    assert ids(hits)[0] == "both"


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_lists_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"d{i}" for i in range(30)]
    lists: list[tuple[Arm, list[Scored]]] = [
        (arm, listed(*chance.sample(names, 20))) for arm in ("lexical", "dense", "codes")
    ]
    once = fuse(dict(lists))
    assert len(once) > 20
    for _ in range(5):
        chance.shuffle(lists)
        again = fuse(dict(lists))
        assert ids(again) == ids(once)
        assert [hit.score for hit in again] == [hit.score for hit in once]


def test_exchanging_two_lists_changes_nothing() -> None:
    one, two = listed("a", "b", "c"), listed("c", "d")
    assert ids(fuse({"lexical": one, "dense": two})) == ids(fuse({"lexical": two, "dense": one}))


def test_a_duplicate_counts_once_at_its_best_rank() -> None:
    hits = fuse({"lexical": listed("a", "b", "a", "a", "c")})
    assert ids(hits) == ["a", "b", "c"]
    assert [hit.score for hit in hits] == [1 / 61, 1 / 62, 1 / 63]


def test_empty_lists_bring_nothing() -> None:
    assert fuse({}) == []
    assert fuse({"lexical": [], "dense": []}) == []


def test_one_list_keeps_its_order() -> None:
    assert ids(fuse({"dense": listed("z", "m", "a")})) == ["z", "m", "a"]
    assert ids(fuse({"dense": listed("z", "m", "a"), "lexical": []})) == ["z", "m", "a"]


def test_ties_are_broken_by_id() -> None:
    assert ids(fuse({"lexical": listed("z"), "dense": listed("a"), "codes": listed("m")})) == ["a", "m", "z"]


def test_the_published_merge_buries_the_dense_winner() -> None:
    lexical, dense = [f"l{i}" for i in range(50)], [f"d{i}" for i in range(50)]
    assert rrf_merge(dense, lexical).index("d0") == 50, "the 51st"
    assert "d0" in ids(fuse({"lexical": listed(*lexical), "dense": listed(*dense)}))[:2]


def test_k_is_the_papers() -> None:
    assert RRF_K == 60
    assert fuse({"dense": listed("a")}, k=0)[0].score == 1.0


def test_no_fused_score_is_compared_with_a_constant() -> None:
    """A fused score is at most 1/61 a list, so any threshold between 0 and 1 is wrong."""
    compared = re.compile(r"(?:hit\w*(?:\[\d+\])?|\bh)\.score\s*(?:[<>]=?|==)|(?:[<>]=?|==)\s*hit\w*\.score")
    sources = sorted(Path(bot.__file__).parent.glob("*.py"))
    assert len(sources) > 10
    assert [path.name for path in sources if compared.search(path.read_text(encoding="utf-8"))] == []
    assert compared.search("if hits[0].score > 0.5:"), "the pattern finds the published check"


async def test_a_search_is_fused_from_separate_arms(sample: Desk) -> None:
    import time

    where = Where(readers=frozenset({"members"}))
    retriever = sample.parts.retriever
    found = await sample.parts.compute(
        lambda: retriever.search("ERR_SSO-4032 sign in", where, 5, time.monotonic() + 30)
    )
    assert found.whole
    first = found.hits[0]
    assert first.chunk.uri == "docs:error-codes.md"
    assert len(first.ranks) >= 2
    assert first.score == pytest.approx(sum(1 / (60 + rank) for rank in first.ranks.values()))
    assert len(found.hits) == 5
