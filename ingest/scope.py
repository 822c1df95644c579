"""Which facet values a rule is about, and the values that documents name and no ticket has."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from ingest.types import Chunk, Rule
from ingest.words import fold, mentions, stems, words


@dataclass(frozen=True, slots=True)
class Scope:
    """Which facet values a rule is about, and which it leaves out."""

    includes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    excludes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def keys(self) -> int:
        """How many facets it names values of: how specific it is. Leaving a value out is general still."""
        return len(self.includes)

    def fits(self, facts: Mapping[str, str]) -> Literal["applies", "unknown", "no"]:
        """Tell whether the rule is about a case with these facts."""
        known = {name: fold(value) for name, value in facts.items() if value}
        missing = False
        for limits, wanted in ((self.includes, True), (self.excludes, False)):
            for name, values in limits.items():
                if name not in known:
                    missing = True
                elif (known[name] in map(fold, values)) is not wanted:
                    return "no"
        return "unknown" if missing else "applies"


_EXCEPT = re.compile(
    r"\b(?:except(?: for| on| in)?|excluding|other than|apart from|aside from|with the exception of|but not|not (?:on|for|in)|"
    r"(?:do|does) not apply (?:to|on|for|in)|salvo|excepto|menos|con excepcion de|no se aplica a)\b"
    r"(?P<out>[^.;:()]*?)(?=\b(?:have|has|may|can|are|is|get|gets|must|will|within|when|if|who|which|pued\w+|tiene\w*)\b|[.;:()]|$)"
    r"|\bwith (?P<out2>[^.;:()]{1,40}?) (?:as (?:the|an|its|only) )+exceptions?\b"
)
_BUSINESS_TIME = re.compile(r"\bbusiness[ -](?:day|hour|week)s?\b", re.IGNORECASE)
_PEOPLE = re.compile(r"\W+(?:members?|mates?|leads?|leaders?)\b", re.IGNORECASE)
_ORDINARY = frozenset(
    (
        "low normal high medium standard basic free regular general default other none yes no new old open closed plus personal home major minor "
        "alta baja media alto bajo medio basico libre nuevo otro"
    ).split()
)
"""Words that are facet values only beside their facet's name, in a label, or with a capital inside a sentence."""


def scope(rule: Rule, vocabulary: Mapping[str, Collection[str]]) -> Scope:
    """Return which facet values the rule is about: what stands nearest wins, from its own words out to the title.

    A value written with a capital in the vocabulary must be so in the text: "Team plan", not "your team".
    """
    key = tuple((name, tuple(sorted(values))) for name, values in sorted(vocabulary.items()))
    return _scope(rule.text, rule.labels, rule.headings, key)


@lru_cache(maxsize=65536)
def _scope(
    text: str,
    labels: tuple[str, ...],
    headings: tuple[str, ...],
    vocabulary: tuple[tuple[str, tuple[str, ...]], ...],
) -> Scope:
    places = [labels or (text,), *((heading,) for heading in reversed(headings))]
    includes: dict[str, frozenset[str]] = {}
    excludes: dict[str, frozenset[str]] = {}
    for name, values in vocabulary:
        for place in places:
            named, left_out, every = _read_place(place, name, values)
            if left_out:
                excludes[name] = left_out
            if named and not every and (named < frozenset(values) or len(values) == 1):
                includes[name] = named
            if named or left_out or every:
                break
    return Scope(includes, excludes)


def _read_place(
    place: tuple[str, ...], facet: str, values: tuple[str, ...]
) -> tuple[frozenset[str], frozenset[str], bool]:
    """Return the values that a place names and leaves out, and whether it speaks of all of them."""
    spoken = re.escape(fold(facet).replace("_", " "))
    named: set[str] = set()
    left_out: set[str] = set()
    every = False
    for part in place:
        part = _BUSINESS_TIME.sub(lambda found: "-" * len(found.group()), part)
        folded = fold(part)
        for match in _EXCEPT.finditer(folded):
            start, end = match.span("out" if match["out"] is not None else "out2")
            left_out.update(mentions(part[start:end], values, strict=True))
            if left_out:
                part = part[:start] + " " * (end - start) + part[end:]
        every = every or bool(
            re.search(
                rf"\b(?:all|any|every|each|whatever|whichever|regardless of|irrespective of|todos los|todas las|cualquier|cualquiera de los)"
                rf"(?: the| your| our| other| of)* {spoken}(?:e?s)?\b",
                folded,
            )
        )
        named.update(value for value in mentions(part, values, strict=True) if _meant(part, value, spoken))
    return frozenset(named - left_out), frozenset(left_out), every


def _meant(part: str, value: str, facet: str) -> bool:
    """Tell whether an ordinary word stands for the facet value."""
    wanted = fold(value)
    folded = fold(part)
    if wanted not in _ORDINARY:
        found = list(re.finditer(rf"\b{re.escape(wanted)}", folded))
        return not found or any(not _PEOPLE.match(folded, match.end()) for match in found)
    if folded.rpartition(": ")[2].strip() == wanted:
        return True
    near = rf"\b{re.escape(wanted)}\b[\w ,/&-]{{0,25}}\b{facet}|\b{facet}\b\W+(?:\w+\W+){{0,3}}{re.escape(wanted)}\b"
    capital = re.escape(value[:1].upper() + value[1:])
    inside = rf"(?<=[a-z,] ){capital}\b|\b{capital}(?= (?:tickets?|cases?|issues?|incidents?|requests?)\b)"
    return bool(re.search(near, folded) or re.search(inside, part))


_NAME = r"[^\W\d_a-z][\w+]*(?:-[^\W_a-z]\w*)?(?: (?:[^\W\d_a-z][\w+]*|\d{1,3}\b))?"
"""One or two words with capitals."""
_NO_NAME = frozenset(
    (
        "all any either neither several various every each other others some most both none no yes default general else rest remaining current same own new old whole paid "
        "larger smaller bigger higher lower better next previous different special great good everyone everybody anyone everywhere elsewhere "
        "anywhere worldwide otherwise customer customers client account company user team mate product service support payment after self full "
        "todos todas otros otras resto cliente"
    ).split()
)
"""Words that stand before a facet's word, or in its column, and are no value of it."""


def taught(
    vocabulary: Mapping[str, Collection[str]], chunks: Collection[Chunk], question: str = ""
) -> dict[str, tuple[str, ...]]:
    """Return the vocabulary with the values that rules or the question name and no ticket has.

    The Silver of "Silver plan terms" is a plan although no customer is on it, and its rules are not everybody's. A
    value stands in front matter, beside its facet's word ("customers with Silver care"), in the column of that name,
    or in a table's row or column next to a value that is known.
    """
    rules = tuple(dict.fromkeys(rule for chunk in chunks for rule in chunk.rules))
    plain = frozenset(word for chunk in chunks for word in re.findall(r"\b[a-z][\w-]*", chunk.body))
    labels = _labelled(rules)
    found: dict[str, tuple[str, ...]] = {}
    for facet, values in vocabulary.items():
        named = [value for chunk in chunks if (value := chunk.facets.get(facet))]
        for rule in rules:
            named += _beside(rule.text, facet, values, plain)
            for place in (*rule.headings, *rule.labels[:1]):
                named += _beside(place, facet, values, plain, heading=True)
        named += _beside(question.partition(" ")[2], facet, values, plain)
        for (_, header), cells in labels.items():
            if _heads(header, facet) or any(_is_one(cell, values) for cell in cells):
                named += (cell for cell in cells if len(words(cell)) <= 3)
        small = bool(values) and all(value.islower() for value in values)
        new = (name.lower() if small else name for name in named)
        found[facet] = (
            *values,
            *dict.fromkeys(name for name in new if _may_be(name) and not _known(name, vocabulary)),
        )
    return found


def _beside(
    text: str, facet: str, values: Collection[str], plain: frozenset[str], *, heading: bool = False
) -> Iterator[str]:
    """Yield what stands as a name beside a facet's word: "on the Silver or Bronze plan", "con el plan Silver"."""
    spoken = rf"(?i:{re.escape(facet.replace('_', ' '))}s?)\b"
    joint = r", (?:and |or )?| and | or | ?/ ?"
    for match in re.finditer(rf"\b({_NAME}(?:(?:{joint}){_NAME})*)[ -]{spoken}", text):
        for name in re.split(joint, match[1]):
            # Every first word has a capital, and so have many of a heading: what is also written small is no name.
            weak = heading or not match.start()
            name = _without_lead(name)
            if not weak or not (set(words(name)) & plain or name.endswith("ing")):
                yield name
    for match in re.finditer(rf"\b(?:on|with|of|for|in|under|el|con|del) {spoken} ({_NAME})", text):
        yield match[1]
    # A desk that writes "gold care" writes "silver care" too.
    if any(value.islower() for value in values):
        for match in re.finditer(
            rf"\b(?:with|on|under|have|has) (?:the |an? )?([a-z]+) {spoken}", fold(text)
        ):
            yield match[1]


def _without_lead(name: str) -> str:
    """Leave out a first word that is none of the name: the "On" of "On Silver"."""
    first, _, rest = name.partition(" ")
    return rest if rest and not stems(first) else name


def _labelled(rules: Iterable[Rule]) -> Mapping[tuple[object, str], dict[str, None]]:
    """Return the labels of each table by their column's header; the columns' own names have none."""
    found: dict[tuple[object, str], dict[str, None]] = {}
    for rule in rules:
        for place, label in enumerate(rule.labels):
            header, joint, cell = label.partition(": ") if place else ("", "", label)
            parts = re.split(r"[,;/&|]| and | or ", cell if joint or not place else header)
            into = found.setdefault(((rule.uri, rule.headings), header if joint else ""), {})
            into.update(dict.fromkeys(part.strip() for part in parts))
    return found


def _heads(header: str, facet: str) -> bool:
    spoken = re.escape(fold(facet.replace("_", " ")))
    return bool(re.fullmatch(rf"{spoken}s?(?: (?:level|tier|type|name))?", fold(header)))


def _is_one(cell: str, values: Collection[str]) -> bool:
    return any(words(cell) == words(value) for value in values)


def _may_be(name: str) -> bool:
    said = words(name)
    return bool(stems(name)) and not set(said) & _NO_NAME and not any(char.isspace() for char in name[:1])


def _known(name: str, vocabulary: Mapping[str, Collection[str]]) -> bool:
    return any(mentions(name, values) for values in vocabulary.values())
