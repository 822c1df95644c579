"""Our own state: turns with how they came about, the inbox of questions; index runs are `ingest/runs.py`."""

from __future__ import annotations

from bot.store.inbox import Inbound, Inbox, Refusal, Row
from bot.store.turns import Store, Turn, public

__all__ = ["Inbound", "Inbox", "Refusal", "Row", "Store", "Turn", "public"]
