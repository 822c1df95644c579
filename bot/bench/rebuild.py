"""The benchmark of answering while the index is rebuilt: answers and acknowledgements, as multiples of those at rest."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from typing import Any

from rich.table import Table

from bot import pipeline
from bot.app import Desk, build
from bot.bench.answer import questions_of_the_sample
from bot.bench.corpus import Corpus
from bot.bench.measure import Tell, Told, as_table, in_words, machine, quantile, short
from bot.config import VENDOR_NAMES, Settings
from bot.sample import demo_settings, sample
from bot.store import Inbound, Inbox
from bot.types import Question
from ingest.errors import IndexingError
from ingest.schedule import ChildRun, run_child

_ARRIVALS_APART = 0.02
"""Seconds between two messages that arrive."""
_REST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One quantile, at rest and while the index is rebuilt."""

    name: str
    rest_samples: int
    rebuild_samples: int
    rest_ms: float
    rebuild_ms: float
    ratio: float

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        rest, meanwhile, ratio = map(short, (self.rest_ms, self.rebuild_ms, self.ratio))
        return self.name, str(self.rest_samples), rest, str(self.rebuild_samples), meanwhile, ratio


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    rows: tuple[Row, ...]
    chunks: int
    """Chunks that were rebuilt, and that were searched meanwhile."""
    seconds: float
    """How long the rebuild took."""
    machine: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `bench rebuild --json`."""
        return asdict(self)

    def table(self) -> Table:
        """Return the rows for reading."""
        title = f"{self.chunks} chunks rebuilt in {self.seconds:.0f} s"
        columns = ("", "n", "ms at rest", "n", "ms meanwhile", "×")
        return as_table(title, columns, (("", row.cells()) for row in self.rows))

    def notes(self) -> tuple[str, ...]:
        """Return what the table does not say, in lines."""
        return (
            "the rebuild is `twohop index --rebuild` in a process of its own, as a running bot starts it; an "
            "acknowledgement is the insert into the inbox, while one question after the other is answered",
            in_words(self.machine),
        )


@dataclass(slots=True)
class _Taken:
    """Seconds of each answer and each acknowledgement."""

    answers: list[float] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)


def run(lent: Settings, chunks: int, *, questions: int, seed: int, tell: Tell) -> Report:
    """Index the sample company and a corpus of `chunks` in the folder that was lent, and rebuild it while asking.

    Raises IndexingError where the rebuild fails.
    """
    settings = demo_settings(lent).model_copy(update={"model": ""})
    folder = lent.data / "corpus"
    pages = Corpus(seed).write(folder, chunks)
    paths = (*settings.sources.paths, folder)
    settings = settings.model_copy(update={"sources": settings.sources.model_copy(update={"paths": paths})})
    with closing(build(settings)) as desk:
        watch = Told(tell, len(pages))
        for path in settings.tickets.csv:
            desk.import_tickets(path)
        indexed = [*desk.sync_documents(watch=watch), desk.sync_tickets(watch)]
        rest, meanwhile, child = asyncio.run(_asked(desk, questions_of_the_sample(settings, questions), tell))
        name = desk.embedder.name
    if not child.ok:
        raise IndexingError(f"the rebuild that is measured against failed: {child.reason}")
    rows = (
        _row("answer, median", rest.answers, meanwhile.answers, 0.5),
        _row("answer, p95", rest.answers, meanwhile.answers, 0.95),
        _row("acknowledgement, median", rest.arrivals, meanwhile.arrivals, 0.5),
        _row("acknowledgement, p99", rest.arrivals, meanwhile.arrivals, 0.99),
    )
    return Report(rows, sum(report.chunks for report in indexed), child.seconds, machine(name))


def _row(name: str, rest: Sequence[float], meanwhile: Sequence[float], share: float) -> Row:
    before, during = quantile(rest, share), quantile(meanwhile, share)
    return Row(name, len(rest), len(meanwhile), before * 1000, during * 1000, during / before)


async def _asked(desk: Desk, questions: Sequence[Question], tell: Tell) -> tuple[_Taken, _Taken, ChildRun]:
    """Ask at rest, then until the rebuild has ended, and always each question equally often."""
    inbox, numbers = Inbox(desk.store.engine, "bench", 60.0), count()
    for place, question in enumerate(questions):
        tell("answering each question once", place, len(questions))
        await pipeline.answer(question, desk.parts)
    rest, meanwhile = _Taken(), _Taken()
    left = iter(range(_REST_ROUNDS))
    await _keep_asking(
        desk, inbox, numbers, questions, rest, lambda: next(left, None) is None, "asking at rest", tell
    )
    child = asyncio.create_task(_rebuilt(desk.settings))
    await _keep_asking(
        desk, inbox, numbers, questions, meanwhile, child.done, "asking while the index is rebuilt", tell
    )
    return rest, meanwhile, await child


async def _keep_asking(
    desk: Desk,
    inbox: Inbox,
    numbers: Iterator[int],
    questions: Sequence[Question],
    taken: _Taken,
    over: Callable[[], bool],
    stage: str,
    tell: Tell,
) -> None:
    """Answer all questions one after the other until it is over, while messages arrive; a started round is ended."""
    arriving = asyncio.create_task(_arrive(desk, inbox, numbers, taken))
    try:
        while not taken.answers or not over():
            for question in questions:
                began = time.perf_counter()
                await pipeline.answer(question, desk.parts)
                taken.answers.append(time.perf_counter() - began)
                tell(stage, len(taken.answers), 0)
    finally:
        arriving.cancel()
        await asyncio.gather(arriving, return_exceptions=True)


async def _arrive(desk: Desk, inbox: Inbox, numbers: Iterator[int], taken: _Taken) -> None:
    """Write one message after the other into the inbox, as is done before each is acknowledged."""
    for number in numbers:
        ts = f"{number}.000100"
        inbound = Inbound(f"Ev{number}", "T1", "C1", "channel", "U1", "Is it open on Sundays?", ts, ts)
        began = time.perf_counter()
        await desk.parts.store(partial(inbox.put, inbound))
        taken.arrivals.append(time.perf_counter() - began)
        await asyncio.sleep(_ARRIVALS_APART)


async def _rebuilt(settings: Settings) -> ChildRun:
    """Rebuild the index in a process of its own, as `twohop serve` does."""
    argv = [sys.executable, "-m", "bot.cli", "index", "--rebuild", "--json"]
    argv += ["--config", str(sample() / "twohop.toml")]
    env = {name: value for name, value in os.environ.items() if name not in VENDOR_NAMES}
    env |= {
        "TWOHOP_INDEX": settings.index,
        "TWOHOP_MODEL": "",
        "TWOHOP_DATA": str(settings.data),
        "TWOHOP_SOURCES__PATHS": json.dumps([str(path) for path in settings.sources.paths]),
        "TWOHOP_TICKETS__CSV": json.dumps([str(path) for path in settings.tickets.csv]),
    }
    return await run_child(argv, deadline_seconds=settings.sync.deadline_minutes * 60, env=env)
