"""What Slack tells the app about messages, edits, reactions, members and clicks, in the shapes of the Events API."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from bot.playground.faults import Faults
from bot.playground.socket_mode import Delivery, SocketMode
from bot.playground.state import Message, State

Answered = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class Events:
    """Delivers what the app has subscribed to, in the conversations it is a member of."""

    def __init__(self, state: State, faults: Faults, socket: SocketMode) -> None:
        self.state = state
        self.faults = faults
        self.socket = socket

    async def deliver(
        self,
        event: dict[str, Any],
        event_id: str | None = None,
        retry_attempt: int = 0,
        retry_reason: str = "",
    ) -> Delivery:
        """Send one event as it stands, whatever the app has subscribed to."""
        state, channel = self.state, event.get("channel")
        place = self.state.channels.get(channel) if isinstance(channel, str) else None
        home = state.workspace.home.id
        payload = {
            "token": "playground",
            "team_id": home,
            "context_team_id": home,
            "context_enterprise_id": state.workspace.home.enterprise or None,
            "api_app_id": state.app.id,
            "event": event,
            "type": "event_callback",
            "event_id": event_id or state.next_id("Ev"),
            "event_time": int(state.now()),
            "authorizations": [
                {
                    "enterprise_id": state.workspace.home.enterprise or None,
                    "team_id": home,
                    "user_id": state.app.user,
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": place is not None and state.workspace.external(place),
            "event_context": state.next_id("4-"),
        }
        reason = retry_reason or ("timeout" if retry_attempt else "")
        return await self.socket.send("events_api", payload, retry_attempt, reason)

    async def posted(self, message: Message) -> None:
        """Tell of a new message: the message itself, its mention of the app, and its thread's root, which has changed."""
        told = [self._message(message), self._mention(message)]
        if self.faults.twins == "mention_first":
            told.reverse()
        await self._tell(message.channel, *told)
        if message.thread_ts and (root := self.state.find(message.channel, message.thread_ts)):
            await self.changed(root, root.as_slack())

    async def changed(self, message: Message, before: dict[str, Any], *, edited: bool = False) -> None:
        """Tell of a changed message; an edit by its author that mentions the app is also a fresh mention."""
        replies = [each for each in self.state.messages(message.channel, message.ts) if each is not message]
        thread = {"reply_count": len(replies), "latest_reply": replies[-1].ts} if replies else {}
        change = self._around(message.channel) | {
            "subtype": "message_changed",
            "message": message.as_slack() | thread,
            "previous_message": before,
            "hidden": True,
        }
        await self._tell(message.channel, change, self._mention(message) if edited else None)

    async def deleted(self, message: Message) -> None:
        """Tell of a message that is gone."""
        gone = self._around(message.channel) | {
            "subtype": "message_deleted",
            "deleted_ts": message.ts,
            "previous_message": message.as_slack(),
            "hidden": True,
        }
        await self._tell(message.channel, gone)

    async def reacted(self, user: str, message: Message, name: str) -> None:
        """Tell of a reaction added to a message."""
        event = {
            "type": "reaction_added",
            "user": user,
            "reaction": name,
            "item_user": message.user,
            "item": {"type": "message", "channel": message.channel, "ts": message.ts},
            "event_ts": self.state.next_ts(),
        }
        await self.tell("reaction_added", event)

    async def tell(self, name: str, event: dict[str, Any]) -> None:
        """Send an event when the app has subscribed to `name`."""
        if name in self.state.app.events:
            await self.deliver(event)

    async def command(self, payload: dict[str, Any], answered: Answered) -> Delivery:
        """Send a slash command."""
        return await self.socket.send("slash_commands", payload, answered=answered)

    async def interactive(self, payload: dict[str, Any], answered: Answered | None = None) -> Delivery:
        """Send a click, a submitted modal or a shortcut."""
        return await self.socket.send("interactive", payload, answered=answered)

    async def _tell(self, channel: str, *told: dict[str, Any] | None) -> None:
        if self.state.app.user not in self.state.members[channel]:
            return
        kind = self.state.channels[channel].scope_kind
        for event in told:
            if event is not None:
                await self.tell("app_mention" if event["type"] == "app_mention" else f"message.{kind}", event)

    def _around(self, channel: str) -> dict[str, Any]:
        """Return the fields around an event that is about another message."""
        at = self.state.next_ts()
        return {
            "type": "message",
            "channel": channel,
            "channel_type": self.state.channels[channel].event_kind,
            "ts": at,
            "event_ts": at,
        }

    def _message(self, message: Message) -> dict[str, Any]:
        return (
            message.as_slack()
            | self._origin(message)
            | {
                "channel": message.channel,
                "channel_type": self.state.channels[message.channel].event_kind,
                "event_ts": message.ts,
            }
        )

    def _mention(self, message: Message) -> dict[str, Any] | None:
        app = self.state.app.user
        mentioned = re.search(rf"<@{re.escape(app)}(\|[^>]*)?>", message.text)
        if not mentioned or message.user == app or self.state.channels[message.channel].kind == "im":
            return None
        at = message.edited["ts"] if message.edited else message.ts
        # An app_mention has no channel_type.
        return (
            message.as_slack()
            | self._origin(message)
            | {
                "type": "app_mention",
                "channel": message.channel,
                "event_ts": at,
            }
        )

    def _origin(self, message: Message) -> dict[str, Any]:
        """Return who wrote a message, as the event says it: their team in a shared channel, and never what kind of account it is."""
        origin: dict[str, Any] = {"client_msg_id": f"m-{message.ts}"} if not message.bot_id else {}
        if message.thread_ts and (root := self.state.find(message.channel, message.thread_ts)):
            origin["parent_user_id"] = root.user
        user = self.state.workspace.user(message.user)
        if user is None:
            return origin
        if user.bot_id:
            origin["bot_profile"] = {"id": user.bot_id, "name": user.name, "team_id": user.team}
        if self.state.channels[message.channel].shared:
            origin |= {"user_team": user.team, "source_team": user.team}
        return origin
