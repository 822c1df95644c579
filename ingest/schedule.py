"""When to index: the run as a child process, and the plans that start it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import random
import re
import signal
from bisect import bisect_left
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from ingest.errors import ConfigError

GRACE_SECONDS = 5.0
"""Between asking a child to end and killing it."""

KILLED = "it was killed by signal"
"""How the reason of a child begins that did not end by itself."""

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
"""Longest random delay of a run as a share of its interval."""
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LOOKING_BACK = timedelta(days=366 * 5)
"""How far before now the latest due moment is looked for."""
_TICK = timedelta(microseconds=1)
"""The least time between two moments."""
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""What intervals count from, in every process alike."""

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
    if not reason and returncode and returncode < 0:
        reason = (
            f"{KILLED} {-returncode}, as a machine that is short of memory does it; look in the machine's log, and give it "
            "more memory if that is so"
        )
    elif not reason and returncode:
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


EVERYTHING = "*"
"""The plan of all sources that have none of their own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """When something is run: `name` tells one plan from another, in every process alike."""

    name: str
    when: str
    """Minutes between two runs (`15`), or a cron line of five fields (`0 3 * * *`)."""


Work = Callable[[Plan, str], Coroutine[Any, Any, ChildRun | None]]
"""Runs a plan for a slot, and returns how it ended, or None where another process did it."""


class Schedule:
    """Starts `run` when its plans are due, each never twice at a time in this process.

    Intervals count from the same moment in every process, so that all of them name a run alike: its slot is the plan and
    the moment that it was due. One run is late at most once: missed moments are made up by a single run, and one that
    comes while its plan runs is left out. Cron lines are read by the clocks of `zone` as cron reads them: a plan for
    certain hours is due once where clocks are put back, and at the change where they skip its time; a plan for every
    hour is due by the time that passes. Raises ConfigError for a plan that is none.
    """

    def __init__(
        self,
        run: Work,
        plans: Sequence[Plan],
        *,
        zone: tzinfo = UTC,
        jitter_seconds: float = 0.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._run = run
        self._now = now
        self._jitter = jitter_seconds
        self._due = {plan: _trigger(plan, zone) for plan in plans}
        self._scheduler: AsyncIOScheduler | None = None
        self._tasks: dict[Plan, asyncio.Task[ChildRun | None]] = {}
        self._began: dict[Plan, datetime] = {}
        self._zone = zone
        self._stopped = False

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Return the plans."""
        return tuple(self._due)

    def due(self, plan: Plan) -> datetime | None:
        """Return the next moment, in UTC, at which a plan is due; None where it never is."""
        return self._due[plan].get_next_fire_time(None, self._now().astimezone(UTC) + _TICK)

    def period_seconds(self, plan: Plan) -> float:
        """Return the time between the next two moments at which a plan is due."""
        first = self.due(plan)
        second = self._due[plan].get_next_fire_time(None, first + _TICK) if first else None
        return (second - first).total_seconds() if first and second else math.inf

    def slot(self, plan: Plan) -> str:
        """Return the name of the latest moment at which a plan was due.

        A trigger only tells the next one. The later it is asked, the later that is, so that halving the time looked back
        on finds it in some fifty steps, however often the plan is due.
        """
        now = self._now().astimezone(UTC)
        trigger = self._due[plan]

        def is_over(ago: int) -> bool:
            found = trigger.get_next_fire_time(None, now - ago * _TICK)
            return found is not None and found <= now

        ago = bisect_left(range(_LOOKING_BACK // _TICK), True, key=is_over)
        found = trigger.get_next_fire_time(None, now - ago * _TICK)
        return f"{plan.name}@{found.isoformat() if found and found <= now else 'never'}"

    def start(self, at_once: Collection[Plan] = ()) -> None:
        """Start the plans on the running loop; those `at_once` run now for the moment that was missed last."""
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        for plan, trigger in self._due.items():
            # A delay of its own in every process, which is no part of the slot.
            spread = random.uniform(0, min(self._jitter, self.period_seconds(plan) * _JITTER))  # noqa: S311 - no secret
            # Without a misfire limit a run that was missed, however long ago, is made up for.
            self._scheduler.add_job(
                self._tick,
                trigger,
                (plan, spread),
                coalesce=True,
                max_instances=1,
                misfire_grace_time=None,
            )
            if plan in at_once:
                self._begin(plan, spread)
        self._scheduler.start()

    async def stop(self, wait_seconds: float = 0.0) -> None:
        """End the plans; wait this long for what is under way, then cancel it."""
        self._stopped = True
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
            # The scheduler shuts down in the loop's next turn.
            await asyncio.sleep(0)
        tasks = set(self._tasks.values())
        if tasks:
            try:
                await asyncio.wait(tasks, timeout=wait_seconds)
            finally:
                for task in tasks:
                    task.cancel()
            await asyncio.wait(tasks)

    async def _tick(self, plan: Plan, spread: float) -> None:
        if plan in self._tasks:
            _log.info(
                "no index run of %s is started: the last one is under way since %s; the next one is due at %s",
                "the sources" if plan.name == EVERYTHING else repr(plan.name),
                self._clock(self._began[plan]),
                self._clock(self.due(plan)),
            )
        elif not self._stopped:
            self._begin(plan, spread)

    def _begin(self, plan: Plan, spread: float) -> None:
        task = asyncio.create_task(self._spread(plan, self.slot(plan), spread), name=f"plan {plan.name}")
        self._tasks[plan] = task
        self._began[plan] = self._now()
        task.add_done_callback(lambda ended: self._ended(plan, ended))

    async def _spread(self, plan: Plan, slot: str, seconds: float) -> ChildRun | None:
        await asyncio.sleep(seconds)
        return await self._run(plan, slot)

    def _clock(self, moment: datetime | None) -> str:
        return f"{moment.astimezone(self._zone):%Y-%m-%d %H:%M}" if moment else "no time"

    def _ended(self, plan: Plan, task: asyncio.Task[ChildRun | None]) -> None:
        del self._tasks[plan]
        if task.cancelled():
            _log.warning("the index run was stopped before its end")
        elif (error := task.exception()) is not None:
            _log.error("the index run failed", exc_info=error)
        elif (run := task.result()) is None:
            _log.info("the index run was another process's")
        elif run.ok:
            _log.info("the index run ended well after %.1f s", run.seconds)
        else:
            _log.error("the index run failed after %.1f s: %s", run.seconds, run.reason)


class _Every(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types.
    """Due each time that `step` has passed since 2000."""

    def __init__(self, step: timedelta) -> None:
        self._step = step

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the first due moment after `previous`, or at or after `now` where that is None."""
        start = previous.astimezone(UTC) + _TICK if previous else now.astimezone(UTC)
        return _EPOCH + -((_EPOCH - start) // self._step) * self._step


class _Cron(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types.
    """Due by a cron line; every moment that goes in or out is in UTC, where time never repeats itself."""

    def __init__(self, line: str, zone: tzinfo) -> None:
        self._line = line
        self._zone = zone
        self._elapsing = line.split()[1] == "*"
        # A calendar without changes of clock lists what the clock on the wall shows.
        self._cron = CronTrigger.from_crontab(line, timezone=zone if self._elapsing else UTC)

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the first due moment after `previous`, or at or after `now` where that is None.

        Raises:
            RuntimeError: the line's moments do not advance.
        """
        after = previous.astimezone(UTC) if previous else now.astimezone(UTC) - _TICK
        if self._elapsing:
            found: datetime | None = self._cron.get_next_fire_time(None, after + _TICK)
            return self._advanced(found and found.astimezone(UTC), after)
        wall = after.astimezone(self._zone).replace(tzinfo=UTC)
        while following := self._advanced(self._cron.get_next_fire_time(None, wall + _TICK), wall):
            # While an hour comes again, what is due in it is over; that is a day long at most.
            if (moment := _moment(following, self._zone)) > after:
                return moment
            wall = following
        return None

    def _advanced(self, found: datetime | None, before: datetime) -> datetime | None:
        if found is not None and found <= before:
            raise RuntimeError(f"the cron line {self._line!r} does not advance after {before}")
        return found


def _moment(wall: datetime, zone: tzinfo) -> datetime:
    """Return when clocks first show what `wall` says, in UTC: where they skip it, when they are put forward."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=UTC) == wall:
        return moment
    # Read by the offset before the change it is after the change, and the other way round (PEP 495).
    offset = moment.astimezone(zone).utcoffset()
    earliest = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    seconds = bisect_left(
        range(int((moment - earliest).total_seconds())),
        True,
        key=lambda passed: (earliest + timedelta(seconds=passed)).astimezone(zone).utcoffset() == offset,
    )
    return earliest + timedelta(seconds=seconds)


def check(plans: Iterable[Plan], zone: tzinfo = UTC) -> None:
    """Raise ConfigError for a plan that is none."""
    for plan in plans:
        _trigger(plan, zone)


def _trigger(plan: Plan, zone: tzinfo) -> _Cron | _Every:
    """Return the trigger of a plan; raises ConfigError naming it."""
    try:
        if len(fields := plan.when.split()) == 5:
            # APScheduler counts weekdays from Monday, cron from Sunday: names mean the same to both.
            fields[4] = re.sub(r"(?<![/\d])[0-7]\b", lambda day: _WEEKDAYS[int(day[0])], fields[4])
            trigger = _Cron(" ".join(fields), zone)
            if trigger.get_next_fire_time(None, datetime.now(UTC)) is None:
                raise ValueError("it is never due")
            return trigger
        try:
            minutes = float(plan.when)
        except ValueError as error:
            raise ValueError("it is neither a number nor five fields") from error
        # Less than a microsecond is none; what is no number of minutes is no time either.
        if not (math.isfinite(minutes) and (step := timedelta(minutes=minutes)) > timedelta()):
            raise ValueError("it is not more than 0 minutes")
        return _Every(step)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{plan.when!r} cannot be scheduled for {plan.name!r} ({error}); write in sync.schedule minutes, such as 15, "
            f"or a cron line, such as 0 3 * * mon-fri"
        ) from error
