"""The SearchIndex protocol: one contract for writing and reading, kept by every backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from ingest.types import Chunk, Document, DocumentInfo, Rankings, Where

Vectors = npt.NDArray[np.float32]
MOST_WORDS = 64
"""Words, and codes, of a query that are searched for: of a longer one, a pasted log file, the rarest."""


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """One generation of the index; exactly one of them is live."""

    name: str
    created_at: datetime
    live: bool


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed, and what it left; every name is whole."""

    removed: tuple[str, ...] = ()
    """Generations of ours that nothing points to any more, named as in `GenerationInfo`."""
    left: tuple[str, ...] = ()
    """What is named like a generation and is not one of ours: a copy, or somebody else's."""
    waiting: str = ""
    """Why nothing was removed, where a rebuild of another bot is, or may be, under way."""


class Writable(Protocol):
    """Where documents are written: the live index, or a generation being built."""

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source that is wholly written."""
        ...

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks in place of what was there, all or nothing.

        `vectors` is (len(chunks), dimensions).
        """
        ...

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks; unknown uris are ignored."""
        ...

    def flush(self) -> None:
        """Return when everything written so far is visible to `rank`."""
        ...


class Generation(Writable, Protocol):
    """A new index built beside the live one, which can be searched before anybody else sees it."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings as `SearchIndex.rank` does, to check them before `publish`."""
        ...

    def publish(self) -> None:
        """Make this generation the live one, atomically."""
        ...

    def discard(self) -> None:
        """Remove this generation."""
        ...


class SearchIndex(Writable, Protocol):
    """Chunks with their vectors, searched by words, by meaning and by code."""

    @property
    def identity(self) -> str:
        """`provider/model@dimensions + chunker version + schema version` that the index was opened with."""
        ...

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings, at most `k` each, best first.

        `vector` None leaves the dense arm out. `deadline` is monotonic seconds; an arm that fails or runs
        past it is named in `Rankings.failed` and the others answer. User text is never parsed as query syntax.
        """
        ...

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return what the index holds for these readers, by title."""
        ...

    def rebuild(self, run: str = "") -> Generation:
        """Start a new generation beside the live one; `run` is the id of the index run that does it."""
        ...

    def generations(self) -> tuple[GenerationInfo, ...]:
        """Return the generations, newest first."""
        ...

    def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again."""
        ...

    def sweep(self, run: str = "", ended: Collection[str] = ()) -> Swept:
        """Remove the generations that nothing points to: a rollback, or a rebuild that died, left them behind.

        Removes nothing while a rebuild is under way; one of a run that `ended` is not. `run` is the id of the run that
        sweeps.
        """
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *args: object) -> None: ...
