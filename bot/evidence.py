"""Evidence: numbers what was shown in a turn; an answer may cite nothing else."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.types import EvidenceItem
from ingest.config import TicketSettings
from ingest.dates import format_date
from ingest.types import EMPTY, Chunk, Hit, Ticket

RRF_K = 60


class Evidence:
    """The pool of one question: deduplicated, numbered once, capped, re-ranked each time something joins it.

    Pinned items (tickets fetched by key, what decides the verdict, tables and computed values) are always shown and
    never fused. The rest compete: an item's weight is the sum of 1/(60+rank) over the searches that found it, so that
    a later, better chunk replaces an earlier, weaker one.
    """

    def __init__(self, cap: int = 10) -> None:
        self._cap = cap
        self._items: dict[str, EvidenceItem] = {}
        self._weight: dict[str, float] = defaultdict(float)
        self._pinned: list[str] = []

    def __len__(self) -> int:
        return len(self._items)

    def add_hits(self, hits: Sequence[Hit], *, query: str, hop: int) -> tuple[EvidenceItem, ...]:
        """Add one search's hits, best first; return the ones that are new."""
        new: list[EvidenceItem] = []
        for rank, hit in enumerate(hits, start=1):
            self._weight[hit.chunk.id] += 1 / (RRF_K + rank)
            if hit.chunk.id not in self._items:
                new.append(self._put(from_chunk(hit.chunk, query=query, hop=hop)))
        return tuple(new)

    def pin(self, item: EvidenceItem) -> EvidenceItem:
        """Add an item that is always shown, or pin one that is already there."""
        stored = self._items.get(item.id) or self._put(item)
        if stored.id not in self._pinned:
            self._pinned.append(stored.id)
        return stored

    def _put(self, item: EvidenceItem) -> EvidenceItem:
        stored = dataclasses.replace(item, n=len(self._items) + 1)
        self._items[stored.id] = stored
        return stored

    @property
    def shown(self) -> tuple[EvidenceItem, ...]:
        """What may be put into a prompt: the pinned items, then the best of the rest up to the cap."""
        rest = [item for item in self._items.values() if item.id not in self._pinned]
        rest.sort(key=lambda item: (-self._weight[item.id], item.n))
        return (*(self._items[id_] for id_ in self._pinned), *rest[: self._cap])

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """The tickets fetched by key, in the order they came."""
        return tuple(item.ticket for item in self._items.values() if item.ticket is not None)

    def by_id(self, id_: str) -> EvidenceItem | None:
        """Return the item with this id, shown or not."""
        return self._items.get(id_)


def from_chunk(chunk: Chunk, *, query: str = "", hop: int = 1) -> EvidenceItem:
    """Make an item of a chunk."""
    return EvidenceItem(
        n=0,
        kind="doc" if chunk.kind == "doc" else "ticket",
        id=chunk.id,
        source=chunk.uri,
        title=chunk.title,
        section=chunk.section,
        url=chunk.link,
        text=chunk.text,
        readers=chunk.readers,
        facets=chunk.facets,
        chunk=chunk,
        hop=hop,
        query=query,
    )


def from_ticket(ticket: Ticket, label: str) -> EvidenceItem:
    """Make an item of a ticket row; `label` is how the company writes its number (`TCK-4812`)."""
    return EvidenceItem(
        n=0,
        kind="ticket",
        id=f"ticket:{ticket.number}",
        source=f"ticket:{ticket.number}",
        title=f"Ticket {label}",
        section=ticket.subject,
        url="",
        text=ticket_text(ticket, label),
        readers=ticket.readers,
        facets=ticket.facets,
        ticket=dataclasses.replace(ticket, personal=EMPTY),
    )


def ticket_text(ticket: Ticket, label: str) -> str:
    """Write a ticket out for reading: fields, dates, then its own words. No personal columns."""
    fields = {
        "Customer": ticket.customer,
        **{name.replace("_", " ").capitalize(): value for name, value in ticket.facets.items()},
        "Status": ticket.status,
        "Priority": ticket.priority,
        "Assignee": ticket.assignee,
        "Opened": format_date(ticket.opened) if ticket.opened else "",
        **{name.capitalize(): format_date(day) for name, day in {**ticket.events, **ticket.actions}.items()},
        **{name.capitalize(): f"cannot be read: {why}" for name, why in ticket.unread.items()},
    }
    lines = [f"Ticket {label}: {ticket.subject}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    lines += [
        text for text in (ticket.body, ticket.resolution and f"Resolution: {ticket.resolution}") if text
    ]
    return "\n".join(lines)


def stale(
    used: Iterable[EvidenceItem], as_of: datetime | None, now: datetime, settings: TicketSettings
) -> str:
    """Say how old the tickets are, where an answer used some and `as_of` is longer ago than the settings allow.

    Imported ones are of their import. A company's own database is read at the moment of asking, so that all there is to
    say of it is when it last changed.
    """
    hours = settings.stale_after_hours
    if not hours or as_of is None or not any(item.kind in ("ticket", "table") for item in used):
        return ""
    if (now - as_of).total_seconds() <= hours * 3600:
        return ""
    if settings.table:
        return (
            f"The newest change that the ticket database records is of {format_date(as_of)}; "
            "it may be a copy that is no longer filled."
        )
    return f"The tickets are as of {format_date(as_of)}; they may have changed since."
