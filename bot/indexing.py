"""One index run: what was asked for, how it is carried out, and its report for people and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

from bot.app import Desk, indexed_roots
from ingest.embed import Embedder
from ingest.errors import ConfigError, IndexingError, TicketImportError
from ingest.index import GenerationInfo, Swept
from ingest.runs import Run, RunStopped
from ingest.sources.folder import printable
from ingest.sources.roots import Root
from ingest.sources.tickets import TicketSource
from ingest.sync import SyncReport, Watch
from ingest.tickets import ImportReport
from ingest.types import Where

_COUNTS = ("added", "changed", "removed", "unchanged")
_PROBES = 32
"""Texts that are embedded to measure a rate where no run has measured one."""
_MEASURED = 256
"""Chunks from which on the time of a run tells a rate: in less, loading the model is most of it."""


@dataclass(frozen=True, slots=True)
class Order:
    """What an index run shall do; without names it reads everything again."""

    named: tuple[Path, ...] = ()
    """Folders and files to read, which are remembered."""
    only: tuple[str, ...] = ()
    """Names of the sources to read."""
    forget: tuple[Path, ...] = ()
    rebuild: bool = False
    allow_removal: bool = False

    def takes(self, source: str) -> bool:
        """Tell whether a source is read."""
        return not self.only or source in self.only


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an index run did, or would do."""

    synced: tuple[SyncReport, ...]
    imported: tuple[ImportReport, ...] = ()
    failures: tuple[str, ...] = ()
    recall: Mapping[str, float] = field(default_factory=dict)
    """Of each golden question, where they were asked."""
    compared: bool = True
    """False where nothing was known of the golden questions before."""
    notes: tuple[str, ...] = ()
    """What somebody should mend though the index holds what the sources hold."""
    unimported: tuple[str, ...] = ()
    """Ticket files that could not be read, and why; what was imported of them before is still searched."""
    swept: Swept = field(default_factory=Swept)
    rolled_back: frozenset[str] = frozenset()
    """Names of the generations that were rolled back from since the run before."""
    generation: GenerationInfo | None = None
    """The one that answers after this run."""
    roots: tuple[Root, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[str, ...]:
        """What went wrong, in words; nothing where the index holds now what the sources hold."""
        incomplete = (f"{report.source}: {report.failure}" for report in self.synced if report.failure)
        return (*self.unimported, *self.failures, *incomplete)

    @property
    def chunks(self) -> int:
        """Chunks of the documents that were, or would be, added or changed."""
        return sum(report.chunks for report in self.synced)

    def lines(self) -> Iterable[str]:
        """Return the report for a person."""
        yield from (report.summary() for report in self.imported)
        yield from (report.summary() for report in self.synced)
        for name in self.swept.removed:
            why = "was rolled back from" if name in self.rolled_back else "a rebuild left behind when it died"
            yield f"removed {name}, which {why}"
        if self.swept.left:
            yield f"left alone, named like generations but not ours: {', '.join(self.swept.left)}"
        if self.recall:
            against = "" if self.compared else "; there is nothing yet to compare that with"
            yield f"golden questions: {len(self.recall)} asked, recall {fmean(self.recall.values()):.3f}{against}"
            if never := [id_ for id_, share in self.recall.items() if not share]:
                yield f"golden questions that find none of their documents: {', '.join(never)}"
        yield from (f"note: {note}" for note in self.notes)
        yield from (*self.unimported, *self.failures)
        yield f"indexed folders: {', '.join(f'{printable(str(root.path))} as {root.name}' for root in self.roots) or 'none'}"

    def as_json(self) -> dict[str, Any]:
        """Return the stable interface of `index --json`: counts of the index by source, what was skipped and what failed.

        Rows of a ticket file are counted under `imports`, and again under the source `tickets` as far as they are
        searched.
        """
        sources = {
            report.source: {
                **{name: len(getattr(report, name)) for name in (*_COUNTS, "skipped", "withheld")},
                "complete": report.complete and not (report.source == TicketSource.name and self.unimported),
                "embedded": report.embedded,
                "embedding_seconds": round(report.embedding_seconds, 3),
                "seconds": round(report.seconds, 3),
            }
            for report in self.synced
        }
        rows = [
            (f"{report.file.name} line {line}", why)
            for report in self.imported
            for line, why in report.skipped
        ]
        skipped = [*rows, *(pair for report in self.synced for pair in report.skipped)]
        return {
            "ok": not self.failed,
            **{name: sum(int(counts[name]) for counts in sources.values()) for name in _COUNTS},
            "skipped": [{"uri": uri, "reason": reason} for uri, reason in skipped],
            "withheld": [
                {"uri": uri, "reason": reason} for report in self.synced for uri, reason in report.withheld
            ],
            "failures": list(self.failed),
            "notes": [*self.notes, *(note for report in self.synced for note in report.noted())],
            "seconds": round(self.seconds, 3),
            "sources": sources,
            "folders": {root.name: str(root.path) for root in self.roots},
            "imports": {
                report.file.name: {
                    **{name: getattr(report, name) for name in (*_COUNTS, "kept")},
                    "skipped": len(report.skipped),
                    "seconds": round(report.seconds, 3),
                }
                for report in self.imported
            },
            "generation": self.generation
            and {"name": self.generation.name, "created_at": self.generation.created_at.isoformat()},
            "generations": {"removed": list(self.swept.removed), "left": list(self.swept.left)},
            "golden": {id_: round(share, 4) for id_, share in self.recall.items()},
        }


def carry_out(desk: Desk, order: Order, watch: Watch, history: Sequence[Run] = ()) -> Outcome:
    """Do what was asked for and return what came of it; what goes wrong with one source is told and the rest is done.

    `history` are earlier runs, newest first: from them comes the recall of golden questions that an index of another
    identity cannot be asked for, and which rebuilds are dead; the one that runs is this one. Raises RunStopped where `watch` ends the run, and other errors where nothing can be
    indexed at all.
    """
    began = time.monotonic()
    imported: list[ImportReport] = []
    unimported: list[str] = []
    failures: list[str] = []
    notes: list[str] = []
    recall: Mapping[str, float] = {}
    compared = True
    earlier: Mapping[str, float] = next(
        (run.report["golden"] for run in history if run.report.get("golden")), {}
    )
    # Only one runs at a time: whichever other one began a rebuild and did not end it is dead.
    run = next((run.id for run in history if run.state == "running"), "")
    swept = desk.index.sweep(run, {run.id for run in history if run.state != "running"})
    if swept.waiting:
        notes.append(swept.waiting)
    synced = [desk.forget_documents(path) for path in order.forget]
    if order.named or order.only or order.rebuild or not order.forget:
        if order.takes(TicketSource.name):
            for path in desk.settings.tickets.csv:
                watch.stage(f"importing {path.name}")
                try:
                    imported.append(
                        desk.import_tickets(path, anew=False, replace=True, allow_removal=order.allow_removal)
                    )
                    if imported[-1].failed:
                        unimported.append(f"{path.name}: {imported[-1].failure}")
                except TicketImportError as error:
                    # A ticket file that cannot be read is no reason to leave the documents as they were.
                    unimported.append(str(error))
        if order.rebuild:
            try:
                rebuilt = desk.rebuild(
                    order.named, allow_removal=order.allow_removal, earlier=earlier, watch=watch, run=run
                )
                synced += rebuilt.reports
                recall, compared = rebuilt.recall, rebuilt.compared
            except RunStopped:
                raise
            except IndexingError as error:
                # What was indexed before goes on answering.
                failures.append(str(error))
        else:
            synced += desk.sync_documents(
                order.named, only=order.only, allow_removal=order.allow_removal, watch=watch
            )
            if order.takes(TicketSource.name):
                synced.append(desk.sync_tickets(watch))
            if desk.settings.sync.golden:
                watch.stage("asking the golden questions")
                withheld = {uri for report in synced for uri, _ in report.withheld}
                try:
                    if earlier:
                        desk.golden_questions(withheld)
                    else:
                        recall, compared = desk.golden_recall(withheld), False
                except (ConfigError, IndexingError) as error:
                    # They guard a rebuild; documents are to be read again all the same.
                    notes.append(f"{error}; until then a rebuild is refused")
        if synced and not desk.index.documents(Where(readers=desk.asker().readers)):
            failures.append("nothing can be searched now: no file of these folders could be read")
    return Outcome(
        tuple(synced),
        tuple(imported),
        tuple(failures),
        recall,
        compared,
        tuple(notes),
        tuple(unimported),
        swept,
        _rolled_back(history),
        next((one for one in desk.index.generations() if one.live), None),
        indexed_roots(desk.settings),
        time.monotonic() - began,
    )


def _rolled_back(history: Sequence[Run]) -> frozenset[str]:
    """Return the generations that were rolled back from since the last run that read something."""
    rollbacks = takewhile(
        lambda run: run.kind == "rollback", (run for run in history if run.state != "running")
    )
    return frozenset(run.report.get("from", "") for run in rollbacks)


def rate(history: Sequence[Run], embedder: Embedder) -> float:
    """Return how many chunks are embedded in a second, as the fastest of the larger runs did; without one, measure it now."""
    sources = (of for run in history for of in run.report.get("sources", {}).values())
    rates = [
        of["embedded"] / of["embedding_seconds"]
        for of in sources
        if of.get("embedded", 0) >= _MEASURED and of.get("embedding_seconds")
    ]
    if rates:
        return float(max(rates))
    embedder.embed(["loads the model"], kind="passage")
    began = time.perf_counter()
    embedder.embed(["A sentence as long as many passages are. " * 12] * _PROBES, kind="passage")
    return _PROBES / (time.perf_counter() - began)
