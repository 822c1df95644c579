"""The offline reader: intents from examples, names from the gazetteer, days from one module; the rest is not understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from bot.reading.aspects import expects, parts
from bot.reading.intents import CUSTOMER, TALK, TICKET, Intents, Talk
from bot.reading.names import named, people
from bot.reading.periods import spans
from bot.types import Aspect, Gazetteer, Intent, PastTurn, Question
from ingest.tickets import Mention
from ingest.words import fold, stems, words

_SHORT = 7
"""Content words up to which a question in a thread may leave out what it is about."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question means; built once."""

    text: str
    """The question as it can be understood alone."""
    aspects: tuple[Aspect, ...]
    tickets: tuple[str, ...] = ()
    """Numbers of the tickets that it is about, in order."""
    explicit: tuple[str, ...] = ()
    """Those that it names itself, marked as tickets."""
    customers: tuple[str, ...] = ()
    talk: Talk | None = None
    day: date | None = None
    """The past day whose texts count, None for today."""
    asked: str = ""
    """As typed."""

    @property
    def intents(self) -> frozenset[Intent]:
        return frozenset(aspect.intent for aspect in self.aspects)


def read(
    question: Question,
    names: Gazetteer,
    intents: Intents,
    mentioned: Callable[[str], Sequence[Mention]],
    label: str,
) -> Reading:
    """Read a question once."""
    text = question.text
    found = list(mentioned(text))
    numbers = tuple(dict.fromkeys(m.number for m in found))
    masked = _masked(text, found, names)
    customers = people(text, names.customers) if not numbers else ()
    meant = intents.of(masked)
    history = question.history
    bare = _bare(text, found, label)
    if history and _leans(bare, numbers):
        last = history[-1]
        before = _bare(last.standalone, mentioned(last.standalone), label)
        if numbers and len(stems(bare)) <= 3:
            text, bare = f"{before} {text}", f"{before} {bare}"
        elif not numbers:
            text, bare = f"{before} {text}", f"{before} {bare}"
            numbers = last.tickets[:1] if not customers else ()
        masked = _masked(text, mentioned(text), names)
        meant = intents.of(masked)
    talk = meant.best if meant.best in TALK and not numbers and meant.scores[meant.best] > 0.45 else None
    kinds = frozenset(kind for kind in meant.scores if kind not in TALK)
    whole: Intent = meant.among(kinds)  # type: ignore[assignment]
    split = parts(bare) if whole not in ("list", "count", "compare") else (bare,)
    aspects = []
    for part in split:
        intent: Intent = whole
        if len(split) > 1:
            intent = intents.of(part).among(kinds)  # type: ignore[assignment]
        aspects.append(
            Aspect(part, intent, frozenset(stems(part)), named(part, names).values, expects(part))
        )
    return Reading(
        text,
        tuple(aspects),
        numbers,
        tuple(m.number for m in found if m.explicit),
        customers,
        talk,  # type: ignore[arg-type]
        _day(text, question.now.date()),
        question.text,
    )


def _leans(text: str, numbers: Sequence[str]) -> bool:
    said = stems(text)
    return len(said) <= _SHORT


def _bare(text: str, found: Sequence[Mention], label: str) -> str:
    for mention in reversed(found):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    if stem := label.strip(" -#"):
        text = re.sub(rf"\b{re.escape(stem)}-?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _masked(text: str, found: Sequence[Mention], names: Gazetteer) -> str:
    for mention in reversed(found):
        text = f"{text[: mention.start]} {TICKET} {text[mention.end :]}"
    for name in names.customers:
        if len(name) > 3 and fold(name) in fold(text):
            text = re.sub(re.escape(name), CUSTOMER, text, flags=re.IGNORECASE)
    return re.sub(rf"\b[A-Z]+-\s*{TICKET}", TICKET, " ".join(text.split()))


def _day(text: str, today: date) -> date | None:
    past = [span for span in spans(text, today) if span.last and span.last < today]
    return past[0].first if past else None
