"""Searches of one commit: its vectors and filter columns in memory, the three arms, and the chunks that they found."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import log1p
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.index import MOST_WORDS, Vectors
from ingest.index.payload import graded_codes
from ingest.index.sqlite.wire import REBUILD
from ingest.types import Where
from ingest.words import stems, words

_CONSIDERED_WORDS = 1000
_COMMON = 1000
_PART_WEIGHT = 0.1
"""Weight of a code that is only a part of a longer one, in the question or in the chunk."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Keys, vectors and filter columns of one commit, row by row; replaced whole, never changed."""

    commit: int
    keys: Integers
    """Ascending."""
    ids: tuple[str, ...]
    matrix: Vectors
    """Unit vectors."""
    columns: npt.NDArray[np.int64]
    """(rows, 7): audience, kind, facets, has rules, language, first day in force, first day no longer in force."""
    audiences: tuple[frozenset[str], ...]
    kinds: tuple[str, ...]
    facets: tuple[Mapping[str, str], ...]
    languages: tuple[str, ...]

    def allowed(self, where: Where) -> Mask:
        """Tell row by row what `where` lets through: the one filter of all three arms."""
        audience, kind, facets, has_rules, language, effective, superseded = self.columns.T
        wanted = _folded(where.facets)
        mask: Mask = np.isin(audience, [i for i, of in enumerate(self.audiences) if of & where.readers])
        mask &= np.isin(kind, [i for i, of in enumerate(self.kinds) if of == where.kind])
        if wanted:
            mask &= np.isin(facets, [i for i, of in enumerate(self.facets) if wanted.items() <= of.items()])
        if where.rules_only:
            mask &= has_rules == 1
        if where.language:
            mask &= np.isin(language, [i for i, of in enumerate(self.languages) if of == where.language])
        if where.in_force_on:
            day = where.in_force_on.toordinal()
            mask &= (effective <= day) & (day < superseded)
        return mask

    def best(self, rows: Integers, scores: Floats, k: int) -> list[tuple[int, float]]:
        """Return the `k` best as (key, score), by score and then by id."""
        if 0 < k < len(rows):
            keep = scores >= np.partition(scores, -k)[-k]
            rows, scores = rows[keep], scores[keep]
        found = sorted(
            zip(rows.tolist(), scores.tolist(), strict=True), key=lambda of: (-of[1], self.ids[of[0]])
        )
        return [(int(self.keys[row]), score) for row, score in found[:k]]


def load(connection: sqlite3.Connection, commit: int, before: Snapshot | None) -> Snapshot:
    """Read a snapshot inside a transaction; rows that `before` has are taken from it."""
    keys: Integers = np.array(
        [key for (key,) in connection.execute("SELECT key FROM chunks ORDER BY key")], np.int64
    )
    audiences, kinds, facets, languages = _Numbered(), _Numbered(), _Numbered(), _Numbered()
    if before:
        for numbered, values in (
            (audiences, before.audiences),
            (kinds, before.kinds),
            (facets, (tuple(sorted(of.items())) for of in before.facets)),
            (languages, before.languages),
        ):
            for value in values:
                numbered[value]
    known: Mask = np.isin(keys, before.keys, assume_unique=True) if before else np.zeros(len(keys), np.bool_)
    missing = keys[~known]
    select = (
        "SELECT id, vector, readers, kind, facets, has_rules, language, effective, superseded FROM chunks"
    )
    if len(missing) == len(keys):
        rows = connection.execute(f"{select} ORDER BY key")
    else:
        some = json.dumps(missing.tolist())
        rows = connection.execute(
            f"{select} WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key",  # noqa: S608 - constant text, bound values
            (some,),
        )
    new_ids: list[str] = []
    blobs: list[bytes] = []
    new_columns: list[tuple[int, ...]] = []
    for id_, blob, readers, kind, of, has_rules, language, effective, superseded in rows:
        new_ids.append(id_)
        blobs.append(blob)
        new_columns.append(
            (
                audiences[frozenset(json.loads(readers))],
                kinds[kind],
                facets[tuple(sorted(_folded(json.loads(of)).items()))],
                has_rules,
                languages[language],
                _ordinal(effective, date.min),
                _ordinal(superseded, date.max),
            )
        )
    dimensions = len(blobs[0]) // 4 if blobs else before.matrix.shape[1] if before else 0
    fresh = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), dimensions)
    norms = np.linalg.norm(fresh, axis=1, keepdims=True)
    fresh = np.divide(fresh, norms, out=np.zeros_like(fresh), where=norms > 0)
    matrix = np.empty((len(keys), dimensions), np.float32)
    columns = np.empty((len(keys), 7), np.int64)
    matrix[~known] = fresh
    columns[~known] = np.array(new_columns, np.int64).reshape(len(new_columns), 7)
    ids = np.empty(len(keys), object)
    ids[~known] = new_ids
    if before and known.any():
        kept = np.searchsorted(before.keys, keys[known])
        matrix[known] = before.matrix[kept]
        columns[known] = before.columns[kept]
        ids[known] = [before.ids[row] for row in kept.tolist()]
    for array in (keys, matrix, columns):
        array.flags.writeable = False
    return Snapshot(
        commit=commit,
        keys=keys,
        ids=tuple(ids.tolist()),
        matrix=matrix,
        columns=columns,
        audiences=tuple(audiences),
        kinds=tuple(kinds),
        facets=tuple(MappingProxyType(dict(of)) for of in facets),
        languages=tuple(languages),
    )


def lexical(connection: sqlite3.Connection, snapshot: Snapshot, query: str) -> tuple[Integers, Floats]:
    """Rank by BM25, the title twice as heavy as the text (Robertson and Zaragoza 2009, as in FTS5)."""
    said = dict.fromkeys(words(query))
    wanted = [word for word in said if stems(word)] or list(said)
    if len(wanted) > MOST_WORDS:
        wanted = _rarest(connection, wanted)
    if not wanted:
        return np.zeros(0, np.int64), np.zeros(0)
    # The rank of FTS5 is the negative BM25: the smaller, the better.
    found = connection.execute(
        "SELECT rowid, rank FROM words WHERE words MATCH ?", (_match(wanted),)
    ).fetchall()
    scores = -np.array([rank for _, rank in found], np.float64)
    return _rows(snapshot, [key for key, _ in found]), scores


def dense(
    snapshot: Snapshot, vector: Sequence[float] | Vectors | None, mask: Mask
) -> tuple[Integers, Floats]:
    """Rank by the exact cosine; six digits, because the last ones depend on where a row lies in memory."""
    asked = np.asarray(vector, np.float32).reshape(-1)
    rows: Integers = np.flatnonzero(mask)
    if not len(rows):
        return rows, np.zeros(0)
    if len(asked) != snapshot.matrix.shape[1]:
        raise ValueError(
            f"the query has {len(asked)} dimensions, the index holds {snapshot.matrix.shape[1]}; {REBUILD}"
        )
    norm = float(np.linalg.norm(asked))
    if not np.isfinite(norm) or not norm:
        raise ValueError("the query's vector is zero or not finite; check the embedding model")
    scores = (snapshot.matrix @ (asked / norm)).astype(np.float64)
    return rows, np.round(scores[rows], 6)


def codes(connection: sqlite3.Connection, snapshot: Snapshot, query: str) -> tuple[Integers, Floats]:
    """Rank by the codes of the query that a chunk holds, the rarer the heavier, whole ones above parts."""
    asked = graded_codes(query)
    if not asked:
        return np.zeros(0, np.int64), np.zeros(0)
    scores = np.zeros(len(snapshot.keys))
    for code, stands_alone in asked.items():
        held = connection.execute("SELECT chunk, whole FROM codes WHERE code = ?", (code,)).fetchall()
        if held:
            whole = np.array([alone for _, alone in held], np.bool_) & stands_alone
            rarity = log1p(len(scores) / len(held))
            scores[_rows(snapshot, [key for key, _ in held])] += np.where(
                whole, rarity, _PART_WEIGHT * rarity
            )
    found: Integers = np.flatnonzero(scores)
    return found, np.round(scores[found], 9)


def payloads(connection: sqlite3.Connection, keys: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the id and the JSON of chunks."""
    found = connection.execute(
        "SELECT key, id, payload FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key: (id_, payload) for key, id_, payload in found}


def _match(wanted: Sequence[str]) -> str:
    """Return an FTS5 expression in which every word is a quoted string and nothing is syntax."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in wanted)


def _rarest(connection: sqlite3.Connection, wanted: Sequence[str]) -> list[str]:
    """Return the words that the fewest chunks hold, of those that any holds."""
    frequencies: dict[str, int] = {}
    for word in wanted[:_CONSIDERED_WORDS]:
        (count,) = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
            (_match([word]), _COMMON),
        ).fetchone()
        if count:
            frequencies[word] = count
    return sorted(frequencies, key=frequencies.__getitem__)[:MOST_WORDS]


def _rows(snapshot: Snapshot, keys: Sequence[int]) -> Integers:
    """Return the snapshot's rows of keys of the same commit."""
    return np.searchsorted(snapshot.keys, np.array(keys, np.int64)).astype(np.int64)


def _folded(facets: Mapping[str, str]) -> dict[str, str]:
    return {name.casefold(): value.casefold() for name, value in facets.items()}


def _ordinal(day: str | None, without: date) -> int:
    return (date.fromisoformat(day) if day else without).toordinal()


class _Numbered(dict[Any, int]):
    """Number values in the order in which they are first seen."""

    def __missing__(self, value: Any) -> int:
        self[value] = len(self)
        return self[value]
