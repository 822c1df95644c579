"""The answer that needs no model: the sentences that decide, with what limits them, where they stand, and the case's fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.facts import cite
from bot.scorer import Scored
from bot.types import Aspect
from ingest.types import Chunk
from ingest.units import Unit
from ingest.words import stems, words

_MOST = 3
"""Units of an aspect."""
_NEAR = 3.0
"""How far, in the scorer's units, a unit may stand behind the best one."""
_ALIKE = 0.7
"""Share of a unit's stems that another one holds, from which it says nothing new."""
_LIMITS = frozenset(
    "unless except only but however if provided otherwise then not salvo excepto solo pero si sino außer nur aber wenn sauf sinon".split()
)
"""Words with which a neighbouring sentence limits one."""
_NEAREST = 0.45
_COVERED = 0.4


@dataclass(frozen=True, slots=True)
class Quoted:
    """What is quoted for one aspect."""

    lines: tuple[str, ...]
    """With a placeholder for each chunk's id."""
    chunks: tuple[Chunk, ...]


def quote(aspect: Aspect, units: Sequence[Scored]) -> Quoted:
    """Quote the units that decide an aspect, best first; a how-to's steps whole and in their order."""
    chosen = _steps(units) if aspect.intent == "howto" else _best(aspect, units)
    chunks = tuple({one.chunk.id: one.chunk for one in chosen}.values())
    return Quoted(tuple(_line(one) for one in chosen), chunks)


def decides(aspect: Aspect, units: Sequence[Scored], *, case: bool) -> bool:
    """Tell whether the best units answer the aspect at all: near in meaning, and holding the words that make it."""
    if not units:
        return False
    best = units[:_MOST]
    covered = frozenset().union(*(one.covered for one in best))
    wanted = frozenset(stems(aspect.text))
    share = len(covered) / len(wanted) if wanted else 0.0
    nearness = max(one.nearness for one in best)
    return case or nearness >= _NEAREST or (nearness >= 0.3 and share >= _COVERED)


def _best(aspect: Aspect, units: Sequence[Scored]) -> list[Scored]:
    chosen: list[Scored] = []
    for one in units:
        if len(chosen) == _MOST or one.score < units[0].score - _NEAR:
            break
        held = set(stems(one.unit.text))
        if any(len(held & set(stems(_shown(other.unit)))) >= _ALIKE * max(1, len(held)) for other in chosen):
            continue
        if one.chunk.authority == "chat" and not chosen and _formal(units, one):
            continue
        if one.scope.other and chosen:
            continue
        chosen.append(one)
    return chosen


def _formal(units: Iterable[Scored], one: Scored) -> bool:
    return any(other.chunk.authority != "chat" and other.score >= one.score - _NEAR for other in units)


def _steps(units: Sequence[Scored]) -> list[Scored]:
    """Return all list items of the section of the best item, in order; the best units where there is no list."""
    best = next((one for one in units[: 2 * _MOST] if one.unit.kind == "item"), None)
    if best is None:
        return list(units[:_MOST])
    same = [
        one
        for one in units
        if one.unit.kind == "item" and one.chunk.uri == best.chunk.uri and one.chunk.headings == best.chunk.headings
    ]
    order = {own: at for at, own in enumerate(_items(same))}
    return sorted(same, key=lambda one: (one.chunk.position, order[one.unit.text]))


def _items(same: Sequence[Scored]) -> list[str]:
    from ingest.units import units

    chunks = sorted({one.chunk.id: one.chunk for one in same}.values(), key=lambda chunk: chunk.position)
    return [unit.text for chunk in chunks for unit in units(chunk.body)]


def _shown(unit: Unit) -> str:
    text = f"{unit.lead} {unit.text}" if unit.lead and unit.kind == "item" else unit.text
    if unit.after and _LIMITS & set(words(unit.after)):
        text = f"{text} {unit.after}"
    return text


def _line(one: Scored) -> str:
    place = ", ".join([one.chunk.title, *one.chunk.headings[-1:]])
    return f"- {place}: “{_shown(one.unit)}” {cite(one.chunk.id)}"
