"""The benchmark of searching: each arm, fusion and the whole, as multiples of asking the bare engine the same."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from rich.table import Table

from bot.app import Desk, build
from bot.bench.corpus import EVERYTHING, FILTERED, Corpus, FakeEmbedder
from bot.bench.index import over
from bot.bench.measure import Clock, Tell, Told, apart, as_table, in_words, machine, p95, short
from bot.config import Settings
from bot.retrieve import Retriever, fuse
from ingest.atoms import codes
from ingest.errors import IndexingError
from ingest.index import Vectors
from ingest.types import Where
from ingest.words import stems, words

if TYPE_CHECKING:
    from ingest.index.elastic.wire import Wire

FILTERS: Mapping[str, Where] = {"no filter": EVERYTHING, "filter": FILTERED}
_SECONDS = 60.0
"""Deadline of a search: nothing is cut short here."""

SQLITE_PARTS: tuple[str, ...] = (
    "bare FTS5",
    "bare numpy scan",
    "bare look-up of codes",
    "bare, all",
    "lexical",
    "dense",
    "codes",
    "reading hits",
    "rank",
    "fusion",
    "search",
)
ELASTIC_PARTS: tuple[str, ...] = (
    "lexical, took",
    "dense, took",
    "codes, took",
    "bare _msearch, took",
    "bare _msearch",
    "rank",
    "fusion",
    "search",
)
_BARE_OF = {
    "bare FTS5": "bare FTS5",
    "lexical": "bare FTS5",
    "bare numpy scan": "bare numpy scan",
    "dense": "bare numpy scan",
    "bare look-up of codes": "bare look-up of codes",
    "codes": "bare look-up of codes",
}
"""What a part is a multiple of; the others are of everything that the bare engine does for a question."""

Backend = Literal["sqlite", "elastic"]
Samples = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """What one part of a search costs; a share is a multiple of the bare call's median or 95th percentile."""

    index: str
    chunks: int
    filter: str
    part: str
    samples: int
    median_ms: float
    p95_ms: float
    bare: str
    median_share: float
    p95_share: float

    @property
    def corpus(self) -> str:
        """What the table's rows stand under."""
        return f"{self.index} {self.chunks}, {self.filter}"

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        figures = (self.median_ms, self.p95_ms, self.median_share, self.p95_share)
        return self.part, str(self.samples), *map(short, figures)


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    rows: tuple[Row, ...]
    questions: int
    rounds: int
    found: Mapping[str, float]
    """Hits of a search in the mean, by index, size and filter: a filter that lets nothing through measures nothing."""
    machine: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `bench search --json`."""
        return asdict(self)

    def table(self) -> Table:
        """Return the rows for reading."""
        title = f"{self.questions} questions, {self.rounds} rounds after one that is not counted"
        columns = ("part", "n", "ms", "p95", "×", "p95")
        return as_table(title, columns, ((row.corpus, row.cells()) for row in self.rows))

    def notes(self) -> tuple[str, ...]:
        """Return what the table does not say, in lines."""
        return (
            "medians and 95th percentiles; × of an arm is a multiple of its bare call, × of the others a multiple of all that the "
            "bare engine needs for a question: on SQLite without a filter, on Elasticsearch with it",
            *self._shares(),
            "hits of a search: " + ", ".join(f"{of} {mean:.0f}" for of, mean in self.found.items()),
            in_words(self.machine),
        )

    def _shares(self) -> Iterator[str]:
        """Yield whose time a search in Elasticsearch is."""
        held = {(row.index, row.chunks, row.filter, row.part): row.median_ms for row in self.rows}
        for index, chunks, of, part in held:
            if index == "elastic" and part == "search":
                took, bare, whole = (
                    held[index, chunks, of, name]
                    for name in ("bare _msearch, took", "bare _msearch", "search")
                )
                yield (
                    f"of a search in {chunks} chunks of Elasticsearch, {of}: {took / whole:.0%} the server, "
                    f"{(bare - took) / whole:.0%} its client and the way, {(whole - bare) / whole:.0%} ours"
                )


class _Engine(Protocol):
    """The bare engine under an index."""

    parts: tuple[str, ...]
    """What is measured with it, in the order of the report."""

    def ask(self, text: str, vector: Vectors, k: int, where: Where, clock: Clock) -> Mapping[str, float]:
        """Return how many seconds each bare call takes, by the names of their parts."""
        ...


def run(
    settings: Settings, sizes: Sequence[int], *, questions: int, rounds: int, seed: int, tell: Tell
) -> Report:
    """Index a corpus of each size and search it; in Elasticsearch too where the settings have its address."""
    backends: list[Backend] = ["sqlite", "elastic"] if settings.elasticsearch.url else ["sqlite"]
    rows: list[Row] = []
    found: dict[str, float] = {}
    embedder = FakeEmbedder()
    asked = Corpus(seed).questions(questions)
    for size in sizes:
        for backend in backends:

            def told(stage: str, done: int, total: int, of: str = f"{backend}, {size} chunks") -> None:
                tell(f"{of}: {stage}", done, total)

            with apart(settings.model_copy(update={"index": backend})) as lent:
                pages = Corpus(seed).write(lent.data / "docs", size)
                with closing(build(over(lent, lent.data / "docs"), embedder)) as desk:
                    (report,) = desk.sync_documents(watch=Told(told, len(pages)))
                    measured = _measured(desk, backend, asked, rounds, time.perf_counter, told)
                    for name, samples, hits in measured:
                        rows += _rows(backend, report.chunks, name, samples)
                        found[f"{backend} {report.chunks}, {name}"] = hits
    return Report(tuple(rows), questions, rounds, found, machine(embedder.name))


def _rows(backend: Backend, chunks: int, filtered: str, samples: Samples) -> Iterator[Row]:
    whole = "bare, all" if backend == "sqlite" else "bare _msearch"
    for part, taken in samples.items():
        if taken:
            bare = _BARE_OF.get(part, whole)
            median, most = statistics.median(taken), p95(taken)
            shares = median / statistics.median(samples[bare]), most / p95(samples[bare])
            yield Row(
                *(backend, chunks, filtered, part, len(taken), median * 1000, most * 1000, bare, *shares)
            )


def _measured(
    desk: Desk, backend: Backend, questions: Sequence[str], rounds: int, clock: Clock, tell: Tell
) -> Iterator[tuple[str, Samples, float]]:
    """Yield for each filter its name, seconds by part, and the mean of hits, after a round that is not counted."""
    asked = list(zip(questions, desk.embedder.embed(questions, kind="query"), strict=True))
    total = (rounds + 1) * len(asked)
    with _engine(desk, backend) as engine:
        for name, where in FILTERS.items():
            bench = _Bench(desk, engine, where, clock)
            for number in range(total):
                if number == len(asked):
                    bench.clear()
                tell(f"searching, {name}", number, total)
                bench.ask(*asked[number % len(asked)])
            yield name, bench.samples, bench.hits / (rounds * len(asked))


class _Bench:
    """Asks one index with one filter, the bare engine and ours by turns, and keeps how long each part took."""

    def __init__(self, desk: Desk, engine: _Engine, where: Where, clock: Clock) -> None:
        self._desk = desk
        self._engine = engine
        self._where = where
        self._clock = clock
        self._k = desk.settings.retrieval.candidates
        self._retriever = Retriever(desk.index, desk.embedder, self._k)
        self._asked = 0
        self.samples: Samples = {}
        self.hits = 0
        self.clear()

    def clear(self) -> None:
        """Forget what was measured."""
        self.samples = {part: [] for part in self._engine.parts}
        self.hits = 0

    def ask(self, text: str, vector: Vectors) -> None:
        """Ask once in each way, beginning with another one each time, so that what slows the machine slows all alike."""
        ways = (self._bare, self._rank, self._search)
        start = self._asked % len(ways)
        self._asked += 1
        for way in (*ways[start:], *ways[:start]):
            way(text, vector)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = self._clock()
        yield
        self.samples[part].append(self._clock() - began)

    def _bare(self, text: str, vector: Vectors) -> None:
        self._keep(self._engine.ask(text, vector, self._k, self._where, self._clock), text)

    def _keep(self, seconds: Mapping[Any, float], text: str) -> None:
        for part, taken in seconds.items():
            # Most questions hold no code: looking up nothing is no measurement.
            if "codes" not in part or codes(text):
                self.samples[part].append(taken)

    def _rank(self, text: str, vector: Vectors) -> None:
        with self._timed("rank"):
            found = self._desk.index.rank(text, vector, self._k, self._where, time.monotonic() + _SECONDS)
        if found.failed:
            raise IndexingError(f"the search that is measured was not whole: {dict(found.failed)!r}")
        if found.seconds:
            self._keep(found.seconds, text)
            self.samples["reading hits"].append(self.samples["rank"][-1] - sum(found.seconds.values()))
        with self._timed("fusion"):
            fuse(found.arms, self._desk.settings.retrieval.shown)

    def _search(self, text: str, _vector: Vectors) -> None:
        shown, deadline = self._desk.settings.retrieval.shown, time.monotonic() + _SECONDS
        with self._timed("search"):
            hits = self._retriever.search(text, self._where, shown, deadline).hits
        self.hits += len(hits)


@contextmanager
def _engine(desk: Desk, backend: Backend) -> Iterator[_Engine]:
    """Open the engine under a desk's index beside it."""
    if backend == "sqlite":
        folder = desk.settings.data / "index"
        name = (folder / "current").read_text(encoding="utf-8").split("\n")[0]
        with closing(sqlite3.connect(folder / name)) as connection:
            yield _Sqlite(connection)
    else:
        from ingest.index.elastic.wire import Wire

        with closing(Wire(desk.settings.elasticsearch)) as wire:
            yield _Elastic(wire, desk.settings.elasticsearch.prefix, desk.embedder.dimensions)


class _Sqlite:
    """FTS5 and numpy, asked without filter, without ties in order, and for keys only."""

    parts = SQLITE_PARTS

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        blobs = [blob for (blob,) in connection.execute("SELECT vector FROM chunks ORDER BY key")]
        self._matrix = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1)

    def ask(self, text: str, vector: Vectors, k: int, _where: Where, clock: Clock) -> Mapping[str, float]:
        said = dict.fromkeys(words(text))
        match = " OR ".join(f'"{word}"' for word in said if stems(word))
        held = codes(text)
        times = [clock()]
        self._connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, k)
        ).fetchall()
        times.append(clock())
        scores = self._matrix @ vector
        best = np.argpartition(scores, -min(k, len(scores)))[-k:]
        best[np.argsort(-scores[best])]
        times.append(clock())
        for code in held:
            self._connection.execute("SELECT chunk FROM codes WHERE code = ? LIMIT ?", (code, k)).fetchall()
        times.append(clock())
        seconds = [after - before for before, after in pairwise(times)]
        return dict(zip(SQLITE_PARTS, [*seconds, sum(seconds)], strict=False))


class _Elastic:
    """One `_msearch` of the bodies that we send, whose answer nobody reads."""

    parts = ELASTIC_PARTS

    def __init__(self, wire: Wire, index: str, dimensions: int) -> None:
        self._wire = wire
        self._index = index
        self._dimensions = dimensions

    def ask(self, text: str, vector: Vectors, k: int, where: Where, clock: Clock) -> Mapping[str, float]:
        from ingest.index.elastic import query

        bodies = {
            "lexical": query.lexical(text, where),
            "dense": query.dense(vector, self._dimensions, k, where),
            "codes": query.codes(text, where),
        }
        asked = {arm: query.limited(body, k, _SECONDS) for arm, body in bodies.items() if body}
        searches: list[Any] = [part for body in asked.values() for part in ({"index": self._index}, body)]
        began = clock()
        answer = self._wire.ask(lambda client: client.msearch(searches=searches))
        seconds = clock() - began
        took = {f"{arm}, took": of["took"] / 1000 for arm, of in zip(asked, answer["responses"], strict=True)}
        return {**took, "bare _msearch, took": answer["took"] / 1000, "bare _msearch": seconds}
