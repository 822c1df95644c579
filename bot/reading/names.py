"""Names: which of the desk's values, customers and colleagues a text mentions, and where; slips of the pen included."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz, process

from bot.types import Gazetteer
from ingest.words import akin, fold, forms, mentions, placed, stems, words

_ALIKE = 88.0
"""Similarity (0 to 100, Indel) from which a word is a misspelt name."""
_LEAST = 5
"""Letters of a name from which slips are looked for; shorter ones are too near to other words."""
_PEOPLE = ("customer", "assignee")


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
        alone = len(wanted) == 1 and len(name) >= _LEAST
        if alone and any(
            akin(stem, wanted[0]) or fuzz.ratio(word, fold(name)) >= _ALIKE for word, stem in said
        ):
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text names what: the `start` and `end` of "Danish" in it are `Denmark`, a value of `country`."""

    field: str
    """`customer`, `assignee`, `status`, `priority` or a facet."""
    values: tuple[str, ...]
    """Several where one word begins the names of several, or where a value has several spellings."""
    start: int
    end: int


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    stem: str
    """Empty for a stop word."""


class _Found(NamedTuple):
    """A candidate; of two over the same words the one that sorts first stands."""

    level: int
    """0 exact, 1 in other forms or another order, 2 by a part that nothing else has, 3 misspelt."""
    size: int
    """Minus the number of its words."""
    at: tuple[int, ...]
    field: str
    value: str


def places(text: str, names: Gazetteer, spoken: Mapping[str, Sequence[str]]) -> tuple[Place, ...]:
    """Say where a text names what, in order, no place inside another; `spoken` gives other words for a folded value.

    A name stands exactly, or in other forms or another order of its words ("cargo bikes" for Bike, cargo), or by a part that no other
    name has ("Okoye's"), or misspelt.
    """
    said = tuple(_Word(word, start, end, "".join(stems(word)[:1])) for word, start, end in placed(text))
    synonyms = {fold(head): tuple(others) for head, others in names.synonyms.items()}
    fields = {
        "customer": names.customers,
        "assignee": names.assignees,
        "status": names.status,
        "priority": names.priority,
        **names.facets,
    }
    found: list[_Found] = []
    for field in _PEOPLE:
        found += _people(said, text, field, tuple(fields.pop(field)))
    for field, known in fields.items():
        found += _begun(said, field, known)
        for value in known:
            for form in (value, *spoken.get(fold(value), ()), *synonyms.get(fold(value), ())):
                standing = _standing(said, field, value, form)
                # "US" is no "us".
                written = (
                    one for one in standing if text[said[one.at[0]].start : said[one.at[-1]].end] == form
                )
                found += standing if stems(form) else written
    taken: dict[int, _Found] = {}
    chosen: list[Place] = []
    for one in sorted(found):
        over = {taken[at] for at in one.at if at in taken}
        alike = [other for other in over if other[:4] == one[:4]]
        if over and not alike:
            continue
        place = Place(one.field, (one.value,), said[min(one.at)].start, said[max(one.at)].end)
        if alike:
            before = next(
                p for p in chosen if (p.field, p.start, p.end) == (place.field, place.start, place.end)
            )
            chosen[chosen.index(before)] = Place(
                one.field, _added(before.values, one.value), place.start, place.end
            )
        else:
            taken |= dict.fromkeys(one.at, one)
            chosen.append(place)
    return tuple(sorted(chosen, key=lambda place: place.start))


def _added(values: tuple[str, ...], value: str) -> tuple[str, ...]:
    """Add a value; of one value's spellings the first is enough, filters do not tell them apart."""
    known = {" ".join(fold(one).split()) for one in values}
    return values if " ".join(fold(value).split()) in known else (*values, value)


def _standing(said: Sequence[_Word], field: str, value: str, form: str) -> Iterator[_Found]:
    wanted = words(form)
    size = len(wanted)
    if not wanted:
        return
    parts = stems(form)
    for at in range(len(said) - size + 1):
        run = said[at : at + size]
        span = tuple(range(at, at + size))
        if _exact(run, wanted):
            yield _Found(0, -size, span, field, value)
        elif len(parts) == 1 and size == 1 and _akin(run[0], form, parts[0]):
            yield _Found(1, -size, span, field, value)
        elif _misspelt(" ".join(word.text for word in run), " ".join(wanted)):
            yield _Found(3, -size, span, field, value)
    if len(parts) > 1:
        yield from _shuffled(said, parts, field, value)


def _exact(run: Sequence[_Word], wanted: Sequence[str]) -> bool:
    """Tell whether some words are those of a name, the last one perhaps its plural or possessive."""
    *before, last = wanted
    said = run[-1].text
    same = said == last or said in forms(last) or last in forms(said)
    return same and [word.text for word in run[:-1]] == before


def _akin(word: _Word, name: str, part: str) -> bool:
    long = min(len(word.text), len(name)) >= _LEAST
    return bool(word.stem) and ((word.stem == part and len(part) > 3) or (long and akin(word.stem, part)))


def _misspelt(said: str, name: str) -> bool:
    # "Unresolved" is no slip of "resolved".
    return len(name) >= _LEAST and not said.endswith(name) and fuzz.ratio(said, name) >= _ALIKE


def _shuffled(said: Sequence[_Word], parts: Sequence[str], field: str, value: str) -> Iterator[_Found]:
    """Yield where all parts of a name stand close together in any order and form."""
    for at in range(len(said)):
        window = range(at, min(at + len(parts) + 1, len(said)))
        held = [
            next((i for i in window if said[i].stem and akin(said[i].stem, part)), None) for part in parts
        ]
        places_ = tuple(sorted({i for i in held if i is not None}))
        if None not in held and len(places_) == len(parts) and places_[0] == at:
            yield _Found(1, -len(parts), places_, field, value)


def _people(said: Sequence[_Word], text: str, field: str, known: tuple[str, ...]) -> Iterator[_Found]:
    """Yield who is named: wholly, by a word that nobody else has and that a capital or its place tells apart, or misspelt.

    Of many thousands of names only those are compared whose words are there.
    """
    begin, owners = _index(known)
    found: list[_Found] = []
    for at, word in enumerate(said):
        bases = dict.fromkeys((word.text, word.text.removesuffix("s"), word.text.removesuffix("es")))
        for name in (name for base in bases for name in begin.get(base, ())):
            wanted = words(name)
            if len(run := said[at : at + len(wanted)]) == len(wanted) and _exact(run, wanted):
                found.append(_Found(0, -len(wanted), tuple(range(at, at + len(wanted))), field, name))
        part = next(
            (base for base in bases if len(base) > 2 and len(owners.get(base, ())) == 1 and stems(base)), ""
        )
        if part:
            (name,) = owners[part]
            led = words(name)[0] == part and (field == "assignee" or (at > 0 and not said[at - 1].stem))
            if led or (at > 0 and text[word.start].isupper()):
                found.append(_Found(2, -1, (at,), field, name))
    yield from found
    if not found:
        folded = _folded(known)
        for size in range(1, 4):
            for at in range(len(said) - size + 1):
                run = said[at : at + size]
                spoken = " ".join(word.text for word in run)
                if run[0].stem and run[-1].stem and len(spoken) >= _LEAST:
                    for _, _, n in process.extract(
                        spoken, folded, scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=3
                    ):
                        yield _Found(3, -size, tuple(range(at, at + size)), field, known[n])


@lru_cache(maxsize=16)
def _index(known: tuple[str, ...]) -> tuple[Mapping[str, list[str]], Mapping[str, set[str]]]:
    """Return the names by their first word, and by each of their words."""
    begin: dict[str, list[str]] = {}
    owners: dict[str, set[str]] = {}
    for name in known:
        for word in words(name):
            owners.setdefault(word, set()).add(name)
        begin.setdefault(words(name)[0] if words(name) else "", []).append(name)
    return begin, owners


@lru_cache(maxsize=16)
def _folded(known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(words(name)) for name in known)


def _begun(said: Sequence[_Word], field: str, known: Sequence[str]) -> Iterator[_Found]:
    """Yield the values that a word begins: "on hold" of "On hold - supplier"."""
    for value in known:
        parts = stems(value)
        if len(parts) < 2 or len(parts[0]) < 3:
            continue
        for at, word in enumerate(said):
            if word.stem == parts[0]:
                yield _Found(2, -1, (at,), field, value)
