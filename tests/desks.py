"""Desks for tests: the sample company and small ones made of texts, with the bundled model or a fake one."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.app import Desk, build
from bot.config import Settings, load
from bot.sample import demo_settings
from bot.types import Answer, ChatModel, Mode, Question
from ingest.config import SourceSettings, TicketSettings
from ingest.embed import Embedder
from ingest.sources import Failed
from ingest.tickets import TicketStore
from ingest.types import Ticket

SUPPORT = frozenset({"members", "support"})


def sample_settings(data: Path) -> Settings:
    """Return the sample company's settings with its data under `data`."""
    return demo_settings(Settings(data=data))


def prepared(settings: Settings, embedder: Embedder, model: ChatModel | None = None) -> Desk:
    """Build a desk and index what its settings name."""
    desk = build(settings, embedder, model)
    for path in settings.tickets.csv:
        desk.import_tickets(path)
    desk.sync_documents()
    desk.sync_tickets()
    return desk


def small_settings(
    folder: Path, documents: Mapping[str, str], tickets: Iterable[Mapping[str, str]] = (), **more: Any
) -> Settings:
    """Write documents and tickets into `folder` and return settings over them."""
    docs = folder / "docs"
    for name, text in documents.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    rows = list(tickets)
    csvs: tuple[Path, ...] = ()
    if rows:
        file = folder / "tickets.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        csvs = (file,)
    ticket_settings = more.pop("tickets", {})
    return Settings(
        data=folder / "data",
        sources=SourceSettings(paths=(docs,)),
        tickets=TicketSettings(csv=csvs, **ticket_settings),
        **more,
    )


async def answer(
    desk: Desk, text: str, now: str = "2026-09-26T12:00", mode: Mode = "gated", user: str = "", **more: Any
) -> Answer:
    """Ask through the pipeline at a given clock."""
    from bot import pipeline

    moment = datetime.fromisoformat(now).replace(tzinfo=desk.zone)
    return await pipeline.answer(Question(text, desk.asker(user), moment, **more), desk.parts, mode)


def indexed_tickets(store: TicketStore, now: datetime) -> list[Ticket]:
    """Return the tickets to search by similarity, newest first; every row must be one."""
    found: list[Ticket] = []
    for ticket in store.all_for_index(now):
        assert not isinstance(ticket, Failed), ticket
        found.append(ticket)
    return found


__all__ = ["SUPPORT", "answer", "indexed_tickets", "load", "prepared", "sample_settings", "small_settings"]
