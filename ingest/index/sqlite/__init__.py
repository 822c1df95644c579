"""The embedded index: one SQLite file a generation, FTS5 for words, a table for codes, exact cosine by numpy.

A folder holds `generation-<n>.db` files, `current` and `lock`. `current` names the live generation on its
first line and the ones to roll back to below it; it is the only thing that is ever swapped. A database is
never renamed: a `-wal` that is still there would be replayed onto the other file. Generations that `current` does
not name are left by rollbacks and crashes and are removed by the next run; other files are never touched. `lock` is held by whoever
changes `current`.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from ingest.errors import IdentityMismatch, IndexingError
from ingest.index import GenerationInfo, Swept, Vectors
from ingest.index.sqlite import mapping
from ingest.index.sqlite.generation import StoredGeneration
from ingest.index.sqlite.mapping import identity
from ingest.index.sqlite.pointer import created_at, file_of, is_ours, names, number_of, point, unlink
from ingest.index.sqlite.wire import REBUILD, WAIT_SECONDS, connect, explained, locked
from ingest.types import Chunk, Document, DocumentInfo, Rankings, Where

__all__ = ["SqliteGeneration", "SqliteIndex", "identity"]

_log = logging.getLogger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteIndex:
    """SearchIndex in a folder of this machine; any number of threads and processes may use it at once.

    `for_rebuild` opens without looking at what is there, so that an index of another identity or a damaged
    one can be rebuilt. `keep` generations are kept to roll back to. Raises IdentityMismatch and IndexingError.
    """

    def __init__(
        self,
        folder: Path,
        identity: str,
        *,
        for_rebuild: bool = False,
        keep: int = 2,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._folder = folder
        self._identity = identity
        self._keep = keep
        self._clock = clock
        self._lock = threading.Lock()
        self._database: StoredGeneration | None = None
        self._foreign = ("", 0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexingError(
                f"the index folder {str(folder)!r} cannot be made ({error}); choose another place"
            ) from error
        if not (folder / "current").exists():
            self._begin()
        if not for_rebuild:
            self._live()

    @property
    def identity(self) -> str:
        """What the index was opened with."""
        return self._identity

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source."""
        return self._live().revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors in one transaction."""
        self._live().replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks."""
        self._live().delete(uri)

    def flush(self) -> None:
        """Do nothing: a committed document is visible to the next `rank`, in every process."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings, at most `k` each, best first."""
        return self._readable().rank(query, vector, k, where, deadline)

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return the documents of `where.kind` that these readers may read, in force if asked, by title."""
        return self._readable().documents(where)

    def rebuild(self, run: str = "") -> SqliteGeneration:  # noqa: ARG002 - the lock ends with its process
        """Start a new generation; raises IndexingError while another rebuild runs, in any process."""
        lock = locked(
            self._folder, 0.0, "another rebuild is running; wait until it is done, or stop it, and try again"
        )
        try:
            number = self._unused()
            self._sweep()
            database = self._create(number)
        except BaseException:
            lock.close()
            raise
        return SqliteGeneration(self._folder, database, lock, self._keep, self._clock)

    def generations(self) -> tuple[GenerationInfo, ...]:
        """Return the live generation and those to roll back to, newest first."""
        held = names(self._folder)
        found = [
            GenerationInfo(name.removesuffix(".db"), created, name == held[0])
            for name in held
            if (created := created_at(self._folder / name))
        ]
        return tuple(sorted(found, key=lambda info: number_of(info.name), reverse=True))

    def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again; the next run removes what was live."""
        lock = locked(self._folder, 0.0, "a rebuild is running; stop it first, then roll back")
        try:
            live, *older = names(self._folder)
            if not older:
                raise IndexingError(
                    f"there is no generation before {live!r} in {str(self._folder)!r}; {REBUILD} instead"
                )
            database = StoredGeneration(self._folder / older[0], self._identity)
            database.close()
            point(self._folder, older)
        finally:
            lock.close()
        return GenerationInfo(older[0].removesuffix(".db"), database.created_at, True)

    def sweep(self, run: str = "", ended: Collection[str] = ()) -> Swept:  # noqa: ARG002 - the lock ends with its process
        """Remove the generations that the pointer does not name; nothing while a rebuild is under way."""
        try:
            lock = locked(self._folder, 0.0, "a rebuild is running")
        except IndexingError:
            return Swept(waiting=f"a rebuild is under way in {str(self._folder)!r}")
        try:
            return self._sweep()
        finally:
            lock.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            database, self._database = self._database, None
        if database:
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def _live(self) -> StoredGeneration:
        """Return the generation that the pointer names now; who still holds another one may finish there."""
        with self._lock:
            name = names(self._folder)[0]
            if self._database is None or self._database.file != file_of(self._folder / name):
                try:
                    self._database = StoredGeneration(self._folder / name, self._identity)
                except IndexingError:
                    # Rebuilds may have been published, and this file removed, since the pointer was read.
                    newer = names(self._folder)[0]
                    if newer == name:
                        raise
                    self._database = StoredGeneration(self._folder / newer, self._identity)
            return self._database

    def _readable(self) -> StoredGeneration:
        """Return the live generation, or the one before where the live one was rebuilt for other settings than ours.

        Whoever was started with another embedding model goes on answering from what it has until it is started anew.
        """
        held = self._database
        if held is not None and file_of(self._folder / names(self._folder)[0]) == self._foreign:
            return held
        try:
            return self._live()
        except IdentityMismatch as error:
            if held is None:
                raise
            self._foreign = file_of(self._folder / names(self._folder)[0])
            _log.warning("answering from %s: %s", held.path.name, error)
            return held

    def _begin(self) -> None:
        """Make the first, empty generation, unless another process does."""
        lock = locked(
            self._folder, WAIT_SECONDS, "another process is making the index; try again when it is done"
        )
        try:
            if not (self._folder / "current").exists():
                database = self._create(self._unused())
                database.close()
                point(self._folder, [database.path.name])
        finally:
            lock.close()

    def _unused(self) -> int:
        return max((number_of(path.name) for path in self._folder.glob("generation-*.db*")), default=0) + 1

    def _create(self, number: int) -> StoredGeneration:
        """Make an empty generation; called with the lock held."""
        path = self._folder / f"generation-{number}.db"
        try:
            with contextlib.closing(connect(path, "rwc")) as connection:
                mapping.create(connection, self._identity, self._clock())
        except sqlite3.Error as error:
            raise explained(path, error) from error
        return StoredGeneration(path, self._identity)

    def _sweep(self) -> Swept:
        """Remove our generations that the pointer does not name; called with the lock held."""
        try:
            named = set(names(self._folder))
        except IndexingError:
            return Swept()
        others = {
            path: is_ours(path)
            for path in sorted(self._folder.glob("generation-*.db"))
            if path.name not in named
        }
        for path, ours in others.items():
            if ours:
                unlink(path)
        return Swept(
            tuple(path.stem for path, ours in others.items() if ours),
            tuple(path.name for path, ours in others.items() if not ours),
        )


class SqliteGeneration:
    """A generation beside the live one; whoever holds it is the only one who rebuilds."""

    def __init__(
        self,
        folder: Path,
        database: StoredGeneration,
        lock: sqlite3.Connection,
        keep: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._folder = folder
        self._database = database
        self._held = lock
        self._keep = keep
        self._clock = clock

    @property
    def name(self) -> str:
        """Name as in `GenerationInfo`."""
        return self._database.path.stem

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source."""
        return self._database.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors in one transaction."""
        self._database.replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks."""
        self._database.delete(uri)

    def flush(self) -> None:
        """Do nothing: a committed document is visible to the next `rank`."""

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Search the generation before anybody else can, to check it."""
        return self._database.rank(query, vector, k, where, deadline)

    def publish(self) -> None:
        """Check the file and make it the live generation; a damaged one raises IndexingError."""
        path = self._database.path
        if damage := self._database.optimize():
            raise IndexingError(f"the new generation {str(path)!r} is damaged ({damage}); {REBUILD} again")
        self._database.close()
        try:
            before = names(self._folder)
        except IndexingError:
            before = []
        point(self._folder, [path.name, *before[: self._keep]])
        for name in before[self._keep :]:
            unlink(self._folder / name)
        self._held.close()

    def discard(self) -> None:
        """Remove the file; harmless after `publish`."""
        path = self._database.path
        self._database.close()
        with contextlib.suppress(IndexingError):
            if path.name in names(self._folder):
                return
        unlink(path)
        self._held.close()
