"""Scope: for which values of the desk's facets a unit holds, read from the nearest place that names any."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.facts.case import FLAGS, TRUE
from ingest.types import Chunk
from ingest.units import Unit, narrowed
from ingest.words import fold, mentions

Vocabulary = Mapping[str, Collection[str]]
"""Facet to its known values."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How a unit stands to a case."""

    own: frozenset[str] = frozenset()
    """Facets of which it names the case's value."""
    other: frozenset[str] = frozenset()
    """Facets of which it names other values alone."""
    unknown: frozenset[str] = frozenset()
    """Facets of which it names values and the case has none."""
    near: bool = False
    """An own value stands in the unit itself, not only above it."""

    @property
    def holds(self) -> bool:
        """It may be applied to the case."""
        return not self.other

    @property
    def keys(self) -> int:
        """How specific it is for the case."""
        return len(self.own)


def scope(unit: Unit, chunk: Chunk, values: Mapping[str, str], vocabulary: Vocabulary) -> Scope:
    """Return how a unit stands to a case's values: its own words, then what stands above it, out to the title."""
    own: set[str] = set()
    other: set[str] = set()
    unknown: set[str] = set()
    near = False
    for facet, known in vocabulary.items():
        value = values.get(facet, "")
        if known and all(fold(one) in FLAGS for one in known):
            # A flag is spoken of by its column's name.
            if value and mentions(unit.text, [facet.replace("_", " ")]):
                (own if fold(value) in TRUE else other).add(facet)
                near = True
            continue
        options = [*known, value] if value and value not in known else known
        for at, place in enumerate(_places(unit, chunk, facet)):
            said = mentions(place, options, strict=True)
            if not said:
                continue
            if value in said:
                own.add(facet)
                near = near or at == 0
            else:
                (other if value else unknown).add(facet)
            break
    return Scope(frozenset(own), frozenset(other), frozenset(unknown), near)


def _places(unit: Unit, chunk: Chunk, facet: str) -> Sequence[str]:
    return (unit.text, unit.lead, *reversed(chunk.headings), chunk.facets.get(facet, ""), chunk.title)


def columns(unit: Unit, values: Mapping[str, str], vocabulary: Vocabulary) -> Unit:
    """Return a row without the columns that are about other values than the case's, where one column is about it."""
    drop: set[int] = set()
    for facet, value in values.items():
        said = [mentions(name, vocabulary.get(facet, ()), strict=True) for name, _ in unit.cells]
        if any(value in named for named in said):
            drop |= {at for at, named in enumerate(said) if named and value not in named}
    return narrowed(unit, frozenset(range(len(unit.cells))) - drop) if drop else unit
