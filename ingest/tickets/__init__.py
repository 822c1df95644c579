"""Tickets: reading files, guessing what columns mean, and a table that questions can only read."""

from ingest.tickets.filter import TicketFilter, TicketPage
from ingest.tickets.guess import describe, guess
from ingest.tickets.imported import ImportReport
from ingest.tickets.names import AmbiguousName
from ingest.tickets.numbers import Mention
from ingest.tickets.store import TicketStore

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
