"""Intents: what an answer has to be, learnt from labelled examples.

Kernel ridge regression (Saunders et al. 1998) over two views of a text: its vector, which says what it is about, and
the word sequences that many examples share, which say how it is asked. Examples are data: to teach a way of asking,
add a line to `data/examples.tsv`, or to a file of the company's own.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from bot.types import Intent
from ingest.embed import Embedder, Vectors
from ingest.errors import ConfigError
from ingest.words import words

Talk = Literal["greeting", "thanks", "goodbye", "help", "sources", "about", "summary", "prompt"]
"""What is said to the bot or about it, and needs no source."""

TICKET = "TICKET"
CUSTOMER = "CUSTOMER"
"""What stands in the examples for a ticket's number and a customer's name."""
TALK = frozenset(get_args(Talk))
KINDS = tuple(sorted({*get_args(Intent), *TALK}))
_LEAST = 3
"""Examples that must share a word sequence before it counts as a way of asking."""
_LONGEST = 3
_RIDGE = 3.0
"""Regularisation; 0.3 to 3 were compared leaving one example out (81 % right at 3)."""


@dataclass(frozen=True, slots=True)
class Meant:
    """How strongly a text is of each kind; a text of a kind is near 1 there and near 0 elsewhere."""

    scores: Mapping[str, float]

    @property
    def best(self) -> str:
        """The likeliest kind."""
        return max(self.scores, key=lambda kind: self.scores[kind])

    @property
    def margin(self) -> float:
        """How much likelier it is than the next one."""
        first, second = sorted(self.scores.values(), reverse=True)[:2]
        return first - second

    def among(self, kinds: frozenset[str]) -> str:
        """Return the likeliest of some kinds."""
        return max(kinds, key=lambda kind: self.scores[kind])


class Intents:
    """A classifier over the examples; fitted where the shipped fit is of other examples or another model."""

    def __init__(self, embedder: Embedder, own: Path | None = None) -> None:
        """Learn from the package's examples and a company's `own`; raises ConfigError where that is not readable."""
        self._embedder = embedder
        self._pairs = list(_read(_shipped("examples.tsv").decode("utf-8"), "examples.tsv"))
        if own is not None:
            try:
                self._pairs += _read(own.read_text(encoding="utf-8"), str(own))
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(
                    f"words.examples {str(own)!r} cannot be read ({error}); check its name"
                ) from error

    @property
    def fingerprint(self) -> str:
        """What the fit depends on: the examples, the model, and how it is fitted."""
        told = "\n".join([self._embedder.name, f"{_LEAST} {_LONGEST} {_RIDGE}", *map("\t".join, self._pairs)])
        return hashlib.sha256(told.encode()).hexdigest()

    def of(self, text: str) -> Meant:
        """Return what a text may be; its ticket numbers and customers are written TICKET and CUSTOMER."""
        scores = self._features([text], self._embedder.embed([text], kind="query"))[0] @ self._weights
        return Meant({kind: float(score) for kind, score in zip(KINDS, scores, strict=True)})

    def fit(self) -> Vectors:
        """Return the weights, shape (features, kinds): of the vector, of each way of asking, and a constant."""
        texts = [text for _, text in self._pairs]
        held = self._features(texts, self._embedder.embed(texts, kind="query"))
        wanted = np.array([[kind == intent for kind in KINDS] for intent, _ in self._pairs], np.float32)
        kernel = held @ held.T + _RIDGE * np.eye(len(held), dtype=np.float32)
        weights: Vectors = held.T @ np.linalg.solve(kernel, wanted)
        return weights

    @cached_property
    def _weights(self) -> Vectors:
        import io

        shipped = np.load(io.BytesIO(_shipped("intents.npz")), allow_pickle=False)
        if str(shipped["fingerprint"]) == self.fingerprint:
            weights: Vectors = shipped["weights"].astype(np.float32)
            return weights
        return self.fit()

    @cached_property
    def _ways(self) -> Mapping[str, tuple[int, float]]:
        """Place and rarity of each word sequence that is a way of asking."""
        seen = Counter(way for _, text in self._pairs for way in set(_sequences(text)))
        kept = sorted(way for way, times in seen.items() if times >= _LEAST)
        return {way: (at, math.log(len(self._pairs) / seen[way])) for at, way in enumerate(kept)}

    def _features(self, texts: Sequence[str], vectors: Vectors) -> Vectors:
        asked = np.zeros((len(texts), len(self._ways)), np.float32)
        for row, text in zip(asked, texts, strict=True):
            for way in set(_sequences(text)) & self._ways.keys():
                at, rarity = self._ways[way]
                row[at] = rarity
        lengths = np.linalg.norm(asked, axis=1, keepdims=True)
        asked /= np.where(lengths, lengths, 1)
        return np.hstack([vectors, asked, np.ones((len(texts), 1), np.float32)])


def _shipped(name: str) -> bytes:
    return (resources.files("bot") / "data" / name).read_bytes()


def _sequences(text: str) -> Iterator[str]:
    """Yield the words and word sequences of a text; its beginning and how it ends are words, too."""
    said = ("^", *words(text), "?" if "?" in text else "$")
    for size in range(1, _LONGEST + 1):
        for at in range(len(said) - size + 1):
            yield " ".join(said[at : at + size])


def _read(text: str, name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        intent, tab, said = line.partition("\t")
        if not line.strip() or line.startswith("#"):
            continue
        if not tab or intent not in KINDS or not said.strip():
            raise ConfigError(
                f"{name} line {number}: {line[:60]!r} is no example; write one of {', '.join(KINDS)}, a tab and the text"
            )
        yield intent, said.strip()
