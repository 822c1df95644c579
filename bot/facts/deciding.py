"""Deciding: the units of the shown evidence, scored for an aspect and a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from bot.facts.applied import Facts, facts
from bot.facts.case import Case, of_ticket
from bot.facts.scorer import Found, Scored, scored
from bot.reading.aspects import expects
from bot.reading.intents import Intents
from bot.types import Aspect, EvidenceItem, Gazetteer, Intent
from ingest.dates import Calendar
from ingest.embed import Embedder
from ingest.words import mentions

_INTENTS: frozenset[Intent] = frozenset({"lookup", "rule", "compare", "howto", "explain"})


class Deciding:
    """Scores what was found; plain work for the compute threads."""

    def __init__(self, embedder: Embedder, calendar: Calendar) -> None:
        self._embedder = embedder
        self._calendar = calendar
        self._intents = Intents(embedder)

    def aspect(self, text: str, names: Gazetteer) -> Aspect:
        """Return what a text asks; it is standalone, without ticket numbers and customers' names."""
        values = {
            facet: said
            for facet, known in names.facets.items()
            if (said := mentions(text, known, strict=True))
        }
        meant = self._intents.of(text)
        intent: Intent = max(_INTENTS, key=lambda one: meant.scores[one])
        return Aspect(text, intent, values, expects(text))

    def units(
        self, aspect: Aspect, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date
    ) -> list[Scored]:
        """Return the units of the evidence's documents, best first, for the ticket that it holds, if one."""
        docs = [item.chunk for item in evidence if item.chunk is not None and item.chunk.kind == "doc"]
        found = [Found(chunk, 1 / place) for place, chunk in enumerate(docs, start=1)]
        return scored(
            aspect,
            case_of(evidence),
            found,
            embedder=self._embedder,
            vocabulary=names.vocabulary,
            aliases=names.synonyms,
            calendar=self._calendar,
            today=today,
        )

    def facts(self, text: str, evidence: Sequence[EvidenceItem], names: Gazetteer, now: datetime) -> Facts:
        """Return the windows over the ticket's dates that answer a text; nothing without a ticket."""
        case = case_of(evidence)
        if case is None:
            return Facts()
        aspect = self.aspect(text, names)
        return facts(aspect, self.units(aspect, evidence, names, now.date()), case, now)


def case_of(evidence: Sequence[EvidenceItem]) -> Case | None:
    """Return the one ticket of the evidence as a case; None where there is none, or several."""
    rows = [item for item in evidence if item.ticket is not None]
    if len(rows) != 1 or rows[0].ticket is None:
        return None
    return replace(of_ticket(rows[0].ticket, rows[0].title.partition(" ")[2]), evidence=rows[0].id)
