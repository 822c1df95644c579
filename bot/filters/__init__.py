"""Which tickets a question means: the filters that its words state, and the words that no filter uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from bot.filters.described import described
from bot.filters.reader import KINDS, Reader, whole_codes
from bot.gate import asks
from bot.types import Gazetteer
from ingest.words import stems

__all__ = ["Reading", "described", "only_counts", "read", "readings", "whole_codes"]

_ANOTHER = re.compile(
    r"(?<=[?!;])\s+|(?<=[a-z]\.)\s+|,?\s+(?:and|but)\s+(?=(?:what|how|which|who|when|where|is|are|does|do|can|may|compare)\b)",
    re.IGNORECASE,
)
_AMONG = re.compile(
    r"(?:which|how many|what|who)(?: ones?| of (?:them|these|those))? (?:are|is|were|was|have|has|had)\b(?! (?:the|a|an|our|your)\b)",
    re.IGNORECASE,
)
"""What asks for some of the tickets that the sentence before it asks for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question says about the tickets that it means."""

    filters: Mapping[str, Any]
    """Arguments of find_tickets."""
    left: tuple[str, ...] = ()
    """Words that restrict the question and that no filter can express."""
    made: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind of filter to the words that state it: `days`, `status`, `has`, …"""

    def unused(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the question's restricting words that a call with these arguments does not use."""
        kinds = {KINDS.get(name, name) for name in arguments}
        spoken = set(stems(" ".join(_texts(arguments))))
        lost = [said for kind, said_by in self.made.items() if kind not in kinds for said in said_by]
        return tuple(dict.fromkeys(said for said in (*lost, *self.left) if not _within(said, spoken)))


def only_counts(text: str) -> bool:
    """Tell whether a question asks for tickets, their number or a list, and for nothing else."""
    whole, _ = _among(text)
    asked = [wanted for part in _ANOTHER.split(whole) if (wanted := asks(part))]
    return bool(asked) and all("aggregate" in wanted for wanted in asked)


def readings(text: str, names: Gazetteer, today: date) -> tuple[Reading, ...]:
    """Read each list that a question asks for: "how many urgent ones, and which are still open?" are two."""
    whole, some = _among(text)
    return tuple(read(asked, names, today) for asked in (whole, some) if asked)


def _among(text: str) -> tuple[str, str]:
    """Split a question into what it asks for, and some of that if it asks for them, too; the latter may be empty."""
    first, *others = _ANOTHER.split(text.strip())
    if len(others) != 1 or "aggregate" not in asks(first) or not _AMONG.match(others[0]):
        return text, ""
    bare = first.rstrip(" ?!.;,")
    return first, f"{bare} {others[0]}"


def read(text: str, names: Gazetteer, today: date) -> Reading:
    """Read the filters of a ticket list off a question: names the tickets know, actions, days, words, counts.

    A question that also asks something else is read only where it asks for tickets.
    """
    parts = [part for part in _ANOTHER.split(text) if part.strip()]
    counting = [part for part in parts if "aggregate" in asks(part)]
    if not counting:
        reader = Reader(text, names, today)
        return Reading(reader.filters, reader.left if "aggregate" in asks(text) else (), reader.made)
    # A sentence that asks nothing may name whom the next one is about.
    told = [part for part in parts if part in counting or not asks(part)]
    reader = Reader(" ".join(told), names, today)
    own = Reader(" ".join(counting), names, today) if len(told) > len(counting) else reader
    return Reading(reader.filters, own.left, own.made)


def _within(said: str, spoken: Collection[str]) -> bool:
    wanted = stems(said)
    return bool(wanted) and all(stem in spoken for stem in wanted)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)
