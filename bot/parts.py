"""What answering needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot import gate
from bot.config import RetrievalSettings, WordSettings
from bot.facts.deciding import Deciding
from bot.retrieve import Retriever
from bot.tools import Run
from bot.types import ChatModel, Gazetteer, Limits
from ingest.dates import Calendar
from ingest.tickets import TicketStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What answering needs; `app.py` builds it once."""

    retriever: Retriever
    tickets: TicketStore
    model: ChatModel
    fallback: ChatModel
    """The offline model: answers when the model cannot, or when its text does not pass the checks."""
    names: Callable[[], Gazetteer]
    calendar: Calendar
    deciding: Deciding
    retrieval: RetrievalSettings
    words: WordSettings
    limits: Limits
    compute: Run
    store: Run
    unread: Callable[[], str] = lambda: ""
    """Says as a clause that sources were not read to their end yet; empty where they were."""
    company: str = ""
    talk: Callable[[str, Sequence[str]], gate.Meta | None] = lambda _text, _names: None
    """Recognises small talk that no pattern lists."""
