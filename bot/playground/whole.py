"""The local Slack with the bot in it: one command, no workspace and no tokens of anybody's."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from bot.app import Desk
from bot.config import Settings
from bot.playground.server import HOST, SlackServer
from bot.playground.workspace import App
from bot.slack.app import manifest, serve
from ingest.errors import ConfigError

SUPPORT, ADMIN = "U_SAM", "U_ADMIN"
"""The sample workspace's support member and its admin."""


def joined(settings: Settings, port: int) -> Settings:
    """Return settings whose bot joins a local Slack on `port`, with its people in the groups they would have."""
    labels = {"support", *settings.tickets.readers}
    groups = {**settings.access.groups}
    for label in labels:
        groups[label] = (*groups.get(label, ()), SUPPORT, ADMIN)
    return settings.model_copy(
        update={
            "slack_bot_token": f"xoxb-{secrets.token_hex(12)}",
            "slack_app_token": f"xapp-{secrets.token_hex(12)}",
            "access": settings.access.model_copy(update={"groups": groups}),
            "slack": settings.slack.model_copy(
                update={"api_url": f"http://{HOST}:{port}/api/", "admins": (*settings.slack.admins, ADMIN)}
            ),
        }
    )


async def run(desk: Desk, port: int, *, reindex: Sequence[str], say: Callable[[str], None]) -> None:
    """Serve the local Slack and answer in it until SIGTERM or SIGINT; raises ConfigError when the port cannot be had."""
    settings = desk.settings
    server = SlackServer(
        app=App.from_manifest(manifest()),
        port=port,
        bot_token=settings.slack_bot_token,
        app_token=settings.slack_app_token,
    )
    try:
        async with server as slack:
            say(f"A local Slack is at {slack.url}")
            say(
                "Sam is in support and may read tickets in a direct message; Admin may also type /twohop reindex."
            )
            await serve(desk, reindex=reindex, say=say)
    except OSError as error:
        raise ConfigError(
            f"port {port} of {HOST} cannot be had: {error.strerror}; choose another with --port"
        ) from error
