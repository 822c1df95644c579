"""Who somebody is: no event of Slack says who is a guest, so `users.info` is asked before anything is answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.metrics import AUTH
from bot.slack.access import Us
from bot.slack.calls import UNREACHABLE, code, retry_after
from bot.store.inbox import NoMember

Kind = Literal["member", NoMember]
"""The workspaces of one Enterprise Grid are one organisation's: its people are members in all of them."""

_KNOWN_SECONDS = 300.0
"""How long a member who becomes a guest, or leaves, may still be taken for one: what `users.info` costs is paid once in it."""
_UNKNOWN_SECONDS = 30.0
"""How long an account that Slack does not show is not asked for again."""
_MOST_KNOWN = 10_000
_CALL_SECONDS = 120.0
"""Longest call with the pauses that Slack asks for; whoever waits for it has a shorter limit of their own."""
_LONGEST_PAUSE = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Person:
    """An account as Slack knows it; only a member is answered."""

    id: str
    kind: Kind
    team: str = ""


def person(user: Mapping[str, Any], us: Us) -> Person:
    """Return who the `user` of a `users.info` answer is, see https://docs.slack.dev/reference/objects/user-object.

    `is_stranger` alone does not tell an outsider: it is false for one whom the app meets in a shared channel. What is
    not said is not taken for a no: without a team or one of the four flags nobody is a member.
    """
    team = str(user.get("team_id") or "")
    enterprise = (user.get("enterprise_user") or {}).get("enterprise_id")
    ours = team == us.team or (us.enterprise != "" and us.enterprise in (team, enterprise))
    kind: Kind = "unknown"
    if user.get("is_stranger") or (team and not ours):
        kind = "external"
    elif user.get("deleted"):
        kind = "deactivated"
    elif user.get("is_bot"):
        kind = "bot"
    elif user.get("is_restricted") or user.get("is_ultra_restricted"):
        kind = "guest"
    elif ours:
        match user:
            case {"deleted": False, "is_bot": False, "is_restricted": False, "is_ultra_restricted": False}:
                kind = "member"
    return Person(str(user.get("id") or ""), kind, team)


class People:
    """Asks Slack who somebody is and keeps it for a while; all who ask for one account at a time share one call.

    `clock` is monotonic seconds, `sleep` waits between two attempts.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        us: Us,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most: int = _MOST_KNOWN,
    ) -> None:
        self._client = client
        self._us = us
        self._clock = clock
        self._sleep = sleep
        self._most = most
        self._known: dict[str, tuple[Person, float]] = {}
        """Each account with when it is asked for again, the longest known first."""
        self._calls: dict[str, asyncio.Task[Person]] = {}

    async def find(self, user: str, seconds: float) -> Person:
        """Return who somebody is, and unknown where Slack did not say so within so many seconds."""
        pause = 1.0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while user:
                    try:
                        return await self._found(user)
                    except UNREACHABLE as error:
                        wait = max(pause, retry_after(error))
                        _log.warning(
                            "Slack does not say who %s is, once more in %.0f s: %s", user, wait, code(error)
                        )
                        await self._sleep(wait)
                        pause = min(2 * pause, _LONGEST_PAUSE)
        return Person(user, "unknown")

    async def close(self) -> None:
        """End the calls under way."""
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def _found(self, user: str) -> Person:
        known, until = self._known.get(user, (None, 0.0))
        if known is not None and self._clock() < until:
            return known
        call = self._calls.get(user)
        if call is None:
            call = self._calls[user] = asyncio.create_task(self._ask(user), name=f"users.info {user}")
            call.add_done_callback(partial(self._ended, user))
        # One who gives up waiting leaves the call to the others.
        return await asyncio.shield(call)

    def _ended(self, user: str, call: asyncio.Task[Person]) -> None:
        del self._calls[user]
        if not call.cancelled():
            # Also where nobody waits for it any more.
            call.exception()

    async def _ask(self, user: str) -> Person:
        asked_at = self._clock()
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                answer = await self._client.users_info(user=user)
        except SlackApiError as error:
            why = code(error)
            # A token that is not good, and an account that Slack does not show, are so the next time too.
            if why not in AUTH and not why.startswith("user_not_"):
                raise
            _log.warning("Slack does not say who %s is: %s", user, why)
            found = Person(user, "unknown")
        else:
            found = person(answer.get("user") or {}, self._us)
        kept = _UNKNOWN_SECONDS if found.kind == "unknown" else _KNOWN_SECONDS
        self._known.pop(user, None)
        self._known[user] = found, asked_at + kept
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return found
