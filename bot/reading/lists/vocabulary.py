"""The words by which a question says which tickets it lists: data, and what the examples of lists and counts share."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ingest.atoms import MONTHS, UNITS
from ingest.words import stems

_TAUGHT = 3
"""Examples of lists and counts that must hold a word before it is one of asking."""
_RATHER = 1.5
"""How much oftener than in other examples."""


@cache
def data() -> Mapping[str, Any]:
    """Return `data/lists.toml`, its lines of words split."""

    def split(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: split(inner) for key, inner in value.items()}
        return tuple(value.split()) if isinstance(value, str) else tuple(value)

    text = (resources.files("bot") / "data" / "lists.toml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = split(tomllib.loads(text))
    return found


@cache
def frame() -> frozenset[str]:
    """Return the stems of asking for tickets: those that examples of lists and counts share more than other examples."""
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    many = {True: 0, False: 0}
    for line in (resources.files("bot") / "data" / "examples.tsv").read_text(encoding="utf-8").splitlines():
        intent, _, said = line.partition("\t")
        listed = intent in ("list", "count")
        many[listed] += 1
        (own if listed else others).update(set(stems(said.replace("TICKET", "").replace("CUSTOMER", ""))))
    asking = ("frame", "nouns", "counting", "carriers", "auxiliaries", "who", "most", "by", "opened")
    restricting = [*_all("restricts", "finished", "awaiting", "values", "acts"), *UNITS, *MONTHS]
    taught = {
        s for s, n in own.items() if n >= _TAUGHT and n * many[False] > _RATHER * (others[s] + 1) * many[True]
    }
    return frozenset(taught - set(stems(" ".join(restricting))) | set(stems(" ".join(_all(*asking)))))


def _all(*kinds: str) -> Iterator[str]:
    for kind in kinds:
        yield from data()[kind]
        if isinstance(data()[kind], Mapping):
            yield from (word for others in data()[kind].values() for word in others)


@cache
def family(stem: str) -> frozenset[str]:
    """Return the stems of the words by which a part of an action's name is said, itself among them."""
    known = (others for head, others in data()["acts"].items() if stems(head) == (stem,))
    return frozenset({stem, *(s for others in known for s in stems(" ".join(others)))})
