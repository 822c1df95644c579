"""Listeners: a message is normalised and written to the inbox, and only then acknowledged; no network before that."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from bot.slack.access import Us, refusal
from bot.slack.text import mentions
from bot.store import Inbound
from ingest.words import storable

_SUBTYPES = (None, "file_share", "thread_broadcast")
"""Messages that people write; edits, deletions, joins and all the others are nobody's question."""
_SLACKBOT = "USLACKBOT"
_OUT_OF_DATE = "This control is out of date. Please ask me again."

Command = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Takes a slash command's payload and returns the reply that only its user sees, empty where it comes later."""


def normalise(body: Mapping[str, Any], us: Us, shared_channels: Collection[str] = ()) -> Inbound | None:
    """Return what an event asks of us, or None: a message that is not addressed to us or that no person wrote."""
    event: Mapping[str, Any] = body.get("event") or {}
    channel, ts = event.get("channel"), event.get("ts")
    if event.get("type") not in ("app_mention", "message") or event.get("subtype") not in _SUBTYPES:
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("hidden") or not channel or not ts:
        return None
    user = event.get("user") or ""
    if user in (us.user, _SLACKBOT):
        return None
    text = storable(event.get("text") or "")
    channel_type = event.get("channel_type") or ("im" if channel.startswith("D") else "")
    if event["type"] == "message" and channel_type != "im" and not mentions(text, us.user):
        return None
    team = body.get("team_id") or us.team
    return Inbound(
        event_id=body.get("event_id") or f"{team}:{channel}:{ts}",
        team=team,
        channel=channel,
        channel_type=channel_type,
        user=user,
        text=text,
        ts=ts,
        thread_root=event.get("thread_ts") or ts,
        files=len(event.get("files") or ()),
        refusal=refusal(body, us, shared_channels),
    )


def register(
    app: AsyncApp,
    us: Us,
    shared_channels: Collection[str],
    *,
    receive: Callable[[Inbound], Awaitable[None]],
    stop: Callable[[str, str, str, str], Awaitable[None]],
    command: Command,
) -> None:
    """Register every listener; what nobody knows is acknowledged too, or Slack would send it again.

    `stop` takes team, channel, thread root and who pressed it. With `process_before_response` an INSERT that fails is not acknowledged.
    """

    async def asked(body: dict[str, Any]) -> None:
        inbound = normalise(body, us, shared_channels)
        if inbound is not None:
            await receive(inbound)

    async def stopped(body: dict[str, Any]) -> None:
        event = body["event"]
        await stop(
            body.get("team_id") or us.team,
            event.get("channel") or "",
            event.get("thread_ts") or "",
            event.get("user") or "",
        )

    async def twohop(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack(await command(body))

    async def ignored() -> None: ...

    async def out_of_date(ack: AsyncAck) -> None:
        await ack()

    async def unknown_command(ack: AsyncAck) -> None:
        await ack(_OUT_OF_DATE)

    anything = re.compile(".*")
    app.event("app_mention")(asked)
    app.event("message")(asked)
    app.event("agent_session_stopped")(stopped)
    app.command("/twohop")(twohop)
    app.event(anything)(ignored)
    app.command(anything)(unknown_command)
    app.action(anything)(out_of_date)
    app.shortcut(anything)(out_of_date)
    app.view(anything)(out_of_date)
    app.options(anything)(out_of_date)
