"""Reads a question word by word: each step takes the words that it understands, what nothing takes is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, product
from typing import Any

from bot.filters import denial
from bot.filters.actions import alike, family_of, positive
from bot.filters.flags import flag_name, is_flag
from bot.filters.meant import same_customer
from bot.filters.phrases import (
    ABOUT,
    AUXILIARIES,
    BOUNDS,
    COMPARED,
    COUNT,
    FALSE,
    FIELDS,
    FRAME,
    HAVING,
    LIMIT,
    NEAR,
    ONCE,
    ONE_TICKET,
    OPENED,
    ORDERS,
    ORDERS_OF_ONE,
    PEOPLE_COUNTED,
    PLAIN,
    PRONOUN,
    QUOTED,
    REPLIED,
    SPOKEN,
    STAYING,
    TICKETS,
    TRUE,
    UPDATED,
    WHO_MOST,
    WHOSE,
    bag,
)
from bot.gate import measured
from bot.reading.periods import Span, spans
from bot.types import Gazetteer
from ingest.atoms import NUMBERS, UNITS, codes
from ingest.words import fold, mentions, stems, words

KINDS: Mapping[str, str] = {
    **dict.fromkeys(
        (f"{name}_{end}" for name in ("opened", "updated", "has") for end in ("from", "to")), "days"
    ),
    **{f"not_{name}": name for name in ("customer", "status", "priority", "assignee", "facets", "text")},
    "limit": "order",
    "lacks": "has",
    **dict.fromkeys(("at_least", "at_most"), "amount"),
}
"""Arguments that are read as one kind of filter."""


def whole_codes(text: str) -> tuple[str, ...]:
    """Return the codes of a text that are not parts of longer ones, four-digit years aside."""
    found = codes(text)
    return tuple(
        code
        for code in found
        if not any(code != other and code in other for other in found)
        and not re.fullmatch(r"(19|20)\d\d", code)
    )


_DEFAULT = "default"
"""Kind of the words that ask for what a list is anyway: newest first."""


@dataclass(slots=True)
class _Token:
    """One word of the question, and which kind of filter uses it."""

    text: str
    start: int
    end: int
    kind: str = ""


class Reader:
    """One question on its way to filters; each step takes the words that it understands."""

    def __init__(self, text: str, names: Gazetteer, today: date) -> None:
        self._text = text
        self._folded = fold(text)
        self._names = names
        self._today = today
        self._tokens = [
            _Token(match.group(), *match.span())
            for match in re.finditer(r"[^\W_]+(?:['’][a-z]+)?", self._folded)
        ]
        self._spans: list[Span] = []
        self._unread: list[str] = []
        self.filters: dict[str, Any] = {}
        self._quotes()
        self._days()
        self._order()
        self._having()
        self._people(whole=True)
        self._counted()
        self._amount()
        self._flags()
        self._actions()
        self._values()
        self._empty()
        self._people(whole=False)
        self._dates()
        self._about()
        self._counted_noun()

    # --- what was made of the words ------------------------------------------------------------------------------

    @property
    def made(self) -> Mapping[str, tuple[str, ...]]:
        """The words that each kind of filter uses."""
        taken = [token.kind for token in self._tokens if token.kind not in ("", "?", _DEFAULT)]
        return {
            kind: tuple(self._phrases(lambda token, k=kind: KINDS.get(token.kind, token.kind) == k))
            for kind in dict.fromkeys(KINDS.get(kind, kind) for kind in taken)
        }

    @property
    def left(self) -> tuple[str, ...]:
        """The words that restrict and that nothing uses."""

        def restricts(token: _Token) -> bool:
            return token.kind == "?" or (
                not token.kind and bool(stems(token.text)) and not set(stems(token.text)) <= self._frame
            )

        return tuple(self._phrases(restricts))

    @property
    def _frame(self) -> frozenset[str]:
        """The words that restrict nothing, the names of fields among them."""
        return FRAME | {stem for facet in self._names.facets for stem in stems(facet.replace("_", " "))}

    def _phrases(self, wanted: Any) -> Iterator[str]:
        run: list[_Token] = []
        end = 0
        for token in [*self._tokens, None]:
            if token is not None and wanted(token):
                run.append(token)
                end = token.end
            elif run and not (token is not None and not token.kind and not stems(token.text)):
                yield self._text[run[0].start : end]
                run = []

    # --- taking words ----------------------------------------------------------------------------------------------

    def _inside(self, start: int, end: int) -> list[int]:
        return [i for i, token in enumerate(self._tokens) if token.start < end and start < token.end]

    def _take(self, places: Iterable[int], kind: str) -> None:
        for i in places:
            self._tokens[i].kind = kind

    def _free(self, places: Iterable[int]) -> bool:
        return all(not self._tokens[i].kind for i in places)

    def _word(self, i: int) -> str:
        return re.split("['’]", self._tokens[i].text)[0] if 0 <= i < len(self._tokens) else ""

    def _places(self, spoken: str) -> Iterator[range]:
        """Yield where some words stand that nothing has taken yet, plurals too."""
        size = len(words(spoken))
        for i in range(len(self._tokens) - size + 1 if size else 0):
            place = range(i, i + size)
            written = self._text[self._tokens[i].start : self._tokens[i + size - 1].end]
            if self._free(place) and mentions(written, [spoken]):
                yield place

    def _forms(self, name: str) -> tuple[str, ...]:
        settings = next((said for head, said in self._names.synonyms.items() if fold(head) == fold(name)), ())
        return (name, *SPOKEN.get(fold(name), ()), *settings)

    @property
    def _said(self) -> list[str]:
        return [token.text for token in self._tokens]

    @property
    def _bound(self) -> list[bool]:
        """Which words a negation before them is about: what is taken, values and fields."""
        values = [*self._names.status, *self._names.priority, *chain(*self._names.facets.values())]
        fields = [*chain(*FIELDS.values()), *self._names.facets]
        known = [*fields, *(form for value in values for form in self._forms(value))]
        return [bool(token.kind or mentions(token.text, known)) for token in self._tokens]

    def _negator(self, i: int, *, awaiting: bool = False) -> list[int]:
        """Return the words before place `i` that deny what stands there, an empty list where none do."""
        free = [not token.kind for token in self._tokens]
        return denial.before(self._said, free, i, awaiting=awaiting)

    def _doubted(self, i: int) -> list[int]:
        """Return the words that may deny what stands at place `i` and that nobody reads."""
        ends = [bound or self._broken(j) for j, bound in enumerate(self._bound)]
        if i and not self._tokens[i - 1].kind and mentions(self._tokens[i - 1].text, chain(*FIELDS.values())):
            # "No customer reply" denies the reply, not the customer.
            ends[i - 1] = self._broken(i - 1)
        return denial.doubted(self._said, ends, i)

    def _broken(self, j: int) -> bool:
        """Tell whether a sentence ends or is broken behind place `j`."""
        end = self._tokens[j + 1].start if j + 1 < len(self._tokens) else len(self._text)
        return bool(re.search(r"[,;:.!?()]", self._text[self._tokens[j].end : end]))

    def _add(self, name: str, value: str, facet: str = "") -> None:
        into = self.filters.setdefault(name, {}) if facet else self.filters
        key = facet or name
        before = into.get(key, [])
        values = [before] if isinstance(before, str) else before
        if value not in values:
            into[key] = value if not values else [*values, value]

    # --- the steps -------------------------------------------------------------------------------------------------

    def _quotes(self) -> None:
        for match in QUOTED.finditer(self._text):
            places = self._inside(*match.span())
            if places:
                self._take(places, "text")
                self._add(
                    "not_text" if self._denied_about(places[0]) else "text", (match[1] or match[2]).strip()
                )

    def _days(self) -> None:
        for span in spans(self._text, self._today):
            places = self._inside(span.start, span.end)
            if self._free(places):
                self._take(places, "days")
                self._spans.append(span)

    def _order(self) -> None:
        for pattern in LIMIT if COUNT.search(self._folded) else (*LIMIT, COMPARED):
            for match in pattern.finditer(self._folded):
                places = self._inside(*match.span())
                if not self._free(places):
                    continue
                groups = match.groupdict()
                way = groups.get("way") or groups.get("urgent") or ""
                if groups.get("n"):
                    self.filters["limit"] = int(NUMBERS.get(groups["n"], groups["n"]))
                order = ORDERS.get(way, "newest")
                if way == "priority" and not re.search(
                    r"(?:sort|order)(?:ed)?(?: \w+)? by|first", match.group()
                ):
                    continue
                if order != "newest":
                    self.filters["order"] = order
                if way in ORDERS_OF_ONE and ONE_TICKET.match(self._folded, match.end()):
                    self.filters.setdefault("limit", 1)
                stated = {"limit", "order"} & set(self.filters)
                self._take(places, "order" if stated else _DEFAULT)

    def _having(self) -> None:
        """Take what restricts and no filter can express: "that customer", whose."""
        rows = same_customer(self._text, self._names)
        places = [i for match in rows for i in self._inside(*match.span())]
        places += [
            i
            for match in PRONOUN.finditer(self._folded)
            for i in self._inside(*match.span())
            if self._word(i) in WHOSE
        ]
        self._take([i for i in places if not self._tokens[i].kind], "?")

    def _people(self, *, whole: bool) -> None:
        for name, known in (("customer", self._names.customers), ("assignee", self._names.assignees)):
            if whole:
                for person in mentions(self._text, known):
                    for place in self._places(person):
                        self._put(name, person, place)
            else:
                self._by_part(name, known)

    def _by_part(self, name: str, known: Sequence[str]) -> None:
        """Recognise a name by a word that no other name has: "Greenlane", "Inés"."""
        holders: dict[str, list[str]] = {}
        for full in known:
            for word in dict.fromkeys(words(full)):
                holders.setdefault(word, []).append(full)
        for i, token in enumerate(self._tokens):
            options = holders.get(self._word(i), [])
            if token.kind or len(options) != 1 or len(self._word(i)) < 3:
                continue
            first = words(options[0])[0] == self._word(i)
            raised = self._text[token.start].isupper() and i > 0
            led = self._word(i - 1) in bag("from of by for with de para does did has have is") and first
            if raised or led or (name == "assignee" and first and stems(token.text)):
                self._put(name, options[0], range(i, i + 1))

    def _put(self, kind: str, value: str, place: range, facet: str = "") -> None:
        """Take a value at its place, as left out where the words before deny it, alone or in a row."""
        denied = self._negator(place[0])
        row = place[0] - 2 if self._word(place[0] - 1) in ("or", "nor", "and", "o", "ni", "y") else -1
        if not denied and row >= 0 and self._tokens[row].kind == f"not_{kind}":
            denied = [place[0] - 1]
        if not denied and (doubted := self._doubted(place[0])):
            self._take([*doubted, *place], "?")
            return
        name = f"not_{kind}" if denied else kind
        self._add(name, value, facet)
        self._take([*denied, *place], name)

    def _counted(self) -> None:
        """Read what to count by: by plan, per customer, which assignee, who has the most."""
        fields = {
            **FIELDS,
            **{facet: (facet.replace("_", " "),) for facet in self._names.facets},
        }
        found: list[tuple[int, str, list[int]]] = []
        for name, spoken in fields.items():
            for said in spoken:
                for place in self._places(said):
                    before = self._word(place[0] - 1)
                    if before in ("the", "a", "our"):
                        before = self._word(place[0] - 2)
                    common = before in ("common", "frequent") and self._word(place[0] - 2) == "most"
                    if common or before in bag("by per each every which across por cada que what"):
                        found.append((place[0], name, [place[0] - 1, *place]))
        for _, name, places in sorted(found):
            if "count_by" in self.filters:
                self._take([i for i in places if not self._tokens[i].kind], "?")
            else:
                self.filters["count_by"] = name
                self._take([i for i in places if not self._tokens[i].kind], "count_by")
        how_many = PEOPLE_COUNTED.search(measured(self._folded))
        if how_many and not any(token.text in TICKETS for token in self._tokens):
            self.filters.setdefault("count_by", "customer")
        if "count_by" not in self.filters and WHO_MOST.search(self._folded):
            self.filters["count_by"] = "assignee"

    def _amount(self) -> None:
        """Read how many tickets a customer or colleague must have: "customers with more than two tickets"."""
        for match in HAVING.finditer(self._folded):
            places = self._inside(*match.span())
            if not self._free(places):
                continue
            for name in ("customer", "assignee"):
                if any(mentions(self._text[: match.start()], FIELDS[name])):
                    self.filters.setdefault("count_by", name)
            said = match["n"] or match["n_or"] or match["often"]
            number = ONCE.get(said) or int(NUMBERS.get(said, said))
            least, most = BOUNDS[match["way"] or match["way_or"] or match["way_often"]]
            bounds = {
                name: number + more
                for name, more in (("at_least", least), ("at_most", most))
                if more is not None and number + more > 0
            }
            if "count_by" in self.filters and bounds:
                self.filters |= bounds
                self._take(places, "amount")
            else:
                self._take(places, "?")

    def _actions(self) -> None:
        """Read the declared actions and events: that they took place ("refund requests") or not ("no reply yet")."""
        for name in self._names.actions:
            for place in self._action_places(name):
                first = min(place)
                word = self._word(first)
                un = word.startswith("un") and len(place) == 1
                status = len(place) == 1 and self._is_status(word)
                # "Resolved" is a state, unless it is dated or denied; "not closed" is a state, too.
                own = any(alike(*pair) for pair in product(stems(word), stems(name)))
                denied = self._negator(first, awaiting=True)
                if not self._free(place) or (status and not self._dated(first) and not (denied and own)):
                    continue
                self._put_action(name, place, denied=un)

        # "Unanswered" lacks the one response that there is, first or not.
        ends: dict[str, list[str]] = {}
        for name in self._names.actions:
            ends.setdefault(stems(name)[-1], []).append(name)
        for end, fitting in ends.items():
            for place in self._part_places(end) if len(fitting) == 1 else ():
                word = self._word(place[0])
                if self._is_status(word) or not self._free(place):
                    continue
                un = positive(word) != word
                # "Claimed" is the warranty claim; "requested" may be anything.
                done = word.endswith("ed") and stems(word) == (end,) and "ask" not in family_of(end)
                told = done or un or self._replied(place[0]) or self._negator(place[0], awaiting=True)
                if told or denial.behind(self._said, self._bound, place[-1])[0]:
                    self._put_action(fitting[0], place, denied=un)

    def _put_action(self, name: str, place: Sequence[int], *, denied: bool) -> None:
        """Take an action at its place, as lacking where the words around deny it; what is denied in doubt is no filter."""
        first = min(place)
        words_ = self._negator(first, awaiting=True)
        how, after = denial.behind(self._said, self._bound, max(place))
        lacks = bool(denied or words_ or how == "denied")
        doubted = [] if lacks else self._doubted(first)
        if not lacks and (doubted or how):
            self._take([*doubted, *place, *after], "?")
            return
        self._take([*words_, *place, *after], "has")
        self._add("lacks" if lacks else "has", name)

    def _replied(self, i: int) -> bool:
        """Tell whether somebody answered: "answered in March", "did we answer", not "an answer"."""
        word = self._word(i)
        asked = any(self._word(j) in ("did", "do", "does") for j in range(max(0, i - 4), i))
        return word in REPLIED or (asked and word in ("answer", "reply", "respond"))

    def _is_status(self, word: str) -> bool:
        return any(mentions(word, self._forms(value)) for value in self._names.status)

    def _dated(self, i: int) -> bool:
        """Tell whether a day follows a word closely: "resolved in August", "closed by Tom last week"."""
        return any(0 <= span.start - self._tokens[i].end <= 12 for span in self._spans)

    def _action_places(self, name: str) -> Iterator[list[int]]:
        """Yield where an action is named: by a synonym of the whole, or by its parts near each other."""
        for said in self._names.synonyms.get(name, ()):
            # "Owe a reply" asks for the reply and tells that there is none.
            for place in () if denial.within(said) else self._places(said):
                yield list(place)
        first, *rest = (self._part_places(part) for part in stems(name))
        for one in first:
            found = list(one)
            for options in rest:
                found += next(
                    (p for p in options if not set(p) & set(found) and abs(p[0] - one[0]) <= NEAR), []
                )
            if self._free(found) and len(found) >= 1 + len(rest):
                yield found

    def _part_places(self, stem: str) -> list[list[int]]:
        """Return where a part of an action's name stands, in whatever words."""
        # A word by which another action is called is that action's.
        others = {s for action in self._names.actions for s in stems(action)}
        family = {stem, *({s for word in family_of(stem) for s in stems(word)} - others)}
        synonyms = [
            form
            for head, said in self._names.synonyms.items()
            if stems(head) == (stem,)
            for form in said
            if not {stem} & set(stems(form)) and not denial.within(form)
        ]
        found = [list(place) for form in synonyms for place in self._places(form)]
        return found + [
            [i]
            for i, token in enumerate(self._tokens)
            if not token.kind and any(alike(s, f) for s in stems(positive(token.text)) for f in family)
        ]

    def _flags(self) -> None:
        """Read a facet that is true or false by its name: "VIP cases", "non-VIP", "VIP: no"."""
        for facet, values in self._names.facets.items():
            if not is_flag(values):
                continue
            yes = next((value for value in values if fold(value) in TRUE), "")
            no = next((value for value in values if fold(value) in FALSE), "")
            for place in self._places(flag_name(facet)):
                if re.match("about|mention|word", self._word(place[0] - 1)):
                    continue
                denied = self._negator(place[0])
                beside = place[-1] + 1
                told = self._word(beside) in TRUE | FALSE
                if told:
                    denied = [*denied, beside] if self._word(beside) in FALSE else denied
                negative = "not_" if bool(denied) == bool(yes) else ""
                self._add(f"{negative}facets", yes or no, facet)
                self._take([*denied, *place, *([beside] if told else ())], f"{negative}facets")

    def _values(self) -> None:
        """Read values of status, priority and facets."""
        options: list[tuple[str, str, Sequence[str]]] = [
            ("status", "", self._names.status),
            ("priority", "", self._names.priority),
            *(
                ("facets", facet, values)
                for facet, values in self._names.facets.items()
                if not is_flag(values)
            ),
        ]
        for kind, facet, values in options:
            for value in sorted(values, key=lambda v: -len(words(v))):
                for form in self._forms(value):
                    for place in self._places(form):
                        if not self._is_other(place, kind):
                            self._put(kind, value, place, facet)
        for kind, facet, _ in options:
            chosen = self.filters.get(kind, {}).get(facet) if facet else self.filters.get(kind)
            if isinstance(chosen, list):
                self.filters.setdefault("count_by", facet or kind)

    def _is_other(self, place: range, kind: str) -> bool:
        """Tell whether a value's word means something else: "business hours", "our team", "abiertos en agosto"."""
        after = self._word(place[-1] + 1)
        if after in UNITS or (
            kind == "facets" and self._word(place[0] - 1) in ("our", "your", "my", "support")
        ):
            return True
        if kind != "status":
            return False
        return self._acts(place[0]) or (self._tokens[place[0]].text in OPENED and self._dated(place[-1]))

    def _acts(self, i: int) -> bool:
        """Tell whether "open" is what somebody does, not how a ticket is: "which cases did Zoe open"."""
        if self._word(i) not in ("open", "opens") or self._word(i + 1) in TICKETS:
            return False
        before = [self._word(j) for j in range(i - 1, max(-1, i - 8), -1)]
        verb = next((at for at, word in enumerate(before) if word in AUXILIARIES | STAYING), None)
        if verb is None:
            return self._word(i) == "opens"
        return before[verb] in AUXILIARIES and (verb > 0 or before[verb] != "do")

    def _empty(self) -> None:
        """Read "unassigned" and "without a plan"."""
        for i, token in enumerate(self._tokens):
            if not token.kind and token.text in ("unassigned", "ownerless"):
                self._take([i], "has")
                self._add("lacks", "assignee")
        fields = {**FIELDS, **{facet: (facet.replace("_", " "),) for facet in self._names.facets}}
        for name, spoken in fields.items():
            for said in spoken:
                for place in self._places(said):
                    if denied := self._negator(place[0]):
                        self._take([*denied, *place], "has")
                        self._add("lacks", name)

    def _dates(self) -> None:
        """Put the days where they belong: when it was opened, updated, or when the one action took place."""
        if not self._spans:
            return
        span, *others = self._spans
        for other in others:
            self._take(self._inside(other.start, other.end), "?")
        said = {token.text for token in self._tokens}
        places = self._inside(span.start, span.end)
        before = self._tokens[places[0] - 1] if places and places[0] else None
        if before and before.kind == "status" and span.first == span.last == self._today:
            # "How many are open today?" asks for the state of now.
            self._take(places, "status")
            return
        if before and before.kind == "status" and before.text in ("closed", "resolved", "solved", "cerrados"):
            # The table does not know when a status was reached.
            self._take(places, "?")
            return
        has = self.filters.get("has")
        denied = (self._negator(places[0]) or self._doubted(places[0])) if places else []
        if denied or ("lacks" in self.filters and span.first == span.last == self._today):
            # Days left out are no filter, nor is the day on which something is due.
            self._take(
                [i for i in range(min([*denied, *places]), places[-1] + 1) if not self._tokens[i].kind], "?"
            )
            self._take(places, "?")
            return
        name = "opened"
        if said & UPDATED:
            name = "updated"
        elif isinstance(has, str) and not said & OPENED:
            name = "has"
        if span.first:
            self.filters[f"{name}_from"] = span.first.isoformat()
        if span.last:
            self.filters[f"{name}_to"] = span.last.isoformat()

    def _denied_about(self, i: int) -> list[int]:
        """Return the negator of the "about" that stands before place `i`."""
        for j in range(i - 1, max(-1, i - 4), -1):
            if re.match(r"about|mention|regarding|concerning|contain|relat|sobre|word", self._word(j)):
                return self._negator(j)
        return []

    def _about(self) -> None:
        """Read words to look for: after "about" or "mention", codes, and nouns before "tickets"."""
        for code in whole_codes(self._text):
            at = self._folded.find(code)
            places = self._inside(at, at + len(code)) if at >= 0 else []
            if places and self._free(places):
                denied = self._negator(places[0]) or self._denied_about(places[0])
                self._take([*denied, *places], "text")
                self._add("not_text" if denied else "text", code)
        for match in ABOUT.finditer(self._folded):
            places = self._inside(match.start(), match.end())
            run: list[int] = []
            texts: list[list[int]] = []
            for i in range(places[-1] + 1 if places else len(self._tokens), len(self._tokens)):
                token = self._tokens[i]
                if self._word(i) in ("or", "o") and run:
                    texts.append(run)
                    run = []
                elif not token.kind and (stems(token.text) and self._word(i) not in TICKETS):
                    if run and self._text[self._tokens[run[-1]].end : token.start].strip(" -/."):
                        break
                    run.append(i)
                elif run or token.kind or self._word(i) in TICKETS or self._word(i) in ("that", "this", "it"):
                    break
            texts += [run] if run else []
            if not texts:
                continue
            denied = self._negator(places[0])
            for found in texts:
                self._search("not_text" if denied else "text", found)
            self._take([*denied, *(i for i in places if not self._tokens[i].kind)], "text")
        for i in range(1, len(self._tokens)):
            if self._word(i) in TICKETS and self._noun(i - 1):
                run = [i - 1]
                while run[0] and self._noun(run[0] - 1):
                    run.insert(0, run[0] - 1)
                denied = self._negator(run[0])
                self._search("not_text" if denied else "text", run)
                self._take(denied, "text")

    def _noun(self, i: int) -> bool:
        token = self._tokens[i]
        return (
            not token.kind
            and bool(stems(token.text))
            and not set(stems(token.text)) <= self._frame | PLAIN
            and not token.text.isdigit()
            and token.text not in NUMBERS
        )

    def _search(self, name: str, places: Sequence[int]) -> None:
        """Look for some words, in each way that the settings know to say them."""
        said = " ".join(_singular(self._text[self._tokens[i].start : self._tokens[i].end]) for i in places)
        self._take(places, "text")
        self._add(name, said)
        for head, others in self._names.synonyms.items():
            ways = (head, *others)
            if any(stems(way) == stems(said) for way in ways):
                # What holds a shorter way is found by it; several words are looked for side by side.
                for way in ways:
                    if not any(other != way and fold(other) in fold(way) for other in (said, *ways)):
                        self._add(name, f'"{way}"' if " " in way else way)

    def _counted_noun(self) -> None:
        """Read "how many refunds": the thing counted is the one action that begins so."""
        for i, token in enumerate(self._tokens):
            if token.kind or self._word(i - 1) not in (
                "many",
                "of",
                "cuantos",
                "cuantas",
                "all",
                "the",
                "which",
            ):
                continue
            fitting = [a for a in self._names.actions if stems(a)[:1] == stems(token.text)]
            if len(fitting) == 1 and not {"has", "lacks"} & set(self.filters):
                self._take([i], "has")
                self._add("has", fitting[0])
                days = {
                    name: self.filters.pop(name)
                    for name in ("opened_from", "opened_to")
                    if name in self.filters
                }
                self.filters |= {name.replace("opened", "has"): day for name, day in days.items()}


def _singular(word: str) -> str:
    plain = word if word.isupper() else fold(word)
    return plain[:-1] if re.search(r"[a-z]{3}(?<![su])s$", plain) and not plain.endswith("is") else plain
