"""Searches as Elasticsearch wants them: the filter, the three arms, and what came back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ingest.index import MOST_WORDS, Vectors
from ingest.index.payload import from_json, graded_codes
from ingest.types import Scored, Where
from ingest.words import stems, words

_CONSIDERED = 5000
_TITLE_WEIGHT = 2.0
_EXACT_WEIGHT = 0.5
_PART_WEIGHT = 0.1
"""Weight of a code that is only a part of a longer one, in the question or in the chunk."""
_CANDIDATES = 3
"""Neighbours looked at for each one that is wanted; the graph is only near exact."""
_FEWEST_CANDIDATES = 100
_MOST_CANDIDATES = 10_000
_FIELDS = {
    "title": _TITLE_WEIGHT,
    "title.exact": _TITLE_WEIGHT * _EXACT_WEIGHT,
    "text": 1.0,
    "text.exact": _EXACT_WEIGHT,
}

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """One hit with what tells which state of the index it is from."""

    scored: Scored
    index: str
    version: str


class ArmFailed(Exception):
    """One arm did not answer."""


def filters(where: Where) -> list[Body]:
    """Return the one filter of every search; each part must hold."""
    found: list[Body] = [{"terms": {"readers": sorted(where.readers)}}, {"term": {"kind": where.kind}}]
    found += [
        {"term": {"facets": f"{name}={value}".casefold()}} for name, value in sorted(where.facets.items())
    ]
    if where.rules_only:
        found.append({"term": {"has_rules": True}})
    if where.language:
        found.append({"term": {"language": where.language}})
    if where.in_force_on:
        day = where.in_force_on.isoformat()
        found += [{"range": {"effective": {"lte": day}}}, {"range": {"superseded": {"gt": day}}}]
    return found


def lexical(query: str, where: Where) -> Body | None:
    """Return the search by words, None where there are none; the title weighs twice as much as the text."""
    said = dict.fromkeys(words(query))
    wanted = [word for word in said if stems(word)] or list(said)
    if not wanted:
        return None
    text = " ".join(wanted[:_CONSIDERED])
    if len(wanted) <= MOST_WORDS:
        asked: Body = {
            "multi_match": {
                "query": text,
                "type": "most_fields",
                "fields": [f"{name}^{weight}" for name, weight in _FIELDS.items()],
            }
        }
    else:
        asked = _any_of([_rarest(name, [text], weight) for name, weight in _FIELDS.items()])
    return {"query": {"bool": {"must": asked, "filter": filters(where)}}}


def codes(query: str, where: Where) -> Body | None:
    """Return the search by codes, None where there are none: the rarer the heavier, whole ones above parts."""
    asked = graded_codes(query)
    if not asked:
        return None
    whole = [code for code, stands_alone in asked.items() if stands_alone][:_CONSIDERED]
    every = list(asked)[:_CONSIDERED]
    parts = [code for code, stands_alone in asked.items() if not stands_alone][:_CONSIDERED]
    clauses = [("codes", whole, 1.0), ("codes", parts, _PART_WEIGHT), ("parts", every, _PART_WEIGHT)]
    return {
        "query": {
            "bool": {
                "must": _any_of([_rarest(field, some, weight) for field, some, weight in clauses if some]),
                "filter": filters(where),
            }
        }
    }


def dense(vector: Sequence[float] | Vectors, dimensions: int, k: int, where: Where) -> Body:
    """Return the search by meaning; raises ArmFailed for a vector that cannot be compared."""
    asked = np.asarray(vector, np.float32).reshape(-1)
    if len(asked) != dimensions:
        raise ArmFailed(
            f"the query has {len(asked)} dimensions, the index holds {dimensions}; run `twohop index --rebuild`"
        )
    norm = float(np.linalg.norm(asked))
    if not math.isfinite(norm) or not norm:
        raise ArmFailed("the query's vector is zero or not finite; check the embedding model")
    candidates = min(_MOST_CANDIDATES, max(_FEWEST_CANDIDATES, _CANDIDATES * k))
    return {
        "knn": {
            "field": "vector",
            "query_vector": (asked / norm).astype(np.float64).round(7).tolist(),
            "k": candidates,
            "num_candidates": candidates,
            "filter": filters(where),
        }
    }


def limited(body: Body, k: int, seconds: float) -> Body:
    """Return a search for the `k` best, ties in the order of their ids, that stops after some seconds."""
    return {
        **body,
        "size": k,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "_source": ["payload", "version"],
        "track_total_hits": False,
        "timeout": f"{max(1, int(seconds * 1000))}ms",
    }


def read(answer: Mapping[str, Any]) -> list[Found]:
    """Return the hits of one search, best first; raises ArmFailed where it is not whole."""
    if "error" in answer:
        error = answer["error"]
        causes = error.get("root_cause") or [error]
        raise ArmFailed(f"{causes[0].get('type')}: {causes[0].get('reason')}")
    if answer.get("timed_out"):
        raise ArmFailed("late: the server stopped at the deadline")
    shards = answer.get("_shards", {})
    if shards.get("failed"):
        reasons = [failure.get("reason", {}).get("reason") for failure in shards.get("failures", ())]
        raise ArmFailed(f"{shards['failed']} of {shards['total']} shards failed: {reasons}")
    return [
        Found(
            Scored(
                hit["sort"][-1],
                round(float(hit["_score"]), 6),
                partial(from_json, hit["_source"]["payload"]),
            ),
            hit["_index"],
            hit["_source"]["version"],
        )
        for hit in answer["hits"]["hits"]
    ]


def _any_of(clauses: Sequence[Body]) -> Body:
    return {"bool": {"should": list(clauses), "minimum_should_match": 1}}


def _rarest(field: str, texts: Sequence[str], weight: float) -> Body:
    """Match the rarest terms of a field that the texts hold: the server chooses them, by how often it has them."""
    return {
        "more_like_this": {
            "fields": [field],
            "like": list(texts),
            "max_query_terms": MOST_WORDS,
            "min_term_freq": 1,
            "min_doc_freq": 1,
            "minimum_should_match": "1",
            "boost": weight,
        }
    }
