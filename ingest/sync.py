"""Bring an index up to date with a source: only what changed is parsed, cut, embedded and written."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Protocol, assert_never

import numpy as np

from ingest.atoms import codes
from ingest.chunk import chunk
from ingest.config import ChunkSettings
from ingest.embed import Embedder
from ingest.errors import (
    DocumentRefused,
    DocumentWithheld,
    IndexingError,
    ModelError,
    SourceError,
    TwohopError,
)
from ingest.index import Generation, SearchIndex, Vectors, Writable
from ingest.sources import Change, Changed, Complete, Failed, Gone, Source, Unchanged
from ingest.types import Arm, Chunk, Document, Where
from ingest.words import words

ToDocument = Callable[[Changed], Document]
Progress = Callable[[int, str], None]
"""Called after each document with how many were looked at and the uri of the last one; it may raise to end the run there."""


class Watch(Protocol):
    """Sees a run at work; both methods may raise to end it."""

    def stage(self, name: str) -> None:
        """Note that a stage begins."""
        ...

    def progress(self, done: int, uri: str) -> None:
        """Note how many documents of this stage were looked at, and the last one."""
        ...


class Unwatched:
    """A Watch for runs that nobody looks at."""

    def stage(self, name: str) -> None:
        """Do nothing."""

    def progress(self, done: int, uri: str) -> None:
        """Do nothing."""


UNWATCHED: Watch = Unwatched()

_FIRST_CHUNKS = 64
_BATCH_CHUNKS = 256
"""Most chunks of a batch, of as many documents as it takes; each document is written by itself all the same.

Among many chunks there are some of about one length; the first batches are smaller, so that embedding soon begins.
"""
_AT_ONCE = 64
"""Chunks that are given to the embedder at once: a run that is stopped waits for no more than these."""
_COUNTED_TEXTS = 20_000
"""Words and lines whose tokens are known; most words of a document stand in others too."""
_LINES = 20
_WITNESSES = 4
_SMOKE_SECONDS = 60.0
_SMOKE_PLACES = 50
_MANY = 10
"""Documents from which on losing more than half of them at once is taken for a mistake."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did to one source's documents."""

    source: str
    at: datetime
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """Uri and reason; what the index held of such a document before stays."""
    withheld: tuple[tuple[str, str], ...] = ()
    """Uri and reason of what must not be shown, a draft for one; what the index held of it is removed."""
    notes: tuple[tuple[str, str], ...] = ()
    """Uri of a document that was read and what its author should look at."""
    failure: str = ""
    """Why nothing was removed: the source was not listed to its end, or lost too much at once; empty otherwise."""
    chunks: int = 0
    """Chunks of the documents that were added or changed."""
    embedded: int = 0
    """Chunks that were embedded; none in a dry run."""
    embedding_seconds: float = 0.0
    """How much of the time embedding took, loading the model counted."""
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Tell whether the index holds now what the source holds."""
        return not self.failure

    def summary(self) -> str:
        """Return what happened in one line, and lines for the failure, for what was skipped or kept out and for what to look at."""
        did = "would be " if self.dry_run else ""
        counts = (
            f"{self.source}: {did}{len(self.added)} added, {len(self.changed)} changed, "
            f"{len(self.removed)} removed, {len(self.skipped)} skipped, {len(self.unchanged)} unchanged "
            f"({self.chunks} chunks, {self.seconds:.1f} s)"
        )
        failure = [f"  nothing was removed: {self.failure}"] if self.failure else []
        skipped = [f"  skipped {uri}: {reason}" for uri, reason in self.skipped]
        withheld = [f"  kept out {uri}: {reason}" for uri, reason in self.withheld]
        noted = [f"  note {note}" for note in self.noted()]
        return "\n".join([counts, *failure, *_few(skipped), *_few(withheld), *_few(noted)])

    def noted(self) -> tuple[str, ...]:
        """Return each note once, with the first of the documents that it is about."""
        about: dict[str, list[str]] = {}
        for uri, note in self.notes:
            about.setdefault(note, []).append(uri)
        return tuple(
            f"{uris[0]}{f' and {len(uris) - 1} more' if uris[1:] else ''}: {note}"
            for note, uris in about.items()
        )

    def lines(self) -> tuple[str, ...]:
        """Return the summary's lines and the name of every document that was added, changed or removed."""
        named = [
            f"  {did} {uri}"
            for did, uris in (("added", self.added), ("changed", self.changed), ("removed", self.removed))
            for uri in uris
        ]
        return (*self.summary().split("\n"), *named)


def _few(lines: Sequence[str]) -> Sequence[str]:
    return lines if len(lines) <= _LINES else [*lines[:_LINES], f"  and {len(lines) - _LINES} more"]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents with their chunks' vectors, or why one of them has none."""

    documents: Sequence[tuple[Document, Sequence[Chunk], Vectors | Exception]]
    embedded: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Run:
    """One sync under way: what it did so far, the documents that are cut, and those that are embedded meanwhile."""

    index: Writable
    embedder: Embedder
    known: Mapping[str, str]
    dry_run: bool
    beside: Executor
    """Of one thread, which embeds and nothing else: everything is cut and written by the thread that began the run."""
    stopped: threading.Event = field(default_factory=threading.Event)
    waiting: dict[str, tuple[Document, list[Chunk]]] = field(default_factory=dict)
    embedding: Future[_Batch] | None = None
    handed: int = 0
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    chunks: int = 0
    embedded: int = 0
    embedding_seconds: float = 0.0

    def add(self, document: Document, chunks: list[Chunk]) -> None:
        """Take a document; when enough of them wait, have them embedded, and write those before."""
        self.notes += [(document.uri, note) for note in document.notes]
        self.waiting[document.uri] = (document, chunks)
        waiting = sum(len(of) for _, of in self.waiting.values())
        if waiting >= min(_BATCH_CHUNKS, max(_FIRST_CHUNKS, self.handed)):
            self._hand_over(waiting)

    def finish(self) -> None:
        """Embed and write all that waits."""
        self._hand_over(0)
        self._hand_over(0)

    def _hand_over(self, chunks: int) -> None:
        """Have what waits embedded, and meanwhile write what is embedded, document by document."""
        before = self.embedding.result() if self.embedding else _Batch(())
        waiting, self.waiting = list(self.waiting.values()), {}
        self.embedding = self.beside.submit(self._embedded, waiting) if waiting else None
        self.handed += chunks
        self.embedded += before.embedded
        self.embedding_seconds += before.seconds
        for document, of, vectors in before.documents:
            if isinstance(vectors, Exception):
                self.skipped[document.uri] = _reason(vectors, document.uri)
            else:
                self._write(document, of, vectors)

    def _embedded(self, waiting: Sequence[tuple[Document, Sequence[Chunk]]]) -> _Batch:
        """Embed documents in one go; raises ModelError. Changes nothing of the run: another thread is at work on that."""
        began = time.monotonic()
        embedded = 0

        def embed(chunks: Sequence[Chunk]) -> Vectors:
            nonlocal embedded
            vectors = np.zeros((len(chunks), self.embedder.dimensions), np.float32)
            if self.dry_run:
                return vectors
            # Texts of about one length together: what is embedded at once costs as much as its longest text each.
            order = sorted(range(len(chunks)), key=lambda n: len(chunks[n].text))
            for start in range(0, len(order), _AT_ONCE):
                some = order[start : start + _AT_ONCE]
                if self.stopped.is_set():
                    raise CancelledError
                vectors[some] = self.embedder.embed([chunks[n].text for n in some], kind="passage")
            embedded += len(chunks)
            return vectors

        def alone(chunks: Sequence[Chunk]) -> Vectors | Exception:
            try:
                return embed(chunks)
            except Exception as error:
                return error

        found: list[Vectors | Exception] = []
        try:
            vectors = embed([piece for _, chunks in waiting for piece in chunks])
        except ModelError:
            raise
        except Exception:
            # One of them is poison: embed them one by one to find out which.
            found += (alone(chunks) for _, chunks in waiting)
        else:
            ends = np.cumsum([len(chunks) for _, chunks in waiting])
            found += np.split(vectors, ends[:-1])
        documents = [(*of, vectors) for of, vectors in zip(waiting, found, strict=True)]
        return _Batch(documents, embedded, time.monotonic() - began)

    def _write(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        if not self.dry_run:
            try:
                self.index.replace(document, chunks, vectors)
            except (UnicodeError, DocumentRefused) as error:
                self.skipped[document.uri] = _reason(error, document.uri)
                return
        (self.changed if document.uri in self.known else self.added).append(document.uri)
        self.chunks += len(chunks)

    def remove(self, uris: Iterable[str]) -> None:
        """Take documents out of the index."""
        for uri in uris:
            if not self.dry_run:
                self.index.delete(uri)
            self.removed.append(uri)


def sync(
    source: Source,
    index: Writable,
    embedder: Embedder,
    to_document: ToDocument,
    chunk_settings: ChunkSettings,
    *,
    now: datetime,
    on_progress: Progress | None = None,
    dry_run: bool = False,
    anew: bool = False,
    allow_removal: bool = False,
) -> SyncReport:
    """Bring `index` up to date with one source and return what was done.

    A document is embedded before anything of it is written, and written in one step with its revision, so that a run
    that is stopped anywhere is finished by the next one. One that cannot be read, cut or embedded is skipped by name, and
    stays as the index held it; one that must not be shown is kept out by name, and leaves the index.
    Documents leave the index only after the source was listed to its end, and only this source's; a source that came up
    empty, or lost more than half of many documents, keeps them all unless `allow_removal`. A dry run reads and cuts, but
    embeds and writes nothing; `anew` it does so as if nothing were indexed. Raises IndexingError when the index cannot be read or written and ModelError when nothing can be embedded.
    """
    began = time.monotonic()
    # Whatever ends the run, nothing of it is at work any more when it has ended.
    with ThreadPoolExecutor(1, "embedding") as beside:
        run = _Run(index, embedder, {} if anew else index.revisions(source.name), dry_run, beside)
        try:
            report = _sync(run, source, to_document, chunk_settings, now, on_progress, allow_removal)
        finally:
            run.stopped.set()
    return replace(report, seconds=time.monotonic() - began)


def _sync(
    run: _Run,
    source: Source,
    to_document: ToDocument,
    settings: ChunkSettings,
    now: datetime,
    on_progress: Progress | None,
    allow_removal: bool,
) -> SyncReport:
    count = lru_cache(_COUNTED_TEXTS)(run.embedder.count)
    listed: set[str] = set()
    unchanged: list[str] = []
    gone: set[str] = set()
    failure = "the listing ended before it was whole"
    changes = _listing(source, run.known)
    while True:
        # Only the source's own errors are its failure; ours, such as a full disk, end the run.
        try:
            change = next(changes, None)
        except Exception as error:
            failure = _reason(error, source.name)
            break
        match change:
            case None:
                break
            case Complete():
                failure = ""
                continue
            case Unchanged(uri):
                unchanged.append(uri)
            case Gone(uri):
                gone.add(uri)
            case Failed(uri, reason):
                run.skipped[uri] = reason
            case Changed(uri):
                try:
                    document = _document(change, source.name, to_document)
                    limit = min(settings.max_tokens, run.embedder.max_tokens)
                    run.add(document, chunk(document, count, limit, settings.overlap_tokens))
                except (IndexingError, ModelError):
                    raise
                except DocumentWithheld as error:
                    # It says so itself, so that neither the end of the listing nor how many go is waited for.
                    run.withheld[uri] = str(error)
                    run.remove([uri] if uri in run.known else [])
                except Exception as error:
                    # A parser may fail in any way: one poison document is skipped by name, the others are read.
                    run.skipped[uri] = _reason(error, uri)
            case _:
                assert_never(change)
        listed.add(uri)
        if on_progress:
            on_progress(len(listed), uri)
    run.finish()
    if not failure:
        known = [uri for uri in run.known if uri not in run.withheld]
        leaving = [uri for uri in known if uri in gone or uri not in listed]
        left = len(known) - len(leaving) + len(run.added)
        if _lost(len(known), len(leaving), left) and not allow_removal:
            failure = (
                f"{len(leaving)} of its {len(known)} documents are no longer there; look whether the folder is "
                f"mounted, and if they are meant to go, run `twohop index --allow-removal`"
            )
        else:
            run.remove(leaving)
    if not run.dry_run:
        run.index.flush()
    return SyncReport(
        source=source.name,
        at=now,
        added=tuple(run.added),
        changed=tuple(run.changed),
        removed=tuple(run.removed),
        unchanged=tuple(unchanged),
        skipped=tuple(run.skipped.items()),
        withheld=tuple(run.withheld.items()),
        notes=tuple(run.notes),
        failure=failure,
        chunks=run.chunks,
        embedded=run.embedded,
        embedding_seconds=run.embedding_seconds,
        dry_run=run.dry_run,
    )


def _lost(known: int, leaving: int, left: int) -> bool:
    """Tell whether a source lost too much: a mount that is not there yet lists as an empty folder, and to its end."""
    return leaving > 0 and (not left or (known >= _MANY and 2 * left < known))


def forget(source: str, index: Writable, *, now: datetime) -> SyncReport:
    """Take all documents of a source out of the index."""
    began = time.monotonic()
    removed = tuple(index.revisions(source))
    for uri in removed:
        index.delete(uri)
    index.flush()
    return SyncReport(source, now, removed=removed, seconds=time.monotonic() - began)


def rebuild(
    sources: Iterable[tuple[Source, ToDocument]],
    index: SearchIndex,
    embedder: Embedder,
    chunk_settings: ChunkSettings,
    *,
    now: datetime,
    verify: Callable[[Generation, Collection[str]], None] = lambda *_: None,
    watch: Watch = UNWATCHED,
    may_shrink: Collection[str] = (),
    run: str = "",
) -> tuple[SyncReport, ...]:
    """Index every source into a new generation and make it the live one; until then the old one answers.

    Every source is listed twice, so that what changed while the first listing was embedded is in the new generation too.
    Before the swap it must hold each document that was read, each arm must find what was put into it, and `verify`, which
    may search it, is told what must not be shown and raises to refuse it, must be content. A source that is not listed to its end, one that lost too
    much against the live generation and is not named in `may_shrink`, a refusal or any other error leaves the live
    generation as it is; ours are IndexingErrors. `watch` is asked a last time right before the swap. `run` is the id of
    the index run, if it is one.
    """
    pairs = tuple(sources)
    generation = index.rebuild(run)
    try:
        writer = _Witnessed(generation)
        reports: list[SyncReport] = []
        for stage in ("building", "listing again"):
            for source, to_document in pairs:
                watch.stage(f"{stage} {source.name}")
                report = sync(
                    source,
                    writer,
                    embedder,
                    to_document,
                    chunk_settings,
                    now=now,
                    on_progress=watch.progress,
                    allow_removal=True,
                )
                _refuse(report.source, report.failure)
                reports.append(report)
        half = len(pairs)
        joined = tuple(_joined(*two) for two in zip(reports[:half], reports[half:], strict=True))
        watch.stage("checking")
        for report in joined:
            _check_count(report, generation)
            if report.source not in may_shrink:
                _refuse(report.source, _shrunk(report, index, generation))
        writer.check()
        verify(generation, {uri for report in joined for uri, _ in report.withheld})
        watch.stage("swapping")
        generation.publish()
    except BaseException:
        generation.discard()
        raise
    return joined


class _Witnessed:
    """Writes to a generation and keeps a few chunks to search for afterwards."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._kept: dict[str, tuple[Chunk, Vectors]] = {}
        self._coded = False

    def revisions(self, source: str) -> Mapping[str, str]:
        return self._generation.revisions(source)

    def replace(self, document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        self._generation.replace(document, chunks, vectors)
        self._kept.pop(document.uri, None)
        for piece, vector in zip(chunks, vectors, strict=True):
            coded = bool(codes(piece.body))
            if len(self._kept) < _WITNESSES or (coded and not self._coded):
                self._coded = self._coded or coded
                self._kept[document.uri] = (piece, vector)
                return

    def delete(self, uri: str) -> None:
        self._generation.delete(uri)
        self._kept.pop(uri, None)

    def flush(self) -> None:
        self._generation.flush()

    def check(self) -> None:
        """Raise IndexingError where an arm does not find what was written."""
        for piece, vector in self._kept.values():
            found = self._generation.rank(
                piece.text,
                vector,
                _SMOKE_PLACES,
                Where(piece.readers, piece.kind),
                time.monotonic() + _SMOKE_SECONDS,
            )
            wanted: dict[Arm, bool] = {
                "lexical": bool(words(piece.text)),
                "dense": bool(np.any(vector)),
                "codes": bool(codes(piece.body)),
            }
            silent = [arm for arm, can in wanted.items() if can and not found.arms.get(arm)]
            if silent or found.failed:
                why = "; ".join(f"{arm}: {reason}" for arm, reason in found.failed.items())
                raise IndexingError(
                    f"the index was not rebuilt, because the new one does not find {piece.id!r} by "
                    f"{', '.join(silent) or 'every arm'}{f' ({why})' if why else ''}; run `twohop index --rebuild` again"
                )


def _check_count(report: SyncReport, generation: Generation) -> None:
    """Raise IndexingError where a generation does not hold what was read for it."""
    held = set(generation.revisions(report.source))
    lacking = sorted(set(report.added) - held)
    if lacking or len(held) != len(report.added):
        raise IndexingError(
            f"the index was not rebuilt, because the new one holds {len(held)} documents of source {report.source!r} "
            f"and {len(report.added)} were read{f'; it lacks {lacking[0]!r}' if lacking else ''}; "
            f"run `twohop index --rebuild` again"
        )


def _refuse(source: str, failure: str) -> None:
    if failure:
        raise IndexingError(
            f"the index was not rebuilt, because of source {source!r} ({failure}); "
            f"mend that and run `twohop index --rebuild` again"
        )


def _shrunk(report: SyncReport, index: SearchIndex, generation: Generation) -> str:
    """Return why a source looks as if it were not all there, measured against the live generation."""
    try:
        before = index.revisions(report.source).keys() - {uri for uri, _ in report.withheld}
    except IndexingError:
        # Of another identity, or damaged: what it held cannot be told.
        return ""
    after = generation.revisions(report.source)
    leaving = len(before - after.keys())
    if not _lost(len(before), leaving, len(after)):
        return ""
    return (
        f"{leaving} of its {len(before)} documents are no longer there; look whether the folder is mounted, "
        f"and if they are meant to go, add --allow-removal"
    )


def _joined(first: SyncReport, second: SyncReport) -> SyncReport:
    """Return both listings of a rebuild as one: everything in the new generation was added by it."""
    gone = set(second.removed)
    return replace(
        second,
        added=(*(uri for uri in first.added if uri not in gone), *second.added),
        changed=(),
        removed=(),
        unchanged=(),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        chunks=first.chunks + second.chunks,
        embedded=first.embedded + second.embedded,
        embedding_seconds=first.embedding_seconds + second.embedding_seconds,
        seconds=first.seconds + second.seconds,
    )


def _listing(source: Source, known: Mapping[str, str]) -> Iterator[Change]:
    """List a source; whatever it raises, it raises at `next`."""
    yield from source.changes(known)


def _document(changed: Changed, source: str, to_document: ToDocument) -> Document:
    """Read a document and refuse one that would be written in another one's place."""
    if not changed.uri.startswith(f"{source}:"):
        raise SourceError(f"its uri does not begin with {f'{source}:'!r}; mend the source")
    document = to_document(changed)
    expected = (changed.uri, source, changed.revision)
    if (document.uri, document.source, document.revision) != expected:
        raise SourceError(f"it was read as {document.uri!r} of {document.source!r}; mend the source")
    return document


def _reason(error: Exception, name: str) -> str:
    """Return the text for a person; what nobody wrote for a person is logged with its traceback."""
    if isinstance(error, TwohopError):
        return str(error)
    _log.error("%s: %s", name, error, exc_info=error)
    return f"{type(error).__name__}: {error}"
