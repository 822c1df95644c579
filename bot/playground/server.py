"""The local Slack: one server on this machine that a real bot talks to, driven by tests or by a person in a browser."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from aiohttp import web

from bot.playground.events import Events
from bot.playground.faults import Fault, Faults
from bot.playground.methods import Caller
from bot.playground.page import Page
from bot.playground.socket_mode import Delivery, DisconnectReason, SocketMode
from bot.playground.state import Call, Message, State, Violation
from bot.playground.web_api import WebApi
from bot.playground.workspace import App, Workspace

HOST = "127.0.0.1"


class SlackServer:
    """A Slack workspace with one installed app, served on 127.0.0.1 while the `async with` block lasts.

    Point the SDK at `api_url` with `bot_token` and `app_token`. Everything happens in the event loop that entered it.
    `now` is Unix seconds and gives messages their ts; `monotonic` measures. `ack_seconds` is how long an ack may take
    before the envelope counts as lost (0: for ever).
    """

    def __init__(
        self,
        workspace: Workspace | None = None,
        app: App | None = None,
        *,
        port: int = 0,
        bot_token: str = "",
        app_token: str = "",
        ack_seconds: float = 3.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app or App()
        self.bot_token = bot_token or "xoxb-" + secrets.token_hex(16)
        self.app_token = app_token or "xapp-" + secrets.token_hex(16)
        self.port = port
        self.state = State(workspace or Workspace.sample(), self.app, now, monotonic)
        self.faults = Faults()
        self.socket = SocketMode(self.state, self.faults, ack_seconds)
        self.events = Events(self.state, self.faults, self.socket)
        self.web_api = WebApi(
            Caller(self.state, self.events, self.socket), self.faults, self.bot_token, self.app_token
        )
        self._runner: web.AppRunner | None = None

    # Life

    async def __aenter__(self) -> Self:
        site_app = web.Application(middlewares=[self._only_this_machine])
        page = Page(self)
        site_app.add_routes(
            [
                web.route("*", "/api/{method}", self.web_api.handle),
                web.get("/link", self.socket.handle),
                web.post("/response/{key}", self.web_api.respond),
                *page.routes(),
            ]
        )
        self._runner = web.AppRunner(site_app, shutdown_timeout=1.0, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self.port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]
        self.socket.address = f"ws://{HOST}:{self.port}/link"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.state.violations.extend(self.state.unfinished())
        self.state.closed = True
        self.state.touch()
        await self.socket.close()
        for gate in self.faults.gates.values():
            gate.set()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def workspace(self) -> Workspace:
        """Return the teams, people and channels as they are now."""
        return self.state.workspace

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{HOST}:{self.port}"

    @property
    def api_url(self) -> str:
        """Return the `base_url` for the SDK's web client."""
        return f"{self.url}/api/"

    # What people do

    async def say(
        self,
        user: str,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        subtype: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """Post a person's message and deliver what Slack would tell the app; return its ts.

        `extra` are further fields of the message, such as `files`. Raises ValueError for an account or a channel that
        is not there, or that the account is not in.
        """
        person = self.workspace.user(user)
        if person is None:
            raise ValueError(
                f"no user {user!r}; there are {', '.join(each.id for each in self.workspace.users)}"
            )
        if person.deleted:
            raise ValueError(f"{user!r} is deactivated and says nothing")
        self._member(user, channel)
        root = None if thread_ts is None else self.state.find(channel, thread_ts)
        if thread_ts is not None and (root is None or root.root != thread_ts):
            raise ValueError(f"no thread {thread_ts!r} in {channel!r}")
        message = Message(
            channel,
            self.state.next_ts(),
            user,
            text,
            thread_ts=thread_ts,
            subtype=subtype,
            bot_id=person.bot_id,
            team=person.team,
            extra=dict(extra or {}),
        )
        self.state.add(message)
        await self.events.posted(message)
        return message.ts

    async def edit(self, channel: str, ts: str, text: str) -> None:
        """Change a message as its author; a mention of the app in the new text is told as a fresh `app_mention`."""
        message = self._standing(channel, ts)
        before = message.as_slack()
        message.text = text
        message.edited = {"user": message.user, "ts": self.state.next_ts()}
        self.state.touch()
        await self.events.changed(message, before, edited=True)

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message; the root of a thread with replies leaves a tombstone."""
        message = self._standing(channel, ts)
        if len(self.state.messages(channel, ts)) > 1:
            before = message.as_slack()
            message.subtype, message.text, message.blocks = "tombstone", "This message was deleted.", []
            self.state.touch()
            await self.events.changed(message, before)
            return
        self.state.remove(message)
        await self.events.deleted(message)

    async def react(self, user: str, channel: str, ts: str, name: str) -> None:
        """Add a person's reaction to a message."""
        message = self._standing(channel, ts)
        users = message.reactions.setdefault(name, [])
        if user not in users:
            users.append(user)
            self.state.touch()
            await self.events.reacted(user, message, name)

    async def command(self, user: str, channel: str, command: str, text: str = "") -> Delivery:
        """Run a slash command as a person; its answers come as ephemeral messages, see `ephemerals`."""
        if command not in self.app.commands:
            raise ValueError(
                f"the app has no command {command!r}; it has {', '.join(sorted(self.app.commands))}"
            )
        place = self._member(user, channel)
        person = self.state.user(user)
        enterprise = self.workspace.team(person.team).enterprise
        path = self.web_api.response_url(user, channel)
        payload = {
            "token": "playground",
            "command": command,
            "text": text,
            "team_id": person.team,
            "team_domain": self.workspace.home.domain,
            "channel_id": channel,
            "channel_name": {"im": "directmessage", "private": "privategroup"}.get(place.kind, place.name),
            "user_id": user,
            "user_name": person.handle,
            "api_app_id": self.app.id,
            "is_enterprise_install": "false",
            **({"enterprise_id": enterprise} if enterprise else {}),
            "response_url": self.url + path,
            "trigger_id": self.state.new_trigger(user),
        }

        async def answered(body: dict[str, Any]) -> None:
            await self.web_api.command_answered(path, body)

        return await self.events.command(payload, answered)

    async def click(self, user: str, channel: str, ts: str, action_id: str) -> Delivery:
        """Click a button of a message as a person; raises ValueError when no such button stands there."""
        message = next((each for each in self.state.ephemeral if each.ts == ts), None) or self._standing(
            channel, ts
        )
        element = next(
            (each for each in _elements(message.blocks) if each.get("action_id") == action_id), None
        )
        if element is None:
            raise ValueError(f"message {ts!r} has no element {action_id!r}")
        return await self._interaction(
            user,
            {
                "type": "block_actions",
                "container": {"type": "message", "message_ts": ts, "channel_id": channel},
                "channel": {"id": channel, "name": self.state.channels[channel].name},
                "message": message.as_slack(),
                "actions": [
                    {
                        "action_id": action_id,
                        "block_id": element.get("block_id", ""),
                        "type": element["type"],
                        "value": element.get("value", ""),
                        "action_ts": self.state.next_ts(),
                    }
                ],
            },
            channel,
        )

    async def submit(self, user: str, view_id: str, values: Mapping[str, Any]) -> Delivery:
        """Submit a modal as a person with the values of its inputs."""
        view = self.state.views[view_id]
        shown = {"id": view.id, "hash": view.hash, "state": {"values": dict(values)}, **view.view}
        return await self._interaction(user, {"type": "view_submission", "view": shown})

    async def stop(self, user: str, channel: str, thread_ts: str) -> None:
        """Press Stop on a session at work: its streams close and the app is told."""
        streams = [each for each in self.state.messages(channel, thread_ts) if self.state.streaming(each)]
        for message in streams:
            if message.stream is not None:
                message.stream.stopped = True
        self.state.touch()
        event = {
            "type": "agent_session_stopped",
            "user": user,
            "channel": channel,
            "thread_ts": thread_ts,
            "streaming_message_ts": [each.ts for each in streams],
            "event_ts": self.state.next_ts(),
        }
        await self.events.tell("agent_session_stopped", event)

    def change(self, user: str, **changes: Any) -> None:
        """Change fields of an account, as a workspace's admin does: a member becomes a guest, or is deactivated."""
        self.state.workspace = self.workspace.with_user(replace(self.state.user(user), **changes))
        self.state.touch()

    async def open_home(self, user: str, tab: str = "messages") -> None:
        """Open the app's tab as a person."""
        channel = self.state.open_direct(user).id
        event = {"type": "app_home_opened", "user": user, "channel": channel, "tab": tab}
        await self.events.tell("app_home_opened", event | {"event_ts": self.state.next_ts()})

    async def join(self, user: str, channel: str) -> None:
        """Bring an account, or the app itself, into a channel."""
        self.state.members[channel].add(user)
        self.state.touch()
        if self.app.user in self.state.members[channel]:
            kind = {"public": "C", "private": "G"}.get(self.state.channels[channel].kind, "D")
            event = {"type": "member_joined_channel", "user": user, "channel": channel, "channel_type": kind}
            team = self.workspace.home.id
            await self.events.tell(
                "member_joined_channel", event | {"team": team, "event_ts": self.state.next_ts()}
            )

    async def deliver(
        self,
        event: dict[str, Any],
        event_id: str | None = None,
        retry_attempt: int = 0,
        retry_reason: str = "",
    ) -> Delivery:
        """Deliver one raw event in its envelope, whatever the app has subscribed to."""
        return await self.events.deliver(event, event_id, retry_attempt, retry_reason)

    # What goes wrong

    def fail(
        self,
        method: str,
        error: str = "ratelimited",
        times: int = 1,
        retry_after: int | None = None,
        status: int | None = None,
        *,
        applied: bool = False,
        cut: bool = False,
    ) -> None:
        """Let the next calls of a method fail.

        `ratelimited` is answered 429 with Retry-After (1 s unless given); a status of 500 and more with HTML; `cut`
        drops the connection without an answer. With `applied` the call takes effect first: only its answer is lost.
        """
        if error == "ratelimited" and not cut:
            retry_after = 1 if retry_after is None else retry_after
        usual = 429 if error == "ratelimited" else 200
        fault = Fault(error, usual if status is None else status, retry_after, applied, cut)
        self.faults.calls[method].extend([fault] * times)

    def slow(self, method: str, seconds: float, times: int = 1) -> None:
        """Let the next calls of a method take so long."""
        self.faults.delays[method].extend([seconds] * times)

    def hold(self, method: str) -> asyncio.Event:
        """Hold every call of a method until the returned event is set."""
        gate = self.faults.gates.get(method)
        if gate is None or gate.is_set():
            gate = self.faults.gates[method] = asyncio.Event()
        return gate

    def lose_acks(self, times: int = 1) -> None:
        """Treat the next acks of events as lost: each event is delivered again, with `retry_attempt` 1."""
        self.faults.lost_acks += times

    async def redeliver(self, event_id: str) -> Delivery:
        """Deliver an event again with the same event id."""
        before = next(each for each in reversed(self.socket.deliveries) if each.event_id == event_id)
        return await self.socket.send("events_api", before.payload, before.attempt + 1, "timeout")

    async def disconnect(self, reason: DisconnectReason = "refresh_requested") -> None:
        """Ask every connection to reconnect."""
        await self.socket.disconnect(reason)

    async def cut(self) -> None:
        """Close every connection without asking."""
        await self.socket.cut()

    # What stands

    def messages(self, channel: str, thread_ts: str | None = None) -> list[Message]:
        """Return what stands in a channel at top level, or in one thread with its root, oldest first."""
        return self.state.messages(channel, thread_ts)

    def ephemerals(self, user: str, channel: str | None = None) -> list[Message]:
        """Return what only this person sees, oldest first."""
        return [each for each in self.state.ephemeral if each.to == user and channel in (None, each.channel)]

    @property
    def calls(self) -> list[Call]:
        """Return every API call, oldest first."""
        return self.state.calls

    @property
    def status(self) -> dict[tuple[str, str], str]:
        """Return the status texts shown now, by channel and thread."""
        return self.state.statuses

    @property
    def deliveries(self) -> list[Delivery]:
        """Return every envelope, oldest first."""
        return self.socket.deliveries

    @property
    def acks(self) -> dict[str, float]:
        """Return the seconds from send to ack by envelope id."""
        return {each.envelope_id: each.acked for each in self.socket.deliveries if each.acked is not None}

    def unacked(self) -> list[Delivery]:
        """Return the envelopes without an ack."""
        return self.socket.unacked()

    @property
    def violations(self) -> list[Violation]:
        """Return the rules of Slack that the app broke; leaving the server adds what it left open."""
        return self.state.violations

    def unfinished(self) -> list[Violation]:
        """Return what the app has open now: statuses, sessions at work, streams."""
        return list(self.state.unfinished())

    async def connected(self, count: int = 1, seconds: float = 300.0) -> None:
        """Wait until so many connections stand."""
        await self.wait_for(lambda: self.socket.connections >= count, seconds)

    async def wait_for(self, condition: Callable[[], object], seconds: float = 300.0) -> None:
        """Return when the condition holds; it is asked again at every change of state.

        Raises TimeoutError with what stands.
        """
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await self.state.changed.wait()
        except TimeoutError:
            raise TimeoutError(f"not within {seconds:g} s; {self._report()}") from None

    # Inside

    def _report(self) -> str:
        lines = [f"{each.channel} {each.root} {each.user}: {each.text!r}" for each in self.state.log[-8:]]
        lines += [
            f"{each.method} {each.error or ('ok' if each.answered else 'waiting')}"
            for each in self.state.calls[-8:]
        ]
        lines += [f"not acked: {each.what}" for each in self.unacked()]
        lines += [f"{each.kind}: {each.text}" for each in self.violations]
        return "\n".join([f"{self.socket.connections} connections", *lines])

    def _member(self, user: str, channel: str) -> Any:
        place = self.state.channels.get(channel)
        if place is None:
            raise ValueError(f"no channel {channel!r}; there are {', '.join(self.state.channels)}")
        if user not in self.state.members[channel]:
            raise ValueError(f"{user!r} is not in {channel!r}")
        return place

    def _standing(self, channel: str, ts: str) -> Message:
        message = self.state.find(channel, ts)
        if message is None:
            raise ValueError(f"no message {ts!r} in {channel!r}")
        return message

    async def _interaction(self, user: str, payload: dict[str, Any], channel: str = "") -> Delivery:
        person = self.state.user(user)
        payload |= {
            "team": {"id": self.workspace.home.id, "domain": self.workspace.home.domain},
            "user": {"id": user, "name": person.name, "team_id": person.team},
            "api_app_id": self.app.id,
            "token": "playground",
            "trigger_id": self.state.new_trigger(user),
        }
        if channel:
            payload["response_url"] = self.url + self.web_api.response_url(user, channel)
        return await self.events.interactive(payload)

    @web.middleware
    async def _only_this_machine(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Refuse what another web page sends: a foreign Host (a rebound name), Origin or Sec-Fetch-Site."""
        hosts = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        origin = request.headers.get("Origin")
        if (
            request.host not in hosts
            or (origin is not None and origin.removeprefix("http://") not in hosts)
            or request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        ):
            raise web.HTTPForbidden(text="this server answers only to programs and pages of this machine")
        response: web.StreamResponse = await handler(request)
        return response


def _elements(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every element of a message that can be clicked, with its block's id."""
    found: list[dict[str, Any]] = []
    for block in blocks:
        inside = [*block.get("elements", ()), *([block["accessory"]] if "accessory" in block else ())]
        for each in inside:
            more = [
                {
                    "type": each["type"],
                    "action_id": each.get("action_id"),
                    "value": each[name].get("value", ""),
                }
                for name in ("positive_button", "negative_button")
                if name in each
            ]
            found += [element | {"block_id": block.get("block_id", "")} for element in (more or [each])]
    return found
