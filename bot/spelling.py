"""The question as a careful writer spells it: apostrophes, short forms, and known names with their capitals.

Everything behind tells a plan's name from an everyday word by its capital ("the Team plan", "my team"); people who
ask in a hurry write "annual team ppl". A small word is taken for a known value only where it stands as one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from bot.types import Gazetteer
from ingest.atoms import UNITS
from ingest.words import fold, stems, words

_NO_APOSTROPHE = re.compile(
    r"\b(do|does|did|has|have|had|is|are|was|were|wo|ca|could|would|should)nt\b|\b(what|who|where|when|that|how)s\b(?= \w)",
    re.IGNORECASE,
)
_SHORT: Mapping[str, str] = {
    "ppl": "people", "prio": "priority", "prios": "priorities", "pls": "please", "plz": "please", "tix": "tickets", "tkt": "ticket",
    "tkts": "tickets", "acct": "account", "accts": "accounts", "cust": "customer", "custs": "customers", "req": "request", "reqs": "requests",
    "resp": "response", "yr": "year", "yrs": "years", "hrs": "hours", "mins": "minutes", "docs": "documents", "subs": "subscriptions",
    "rn": "right now", "asap": "as soon as possible", "btw": "by the way", "abt": "about", "thru": "through", "w/o": "without",
    "w/": "with", "b4": "before", "msgs": "messages", "appt": "appointment", "info": "information",
}  # fmt: skip
_SHORT_FORM = re.compile(
    rf"(?<![\w@#./-])(?:{'|'.join(map(re.escape, sorted(_SHORT, key=len, reverse=True)))})(?![\w/@-]|\.\w)",
    re.IGNORECASE,
)
_OWNED = frozenset(
    (
        "a an the this that these those each every any some no whole entire support sales in of into el la los las un una este esta ese esa en"
    ).split()
)
"""Words before an everyday word that is no name: "the team", "in business"."""
_WHOSE = frozenset("my our your his her its their mi mis tu su sus nuestro nuestra".split())
_PEOPLE = frozenset(
    (
        "customer customers client clients user users people person account accounts shop shops buyer buyers owner owners subscriber subscribers "
        "ticket tickets case cases invoice invoices request requests subscription subscriptions cliente clientes cuenta cuentas ticket"
    ).split()
)
"""Words behind a value that stands as a name: "team customers"."""
_PARTS = frozenset(
    "member members mate mates leader leaders lead leads work hours hour day days week weeks".split()
)
"""Words behind an everyday word that is no name: "team members", "business days"."""
_AUXILIARIES = frozenset(
    "do does did is are was were can could may must will would should has have had".split()
)
_VERSUS = frozenset("vs versus and or to than nor y o".split())
_LED = frozenset("from by did does has".split())
"""Words before the first word of a customer's name that is written small: "from brightwater"."""


def respelt(text: str, names: Gazetteer) -> str:
    """Return the text with apostrophes, short forms written out, and known values and customers spelt as they are known."""
    text = _NO_APOSTROPHE.sub(lambda m: f"{m[1]}n't" if m[1] else f"{m[2]}'s", text)
    text = _SHORT_FORM.sub(lambda m: _SHORT[m.group().casefold()], text)
    for start, end, known in sorted(_written_small(text, names), reverse=True):
        text = f"{text[:start]}{known}{text[end:]}"
    return text


def _written_small(text: str, names: Gazetteer) -> Iterator[tuple[int, int, str]]:
    """Yield where a known name is written without its capitals, and the name."""
    spoken = list(re.finditer(r"[^\W_]+", text))
    said = [fold(match.group()) for match in spoken]
    values = [value for options in names.vocabulary.values() for value in options]
    parts = {word for value in values for word in words(value)}
    taken: set[int] = set()
    for known, at, size in (*_places(said, values), *_customers(said, names.customers, parts)):
        place = range(at, at + size)
        written = text[spoken[at].start() : spoken[at + size - 1].end()]
        shown = " ".join(known.split()[:size])
        if taken & set(place) or not written.islower() or written == shown or known.islower():
            continue
        if known in names.customers or size > 1 or _stands_as_name(said, at, parts, names, text, spoken):
            taken |= set(place)
            yield spoken[at].start(), spoken[at + size - 1].end(), shown


def _places(said: list[str], known: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Yield each known name with where it stands, longest first: name, place of its first word, number of words."""
    for name in sorted(known, key=lambda name: (-len(words(name)), name)):
        wanted = list(words(name))
        size = len(wanted)
        yield from (
            (name, at, size) for at in range(len(said) - size + 1) if size and said[at : at + size] == wanted
        )


def _customers(said: list[str], customers: Iterable[str], parts: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield customers by the whole name, by two words that only one name begins with, or by a first word behind "from"."""
    known = [name for name in customers if words(name)]
    yield from _places(said, known)
    for size in (2, 1):
        begin: dict[tuple[str, ...], list[str]] = {}
        for name in known:
            begin.setdefault(words(name)[:size], []).append(name)
        for start, holders in begin.items():
            if (
                len(start) < size
                or len(holders) > 1
                or (size == 1 and (len(start[0]) < 5 or start[0] in parts))
            ):
                continue
            for _, at, _ in _places(said, [" ".join(start)]):
                if size > 1 or (at and said[at - 1] in _LED):
                    yield holders[0], at, size


def _stands_as_name(
    said: list[str], at: int, parts: set[str], names: Gazetteer, text: str, spoken: list[re.Match[str]]
) -> bool:
    """Tell whether a small word stands as a value's name does: "on business?", "annual team", "starter customers"."""
    before = said[at - 1] if at else ""
    after = said[at + 1] if at + 1 < len(said) else ""
    facets = {word for name in names.facets for word in words(name.replace("_", " "))}
    if after in facets and before not in _WHOSE:
        return True
    if (
        before in _OWNED | _WHOSE
        or after in _PARTS
        or after in UNITS
        or (not stems(said[at]) and after not in _PEOPLE)
    ):
        return False
    gap = text[spoken[at].end() : spoken[at + 1].start()] if after else ""
    ends = not after or bool(gap.strip())
    behind = ends or not stems(after) or after in _PEOPLE | parts | _VERSUS | _AUXILIARIES
    return behind or before in parts or before in _AUXILIARIES
