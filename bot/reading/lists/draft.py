"""A question on its way to filters: its words with what uses each, what denies them, and the filters so far."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from bot.reading.lists.vocabulary import data
from bot.reading.names import Place
from bot.reading.periods import Span, spans
from bot.types import Gazetteer
from ingest.atoms import NUMBERS
from ingest.words import fold, forms, placed, stems, words


class Draft:
    """The words of a text with what uses each: a filter, `?` where it is not understood, `-` where it restricts nothing."""

    def __init__(self, text: str, names: Gazetteer, today: date, holds: Callable[[str], bool]) -> None:
        self.text = unicodedata.normalize("NFC", text)
        self.today = today
        self.holds = holds
        self.flags = {facet: values for facet, values in names.facets.items() if _flag(values)}
        """Facets of yes and no, which are said by their own name."""
        self.names = replace(names, facets={f: v for f, v in names.facets.items() if f not in self.flags})
        self.said = placed(self.text)
        """Each word, folded, with where it begins and ends."""
        self.stems = ["".join(stems(word)[:1]) for word, *_ in self.said]
        """Empty for a stop word."""
        self.used = [""] * len(self.said)
        self.nouns = [i for i in range(len(self.said)) if self.noun(i)]
        called = {
            word for said in self.fields().values() for name in said for word in words(name) if stems(word)
        }
        self.called = frozenset(i for i in range(len(self.said)) if any(self.same(i, one) for one in called))
        """Places of the words that name a field."""
        self.spans = [span for span in spans(self.text, today) if self.inside(span.start, span.end)]
        self.places: list[tuple[Place, list[int]]] = []
        self.filters: dict[str, Any] = {}
        self.assumed: list[str] = []
        self.opened = False
        """Whether it says that tickets were opened."""

    @property
    def named(self) -> frozenset[int]:
        """Places of the words that are names."""
        return frozenset(i for _, at in self.places for i in at)

    def same(self, i: int, word: str) -> bool:
        """Tell whether a word is this one or its plural."""
        return self.word(i) == word or self.word(i) in forms(word)

    def inside(self, start: int, end: int) -> list[int]:
        return [i for i, (_, begin, until) in enumerate(self.said) if begin < end and start < until]

    def used_at(self, place: int) -> bool:
        """Tell whether a character is of a word that something uses."""
        return any(self.used[i] for i in self.inside(place, place + 1))

    def word(self, i: int) -> str:
        return self.said[i][0] if 0 <= i < len(self.said) else ""

    def any_of(self, i: int, *kinds: str) -> bool:
        return any(self.word(i) in data()[kind] for kind in kinds)

    def noun(self, i: int) -> bool:
        return any(self.same(i, noun) for noun in data()["nouns"])

    def free(self, at: Collection[int]) -> bool:
        return all(not self.used[i] for i in at)

    def take(self, at: Collection[int], use: str) -> None:
        for i in at:
            self.used[i] = use

    def phrases(self, spoken: Collection[str]) -> Iterator[list[int]]:
        """Yield where one of some phrases stands that nothing uses, the last word's plural too; longer ones first."""
        for phrase in sorted(map(words, spoken), key=len, reverse=True):
            for i in range(len(self.said) - len(phrase) + 1 if phrase else 0):
                at = list(range(i, i + len(phrase)))
                *before, last = (self.word(j) for j in at)
                if (
                    before == list(phrase[:-1])
                    and (last == phrase[-1] or last in forms(phrase[-1]))
                    and self.free(at)
                ):
                    yield at

    def broken(self, i: int) -> bool:
        """Tell whether a clause ends behind a word."""
        end = self.said[i + 1][1] if i + 1 < len(self.said) else len(self.text)
        return any(mark in self.text[self.said[i][2] : end] for mark in ",;:.!?()")

    def denies(self, i: int) -> bool:
        word, start, end = self.said[i]
        short = self.text[start:end].casefold().endswith(("n't", "n’t"))
        paired = f"{word} {self.word(i + 1)}" in data()["denying"]
        return (
            short
            or paired
            or self.any_of(i, "negators", "doubtful")
            or (word.endswith("nt") and word[:-2] in data()["auxiliaries"])
        )

    def denied(self, at: int, *, awaiting: bool = False) -> tuple[list[int], bool]:
        """Return the words that deny what stands at a place, and whether that is in doubt: "not really closed"."""
        stranger = passed = False
        for i in range(at - 1, max(-1, at - 9), -1):
            waits = awaiting and (
                self.any_of(i, "awaiting") or (self.any_of(i, "awaiting_to") and self.word(i + 1) == "to")
            )
            if self.broken(i) or self.used[i] not in ("", "-"):
                break
            if self.denies(i) or (waits and not stranger):
                return list(range(i, at)), stranger or self.any_of(i, "doubtful")
            those = i > 1 and self.word(i - 1) in data()["those"] and self.denies(i - 2)
            if self.any_of(i, "clauses") and those:
                return list(range(i - 2, at)), stranger
            if self.any_of(i, "clauses") or self.noun(i) or i in self.named:
                break
            helps = self.any_of(i, "auxiliaries")
            strange = bool(self.stems[i]) and not helps and not self.any_of(i, "carriers")
            if (helps and stranger) or (strange and passed):
                break  # "Tickets not about invoices are open" denies no state.
            stranger, passed = stranger or strange, passed or helps
        return [], False

    def behind(self, at: int) -> tuple[list[int], bool]:
        """The same of what follows: "a first reply was never sent"."""
        for i in range(at + 1, min(at + 5, len(self.said))):
            if (
                self.broken(i - 1)
                or self.used[i]
                or self.any_of(i, "clauses")
                or self.noun(i)
                or i in self.named
            ):
                break
            if self.denies(i):
                j = i
                while (
                    j + 1 < len(self.said)
                    and not self.broken(j)
                    and self.any_of(j + 1, "carriers", "auxiliaries")
                ):
                    j += 1
                ends = j + 1 == len(self.said) or self.broken(j)
                aside = not ends and (j + 1 in self.named or bool(self.used[j + 1]))
                return ([], False) if aside else (list(range(at + 1, j + 1 + (not ends))), not ends)
            if self.stems[i] and not self.any_of(i, "carriers", "auxiliaries"):
                break
        return [], False

    def un(self, i: int) -> str:
        """Return the stem that a word denies by its beginning: of "unanswered"."""
        word = self.word(i)
        return "".join(stems(word[2:])[:1]) if word.startswith("un") and len(word) > 5 else ""

    def number(self, i: int) -> int:
        word = self.word(i)
        return int(word) if word.isdigit() and len(word) < 4 else int(NUMBERS.get(word, 0))

    def dated(self, i: int) -> Span | None:
        """Return the days that stand closely behind a word: "resolved in August"."""
        close = (span for span in self.spans if 0 <= self.inside(span.start, span.end)[0] - i <= 3)
        return next(close, None)

    def put(self, name: str, value: str, facet: str = "") -> None:
        into = self.filters.setdefault(name, {}) if facet else self.filters
        values = each(into.get(facet or name))
        if value not in values:
            into[facet or name] = [*values, value] if values else value

    def state(self, name: str, value: str, at: Sequence[int], facet: str = "", *, un: bool = False) -> None:
        """Take a value or action, as left out where it is denied; in doubt it is not understood."""
        action = name == "has"
        other = "lacks" if action else f"not_{name}"
        words_, doubt = self.denied(min(at), awaiting=action)
        after: list[int] = []
        if action and not words_ and not un:
            after, doubt = self.behind(max(at))
        chained = min(at) - 2 if self.any_of(min(at) - 1, "either") else -1
        if not words_ and chained >= 0 and self.used[chained] == other:
            words_ = [chained + 1]
        denied = bool(words_ or after) != un if name != "has" else bool(words_ or after or un)
        self.take([*words_, *at, *after], "?" if doubt else other if denied else name)
        if not doubt:
            self.put(other if denied else name, value, facet)

    def fields(self) -> Mapping[str, Sequence[str]]:
        """What people and the columns call each field."""
        own = {facet: (facet.replace("_", " "),) for facet in (*self.names.facets, *self.flags)}
        known = {**data()["fields"], **own}
        headers = self.names.headers
        return {name: (*said, *((headers[name],) if name in headers else ())) for name, said in known.items()}


def each(values: str | Sequence[str] | None) -> list[str]:
    """Return one value or several as a list."""
    return [values] if isinstance(values, str) else list(values or ())


def _flag(values: Sequence[str]) -> bool:
    return bool(values) and all(fold(value) in (*data()["yes"], *data()["no"]) for value in values)
