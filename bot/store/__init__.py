"""Our own state: turns with how they came about, the inbox of questions, the jobs under way."""

from __future__ import annotations

from bot.store.inbox import Inbound, Inbox, Refusal, Row
from bot.store.jobs import Job, Jobs
from bot.store.turns import Store, Turn, public

__all__ = ["Inbound", "Inbox", "Job", "Jobs", "Refusal", "Row", "Store", "Turn", "public"]
