"""What a workspace holds while it runs: messages, statuses, sessions, views, calls and broken rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.playground.workspace import App, Channel, User, Workspace, direct

ViolationKind = Literal[
    "unacked",
    "double_ack",
    "unknown_ack",
    "unknown_thread",
    "reply_as_thread",
    "unknown_argument",
    "post_rate",
    "update_rate",
    "text_cut",
    "bad_answer",
    "status_left",
    "session_left",
    "stream_left",
]
SessionStatus = Literal["active", "processing", "suspended", "closed"]

STATUS_SECONDS = 120.0
STREAM_SECONDS = 300.0
POST_BURST = 5
UPDATE_SECONDS = 3.0


class ApiError(Exception):
    """A call that Slack answers with `ok: false`; `details` are further fields of the answer."""

    def __init__(self, error: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.details = details


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule of Slack that the app broke, with what it did."""

    kind: ViolationKind
    text: str


@dataclass(slots=True)
class Call:
    """One Web API call with its arguments and how it was answered: `error` is "" when it was well."""

    method: str
    arguments: dict[str, Any]
    error: str = ""
    answered: bool = False


@dataclass(slots=True)
class Stream:
    """How a message is being written: `tasks` are its task and plan updates, `stopped` by a person's Stop button."""

    started: float
    open: bool = True
    stopped: bool = False
    mode: Literal["text", "chunks", ""] = ""
    tasks: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """One message; `thread_ts` is its thread's root or None at top level, `to` the only reader of an ephemeral one."""

    channel: str
    ts: str
    user: str
    text: str
    thread_ts: str | None = None
    blocks: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    bot_id: str = ""
    app_id: str = ""
    team: str = ""
    subtype: str = ""
    to: str = ""
    edited: dict[str, str] | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    stream: Stream | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """Return the ts of the thread it belongs to or would start."""
        return self.thread_ts or self.ts

    def as_slack(self, *, metadata: bool = False) -> dict[str, Any]:
        """Return the message as Slack's API and events show it; its metadata only when asked for."""
        shown: dict[str, Any] = {
            "type": "message",
            "user": self.user,
            "text": self.text,
            "ts": self.ts,
            "team": self.team,
        }
        optional = {
            "subtype": self.subtype,
            "thread_ts": self.thread_ts,
            "bot_id": self.bot_id,
            "app_id": self.app_id,
            "blocks": self.blocks,
            "attachments": self.attachments,
            "edited": self.edited,
            "metadata": self.metadata if metadata else None,
            "reactions": [
                {"name": name, "users": list(users), "count": len(users)}
                for name, users in self.reactions.items()
            ],
        }
        return shown | {name: value for name, value in optional.items() if value} | self.extra


@dataclass(slots=True)
class Session:
    """The state of an agent's session in one thread."""

    status: SessionStatus
    title: str = ""
    initiator: str = ""


@dataclass(slots=True)
class View:
    """One modal or Home tab that stands before a person."""

    id: str
    user: str
    view: dict[str, Any]
    hash: str


class State:
    """One running workspace. Everything is changed from one event loop; `touch` wakes all who wait for a change."""

    def __init__(
        self, workspace: Workspace, app: App, now: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self.workspace = workspace
        self.app = app
        self.now = now
        self.monotonic = monotonic
        self.channels: dict[str, Channel] = {each.id: each for each in workspace.channels}
        self.members: dict[str, set[str]] = {each.id: set(each.members) for each in workspace.channels}
        self.archived: set[str] = {each.id for each in workspace.channels if each.archived}
        self.log: list[Message] = []
        self.ephemeral: list[Message] = []
        self.deleted: set[tuple[str, str]] = set()
        self.sessions: dict[tuple[str, str], Session] = {}
        self.prompts: dict[tuple[str, str | None], list[dict[str, str]]] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        self.triggers: dict[str, tuple[str, float]] = {}
        self.calls: list[Call] = []
        self.violations: list[Violation] = []
        self._statuses: dict[tuple[str, str], tuple[str, float]] = {}
        self._posts: dict[str, tuple[float, float]] = {}
        self._updates: dict[tuple[str, str], float] = {}
        self._last = 0
        self._serial = (
            int(now()) * 100
        )  # ids are new in each run, also for a database that remembers the last one
        self.changed = asyncio.Event()
        self.closed = False

    # Change

    def touch(self) -> None:
        """Wake everyone who waits for a change: each `changed` event is set once and then replaced."""
        self.changed.set()
        self.changed = asyncio.Event()

    def break_rule(self, kind: ViolationKind, text: str) -> None:
        """Note a rule that the app broke."""
        self.violations.append(Violation(kind, text))
        self.touch()

    # Ids

    def next_ts(self) -> str:
        """Return the ts of a new message: seconds and six digits, larger than every ts before."""
        self._last = max(self._last + 1, int(self.now() * 1_000_000))
        seconds, micros = divmod(self._last, 1_000_000)
        return f"{seconds}.{micros:06d}"

    def next_id(self, prefix: str) -> str:
        """Return an id that was never given before."""
        self._serial += 1
        return f"{prefix}{self._serial:08d}"

    # Channels

    def user(self, user: str) -> User:
        """Return an account; raises ApiError `user_not_found`."""
        found = self.workspace.user(user)
        if found is None:
            raise ApiError("user_not_found")
        return found

    def shown_user(self, user: str) -> dict[str, Any]:
        """Return an account as `users.info` shows it to the app; raises ApiError `user_not_found`."""
        person = self.user(user)
        team = self.workspace.team(person.team)
        shown: dict[str, Any] = {
            "id": person.id,
            "team_id": person.team,
            "name": person.handle,
            "real_name": person.name,
            "deleted": person.deleted,
            "tz": "Europe/Madrid",
            "profile": {"real_name": person.name, "display_name": person.name, "team": person.team},
            "is_bot": bool(person.bot_id),
            "is_app_user": False,
            "updated": int(self.now()),
        }
        if team.enterprise:
            shown["enterprise_user"] = {
                "id": person.id,
                "enterprise_id": team.enterprise,
                "enterprise_name": team.name,
                "is_admin": False,
                "is_owner": False,
                "teams": [team.id],
            }
        if person.deleted:
            return shown
        # An outsider whom the app can meet in a channel is no stranger.
        meets = any(
            {person.id, self.app.user} <= members
            for channel, members in self.members.items()
            if self.channels[channel].shared
        )
        return shown | {
            "is_admin": person.admin,
            "is_owner": False,
            "is_primary_owner": False,
            "is_restricted": bool(person.guest),
            "is_ultra_restricted": person.guest == "single-channel",
            "is_stranger": team.organisation != self.workspace.home.organisation and not meets,
        }

    def seen_channel(self, channel: str) -> Channel:
        """Return a channel that the app can see; a private one without the app looks like a missing one.

        Raises ApiError `channel_not_found`.
        """
        found = self.channels.get(channel)
        if found is None or (found.kind != "public" and self.app.user not in self.members[channel]):
            raise ApiError("channel_not_found")
        return found

    def joined_channel(self, channel: str) -> Channel:
        """Return a channel that the app is a member of; raises ApiError `channel_not_found` or `not_in_channel`."""
        found = self.seen_channel(channel)
        if self.app.user not in self.members[channel]:
            raise ApiError("not_in_channel")
        return found

    def writable_channel(self, channel: str) -> Channel:
        """Return a channel that the app may write to; a user's id means the direct message with that user."""
        if channel not in self.channels and self.workspace.user(channel) is not None:
            return self.open_direct(channel)
        found = self.joined_channel(channel)
        if channel in self.archived:
            raise ApiError("is_archived")
        return found

    def open_direct(self, user: str) -> Channel:
        """Return the direct message between the app and a person, opening it if needed."""
        person = self.user(user)
        if person.bot_id:
            raise ApiError("cannot_dm_bot")
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == {person.id, self.app.user}:
                return channel
        channel = direct(person, self.user(self.app.user))
        self.channels[channel.id] = channel
        self.members[channel.id] = set(channel.members)
        self.touch()
        return channel

    # Messages

    def find(self, channel: str, ts: str) -> Message | None:
        """Return a message that stands, or None."""
        return next((each for each in self.log if each.channel == channel and each.ts == ts), None)

    def messages(self, channel: str, thread_ts: str | None = None) -> list[Message]:
        """Return what stands in a channel at top level, or in one thread with its root, oldest first."""
        if thread_ts is None:
            return [each for each in self.log if each.channel == channel and each.thread_ts is None]
        return [each for each in self.log if each.channel == channel and each.root == thread_ts]

    def thread(self, channel: str, thread_ts: str) -> str:
        """Return the root of the thread that a post to `thread_ts` lands in.

        Raises ApiError `thread_not_found`; a thread that never existed, or a reply's ts, is also a broken rule.
        """
        found = self.find(channel, thread_ts)
        if found is None:
            if (channel, thread_ts) not in self.deleted:
                self.break_rule(
                    "unknown_thread", f"posted to thread {thread_ts!r}, which never was in {channel!r}"
                )
            raise ApiError("thread_not_found")
        if found.root != found.ts:
            self.break_rule(
                "reply_as_thread", f"posted to {thread_ts!r}, a reply in the thread {found.root!r}"
            )
        return found.root

    def add(self, message: Message) -> Message:
        """Keep a new message; one of the app's own clears the status of its thread."""
        if message.to:
            self.ephemeral.append(message)
        else:
            self.log.append(message)
        if message.user == self.app.user and not message.to:
            self._statuses.pop((message.channel, message.root), None)
        self.touch()
        return message

    def remove(self, message: Message) -> None:
        """Take a message away."""
        self.log.remove(message)
        self.deleted.add((message.channel, message.ts))
        self.touch()

    # Status and streams

    @property
    def statuses(self) -> dict[tuple[str, str], str]:
        """Return the status text now shown, by channel and thread; Slack drops one after two minutes."""
        until = self.now() - STATUS_SECONDS
        return {key: text for key, (text, since) in self._statuses.items() if since > until}

    def set_status(self, channel: str, thread_ts: str, text: str) -> None:
        """Show a status in a thread, or take it away with an empty text."""
        if text:
            self._statuses[channel, thread_ts] = (text, self.now())
        else:
            self._statuses.pop((channel, thread_ts), None)
        self.touch()

    def streaming(self, message: Message) -> bool:
        """Return whether a stream still takes text; Slack closes one after five minutes."""
        return (
            message.stream is not None
            and message.stream.open
            and not message.stream.stopped
            and self.now() - message.stream.started < STREAM_SECONDS
        )

    def unfinished(self) -> Iterable[Violation]:
        """Yield what the app has left open now: statuses, sessions at work, streams."""
        for (channel, thread), text in self.statuses.items():
            yield Violation("status_left", f"status {text!r} in {channel} {thread}")
        for (channel, thread), session in self.sessions.items():
            if session.status == "processing":
                yield Violation("session_left", f"session in {channel} {thread} is still processing")
        for message in self.log:
            if message.stream is not None and self.streaming(message):
                yield Violation("stream_left", f"stream {message.ts} in {message.channel} was never stopped")

    # Rates

    def count_post(self, channel: str) -> None:
        """Count a post against one a second and channel, with a short burst allowed."""
        at = self.monotonic()
        left, since = self._posts.get(channel, (float(POST_BURST), at))
        left = min(float(POST_BURST), left + at - since) - 1.0
        if left < 0.0:
            self.break_rule("post_rate", f"more than {POST_BURST} posts at once and 1 a second in {channel}")
        self._posts[channel] = (max(left, 0.0), at)

    def count_update(self, channel: str, ts: str) -> None:
        """Count an update against one in three seconds and message."""
        at = self.monotonic()
        before = self._updates.get((channel, ts))
        if before is not None and at - before < UPDATE_SECONDS:
            self.break_rule(
                "update_rate", f"message {ts} in {channel} updated again within {UPDATE_SECONDS:g} s"
            )
        self._updates[channel, ts] = at

    # Triggers

    def new_trigger(self, user: str) -> str:
        """Return a trigger id that opens one modal for a person within three seconds."""
        trigger = self.next_id("trigger.")
        self.triggers[trigger] = (user, self.monotonic() + 3.0)
        return trigger

    def use_trigger(self, trigger: str) -> str:
        """Return the person of a trigger id and spend it; raises ApiError when it is unknown, spent or too old."""
        if trigger not in self.triggers:
            raise ApiError("invalid_trigger_id")
        user, until = self.triggers[trigger]
        if until == 0.0:
            raise ApiError("exchanged_trigger_id")
        self.triggers[trigger] = (user, 0.0)
        if self.monotonic() > until:
            raise ApiError("expired_trigger_id")
        return user
