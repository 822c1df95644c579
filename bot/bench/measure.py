"""What all benchmarks share: clocks and quantiles, memory, the machine, progress, and a place that is left clean."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bot.config import Settings
from ingest.embed import Embedder, TextKind, Vectors

Clock = Callable[[], float]
"""Seconds, of which only differences count."""
Tell = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and how much there is; 0 where nobody knows."""


class Told:
    """A Watch of an index run that tells how far it is; `total` documents are expected."""

    def __init__(self, tell: Tell, total: int = 0) -> None:
        self._tell = tell
        self._total = total
        self._stage = ""

    def stage(self, name: str) -> None:
        """Tell that a stage begins."""
        self._stage = name
        self.progress(0, "")

    def progress(self, done: int, _uri: str) -> None:
        """Tell how many documents were looked at."""
        self._tell(self._stage, done, self._total)


class TimedEmbedder:
    """An Embedder that adds up the seconds in which another one was at work, and the texts that it was given."""

    def __init__(self, embedder: Embedder, clock: Clock) -> None:
        self._embedder = embedder
        self._clock = clock
        self._lock = threading.Lock()
        self._callers = 0
        self._began = 0.0
        self.spent = 0.0
        """Seconds in which there was one caller or several at once."""
        self.texts = 0

    @property
    def name(self) -> str:
        """Name of the embedder that is timed."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        """Most tokens that the model sees."""
        return self._embedder.max_tokens

    def count(self, text: str) -> int:
        """Return the text's tokens."""
        return self._embedder.count(text)

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """Embed, and keep how long it took."""
        with self._lock:
            if not self._callers:
                self._began = self._clock()
            self._callers += 1
            self.texts += len(texts)
        try:
            return self._embedder.embed(texts, kind)
        finally:
            with self._lock:
                self._callers -= 1
                if not self._callers:
                    self.spent += self._clock() - self._began


def quantile(values: Collection[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed: the nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def p95(values: Collection[float]) -> float:
    """Return the smallest value that at least 95 % of the values do not exceed."""
    return quantile(values, 0.95)


def short(value: float) -> str:
    """Write a number with three digits that count, and all of those before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.001 else f"{value:.1g}"


def as_table(title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """Return rows for reading: each comes with the group that it stands under, "" where there are none."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    above = ""
    for group, (name, *figures) in rows:
        if group != above:
            table.add_section()
            table.add_row(group)
        above = group
        table.add_row(f"  {name}" if group else name, *figures)
    return table


def machine(embedder: str) -> dict[str, Any]:
    """Return what the numbers depend on besides the code."""
    return {
        "CPUs": os.cpu_count(),
        "processor": platform.machine(),
        "Python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "embedder": embedder,
    }


def in_words(facts: Mapping[str, Any]) -> str:
    """Return the machine in a line, without what is not known."""
    return "machine: " + ", ".join(f"{name} {fact}" for name, fact in facts.items() if fact is not None)


def resident_mb() -> float:
    """Return the memory of this process in MB; where the system does not tell the present one, the largest so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_mb()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


def peak_mb() -> float:
    """Return the most memory that this process has had, in MB."""
    try:
        # `ru_maxrss` of a child begins with what its parent had.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1_000_000 if sys.platform == "darwin" else 1000)
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 / 1_000_000 if found else resident_mb()


@contextmanager
def shown(console: Console) -> Iterator[Tell]:
    """Show progress: a bar on a terminal, elsewhere one line for each thing that is begun."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    last = ""

    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            nonlocal last
            bars.update(task, description=stage, completed=done, total=total or None)
            if stage != last and not console.is_terminal:
                console.print(f"{stage} …", style="dim", markup=False)
            last = stage

        yield tell


@contextmanager
def apart(settings: Settings) -> Iterator[Settings]:
    """Lend settings with a folder, databases and index names of a benchmark's own, of which nothing is left.

    The folder is inside `data`, so that it is on the same disk.
    """
    found = not settings.data.exists()
    settings.data.mkdir(parents=True, exist_ok=True)
    prefix = f"{settings.elasticsearch.prefix}-bench-{uuid.uuid4().hex[:8]}"
    try:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=settings.data) as folder:
            lent = settings.model_copy(
                update={
                    "data": Path(folder),
                    "database_url": "",
                    "tickets_database_url": "",
                    "elasticsearch": settings.elasticsearch.model_copy(update={"prefix": prefix}),
                }
            )
            try:
                yield lent
            finally:
                if lent.index == "elastic":
                    _remove_indices(lent)
    finally:
        if found:
            settings.data.rmdir()


def _remove_indices(settings: Settings) -> None:
    from ingest.index.elastic.wire import Wire

    nothing: Any = {}
    wire = Wire(settings.elasticsearch)

    def remove(name: str) -> None:
        wire.ask(lambda client: client.indices.delete(index=name, ignore_unavailable=True))

    try:
        pattern = f"{settings.elasticsearch.prefix}-*"
        # By name: many a cluster refuses to delete by a pattern.
        for name in wire.ask(lambda client: client.indices.get(index=pattern), missing=nothing):
            remove(name)
    finally:
        wire.close()
