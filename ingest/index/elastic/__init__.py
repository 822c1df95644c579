"""The production index: Elasticsearch, one index a generation behind an alias, with the free licence's features only.

Indices are named `<prefix>-generation-<n>`. The alias `<prefix>` is the live one; `<prefix>-previous-<i>` are those to
roll back to, newest first; all of them are moved in one atomic step. `<prefix>-write-<n>` belongs to one generation for
life: whatever is written goes through it, so that nothing that was removed comes back with a guessed mapping. Generations
without `<prefix>` or `<prefix>-previous-<i>` are left by rollbacks and crashes and are removed by the next run; what is
only named like one, a copy for instance, is never touched. The first index is made by the first write, never by a look.
Nothing is visible before `flush`: readers see a run's changes all at once.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from ingest.config import ElasticsearchSettings
from ingest.errors import IdentityMismatch, IndexingError
from ingest.index import GenerationInfo, Swept, Vectors
from ingest.index.elastic import mapping
from ingest.index.elastic.generation import Mixed, StoredGeneration, late
from ingest.index.elastic.lease import SECONDS, Held, Lease
from ingest.index.elastic.mapping import identity
from ingest.index.elastic.wire import Wire
from ingest.types import Arm, Chunk, Document, DocumentInfo, Rankings, Where

__all__ = ["ElasticGeneration", "ElasticIndex", "identity"]

_PROBE_SECONDS = 10.0
_LIST_SECONDS = 15.0
"""How long the list of documents may take: somebody waits for it."""
_PROBE = Where(readers=frozenset({"nobody"}))
_REBUILD = "run `twohop index --rebuild`"
_META = frozenset({"identity", "dimensions", "created_at"})
"""What the mapping of each index of ours says about it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Names:
    """Every name in the cluster that is ours."""

    prefix: str

    def index(self, number: int) -> str:
        return f"{self.prefix}-generation-{number}"

    def writing(self, index: str) -> str:
        return f"{self.prefix}-write-{self.number(index)}"

    def previous(self, place: int) -> str:
        return f"{self.prefix}-previous-{place}"

    def number(self, index: str) -> int:
        found = re.fullmatch(rf"{re.escape(self.prefix)}-generation-([1-9]\d*)", index)
        return int(found[1]) if found else 0

    def place(self, alias: str) -> int:
        """Return 0 for the live alias, i for that of the i-th generation before it, -1 for one that is neither."""
        found = re.fullmatch(rf"{re.escape(self.prefix)}-previous-(\d+)", alias)
        return int(found[1]) if found else -(alias != self.prefix)


class ElasticIndex:
    """SearchIndex in an Elasticsearch cluster; any number of threads and processes may use it at once.

    `for_rebuild` opens without looking at what is there, so that an index of another identity can be rebuilt.
    `look` False opens without asking the cluster anything, for one that is away: each call then finds out for itself.
    `keep` generations are kept to roll back to; a rebuild that died is taken for dead after `lease_seconds`.
    Raises ConfigError, IdentityMismatch and IndexingError.
    """

    def __init__(
        self,
        settings: ElasticsearchSettings,
        identity: str,
        dimensions: int,
        *,
        for_rebuild: bool = False,
        look: bool = True,
        keep: int = 2,
        lease_seconds: float = SECONDS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._dimensions = dimensions
        self._keep = keep
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._new_id = new_id
        self._names = _Names(settings.prefix)
        self._known: StoredGeneration | None = None
        self._foreign = ""
        """The live index where its identity is not ours."""
        self.server_version = ""
        self._wire = Wire(settings)
        if not look:
            return
        try:
            self.server_version = self._wire.check()
            if not for_rebuild and (live := self._found()):
                self._probe(live)
        except BaseException:
            self._wire.close()
            raise

    @property
    def identity(self) -> str:
        """What the index was opened with."""
        return self._identity

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source, empty for one whose writing was cut off."""
        live = self._found()
        return live.revisions(source) if live else {}

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors; visible after `flush`. The first one begins the index."""
        if not self._found():
            self._begin()
        self._live().replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks; visible after `flush`."""
        if live := self._found():
            live.delete(uri)

    def flush(self) -> None:
        """Make everything written so far visible, in every process."""
        if live := self._found():
            live.flush()

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Return the separate rankings, at most `k` each, best first."""
        arms: tuple[Arm, ...] = ("lexical", "codes") if vector is None else ("lexical", "dense", "codes")
        try:
            try:
                return self._ranked(query, vector, k, where, deadline)
            except IdentityMismatch:
                # The live generation has just become another one's; the held one is asked now.
                return self._ranked(query, vector, k, where, deadline)
        except IdentityMismatch:
            raise
        except IndexingError as error:
            return Rankings({}, dict.fromkeys(arms, late(error, deadline)))

    def documents(self, where: Where) -> tuple[DocumentInfo, ...]:
        """Return the documents of `where.kind` that these readers may read, in force if asked, by title."""
        held = self._readable(self._soon())
        return held.documents(where, time.monotonic() + _LIST_SECONDS) if held else ()

    def rebuild(self, run: str = "") -> ElasticGeneration:
        """Start a new generation; raises IndexingError while another rebuild runs, in any process."""
        lease = self._lease("another rebuild is running; wait until it is done and try again", run)
        try:
            self._refuse_taken()
            number = self._unused()
            self._sweep()
            index = self._names.index(number)
            self._create(index, [self._names.writing(index)])
        except BaseException:
            lease.release()
            raise
        return ElasticGeneration(self, self._generation(index, self._dimensions), lease, self._clock)

    def generations(self) -> tuple[GenerationInfo, ...]:
        """Return the live generation and those to roll back to, newest first."""
        pointers = self._pointers(self._soon())
        found = self._described(f"{self._settings.prefix}-generation-*", self._soon())
        return tuple(
            GenerationInfo(
                index,
                datetime.fromisoformat(found[index]["mappings"]["_meta"]["created_at"]),
                index == pointers.get(self._settings.prefix),
            )
            for index in sorted(set(pointers.values()), key=self._names.number, reverse=True)
            if index in found
        )

    def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again; the next run removes what was live."""
        lease = self._lease("a rebuild is running; stop it first, then roll back")
        try:
            live = self._pointers().get(self._settings.prefix)
            older = [index for index in self._order() if index != live]
            if not older:
                before = f" before {live!r}" if live else ""
                raise IndexingError(
                    f"there is no generation{before} in Elasticsearch {self._wire.url!r}; {_REBUILD} instead"
                )
            described = self._checked(older[0], self._described(older[0])[older[0]])
            self.point(older)
        finally:
            lease.release()
        created = datetime.fromisoformat(described["created_at"])
        return GenerationInfo(older[0], created, True)

    def sweep(self, run: str = "", ended: Collection[str] = ()) -> Swept:
        """Remove the generations that nothing points to; nothing while a rebuild may be under way."""
        try:
            lease = self._lease("a rebuild is running", run, ended)
        except Held as held:
            orphans, left = self._unnamed()
            waiting = (
                f"{', '.join(orphans) or 'a generation to come'} is of a rebuild whose lease ends at {held.until}; "
                "if it is dead, the next run after that removes what it left"
            )
            return Swept((), left, waiting)
        try:
            return self._sweep()
        finally:
            lease.release()

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    # --- generations -----------------------------------------------------------------------------------------

    def point(self, order: Sequence[str]) -> None:
        """Make the first of these indices live and the next ones those to roll back to, in one atomic step."""
        wanted = {
            (index, self._names.previous(place) if place else self._settings.prefix)
            for place, index in enumerate(order[: 1 + self._keep])
        }
        now = {(index, alias) for alias, index in self._pointers().items()}
        actions: list[dict[str, Any]] = [
            {"remove": {"index": index, "alias": alias, "must_exist": False}} for index, alias in now - wanted
        ]
        actions += [{"add": {"index": index, "alias": alias}} for index, alias in wanted - now]
        self._wire.ask(lambda client: client.indices.update_aliases(actions=actions))

    def published(self, index: str, lease: Lease) -> None:
        """Make an index the live generation and remove the oldest."""
        lease.renew()
        order = [index, *self._order()]
        self.point(order)
        for old in order[1 + self._keep :]:
            self.drop(old)

    def drop(self, index: str) -> None:
        """Remove a generation that nothing points to."""
        if index not in self._order() and self._is_ours(index, self._described(index).get(index, {})):
            self._wire.ask(lambda client: client.indices.delete(index=index, ignore_unavailable=True))

    def _live(self, deadline: float | None = None) -> StoredGeneration:
        """Return the generation that the alias names now; raises IndexingError where there is none."""
        live = self._found(deadline)
        if live is None:
            raise IndexingError(
                f"the alias {self._settings.prefix!r} is missing in Elasticsearch {self._wire.url!r}; {_REBUILD}"
            )
        return live

    def _found(self, deadline: float | None = None) -> StoredGeneration | None:
        """Return the generation that the alias names now, None where nothing was ever indexed under this prefix.

        Raises IdentityMismatch for another one's content, and IndexingError where only the live generation is gone.
        """
        described = self._described(self._settings.prefix, deadline)
        if not described:
            if earlier := self._order(deadline):
                raise IndexingError(
                    f"the live index is gone from Elasticsearch {self._wire.url!r}: the alias {self._settings.prefix!r} "
                    f"is missing, but {earlier[0]!r} from before is there; run `twohop index rollback` to answer from "
                    "that, or `twohop index --rebuild`"
                )
            return None
        ((index, about), *_more) = described.items()
        self._foreign = index
        meta = self._checked(index, about)
        self._foreign = ""
        self._known = self._generation(index, meta["dimensions"])
        return self._known

    def _readable(self, deadline: float) -> StoredGeneration | None:
        """Return the live generation, if there is one, or the one before where the live one was rebuilt for other settings than ours.

        Whoever was started with another embedding model goes on answering from what it has until it is started anew.
        """
        held = self._known
        if held and self._foreign and self._pointers(deadline).get(self._settings.prefix) == self._foreign:
            return held
        try:
            return self._found(deadline)
        except IdentityMismatch as error:
            if held is None:
                raise
            _log.warning("answering from %s: %s", held.index, error)
            return held

    def _ranked(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Search by the alias, and look at what it names only when the hits are not of the generation that is known."""
        if self._known is None or self._foreign:
            held = self._readable(deadline)
            if held is None:
                arms: tuple[Arm, ...] = ("lexical", "dense", "codes")
                return Rankings({arm: () for arm in arms if arm != "dense" or vector is not None})
            if self._foreign:
                return held.rank(query, vector, k, where, deadline)
        known = self._known or self._live(deadline)
        return known.rank(
            *(query, vector, k, where, deadline),
            at=self._settings.prefix,
            accept=lambda indices: self._accept(indices, deadline),
        )

    def _accept(self, indices: frozenset[str], deadline: float) -> None:
        """Refuse hits of another generation than the live one, whose identity is looked at when it is new."""
        known = self._known
        if known is None or indices != {known.index}:
            live = self._live(deadline)
            if (indices and indices != {live.index}) or (known and known.index != live.index):
                raise Mixed

    def _generation(self, index: str, dimensions: int) -> StoredGeneration:
        return StoredGeneration(self._wire, index, self._names.writing(index), dimensions)

    def _is_ours(self, index: str, about: Mapping[str, Any]) -> bool:
        """Tell whether an index was made here under this very name; a clone brings the mapping of another one."""
        meta = about.get("mappings", {}).get("_meta", {})
        return bool(self._names.number(index)) and meta.keys() >= _META and meta.get("index", index) == index

    def _checked(self, index: str, about: Mapping[str, Any]) -> Mapping[str, Any]:
        meta = about.get("mappings", {}).get("_meta", {})
        if not self._names.number(index) or not meta.keys() >= _META:
            raise IndexingError(
                f"the index {index!r} in Elasticsearch {self._wire.url!r} is not one of ours; remove it, or set "
                "another elasticsearch.prefix"
            )
        if meta["identity"] != self._identity:
            raise IdentityMismatch(
                f"the index {index!r} was built with {meta['identity']!r}, "
                f"but the settings say {self._identity!r}; {_REBUILD} or set them back"
            )
        found: Mapping[str, Any] = meta
        return found

    def _described(self, name: str, deadline: float | None = None) -> Mapping[str, Any]:
        """Return mapping and aliases of each index that a name, an alias or a pattern means."""
        nothing: Any = {}
        found = self._wire.ask(
            lambda client: client.indices.get(index=name, features=["aliases", "mappings"]),
            deadline=deadline,
            missing=nothing,
        )
        return dict(found)

    def _pointers(self, deadline: float | None = None) -> dict[str, str]:
        """Return alias -> index of the live generation and of those to roll back to."""
        prefix = self._settings.prefix
        # A pattern, because a name that is missing makes the whole answer a 404.
        found = self._wire.ask(lambda client: client.indices.get_alias(name=f"{prefix}*"), deadline=deadline)
        return {
            alias: index
            for index, of in dict(found).items()
            for alias in of["aliases"]
            if self._names.place(alias) >= 0
        }

    def _soon(self) -> float:
        """Return until when a question waits for an answer."""
        return time.monotonic() + self._settings.timeout_seconds

    def _order(self, deadline: float | None = None) -> list[str]:
        """Return the live index, if there is one, then those to roll back to, newest first."""
        pointers = self._pointers(deadline)
        return list(dict.fromkeys(pointers[alias] for alias in sorted(pointers, key=self._names.place)))

    def _begin(self) -> None:
        """Make the first, empty generation, unless another process does."""
        index = self._names.index(self._unused())
        self._refuse_taken()
        try:
            self._create(index, [self._settings.prefix, self._names.writing(index)])
        except IndexingError:
            if not self._order():
                raise

    def _unused(self) -> int:
        found = self._described(f"{self._settings.prefix}-generation-*")
        return max(map(self._names.number, found), default=0) + 1

    def _refuse_taken(self) -> None:
        """Raise IndexingError where an index has the name that our alias needs."""
        prefix = self._settings.prefix
        if prefix in self._described(prefix):
            raise IndexingError(
                f"Elasticsearch {self._wire.url!r} has an index {prefix!r}, where the alias of that name should be; "
                "set another elasticsearch.prefix, or remove that index"
            )

    def _create(self, index: str, aliases: Sequence[str]) -> None:
        language = self._settings.language
        try:
            self._wire.ask(
                lambda client: client.indices.create(
                    index=index,
                    settings=mapping.settings(language),
                    mappings=mapping.mappings(index, self._identity, self._dimensions, self._clock()),
                    aliases={alias: {} for alias in aliases},
                )
            )
        except IndexingError as error:
            if "stemmer" in str(error):
                raise IndexingError(
                    f"setting elasticsearch.language = {language!r} is no stemmer that Elasticsearch {self._wire.url!r} "
                    "has; write for example english, light_german, light_spanish, light_french, italian or dutch"
                ) from error
            raise

    def _probe(self, live: StoredGeneration) -> None:
        """Search once, so that a right or a feature that is missing is told at the start."""
        vector = np.ones(self._dimensions, np.float32)
        deadline = time.monotonic() + _PROBE_SECONDS
        failed = live.rank("probe PROBE-1", vector, 1, _PROBE, deadline).failed
        for arm, why in failed.items():
            raise IndexingError(f"Elasticsearch {self._wire.url!r} cannot be searched ({arm}): {why}")

    def _lease(self, otherwise: str, run: str = "", ended: Collection[str] = ()) -> Lease:
        lease = Lease(
            self._wire,
            f"{self._settings.prefix}-lease",
            run or self._new_id(),
            self._clock,
            f"Elasticsearch {self._wire.url!r}: {otherwise}",
            seconds=self._lease_seconds,
            ended=ended,
        )
        lease.take()
        return lease

    def _unnamed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return our indices that nothing points to, and what is only named like a generation of ours."""
        named = set(self._order())
        found = self._described(f"{self._settings.prefix}-generation-*")
        others = {index: self._is_ours(index, about) for index, about in found.items() if index not in named}
        return (
            tuple(index for index, ours in others.items() if ours),
            tuple(index for index, ours in others.items() if not ours),
        )

    def _sweep(self) -> Swept:
        """Remove our generations that nothing points to; called with the lease held."""
        orphans, left = self._unnamed()
        for index in orphans:
            self.drop(index)
        return Swept(orphans, left)


class ElasticGeneration:
    """A generation beside the live one; whoever holds it is the only one who rebuilds."""

    def __init__(
        self, index: ElasticIndex, generation: StoredGeneration, lease: Lease, clock: Callable[[], datetime]
    ) -> None:
        self._index = index
        self._generation = generation
        self._lease = lease
        self._clock = clock

    @property
    def name(self) -> str:
        """Name as in `GenerationInfo`."""
        return self._generation.name

    def revisions(self, source: str) -> Mapping[str, str]:
        """Return uri -> revision of every document of the source."""
        return self._generation.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write a document with its chunks and vectors."""
        self._generation.replace(document, chunks, vectors, self._clock())

    def delete(self, uri: str) -> None:
        """Remove a document with all its chunks."""
        self._generation.delete(uri)

    def flush(self) -> None:
        """Make everything written so far visible to this generation's `rank`."""
        self._generation.flush()

    def rank(
        self, query: str, vector: Sequence[float] | Vectors | None, k: int, where: Where, deadline: float
    ) -> Rankings:
        """Search the generation before anybody else can, to check it."""
        return self._generation.rank(query, vector, k, where, deadline)

    def publish(self) -> None:
        """Check that it is whole and make it the live generation; raises IndexingError where it is not."""
        if reason := self._generation.incomplete():
            raise IndexingError(
                f"the new generation {self._generation.index!r} is damaged ({reason}); {_REBUILD} again"
            )
        self._index.published(self._generation.index, self._lease)
        self._lease.release()

    def discard(self) -> None:
        """Remove the index; harmless after `publish`."""
        self._index.drop(self._generation.index)
        self._lease.release()
