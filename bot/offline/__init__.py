"""The ChatModel that needs no key and no network: it plans by rule and answers by quoting.

It knows nothing about one example: what it searches next comes from the facets of fetched rows, from the titles that
passages name and from the names the tickets know; what it says are sentences of the evidence, chosen by similarity to
the question and by the words they share, with their heading path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from bot.facts.deciding import Deciding
from bot.filters import only_counts, whole_codes
from bot.gate import RECORD, asks
from bot.offline.plan import plan
from bot.offline.rows import asks_of, fields_of, resolved, table
from bot.quote import ASKING, decides, line, quote
from bot.tools import Run
from bot.types import Budget, EvidenceItem, Gazetteer, Message, Reply, Tool, ToolCall
from ingest.words import stems, words

__all__ = ["MOST_CALLS", "NOTE", "OfflineModel", "plan"]

NOTE = "Answered without a language model: sentences quoted from the sources, dates computed by rule."
MOST_CALLS = 6
"""Calls that one question is worth: each is one search."""


class OfflineModel:
    """Plans by rule, answers by quoting; deterministic."""

    name = "offline"
    note = NOTE

    def __init__(
        self, deciding: Deciding, names: Callable[[], Gazetteer], compute: Run | None = None
    ) -> None:
        """Answer with what is `deciding`; `compute` runs the work off the event loop, which is held where there is none."""
        self._deciding = deciding
        self._names = names
        self._compute = compute

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Plan while there are tools and something is missing; else quote. A schema is answered with nothing."""
        del max_tokens, budget
        if schema is not None:
            return Reply("")
        work = partial(self._reply, messages, bool(tools))
        return await self._compute(work) if self._compute else work()

    def _reply(self, messages: Sequence[Message], may_call: bool) -> Reply:
        asked = next(message for message in reversed(messages) if message.role == "user")
        if asked.now is None or asked.decided:
            return Reply("")
        names = asked.names or self._names()
        if may_call:
            done = [(call.name, call.arguments) for message in messages for call in message.calls]
            calls = [
                call for call in plan(asked.text, asked.evidence, names, asked.now.date()) if call not in done
            ]
            if calls and len(done) < MOST_CALLS:
                return Reply(
                    "",
                    tuple(
                        ToolCall(f"call-{len(done) + i}", name, arguments)
                        for i, (name, arguments) in enumerate(calls[:3], start=1)
                    ),
                    finish="tool_calls",
                )
        # A link from a text is not one of our sources' addresses; it may lead anywhere.
        return Reply(
            re.sub(
                r"https?://[^\s”\])]+",
                "(link left out)",
                self._compose(asked.text, asked.evidence, names, asked.now.date()),
            )
        )

    def _compose(self, text: str, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date) -> str:
        """Answer from the evidence by quoting, or say nothing."""
        wanted = asks(text)
        tables = [item for item in evidence if item.kind == "table"]
        rows = [item for item in evidence if item.ticket is not None]
        docs = [item for item in evidence if item.chunk is not None]
        parts: list[str] = []
        if tables and not (rows and "rule" in wanted):
            parts += [line for item in tables[-2:] for line in table(item)]
        spoken = words(text)
        asked = [item for item in rows if item.ticket and set(words(item.ticket.number)) <= set(spoken)]
        if len(asked) > 1:
            parts += [resolved(item) for item in asked]
        elif "similar" in wanted:
            parts += [resolved(item) for item in rows if item not in asked]
        elif len(rows) > 1 and not tables:
            parts += [resolved(item) for item in rows]
        elif rows and not tables:
            quotes = self._of_its_kind(text, rows[0], evidence, names, today)
            parts += quotes + fields_of(rows[0], text, wanted, short=bool(quotes))
            if quotes:
                return "\n".join(parts)
        if parts and (only_counts(text) or not ("rule" in wanted or "compare" in wanted)):
            return "\n".join(parts)
        bare = _without(
            text,
            [word for item in rows if item.ticket for word in (item.ticket.number, item.ticket.customer)],
        )
        return "\n".join([*parts, *self._quoted(bare, docs, names, today)])

    def _of_its_kind(
        self, text: str, row: EvidenceItem, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date
    ) -> list[str]:
        """Say what code computed for the ticket, and quote what the documents say for its kind of case."""
        if row.ticket is None or asks_of(row, text, asks(text)):
            return []
        bare = _without(text, [row.ticket.number, row.ticket.customer])
        if not set(stems(bare)) - RECORD - ASKING:
            return []
        numbers = {item.id: item.n for item in evidence}
        computed = [
            f"{item.text} {''.join(f'[{numbers[id_]}]' for id_ in (*item.rests_on, item.id) if id_ in numbers)}"
            for item in evidence
            if item.kind == "computed" and item.rests_on
        ]
        return computed + self._quoted(bare, evidence, names, today)

    def _quoted(
        self, bare: str, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date
    ) -> list[str]:
        """Quote the units that decide; nothing where they do not."""
        aspect = self._deciding.aspect(bare, names)
        found = self._deciding.units(aspect, evidence, names, today)
        codes = whole_codes(bare)
        best = quote(aspect, found, asked=codes)
        case = any(item.ticket is not None for item in evidence)
        if not best or not (case or decides(bare, best, found, codes, compares=aspect.intent == "compare")):
            return []
        numbers = {item.id: item.n for item in evidence}
        return [line(one, numbers[one.chunk.id]) for one in best]


def _without(text: str, names: Sequence[str]) -> str:
    """Return the text without ticket numbers and customers, by as much of the name as it says: no document speaks of them."""
    for name in names:
        said = name.split()
        for size in range(len(said), 0, -1):
            begin = re.escape(" ".join(said[:size]))
            # One word of several counts only with its capital: "Blue" of "Blue Heron Books" is no colour.
            flags = re.NOFLAG if size == 1 < len(said) else re.IGNORECASE
            text, times = re.subn(rf"\S*\b{begin}\b(?:['’]s)?", " ", text, flags=flags)
            if times:
                break
    return " ".join(text.split())
