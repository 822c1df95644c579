"""Tickets told: the fields a question names, how a ticket was solved, a table of tickets."""

from __future__ import annotations

import re

from bot.filters.actions import tells_of
from bot.gate import STATE
from bot.quote import ORDERS
from bot.types import EvidenceItem
from bot.verdict.case import DEMANDS
from ingest.blocks import sentences
from ingest.dates import format_date
from ingest.types import Ticket
from ingest.words import stems, words


def table(item: EvidenceItem) -> list[str]:
    head, *rest = item.text.splitlines()
    counts = [line for line in rest if " | " not in line]
    return [f"{head} [{item.n}]", *(f"- {line} [{item.n}]" for line in (counts or rest[:12]))]


def resolved(item: EvidenceItem) -> str:
    ticket = item.ticket
    if ticket is None:
        return ""
    how = f"“{' '.join(sentences(ticket.resolution)[:3])}”" if ticket.resolution else f"still {ticket.status}"
    return f"- {item.title} ({ticket.customer}): “{ticket.subject}” {how} [{item.n}]"


def asks_of(item: EvidenceItem, text: str, wanted: frozenset[str]) -> bool:
    """Tell whether a question asks when something took place that the ticket tells: "When was the machine delivered?"."""
    if "rule" in wanted or "when" not in words(text) or item.ticket is None:
        return False
    demanded = bool(set(stems(text)) & set(stems("ask apply")))
    return bool(_days_of(item.ticket, text)) or demanded


def fields_of(item: EvidenceItem, text: str, wanted: frozenset[str], short: bool = False) -> list[str]:
    """Return the fields of a ticket that the question names; the ticket in short where it names none."""
    if "rule" in wanted:
        return []
    head, *rest = item.text.splitlines()
    asked = set(stems(text))
    if not re.search(r"\b(who|which|what|whose) (is the )?customer", text, re.IGNORECASE):
        asked -= set(stems("customer"))
    if "when" in words(text) and asked & set(stems("ask apply")):
        asked |= DEMANDS
    fields = [line for line in rest if ": " in line and not line.startswith("Resolution")]
    named = [line for line in fields if set(stems(line.partition(":")[0])) & asked]
    if "who" in words(text):
        named += [line for line in fields if line.startswith("Assignee") and line not in named]
    resolution = [line for line in rest if line.startswith("Resolution: ")]
    if STATE.search(" ".join(words(text))) or {"resolv", "resolut", "fix", "solv", "happen", "end"} & asked:
        named += [line for line in fields if line.startswith("Status") and line not in named] + resolution
    if short and not named:
        named = [line for line in fields if line.partition(": ")[2] in item.facets.values()]
    head = head if head.endswith((".", "?", "!")) else f"{head}."
    if "when" in words(text) and item.ticket and (days := _days_of(item.ticket, text)):
        return [f"{head} {'; '.join(days)} [{item.n}]"]
    if named:
        # A fixed column and a declared event may be the same moment.
        told = {line.partition(": ")[2]: line for line in reversed(named)}
        return [f"{head} {'; '.join(reversed(told.values()))} [{item.n}]"]
    body = item.ticket.body if item.ticket else ""
    # What a customer writes is a quotation, and the first sentence that says something tells what it is about.
    # A text that gives orders to whoever reads it is not quoted at all.
    quotable = () if ORDERS.search(body) else sentences(body)
    said = [f"The ticket says: “{line}”" for line in quotable if len(words(line)) > 3][:1]
    return [f"{line} [{item.n}]" for line in (f"{head} {'; '.join(fields[:6])}.", *said, *resolution)]


def _days_of(ticket: Ticket, text: str) -> list[str]:
    """Return when that took place which a question names: "When was the machine delivered?"."""
    held = {**ticket.events, **ticket.actions}
    return [
        f"{name.capitalize()}: {format_date(day)}"
        for name, day in held.items()
        if name != "opening" and tells_of(text, name)
    ]
