"""Cases: what rules are applied to, the fields and dates of a ticket or of the question itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from ingest.types import Ticket

TRUE = frozenset({"yes", "true", "y", "si", "ja", "oui"})
FLAGS = TRUE | {"no", "false", "n", "nein", "non"}
"""Values that say nothing without their column's name."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule is applied to."""

    label: str
    """How it is named in a sentence: `ticket TCK-4812`, or `this case`."""
    values: Mapping[str, str]
    """Facet to value, the priority among them; what is empty is left out."""
    events: Mapping[str, date | datetime] = field(default_factory=dict)
    """What happened, by declared name; `opening` is when the ticket was opened."""
    actions: Mapping[str, date | datetime] = field(default_factory=dict)
    """What somebody did, by declared name."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Declared names whose date is there and cannot be read, and why."""
    customer: str = ""
    evidence: str = ""
    """Id of the evidence item that holds it; empty where the question itself states it."""
    text: str = ""
    """What the ticket says."""


def of_ticket(ticket: Ticket, label: str) -> Case:
    """Read a case off a ticket row."""
    values = {name: value for name, value in ticket.facets.items() if value}
    if ticket.priority:
        values["priority"] = ticket.priority
    return Case(
        label=f"ticket {label}",
        values=values,
        events=ticket.events,
        actions=ticket.actions,
        unread=ticket.unread,
        customer=ticket.customer,
        evidence=f"ticket:{ticket.number}",
        text=f"{ticket.subject}. {ticket.body}",
    )
