"""Applied: which of the windows over a case's dates answers, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time

from bot.facts.case import Case
from bot.facts.scorer import Scored
from bot.facts.windows import Window
from bot.types import Aspect, Decision
from ingest.dates import format_date
from ingest.types import AUTHORITY, Chunk

_WITHIN = 2.5
"""How far, in the scorer's units, a window's unit may stand behind the best one and still be about what is asked."""
_TIE = 1.0
"""Distance within which two windows are shown side by side and neither decides."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something computed, in words, with what it rests on."""

    text: str
    used: tuple[str, ...]
    """Ids of the evidence items."""
    decision: Decision = "rule"


@dataclass(frozen=True, slots=True)
class Facts:
    """What code can say to one aspect."""

    facts: tuple[Fact, ...] = ()
    gaps: tuple[str, ...] = ()
    """What is missing, in words for the asker."""
    decision: Decision | None = None
    chunks: tuple[Chunk, ...] = ()
    """Chunks that the facts rest on."""
    overruled: tuple[str, ...] = ()
    """Ids of chunks whose rule lost."""


def facts(aspect: Aspect, units: Sequence[Scored], case: Case, now: datetime) -> Facts:
    """Return the windows over the case's dates of what the best units say, and which of them applies.

    Windows over the same event for the same act are rivals: the more specific wins, then terms over policy over help
    over FAQ, then the newer; equals are left open. A matter whose unit stands close behind the first is shown beside it.
    """
    if not units:
        return Facts()
    timed = bool(aspect.expects & {"duration", "date", "time"}) or aspect.intent == "rule"
    least = units[0].score - (_WITHIN if timed else 0.0)
    held = [
        (one.score, window)
        for one in units
        if one.score >= least and one.scope.holds and one.in_force and one.chunk.authority != "chat"
        for window in one.windows
    ]
    matters: dict[object, list[tuple[float, Window]]] = {}
    for score, window in held:
        matters.setdefault(_matter(window), []).append((score, window))
    found = [_applied(rivals, case, now) for rivals in matters.values()]
    if not found:
        return Facts()
    first, *others = list(matters.values())
    if others and others[0][0][0] >= first[0][0] - _TIE:
        found = [replace(one, decision=None) for one in found[:2]]
        return Facts(
            tuple(fact for one in found for fact in one.facts),
            (),
            None,
            tuple(chunk for one in found for chunk in one.chunks),
        )
    return found[0]


def _matter(window: Window) -> tuple[object, ...]:
    return window.event, window.end.before, isinstance(window.end.at, datetime), window.action


def _applied(rivals: Sequence[tuple[float, Window]], case: Case, now: datetime) -> Facts:
    near = [window for score, window in rivals if score >= rivals[0][0] - _WITHIN]
    best = max(near, key=_precedence)
    others = {window.end.at: window for window in near if window.end.at != best.end.at}
    equal = [window for window in others.values() if _precedence(window)[:2] == _precedence(best)[:2]]
    if equal:
        return _open([best, *equal], case)
    return _decided(best, list(others.values()), case, now)


def _precedence(window: Window) -> tuple[int, int, int, int]:
    effective = window.chunk.effective_from
    return (
        window.scope.keys + window.scope.near,
        AUTHORITY[window.chunk.authority],
        int(window.sure),
        effective.toordinal() if effective else 0,
    )


def _runs(window: Window) -> str:
    way = "before" if window.end.before else "from"
    return f"{window.said} {way} the {window.event} ({format_date(window.end.start)})"


def _decided(window: Window, lost: Sequence[Window], case: Case, now: datetime) -> Facts:
    end = window.end
    until = f"{_runs(window)}, that is until {format_date(end.at)}"
    decision: Decision = "due"
    if window.moment is not None:
        met = end.met_by(window.moment)
        lead = _outcome(window, met)
        text = f"{lead}: {until}; the {window.action} came on {format_date(window.moment)}, {end.margin(window.moment).text}."
        decision = ("yes" if met else "no") if window.sure else "rule"
    else:
        last = end.at if isinstance(end.at, datetime) else datetime.combine(end.at, time.max, now.tzinfo)
        lead = "Still open" if now <= last else f"Over since {format_date(end.at)}"
        text = f"{lead}: {until}."
    notes = []
    for other in lost[:1] if decision in ("yes", "no") else []:
        notes.append(f"{other.chunk.title} says {other.said}; {_because(window, other)}.")
    return Facts(
        (Fact(" ".join([text, *notes]), (case.evidence, window.chunk.id), decision),),
        (),
        decision,
        (window.chunk, *(other.chunk for other in lost[:2])),
        tuple(other.chunk.id for other in lost[:2]),
    )


def _outcome(window: Window, met: bool) -> str:
    if window.is_target:
        return f"{window.action[0].upper()}{window.action[1:]} target {'met' if met else 'missed'}"
    if met:
        return f"Within the time for the {window.action}"
    return f"Past the time for the {window.action} since {format_date(window.end.at)}"


def _because(best: Window, other: Window) -> str:
    if best.scope.keys + best.scope.near > other.scope.keys + other.scope.near:
        return "that is the general rule, and the one for this case goes before it"
    if AUTHORITY[best.chunk.authority] > AUTHORITY[other.chunk.authority]:
        return f"{best.chunk.authority} text goes before {other.chunk.authority} text"
    return "the other one is nearer to what was asked"


def _open(equal: Sequence[Window], case: Case) -> Facts:
    lines = []
    for window in equal[:3]:
        came = ""
        if window.moment is not None:
            came = f" (the {window.action} came on {format_date(window.moment)}, {window.end.margin(window.moment).text})"
        lines.append(f"{_runs(window)} ends on {format_date(window.end.at)}{came}")
    text = f"For {case.label}, which of these applies a person must see: {'; '.join(lines)}."
    return Facts(
        (Fact(text, (case.evidence, *(w.chunk.id for w in equal)), "undecided"),),
        (),
        "undecided",
        tuple(w.chunk for w in equal[:3]),
    )
