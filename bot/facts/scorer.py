"""The scorer: how likely each unit of the evidence decides an aspect of a question, by a small fitted linear model."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from importlib import resources

from bot.facts.case import Case
from bot.facts.scope import Scope, Vocabulary, columns, scope
from bot.facts.windows import Window, windows
from bot.types import Aspect
from ingest.atoms import atoms
from ingest.dates import Calendar
from ingest.embed import Embedder
from ingest.types import Chunk
from ingest.units import Unit, units
from ingest.words import akin, share_of, stems

_LONGEST_CASE = 400
"""Characters of a ticket's text that are compared with units; what it is about stands at its beginning."""
_SHORT = 4
"""Stems below which a unit says little by itself."""
_LONG = 40
_TIMES = frozenset({"duration", "date", "time"})
_AMOUNTS = frozenset({"money", "percent"})
_VALUES = frozenset({"number", *_TIMES, *_AMOUNTS})


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit with what speaks for it."""

    unit: Unit
    chunk: Chunk
    scope: Scope
    windows: tuple[Window, ...]
    in_force: bool
    nearness: float
    """Cosine between aspect and unit."""
    covered: frozenset[str]
    """Stems of the aspect that stand in the unit or above it, in any form."""
    features: Mapping[str, float]
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk with how well its searches ranked it, 1 is best."""

    chunk: Chunk
    weight: float


@cache
def weights() -> Mapping[str, float]:
    """Return the fitted weights by feature (`tests/benchmarks/fit_scorer.py` makes them)."""
    text = (resources.files("bot") / "data" / "scorer.json").read_text(encoding="utf-8")
    found: Mapping[str, float] = json.loads(text)
    return found


def scored(
    aspect: Aspect,
    case: Case | None,
    found: Iterable[Found],
    *,
    embedder: Embedder,
    vocabulary: Vocabulary,
    aliases: Mapping[str, Sequence[str]],
    calendar: Calendar,
    today: date,
) -> list[Scored]:
    """Return every unit of the chunks with its score, best first.

    Features: cosines of the unit, with what stands above it, to the aspect, to the ticket and to both; shares, weighted
    by rarity among these units, of the aspect's and the ticket's words that it holds; what its scope is for the case;
    whether it gives a value of the expected kind or a window over the case's dates; whose text it is and whether it was
    in force on the day that counts.
    """
    rows = [(own, one) for one in found for own in units(one.chunk.body)]
    if not rows:
        return []
    values = dict(case.values) if case else {}
    values |= {name: said[0] for name, said in aspect.values.items() if len(said) == 1}
    rows = [(columns(unit, values, vocabulary), one) for unit, one in rows]
    vectors = embedder.embed([_with_context(unit, one.chunk) for unit, one in rows])
    near = vectors @ embedder.embed([aspect.text], kind="query")[0]
    near_case = near_both = None
    if case and case.text:
        both = f"{aspect.text} {case.text.partition('. ')[0]}"
        asked = embedder.embed([case.text[:_LONGEST_CASE], both], kind="query")
        near_case, near_both = vectors @ asked[0], vectors @ asked[1]
    held = [
        frozenset(stems(f"{one.chunk.title} {one.chunk.section} {unit.lead} {unit.text}"))
        for unit, one in rows
    ]
    rarity = _Rarity(held)
    said = frozenset(stems(aspect.text))
    told = frozenset(stems(case.text)) - said if case else frozenset()
    out = []
    for at, (unit, one) in enumerate(rows):
        chunk = one.chunk
        standing = scope(unit, chunk, values, vocabulary)
        applied = tuple(windows(unit, chunk, standing, case, said, aliases, calendar)) if case else ()
        in_force = _in_force(chunk, _day(case, applied, today))
        kinds = {atom.kind for atom in atoms(unit.text)}
        own = frozenset(stems(unit.text))
        timed = bool(applied) and (bool(aspect.expects & _TIMES) or aspect.intent == "rule")
        features = {
            "near": float(near[at]),
            "near_case": float(near_case[at]) if near_case is not None else 0.0,
            "near_both": float(near_both[at]) if near_both is not None else 0.0,
            "near_alone": 0.0 if near_both is not None else float(near[at]),
            "words": rarity.share(said, held[at]),
            "own_words": rarity.share(said, own),
            "case_words": rarity.share(told, held[at]) if told else 0.0,
            "scope_own": min(standing.keys, 2),
            "scope_other": min(len(standing.other), 2),
            "chat": chunk.authority == "chat",
            "faq": chunk.authority == "faq",
            "out_of_force": not in_force,
            "expected": bool(aspect.expects & kinds),
            "expected_amount": bool(aspect.expects & kinds & _AMOUNTS),
            "expected_time": bool(aspect.expects & kinds & _TIMES),
            "window": timed,
            "window_asked": timed and bool(aspect.expects & _TIMES),
            "window_action": timed and any(window.sure for window in applied),
            "action_asked": timed
            and any(w.sure and share_of(w.action, (*said, *told)) >= 0.5 for w in applied),
            "start_asked": timed and any(share_of(w.event, (*said, *told)) == 1 for w in applied),
            "short": len(own) < _SHORT,
            "long": min(len(own), _LONG) / _LONG,
            "row": unit.kind == "row",
            "value": bool(kinds & _VALUES),
            "question": unit.text.rstrip().endswith("?"),
            "rank": one.weight,
        }
        numbers = {name: float(value) for name, value in features.items()}
        out.append(
            Scored(
                unit,
                chunk,
                standing,
                applied,
                in_force,
                float(near[at]),
                rarity.covered(said, held[at]),
                numbers,
                sum(weights().get(name, 0.0) * value for name, value in numbers.items()),
            )
        )
    return sorted(out, key=lambda one: (-one.score, one.chunk.id))


class _Rarity:
    """How telling a stem is among some units; one that none of them holds tells most."""

    def __init__(self, held: Sequence[Collection[str]]) -> None:
        self._many = len(held)
        self._seen = Counter(stem for one in held for stem in one)

    def _weight(self, stem: str) -> float:
        return math.log(1 + self._many / (0.5 + self._seen[stem]))

    def covered(self, wanted: Collection[str], held: Collection[str]) -> frozenset[str]:
        return frozenset(stem for stem in wanted if stem in held or any(akin(stem, other) for other in held))

    def share(self, wanted: Collection[str], held: Collection[str]) -> float:
        # What nothing here speaks of tells nothing of one unit against another.
        known = [stem for stem in wanted if self._seen[stem]]
        total = sum(map(self._weight, known))
        return sum(map(self._weight, self.covered(known, held))) / total if total else 0.0


def _with_context(unit: Unit, chunk: Chunk) -> str:
    lead = f"{unit.lead} " if unit.lead else ""
    return f"{chunk.title} > {chunk.section}: {lead}{unit.text}"


def _day(case: Case | None, applied: Sequence[Window], today: date) -> date:
    """Return the day whose text counts: that of the event a window runs from, else of the ticket, else `today`."""
    if case is None:
        return today
    moment = case.events.get(applied[0].event if applied else "opening")
    if moment is None:
        return today
    return moment.date() if isinstance(moment, datetime) else moment


def _in_force(chunk: Chunk, day: date) -> bool:
    return (chunk.effective_from is None or chunk.effective_from <= day) and (
        chunk.superseded_on is None or day < chunk.superseded_on
    )
