"""Sync: what changes the index, what never does, and what the report says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.config import ChunkSettings, SourceSettings
from ingest.embed import TextKind, Vectors
from ingest.errors import DocumentWithheld, IndexingError, ModelError, SourceError, UnreadableDocument
from ingest.index import Generation
from ingest.index.sqlite import SqliteIndex
from ingest.parse import to_document as parse_document
from ingest.sources import Change, Changed, Complete, Failed, Gone, Unchanged
from ingest.sources.folder import FolderSource
from ingest.sources.tickets import TicketSource, ticket_document
from ingest.sync import SyncReport, rebuild, sync
from ingest.types import Document, Ticket, Where
from tests.fakes import HashingEmbedder

NOW = datetime(2026, 9, 26, 12, tzinfo=UTC)
MEMBERS = Where(frozenset({"members"}))
SETTINGS = ChunkSettings()


class CountingEmbedder(HashingEmbedder):
    """Keeps what it was asked to embed; a text with "poison" in it cannot be embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        if any("poison" in text for text in texts):
            raise ValueError("poison")
        self.texts.extend(texts)
        return super().embed(texts, kind)


class Script:
    """A Source that plays a list of changes; an exception in it is raised at its place."""

    def __init__(self, *script: Change | Exception, name: str = "docs") -> None:
        self.name = name
        self.script = script

    def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
        for change in self.script:
            if isinstance(change, Exception):
                raise change
            if isinstance(change, Changed) and known.get(change.uri) == change.revision:
                yield Unchanged(change.uri)
            else:
                yield change


def page(uri: str, text: str, revision: str = "1") -> Changed:
    return Changed(uri, revision, text.encode(), "text/markdown", f"/{uri}", uri.partition(":")[2])


def read(changed: Changed, readers: frozenset[str] = frozenset({"members"})) -> Document:
    text = changed.content.decode()
    if "draft" in text:
        raise DocumentWithheld("draft: true; write draft: false")
    if "unreadable" in text:
        raise UnreadableDocument("it cannot be read; mend it")
    if "crash" in text:
        raise KeyError("bug")
    source = changed.uri.partition(":")[0]
    return Document(changed.uri, source, changed.revision, "Page", text, changed.link, readers=readers)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with SqliteIndex(tmp_path / "index", "fake@64") as index:
        yield index


Run = Callable[..., SyncReport]


@pytest.fixture
def run(index: SqliteIndex, embedder: CountingEmbedder) -> Run:
    def run(*script: Change | Exception, name: str = "docs", **more: Any) -> SyncReport:
        to_document = more.pop("to_document", read)
        source = Script(*script, name=name)
        return sync(source, index, embedder, to_document, SETTINGS, now=NOW, **more)

    return run


def held(index: SqliteIndex, query: str, where: Where = MEMBERS) -> set[str]:
    """Return the uris that any arm finds."""
    vector = HashingEmbedder().embed([query])[0]
    found = index.rank(query, vector, 100, where, time.monotonic() + 30)
    assert not found.failed
    return {scored.chunk.uri for scored in (*found.arms["lexical"], *found.arms["codes"])}


def test_only_what_changed_is_embedded(index: SqliteIndex, run: Run, embedder: CountingEmbedder) -> None:
    pages = [page("docs:a", "zeppelin"), page("docs:b", "airship")]
    first = run(*pages, Complete())
    assert (first.added, first.changed, first.embedded, first.chunks) == (("docs:a", "docs:b"), (), 2, 2)
    assert first.complete
    embedder.texts.clear()
    second = run(*pages, Complete())
    assert second.unchanged == ("docs:a", "docs:b")
    assert (second.added, second.changed, second.removed, second.skipped) == ((), (), (), ())
    assert second.embedded == 0
    third = run(pages[0], page("docs:b", "submarine", "2"), Complete())
    assert (third.changed, third.unchanged, third.embedded) == (("docs:b",), ("docs:a",), 1)
    assert [text.partition("\n")[2] for text in embedder.texts] == ["submarine"]
    assert held(index, "airship") == set()
    assert held(index, "submarine") == {"docs:b"}


def test_what_is_no_longer_listed_leaves_the_index(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), page("docs:c", "zeppelin"), Complete())
    report = run(page("docs:a", "zeppelin"), Gone("docs:b"), Complete())
    assert set(report.removed) == {"docs:b", "docs:c"}
    assert held(index, "zeppelin") == {"docs:a"}


def test_a_source_that_lost_most_of_its_documents_keeps_them_unless_told(
    index: SqliteIndex, run: Run
) -> None:
    pages = [page(f"docs:{i}", "zeppelin") for i in range(12)]
    run(*pages, Complete())
    for left in (pages[:5], []):
        report = run(*left, Complete())
        assert (report.complete, report.removed) == (False, ())
        assert f"{12 - len(left)} of its 12 documents are no longer there" in report.summary()
        assert "--allow-removal" in report.failure
    assert len(index.revisions("docs")) == 12
    moved = run(*(page(f"docs:new/{i}", "zeppelin") for i in range(8)), Complete())
    assert (moved.complete, len(moved.added), len(moved.removed)) == (True, 8, 12)
    assert len(run(Complete(), allow_removal=True).removed) == 8
    assert index.revisions("docs") == {}


@pytest.mark.parametrize("failure", [SourceError("not mounted; mount it"), OSError("broken pipe"), None])
def test_a_source_that_is_not_listed_to_its_end_deletes_nothing(
    index: SqliteIndex, run: Run, failure: Exception | None
) -> None:
    run(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), Complete())
    broken = (failure,) if failure else ()
    report = run(Gone("docs:a"), page("docs:c", "zeppelin"), *broken)
    assert report.removed == ()
    assert report.added == ("docs:c",)
    assert not report.complete
    assert str(failure or "ended") in report.failure
    assert report.failure in report.summary()
    assert held(index, "zeppelin") == {"docs:a", "docs:b", "docs:c"}


def test_a_source_that_fails_before_its_first_change_deletes_nothing(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), Complete())
    assert run(SourceError("gone")).failure == "gone"
    assert held(index, "zeppelin") == {"docs:a"}


def test_another_source_s_documents_are_never_touched(index: SqliteIndex, run: Run) -> None:
    run(page("wiki:a", "zeppelin"), Complete(), name="wiki")
    run(Complete())
    report = run(page("wiki:a", "submarine", "9"), page("docsx:b", "submarine"), Gone("wiki:a"), Complete())
    assert [uri for uri, _ in report.skipped] == ["wiki:a", "docsx:b"]
    assert held(index, "zeppelin submarine") == {"wiki:a"}
    assert index.revisions("wiki") == {"wiki:a": "1"}


def test_a_document_read_as_another_one_is_skipped(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), Complete())
    report = run(
        page("docs:a", "zeppelin"),
        page("docs:b", "submarine"),
        Complete(),
        to_document=lambda changed: replace(read(changed), uri="docs:a"),
    )
    assert [uri for uri, _ in report.skipped] == ["docs:b"]
    assert held(index, "zeppelin submarine") == {"docs:a"}


@pytest.mark.parametrize("poison", ["poison", "unreadable", "crash"])
def test_a_poison_document_fails_alone_and_is_named(
    index: SqliteIndex, run: Run, poison: str, caplog: pytest.LogCaptureFixture
) -> None:
    run(page("docs:b", "zeppelin before"), Complete())
    with caplog.at_level(logging.CRITICAL):
        report = run(
            page("docs:a", "zeppelin"),
            page("docs:b", f"{poison} now", "2"),
            page("docs:c", "zeppelin"),
            page("docs:d", f"{poison} new"),
            Complete(),
        )
    assert [uri for uri, _ in report.skipped] == ["docs:b", "docs:d"]
    assert report.added == ("docs:a", "docs:c")
    assert report.complete
    assert "docs:b" in report.summary()
    # What was indexed before stays, with its old revision, so that it is tried again.
    assert held(index, "zeppelin") == {"docs:a", "docs:b", "docs:c"}
    assert index.revisions("docs")["docs:b"] == "1"


def test_text_that_cannot_be_stored_is_skipped_by_name(index: SqliteIndex, run: Run) -> None:
    def broken(changed: Changed) -> Document:
        document = read(changed)
        return replace(document, text=f"{document.text} \ud800") if changed.uri == "docs:b" else document

    report = run(page("docs:a", "zeppelin"), page("docs:b", "x"), Complete(), to_document=broken)
    assert [uri for uri, _ in report.skipped] == ["docs:b"]
    assert held(index, "zeppelin") == {"docs:a"}


def test_a_document_that_cannot_be_read_now_stays_as_it_was(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), Complete())
    report = run(Failed("docs:a", "permission denied; mend its rights"), Complete())
    assert report.skipped == (("docs:a", "permission denied; mend its rights"),)
    assert report.removed == ()
    assert held(index, "zeppelin") == {"docs:a"}


def test_changed_readers_count_without_other_changes(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), Complete())
    legal = frozenset({"legal"})
    report = run(
        page("docs:a", "zeppelin", "2"), Complete(), to_document=lambda changed: read(changed, legal)
    )
    assert report.changed == ("docs:a",)
    assert held(index, "zeppelin") == set()
    assert held(index, "zeppelin", Where(legal)) == {"docs:a"}


def test_a_dry_run_says_what_would_happen_and_does_nothing(
    index: SqliteIndex, run: Run, embedder: CountingEmbedder
) -> None:
    run(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), Complete())
    embedder.texts.clear()
    script = (
        page("docs:a", "submarine", "2"),
        page("docs:c", "new"),
        page("docs:d", "unreadable"),
        Complete(),
    )
    report = run(*script, dry_run=True)
    assert (report.added, report.changed, report.removed) == (("docs:c",), ("docs:a",), ("docs:b",))
    assert [uri for uri, _ in report.skipped] == ["docs:d"]
    assert (report.chunks, report.embedded, embedder.texts) == (2, 0, [])
    assert "would be 1 added" in report.summary()
    assert held(index, "zeppelin submarine new") == {"docs:a", "docs:b"}


def test_many_documents_are_embedded_together_and_none_gets_another_s_vector(
    index: SqliteIndex, run: Run
) -> None:
    texts = {f"docs:{i}": f"word{i} thing{i} stuff{i}" for i in range(150)}
    seen: list[tuple[int, str]] = []
    report = run(
        *(page(uri, text) for uri, text in texts.items()),
        Complete(),
        on_progress=lambda done, uri: seen.append((done, uri)),
    )
    assert len(report.added) == report.embedded == 150
    assert seen == list(enumerate(texts, start=1))
    for uri, text in list(texts.items())[::37]:
        vector = HashingEmbedder().embed([f"Page\n{text}"])[0]
        (best,) = index.rank("", vector, 1, MEMBERS, time.monotonic() + 30).arms["dense"]
        assert (best.chunk.uri, best.score) == (uri, 1.0)


def test_the_next_documents_are_cut_while_a_batch_is_embedded(index: SqliteIndex) -> None:
    """The first batch is not embedded before a document of the second one was read."""
    later = threading.Event()

    class Waiting(HashingEmbedder):
        def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
            assert later.wait(30)
            return super().embed(texts, kind)

    def to_document(changed: Changed) -> Document:
        if changed.uri == "docs:69":
            later.set()
        return read(changed)

    pages = [page(f"docs:{n}", f"text {n}") for n in range(70)]
    report = sync(Script(*pages, Complete()), index, Waiting(), to_document, SETTINGS, now=NOW)
    assert report.added == tuple(f"docs:{n}" for n in range(70))


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, IndexingError("the disk is full"), ModelError("no model")]
)
def test_whatever_ends_a_run_nothing_is_embedded_after_it(
    index: SqliteIndex, run: Run, embedder: CountingEmbedder, error: BaseException | type[BaseException]
) -> None:
    def progress(done: int, _uri: str) -> None:
        if done == 400:
            raise error

    pages = [page(f"docs:{n}", f"text {n}") for n in range(500)]
    with pytest.raises(type(error) if isinstance(error, BaseException) else error):
        run(*pages, Complete(), on_progress=progress)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("embedding")]
    embedded = len(embedder.texts)
    held = index.revisions("docs")
    assert 0 < len(held) <= embedded < 500
    report = run(*pages, Complete())
    assert len(report.unchanged) == len(held)
    assert len(index.revisions("docs")) == 500


def test_tokens_are_counted_once_a_section_and_words_of_what_is_cut_once_a_run(index: SqliteIndex) -> None:
    class Counted(HashingEmbedder):
        calls = 0

        def count(self, text: str) -> int:
            self.calls += 1
            return super().count(text)

    embedder = Counted()
    short = [page(f"docs:{n}", f"## Part\n\nshort text {n}") for n in range(100)]
    report = sync(Script(*short, Complete()), index, embedder, read, SETTINGS, now=NOW)
    assert (report.chunks, embedder.calls <= 2 * report.chunks) == (100, True)
    embedder.calls = 0
    long = [page(f"long:{n}", " ".join(f"word{m % 300}" for m in range(n, n + 3000))) for n in range(10)]
    report = sync(Script(*long, Complete(), name="long"), index, embedder, read, SETTINGS, now=NOW)
    assert report.chunks > 150
    assert embedder.calls <= 3 * report.chunks + 400


def test_a_model_that_cannot_be_loaded_ends_the_run(index: SqliteIndex, run: Run) -> None:
    class Broken(HashingEmbedder):
        def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
            raise ModelError("not installed; install it")

    run(page("docs:a", "zeppelin"), Complete())
    source = Script(page("docs:a", "submarine", "2"), Complete())
    with pytest.raises(ModelError, match="install it"):
        sync(source, index, Broken(), read, SETTINGS, now=NOW)
    assert held(index, "zeppelin") == {"docs:a"}


def test_no_chunk_is_longer_than_the_embedder_sees(index: SqliteIndex, embedder: CountingEmbedder) -> None:
    text = "\n\n".join(f"Sentence number {i} says a little." for i in range(400))
    source = Script(page("docs:a", text), Complete())
    sync(source, index, embedder, read, ChunkSettings(max_tokens=4000), now=NOW)
    assert len(embedder.texts) > 5
    assert max(embedder.count(text) for text in embedder.texts) <= embedder.max_tokens


def test_a_report_names_everything(run: Run) -> None:
    run(page("docs:a", "x"), page("docs:b", "x"), Complete())
    report = run(page("docs:a", "y", "2"), page("docs:c", "x"), page("docs:d", "unreadable"), Complete())
    text = "\n".join(report.lines())
    for expected in (
        "docs: 1 added, 1 changed, 1 removed, 1 skipped, 0 unchanged",
        "added docs:c",
        "changed docs:a",
        "removed docs:b",
        "skipped docs:d: it cannot be read; mend it",
    ):
        assert expected in text
    assert report.at == NOW


# A folder


def test_a_folder_that_vanishes_deletes_nothing(
    tmp_path: Path, index: SqliteIndex, embedder: CountingEmbedder
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Zeppelins\n\nThe zeppelin departs.")
    (docs / "b.md").write_text("# Zeppelins\n\nThe zeppelin stays.")
    settings = SourceSettings(paths=(docs,))

    def once() -> SyncReport:
        return sync(
            FolderSource(settings),
            index,
            embedder,
            lambda changed: parse_document(changed, settings, "docs"),
            SETTINGS,
            now=NOW,
        )

    assert once().added == ("docs:a.md", "docs:b.md")
    (docs / "b.md").unlink()
    assert once().removed == ("docs:b.md",)
    docs.rename(tmp_path / "elsewhere")
    report = once()
    assert not report.complete
    assert report.removed == ()
    assert held(index, "zeppelin") == {"docs:a.md"}


# Tickets


def ticket(number: str, body: str = "The zeppelin does not start.", **more: Any) -> Ticket:
    return Ticket(number, "Acme", "Zeppelin broken", body, **more)


def test_tickets_are_searched_by_their_words_facets_and_readers(
    index: SqliteIndex, embedder: CountingEmbedder
) -> None:
    def once(*tickets: Ticket) -> SyncReport:
        return sync(TicketSource(lambda: tickets), index, embedder, ticket_document, SETTINGS, now=NOW)

    one = ticket("4812", facets={"plan": "Team"}, personal={"email": "ana@example.com"})
    assert once(one, ticket("4813")).added == ("tickets:4812", "tickets:4813")
    where = Where(frozenset({"support"}), kind="ticket", facets={"plan": "team"})
    assert held(index, "zeppelin", where) == {"tickets:4812"}
    assert held(index, "zeppelin", MEMBERS) == set()
    assert not any("ana@example.com" in text or "Acme" in text for text in embedder.texts)
    # What is not searched does not count as a change; words, facets and readers do.
    same = replace(one, status="closed", personal={"email": "other@example.com"}, updated_at=NOW)
    assert once(same, ticket("4813")).unchanged == ("tickets:4812", "tickets:4813")
    moved = replace(one, facets={"plan": "Starter"})
    assert once(moved, ticket("4813", readers=frozenset({"legal"}))).changed == (
        "tickets:4812",
        "tickets:4813",
    )
    assert held(index, "zeppelin", where) == set()
    assert once(replace(moved, resolution="Sold it.")).removed == ("tickets:4813",)
    assert held(index, "sold", replace(where, facets={})) == {"tickets:4812"}


def test_a_ticket_table_that_fails_half_way_removes_no_ticket(
    index: SqliteIndex, embedder: CountingEmbedder
) -> None:
    sync(
        TicketSource(lambda: [ticket("1"), ticket("2")]), index, embedder, ticket_document, SETTINGS, now=NOW
    )

    def broken() -> Iterator[Ticket]:
        yield ticket("1")
        raise OSError("connection lost")

    report = sync(TicketSource(broken), index, embedder, ticket_document, SETTINGS, now=NOW)
    assert "connection lost" in report.failure
    assert len(index.revisions("tickets")) == 2


# What must not be shown


def test_a_page_that_becomes_a_draft_leaves_and_comes_back(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), Complete())
    report = run(page("docs:a", "zeppelin draft", "2"), page("docs:b", "zeppelin"), Complete())
    assert (report.removed, report.skipped, report.failure) == (("docs:a",), (), "")
    assert report.withheld == (("docs:a", "draft: true; write draft: false"),)
    assert "\n  kept out docs:a: draft: true; write draft: false" in report.summary()
    assert held(index, "zeppelin") == {"docs:b"}
    # It is named by each run that meets it, and removed by the first.
    again = run(page("docs:a", "zeppelin draft", "2"), page("docs:b", "zeppelin"), Complete())
    assert (again.removed, len(again.withheld), again.unchanged) == ((), 1, ("docs:b",))
    assert run(page("docs:a", "zeppelin", "3"), page("docs:b", "zeppelin"), Complete()).added == ("docs:a",)
    assert held(index, "zeppelin") == {"docs:a", "docs:b"}


def test_a_draft_leaves_although_the_listing_breaks_off(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), Complete())
    report = run(page("docs:a", "draft", "2"), OSError("connection lost"))
    assert "connection lost" in report.failure
    assert report.removed == ("docs:a",)
    assert held(index, "zeppelin") == {"docs:b"}


def test_drafts_are_not_taken_for_documents_that_are_no_longer_there(index: SqliteIndex, run: Run) -> None:
    pages = [page(f"docs:{i}", "zeppelin") for i in range(12)]
    drafts = [page(f"docs:{i}", "draft", "2") for i in range(8)]
    run(*pages, Complete())
    report = run(*drafts, *pages[8:], Complete())
    assert (len(report.removed), report.failure) == (8, "")
    # What is really gone is guarded among the rest.
    lost = run(*drafts, Complete())
    assert "4 of its 4 documents are no longer there" in lost.failure
    assert len(index.revisions("docs")) == 4


def test_a_dry_run_tells_of_drafts_and_removes_none(index: SqliteIndex, run: Run) -> None:
    run(page("docs:a", "zeppelin"), Complete())
    report = run(page("docs:a", "draft", "2"), Complete(), dry_run=True)
    assert (report.removed, len(report.withheld)) == (("docs:a",), 1)
    assert held(index, "zeppelin") == {"docs:a"}


def test_a_rebuild_leaves_drafts_out_and_tells_who_verifies_it(index: SqliteIndex, run: Run) -> None:
    run(*(page(f"docs:{i}", "zeppelin") for i in range(12)), Complete())
    told: list[Collection[str]] = []
    drafts = [page(f"docs:{i}", "draft", "2") for i in range(8)]
    (report,) = rebuilt(
        index,
        Script(*drafts, *(page(f"docs:{i}", "zeppelin") for i in range(8, 12)), Complete()),
        verify=lambda _, withheld: told.append(withheld),
        may_shrink=(),
    )
    assert len(report.added) == 4
    assert told == [{f"docs:{i}" for i in range(8)}] == [dict(report.withheld).keys()]
    assert held(index, "zeppelin") == {f"docs:{i}" for i in range(8, 12)}


# Rebuild


def rebuilt(
    index: SqliteIndex,
    *sources: Script,
    verify: Callable[[Generation, Collection[str]], None] = lambda *_: None,
    may_shrink: Collection[str] = ("docs",),
) -> tuple[SyncReport, ...]:
    pairs = [(source, read) for source in sources]
    return rebuild(pairs, index, HashingEmbedder(), SETTINGS, now=NOW, verify=verify, may_shrink=may_shrink)


def test_a_rebuild_indexes_everything_anew_and_is_then_live(index: SqliteIndex, run: Run) -> None:
    run(page("docs:old", "zeppelin"), Complete())
    during: list[set[str]] = []

    def verify(generation: Generation, withheld: Collection[str]) -> None:
        assert not withheld
        during.append(held(index, "zeppelin"))
        found = generation.rank("zeppelin", None, 5, MEMBERS, time.monotonic() + 30)
        during.append({scored.chunk.uri for scored in found.arms["lexical"]})

    docs = Script(page("docs:a", "zeppelin"), Complete())
    wiki = Script(page("wiki:a", "zeppelin"), Complete(), name="wiki")
    reports = rebuilt(index, docs, wiki, verify=verify)
    assert [report.added for report in reports] == [("docs:a",), ("wiki:a",)]
    assert during == [{"docs:old"}, {"docs:a", "wiki:a"}]
    assert held(index, "zeppelin") == {"docs:a", "wiki:a"}


def test_what_authors_should_look_at_is_said_once_with_the_first_document() -> None:
    report = SyncReport("docs", NOW, notes=(("docs:a", "odd"), ("docs:b", "odd"), ("docs:c", "rare")))
    assert report.summary().split("\n")[1:] == ["  note docs:a and 1 more: odd", "  note docs:c: rare"]


def test_what_changes_while_a_rebuild_embeds_is_in_the_new_generation(index: SqliteIndex, run: Run) -> None:
    class Moving(Script):
        """Lists something else the second time."""

        def changes(self, known: Mapping[str, str]) -> Iterator[Change]:
            yield from super().changes(known)
            self.script = (page("docs:b", "submarine", "2"), page("docs:c", "airship"), Complete())

    (report,) = rebuilt(index, Moving(page("docs:a", "zeppelin"), page("docs:b", "zeppelin"), Complete()))
    assert set(report.added) == {"docs:b", "docs:c"}
    assert (report.changed, report.removed) == ((), ())
    assert index.revisions("docs") == {"docs:b": "2", "docs:c": "1"}
    assert held(index, "zeppelin") == set()
    assert held(index, "submarine airship") == {"docs:b", "docs:c"}


def test_a_rebuild_that_would_lose_most_of_a_source_is_refused_unless_told(
    index: SqliteIndex, run: Run
) -> None:
    run(*(page(f"docs:{i}", "zeppelin") for i in range(12)), Complete())
    few = [page(f"docs:{i}", "zeppelin") for i in range(4)]
    with pytest.raises(IndexingError, match="8 of its 12 documents are no longer there"):
        rebuilt(index, Script(*few, Complete()), may_shrink=())
    assert len(index.revisions("docs")) == 12
    assert len(rebuilt(index, Script(*few, Complete()), may_shrink={"docs"})[0].added) == 4
    assert len(index.revisions("docs")) == 4


def test_a_rebuild_that_fails_leaves_the_live_index(index: SqliteIndex, run: Run) -> None:
    run(page("docs:old", "zeppelin"), Complete())
    whole = Script(page("docs:a", "zeppelin"), Complete())
    broken = Script(page("wiki:a", "zeppelin"), OSError("broken pipe"), name="wiki")
    with pytest.raises(IndexingError, match=r"'wiki'.*broken pipe"):
        rebuilt(index, whole, broken)

    def refuse(generation: Generation, withheld: Collection[str]) -> None:
        raise IndexingError("golden question 3 lost its document")

    with pytest.raises(IndexingError, match="golden question 3"):
        rebuilt(index, whole, verify=refuse)
    assert held(index, "zeppelin") == {"docs:old"}
    assert len(index.generations()) == 1
    rebuilt(index, whole)
    assert held(index, "zeppelin") == {"docs:a"}
    assert len(index.generations()) == 2
