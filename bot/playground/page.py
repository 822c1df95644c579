"""The page of the local Slack: what one person sees, and what that person does."""

from __future__ import annotations

import asyncio
import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.playground.state import Message
from bot.playground.workspace import Channel

if TYPE_CHECKING:
    from bot.playground.server import SlackServer

STATIC = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
# Only our own files run, and the page talks to nobody else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
REFRESH_SECONDS = 15.0
SHOWN_CALLS = 30


class Page:
    """Serves the page, tells it of every change, and takes what its person does."""

    def __init__(self, slack: SlackServer) -> None:
        self.slack = slack

    def routes(self) -> list[web.RouteDef]:
        """Return the page's routes."""
        return [
            web.get("/", self._file),
            web.get("/static/{name}", self._file),
            web.get("/page/events", self._events),
            web.post("/page/do", self._do),
        ]

    def view(self, user: str) -> dict[str, Any]:
        """Return everything one person sees: their conversations, and what the bot called and broke."""
        state = self.slack.state
        statuses = self.slack.status
        return {
            "me": user,
            "bot": state.app.user,
            "users": {each.id: each.name for each in state.workspace.users},
            "people": [each.id for each in state.workspace.users if each.id != state.app.user],
            "commands": sorted(state.app.commands),
            "connections": self.slack.socket.connections,
            "channels": [
                {
                    "id": channel.id,
                    "name": self._name(channel, user),
                    "kind": channel.kind,
                    "shared": channel.shared and channel.kind != "im",
                    "archived": channel.id in state.archived,
                    "bot": state.app.user in state.members[channel.id],
                    "messages": [
                        _shown(each)
                        for each in sorted(
                            [*state.log, *self.slack.ephemerals(user)], key=lambda each: each.ts
                        )
                        if each.channel == channel.id
                    ],
                    "statuses": {
                        thread: text for (place, thread), text in statuses.items() if place == channel.id
                    },
                    "working": [
                        thread
                        for (place, thread), session in state.sessions.items()
                        if place == channel.id and session.status == "processing"
                    ],
                    "prompts": state.prompts.get((channel.id, None), []),
                }
                for channel in state.channels.values()
                if user in state.members[channel.id]
            ],
            "calls": [{"method": each.method, "error": each.error} for each in state.calls[-SHOWN_CALLS:]],
            "violations": [f"{each.kind}: {each.text}" for each in state.violations],
        }

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        if name not in STATIC:
            raise web.HTTPNotFound
        body = (files("bot.playground") / "static" / name).read_bytes()
        headers = {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return web.Response(body=body, content_type=STATIC[name], charset="utf-8", headers=headers)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send the view at once and after every change, as server-sent events."""
        user = self._person(request.query.get("user", ""))
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        state = self.slack.state
        while not state.closed:
            changed = state.changed
            try:
                await response.write(f"data: {json.dumps(self.view(user))}\n\n".encode())
            except ConnectionError:
                break
            # A status goes by time alone, so the view is also sent when nothing happened for a while.
            try:
                await asyncio.wait_for(changed.wait(), REFRESH_SECONDS)
            except TimeoutError:
                continue
        return response

    async def _do(self, request: web.Request) -> web.Response:
        """Do what the person asks, and return the ts of what was said; a wrong request is answered 400 with the reason."""
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        slack = self.slack
        try:
            body = {name: str(value) for name, value in (await request.json()).items() if value is not None}
            user, channel, ts = self._person(body["user"]), body.get("channel", ""), ""
            match body["do"]:
                case "say":
                    text, thread = self.typed(body["text"]), body.get("thread_ts")
                    ts = await slack.say(user, channel, text, thread_ts=thread)
                case "command":
                    await slack.command(user, channel, body["command"], self.typed(body["text"]))
                case "edit":
                    self._own(user, channel, body["ts"])
                    await slack.edit(channel, body["ts"], self.typed(body["text"]))
                case "delete":
                    self._own(user, channel, body["ts"])
                    await slack.delete(channel, body["ts"])
                case "click":
                    await slack.click(user, channel, body["ts"], body["action_id"])
                case "stop":
                    await slack.stop(user, channel, body["ts"])
                case "home":
                    await slack.open_home(user)
                case unknown:
                    raise ValueError(f"cannot do {unknown!r}")
        except KeyError as error:
            raise web.HTTPBadRequest(text=f"missing {error.args[0]!r}") from None
        except (ValueError, AttributeError) as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        return web.json_response({"ts": ts})

    def typed(self, text: str) -> str:
        """Return a typed text as Slack stores it: `&`, `<` and `>` escaped, `@Name` as the mention of an account."""
        stored = html.escape(text, quote=False)
        for user in self.slack.workspace.users:
            stored = stored.replace(f"@{user.name}", f"<@{user.id}>")
        return stored

    def _person(self, user: str) -> str:
        if self.slack.workspace.user(user) is None:
            raise web.HTTPBadRequest(text=f"no user {user!r}")
        return user

    def _name(self, channel: Channel, user: str) -> str:
        """Return a conversation's name, or its other members where it has none of its own."""
        if channel.kind in ("public", "private"):
            return channel.name
        members = self.slack.state.members[channel.id] - {user}
        return ", ".join(each.name for each in self.slack.workspace.users if each.id in members)

    def _own(self, user: str, channel: str, ts: str) -> None:
        message = self.slack.state.find(channel, ts)
        if message is not None and message.user != user:
            raise ValueError(f"only {message.user} can change this message")


def _shown(message: Message) -> dict[str, Any]:
    return {
        "ts": message.ts,
        "thread": message.thread_ts,
        "user": message.user,
        "text": message.text,
        "blocks": message.blocks,
        "edited": message.edited is not None,
        "ephemeral": bool(message.to),
        "gone": message.subtype == "tombstone",
        "streaming": message.stream is not None and message.stream.open,
        "tasks": list(message.stream.tasks) if message.stream else [],
        "reactions": {name: len(users) for name, users in message.reactions.items()},
    }
