"""The index run inside `twohop serve`: at an interval, and for admins by `/twohop reindex`; one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from sqlalchemy.exc import SQLAlchemyError

from bot.app import Executor
from bot.slack import text
from bot.slack.worker import UNREACHABLE, code
from bot.store import Inbox, Job, Jobs
from ingest.schedule import ChildRun, Schedule, run_child

KIND = "index"
_SHOWN_SKIPS = 10
_MOST_REASON = 500
_POSTS = 4
_HELP = (
    "`/twohop status` shows what is indexed and what is being answered\n"
    "`/twohop reindex` reads the sources again (admins)\n"
    "To ask something, mention me in a channel or write to me in a direct message."
)

_log = logging.getLogger(__name__)


class IndexRuns:
    """Runs the index command as a child process and tells whoever asked how it ended.

    `argv` is the command that prints a JSON report, or empty where there is nothing to index again. A job is kept in the
    database until its result is told, so a process that dies over it leaves it to the next one.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        inbox: Inbox,
        jobs: Jobs,
        run: Executor,
        *,
        argv: Sequence[str],
        admins: Collection[str],
        every_seconds: float,
        deadline_seconds: float,
        zone: tzinfo = UTC,
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._jobs = jobs
        self._run = run
        self._argv = argv
        self._admins = frozenset(admins)
        self._deadline = deadline_seconds
        self._zone = zone
        self._tasks: set[asyncio.Task[ChildRun]] = set()
        self._schedule = Schedule(self._by_clock, every_seconds=every_seconds) if every_seconds else None

    async def start(self, *, now: bool) -> None:
        """Start the interval, and one run at once where nothing is indexed yet."""
        if self._schedule and self._argv:
            self._schedule.start()
        if now and self._argv and (job := await self._run(lambda: self._jobs.start(KIND, ""))):
            self._begin(job)

    async def keep(self) -> None:
        """Renew the leases, and tell of the jobs whose process died; ends when cancelled."""
        while True:
            try:
                await self._run(self._jobs.renew)
                for job in await self._run(self._jobs.abandoned):
                    await self._close(
                        job, failed=True, result=_interrupted("its process ended before it did")
                    )
            except SQLAlchemyError:
                _log.exception("the jobs could not be read; trying again")
            await asyncio.sleep(self._jobs.lease / 3)

    async def stop(self) -> None:
        """End the interval and whatever runs; whoever asked for it is told."""
        if self._schedule:
            await self._schedule.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def command(self, body: Mapping[str, Any]) -> str:
        """Answer `/twohop …`; the reply is seen by its user alone."""
        user = str(body.get("user_id") or "")
        match (body.get("text") or "").casefold().split():
            case ["reindex"]:
                return await self._reindex(user)
            case ["status"]:
                return await self._status()
            case _:
                return _HELP

    async def _reindex(self, user: str) -> str:
        if user not in self._admins:
            return (
                "Only this bot's admins can start an index run. "
                "Whoever runs the bot can add your user id to `slack.admins`."
            )
        if not self._argv:
            return "There is nothing to read again: this is the sample company. Set `sources.paths` to your own folders."
        job = await self._run(lambda: self._jobs.start(KIND, user))
        if job is None:
            running = await self._run(lambda: self._jobs.running(KIND))
            since = f" since {self._clock(running.started_at)}" if running else ""
            return f"An index run is already under way{since}. Ask again when it is done."
        self._begin(job)
        return "The index run has begun. I will write to you when it is done; answers go on from what is indexed now."

    async def _status(self) -> str:
        counts = await self._run(self._inbox.counts)
        job = await self._run(lambda: self._jobs.latest(KIND))
        waiting, at_work = counts.get("new", 0), counts.get("working", 0) + counts.get("sending", 0)
        lines = [f"Questions: {waiting} waiting, {at_work} being answered, {counts.get('done', 0)} answered."]
        if job is None:
            lines.append("No index run so far.")
        else:
            # What was skipped, and where, is for whoever asked for the run.
            result = f": {job.result.splitlines()[0]}" if job.result else ""
            lines.append(
                f"The latest index run began on {self._clock(job.started_at)} and is {job.state}{text.escaped(result)}"
            )
        return "\n".join(lines)

    # --- one run ---------------------------------------------------------------------------------------------

    def _begin(self, job: Job) -> None:
        task = asyncio.create_task(self._carry_out(job), name=f"index run {job.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _by_clock(self) -> ChildRun:
        job = await self._run(lambda: self._jobs.start(KIND, ""))
        if job is None:
            return ChildRun(True, None, 0.0, {}, "", "another one is under way")
        return await self._carry_out(job)

    async def _carry_out(self, job: Job) -> ChildRun:
        try:
            run = await run_child(self._argv, deadline_seconds=self._deadline)
        except asyncio.CancelledError:
            await self._close(job, failed=True, result=_interrupted("the bot was stopped"))
            raise
        if not run.ok:
            _log.error("index run %s failed: %s\n%s", job.id, run.reason, run.output)
        await self._close(job, failed=not run.ok, result=told(run))
        return run

    async def _close(self, job: Job, *, failed: bool, result: str) -> None:
        """Tell whoever asked, then close the job."""
        if job.user:
            await self._tell(job.user, result)
        await self._run(lambda: self._jobs.finish(job, failed=failed, result=result))

    async def _tell(self, user: str, result: str) -> None:
        for attempt in range(_POSTS):
            try:
                await self._client.chat_postMessage(
                    channel=user, text=text.escaped(result), unfurl_links=False, unfurl_media=False
                )
            except UNREACHABLE as error:
                _log.warning("the result of an index run could not be told to %s: %s", user, code(error))
                await asyncio.sleep(2.0**attempt)
            else:
                return
        _log.error("the result of an index run was not told to %s: %s", user, result)

    def _clock(self, seconds: float) -> str:
        return f"{datetime.fromtimestamp(seconds, self._zone):%d %B, %H:%M}"


def told(run: ChildRun) -> str:
    """Return how a run ended: counts, skipped documents and duration, or the failure with its next step."""
    report = run.report or {}
    counts = ", ".join(
        f"{report[name]} {name}" for name in ("added", "changed", "removed", "unchanged") if name in report
    )
    skipped = [f"- {one['uri']}: {one['reason']}" for one in report.get("skipped", ())]
    failures = [str(one) for one in report.get("failures", ())]
    if run.ok:
        lines = [f"The index run is done after {run.seconds:.0f} s: {counts}, {len(skipped)} skipped."]
    else:
        why = "; ".join(failures) or run.reason
        lines = [
            f"The index run failed after {run.seconds:.0f} s: {why[:_MOST_REASON]}",
            "What was indexed before still answers. Next step: run `twohop index` where the bot runs, mend what it names, and send `/twohop reindex` again.",
        ]
    if skipped:
        more = len(skipped) - _SHOWN_SKIPS
        lines += ["Skipped:", *skipped[:_SHOWN_SKIPS], *([f"and {more} more"] if more > 0 else [])]
    return "\n".join(lines)


def _interrupted(why: str) -> str:
    return f"The index run did not end: {why}. Next step: send `/twohop reindex` again; a new run goes on where this one was."
