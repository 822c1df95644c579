"""Fakes that implement our protocols: small, deterministic, and a function of what they are given."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import snowballstemmer

from ingest.embed import TextKind, Vectors


class HashingEmbedder:
    """An Embedder by feature hashing: a function of a text's word stems, equal in every process."""

    name = "fake/hashing"
    dimensions = 64
    max_tokens = 256

    def count(self, text: str) -> int:
        """Return the number of words, and two as if there were special tokens."""
        return len(re.findall(r"\w+", text)) + 2

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """Return unit vectors; a text without words gets the first axis."""
        # A stemmer keeps its state in the object, and tests embed on several threads.
        stem = snowballstemmer.stemmer("english").stemWord
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                digest = hashlib.blake2b(stem(word).encode(), digest_size=8).digest()
                row[digest[0] % self.dimensions] += 1 if digest[1] % 2 else -1
            norm = float(np.linalg.norm(row))
            row[:] = row / norm if norm else np.eye(1, self.dimensions, dtype=np.float32)[0]
        return vectors
