"""A corpus of any size to measure with: folders of Markdown by a seed, questions about it, and vectors that cost nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np

from bot.sample import sample
from ingest.embed import TextKind, Vectors
from ingest.types import Where

READERS = frozenset({"members", "support"})
EVERYTHING = Where(readers=READERS)
FILTERED = Where(readers=frozenset({"members"}), facets={"plan": "Team"}, in_force_on=date(2026, 6, 1))
"""Lets a sixth of the corpus through."""

_VOCABULARY = 20_000
_SYLLABLES = "ba be co da di fa fi ga ke la le li lo ma mi mo na ne ni no pa per po ra re ri ro sa se si so ta te ti to va ve vi zo".split()
_ENDINGS = ("", "", "", "s", "ing", "ed", "tion")
_PLANS = ("Team", "Business", "Starter", "Free")
_RULES = (
    "A customer may ask for a refund within {n} days of the charge.",
    "Support answers urgent tickets within {n} business hours.",
    "Invoices of this kind must be sent at least {n} days before the renewal.",
)
_SPACE = 4096
"""Directions of the fake embedder, to one of which each word belongs."""


class FakeEmbedder:
    """An Embedder whose vectors are a function of the words: sums of random directions, one a word."""

    name = "fake/bench"
    dimensions = 384
    max_tokens = 256

    def __init__(self) -> None:
        self._directions = np.random.default_rng(0).standard_normal((_SPACE, self.dimensions), np.float32)

    def count(self, text: str) -> int:
        """Return about as many tokens as a tokenizer finds in English."""
        return len(text) // 4 + 2

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:  # noqa: ARG002 - both kinds are alike
        """Return unit vectors."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            # Short words are in every text.
            places = [crc32(word.encode()) % _SPACE for word in text.split() if len(word) > 3] or [0]
            self._directions[places].sum(axis=0, out=row)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


@dataclass(frozen=True, slots=True)
class Page:
    """One file of the corpus."""

    name: str
    text: str
    chunks: int
    """Sections; where the tokens of one are more than a chunk takes, it becomes two."""


class Corpus:
    """Help pages that are the same for the same seed.

    Words come by Zipf's law, the second most frequent half as often as the first: those of the sample company in the
    order of their frequency, then invented ones. Pages have one to nine sections; some sections are tables, some hold
    error codes or rules. A page may have a plan, other readers, and a day on which it was superseded.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._words = _vocabulary(_chance(seed, "words"))
        ranks = np.arange(1, len(self._words) + 1)
        self._shares = np.cumsum(1 / ranks)

    def pages(self, chunks: int) -> Iterator[Page]:
        """Yield pages with so many sections in all; a larger corpus begins with the pages of a smaller one."""
        number = 0
        while chunks > 0:
            page = self._page(number, chunks)
            yield page
            number += 1
            chunks -= page.chunks

    def write(self, folder: Path, chunks: int) -> list[Path]:
        """Write the pages into `folder`, a thousand in each of its folders, and return their paths."""
        paths = []
        for page in self.pages(chunks):
            path = folder / page.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page.text, encoding="utf-8")
            paths.append(path)
        return paths

    def questions(self, count: int) -> list[str]:
        """Return questions of five to twelve words, every third with the code of an early page."""
        chance = _chance(self._seed, "questions")
        found = []
        for i in range(count):
            said = self._some(chance, chance.randint(5, 12))
            code = f" {_code(chance.randint(0, 200), chance.randint(0, 8))}" if i % 3 == 0 else ""
            found.append(f"What about {' '.join(said)}{code}?")
        return found

    def _some(self, chance: Random, count: int) -> list[str]:
        drawn = np.array([chance.random() for _ in range(count)]) * self._shares[-1]
        return [self._words[place] for place in np.searchsorted(self._shares, drawn).tolist()]

    def _sentence(self, chance: Random) -> str:
        return f"{' '.join(self._some(chance, chance.randint(8, 20))).capitalize()}."

    def _page(self, number: int, most: int) -> Page:
        chance = _chance(self._seed, f"page {number}")
        sections = min(chance.randint(1, 9), most)
        title = " ".join(self._some(chance, 4)).capitalize()
        lines = ["---", f"title: {title} {number}"]
        if chance.random() < 0.75:
            lines.append(f"facets: {{plan: {chance.choices(_PLANS, (4, 3, 2, 1))[0]}}}")
        if chance.random() < 0.2:
            lines.append("readers: [support]")
        if chance.random() < 0.1:
            lines += ["effective: 2025-01-01", "superseded: 2026-01-01"]
        lines += ["---", ""]
        for section in range(sections):
            lines += [f"## {' '.join(self._some(chance, 3)).capitalize()}", ""]
            lines += self._table(chance) if chance.random() < 0.1 else self._prose(chance, number, section)
            lines.append("")
        return Page(f"{number // 1000}/page-{number}.md", "\n".join(lines), sections)

    def _prose(self, chance: Random, page: int, section: int) -> list[str]:
        said = [self._sentence(chance) for _ in range(chance.randint(3, 6))]
        if chance.random() < 0.3:
            said.append(f"The message is {_code(page, section)}.")
        if chance.random() < 0.2:
            said.append(chance.choice(_RULES).format(n=chance.randint(2, 60)))
        return [" ".join(said)]

    def _table(self, chance: Random) -> list[str]:
        names = self._some(chance, 2)
        rows = [
            f"| {' '.join(self._some(chance, 2))} | {chance.choice(_PLANS)} | {chance.randint(2, 90)} days |"
            for _ in range(chance.randint(3, 6))
        ]
        return [f"| {names[0]} | plan | {names[1]} |", "|---|---|---|", *rows]


def _chance(seed: int, of: str) -> Random:
    return Random(f"{seed} {of}")  # noqa: S311 - nothing is secret here


def _code(page: int, section: int) -> str:
    return f"ERR_AB{section}-{4000 + page}"


def _vocabulary(chance: Random) -> list[str]:
    """Return distinct words, the most frequent first."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((sample() / "docs").rglob("*.md"))]
    counts: dict[str, int] = {}
    for word in re.findall(r"[a-z]+", " ".join(texts).casefold()):
        counts[word] = counts.get(word, 0) + 1
    found = dict.fromkeys(sorted(counts, key=lambda word: (-counts[word], word)))
    while len(found) < _VOCABULARY:
        found["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) + chance.choice(_ENDINGS)] = None
    return list(found)
