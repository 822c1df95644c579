"""The local Slack under the real slack_bolt and slack_sdk: events, commands, acks, redelivery and reconnection."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.server import SlackServer


@asynccontextmanager
async def joined(slack: SlackServer) -> AsyncIterator[list[dict[str, Any]]]:
    """Connect a small real app that answers mentions and direct messages; yield the bodies it was given."""
    app = AsyncApp(client=AsyncWebClient(slack.bot_token, base_url=slack.api_url), process_before_response=True)
    seen: list[dict[str, Any]] = []

    @app.event("app_mention")
    async def mentioned(body: dict[str, Any], say: Any) -> None:
        seen.append(body)
        event = body["event"]
        await say(text="an answer", thread_ts=event.get("thread_ts") or event["ts"])

    @app.event(re.compile(".*"))
    async def other(body: dict[str, Any]) -> None:
        seen.append(body)

    @app.command("/twohop")
    async def command(ack: Any, respond: Any, body: dict[str, Any]) -> None:
        await ack("at once")
        seen.append(body)
        await respond(text="later", response_type="ephemeral")

    handler = AsyncSocketModeHandler(app, slack.app_token, web_client=app.client, ping_interval=1)
    await handler.connect_async()
    try:
        await slack.connected()
        yield seen
    finally:
        await handler.close_async()


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


async def test_mention_is_two_events_and_is_answered_in_its_thread(slack: SlackServer) -> None:
    async with joined(slack) as seen:
        ts = await slack.say("U_ANA", "C_HELP", "<@U_BOT> hello")
        await slack.wait_for(lambda: len(slack.messages("C_HELP", ts)) == 2)
        await slack.wait_for(lambda: not slack.unacked())
        kinds = [each["event"]["type"] for each in seen if each["event"]["ts"] == ts]
        assert sorted(kinds) == ["app_mention", "message"]
        assert slack.messages("C_HELP", ts)[1].text == "an answer"
        assert slack.violations == []
