"""Ticket lists: which tickets a question lists or counts, read by names, days and a few words that are data."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

from bot.reading.aspects import parts
from bot.reading.names import Place, places
from bot.reading.periods import Span, spans
from bot.types import Gazetteer
from ingest.atoms import MONTHS, NUMBERS, UNITS, codes
from ingest.blocks import sentences
from ingest.words import akin, fold, forms, placed, stems, words

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{3,60})[\"”»]|(?<!\w)['‘]([^'‘’]{3,60})['’](?!\w)")
_NEAR = 6
"""Words between the parts of an action's name, at most: "asked us last week for a refund"."""
_TAUGHT = 3
"""Examples of lists and counts that must hold a word before it is one of asking."""
_FIELDS = ("customer", "status", "priority", "assignee")
_DAYS = ("opened", "updated", "has")


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
    text: str, names: Gazetteer, today: date, holds: Callable[[str], bool] = lambda word: True
) -> tuple[TicketList, ...]:
    """Read each list that a question asks for; "how many urgent ones, and which are still open?" are two.

    `holds` tells whether any ticket's text holds a word. A list that names no tickets is one of those before it.
    """
    found: list[TicketList] = []
    told = TicketList({})
    pieces: list[str] = []
    for part in (part for line in sentences(text) or [text] for part in parts(line)):
        # "… but are not Gold" goes on with what stands before it.
        goes_on = pieces and not pieces[-1].endswith(("?", "!", ".")) and words(part)[:1] and words(part)[0] in _data()["auxiliaries"]
        pieces = [*pieces[:-1], f"{pieces[-1]}, {part}"] if goes_on else [*pieces, part]
    for piece in pieces:
        reader = _Reader(piece, names, today, holds)
        now = reader.read()
        if not (reader.nouns or len(pieces) == 1 or (now.filters and not now.not_understood)):
            told = told if found else TicketList({k: v for k, v in now.filters.items() if k in ("customer", "facets")})
        else:
            found.append(merged(told if reader.nouns or not found else found[-1], now))
    return tuple(found) or (_Reader(text, names, today, holds).read(),)


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
                kept[both] = [one for one in _each(kept.get(both)) if one not in _each(now.filters[name])]
        stem, _, end = name.rpartition("_")
        gone = (f"{stem}_from", f"{stem}_to") if end in ("from", "to") else (plain, f"not_{plain}")
        if plain not in ("facets", "has", "lacks"):
            kept = {key: value for key, value in kept.items() if key not in gone}
    if not kept.get("has"):
        kept = {key: value for key, value in kept.items() if key not in ("has_from", "has_to")}
    for name, value in now.filters.items():
        if name in ("has", "lacks"):
            value = [*_each(kept.get(name)), *_each(value)]
        kept[name] = {**kept[name], **value} if isinstance(value, Mapping) and name in kept else value
    filters = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in kept.items() if v}
    return TicketList(filters, now.not_understood, now.assumed or before.assumed)


def _each(values: str | Sequence[str] | None) -> list[str]:
    return [values] if isinstance(values, str) else list(values or ())


@cache
def _data() -> Mapping[str, Any]:
    def split(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: split(inner) for key, inner in value.items()}
        return tuple(value.split()) if isinstance(value, str) else tuple(value)

    text = (resources.files("bot") / "data" / "lists.toml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = split(tomllib.loads(text))
    return found


@cache
def _frame() -> frozenset[str]:
    """Return the stems of asking for tickets: those that examples of lists and counts share more than other examples."""
    own: Counter[str] = Counter()
    others: Counter[str] = Counter()
    many = {True: 0, False: 0}
    for line in (resources.files("bot") / "data" / "examples.tsv").read_text(encoding="utf-8").splitlines():
        intent, _, said = line.partition("\t")
        listed = intent in ("list", "count")
        many[listed] += 1
        (own if listed else others).update(set(stems(said.replace("TICKET", "").replace("CUSTOMER", ""))))
    data = _data()
    restricting = " ".join(
        (*data["restricts"], *data["finished"], *data["awaiting"], *UNITS, *MONTHS, *_flat(data["values"]), *_flat(data["acts"]))
    )
    taught = {s for s, n in own.items() if n >= _TAUGHT and n * many[False] > 1.5 * (others[s] + 1) * many[True]}
    taught -= set(stems(restricting))
    names = " ".join((*data["frame"], *data["nouns"], *data["counting"], *data["carriers"], *data["auxiliaries"]))
    return frozenset(taught | set(stems(f"{names} {' '.join((*data['who'], *data['most'], *data['by'], *data['opened']))}")))


def _flat(table: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for head, others in table.items():
        yield from (head, *others)


@cache
def _family(stem: str) -> frozenset[str]:
    """Return the stems of the words by which a part of an action's name is said, itself among them."""
    known = (others for head, others in _data()["acts"].items() if stems(head) == (stem,))
    return frozenset({stem, *(s for others in known for s in stems(" ".join(others)))})


class _Reader:
    """One part of a question on its way to filters; each step takes the words that it understands."""

    def __init__(self, text: str, names: Gazetteer, today: date, holds: Callable[[str], bool]) -> None:
        self._text = unicodedata.normalize("NFC", text)
        self._today = today
        self._holds = holds
        self._said = placed(self._text)
        self._stems = ["".join(stems(word)[:1]) for word, *_ in self._said]
        self._used = [""] * len(self._said)
        """What uses each word: a filter, `?` where it is not understood, `-` where it restricts nothing."""
        self._words = _data()
        self._flags = {facet: values for facet, values in names.facets.items() if self._flag(values)}
        self._names = replace(names, facets={f: v for f, v in names.facets.items() if f not in self._flags})
        self._places: list[tuple[Place, list[int]]] = []
        self._spans = [span for span in spans(self._text, today) if self._inside(span.start, span.end)]
        self._filters: dict[str, Any] = {}
        self._assumed: list[str] = []
        self.nouns = [i for i in range(len(self._said)) if self._noun(i)]

    def read(self) -> TicketList:
        """Take the words in the order of how sure their meaning is."""
        for span in self._spans:
            self._take(self._inside(span.start, span.end), "days")
        self._quotes()
        self._orders()
        self._openings()
        masked = "".join(" " if self._at(i) else c for i, c in enumerate(self._text))
        found = places(masked, self._names, self._words["values"])
        self._places = [(place, self._inside(place.start, place.end)) for place in found]
        self._codes()
        self._actions()
        self._values()
        self._loosely()
        self._counts()
        self._amounts()
        self._about()
        self._dates()
        return TicketList(self._filters, tuple(self._left()), tuple(self._assumed))

    # --- words and their places ---------------------------------------------------------------------------------------

    def _inside(self, start: int, end: int) -> list[int]:
        return [i for i, (_, begin, until) in enumerate(self._said) if begin < end and start < until]

    def _at(self, place: int) -> bool:
        """Tell whether a character is of a word that something uses."""
        return any(self._used[i] for i in self._inside(place, place + 1))

    def _word(self, i: int) -> str:
        return self._said[i][0] if 0 <= i < len(self._said) else ""

    def _is(self, i: int, *kinds: str) -> bool:
        return any(self._word(i) in self._words[kind] for kind in kinds)

    def _noun(self, i: int) -> bool:
        return any(self._word(i) == noun or self._word(i) in forms(noun) for noun in self._words["nouns"])

    def _free(self, at: Collection[int]) -> bool:
        return all(not self._used[i] for i in at)

    def _take(self, at: Collection[int], use: str) -> None:
        for i in at:
            self._used[i] = use

    def _phrases(self, spoken: Collection[str]) -> Iterator[list[int]]:
        """Yield where one of some phrases stands that nothing uses, the last word's plural too; longer ones first."""
        for phrase in sorted(map(words, spoken), key=len, reverse=True):
            for i in range(len(self._said) - len(phrase) + 1 if phrase else 0):
                at = list(range(i, i + len(phrase)))
                *before, last = (self._word(j) for j in at)
                if before == list(phrase[:-1]) and (last == phrase[-1] or last in forms(phrase[-1])) and self._free(at):
                    yield at

    def _broken(self, i: int) -> bool:
        """Tell whether a clause ends behind a word."""
        end = self._said[i + 1][1] if i + 1 < len(self._said) else len(self._text)
        return any(mark in self._text[self._said[i][2] : end] for mark in ",;:.!?()")

    def _named(self, i: int) -> bool:
        return any(i in at for _, at in self._places)

    def _dated(self, i: int) -> Span | None:
        """Return the days that stand closely behind a word: "resolved in August"."""
        close = (span for span in self._spans if 0 <= self._inside(span.start, span.end)[0] - i <= 3)
        return next(close, None)

    def _put(self, name: str, value: str, facet: str = "") -> None:
        into = self._filters.setdefault(name, {}) if facet else self._filters
        values = _each(into.get(facet or name))
        if value not in values:
            into[facet or name] = [*values, value] if values else value

    # --- denials ------------------------------------------------------------------------------------------------------

    def _denies(self, i: int) -> bool:
        word, start, end = self._said[i]
        short = self._text[start:end].casefold().endswith(("n't", "n’t"))
        paired = f"{word} {self._word(i + 1)}" in self._words["denying"]
        return short or paired or self._is(i, "negators", "doubtful") or (word.endswith("nt") and word[:-2] in self._words["auxiliaries"])

    def _denied(self, at: int, *, awaiting: bool = False) -> tuple[list[int], bool]:
        """Return the words that deny what stands at a place, and whether that is in doubt: "not really closed"."""
        stranger = passed = False
        for i in range(at - 1, max(-1, at - 9), -1):
            waits = awaiting and (self._is(i, "awaiting") or (self._is(i, "awaiting_to") and self._word(i + 1) == "to"))
            if self._broken(i) or self._used[i] not in ("", "-"):
                break
            if self._denies(i) or (waits and not stranger):
                return list(range(i, at)), stranger or self._is(i, "doubtful")
            those = i > 1 and self._word(i - 1) in self._words["those"] and self._denies(i - 2)
            if self._is(i, "clauses") and those:
                return list(range(i - 2, at)), stranger
            if self._is(i, "clauses") or self._noun(i) or self._named(i):
                break
            helps = self._is(i, "auxiliaries")
            strange = bool(self._stems[i]) and not helps and not self._is(i, "carriers")
            if (helps and stranger) or (strange and passed):
                break  # "Tickets not about invoices are open" denies no state.
            stranger, passed = stranger or strange, passed or helps
        return [], False

    def _behind(self, at: int) -> tuple[list[int], bool]:
        """The same of what follows: "a first reply was never sent"."""
        for i in range(at + 1, min(at + 5, len(self._said))):
            if self._broken(i - 1) or self._used[i] or self._is(i, "clauses") or self._noun(i) or self._named(i):
                break
            if self._denies(i):
                j = i
                while j + 1 < len(self._said) and not self._broken(j) and self._is(j + 1, "carriers", "auxiliaries"):
                    j += 1
                ends = j + 1 == len(self._said) or self._broken(j)
                aside = not ends and (self._named(j + 1) or bool(self._used[j + 1]))
                return ([], False) if aside else (list(range(at + 1, j + 1 + (not ends))), not ends)
            if self._stems[i] and not self._is(i, "carriers", "auxiliaries"):
                break
        return [], False

    def _state(self, name: str, value: str, at: Sequence[int], facet: str = "", *, un: bool = False) -> None:
        """Take a value or action, as left out where it is denied; in doubt it is not understood."""
        action = name == "has"
        other = "lacks" if action else f"not_{name}"
        words_, doubt = self._denied(min(at), awaiting=action)
        after: list[int] = []
        if action and not words_ and not un:
            after, doubt = self._behind(max(at))
        chained = min(at) - 2 if self._is(min(at) - 1, "either") else -1
        if not words_ and chained >= 0 and self._used[chained] == other:
            words_ = [chained + 1]
        denied = bool(words_ or after) != un if name != "has" else bool(words_ or after or un)
        self._take([*words_, *at, *after], "?" if doubt else other if denied else name)
        if not doubt:
            self._put(other if denied else name, value, facet)

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _quotes(self) -> None:
        for match in _QUOTED.finditer(self._text):
            if at := self._inside(*match.span()):
                self._search([at], self._denied_about(at[0]), (match[1] or match[2]).strip())

    def _orders(self) -> None:
        for order, spoken in self._words["order"].items():
            for at in self._phrases(spoken):
                self._order(order, at, alone=True)
        for order, spoken in self._words["numbered"].items():
            for at in self._phrases(spoken):
                self._order(order, at, alone=self._word(at[-1]) == "last")

    def _order(self, order: str, at: list[int], *, alone: bool) -> None:
        limit = 0
        for i in (at[-1] + 1, at[0] - 1):
            number = self._number(i)
            if number and 1 <= number <= 50 and self._free([i]) and self._word(i + 1) not in UNITS:
                limit, at = number, [*at, i]
        near = range(at[0] - 3, max(at) + 4)
        one = any(self._word(i) in (*self._words["nouns"], "one") for i in near) and not limit
        if limit or one or (alone and self._word(at[0]) != "last"):
            self._take(at, "order")
            if order != "newest":
                self._filters["order"] = order
            if (limit or one) and order != "priority":
                self._filters["limit"] = limit or 1

    def _number(self, i: int) -> int:
        word = self._word(i)
        return int(word) if word.isdigit() and len(word) < 4 else int(NUMBERS.get(word, 0))

    def _openings(self) -> None:
        """Take "opened", and what the column of that day is called; "open" is a state unless days stand by it."""
        header = stems(self._names.headers.get("opened_at", ""))
        self._opened = False
        for i in range(len(self._said)):
            said = any(self._word(i) == w or self._word(i) in forms(w) for w in self._words["opened"])
            state = any(self._called(i, value) for value in self._names.status)
            if self._free([i]) and ((said and (not state or self._dated(i))) or (self._stems[i] in header and not state)):
                self._take([i], "-")
                self._opened = True

    def _codes(self) -> None:
        found = codes(self._text)
        for code in found:
            start = fold(self._text).find(code)
            at = self._inside(start, start + len(code))
            whole = not any(code != other and code in other for other in found)
            if whole and at and self._free(at) and not any(self._named(i) for i in at):
                denied, _ = self._denied(at[0])
                self._search([at], denied or self._denied_about(at[0]), code)

    def _actions(self) -> None:
        """Read declared actions and events, by all their words or by one that only one of them has."""
        heads: dict[str, list[str]] = {}
        for name in self._names.actions:
            for part in stems(name):
                heads.setdefault(part, []).append(name)
            for at in self._spoken(name):
                self._act(name, at, sure=len(at) > 1)
        for part, owners in heads.items():
            for at in self._part(part) if len(owners) == 1 else ():
                light = part in stems(" ".join(self._words["light"]))
                done = self._word(at[0]).endswith(("ed", "ado", "ados", "ido", "idos")) or self._doing(at[0])
                if not light and (done or self._un(at[0]) or self._denied(at[0], awaiting=True)[0] or self._counted(at[0])):
                    self._act(owners[0], at, sure=True)

    def _act(self, name: str, at: Sequence[int], *, sure: bool) -> None:
        first = min(at)
        denied = self._denied(first, awaiting=True)[0]
        own = any(akin(self._stems[first], stem) for stem in stems(name))
        status = [value for place, own_ in self._places if place.field == "status" and first in own_ for value in place.values]
        called = any(self._called(first, value) for value in status)
        # "Resolved" is a state unless it is denied or dated, "to resolve" is not.
        state = bool(status) and len(at) == 1 and not self._dated(first) and not (own and (denied or not called))
        led = any(i + 1 == first or not self._stems[i + 1] for (i,) in self._about_ends() if 0 <= first - i <= 3)
        looked_for = len(at) == 1 and (led or (not sure and self._noun(first + 1)))
        if self._free(at) and not state and not looked_for:
            self._state("has", name, at, un=self._un(first))

    def _called(self, i: int, value: str) -> bool:
        """Tell whether a word is just what a value is called, in any language."""
        return any(self._word(i) == form or self._word(i) in forms(form) for form in self._called_so(value))

    def _called_so(self, value: str) -> tuple[str, ...]:
        return (fold(value), *self._words["values"].get(fold(value), ()))

    def _spoken(self, name: str) -> Iterator[list[int]]:
        """Yield where an action stands by its name, its column's or another way of saying it."""
        synonyms = next((said for head, said in self._names.synonyms.items() if fold(head) == fold(name)), ())
        for way in (name, self._names.headers.get(name, ""), *synonyms):
            said = words(way.replace("_", " "))
            if any(word in self._words[kind] for word in said for kind in ("negators", "awaiting")):
                continue  # "Owe a reply" asks for the reply and tells that there is none.
            content = " ".join(word for word in said if way == name or word not in self._words["nouns"])
            yield from self._near([self._part(part) for part in stems(content)], _NEAR)

    def _near(self, options: Sequence[Sequence[list[int]]], most: int) -> Iterator[list[int]]:
        """Yield one place of each part where all stand close together."""
        for one in options[0] if options else ():
            found = list(one)
            for more in options[1:]:
                found += next((at for at in more if not set(at) & set(found) and abs(at[0] - one[0]) <= most), [])
            if len(found) >= len(options) and self._free(found):
                yield sorted(found)

    def _alone(self, family: Collection[str]) -> list[list[int]]:
        """Return where a word of a family stands, also where it denies it: "unanswered"."""
        free = (i for i, stem in enumerate(self._stems) if stem and not self._used[i] and not self._fieldish(i))
        return [[i] for i in free if any(akin(s, one) for one in family for s in (self._stems[i], self._un(i)) if s)]

    def _part(self, part: str) -> list[list[int]]:
        ways = [way for head, ways in self._names.synonyms.items() if stems(head) == (part,) for way in ways]
        split = (self._near([self._alone([stem]) for stem in stems(way)], _NEAR // 2) for way in ways)
        return [*(at for found in split for at in found), *self._alone(_family(part))]

    def _un(self, i: int) -> str:
        """Return the stem that a word denies by its beginning: of "unanswered"."""
        word = self._word(i)
        return "".join(stems(word[2:])[:1]) if word.startswith("un") and len(word) > 5 else ""

    def _doing(self, i: int) -> bool:
        """Tell whether a verb is what somebody does, not how a ticket is: "which cases did Zoe open"."""
        for j in range(i - 1, max(-1, i - 7), -1):
            if self._is(j, "auxiliaries", "doing") or self._denies(j):
                return self._is(j, "doing") and not self._noun(i + 1)
        return False

    def _counted(self, i: int) -> bool:
        return any(at[-1] in (i - 1, i - 2) for at in self._phrases(self._words["counting"]))

    def _fieldish(self, i: int) -> bool:
        said = (word for names in self._fields().values() for name in names for word in words(name))
        return bool(self._stems[i]) and any(self._word(i) == word or self._word(i) in forms(word) for word in said)

    def _fields(self) -> Mapping[str, Sequence[str]]:
        """What people and the columns call each field."""
        own = {facet: (facet.replace("_", " "),) for facet in (*self._names.facets, *self._flags)}
        known = {**self._words["fields"], **own}
        headers = self._names.headers
        return {name: (*said, *((headers[name],) if name in headers else ())) for name, said in known.items()}

    def _flag(self, values: Sequence[str]) -> bool:
        return bool(values) and all(fold(value) in (*self._words["yes"], *self._words["no"]) for value in values)

    def _values(self) -> None:
        """Read values of status, priority and facets, customers and colleagues; a facet of yes and no by its name."""
        for place, at in self._places:
            digits = all(self._word(i).isdigit() for i in at)
            beside = self._fieldish(at[0] - 1) if at[0] else False
            acts = place.field == "status" and not self._finished(place.values[0]) and self._doing(at[0])
            if not self._free(at) or self._word(at[-1] + 1) in UNITS or (digits and not beside):
                continue
            if acts:
                self._take(at, "-")
                continue
            facet = place.field if place.field not in _FIELDS else ""
            day = self._dated(at[-1]) if place.field == "status" else None
            for value in place.values:
                free = self._used[at[0]] in ("", "facets" if facet else place.field)
                if free:
                    self._take(at, "")
                    self._state("facets" if facet else place.field, value, at, facet)
                else:
                    self._put(self._used[at[0]], value, facet)
            if day and day.first == day.last == self._today:
                self._spans.remove(day)
            elif day and self._finished(place.values[0]):
                # The tickets do not know when a status was reached.
                self._take(self._inside(day.start, day.end), "?")
                self._spans.remove(day)
        for facet, values in self._flags.items():
            yes = next((value for value in values if fold(value) in self._words["yes"]), "")
            bare = " ".join(word for word in words(facet.replace("_", " ")) if word not in ("is", "has"))
            for at in self._phrases([bare, self._names.headers.get(facet, bare)]):
                beside = [at[-1] + 1] if self._is(at[-1] + 1, "yes", "no") else []
                self._state("facets", yes or values[0], [*at, *beside], facet, un=any(self._is(i, "no") for i in beside))

    def _finished(self, status: str) -> bool:
        done = stems(" ".join(self._words["finished"]))
        return any(stem in done for stem in stems(status))

    def _loosely(self) -> None:
        """Read "open" and "closed" where no status is called so: which of them are finished tells it."""
        known = {fold(value) for value in self._names.status}
        done = [value for value in self._names.status if self._finished(value)]
        going = [value for value in self._names.status if value not in done]
        for word, meant in (("open", going), ("closed", done)):
            ways = (word, *self._words["values"][word], *(self._words["finished"] if word == "closed" else ()))
            for at in self._phrases(ways) if meant and done and word not in known else ():
                if word == "closed" or not self._doing(at[0]):
                    for value in meant:
                        self._take(at, "")
                        self._state("status", value, at)
                    self._assumed.append(f"“{self._text[self._said[at[0]][1] : self._said[at[-1]][2]]}”: {', '.join(meant)}")
        for i in range(len(self._said)):
            un = self._un(i)
            if un and self._free([i]) and done and un in stems(" ".join(self._words["finished"])):
                self._take([i], "not_status")
                for value in done:
                    self._put("not_status", value)
            elif un and self._free([i]) and any(akin(un, s) for s in stems(" ".join(self._words["fields"]["assignee"]))):
                self._take([i], "lacks")
                self._put("lacks", "assignee")

    def _counts(self) -> None:
        """Read what to count by, and which field is empty: "per plan", "which customers", "without a plan"."""
        most = [i for i in range(len(self._said)) if self._is(i, "most") and not self._used[i]]
        found: list[tuple[int, str, list[int]]] = []
        for name, spoken in self._fields().items():
            for at in self._phrases(spoken):
                led = at[0] - 1
                while led >= 0 and self._free([led]) and self._word(led) in ("the", "a", "our", "el", "la", "der", "le"):
                    led -= 1
                denied, doubt = self._denied(at[0])
                if denied and not doubt and name not in self._filters:
                    self._take([*denied, *at], "lacks")
                    self._put("lacks", name)
                elif self._is(led, "by") or most or (name == "customer" and (self._counted(at[0]) or not self.nouns)):
                    found.append((0 if self._is(led, "by") else 1, name, at))
        for _, name, at in sorted(found):
            if "count_by" not in self._filters:
                self._filters["count_by"] = name
                self._take(at, "count_by")
            elif self._is(at[0] - 1, "by") and name != self._filters["count_by"] and name not in self._filters:
                self._take([at[0] - 1, *at], "?")
        if most and any(self._is(i, "who") for i in range(len(self._said))):
            self._filters.setdefault("count_by", "assignee")
        if any(True for _ in self._phrases(self._words["counting"])) and not self._assumed:
            several = [*self._filters.items(), *self._filters.get("facets", {}).items()]
            for name, value in several:
                if isinstance(value, list) and name in (*_FIELDS, *self._names.facets):
                    self._filters.setdefault("count_by", name)

    def _amounts(self) -> None:
        """Read how many tickets somebody must have: "customers with more than two tickets"."""
        for phrase, (least, most) in self._words["bounds"].items():
            for at in self._phrases([phrase]):
                place = at[0] - 1 if phrase.startswith("or ") else at[-1] + 1
                often = {"once": 1, "twice": 2}.get(self._word(place), 0)
                number = often or self._number(place)
                after = range(max(at[-1], place) + 1, max(at[-1], place) + 4)
                counted = often or any(self._noun(i) or (0 <= i < len(self._said) and self._used[i] == "has") for i in after)
                if not number or not self._free([place]) or self._word(after[0]) in UNITS:
                    continue
                bounds = {k: number + v for k, v in (("at_least", least), ("at_most", most)) if v != "none" and number + v > 0}
                known = counted and "count_by" in self._filters
                self._take([*at, place], "amount" if known else "?")
                self._filters |= bounds if known else {}

    def _dates(self) -> None:
        """Give the days to the action beside them, or to when the tickets were opened or updated."""
        header = stems(self._names.headers.get("updated_at", ""))
        updated = [
            i for i in range(len(self._said))
            if not self._used[i] and (self._is(i, "updated") or self._stems[i] in set(header) - set(stems("last date")))
        ]  # fmt: skip
        for n, span in enumerate(self._spans):
            at = self._inside(span.start, span.end)
            denied, _ = self._denied(at[0])
            due = "lacks" in self._filters and span.first == span.last == self._today
            has = len(_each(self._filters.get("has"))) == 1 and not self._opened
            name = "updated" if updated else "has" if has else "opened"
            if denied or n or due:
                begun = [i for i in range(min([*denied, *at]), at[0]) if not self._used[i] or self._used[i] == "-"]
                self._take([*begun, *at], "?")
                continue
            self._take(updated, "-")
            self._filters |= {f"{name}_{end}": day.isoformat() for end, day in (("from", span.first), ("to", span.last)) if day}

    # --- words to look for --------------------------------------------------------------------------------------------

    def _about_ends(self) -> list[list[int]]:
        return [at[-1:] for at in self._phrases(self._words["about"])]

    def _denied_about(self, at: int) -> list[int]:
        """Return what denies the "about" before a place, and that."""
        for (end,) in self._about_ends():
            if 0 < at - end <= 3 and (denied := self._denied(end)[0]):
                return [*denied, end]
        return []

    def _about(self) -> None:
        """Look for the words after "about" and before "tickets" that are nothing else."""
        for at in list(self._phrases(self._words["about"])):
            runs: list[list[int]] = [[]]
            for i in range(at[-1] + 1, len(self._said)):
                if self._is(i, "either") and runs[-1]:
                    runs.append([])
                elif self._used[i] or self._noun(i) or (runs[-1] and (self._is(i, "clauses", "auxiliaries") or self._broken(i - 1))):
                    break
                elif self._stems[i]:
                    runs[-1].append(i)
            if runs := [run for run in runs if run]:
                self._search(runs, self._denied(at[0])[0])
                self._take(at, "-")
        for noun in self.nouns:
            run: list[int] = []
            while noun - len(run) > 0 and self._searched(noun - len(run) - 1):
                run.insert(0, noun - len(run) - 1)
            if run:
                self._search([run], self._denied(run[0])[0])

    def _searched(self, i: int) -> bool:
        plain = self._stems[i] in _frame() or self._fieldish(i) or self._denies(i) or self._is(i, "vague")
        return bool(self._free([i]) and self._stems[i] and not plain and not self._number(i) and not self._broken(i))

    def _search(self, runs: Sequence[Sequence[int]], denied: Sequence[int], said: str = "") -> None:
        """Look for words in the tickets' text, in each way that the settings know; what no ticket holds is not understood."""
        name = "not_text" if denied else "text"
        self._take(denied, name)
        for run in runs:
            kept = [i for i in run if said or self._holds(self._single(i))]
            self._take(run, "?")
            self._take(kept, name)
            if text := said or " ".join(map(self._single, kept)):
                ways = next((w for w in self._ways() if any(stems(way) == stems(text) for way in w)), ())
                self._put(name, text)
                for way in ways:
                    if not any(other != way and fold(other) in fold(way) for other in (text, *ways)):
                        self._put(name, f'"{way}"' if " " in way else way)

    def _ways(self) -> Iterator[tuple[str, ...]]:
        return ((head, *others) for head, others in self._names.synonyms.items())

    def _single(self, i: int) -> str:
        word = self._word(i)
        return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word

    def _left(self) -> Iterator[str]:
        """Yield the words that restrict and that nothing uses, those side by side together."""
        run: list[int] = []
        for i in range(len(self._said) + 1):
            if i < len(self._said) and self._restricts(i):
                run.append(i)
            elif run and (i == len(self._said) or self._used[i] not in ("", "?") or self._stems[i] or self._is(i, "clauses")):
                yield self._text[self._said[run[0]][1] : self._said[run[-1]][2]]
                run = []

    def _restricts(self, i: int) -> bool:
        plain = self._stems[i] in _frame() or self._fieldish(i) or self._number(i)
        return self._used[i] == "?" or (not self._used[i] and (self._is(i, "own") or bool(self._stems[i] and not plain)))
