"""The page of the local Slack: what one person sees, and what that person does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from bot.playground.server import SlackServer


class Page:
    """Serves the page."""

    def __init__(self, slack: SlackServer) -> None:
        self.slack = slack

    def routes(self) -> list[web.RouteDef]:
        """Return the page's routes."""
        return []
