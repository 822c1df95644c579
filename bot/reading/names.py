"""Names: which of the desk's values, customers and colleagues a text mentions, slips of the pen included."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz

from bot.types import Gazetteer
from ingest.words import akin, fold, mentions, stems, words

_ALIKE = 88.0
"""Similarity (0 to 100, Indel) from which a word is a misspelt name."""
_LEAST = 5
"""Letters of a name from which slips are looked for; shorter ones are too near to other words."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a text names."""

    values: Mapping[str, tuple[str, ...]]
    """Facet (status and priority among them) to the values of it."""
    customers: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


def named(text: str, names: Gazetteer) -> Named:
    """Return what a text names: by its words, by a form of them ("Spanish" for Spain), or misspelt."""
    spoken = {**names.facets, "status": names.status, "priority": names.priority}
    values = {facet: found for facet, known in spoken.items() if (found := of(text, known))}
    return Named(values, people(text, names.customers), people(text, names.assignees))


def of(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the names that a text mentions, exactly or else in another form or with a slip."""
    if exact := mentions(text, known):
        return exact
    said = [(word, stem) for word in words(text) if len(word) >= _LEAST for stem in stems(word)]
    found = []
    for name in known:
        wanted = stems(name)
        if len(wanted) == 1 and len(name) >= _LEAST:
            if any(akin(stem, wanted[0]) or fuzz.ratio(word, fold(name)) >= _ALIKE for word, stem in said):
                found.append(name)
    return tuple(found)


def people(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the people or companies that a text names wholly, or by a word that only one of them has."""
    if whole := mentions(text, known):
        return whole
    owners: dict[str, set[str]] = {}
    for name in known:
        for word in words(name):
            owners.setdefault(word, set()).add(name)
    said = dict.fromkeys(form for word in words(text) for form in (word, word.removesuffix("s")))
    alone = [next(iter(owners[word])) for word in said if len(owners.get(word, ())) == 1 and stems(word)]
    return tuple(dict.fromkeys(alone))
