"""One generation's index in Elasticsearch: documents written whole, or not at all, and searched in one round trip."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ingest.errors import DocumentRefused, IndexingError
from ingest.index import Vectors
from ingest.index.elastic import mapping, query
from ingest.index.elastic.query import ArmFailed, Found
from ingest.index.elastic.wire import Operation, Wire, reason
from ingest.index.payload import checked
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Scored, Where

_PAGE = 1000
_MIXED = 6
"""Times a search is asked when its arms saw different states of the index, before what came is taken."""
_REBUILD = "run `twohop index --rebuild`"


class Mixed(Exception):
    """A search saw two states of the index: somebody flushed or published in the middle of it."""


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """One generation's index, read and written by its own name."""

    wire: Wire
    index: str
    writing: str
    """The alias that its writes go through."""
    dimensions: int

    @property
    def name(self) -> str:
        return self.index

    def revisions(self, source: str) -> Mapping[str, str]:
        self.flush()
        rows = self._rows([{"term": {"source": source}}], ["uri", "revision"])
        return {row["uri"]: row["revision"] for row in rows}

    def documents(self, where: Where, deadline: float) -> tuple[DocumentInfo, ...]:
        wanted = [
            *query.filters(Where(where.readers, where.kind, in_force_on=where.in_force_on)),
            {"exists": {"field": "source"}},
        ]
        found = [mapping.info(row) for row in self._rows(wanted, [], deadline)]
        return tuple(sorted(found, key=lambda info: (info.title.casefold(), info.uri)))

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors, now: datetime) -> None:
        """Write the new chunks, then remove the old ones; a crash in between leaves a document without revision."""
        rows = checked(document, chunks, vectors)
        if chunks and rows.shape[1] != self.dimensions:
            raise IndexingError(
                f"document {document.uri!r} has vectors of {rows.shape[1]} dimensions, the index holds "
                f"{self.dimensions}; {_REBUILD}"
            )
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        version = mapping.version_of(document, chunks, rows)
        lines = [
            Operation(
                f"{version}-{i}", mapping.row(chunk, version, vector.astype(np.float64).round(7).tolist())
            )
            for i, (chunk, vector) in enumerate(zip(chunks, rows, strict=True))
        ]
        record = _Record(self, document.uri)
        before = record.read()
        held = dict(before["versions"]) if before else {}
        unfinished = mapping.record(document, held | {version: len(chunks)}, whole=False, chunks=0, now=now)
        refused = record.write(unfinished, after=lines)
        if refused:
            written = [Operation(line.id) for line in lines if version not in held]
            record.write(before, before=written)
            raise DocumentRefused(
                f"document {document.uri!r}: Elasticsearch refused {len(refused)} of its {len(lines)} chunks "
                f"({refused[0]}); what was there before stays"
            )
        stale = {name: count for name, count in held.items() if name != version}
        whole = mapping.record(document, {version: len(chunks)}, whole=True, chunks=len(chunks), now=now)
        record.write(whole, before=[Operation(id_) for id_ in mapping.chunk_ids(stale)])

    def delete(self, uri: str) -> None:
        record = _Record(self, uri)
        row = record.read()
        if row:
            record.write(None, before=[Operation(id_) for id_ in mapping.chunk_ids(row["versions"])])

    def flush(self) -> None:
        answer = self.wire.ask(lambda client: client.indices.refresh(index=self.index))
        if answer["_shards"]["failed"]:
            raise IndexingError(
                f"{self.index!r} could not be made visible: {answer['_shards']}; try again when the cluster is well"
            )

    def rank(
        self,
        text: str,
        vector: Sequence[float] | Vectors | None,
        k: int,
        where: Where,
        deadline: float,
        *,
        at: str = "",
        accept: Callable[[frozenset[str]], None] = lambda _: None,
    ) -> Rankings:
        """Rank in one round trip; `at` is what is searched, `accept` raises Mixed for indices that it is not."""
        text = text.encode("utf-8", "replace").decode()
        arms: list[Arm] = ["lexical", "codes"] if vector is None else ["lexical", "dense", "codes"]
        for attempt in range(1, _MIXED + 1):
            found, failed, answered = self._searched(text, vector, k, where, deadline, arms, at or self.index)
            hits = [hit for ranking in found.values() for hit in ranking]
            try:
                if answered:
                    accept(frozenset(hit.index for hit in hits))
                    _refuse_mixed(hits)
            except Mixed:
                if attempt < _MIXED and time.monotonic() < deadline:
                    continue
            break
        return Rankings({arm: _unique(ranking) for arm, ranking in found.items()}, failed)

    def _searched(
        self,
        text: str,
        vector: Sequence[float] | Vectors | None,
        k: int,
        where: Where,
        deadline: float,
        arms: Sequence[Arm],
        at: str,
    ) -> tuple[dict[Arm, list[Found]], dict[Arm, str], bool]:
        """Return what each arm found, why the others failed, and whether the server answered at all."""
        found: dict[Arm, list[Found]] = {}
        failed: dict[Arm, str] = {}
        bodies: dict[Arm, dict[str, Any]] = {}
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return {}, dict.fromkeys(arms, "late: the deadline passed before it began"), False
        for arm in arms:
            try:
                body = _body(arm, text, vector, self.dimensions, k, where)
            except ArmFailed as error:
                failed[arm] = str(error)
                continue
            if body is None:
                found[arm] = []
            else:
                bodies[arm] = query.limited(body, k, seconds)
        if not bodies:
            return found, failed, False
        searches: list[dict[str, Any]] = [part for body in bodies.values() for part in ({"index": at}, body)]
        try:
            answers = self.wire.ask(lambda client: client.msearch(searches=searches), deadline=deadline)
        except IndexingError as error:
            return found, failed | dict.fromkeys(bodies, late(error, deadline)), False
        for arm, answer in zip(bodies, answers["responses"], strict=True):
            try:
                found[arm] = query.read(answer)
            except ArmFailed as error:
                failed[arm] = str(error)
        return found, failed, bool(found.keys() & bodies.keys())

    def incomplete(self) -> str:
        """Return why this index does not hold what its records say, empty where it does."""
        self.flush()
        answer = self.wire.ask(
            lambda client: client.search(
                index=self.index,
                size=0,
                query={"exists": {"field": "source"}},
                aggs={"chunks": {"sum": {"field": "chunks"}}},
            )
        )
        held = self.wire.ask(
            lambda client: client.count(index=self.index, query={"exists": {"field": "version"}})
        )
        said = int(answer["aggregations"]["chunks"]["value"])
        if said != held["count"]:
            return f"its documents have {said} chunks, but it holds {held['count']}"
        return ""

    def _rows(
        self, wanted: Sequence[Mapping[str, Any]], fields: Sequence[str], deadline: float | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Return documents' rows in the order of their uris, a page at a time."""

        def page(after: list[Any] | None) -> Any:
            return self.wire.ask(
                lambda client: client.search(
                    index=self.index,
                    size=_PAGE,
                    query={"bool": {"filter": list(wanted)}},
                    sort=[{"uri": "asc"}],
                    search_after=after,
                    source={"includes": list(fields)},
                    track_total_hits=False,
                ),
                deadline=deadline,
            )

        after: list[Any] | None = None
        while True:
            answer = page(after)
            if answer["timed_out"] or answer["_shards"]["failed"]:
                raise IndexingError(
                    f"{self.index!r} could not be read whole: {answer['_shards']}; try again when the cluster is well"
                )
            hits = answer["hits"]["hits"]
            yield from (hit["_source"] for hit in hits)
            if len(hits) < _PAGE:
                return
            after = hits[-1]["sort"]


class _Record:
    """A document's row, changed only by whoever read it last."""

    def __init__(self, generation: StoredGeneration, uri: str) -> None:
        self._of = generation
        self._uri = uri
        self._id = mapping.record_id(uri)
        self._place: dict[str, Any] = {}

    def read(self) -> dict[str, Any] | None:
        nothing: Any = {}
        found = self._of.wire.ask(
            lambda client: client.get(index=self._of.index, id=self._id), missing=nothing
        )
        if not found:
            self._place = {"op_type": "create"}
            return None
        self._place = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        return dict(found["_source"])

    def write(
        self,
        row: Mapping[str, Any] | None,
        *,
        before: Sequence[Operation] = (),
        after: Sequence[Operation] = (),
    ) -> list[str]:
        """Write the row, None removes it, with other operations in front and behind; return why those behind were refused.

        The index has one shard, so that what stands in front is done, or refused as a whole, before the row is.
        """
        body = json.dumps(row, ensure_ascii=False) if row else ""
        own = Operation(self._id, body, self._place)
        results = self._of.wire.bulk(self._of.writing, [*before, own, *after])
        result = results[self._id]
        # A request whose answer was lost was carried out all the same.
        if "error" in result and (other := self.read()) != row:
            theirs = set(mapping.chunk_ids(other["versions"])) if other else set()
            strays = [Operation(line.id) for line in after if line.id not in theirs]
            self._of.wire.bulk(self._of.writing, strays)
            raise IndexingError(
                f"document {self._uri!r} could not be written ({reason(result['error'])}); when no other process writes "
                "it, run `twohop index` again"
            )
        if "error" not in result:
            self._place = {"if_seq_no": result["_seq_no"], "if_primary_term": result["_primary_term"]}
        return [reason(found["error"]) for line in after if "error" in (found := results[line.id])]


def _body(
    arm: Arm, text: str, vector: Sequence[float] | Vectors | None, dimensions: int, k: int, where: Where
) -> dict[str, Any] | None:
    match arm:
        case "lexical":
            return query.lexical(text, where)
        case "codes":
            return query.codes(text, where)
        case _:
            return query.dense(vector if vector is not None else (), dimensions, k, where)


def late(error: IndexingError, deadline: float) -> str:
    return f"late: {error}" if time.monotonic() >= deadline else str(error)


def _refuse_mixed(hits: Sequence[Found]) -> None:
    """Raise Mixed where two versions of one document were found."""
    versions: dict[str, str] = {}
    for hit in hits:
        uri, _, _ = hit.scored.id.rpartition("#")
        if versions.setdefault(uri, hit.version) != hit.version:
            raise Mixed


def _unique(ranking: Sequence[Found]) -> tuple[Scored, ...]:
    best: dict[str, Scored] = {}
    for hit in ranking:
        best.setdefault(hit.scored.id, hit.scored)
    return tuple(best.values())
