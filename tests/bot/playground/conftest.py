"""A local Slack for each test, and a small real app of slack_bolt that joins it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.server import SlackServer

Join = Callable[..., AbstractAsyncContextManager[list[dict[str, Any]]]]


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """Return a running local Slack with the sample workspace."""
    async with SlackServer() as server:
        yield server


@pytest.fixture
def client(slack: SlackServer) -> AsyncWebClient:
    """Return the SDK's client with the bot's token."""
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url)


@pytest.fixture
def join() -> Join:
    """Return what connects a small real app to a local Slack; it yields the bodies that the app was given."""

    @asynccontextmanager
    async def joined(slack: SlackServer) -> AsyncIterator[list[dict[str, Any]]]:
        app = AsyncApp(
            client=AsyncWebClient(slack.bot_token, base_url=slack.api_url), process_before_response=True
        )
        seen: list[dict[str, Any]] = []

        @app.event("app_mention")
        async def mentioned(body: dict[str, Any], say: Any) -> None:
            seen.append(body)
            event = body["event"]
            await say(text="an answer", thread_ts=event.get("thread_ts") or event["ts"])

        @app.event(re.compile(".*"))
        async def told(body: dict[str, Any]) -> None:
            seen.append(body)

        @app.command("/twohop")
        async def commanded(ack: Any, respond: Any, body: dict[str, Any]) -> None:
            seen.append(body)
            await ack("at once")
            await respond(text="in a while")

        @app.action("more")
        async def clicked(ack: Any, client: AsyncWebClient, body: dict[str, Any]) -> None:
            await ack()
            seen.append(body)
            view = {"type": "modal", "title": {"type": "plain_text", "text": "More"}, "blocks": []}
            await client.views_open(trigger_id=body["trigger_id"], view=view)

        handler = AsyncSocketModeHandler(app, slack.app_token, web_client=app.client, ping_interval=1)
        await handler.connect_async()  # type: ignore[no-untyped-call]  # the SDK does not annotate it
        try:
            await slack.connected()
            yield seen
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]  # the SDK does not annotate it

    return joined
