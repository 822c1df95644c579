"""A desk over the sample company behind a local Slack, joined by the real bolt and the real SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.app import Desk, build
from bot.config import AccessSettings, Settings, SlackSettings, SyncSettings
from bot.playground.server import SlackServer
from bot.playground.workspace import App, Workspace
from bot.slack.app import connected, manifest
from bot.types import ChatModel
from ingest.embed import Embedder

SUPPORT = "U_SAM"
MEMBER = "U_ANA"
ADMIN = "U_ADMIN"
NEVER: Mapping[str, Any] = {"every_minutes": 0}
PATIENCE = 60.0
"""Seconds that the local Slack waits for an ack here: a busy machine is no broken rule. `--soak` measures acks."""


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """Return a local Slack with the app that our manifest installs; at its end Slack's rules were kept."""
    async with SlackServer(Workspace.sample(), App.from_manifest(manifest()), ack_seconds=PATIENCE) as server:
        yield server
    assert [f"{one.kind}: {one.text}" for one in server.violations] == []


def settings_of(
    sample: Desk, slack: SlackServer, state: Path, sync: Mapping[str, Any] = NEVER, **more: Any
) -> Settings:
    """Return settings that share the sample's index and tickets and keep their own state."""
    section = {"api_url": slack.api_url, "admins": (ADMIN,), "drain_seconds": 5.0, **more}
    return sample.settings.model_copy(
        update={
            "database_url": f"sqlite:///{state / 'state.db'}",
            "slack_bot_token": slack.bot_token,
            "slack_app_token": slack.app_token,
            "access": AccessSettings(groups={"support": (SUPPORT, ADMIN)}),
            "slack": SlackSettings(**section),
            "sync": SyncSettings(**{**NEVER, **sync}),
        }
    )


Bot = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def bot(sample: Desk, embedder: Embedder, slack: SlackServer, tmp_path: Path) -> Bot:
    """Return what runs the bot on the local Slack: `async with bot() as desk`; each time on the same database."""

    @asynccontextmanager
    async def running(
        model: ChatModel | None = None, reindex: tuple[str, ...] = (), **more: Any
    ) -> AsyncIterator[Desk]:
        desk = build(settings_of(sample, slack, tmp_path, **more), embedder, model)
        try:
            async with connected(desk, reindex=reindex):
                await slack.connected()
                yield desk
        finally:
            desk.close()

    return running


def replies(slack: SlackServer, channel: str, thread_ts: str) -> list[str]:
    """Return what the bot has said in a thread."""
    return [m.text for m in slack.messages(channel, thread_ts) if m.user == slack.app.user]
