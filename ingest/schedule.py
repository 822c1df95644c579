"""When to index: the run as a child process, and the interval that starts it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from ingest.errors import ConfigError, TwohopError

GRACE_SECONDS = 5.0
"""Between asking a child to end and killing it."""

_NICENESS = 10
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_REPORT_BYTES = 4_000_000
_OUTPUT_BYTES = 16_000
_DRAIN_SECONDS = 2.0
"""How long to wait for the rest of what an ended child wrote; a stray process may hold its pipes for ever."""
_JITTER = 0.1
"""Longest random delay of a run as a share of the interval, so that several bots do not start at the same moment."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChildRun:
    """How a run in a child process ended."""

    ok: bool
    """It ended by itself with exit code 0 and a report."""
    returncode: int | None
    """Negative for a signal; None if it could not be started."""
    seconds: float
    report: Mapping[str, Any] | None
    """The last line of its stdout that is a JSON object, whether the run went well or not."""
    output: str
    """The end of its stderr."""
    reason: str = ""
    """Why it is not ok, in one line for a person."""


@dataclass(frozen=True, slots=True)
class Running:
    """A run was not started, because one is under way."""

    since: datetime


class _Child(asyncio.SubprocessProtocol):
    """Keeps the ends of what a child writes; `exited` and `closed` tell how far its end is.

    asyncio's own `Process.wait` returns only when the pipes are closed too, which a grandchild can keep from happening.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._ends = {1: (bytearray(), _REPORT_BYTES), 2: (bytearray(), _OUTPUT_BYTES)}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        end, most = self._ends[fd]
        end += data
        del end[:-most]

    def process_exited(self) -> None:
        self.exited.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        self.closed.set_result(None)

    def written(self, fd: int) -> str:
        """Return the end of what was written to stdout (1) or stderr (2)."""
        return self._ends[fd][0].decode("utf-8", errors="replace")


async def run_child(
    argv: Sequence[str],
    *,
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    grace_seconds: float = GRACE_SECONDS,
) -> ChildRun:
    """Run a command that prints a JSON report, and return how it ended; a failed run is a value, not an error.

    The child is nice, gets one thread for its arithmetic, nothing on stdin, and `env` (None: ours) for its environment,
    where secrets belong. It leads a process group. At the deadline, and when the awaiting task is cancelled, the group is
    asked to end (SIGTERM) and killed after `grace_seconds`; what the child leaves running at its own end is killed too.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        transport, child = await loop.subprocess_exec(
            _Child,
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            # A group, not a session: where the kernel groups tasks by session, niceness has no weight between sessions.
            process_group=0,
            env={**(os.environ if env is None else env), **_ONE_THREAD},
        )
    except OSError as error:
        return ChildRun(False, None, loop.time() - began, None, "", f"{argv[0]!r} cannot be started: {error}")
    try:
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PGRP, transport.get_pid(), _NICENESS)
        await asyncio.wait({child.exited}, timeout=deadline_seconds)
        late = not child.exited.done()
    finally:
        await _end(transport, child, grace_seconds)
    return _judged(
        transport.get_returncode(),
        loop.time() - began,
        child.written(1),
        child.written(2),
        f"it was stopped at its deadline of {deadline_seconds:g} seconds" if late else "",
    )


async def _end(transport: asyncio.SubprocessTransport, child: _Child, grace_seconds: float) -> None:
    """End the child's whole group, politely if the child still runs; also a cancelled caller leaves nothing behind."""
    group = transport.get_pid()
    try:
        if not child.exited.done():
            _signal(group, signal.SIGTERM)
            await asyncio.wait({child.exited}, timeout=grace_seconds)
    finally:
        _signal(group, signal.SIGKILL)
        try:
            await asyncio.wait({child.exited})
            await asyncio.wait({child.closed}, timeout=_DRAIN_SECONDS)
        finally:
            transport.close()


def _signal(group: int, number: signal.Signals) -> None:
    # A group that has ended is no such process on Linux and not permitted on macOS.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _judged(returncode: int | None, seconds: float, out: str, err: str, reason: str) -> ChildRun:
    report = _report(out)
    output = err.strip()
    if not reason and returncode:
        last = output.rpartition("\n")[2].strip()
        reason = f"it ended with exit code {returncode}{f': {last}' if last else ''}"
    elif not reason and report is None:
        reason = "it printed no report"
    return ChildRun(not reason, returncode, seconds, report, output, reason)


def _report(out: str) -> Mapping[str, Any] | None:
    """Return the last line that is a JSON object."""
    for line in reversed(out.split("\n")):
        if line.lstrip().startswith("{"):
            # RecursionError: a line of nothing but brackets.
            with contextlib.suppress(ValueError, RecursionError):
                found: Mapping[str, Any] = json.loads(line)
                return found
    return None


class Schedule:
    """Starts `run` at an interval and on demand, never twice at a time in this process.

    `run` is `run_child` with its arguments bound, or anything that wraps it. One run is late at most once: missed
    intervals are made up by a single run, and an interval that comes while one is under way is left out.
    """

    def __init__(
        self,
        run: Callable[[], Coroutine[Any, Any, ChildRun]],
        *,
        every_seconds: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if every_seconds <= 0:
            raise ConfigError(
                f"an interval of {every_seconds!r} seconds cannot be scheduled; give more than 0"
            )
        self._run = run
        self._every = every_seconds
        self._now = now
        self._scheduler: AsyncIOScheduler | None = None
        self._task: asyncio.Task[ChildRun] | None = None
        self._since: datetime | None = None
        self._stopped = False

    def start(self) -> None:
        """Start the interval on the running loop; the first run is one interval away."""
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        trigger = IntervalTrigger(seconds=self._every, timezone=UTC, jitter=self._every * _JITTER)
        # Without a misfire limit a run that was missed, however long ago, is made up for.
        self._scheduler.add_job(self._tick, trigger, coalesce=True, max_instances=1, misfire_grace_time=None)
        self._scheduler.start()

    async def run_now(self) -> ChildRun | Running:
        """Run and return how it ended, or tell since when one is under way.

        A caller that is cancelled does not end the run. Raises TwohopError after `stop`.
        """
        if self._stopped:
            raise TwohopError("the bot is stopping, so no index run is started; ask again when it is back")
        if self._task is not None and self._since is not None:
            return Running(self._since)
        return await asyncio.shield(self._begin())

    async def stop(self, wait_seconds: float = 0.0) -> None:
        """End the interval; wait this long for a run that is under way, then kill it."""
        self._stopped = True
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
            # The scheduler shuts down in the loop's next turn.
            await asyncio.sleep(0)
        if (task := self._task) is not None:
            try:
                await asyncio.wait({task}, timeout=wait_seconds)
            finally:
                task.cancel()
            await asyncio.wait({task})

    async def _tick(self) -> None:
        if self._task is not None:
            _log.info("no index run is started: one is under way since %s", self._since)
        elif not self._stopped:
            self._begin()

    def _begin(self) -> asyncio.Task[ChildRun]:
        self._since = self._now()
        self._task = asyncio.create_task(self._run(), name="index run")
        self._task.add_done_callback(self._ended)
        return self._task

    def _ended(self, task: asyncio.Task[ChildRun]) -> None:
        self._task = self._since = None
        if task.cancelled():
            _log.warning("the index run was stopped before its end")
        elif (error := task.exception()) is not None:
            _log.error("the index run failed", exc_info=error)
        elif (run := task.result()).ok:
            _log.info("the index run ended well after %.1f s", run.seconds)
        else:
            _log.error("the index run failed after %.1f s: %s", run.seconds, run.reason)
