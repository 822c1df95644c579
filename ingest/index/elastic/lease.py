"""Who rebuilds: a row in Elasticsearch that its holder keeps renewing, so that a dead one does not block for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from elasticsearch import ApiError, AsyncElasticsearch, BadRequestError, ConflictError, NotFoundError
from elasticsearch import TransportError as TransportFailed

from ingest.errors import IndexingError
from ingest.index.elastic.wire import Wire

SECONDS = 60.0
"""How long after its holder's last sign of life somebody else may take over, where nothing else is set."""

_BEATS = 4
"""Renewals in the time of a lease."""
_ID = "rebuild"

_log = logging.getLogger(__name__)


class Held(IndexingError):
    """Somebody else holds the lease, `until` then if it is not renewed."""

    def __init__(self, otherwise: str, until: str) -> None:
        super().__init__(f"{otherwise}; if it was killed, its lease ends at {until}")
        self.until = until


class Lease:
    """One at a time over all processes; `otherwise` is what whoever comes second is told.

    It lasts `seconds` after its holder's last sign of life, within which clocks must agree. Holders that have `ended`
    are dead: nobody waits for them.
    """

    def __init__(
        self,
        wire: Wire,
        index: str,
        holder: str,
        clock: Callable[[], datetime],
        otherwise: str,
        *,
        seconds: float = SECONDS,
        ended: Collection[str] = (),
    ) -> None:
        self._seconds = seconds
        self._ended = frozenset(ended)
        self._wire = wire
        self._index = index
        self._holder = holder
        self._clock = clock
        self._otherwise = otherwise
        self._place: dict[str, Any] = {"op_type": "create"}
        self._stop: Callable[[], object] = lambda: None

    def take(self) -> None:
        """Take it and keep it alive; raises IndexingError while another holder is alive."""
        self._wire.ask(self._take)
        self._stop = self._wire.start(self._beat)

    def renew(self) -> None:
        """Make sure that it is still ours; raises IndexingError where it is not."""
        self._wire.ask(self._write)

    def release(self) -> None:
        """Let the next one in at once; where that cannot be said, the lease runs out by itself."""
        self._stop()
        with contextlib.suppress(IndexingError):
            self._wire.ask(lambda client: client.delete(index=self._index, id=_ID, **self._place))

    async def _take(self, client: AsyncElasticsearch) -> None:
        try:
            found = await client.get(index=self._index, id=_ID)
        except NotFoundError:
            await self._make(client)
        else:
            held = found["_source"]
            alive = held["holder"] != self._holder and held["holder"] not in self._ended
            if alive and datetime.fromisoformat(held["until"]) > self._clock():
                raise self._held(held)
            self._place = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        await self._write(client)

    def _held(self, row: Mapping[str, Any]) -> Held:
        return Held(self._otherwise, f"{datetime.fromisoformat(row['until']):%Y-%m-%d %H:%M:%S %Z}")

    async def _make(self, client: AsyncElasticsearch) -> None:
        keyword = {"type": "keyword"}
        mappings = {"dynamic": "strict", "properties": {"holder": keyword, "until": keyword}}
        try:
            await client.indices.create(
                index=self._index,
                settings={"number_of_shards": 1, "auto_expand_replicas": "0-1"},
                mappings=mappings,
            )
        except BadRequestError as error:
            if "resource_already_exists" not in str(error):
                raise

    async def _write(self, client: AsyncElasticsearch) -> None:
        until = self._clock() + timedelta(seconds=self._seconds)
        row = {"holder": self._holder, "until": until.isoformat()}
        try:
            written = await client.index(index=self._index, id=_ID, document=row, **self._place)
        except ConflictError:
            # A request whose answer was lost, and the heartbeat beside us, write as we do.
            found = await client.get(index=self._index, id=_ID)
            if found["_source"]["holder"] != self._holder:
                raise self._held(found["_source"]) from None
            written = found
        self._place = {"if_seq_no": written["_seq_no"], "if_primary_term": written["_primary_term"]}

    async def _beat(self, client: AsyncElasticsearch) -> None:
        pause = self._seconds / _BEATS
        client = client.options(request_timeout=pause)
        while True:
            await asyncio.sleep(pause)
            try:
                await self._write(client)
            except Held:
                return
            except (ApiError, TransportFailed) as error:
                _log.warning("the lease of the rebuild could not be renewed, trying again: %s", error)
