"""The local Slack as a process of its own, started by hand."""

from __future__ import annotations

import asyncio
import sys

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.server import SlackServer, run
from ingest.errors import ConfigError


async def test_it_prints_what_a_bot_needs_to_join_it() -> None:
    code = "import asyncio; from bot.playground.server import run; asyncio.run(run())"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode().strip() for _ in range(5)]
        settings = dict(each.split("=", 1) for each in lines[2:])
        client = AsyncWebClient(settings["SLACK_BOT_TOKEN"], base_url=settings["TWOHOP_SLACK__API_URL"])
        assert (await client.auth_test())["team_id"] == "T_HOME"
        assert (await client.apps_connections_open(app_token=settings["SLACK_APP_TOKEN"]))["url"].startswith(
            "ws://127"
        )
    finally:
        process.terminate()
        await process.communicate()


async def test_a_taken_port_is_named() -> None:
    async with SlackServer() as slack:
        with pytest.raises(
            ConfigError, match=f"port {slack.port} of 127.0.0.1 cannot be had: .* choose another port"
        ):
            await run(slack.port)
