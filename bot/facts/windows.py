"""Windows: what a period that stands in a unit means for a case, computed from the case's own dates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, get_args

from bot.facts.case import Case
from bot.facts.scope import Scope
from ingest.atoms import Atom, atoms
from ingest.dates import Calendar, Deadline, deadline
from ingest.types import Chunk
from ingest.types import Unit as TimeUnit
from ingest.units import Unit
from ingest.words import share_of, stems, words

Outcome = Literal["within", "past", "open"]
"""In time, too late, or nothing was done yet that could be either."""

_BEFORE = frozenset({"before", "prior", "ahead", "antes"})
_HOURS = ("hour", "business_hour")
_REACH = 4
"""Words behind a duration in which "before" turns it round: "10 days before", "15 working days prior to"."""
_START = 10
"""Words behind a duration in which it is said what it runs from."""


@dataclass(frozen=True, slots=True)
class Window:
    """One period applied to one case."""

    unit: Unit
    chunk: Chunk
    scope: Scope
    said: str
    """The period as the text writes it."""
    event: str
    """Declared name of what it runs from."""
    end: Deadline
    action: str = ""
    """Declared name of what had to be done by then; empty where the case has none."""
    moment: date | datetime | None = None
    """When that was done."""
    sure: bool = False
    """The unit, or what stands above it, names the action."""

    @property
    def outcome(self) -> Outcome:
        if self.moment is None:
            return "open"
        return "within" if self.end.met_by(self.moment) else "past"

    @property
    def is_target(self) -> bool:
        """It is a time in which somebody has to act on the ticket, not one that a customer has."""
        return self.event == "opening"


def windows(
    unit: Unit,
    chunk: Chunk,
    scope: Scope,
    case: Case,
    asked: Collection[str],
    aliases: Mapping[str, Sequence[str]],
    calendar: Calendar,
) -> Iterator[Window]:
    """Yield the windows of a unit: one for each duration whose start is an event that the case has a date of.

    `asked` are the stems of the question, `aliases` other words of a declared name. A start is the event whose name, in
    any form of its words, stands in the unit, else above it; a time in hours without one runs from the opening where an
    action is named. Nothing is guessed from similarity.
    """
    # What a ticket was opened with is no start of its own beside the opening.
    done = {name: when for name, when in case.actions.items() if when != case.events.get("opening")}
    dated = {**case.events, **done}
    durations = [
        found for atom in atoms(unit.text) if (found := _duration(atom)) and not _aside(unit.text, atom)
    ]
    if not durations or not dated:
        return
    own = stems(unit.text)
    above = stems(" ".join([unit.lead, unit.before, *chunk.headings[-1:], chunk.title]))
    action, sure = _action(case, own, above, asked, aliases)
    for atom, amount, kind in durations:
        following = words(_behind(unit.text, atom))
        # What has to be done is not what its time runs from.
        options = [name for name in dated if not (sure and name == action)]
        start = _start(options, case.events, following, unit, atom, above, aliases)
        if not start and sure and kind in _HOURS and "opening" in dated:
            start = "opening"
        if not start or start == "update":
            continue
        act = action if action != start else ""
        moment = case.actions.get(act) if act else None
        # What is on record as the start is not what was done in time.
        if start == "opening" and (not (sure and act) or moment == dated[start]):
            continue
        before = bool(_BEFORE & set(following[:_REACH]))
        try:
            end = deadline(dated[start], amount, kind, calendar, before=before)
        except OverflowError:
            continue
        yield Window(unit, chunk, scope, atom.text, start, end, act, moment, sure and bool(act))


def _behind(text: str, atom: Atom) -> str:
    """Return what stands behind a duration in its clause."""
    rest = text[atom.end :]
    return rest[: next((at for at, char in enumerate(rest) if char in "(;:"), len(rest))]


def _aside(text: str, atom: Atom) -> bool:
    """Tell whether a duration stands in brackets: what holds in another case, not here."""
    return text.count("(", 0, atom.start) > text.count(")", 0, atom.start)


def _duration(atom: Atom) -> tuple[Atom, int, TimeUnit] | None:
    if atom.kind != "duration":
        return None
    amount, _, kind = atom.value.partition(" ")
    for unit in get_args(TimeUnit):
        if unit == kind and amount.isdigit() and int(amount):
            return atom, int(amount), unit
    return None


def _start(
    dated: Collection[str],
    events: Collection[str],
    following: Sequence[str],
    unit: Unit,
    atom: Atom,
    above: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
) -> str:
    """Return the declared name that a duration runs from, nearest first.

    It is named in part right behind the duration, or wholly in its sentence; of a row in the header of its own cell; or
    wholly in what stands above.
    """
    behind = stems(" ".join(following[:_START]))
    happened = [name for name in dated if name in events]
    if unit.cells:
        header = next((name for name, cell in unit.cells if atom.text in cell), "")
        places = [
            (behind, 1.0, dated),
            (behind, 0.5, happened),
            (stems(header), 1.0, dated),
            (above, 1.0, happened),
        ]
    else:
        own = stems(unit.text)
        places = [
            (behind, 1.0, dated),
            (behind, 0.5, happened),
            (own, 1.0, happened),
            ((*own, *above), 1.0, happened),
        ]
    for said, least, options in places:
        found = {name: _named(name, said, aliases) for name in options}
        if found and max(found.values()) >= least:
            return max(found, key=lambda name: found[name])
    return ""


def _action(
    case: Case,
    own: Sequence[str],
    above: Sequence[str],
    asked: Collection[str],
    aliases: Mapping[str, Sequence[str]],
) -> tuple[str, bool]:
    """Return the action that a unit is about, and whether the unit says so."""
    for said, least, sure in (
        (own, 1.0, True),
        ((*own, *above), 1.0, True),
        (tuple(asked), 1.0, False),
        ((*own, *above, *asked), 0.5, False),
        (stems(case.text), 0.5, False),
    ):
        found = {name: _named(name, said, aliases) for name in case.actions}
        if found and max(found.values()) >= least:
            return max(found, key=lambda name: found[name]), sure
    return "", False


def _named(name: str, said: Sequence[str], aliases: Mapping[str, Sequence[str]]) -> float:
    return max(share_of(form, said) for form in (name, *aliases.get(name, ())))
