"""The composition root: build(settings) -> Desk; it constructs everything but the Slack side."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

from bot import golden, pipeline
from bot.chat import OpenAIModel
from bot.config import Settings
from bot.offline import OfflineModel
from bot.parts import Parts
from bot.retrieve import Remembered, Retriever
from bot.store import Store, Turn
from bot.talk import Talk
from bot.types import Answer, Asker, ChatModel, Gazetteer, Limits, Mode, Question, Step
from bot.unread import Unread
from ingest.chunk import CHUNKER_VERSION
from ingest.dates import Calendar
from ingest.embed import Embedder, embedder_for
from ingest.errors import ConfigError, IndexAway, IndexingError
from ingest.index import Generation, GenerationInfo, SearchIndex
from ingest.index.sqlite import SqliteIndex, identity
from ingest.parse import to_document
from ingest.rules import RULES_VERSION
from ingest.runs import Runs
from ingest.sources import Source, roots
from ingest.sources.folder import FolderSource
from ingest.sources.roots import Root
from ingest.sources.tickets import TicketSource, ticket_document
from ingest.sync import UNWATCHED, SyncReport, ToDocument, Watch, forget, rebuild, sync
from ingest.tickets import ImportReport, TicketStore
from ingest.types import MEMBERS, Where
from ingest.words import storable

T = TypeVar("T")
MayBeAway = Literal["index", "tickets"]

_log = logging.getLogger(__name__)


class Executor:
    """One kind of synchronous work on its own threads."""

    def __init__(self, name: str, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def __call__(self, work: Callable[[], T]) -> T:
        """Run `work` on a thread of this executor."""
        # What is logged there is about the same question as here.
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: context.run(work))

    def close(self) -> None:
        """Wait for what runs and release the threads."""
        self._pool.shutdown()


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer as it was kept."""

    turn: Turn
    answer: Answer


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did, and the recall of each golden question in the new generation."""

    reports: tuple[SyncReport, ...]
    recall: Mapping[str, float]
    compared: bool
    """False where nothing was known of the golden questions before, or there are none."""


class Desk:
    """Everything that answers: the pipeline's parts, the stores, the index."""

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
        index: SearchIndex | None = None,
        *,
        for_rebuild: bool = False,
        may_be_away: Collection[MayBeAway] = (),
    ) -> None:
        self.settings = settings
        self.chat = chat_model(settings) if model is None else None
        self.zone = ZoneInfo(settings.calendar.zone)
        self.embedder = embedder or embedder_for(settings.embedding)
        data = settings.data
        self.store = Store(settings.database_url or f"sqlite:///{data / 'state.db'}")
        self.tickets = ticket_store(settings, may_be_away="tickets" in may_be_away)
        self._roots_file = _roots_file(settings)
        self.away = [self.tickets.away] if self.tickets.away else []
        """What did not answer at the start, for a person."""
        try:
            self.index = index or search_index(settings, self.embedder, for_rebuild)
        except IndexAway as error:
            if "index" not in may_be_away:
                raise
            self.away.append(str(error))
            self.index = search_index(settings, self.embedder, for_rebuild, look=False)
        self._titles: tuple[str, ...] = ()
        self._store_run = Executor("store", 2)
        # A company's own database may be slow; an INSERT of ours does not wait for it.
        self._tickets_run = Executor("tickets", 2)
        self._compute_run = Executor("compute", 2)
        self.remembered = Remembered(self.embedder)
        runs = Runs(self.store.engine, "", settings.sync.lease_seconds)
        self.unread = Unread(runs, self.index, self.sources, self.everyone, self.zone)
        fallback = OfflineModel(self.remembered, self.names, self._compute_run)
        limits = settings.limits
        self.parts = Parts(
            retriever=Retriever(
                self.index,
                self.remembered,
                settings.retrieval.candidates,
                settings.elasticsearch.timeout_seconds if settings.index == "elastic" else inf,
            ),
            tickets=self.tickets,
            model=model or self.chat or fallback,
            fallback=fallback,
            names=self.names,
            unread=self._not_read,
            calendar=Calendar.from_settings(settings.calendar),
            retrieval=settings.retrieval,
            words=settings.words,
            limits=Limits(limits.turns, limits.searches, limits.tokens, limits.seconds),
            compute=self._compute_run,
            store=self._tickets_run,
            company=settings.company,
            talk=Talk(self.remembered).meta,
        )

    def names(self) -> Gazetteer:
        """Return the names that the tickets and documents know now."""
        known = self.tickets.known()
        values = dict(known.values)
        status, priority = values.pop("status", ()), values.pop("priority", ())
        return Gazetteer(
            facets=values,
            status=status,
            priority=priority,
            customers=known.customers,
            assignees=known.assignees,
            titles=self._known_titles(),
            actions=(*self.tickets.settings.actions, *self.tickets.settings.events),
            synonyms=self.settings.words.synonyms,
            tickets_as_of=known.as_of,
        )

    def _known_titles(self) -> tuple[str, ...]:
        """Return the documents' titles, the last known ones while the index does not answer.

        They only help to choose what to search next, so that nobody waits for them, nor goes without an answer about
        tickets, for an index that is down.
        """
        if self.parts.retriever.down:
            return self._titles
        try:
            documents = self.parts.retriever.documents(Where(readers=self.everyone()))
        except IndexingError as error:
            _log.warning("the documents could not be listed, their last known titles are used: %s", error)
        else:
            self._titles = tuple(document.title for document in documents)
        return self._titles

    def _not_read(self) -> str:
        # An index that is down is not waited for: what it does not hold is not the matter then.
        return "" if self.parts.retriever.down else self.unread()

    def everyone(self) -> frozenset[str]:
        """Return every reader label that the settings know."""
        return frozenset({MEMBERS, *self.settings.access.groups, *self.tickets.settings.readers})

    def asker(self, user: str = "") -> Asker:
        """Return who asks, with their reader labels; without a name it is the terminal's user, who is in support."""
        groups = self.settings.access.groups
        labels = {label for label, members in groups.items() if user in members}
        if not user or user == self.settings.access.terminal_user:
            labels |= {"support", *self.tickets.settings.readers}
        return Asker(user or self.settings.access.terminal_user, frozenset({MEMBERS, *labels}))

    async def answer(
        self,
        text: str,
        *,
        asker: Asker | None = None,
        now: datetime | None = None,
        after: str = "",
        mode: Mode = "gated",
        observe: Callable[[Step], None] = lambda _: None,
    ) -> Asked:
        """Answer one question and keep the turn."""
        began = time.monotonic()
        asker = asker or self.asker()
        history = await self._store_run(lambda: self.store.thread(after, asker.readers)) if after else ()
        question = Question(storable(text), asker, now or datetime.now(self.zone), history)
        answer = await pipeline.answer(question, self.parts, mode, observe)
        ms = round((time.monotonic() - began) * 1000)
        turn = await self._store_run(lambda: self.store.keep(question, answer, mode, ms, after=after))
        return Asked(turn, answer)

    def sources(self) -> tuple[str, ...]:
        """Return the names of everything that is indexed: folders, then the tickets."""
        return source_names(self.settings)

    def sync_documents(
        self,
        named: Sequence[Path] = (),
        *,
        only: Collection[str] = (),
        allow_removal: bool = False,
        watch: Watch = UNWATCHED,
    ) -> tuple[SyncReport, ...]:
        """Bring the index up to date with the folders `named`, which are remembered, and return a report for each.

        Without `named` all folders are read, or `only` those of these names; where all are, what the settings no longer
        name leaves the index once all of them were read to their end. A folder that lost most of its documents keeps
        them unless `allow_removal`.
        """
        wanted = indexed_roots(self.settings, named)
        kept, dropped = self._remember(wanted)
        chosen = roots.covering(wanted, named) if named else wanted
        reports = [
            self._sync(*self._documents(root), allow_removal=allow_removal, watch=watch)
            for root in chosen
            if not only or root.name in only
        ]
        if not named and not only and all(report.complete for report in reports):
            now = datetime.now(self.zone)
            # After a rollback the index may hold folders that were forgotten since.
            held = {document.source for document in self.index.documents(Where(self.everyone()))}
            strangers = (held | {root.name for root in dropped}) - {root.name for root in wanted}
            reports += [forget(name, self.index, now=now) for name in sorted(strangers)]
            roots.write(self._roots_file, kept)
        return tuple(reports)

    def preview(
        self, named: Sequence[Path] = (), *, only: Collection[str] = (), rebuild: bool = False
    ) -> tuple[SyncReport, ...]:
        """Tell what a sync or a rebuild would do, without doing it; ticket files are not imported for it."""
        wanted = indexed_roots(self.settings, named)
        chosen = roots.covering(wanted, named) if named and not rebuild else wanted
        pairs = [*map(self._documents, chosen), self._tickets()]
        return tuple(
            sync(
                source,
                self.index,
                self.embedder,
                read,
                self.settings.chunks,
                now=datetime.now(self.zone),
                dry_run=True,
                anew=rebuild,
                allow_removal=True,
            )
            for source, read in pairs
            if not only or source.name in only
        )

    def rebuild(
        self,
        named: Sequence[Path] = (),
        *,
        allow_removal: bool = False,
        earlier: Mapping[str, float] = MappingProxyType({}),
        watch: Watch = UNWATCHED,
        run: str = "",
    ) -> Rebuilt:
        """Index all folders, those `named` now among them, and the tickets into a new generation, and swap it in.

        Until the swap the old generation answers; where anything fails it goes on, and IndexingError is raised. With
        golden questions the new one must find as much as the live one, or as `earlier` (recall by question id) where
        the live one is of another identity. `run` is the id of the index run, if it is one.
        """
        wanted = indexed_roots(self.settings, named)
        kept, _ = self._remember(wanted)
        tickets = self._tickets()
        # How many tickets are searched is a setting; their table stays.
        may_shrink = {tickets[0].name, *(root.name for root in wanted if allow_removal)}
        questions = self._golden()
        recall: dict[str, float] = {}
        compared = False

        def verify(generation: Generation) -> None:
            nonlocal compared
            recall.update(self._recalls(questions, generation))
            held = [generation.revisions]
            try:
                before: Mapping[str, float] = self._recalls(questions, self.index)
                held.append(self.index.revisions)
            except IndexingError:
                # Of another identity, or damaged: it cannot be asked any more.
                before = earlier
            compared = golden.compare(questions, before, recall, self.settings.sync.golden_margin)
            golden.refuse_unknown(questions, *held)

        reports = rebuild(
            [*map(self._documents, wanted), tickets],
            self.index,
            self.embedder,
            self.settings.chunks,
            now=datetime.now(self.zone),
            verify=verify,
            watch=watch,
            may_shrink=may_shrink,
            run=run,
        )
        roots.write(self._roots_file, kept)
        return Rebuilt(reports, recall, compared)

    def golden_recall(self) -> dict[str, float]:
        """Return the recall of each golden question in the live index; nothing without golden questions."""
        return self._recalls(self.golden_questions(), self.index)

    def golden_questions(self) -> Sequence[golden.Golden]:
        """Return the golden questions; raises ConfigError where one names a document that is not in the live index."""
        questions = self._golden()
        golden.refuse_unknown(questions, self.index.revisions)
        return questions

    def _golden(self) -> Sequence[golden.Golden]:
        file = self.settings.sync.golden
        return golden.read(file) if file else ()

    def _recalls(self, questions: Sequence[golden.Golden], index: golden.Ranks) -> dict[str, float]:
        return golden.recalls(questions, index, self.embedder, self.settings.retrieval.candidates)

    def _remember(self, wanted: Sequence[Root]) -> tuple[list[Root], list[Root]]:
        """Remember the folders to index, and return them and those that are left out from now on.

        The latter are remembered too until their documents have left the index.
        """
        before = roots.read(self._roots_file)
        kept = [root for root in wanted if root in before or root.path.exists()]
        names = {root.name for root in kept}
        dropped = [root for root in before if root.name not in names]
        roots.write(self._roots_file, [*kept, *dropped])
        return kept, dropped

    def forget_documents(self, path: Path) -> SyncReport:
        """Take a folder that was indexed by hand out of the index; raises ConfigError where it is not one."""
        known = roots.read(self._roots_file)
        root = roots.find(known, path)
        if self.settings.sources.paths and not root.by_hand and root in indexed_roots(self.settings):
            raise ConfigError(
                f"{str(path)!r} is named by sources.paths; take it out there, then `twohop index`"
            )
        report = forget(root.name, self.index, now=datetime.now(self.zone))
        roots.write(self._roots_file, [other for other in known if other != root])
        return report

    def _documents(self, root: Root) -> tuple[Source, ToDocument]:
        """Return a folder as a source, and how its documents are read."""
        sources = self.settings.sources
        link = sources.link
        if link and root.name != roots.FIRST:
            link = f"{link}{'' if link.endswith(('/', '=', '#')) else '/'}{root.name}/"
        sources = sources.model_copy(update={"paths": (root.path,), "link": link})
        return FolderSource(sources, root.name), lambda changed: to_document(changed, sources, root.name)

    def _tickets(self) -> tuple[Source, ToDocument]:
        return TicketSource(lambda: self.tickets.all_for_index(datetime.now(self.zone))), ticket_document

    def _sync(self, source: Source, read: ToDocument, *, allow_removal: bool, watch: Watch) -> SyncReport:
        watch.stage(f"reading {source.name}")
        return sync(
            source,
            self.index,
            self.embedder,
            read,
            self.settings.chunks,
            now=datetime.now(self.zone),
            on_progress=watch.progress,
            allow_removal=allow_removal,
        )

    def sync_tickets(self, watch: Watch = UNWATCHED) -> SyncReport:
        """Bring the similarity index up to date with the ticket table."""
        # How many tickets are searched is a setting; their table stays.
        return self._sync(*self._tickets(), allow_removal=True, watch=watch)

    def import_tickets(
        self, path: Path, *, anew: bool = True, replace: bool = False, allow_removal: bool = False
    ) -> ImportReport:
        """Import a ticket file; unless `anew`, only where somebody touched it since.

        With `replace` the file is the truth of its own rows: what it no longer has goes, most of it only with
        `allow_removal`.
        """
        return self.tickets.import_csv(
            path, datetime.now(self.zone), anew=anew, replace=replace, allow_removal=allow_removal
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on an event loop of its own, and leave nothing of the loop open."""

        async def whole() -> T:
            try:
                return await work
            finally:
                await self.release()

        return asyncio.run(whole())

    async def release(self) -> None:
        """Close what belongs to the running event loop; whoever starts a loop calls it before the loop ends."""
        if self.chat is not None:
            await self.chat.close()

    def close(self) -> None:
        """Wait for what runs and release everything."""
        self._compute_run.close()
        self._store_run.close()
        self._tickets_run.close()
        self.index.close()
        self.tickets.close()
        self.store.close()


def indexed_roots(settings: Settings, named: Sequence[Path] = ()) -> tuple[Root, ...]:
    """Return the folders that belong to the index, with those that are named now."""
    return roots.merged(roots.read(_roots_file(settings)), settings.sources.paths, named)


def search_index(
    settings: Settings, embedder: Embedder, for_rebuild: bool = False, *, look: bool = True
) -> SearchIndex:
    """Open the index that the settings name; raises IndexAway, IdentityMismatch or another IndexingError.

    `for_rebuild` does not mind another identity; without `look` nobody asks its server for anything yet.
    """
    chunks = settings.chunks
    # The default gives way to a smaller model; what somebody wrote is not changed in silence.
    if "max_tokens" in chunks.model_fields_set and chunks.max_tokens > embedder.max_tokens:
        raise ConfigError(
            f"setting chunks.max_tokens = {chunks.max_tokens} is more than the {embedder.max_tokens} tokens that the "
            f"embedding model {embedder.name!r} sees; set at most {embedder.max_tokens}"
        )
    sizes = f"{settings.chunks.max_tokens}/{settings.chunks.overlap_tokens}"
    cut = f"{CHUNKER_VERSION}.{RULES_VERSION} {sizes}"
    keep = settings.sync.keep_generations
    if settings.index == "elastic":
        from ingest.index import elastic

        name = elastic.identity(embedder.name, embedder.dimensions, cut, settings.elasticsearch.language)
        return elastic.ElasticIndex(
            settings.elasticsearch,
            name,
            embedder.dimensions,
            for_rebuild=for_rebuild,
            look=look,
            keep=keep,
            lease_seconds=settings.sync.lease_seconds,
        )
    return SqliteIndex(
        settings.data / "index",
        identity(embedder.name, embedder.dimensions, cut),
        for_rebuild=for_rebuild,
        keep=keep,
    )


def ticket_store(settings: Settings, *, may_be_away: bool = False) -> TicketStore:
    """Open the tickets: a company's own table or view, else the files' table in `data`; raises ConfigError."""
    url, tickets = settings.tickets_database_url, settings.tickets
    if url and not tickets.table:
        raise ConfigError(
            "TICKETS_DATABASE_URL is set, but not which table or view of it holds the tickets; "
            'name it in twohop.toml, [tickets] table = "…"'
        )
    if tickets.table and not url:
        raise ConfigError(
            f"[tickets] table names {tickets.table!r}, but TICKETS_DATABASE_URL is not set; set it, or take the table out"
        )
    if url and tickets.csv:
        raise ConfigError(
            f"[tickets] csv names {str(tickets.csv[0])!r}, but the tickets are read from TICKETS_DATABASE_URL, where "
            "Twohop writes nothing; take one of the two out"
        )
    return TicketStore(
        url or f"sqlite:///{settings.data / 'tickets.db'}",
        tickets,
        settings.calendar,
        may_be_away=may_be_away,
    )


def generations(settings: Settings) -> tuple[GenerationInfo, ...]:
    """Return the generations of the index, newest first; nothing where nothing is indexed."""
    if settings.index == "elastic":
        with search_index(settings, embedder_for(settings.embedding), for_rebuild=True) as held:
            return held.generations()
    # Loads no model: whose generation it is does not matter here.
    folder = settings.data / "index"
    if not (folder / "current").is_file():
        return ()
    with SqliteIndex(folder, "", for_rebuild=True) as index:
        return index.generations()


def source_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of everything that belongs to the index: folders, then the tickets."""
    return (*(root.name for root in indexed_roots(settings)), TicketSource.name)


def _roots_file(settings: Settings) -> Path:
    return settings.data / "folders.json"


def chat_model(settings: Settings) -> OpenAIModel | None:
    """Return the language model that the settings name, None without a name; raises ConfigError."""
    if not settings.model:
        return None
    return OpenAIModel(
        settings.model,
        base_url=settings.openai_base_url,
        api_key=settings.openai_api_key,
        context_tokens=settings.chat.context_tokens,
        at_once=settings.chat.at_once,
    )


def build(
    settings: Settings,
    embedder: Embedder | None = None,
    model: ChatModel | None = None,
    index: SearchIndex | None = None,
    *,
    for_rebuild: bool = False,
    may_be_away: Collection[MayBeAway] = (),
) -> Desk:
    """Construct the desk from its settings; raises ConfigError or IdentityMismatch where something cannot run.

    What is given is used in place of what the settings name. `for_rebuild` does not look at what is indexed, so that an index of another identity or a damaged one can be rebuilt.
    What `may_be_away` and does not answer is left out, and `Desk.away` says so; what is wrong with a setting is raised all the same.
    """
    return Desk(settings, embedder, model, index, for_rebuild=for_rebuild, may_be_away=may_be_away)
