"""`twohop serve`: it starts only with tokens that work, says as whom, and ends without losing a question."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.app import Desk
from bot.playground.server import SlackServer
from bot.playground.workspace import App, Workspace
from bot.slack.app import manifest
from tests.bot.slack.conftest import PATIENCE, SUPPORT, replies

ROOT = Path(__file__).parents[3]


def environment(sample: Desk, slack: SlackServer, state: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TWOHOP_", "SLACK_"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "TWOHOP_DATA": str(sample.settings.data),
        "DATABASE_URL": f"sqlite:///{state / 'state.db'}",
        "SLACK_BOT_TOKEN": slack.bot_token,
        "SLACK_APP_TOKEN": slack.app_token,
        "TWOHOP_SLACK__API_URL": slack.api_url,
        "TWOHOP_SYNC__EVERY_MINUTES": "0",
        **more,
    }


@asynccontextmanager
async def served(env: dict[str, str], cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `twohop serve` as a process of its own; it is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.cli", "serve", env=env, cwd=cwd, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def output(process: asyncio.subprocess.Process) -> str:
    """Wait for the process's end and return what it said."""
    _, said = await asyncio.wait_for(process.communicate(), 120)
    return said.decode()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"SLACK_BOT_TOKEN": ""}, ["SLACK_BOT_TOKEN is not set", "xoxb-"]),
        ({"SLACK_APP_TOKEN": ""}, ["SLACK_APP_TOKEN is not set", "connections:write"]),
        ({"SLACK_BOT_TOKEN": "xapp-1"}, ["SLACK_BOT_TOKEN begins with 'xapp-'", "OAuth & Permissions"]),
        ({"SLACK_APP_TOKEN": "xoxb-secret"}, ["SLACK_APP_TOKEN begins with 'xoxb-'", "App-Level Tokens"]),
        ({"SLACK_BOT_TOKEN": "xoxb-wrong-secret"}, ["SLACK_BOT_TOKEN", "invalid_auth"]),
        ({"SLACK_APP_TOKEN": "xapp-wrong-secret"}, ["SLACK_APP_TOKEN", "invalid_auth"]),
        ({"TWOHOP_SLACK__API_URL": "http://127.0.0.1:9/api/"}, ["cannot be reached", "127.0.0.1:9"]),
    ],
)
async def test_a_token_that_does_not_work_stops_the_start_and_names_the_fix(
    sample: Desk, tmp_path: Path, more: dict[str, str], named: list[str]
) -> None:
    async with (
        SlackServer(Workspace.sample(), App.from_manifest(manifest()), ack_seconds=PATIENCE) as slack,
        served(environment(sample, slack, tmp_path, **more), tmp_path) as process,
    ):
        said = await output(process)
    assert process.returncode == 2
    for words in named:
        assert words in said
    assert "secret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("method", "error", "named"),
    [
        ("auth.test", "not_allowed_token_type", "SLACK_BOT_TOKEN"),
        ("auth.test", "token_revoked", "SLACK_BOT_TOKEN"),
        ("auth.test", "account_inactive", "SLACK_BOT_TOKEN"),
        ("apps.connections.open", "not_allowed_token_type", "SLACK_APP_TOKEN"),
        ("apps.connections.open", "missing_scope", "connections:write"),
    ],
)
async def test_what_slack_answers_to_a_token_is_named(
    slack: SlackServer, bot: Any, method: str, error: str, named: str
) -> None:
    from ingest.errors import ConfigError

    slack.fail(method, error)
    with pytest.raises(ConfigError, match=named) as caught:
        async with bot():
            raise AssertionError("it started")
    assert error in str(caught.value)


async def test_a_scope_that_is_missing_stops_the_start(sample: Desk, embedder: Any, tmp_path: Path) -> None:
    from bot.app import build
    from bot.slack.app import connected
    from ingest.errors import ConfigError
    from tests.bot.slack.conftest import settings_of

    less = App(scopes=frozenset({"chat:write", "app_mentions:read"}))
    async with SlackServer(Workspace.sample(), less, ack_seconds=PATIENCE) as slack:
        desk = build(settings_of(sample, slack, tmp_path), embedder)
        with pytest.raises(ConfigError, match=r"lacks the scopes .*im:history.*reinstall"):
            async with connected(desk):
                raise AssertionError("it started")
        desk.close()


async def test_a_killed_process_leaves_its_question_to_the_next_which_ends_politely(
    sample: Desk, slack: SlackServer, tmp_path: Path
) -> None:
    env = environment(sample, slack, tmp_path, TWOHOP_SLACK__LEASE_SECONDS="0.5")
    gate = slack.hold("chat.postMessage")
    async with served(env, tmp_path) as process:
        await slack.connected(1, 60)
        ts = await slack.say(SUPPORT, "D_SAM", "thanks")
        await slack.wait_for(lambda: not slack.unacked() and slack.status)
        process.kill()
        await output(process)
    assert replies(slack, "D_SAM", ts) == []
    gate.set()
    async with served(env, tmp_path) as process:
        await slack.wait_for(lambda: replies(slack, "D_SAM", ts))
        await slack.wait_for(lambda: not slack.unfinished())
        process.send_signal(signal.SIGTERM)
        said = await output(process)
    assert process.returncode == 0
    assert "connected to Sample (T_HOME) as @" in said
    assert "stopping" in said
    assert replies(slack, "D_SAM", ts) == ["You are welcome."]
