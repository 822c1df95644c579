"""Acts: the declared actions and events that a question says took place or did not, by any of their names and forms."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from bot.reading.lists.draft import Draft
from bot.reading.lists.sought import about_ends
from bot.reading.lists.vocabulary import data, family
from ingest.words import akin, fold, stems, words

_NEAR = 6
"""Words between the parts of an action's name, at most: "asked us last week for a refund"."""
_SURE = 5
"""Letters that a word shares with one that means the same as a part of a name; there are many of those."""


def actions(on: Draft) -> None:
    """Read declared actions and events, by all their words or by one that only one of them has."""
    heads: dict[str, list[str]] = {}
    for name in on.names.actions:
        for stem in stems(name):
            heads.setdefault(stem, []).append(name)
        for at in _spoken(name, on):
            _act(on, name, at, sure=len(at) > 1)
    for stem, owners in heads.items():
        for at in _part(stem, on) if len(owners) == 1 else ():
            light = stem in stems(" ".join(data()["light"]))
            done = on.word(at[0]).endswith(("ed", "ado", "ados", "ido", "idos")) or doing(on, at[0])
            if not light and (
                done or on.un(at[0]) or on.denied(at[0], awaiting=True)[0] or counted(on, at[0])
            ):
                _act(on, owners[0], at, sure=True)


def _act(on: Draft, name: str, at: Sequence[int], *, sure: bool) -> None:
    first = min(at)
    denied = on.denied(first, awaiting=True)[0]
    own = any(akin(on.stems[first], stem) for stem in stems(name))
    status = [
        value
        for place, own_ in on.places
        if place.field == "status" and first in own_
        for value in place.values
    ]
    so_called = any(called(on, first, value) for value in status)
    # "Resolved" is a state unless it is denied or dated, "to resolve" is not.
    state = bool(status) and len(at) == 1 and not on.dated(first) and not (own and (denied or not so_called))
    led = any(i + 1 == first or not on.stems[i + 1] for (i,) in about_ends(on) if 0 <= first - i <= 3)
    looked_for = len(at) == 1 and (led or (not sure and on.noun(first + 1)))
    if on.free(at) and not state and not looked_for:
        on.state("has", name, at, un=bool(on.un(first)))


def doing(on: Draft, i: int) -> bool:
    """Tell whether a verb is what somebody does, not how a ticket is: "which cases did Zoe open"."""
    for j in range(i - 1, max(-1, i - 7), -1):
        if on.any_of(j, "auxiliaries", "doing") or on.denies(j):
            return on.any_of(j, "doing") and not on.noun(i + 1)
    return False


def counted(on: Draft, i: int) -> bool:
    return any(at[-1] in (i - 1, i - 2) for at in on.phrases(data()["counting"]))


def _spoken(name: str, on: Draft) -> Iterator[list[int]]:
    """Yield the places of the words by which an action is named: by its name, its column's or another way of saying it."""
    synonyms = next((said for head, said in on.names.synonyms.items() if fold(head) == fold(name)), ())
    for way in (name, on.names.headers.get(name, ""), *synonyms):
        said = words(way.replace("_", " "))
        if any(word in data()[kind] for word in said for kind in ("negators", "awaiting")):
            continue  # "Owe a reply" asks for the reply and tells that there is none.
        content = " ".join(word for word in said if way == name or word not in data()["nouns"])
        yield from _near(on, [_part(one, on) for one in stems(content)], _NEAR)


def _part(stem: str, on: Draft) -> list[list[int]]:
    """Return where a part of a name stands: "sent … back" for `return`, as the settings' synonyms say."""
    ways = [way for head, ways in on.names.synonyms.items() if stems(head) == (stem,) for way in ways]
    split = (_near(on, [_alone(on, [one]) for one in stems(way)], _NEAR // 2) for way in ways)
    return [*(at for found in split for at in found), *_alone(on, [stem]), *_alone(on, family(stem), _SURE)]


def _near(on: Draft, options: Sequence[Sequence[list[int]]], most: int) -> Iterator[list[int]]:
    """Yield one place of each part where all stand close together."""
    for one in options[0] if options else ():
        found = list(one)
        for more in options[1:]:
            found += next((at for at in more if not set(at) & set(found) and abs(at[0] - one[0]) <= most), [])
        if len(found) >= len(options) and on.free(found):
            yield sorted(found)


def _alone(on: Draft, wanted: Collection[str], near: int = 0) -> list[list[int]]:
    """Return where one word of a family stands, also where it denies it: "unanswered"."""
    free = (i for i, stem in enumerate(on.stems) if stem and not on.used[i] and i not in on.called)
    return [
        [i]
        for i in free
        if any(_kin(said, one, near) for one in wanted for said in (on.stems[i], on.un(i)) if said)
    ]


def _kin(said: str, one: str, near: int) -> bool:
    return said == one or (akin(said, one) and said[:near] == one[:near])


def called(on: Draft, i: int, value: str) -> bool:
    """Tell whether a word is just what a value is called, in any language."""
    return any(on.same(i, form) for form in (fold(value), *data()["values"].get(fold(value), ())))
