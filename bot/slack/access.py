"""What an event says of its author, with which rights is answered, and what is kept for a direct message; closed where in doubt."""

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
    """Return why this event gets a reason and no answer, or an empty string: its author is then still to be found out.

    Reads the payload only. In an Enterprise Grid another team may be a sibling workspace, which the payload does not say.
    """
    event: Mapping[str, Any] = body["event"]
    if not event.get("user"):
        return "nobody"
    from_team = event.get("user_team") or event.get("source_team") or event.get("team") or us.team
    if from_team != us.team and not us.enterprise:
        return "external"
    if body.get("is_ext_shared_channel") and event.get("channel") not in shared_channels:
        return "shared"
    return ""


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
