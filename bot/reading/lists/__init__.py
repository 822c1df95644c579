"""Ticket lists: which tickets a question lists or counts, read by names, days and a few words that are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from bot.reading.aspects import parts
from bot.reading.lists.acts import actions
from bot.reading.lists.counted import amounts, counts, orders
from bot.reading.lists.draft import Draft, each
from bot.reading.lists.sought import about, coded, quoted
from bot.reading.lists.stated import days, loosely, openings, valued
from bot.reading.lists.vocabulary import data, frame
from bot.reading.names import places
from bot.types import Gazetteer
from ingest.blocks import sentences
from ingest.words import words


@dataclass(frozen=True, slots=True)
class TicketList:
    """Which tickets one list or count means."""

    filters: Mapping[str, Any]
    """Arguments of find_tickets."""
    not_understood: tuple[str, ...] = ()
    """Words that restrict and that nothing used; said beside the list."""
    assumed: tuple[str, ...] = ()
    """What was read loosely: "open" means New or In progress."""


def ticket_lists(
    text: str, names: Gazetteer, today: date, holds: Callable[[str], bool]
) -> tuple[TicketList, ...]:
    """Read each list that a question asks for; "how many urgent ones, and which are still open?" are two.

    `holds` tells whether any ticket's text holds a word. A list that names no tickets is one of those before it.
    """
    found: list[TicketList] = []
    told = TicketList({})
    pieces: list[str] = []
    for piece in (piece for line in sentences(text) or [text] for piece in parts(line)):
        # "… but are not Gold" goes on with what stands before it.
        goes_on = (
            pieces
            and not pieces[-1].endswith(("?", "!", "."))
            and words(piece)[:1]
            and words(piece)[0] in data()["auxiliaries"]
        )
        pieces = [*pieces[:-1], f"{pieces[-1]}, {piece}"] if goes_on else [*pieces, piece]
    for piece in pieces:
        draft = Draft(piece, names, today, holds)
        now = _read(draft)
        asked = _asks(draft)
        if not (
            draft.nouns or len(pieces) == 1 or (now.filters and not now.not_understood and (found or asked))
        ):
            # What asks nothing may name whom the next one is about.
            kept = {
                k: v for k, v in now.filters.items() if k in ("customer", "facets") or not now.not_understood
            }
            told = told if found else TicketList(kept)
        else:
            narrows = bool(found) and not draft.nouns
            listed = merged(found[-1] if narrows else told, now)
            # "… I mean not closed yet" asks no more, it says better what is asked.
            found = [*(found[:-1] if narrows and not asked else found), listed]
    return tuple(found) or (_read(Draft(text, names, today, holds)),)


def merged(before: TicketList, now: TicketList) -> TicketList:
    """Fill what a follow-up leaves open from the list before it: "only the urgent ones" keeps its customer and days."""
    kept = dict(before.filters)
    for name in now.filters:
        plain = name.removeprefix("not_")
        if plain == "facets":
            said = now.filters[name]
            for both in ("facets", "not_facets"):
                kept[both] = {facet: v for facet, v in kept.get(both, {}).items() if facet not in said}
        elif name in ("has", "lacks"):
            for both in ("has", "lacks"):
                kept[both] = [one for one in each(kept.get(both)) if one not in each(now.filters[name])]
        stem, _, end = name.rpartition("_")
        gone = (f"{stem}_from", f"{stem}_to") if end in ("from", "to") else (plain, f"not_{plain}")
        if plain not in ("facets", "has", "lacks"):
            kept = {key: value for key, value in kept.items() if key not in gone}
    if not kept.get("has"):
        kept = {key: value for key, value in kept.items() if key not in ("has_from", "has_to")}
    for name, value in now.filters.items():
        if name in ("has", "lacks"):
            value = [*each(kept.get(name)), *each(value)]
        kept[name] = {**kept[name], **value} if isinstance(value, Mapping) and name in kept else value
    filters = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in kept.items() if v}
    return TicketList(filters, now.not_understood, now.assumed or before.assumed)


def _asks(on: Draft) -> bool:
    """Tell whether it begins as a question does."""
    return on.any_of(0, "who", "by") or any(at[0] == 0 for at in on.phrases(data()["counting"]))


def _read(on: Draft) -> TicketList:
    """Take the words in the order of how sure their meaning is."""
    for span in on.spans:
        on.take(on.inside(span.start, span.end), "days")
    quoted(on)
    orders(on)
    openings(on)
    masked = "".join(" " if on.used_at(i) else c for i, c in enumerate(on.text))
    found = places(masked, on.names, data()["values"])
    on.places = [(place, on.inside(place.start, place.end)) for place in found]
    coded(on)
    actions(on)
    valued(on)
    loosely(on)
    counts(on)
    amounts(on)
    about(on)
    days(on)
    return TicketList(on.filters, tuple(_left(on)), tuple(on.assumed))


def _left(on: Draft) -> Iterator[str]:
    """Yield the words that restrict and that nothing uses, those side by side together."""
    run: list[int] = []
    for i in range(len(on.said) + 1):
        if i < len(on.said) and _restricts(on, i):
            run.append(i)
        elif run and (
            i == len(on.said) or on.used[i] not in ("", "?") or on.stems[i] or on.any_of(i, "clauses")
        ):
            yield on.text[on.said[run[0]][1] : on.said[run[-1]][2]]
            run = []


def _restricts(on: Draft, i: int) -> bool:
    plain = on.stems[i] in frame() or i in on.called or on.number(i)
    return on.used[i] == "?" or (not on.used[i] and (on.any_of(i, "own") or bool(on.stems[i] and not plain)))
