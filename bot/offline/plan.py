"""Planning: which calls could bring what is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from bot.filters import readings
from bot.filters.flags import is_flag
from bot.gate import asks
from bot.types import EvidenceItem, Gazetteer
from ingest.words import mentions, stems, words


def plan(text: str, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date) -> list[tuple[str, str]]:
    """Return the calls that could bring what is missing, most useful first, as (tool, arguments)."""
    wanted = asks(text)
    calls: list[tuple[str, dict[str, Any]]] = []
    lists = [dict(reading.filters) for reading in readings(text, names, today)]
    rows = [item for item in evidence if item.ticket is not None]
    if ("aggregate" in wanted or lists[0].get("customer")) and not rows:
        calls += [("find_tickets", filters) for filters in lists]
    named = [item.ticket.number for item in rows if item.ticket]
    if "similar" in wanted and len(named) < 2:
        calls.append(
            ("similar_tickets", {"number": named[0]} if named and len(named) == 1 else {"text": text})
        )
    topic = " ".join(stem for stem in words(text) if stems(stem))
    if "compare" in wanted:
        facets = {name: values for name, values in names.facets.items() if not is_flag(values)}
        compared = [value for values in facets.values() for value in mentions(text, values)]
        for name, values in facets.items():
            if not compared and (name in words(text) or f"{name}s" in words(text)):
                compared = list(values)
        without = topic
        for value in compared:
            without = re.sub(rf"\b{re.escape(' '.join(words(value)))}\b", " ", without)
        calls += [
            ("search_docs", {"query": " ".join(f"{value} {without}".split())}) for value in compared[:4]
        ]
    shown = " ".join(item.text for item in evidence if item.chunk is not None)
    titles = {item.title for item in evidence}
    calls += [
        ("search_docs", {"query": f"{title} {topic}"[:400]})
        for title in mentions(shown, [t for t in names.titles if t not in titles and len(words(t)) > 1])[:2]
    ]
    if not calls and not rows:
        calls.append(("search_docs", {"query": topic or text}))
    return [(name, json.dumps(arguments, sort_keys=True, default=str)) for name, arguments in calls]
