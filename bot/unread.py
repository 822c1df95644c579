"""Which sources were never read to their end: what is not found may stand in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, tzinfo

from ingest.errors import IndexingError
from ingest.index import SearchIndex
from ingest.runs import Run, Runs
from ingest.sources.tickets import TicketSource
from ingest.types import Where


class Unread:
    """Tells of sources that no run has read to its end; what was read once is not looked up again."""

    def __init__(
        self,
        runs: Runs,
        index: SearchIndex,
        sources: Callable[[], Sequence[str]],
        readers: Callable[[], frozenset[str]],
        zone: tzinfo,
    ) -> None:
        self._runs = runs
        self._index = index
        self._sources = sources
        self._readers = readers
        self._zone = zone
        self._read: set[str] = set()

    def __call__(self) -> str:
        """Return as a clause that sources were not read to their end yet, and what to do; empty where all were.

        An index that does not answer is no source that was not read: the search says what the matter is.
        """
        names = set(self._sources()) - self._read
        if not names:
            return ""
        try:
            unread = self._unread(names)
        except IndexingError:
            return ""
        self._read |= names - unread
        if not unread:
            return ""
        return f"the sources have not been read to their end yet ({self.under_way() or 'run `twohop index`'})"

    def under_way(self) -> str:
        """Return which index run is under way, in words; empty where none is."""
        run = self._runs.running()
        return f"index run since {datetime.fromtimestamp(run.started_at, self._zone):%H:%M}" if run else ""

    def _unread(self, names: Collection[str]) -> set[str]:
        live = [one.created_at.timestamp() for one in self._index.generations() if one.live]
        # What ended before the live generation was made, was read into another index.
        runs = [
            run
            for run in self._runs.into_live()
            if live and (run.ended_at is None or run.ended_at >= live[0])
        ]
        unread = {name for name in names if not any(_read(run, name) for run in runs)}
        begun = {name for name in unread if any(_began(run, name) for run in runs)}
        # Runs are forgotten in time, and not everything that is indexed was indexed by one.
        unknown = unread - begun - {TicketSource.name}
        if unknown:
            unknown -= {one.source for one in self._index.documents(Where(readers=self._readers()))}
        return begun | unknown


def _read(run: Run, source: str) -> bool:
    of = run.report.get("sources", {}).get(source)
    return of is not None and bool(of.get("complete", run.state == "complete"))


def _began(run: Run, source: str) -> bool:
    return run.state != "complete" and (not run.sources or source in run.sources)
