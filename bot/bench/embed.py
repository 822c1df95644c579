"""`twohop bench embed`: what the bundled model costs with ONNX Runtime, as a share of what it costs with torch."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from bot.bench.child import in_child
from bot.bench.corpus import Corpus
from bot.bench.measure import Tell, as_table, in_words, machine, peak_mb, short
from ingest.config import EmbeddingSettings
from ingest.embed import bundled, embedder_for

FIRST, QUERY, BATCH = "first query, loading counted", "one query", "64 passages"
ONNX, TORCH = "ONNX Runtime", "torch"
_PASSAGES = 64
_BURST = 20
"""Queries of one round: one alone is too short for the clock of the processor."""


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, the median of its rounds."""

    work: str
    runtime: str
    ms: float
    cpu_ms: float
    """User and system time of all threads, which other processes disturb less."""
    of_torch: float
    """Processor time as a share of torch's, at the median of the rounds."""
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    rows: tuple[Row, ...]
    rounds: int
    machine: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `bench embed --json`."""
        return asdict(self)

    def table(self) -> Table:
        """Return the rows for reading."""
        columns = ("runtime", "ms", "ms of processor", "× torch", "MB")
        cells = (
            (row.work, (row.runtime, *map(short, (row.ms, row.cpu_ms, row.of_torch, row.peak_mb))))
            for row in self.rows
        )
        return as_table(f"embedding, {self.rounds} rounds", columns, cells)

    def notes(self) -> tuple[str, ...]:
        """Return what the table does not say, in lines."""
        return (
            "one thread each; × torch compares the processor's time of both in the same round; MB is the most memory of the process so far",
            in_words(self.machine),
        )


@dataclass(frozen=True, slots=True)
class _Spent:
    """Seconds by the clock and of the processor, and the most memory until then in MB."""

    seconds: float
    cpu: float
    peak_mb: float


def run(rounds: int, seed: int, tell: Tell) -> Report:
    """Embed the same texts with both runtimes in turn, `rounds` times, each time in processes of their own."""
    found: dict[str, list[dict[str, _Spent]]] = {ONNX: [], TORCH: []}
    texts = [text for page in Corpus(seed).pages(_PASSAGES) for text in page.text.split("\n## ")[1:]]
    for n in range(rounds):
        for runtime, spent in found.items():
            tell(f"{runtime}, round {n + 1} of {rounds}", n, rounds)
            spent.append(in_child(_measured, runtime, texts, tell=lambda *_: None))
    rows = [
        Row(
            work=work,
            runtime=runtime,
            ms=1000 * median(one[work].seconds for one in spent),
            cpu_ms=1000 * median(one[work].cpu for one in spent),
            of_torch=median(
                one[work].cpu / other[work].cpu for one, other in zip(spent, found[TORCH], strict=True)
            ),
            peak_mb=median(one[work].peak_mb for one in spent),
        )
        for work in (FIRST, QUERY, BATCH)
        for runtime, spent in found.items()
    ]
    return Report(tuple(rows), rounds, machine(bundled.NAME))


def _measured(runtime: str, texts: Sequence[str], _tell: Tell) -> dict[str, _Spent]:
    # As a path it is any other model, which sentence-transformers runs with torch.
    settings = EmbeddingSettings() if runtime == ONNX else EmbeddingSettings(model=str(bundled.folder()))
    # Several would wait for each other actively, which on a machine with other work is most of what is counted.
    embedder = embedder_for(settings, threads=1)
    query = ["Is the customer on ticket 4812 entitled to a refund?"]
    return {
        FIRST: _spent(lambda: embedder.embed(query, "query"), 1),
        QUERY: _spent(lambda: embedder.embed(query, "query"), _BURST),
        BATCH: _spent(lambda: embedder.embed(texts), 1),
    }


def _spent(work: Callable[[], object], times: int) -> _Spent:
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return _Spent(seconds / times, cpu / times, peak_mb())
