"""How the bot is: its parts looked at one by one, and the port on which people and Prometheus ask."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from sqlalchemy.exc import SQLAlchemyError

from bot.app import Desk, Executor
from bot.config import HealthSettings
from bot.metrics import Metrics, Part
from bot.store import Inbox
from ingest.database import trouble
from ingest.errors import ConfigError, TicketsUnavailable, TwohopError
from ingest.runs import Runs
from ingest.schedule import EVERYTHING
from ingest.types import Where

_LOOK_SECONDS = 2.0
"""How long a part may take to say how it is; whoever asks waits no longer."""
_NOBODY = Where(readers=frozenset({"nobody"}))

Look = Callable[[], Part]
"""Looks at one part, on a thread; what it raises is the reason why the part is not well."""

_log = logging.getLogger(__name__)


def looks(desk: Desk, inbox: Inbox, runs: Runs, metrics: Metrics) -> dict[str, Look]:
    """Return how each part of a running bot is looked at, all but Slack's connection."""

    def queue() -> Part:
        counts, waits = inbox.counts(), inbox.waiting_seconds()
        waiting = sum(counts.get(state, 0) for state in ("new", "working", "sending"))
        return Part(
            waits <= desk.settings.health.queue_seconds,
            f"{waiting} messages have no answer yet, the oldest for {waits:.0f} s",
            {"queue_depth": counts, "queue_age_seconds": waits},
        )

    def index() -> Part:
        late, fresh = runs.alarms(), runs.freshness()
        ended = fresh.read_at
        if ended is None and (first := runs.running()) and first.kind != "rollback":
            said = f"first run under way, {first.stage or 'it begins'}: {first.done} documents"
            return Part(True, said, {"index_late": 0, "index_runs": runs.counts()})
        named = ("the sources" if name == EVERYTHING else name for name in late)
        age = max(0.0, runs.now() - ended) if ended else None
        said = (
            f"last read to its end {age:.0f} s ago" if age is not None else "never read to its end by a run"
        )
        if fresh.rolled_back:
            said = f"rolled back to an index that was {said}; the next run brings it up to date"
        return Part(
            not late,
            f"late: {', '.join(named)}; {said}; see `twohop index history`" if late else said,
            {
                "index_late": len(late),
                "index_runs": runs.counts(),
                **({"index_age_seconds": age} if age is not None else {}),
            },
        )

    def state_database() -> Part:
        desk.store.prove()
        return Part(True, "answers and can be written")

    def ticket_database() -> Part:
        desk.tickets.get("0", frozenset(desk.tickets.settings.readers))
        return Part(True, "answers")

    def search() -> Part:
        found = desk.index.rank("health", None, 1, _NOBODY, time.monotonic() + _LOOK_SECONDS)
        failed = "; ".join(f"{arm}: {why}" for arm, why in found.failed.items())
        return Part(not failed, failed or "answers")

    def model() -> Part:
        if metrics.model_ended is None:
            return Part(True, "not asked since the start" if desk.settings.model else "none is set")
        outcome, at = metrics.model_ended
        return Part(outcome == "ok", f"{outcome} {time.monotonic() - at:.0f} s ago")

    return {
        "queue": queue,
        "index": index,
        "state database": state_database,
        "ticket database": ticket_database,
        "search": search,
        "model": model,
    }


class Health:
    """Looks at all parts at once; a part that hangs is asked again only when it has answered."""

    def __init__(self, looks: Mapping[str, Look], *, seconds: float = _LOOK_SECONDS) -> None:
        self._looks = looks
        self._seconds = seconds
        self._run = Executor("health", len(looks))
        self._asked: dict[str, asyncio.Future[Part]] = {}
        self._unwell: frozenset[str] = frozenset()

    async def look(self) -> dict[str, Part]:
        """Return how each part is, in about as long as a part may take."""
        for name, look in self._looks.items():
            if name not in self._asked or self._asked[name].done():
                self._asked[name] = asyncio.ensure_future(self._run(look))
        asked = dict(self._asked)
        await asyncio.wait(asked.values(), timeout=self._seconds)
        parts = {name: self._answered(future) for name, future in asked.items()}
        self._tell(parts)
        return parts

    def close(self) -> None:
        """Ask nobody any more."""
        for future in self._asked.values():
            future.cancel()
        self._run.close()

    def _answered(self, future: asyncio.Future[Part]) -> Part:
        if not future.done():
            return Part(False, f"did not answer in {self._seconds:g} s")
        match future.exception():
            case None:
                return future.result()
            case TicketsUnavailable() as error:
                return Part(False, error.reason)
            case TwohopError() as error:
                return Part(False, str(error))
            case SQLAlchemyError() as error:
                # Its text may hold the address and the user of the database.
                _log.debug("a database did not answer", exc_info=error)
                return Part(
                    False,
                    f"the state database fails: {trouble(error)}; the entry `state database` has the next step",
                )
            case error:
                _log.error("a part could not be looked at", exc_info=error)
                return Part(False, f"{type(error).__name__}; the log has the details")

    def _tell(self, parts: Mapping[str, Part]) -> None:
        unwell = frozenset(name for name, part in parts.items() if not part.ok)
        for name in sorted(unwell - self._unwell):
            _log.warning("%s is not well: %s", name, parts[name].said)
        for name in sorted(self._unwell - unwell):
            _log.info("%s is well again", name)
        self._unwell = unwell


@asynccontextmanager
async def answering(
    settings: HealthSettings, looks: Mapping[str, Look], metrics: Metrics, say: Callable[[str], None]
) -> AsyncIterator[None]:
    """Answer `/healthz`, `/livez` and `/metrics` on a port of their own, on the running loop; nothing with port 0.

    Raises ConfigError when the port cannot be had.
    """
    if not settings.port:
        yield
        return
    health = Health(looks)

    async def healthz(_: web.Request) -> web.Response:
        parts = await health.look()
        reasons = [f"{name}: {part.said}" for name, part in parts.items() if not part.ok]
        report = {
            "ok": not reasons,
            "reasons": reasons,
            "parts": {
                name: {"ok": part.ok, "said": part.said, **part.numbers} for name, part in parts.items()
            },
        }
        return web.json_response(report, status=503 if reasons else 200)

    async def livez(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(
            body=metrics.text(await health.look()),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    site = web.Application()
    site.add_routes([web.get("/healthz", healthz), web.get("/livez", livez), web.get("/metrics", numbers)])
    runner = web.AppRunner(site, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            raise ConfigError(
                f"port {settings.port} of {settings.host!r} cannot be had: {error.strerror}; "
                "choose another with TWOHOP_HEALTH__PORT"
            ) from error
        say(f"health and metrics are on http://{settings.host}:{settings.port}")
        yield
    finally:
        await runner.cleanup()
        health.close()
