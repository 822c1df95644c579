"""The worker: takes questions from the inbox, answers them through the desk and posts each answer once."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from sqlalchemy.exc import SQLAlchemyError

from bot.app import Desk, Executor
from bot.logs import ROW
from bot.metrics import Metrics
from bot.slack import access, text, views
from bot.slack.access import Us
from bot.slack.calls import UNREACHABLE, code, retry_after
from bot.slack.people import People
from bot.slack.thread import LoopThread
from bot.slack.views import Part
from bot.store import Inbound, Inbox, Refusal, Row
from ingest.database import Outage

T = TypeVar("T")

EVENT_TYPE = "twohop_answer"
"""Type of the metadata under which an answer carries its row's id."""

_POLL_SECONDS = 1.0
"""How often the inbox is looked at when nobody says that something arrived; another process may have written it."""
_MOST_TRIES = 3
"""How often a question may end its process before it is answered with an apology."""
_MOST_POSTS = 8
_LONGEST_PAUSE = 300.0
_POST_SECONDS = 120.0
_BETWEEN_POSTS = 1.0
"""Slack takes one message a second in a channel."""
_STATUS_SECONDS = 90.0
"""Slack clears a status after two minutes."""
_STATUS_CALL_SECONDS = 5.0
_BEYOND_DEADLINE = 30.0
"""Seconds past a question's own deadline after which it is answered with an apology."""
_REFUSED_BLOCKS = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"}
)
_HOPELESS = frozenset(
    {
        "channel_not_found",
        "not_in_channel",
        "is_archived",
        "user_not_in_channel",
        "restricted_action",
        "restricted_action_thread_locked",
        "cannot_reply_to_message",
        "messages_tab_disabled",
        "no_text",
        "thread_not_found",
    }
)
"""Errors that the same post would get again."""

_log = logging.getLogger(__name__)


class Worker:
    """Answers what is in the inbox: one after the other in a thread, several threads at a time.

    Everything it knows is in the database; another process that finds the lease of a row ended goes on with it.
    """

    def __init__(
        self,
        desk: Desk,
        inbox: Inbox,
        client: AsyncWebClient,
        us: Us,
        people: People,
        *,
        run: Executor,
        think: LoopThread,
        parallel: int,
        metrics: Metrics,
        reference: Callable[[], str] = lambda: uuid.uuid4().hex[:8],
    ) -> None:
        self._desk = desk
        self._inbox = inbox
        self._client = client
        self._us = us
        self._people = people
        self._run = run
        self._think = think
        self._parallel = parallel
        self._metrics = metrics
        self._reference = reference
        self._wake = asyncio.Event()
        self._beat = asyncio.Event()
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._answering: dict[str, asyncio.Task[Any]] = {}
        self._stops: set[asyncio.Task[None]] = set()
        self._next_post: dict[str, float] = {}
        self._closing = False
        self._unread = Outage(_log, "the inbox could not be read")
        self._unrenewed = Outage(_log, "the leases could not be renewed")
        self._unwritten = Outage(_log, "a row could not be written")

    # --- from the listeners ----------------------------------------------------------------------------------

    async def receive(self, inbound: Inbound) -> None:
        """Keep a message; one that is there already is absorbed."""
        if await self._run(lambda: self._inbox.put(inbound)):
            self._wake.set()

    async def stop(self, team: str, channel: str, thread_root: str, user: str) -> None:
        """Stop what is being answered in a thread: one's own at once, others' when Slack says that it is a member."""
        others = await self._run(lambda: self._inbox.stop(team, channel, thread_root, user))
        self._beat.set()
        if others:
            task = asyncio.create_task(self._stop_all(team, channel, thread_root, user))
            self._stops.add(task)
            task.add_done_callback(self._stops.discard)

    async def _stop_all(self, team: str, channel: str, thread_root: str, user: str) -> None:
        found = await self._people.find(user, self._desk.settings.limits.seconds)
        if found.kind != "member":
            return
        try:
            await self._run(lambda: self._inbox.stop(team, channel, thread_root))
        except SQLAlchemyError as error:
            self._unwritten.failed(error)
        self._beat.set()

    # --- the loops -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take rows as long as there is room for them; ends after `drain`."""
        heart = asyncio.create_task(self._keep_leases(), name="leases")
        try:
            while not self._closing:
                self._wake.clear()
                row = await self._claim() if len(self._at_work) < self._parallel else None
                if row is not None:
                    task = asyncio.create_task(self._work(row), name=f"answer {row.id}")
                    self._at_work[row.id] = task
                    task.add_done_callback(partial(self._done, row.id))
                    continue
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _POLL_SECONDS)
            await self._idle()
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)

    async def drain(self, seconds: float) -> int:
        """Take nothing new, wait for what runs, give the rest back, and return how many that were."""
        self._closing = True
        self._wake.set()
        if self._at_work:
            await asyncio.wait(set(self._at_work.values()), timeout=seconds)
        left = set(self._at_work.values())
        ending = left | self._stops
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await self._run(self._inbox.release)
        return len(left)

    async def _idle(self) -> None:
        while self._at_work:
            await asyncio.wait(set(self._at_work.values()))

    def _done(self, id_: str, _ended: asyncio.Task[None]) -> None:
        self._at_work.pop(id_, None)
        self._wake.set()

    async def _claim(self) -> Row | None:
        try:
            row = await self._run(self._inbox.claim)
        except SQLAlchemyError as error:
            # A database that is away for a moment must not end the loop.
            self._unread.failed(error)
            return None
        self._unread.over()
        return row

    async def _keep_leases(self) -> None:
        while True:
            self._beat.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._beat.wait(), self._inbox.lease / 3)
            ids = list(self._at_work)
            try:
                held = await self._run(partial(self._inbox.renew, ids))
            except SQLAlchemyError as error:
                self._unrenewed.failed(error)
                continue
            self._unrenewed.over()
            for id_ in ids:
                if id_ not in held and (task := self._at_work.get(id_)):
                    _log.warning("row %s is another process's now", id_)
                    task.cancel()
                elif held.get(id_) and (answering := self._answering.get(id_)):
                    answering.cancel()

    # --- one row ---------------------------------------------------------------------------------------------

    async def _work(self, row: Row) -> None:
        ROW.set(row.id)
        try:
            if row.state == "sending":
                await self._resume(row)
            elif row.stopped:
                await self._send(row, views.line(views.STOPPED))
            else:
                await self._begin(row)
        except SQLAlchemyError as error:
            # The row keeps its lease and is taken again when that ends.
            self._unwritten.failed(error)
        else:
            self._unwritten.over()

    async def _begin(self, row: Row) -> None:
        stopped = views.line(views.STOPPED)
        refusal = await self._stoppable(row, self._refusal(row), None)
        if refusal is None:
            await self._send(row, stopped)
        elif refusal:
            await self._refuse(row, refusal)
        else:
            async with self._status(row):
                await self._send(row, *await self._stoppable(row, self._answer(row), (stopped, "")))

    async def _resume(self, row: Row) -> None:
        """Post what another attempt, or another process, had ready; who may read an answer may have changed since."""
        refusal = "" if row.refusal else await self._refusal(row)
        if refusal:
            await self._refuse(row, refusal)
        else:
            await self._post(row, taken_over=True)
        await self._clear_status(row)

    async def _refusal(self, row: Row) -> Refusal:
        """Return why a row gets no answer; who its author is comes before where it was asked."""
        early = row.inbound.refusal
        if early not in ("", "shared"):
            return early
        found = await self._people.find(row.user, self._desk.settings.limits.seconds)
        return early if found.kind == "member" else found.kind

    async def _refuse(self, row: Row, refusal: Refusal) -> None:
        self._metrics.refused(refusal)
        # An ephemeral line needs somebody to see it, and in a direct message everything is private.
        ephemeral = bool(row.user) and not row.inbound.private
        await self._send(row, views.refused(refusal, ephemeral=ephemeral), refusal=refusal)

    async def _send(self, row: Row, parts: Sequence[Part], turn: str = "", refusal: Refusal = "") -> None:
        kept = [part.kept() for part in parts]
        if await self._run(lambda: self._inbox.sending(row, kept, turn, refusal)):
            row.parts, row.refusal = kept, refusal
            await self._post(row)

    async def _stoppable(self, row: Row, work: Coroutine[Any, Any, T], stopped: T) -> T:
        """Await some work on a row as a task of its own, which the row's end cancels and a stop does too."""
        task = asyncio.create_task(work)
        self._answering[row.id] = task
        try:
            return await task
        except asyncio.CancelledError:
            if _cancelled():
                raise
            return stopped
        finally:
            self._answering.pop(row.id, None)

    async def _answer(self, row: Row) -> tuple[Sequence[Part], str]:
        inbound = row.inbound
        asked = text.question(inbound.text, self._us.user)
        reference = self._reference()
        if row.tries > _MOST_TRIES:
            _log.error("row %s was begun %s times without an end; reference %s", row.id, row.tries, reference)
            self._metrics.failed()
            return views.sorry(reference), ""
        if not asked:
            return views.line(views.NO_FILES if inbound.files else views.HELP), ""
        try:
            async with asyncio.timeout(self._desk.settings.limits.seconds + _BEYOND_DEADLINE):
                return await self._asked(row, asked)
        except Exception:
            # Whatever broke, whoever asked hears of it, and the log has what.
            _log.exception("row %s could not be answered; reference %s", row.id, reference)
            self._metrics.failed()
            return views.sorry(reference), ""

    async def _asked(self, row: Row, asked: str) -> tuple[Sequence[Part], str]:
        inbound = row.inbound
        after = await self._run(lambda: self._inbox.last_turn(row))
        # Rules are applied and sentences are weighed on the loop that answers; it must not be the socket's.
        kept = await self._think(
            self._desk.answer(asked, asker=access.rights(self._desk, inbound), after=after)
        )
        self._metrics.turn(kept)
        _log.info("turn %s is %s after %s ms", kept.turn.id, kept.answer.shape, kept.turn.ms)
        notes = [views.FILES_UNREAD] if inbound.files else []
        about_tickets = await self._run(lambda: access.needs_direct_message(self._desk, inbound, kept.answer))
        if about_tickets and access.only_tickets(kept.answer):
            return views.line(views.TICKETS_IN_DM), kept.turn.id
        if about_tickets:
            notes.append(views.TICKETS_IN_DM)
        return views.answer(kept.answer, *notes), kept.turn.id

    # --- posting ---------------------------------------------------------------------------------------------

    async def _post(self, row: Row, *, taken_over: bool = False) -> None:
        """Post what is not yet in the thread and close the row; what fails is tried again later, by anybody."""
        if not await self._run(lambda: self._inbox.posting(row)):
            return
        try:
            async with asyncio.timeout(_POST_SECONDS):
                there = await self._already_there(row) if taken_over else frozenset()
                for n, part in enumerate(row.parts):
                    if n not in there:
                        await self._post_part(row, n, Part(**part))
        except UNREACHABLE as error:
            await self._not_posted(row, error)
        else:
            await self._run(lambda: self._inbox.finish(row))

    async def _not_posted(self, row: Row, error: Exception) -> None:
        why = code(error)
        if why in _HOPELESS or row.posts + 1 >= _MOST_POSTS:
            _log.error("row %s could not be posted and is given up: %s", row.id, why)
            await self._run(lambda: self._inbox.finish(row, why))
            if why in _HOPELESS and row.user and not row.inbound.private:
                await _quietly(self._say_that_it_failed(row, why))
            return
        pause = min(2.0**row.posts * 2, _LONGEST_PAUSE)
        pause = max(pause, retry_after(error))
        _log.warning("row %s could not be posted, once more in %.0f s: %s", row.id, pause, why)
        await self._run(lambda: self._inbox.later(row, pause, why))

    async def _say_that_it_failed(self, row: Row, why: str) -> None:
        """Tell whoever asked, where Slack does let us: no member is left without an answer or a reason."""
        if (await self._people.find(row.user, _STATUS_CALL_SECONDS)).kind != "member":
            return
        await self._client.chat_postMessage(
            channel=row.user, text=views.NOT_POSTED.format(channel=row.channel, why=why)
        )

    async def _already_there(self, row: Row) -> frozenset[int]:
        """Look in the thread for our own messages of this row; metadata of anybody else says nothing."""
        there: set[int] = set()
        cursor: str | None = None
        while True:
            try:
                page = await self._client.conversations_replies(
                    channel=row.channel,
                    ts=row.thread_root,
                    oldest=row.ts,
                    include_all_metadata=True,
                    limit=200,
                    cursor=cursor,
                )
            except SlackApiError as error:
                if code(error) == "thread_not_found":
                    return frozenset()
                raise
            for message in page.get("messages") or []:
                metadata = message.get("metadata") or {}
                payload = metadata.get("event_payload") or {}
                ours = message.get("user") == self._us.user or message.get("bot_id") == self._us.bot
                if ours and metadata.get("event_type") == EVENT_TYPE and payload.get("id") == row.id:
                    there.add(int(payload.get("part", 0)))
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return frozenset(there)

    async def _pace(self, channel: str) -> None:
        """Wait until the channel may have another message of this process."""
        now = asyncio.get_running_loop().time()
        self._next_post = {other: at for other, at in self._next_post.items() if at > now}
        at = self._next_post.get(channel, now)
        self._next_post[channel] = at + _BETWEEN_POSTS
        await asyncio.sleep(at - now)

    async def _post_part(self, row: Row, n: int, part: Part) -> None:
        await self._pace(row.channel)
        if part.ephemeral:
            # Slack keeps no record of it, so after a crash it may be seen twice.
            await self._client.chat_postEphemeral(
                channel=row.channel,
                user=row.user,
                text=part.text,
                thread_ts=row.thread_root if row.thread_root != row.ts else None,
            )
            return
        message: dict[str, Any] = {
            "channel": row.channel,
            "thread_ts": row.thread_root,
            "text": part.text,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": EVENT_TYPE, "event_payload": {"id": row.id, "part": n}},
        }
        try:
            await self._client.chat_postMessage(**message, blocks=part.blocks or None)
        except SlackApiError as error:
            if not part.blocks or code(error) not in _REFUSED_BLOCKS:
                raise
            _log.warning("row %s: blocks refused, posted as text: %s", row.id, error.response.data)
            await self._client.chat_postMessage(**message)

    # --- status ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _status(self, row: Row) -> AsyncIterator[None]:
        """Show that work is under way, and that it is over however it ends; it is decoration and never an error."""
        showing = asyncio.create_task(self._show_status(row))
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            await self._clear_status(row)

    async def _show_status(self, row: Row) -> None:
        while True:
            await _quietly(self._thread_status(row, "is reading the sources…"))
            await _quietly(self._session_status(row, "processing"))
            await asyncio.sleep(_STATUS_SECONDS)

    async def _clear_status(self, row: Row) -> None:
        for call, status in ((self._thread_status, ""), (self._session_status, "active")):
            if not await _quietly(call(row, status)):
                await _quietly(call(row, status))

    async def _thread_status(self, row: Row, status: str) -> None:
        await self._client.assistant_threads_setStatus(
            channel_id=row.channel, thread_ts=row.thread_root, status=status
        )

    async def _session_status(self, row: Row, status: str) -> None:
        await self._client.agents_sessions_setStatus(
            channel_id=row.channel, thread_ts=row.thread_root, status=status
        )


async def _quietly(call: Coroutine[Any, Any, None]) -> bool:
    """Await a call that may fail without consequence; tell whether it went well."""
    try:
        async with asyncio.timeout(_STATUS_CALL_SECONDS):
            await call
    except UNREACHABLE as error:
        _log.info("a status could not be set: %s", code(error))
        return False
    return True


def _cancelled() -> bool:
    """Tell whether it is this task that is being cancelled, and not the one it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
