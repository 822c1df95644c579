"""A SearchIndex that fails as it is told: chosen arms, or everything."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from ingest.embed import Vectors
from ingest.errors import IndexingError
from ingest.index import Generation, GenerationInfo, SearchIndex, Swept
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Where

ARMS: tuple[Arm, ...] = ("lexical", "dense", "codes")


class Faulty:
    """A SearchIndex over another one, of which chosen arms or everything fail."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self.failing: tuple[Arm, ...] = ()
        self.down = False
        self.whole_searches = 0
        """Searches that go well before anything fails."""
        self.searches = 0
        self.seconds: list[float] = []
        """How long each search might have taken."""

    @property
    def identity(self) -> str:
        return self._index.identity

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        self.searches += 1
        self.seconds.append(deadline - time.monotonic())
        found = self._index.rank(query, vector, k, where, deadline)
        if self.searches <= self.whole_searches:
            return found
        self._refuse()
        arms = {arm: ranking for arm, ranking in found.arms.items() if arm not in self.failing}
        return Rankings(arms, {**found.failed, **dict.fromkeys(self.failing, "it broke")})

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        self._refuse()
        return self._index.documents(where)

    def _refuse(self) -> None:
        if self.down:
            raise IndexingError("the cluster 'http://secret.example' cannot be reached; start it")

    def revisions(self, source: str) -> Mapping[str, str]:
        return self._index.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        self._index.replace(document, chunks, vectors)

    def delete(self, uri: str) -> None:
        self._index.delete(uri)

    def flush(self) -> None:
        self._index.flush()

    def rebuild(self, run: str = "") -> Generation:
        return self._index.rebuild(run)

    def generations(self) -> tuple[GenerationInfo, ...]:
        return self._index.generations()

    def rollback(self) -> GenerationInfo:
        return self._index.rollback()

    def sweep(self, run: str = "", ended: Collection[str] = ()) -> Swept:
        return self._index.sweep(run, ended)

    def close(self) -> None:
        """Leave the other index open: it is somebody else's."""

    def __enter__(self) -> Faulty:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()
