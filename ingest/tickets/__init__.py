"""Tickets: reading files, guessing what columns mean, and a table that questions can only read."""

from ingest.tickets.guess import describe, guess
from ingest.tickets.numbers import Mention
from ingest.tickets.store import AmbiguousName, ImportReport, TicketFilter, TicketPage, TicketStore

__all__ = [
    "AmbiguousName",
    "ImportReport",
    "Mention",
    "TicketFilter",
    "TicketPage",
    "TicketStore",
    "describe",
    "guess",
]
