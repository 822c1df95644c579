"""What a call to Slack raises when it does not work, and what the log calls it."""

from __future__ import annotations

from contextlib import suppress

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError, SlackClientError

UNREACHABLE = (SlackClientError, ClientError, TimeoutError, OSError)
"""What a call to Slack raises when it did not work, and what is then tried again or let be."""


def code(error: Exception) -> str:
    """Return what to call an error in the log: Slack's own code, never a request with its token."""
    if isinstance(error, SlackApiError):
        return str(error.response.get("error") or "no error code")
    return f"{type(error).__name__}: {error}"[:200]


def retry_after(error: Exception) -> float:
    """Return how many seconds Slack asks to be left alone; 0 where it does not say."""
    if isinstance(error, SlackApiError):
        headers = {name.lower(): value for name, value in (error.response.headers or {}).items()}
        with suppress(TypeError, ValueError):
            return float(headers.get("retry-after", 0))
    return 0.0
