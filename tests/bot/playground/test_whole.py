"""`twohop playground`: the local Slack with the bot in it, from one command, asked through its page."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession

from bot.app import Desk
from bot.playground.server import SlackServer
from bot.playground.whole import run
from ingest.errors import ConfigError

ROOT = Path(__file__).parents[3]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_question_asked_on_the_page_is_answered_in_its_thread(sample: Desk, tmp_path: Path) -> None:
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TWOHOP_", "SLACK_"))}
    env = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "TWOHOP_DATA": str(sample.settings.data),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'state.db'}",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.cli", "playground", "--port", str(port), env=env, cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        said = ""
        async with asyncio.timeout(180):
            while "answering mentions" not in said:
                line = (await process.stderr.readline()).decode()
                assert line, said
                said += line
        assert f"http://127.0.0.1:{port}" in said
        async with ClientSession(f"http://127.0.0.1:{port}") as page:
            body = {
                "do": "say",
                "user": "U_SAM",
                "channel": "D_SAM",
                "text": "Is ticket 4812 entitled to a refund?",
            }
            async with page.post(
                "/page/do", json=body, headers={"Origin": f"http://127.0.0.1:{port}"}
            ) as sent:
                assert sent.ok, await sent.text()
            async with asyncio.timeout(180), page.get("/page/events", params={"user": "U_SAM"}) as events:
                seen = ""
                while "13 September 2026" not in seen:
                    chunk = await events.content.readany()
                    assert chunk, seen[-500:]
                    seen += chunk.decode(errors="replace")
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_taken_port_is_named_with_the_way_out(sample: Desk) -> None:
    async with SlackServer() as slack:
        with pytest.raises(ConfigError, match=rf"port {slack.port} of 127\.0\.0\.1 cannot be had: .*--port"):
            await run(sample, slack.port, reindex=(), say=lambda _: None)
