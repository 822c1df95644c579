"""The index run inside `twohop serve`: by plan, and for admins by `/twohop reindex`; one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from sqlalchemy.exc import SQLAlchemyError

from bot.app import Executor
from bot.config import SyncSettings
from bot.plans import check_plans, plans_of
from bot.slack import text, views
from bot.slack.access import Us, outsider
from bot.slack.worker import UNREACHABLE, code
from bot.store import Inbox
from ingest.database import Outage
from ingest.errors import IndexingError
from ingest.runs import Run, Runs, State
from ingest.schedule import EVERYTHING, KILLED, ChildRun, Plan, Schedule, run_child

_SHOWN_SKIPS = 10
_MOST_REASON = 500
_POSTS = 4
_COUNT_SECONDS = 1.5
"""Slack waits three seconds for the reply to a command."""
_BUSY_SECONDS = 5.0
_SETTLING_SECONDS = 900.0
"""How long a bot that was just started has to catch up before it raises an alarm."""
_HELP = (
    "`/twohop status` shows of when the index is; to admins also what is indexed and what is being answered\n"
    "`/twohop reindex` reads the sources again, `/twohop reindex NAME` only one of them (admins)\n"
    "To ask something, mention me in a channel or write to me in a direct message."
)

_log = logging.getLogger(__name__)


class IndexRuns:
    """Runs the index command as a child process and tells whoever asked how it ended.

    `argv` is the command that prints a JSON report, or empty where there is nothing to index again; it is told the id of
    its run. A run is kept in the database until its result is told, so a process that dies over it leaves that to the
    next one. `sources` names what can be read alone, `documents` counts what is indexed.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        us: Us,
        inbox: Inbox,
        runs: Runs,
        run: Executor,
        *,
        argv: Sequence[str],
        sources: Callable[[], Sequence[str]],
        documents: Callable[[], Awaitable[int]],
        admins: Collection[str],
        settings: SyncSettings,
        zone: tzinfo = UTC,
    ) -> None:
        self._client = client
        self._us = us
        self._inbox = inbox
        self._runs = runs
        self._run = run
        self._argv = argv
        self._sources = sources
        self._documents = documents
        self._admins = frozenset(admins)
        self._deadline = settings.deadline_minutes * 60
        self._zone = zone
        self._tasks: set[asyncio.Task[ChildRun]] = set()
        self._own = frozenset(settings.schedule)
        self._settings = settings
        self._schedule = Schedule(
            self._by_clock,
            plans_of(settings) if argv else (),
            zone=zone,
            jitter_seconds=settings.jitter_seconds,
        )
        self._up_since = runs.now()

    async def start(self, *, now: bool) -> None:
        """Start the plans, and one run at once where nothing is indexed yet or a plan was missed.

        Raises ConfigError where a plan is for a source that is not there.
        """
        known = await self._run(self._sources)
        if self._argv:
            check_plans(self._settings, known, self._zone)
        if now and self._argv and (run := await self._run(lambda: self._runs.start("sync", why="schedule"))):
            self._begin(run)
            self._schedule.start()
        else:
            self._schedule.start([plan for plan in self._schedule.plans if await self._missed(plan, 1)])

    async def keep(self) -> None:
        """Renew the leases, and tell of the runs whose process died; ends when cancelled."""
        outage = Outage(_log, "the index runs could not be read")
        while True:
            try:
                await self._run(self._runs.renew)
                for run in await self._run(self._runs.abandoned):
                    await self._tell(run)
                for plan in self._schedule.plans:
                    await self._watch(plan)
            except SQLAlchemyError as error:
                outage.failed(error)
            else:
                outage.over()
            await asyncio.sleep(self._runs.lease / 3)

    async def stop(self) -> None:
        """End the interval and whatever runs; whoever asked for it is told."""
        await self._schedule.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def command(self, body: Mapping[str, Any]) -> str:
        """Answer `/twohop …`; the reply is seen by its user alone."""
        if outsider(body, self._us):
            return views.REFUSALS["external"]
        user = str(body.get("user_id") or "")
        match (body.get("text") or "").split():
            case [word, *sources] if word.casefold() == "reindex":
                return await self._reindex(user, sources)
            case [word] if word.casefold() == "status":
                return await self._status(user)
            case _:
                return _HELP

    async def _reindex(self, user: str, sources: Sequence[str]) -> str:
        if user not in self._admins:
            return (
                "Only this bot's admins can start an index run. "
                "Whoever runs the bot can add your user id to `slack.admins`."
            )
        if not self._argv:
            return "There is nothing to read again: this is the sample company. Set `sources.paths` to your own folders."
        known = await self._run(self._sources)
        if unknown := [name for name in sources if name not in known]:
            return text.escaped(f"There is no source {unknown[0]!r}. The sources are: {', '.join(known)}.")
        run = await self._run(lambda: self._runs.start("sync", why="slack", who=user, sources=sources))
        if run is None:
            running = await self._run(self._runs.running)
            since = f" since {self._clock(running.started_at)}" if running else ""
            return f"An index run is already under way{since}. Ask again when it is done."
        self._begin(run)
        return "The index run has begun. I will write to you when it is done; answers go on from what is indexed now."

    async def _status(self, user: str) -> str:
        """Say of when the index is; how much there is of what is for admins, as a guest's command looks like a member's."""
        run = await self._run(self._runs.latest)
        until = await self._until()
        if user not in self._admins:
            return f"{until} An index run is under way." if run and run.state == "running" else until
        counts = await self._run(self._inbox.counts)
        waiting, at_work = counts.get("new", 0), counts.get("working", 0) + counts.get("sending", 0)
        lines = [f"{await self._indexed()} {until}"]
        lines += [
            f"Questions: {waiting} waiting, {at_work} being answered, {counts.get('done', 0)} answered."
        ]
        if run is None:
            lines.append("No index run so far.")
        else:
            # What was skipped, and where, is for whoever asked for the run.
            result = f": {told(run).splitlines()[0]}" if run.state != "running" else ""
            far = f", {run.stage}: {run.done} documents" if run.state == "running" and run.stage else ""
            lines.append(
                f"The latest index run began on {self._clock(run.started_at)} and is {run.state}"
                f"{text.escaped(far)}{text.escaped(result)}"
            )
        return "\n".join(lines)

    async def _until(self) -> str:
        fresh = await self._run(self._runs.freshness)
        of = self._clock(fresh.read_at) if fresh.read_at else ""
        if fresh.rolled_back:
            which = f"the one of {of}" if of else "an earlier one"
            return f"The index was rolled back to {which}; the next run brings it up to date."
        return f"The index is of {of}." if of else "No index run came to its end so far."

    async def _indexed(self) -> str:
        try:
            async with asyncio.timeout(_COUNT_SECONDS):
                return f"{await self._documents()} documents are indexed."
        except (IndexingError, TimeoutError):
            return "The index does not answer."

    # --- one run ---------------------------------------------------------------------------------------------

    def _begin(self, run: Run) -> None:
        task = asyncio.create_task(self._carry_out(run), name=f"index run {run.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _by_clock(self, plan: Plan, slot: str) -> ChildRun | None:
        """Run a plan once over all processes, after whatever runs now."""
        while True:
            run = await self._run(
                lambda: self._runs.start("sync", why="schedule", sources=self._of(plan), slot=slot)
            )
            if run is not None:
                return await self._carry_out(run)
            if await self._run(lambda: self._runs.slot_taken(slot)):
                return None
            await asyncio.sleep(min(_BUSY_SECONDS, self._runs.lease / 3))

    def _of(self, plan: Plan) -> Sequence[str]:
        """Return the sources of a plan; none means all, with what is no longer a source taken out."""
        if plan.name != EVERYTHING:
            return (plan.name,)
        return [name for name in self._sources() if name not in self._own] if self._own else ()

    async def _missed(self, plan: Plan, times: int) -> bool:
        """Tell whether the last success of one of a plan's sources is longer ago than so many intervals."""

        longest = times * self._schedule.period_seconds(plan)
        return await self._run(lambda: self._runs.late(self._of(plan) or self._sources(), longest))

    async def _watch(self, plan: Plan) -> None:
        """Raise the alarm where a plan's last success is older than twice its interval, once over all processes."""
        settled = min(self._schedule.period_seconds(plan), _SETTLING_SECONDS)
        if self._runs.now() - self._up_since < settled:
            return
        if not await self._missed(plan, 2):
            if await self._run(lambda: self._runs.calm(plan.name)):
                _log.info("the index is up to date again: %s", plan.name)
        elif await self._run(lambda: self._runs.raise_alarm(plan.name)):
            past = await self._run(self._runs.history)
            said = late_said(plan, next((run for run in past if run.state != "running"), None))
            _log.error("%s", said)
            for admin in sorted(self._admins):
                await self._post(admin, said)

    async def _carry_out(self, run: Run) -> ChildRun:
        argv = [*self._argv, "--run", run.id, *(part for name in run.sources for part in ("--source", name))]
        try:
            child = await run_child(argv, deadline_seconds=self._deadline)
        except asyncio.CancelledError:
            await self._close(run, "cancelled", "the bot was stopped", None)
            raise
        if not child.ok:
            *before, last = child.output.split("\n")
            # The reason ends with the last line, unless it is another one.
            lines = before if child.reason.endswith(last.strip()) else [*before, last]
            _log.error("index run %s failed: %s", run.id, "\n".join([child.reason, *lines]))
        for note in (child.report or {}).get("notes", ()):
            _log.warning("index run %s: %s", run.id, note)
        failures = [str(one) for one in (child.report or {}).get("failures", ())]
        why = "" if child.ok else "; ".join(failures) or child.reason
        await self._close(run, "complete" if child.ok else "failed", why, child.report)
        return child

    async def _close(self, run: Run, state: State, failure: str, report: Mapping[str, Any] | None) -> None:
        """Close the run, where the child has not done it, and tell whoever asked."""
        await self._run(lambda: self._runs.finish(run.id, state, failure=failure, report=report))
        await self._tell(await self._run(lambda: self._runs.get(run.id)))

    async def _tell(self, run: Run) -> None:
        if not run.told:
            await self._post(run.who, told(run))
            await self._run(lambda: self._runs.told(run.id))

    async def _post(self, user: str, said: str) -> None:
        for attempt in range(_POSTS):
            try:
                await self._client.chat_postMessage(
                    channel=user, text=text.escaped(said), unfurl_links=False, unfurl_media=False
                )
            except UNREACHABLE as error:
                _log.warning("%s could not be told of an index run: %s", user, code(error))
                await asyncio.sleep(2.0**attempt)
            else:
                return
        _log.error("%s was not told of an index run: %s", user, said)

    def _clock(self, seconds: float) -> str:
        return f"{datetime.fromtimestamp(seconds, self._zone):%d %B, %H:%M}"


def late_said(plan: Plan, latest: Run | None) -> str:
    """Return the alarm: what is late, how the latest run ended, and the next step."""
    what = "the sources" if plan.name == EVERYTHING else f"the source {plan.name!r}"
    how = f"every {float(plan.when):g} minutes" if " " not in plan.when.strip() else f"at {plan.when!r}"
    ended = (
        f" The latest run is {latest.state}{f': {latest.failure[:_MOST_REASON]}' if latest.failure else ''}."
        if latest
        else ""
    )
    return (
        f"The index is late: {what} should be read {how}; for more than twice that time no run came to its end.{ended}\n"
        f"What was indexed before still answers. Next step: run `twohop index history` and `twohop index` where the bot runs."
    )


def told(run: Run) -> str:
    """Return how a run ended: counts, skipped documents and duration, or the failure with its next step."""
    report = run.report
    counts = ", ".join(
        f"{report[name]} {name}" for name in ("added", "changed", "removed", "unchanged") if name in report
    )
    skipped = [f"- {one['uri']}: {one['reason']}" for one in report.get("skipped", ())]
    match run.state:
        case "complete" if run.kind == "rollback":
            lines = [f"The index was rolled back to {report.get('generation', 'an earlier one')}."]
        case "complete":
            lines = [f"The index run is done after {run.seconds:.0f} s: {counts}, {len(skipped)} skipped."]
        case "cancelled":
            lines = [
                f"The index run did not end: {run.failure}.",
                "Next step: send `/twohop reindex` again; a new run goes on where this one was.",
            ]
        case _:
            why = "; ".join(run.failure.splitlines())
            lines = [
                f"The index run failed after {run.seconds:.0f} s: {why[:_MOST_REASON]}",
                "What was indexed before still answers. Next step: "
                + (
                    "see to the machine's memory"
                    if why.startswith(KILLED)
                    else "run `twohop index` where the bot runs, mend what it names"
                )
                + ", and send `/twohop reindex` again.",
            ]
    if skipped:
        more = len(skipped) - _SHOWN_SKIPS
        lines += ["Skipped:", *skipped[:_SHOWN_SKIPS], *([f"and {more} more"] if more > 0 else [])]
    return "\n".join(lines)
