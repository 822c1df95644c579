"""Who is answered, with which rights, and what is kept for a direct message; closed where in doubt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.app import Desk
from bot.store import Inbound, Refusal
from bot.tools import NO_RIGHT
from bot.types import Answer, Asker
from ingest.types import MEMBERS
from ingest.words import mentions


@dataclass(frozen=True, slots=True)
class Us:
    """The bot as Slack knows it, from `auth.test`."""

    user: str
    bot: str
    name: str
    team: str
    team_name: str
    enterprise: str = ""


def refusal(body: Mapping[str, Any], us: Us, shared_channels: Collection[str]) -> Refusal:
    """Return why this event's author gets a reason and no answer, or an empty string; reads the payload only."""
    event: Mapping[str, Any] = body["event"]
    if not event.get("user"):
        return "nobody"
    home = {us.team, *([us.enterprise] if us.enterprise else [])}
    from_team = event.get("user_team") or event.get("source_team") or event.get("team")
    shared = bool(body.get("is_ext_shared_channel"))
    profile: Mapping[str, Any] = event.get("user_profile") or {}
    if (from_team and from_team not in home) or (shared and not from_team) or profile.get("is_stranger"):
        return "external"
    if profile.get("is_restricted") or profile.get("is_ultra_restricted"):
        return "guest"
    if shared and event.get("channel") not in shared_channels:
        return "shared"
    return ""


def outsider(command: Mapping[str, Any], us: Us) -> bool:
    """Tell whether a slash command comes from another organisation; its payload says nothing of guests."""
    if us.enterprise and command.get("enterprise_id") == us.enterprise:
        return False
    return command.get("team_id") != us.team


def rights(desk: Desk, inbound: Inbound) -> Asker:
    """Return who asks with the rights of the place: everybody in a channel reads along, so it has the members' only."""
    asker = desk.asker(inbound.user)
    return asker if inbound.private else Asker(asker.user, frozenset({MEMBERS}))


def needs_direct_message(desk: Desk, inbound: Inbound, answer: Answer) -> bool:
    """Tell whether a channel's question is about tickets, which are answered in direct messages only.

    A customer's name and a bare number are read only for people who may read tickets: whether they exist is nobody else's to learn.
    """
    if inbound.private:
        return False
    found = desk.tickets.mentioned(answer.standalone)
    may_read = bool(desk.asker(inbound.user).readers & set(desk.tickets.settings.readers))
    return (
        any(mention.explicit or may_read for mention in found)
        or any(step.error == NO_RIGHT for step in answer.steps)
        or answer.shape == "clarify"
        or (may_read and bool(mentions(answer.standalone, desk.tickets.customers())))
    )


def only_tickets(answer: Answer) -> bool:
    """Tell whether nothing but tickets could have answered: they were not named, or were looked for without the right."""
    return answer.shape in ("not_found", "unavailable", "clarify") or any(
        step.tool == "find_tickets" and step.error == NO_RIGHT for step in answer.steps
    )
