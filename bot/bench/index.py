"""The benchmark of indexing: what a first sync and syncs of few changes cost, and how that grows with the documents."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from bot.app import Desk, build
from bot.bench.child import in_child
from bot.bench.corpus import Corpus, FakeEmbedder
from bot.bench.measure import Tell, TimedEmbedder, Told, apart, as_table, in_words, machine, peak_mb, short
from bot.config import Settings
from ingest.chunk import chunk
from ingest.config import SourceSettings, TicketSettings
from ingest.embed import Embedder, embedder_for
from ingest.errors import IndexingError
from ingest.parse import to_document
from ingest.sources import Changed
from ingest.sources.folder import FolderSource
from ingest.types import Chunk, Document

BARE_WRITE, BARE_EMBEDDING = "only writing", "only embedding"
FIRST, UNCHANGED, ONE, PERCENT = "first sync", "nothing changed", "1 changed", "1 % changed"


@dataclass(frozen=True, slots=True)
class Row:
    """What one step cost: the median of its rounds."""

    index: str
    embedder: str
    chunks: int
    """In the whole corpus, as they were cut."""
    documents: int
    step: str
    seconds: float
    changed: int
    """Documents that were added or changed."""
    embedded: int
    """Chunks that were embedded, as the embedder counted them."""
    of_bare: float
    """Multiple of only writing the whole corpus; with the real model of only embedding it."""
    growth: float
    """Seconds a document, as a multiple of those in the smallest corpus."""
    peak_mb: float
    """Most memory of the process that did the syncs, or the bare work."""

    @property
    def corpus(self) -> str:
        """What the table's rows stand under."""
        return f"{self.embedder.rpartition('/')[2]}: {self.chunks} chunks of {self.documents} documents"

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        figures = map(short, (self.of_bare, self.growth, self.peak_mb))
        return self.step, short(self.seconds * 1000), str(self.changed), str(self.embedded), *figures


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    rows: tuple[Row, ...]
    rounds: int
    machine: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `bench index --json`."""
        return asdict(self)

    def table(self) -> Table:
        """Return the rows for reading."""
        title = f"index {self.rows[0].index}, {self.rounds} rounds"
        columns = ("step", "ms", "changed", "embedded", "× bare", "growth", "MB")
        return as_table(title, columns, ((row.corpus, row.cells()) for row in self.rows))

    def notes(self) -> tuple[str, ...]:
        """Return what the table does not say, in lines."""
        throughput = (
            f"{1 / row.of_bare:.0%} with {row.embedder} at {row.chunks} chunks"
            for row in self.rows
            if row.step == FIRST
        )
        return (
            "× bare is a multiple of only writing the corpus, with the real model of only embedding it; growth compares the "
            "time a document with that in the smallest corpus; MB is the most memory of the process, model included",
            f"throughput of the first sync as a share of the bare one's: {', '.join(throughput)}",
            in_words(self.machine),
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """One step as it was measured."""

    name: str
    seconds: float
    chunks: int
    changed: int
    embedded: int
    peak_mb: float


def run(settings: Settings, sizes: Sequence[int], real: int, *, rounds: int, seed: int, tell: Tell) -> Report:
    """Index a corpus of each size with the fake embedder, and one of `real` chunks with the real one.

    Everything is measured in processes of their own, so that the memory is theirs; `settings` say which index, and how
    documents are cut.
    """
    rows: list[Row] = []
    for size, is_real in [*((size, False) for size in sizes), *([(real, True)] if real else [])]:

        def told(stage: str, done: int, total: int, size: int = size, is_real: bool = is_real) -> None:
            tell(f"{size} chunks, {'real' if is_real else 'fake'} embedder: {stage}", done, total)

        with apart(settings) as lent:
            pages = Corpus(seed).write(lent.data / "docs", size)
            lent = over(lent, lent.data / "docs")
            bare = in_child(_bare, lent, is_real, tell=told)
            steps = in_child(_synced, lent, is_real, pages, rounds, tell=told)
            name = _embedder(lent, is_real).name
        for step in (*bare, *steps):
            first = next((row for row in rows if (row.embedder, row.step) == (name, step.name)), None)
            each = first.seconds / first.documents if first else step.seconds / len(pages)
            rows.append(
                Row(
                    index=lent.index,
                    embedder=name,
                    chunks=bare[0].chunks,
                    documents=len(pages),
                    step=step.name,
                    seconds=step.seconds,
                    changed=step.changed,
                    embedded=step.embedded,
                    of_bare=step.seconds / bare[-1].seconds,
                    growth=step.seconds / len(pages) / each,
                    peak_mb=step.peak_mb,
                )
            )
    return Report(tuple(rows), rounds, machine("fake and real" if real else "fake"))


def over(lent: Settings, folder: Path) -> Settings:
    """Return settings over one folder and nothing else."""
    update = {"sources": SourceSettings(paths=(folder,)), "tickets": TicketSettings(), "model": ""}
    return lent.model_copy(update=update)


def _embedder(settings: Settings, is_real: bool) -> Embedder:
    return embedder_for(settings.embedding) if is_real else FakeEmbedder()


def documents(settings: Settings, embedder: Embedder) -> Iterator[tuple[Document, list[Chunk]]]:
    """Yield what a first sync of the settings' folder reads and cuts."""
    source = FolderSource(settings.sources)
    cut = settings.chunks
    for change in source.changes({}):
        if isinstance(change, Changed):
            document = to_document(change, settings.sources, source.name)
            yield document, chunk(document, embedder.count, cut.max_tokens, cut.overlap_tokens)


def _bare(lent: Settings, is_real: bool, tell: Tell) -> tuple[_Step, ...]:
    """Measure only writing the corpus and, with the real model, only embedding it in one go."""
    embedder, fake = _embedder(lent, is_real), FakeEmbedder()
    apart_from_syncs = lent.model_copy(
        update={
            "data": lent.data / "bare",
            "elasticsearch": lent.elasticsearch.model_copy(
                update={"prefix": f"{lent.elasticsearch.prefix}-bare"}
            ),
        }
    )
    seconds = 0.0
    texts: list[str] = []
    count = written = 0
    with closing(build(apart_from_syncs, fake)) as desk:
        for count, (document, chunks) in enumerate(documents(lent, embedder), start=1):
            vectors = fake.embed([piece.text for piece in chunks])
            began = time.perf_counter()
            desk.index.replace(document, chunks, vectors)
            seconds += time.perf_counter() - began
            written += len(chunks)
            texts += [piece.text for piece in chunks] if is_real else []
            tell(BARE_WRITE, count, 0)
        began = time.perf_counter()
        desk.index.flush()
        seconds += time.perf_counter() - began
    steps = [_Step(BARE_WRITE, seconds, written, count, 0, peak_mb())]
    if is_real:
        tell(BARE_EMBEDDING, 0, 0)
        embedder.embed(["loads the model"])
        began = time.perf_counter()
        embedder.embed(texts)
        spent = time.perf_counter() - began
        steps.append(_Step(BARE_EMBEDDING, spent, written, 0, len(texts), peak_mb()))
    return tuple(steps)


def _synced(
    lent: Settings, is_real: bool, pages: Sequence[Path], rounds: int, tell: Tell
) -> tuple[_Step, ...]:
    """Measure a first sync, then syncs in which nothing, one page and one in a hundred changed."""
    embedder = TimedEmbedder(_embedder(lent, is_real), time.perf_counter)
    if is_real:
        embedder.embed(["loads the model"])
    edition = 0

    def change(count: int) -> Callable[[], None]:
        def some() -> None:
            nonlocal edition
            edition += 1
            step = max(1, len(pages) // count)
            for page in pages[edition % step :: step][:count]:
                text = page.read_text(encoding="utf-8")
                page.write_text(f"{text}\nThis is edition {edition}.\n", encoding="utf-8")

        return some

    with closing(build(lent, embedder)) as desk:
        steps = [_step(desk, embedder, FIRST, lambda: None, 1, len(pages), tell)]
        hundredth = max(1, len(pages) // 100)
        for name, prepare in ((UNCHANGED, lambda: None), (ONE, change(1)), (PERCENT, change(hundredth))):
            steps.append(_step(desk, embedder, name, prepare, rounds, len(pages), tell))
    return tuple(steps)


def _step(
    desk: Desk,
    embedder: TimedEmbedder,
    name: str,
    prepare: Callable[[], None],
    rounds: int,
    total: int,
    tell: Tell,
) -> _Step:
    """Measure a sync `rounds` times, each after `prepare`; the counts are those of the last one."""
    seconds = []
    for _ in range(rounds):
        prepare()
        before = embedder.texts
        began = time.perf_counter()
        reports = desk.sync_documents(watch=Told(lambda _, done, total: tell(name, done, total), total))
        seconds.append(time.perf_counter() - began)
        embedded = embedder.texts - before
        for report in reports:
            if report.failure or report.skipped:
                raise IndexingError(f"the sync that is measured was not whole: {report.summary()}")
    changed = sum(len(report.added) + len(report.changed) for report in reports)
    chunks = sum(report.chunks for report in reports)
    return _Step(name, statistics.median(seconds), chunks, changed, embedded, peak_mb())
