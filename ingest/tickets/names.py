"""Names in a question: which of the known values, customers or assignees is meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ingest.errors import TwohopError
from ingest.words import fold, words


class AmbiguousName(TwohopError):
    """A name fits several customers or assignees; the text names them."""


@dataclass(frozen=True, slots=True)
class Known:
    """The names that the tickets know, and how old what they say is."""

    version: str
    """Of the table that was read."""
    until: float
    """Monotonic seconds until which they are taken for what the table holds."""
    values: Mapping[str, tuple[str, ...]]
    customers: tuple[str, ...]
    assignees: tuple[str, ...]
    as_of: datetime | None
    """Aware; None where nobody can tell."""


def ordered(found: Sequence[str]) -> tuple[str, ...]:
    """Sort names as people do."""
    return tuple(sorted(found, key=lambda value: (fold(value), value)))


def valued(name: str, said: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the spellings of the one value that is meant; raises TwohopError with the known ones."""
    found = tuple(value for value in known if fold(value) == fold(" ".join(said.split())))
    if not found:
        raise TwohopError(f"no ticket has {name} {said!r}; known are {', '.join(known) or 'none'}")
    return found


def named(kind: str, said: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the spellings of the one name that is meant: the same words, words in it, or a part of it.

    Raises:
        AmbiguousName: it could be several.
        TwohopError: it is none; the text names close ones.
    """
    wanted = words(said)
    plain = f" {' '.join(wanted)} "
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: fold(name) == fold(said.strip()),
        lambda name: words(name) == wanted,
        lambda name: plain in f" {' '.join(words(name))} ",
        lambda name: set(wanted) <= set(words(name)),
        lambda name: fold(said.strip()) in fold(name),
        lambda name: f" {' '.join(words(name))} " in plain,
    )
    for fits in tests if wanted else tests[:1]:
        found = tuple(name for name in known if fits(name))
        if len({words(name) for name in found}) > 1:
            listed = ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
            raise AmbiguousName(f"{kind} {said!r} could be {listed}; give the full name")
        if found:
            return found
    close = difflib.get_close_matches(fold(said), [fold(name) for name in known], n=3)
    hint = ", ".join(name for name in known if fold(name) in close)
    raise TwohopError(f"no ticket has the {kind} {said!r}" + (f"; close names are {hint}" if hint else ""))
