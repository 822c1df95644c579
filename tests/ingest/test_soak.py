"""Long proofs: an index run that is killed anywhere is finished by the next one, and nobody sees half an index meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from ingest.config import ChunkSettings, ElasticsearchSettings, SourceSettings
from ingest.errors import IndexingError
from ingest.index import SearchIndex
from ingest.index.elastic import ElasticIndex
from ingest.index.sqlite import SqliteIndex
from ingest.parse import to_document
from ingest.sources.folder import FolderSource
from ingest.sync import SyncReport, rebuild, sync
from ingest.types import Where
from tests.fakes import HashingEmbedder
from tests.ingest.elastic_node import Node, command_of

IDENTITY = "fake/hashing@64"
NOW = datetime(2026, 9, 26, 12, tzinfo=UTC)
DOCUMENTS = 200
KILLS = 10


@dataclass(frozen=True)
class Place:
    """Where an index is: in a folder, or under a prefix of an Elasticsearch."""

    name: str
    url: str = ""
    minutes: int = 0
    """How far its clock is ahead: after a minute the lease of a run that was killed may be taken over."""

    def open(self) -> SearchIndex:
        if not self.url:
            return SqliteIndex(Path(self.name), IDENTITY)
        ahead = timedelta(minutes=self.minutes)
        settings = ElasticsearchSettings(url=self.url, prefix=self.name)
        return ElasticIndex(
            settings, IDENTITY, HashingEmbedder.dimensions, clock=lambda: datetime.now(UTC) + ahead
        )

    def beside(self, name: str) -> Place:
        """Return the place of another index of the same kind."""
        return replace(self, name=f"{self.name}-{name}")

    def content(self) -> list[tuple[Any, ...]]:
        """Return every row of the live generation that a search can see, after checking that it is sound."""
        return list(_elastic_rows(self) if self.url else _sqlite_rows(Path(self.name)))

    def orphans(self) -> set[str]:
        """Return the generations that nothing points to."""
        if not self.url:
            folder = Path(self.name)
            return {path.name for path in folder.glob("generation-*.db")} - set(
                (folder / "current").read_text().split()
            )
        with Elasticsearch(self.url) as client:
            found = client.indices.get_alias(index=f"{self.name}-generation-*").body
        pointers = (self.name, f"{self.name}-previous-")
        return {
            index
            for index, of in found.items()
            if not any(alias == pointers[0] or alias.startswith(pointers[1]) for alias in of["aliases"])
        }


def _sqlite_rows(folder: Path) -> Iterator[tuple[Any, ...]]:
    name = (folder / "current").read_text().split("\n")[0]
    connection = sqlite3.connect(folder / name)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    yield from connection.execute("SELECT uri, revision, chunks FROM documents ORDER BY uri")
    yield from connection.execute("SELECT id, payload, vector FROM chunks ORDER BY id")
    yield from connection.execute(
        "SELECT code, id, whole FROM codes JOIN chunks ON chunk = key ORDER BY code, id"
    )
    connection.close()


def _elastic_rows(place: Place) -> Iterator[tuple[Any, ...]]:
    with Elasticsearch(place.url, request_timeout=60) as client:
        client.indices.refresh(index=place.name)
        found = client.search(index=place.name, size=10_000, query={"match_all": {}})
    rows = {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}
    assert len(rows) == found["hits"]["total"]["value"]
    for id_, row in sorted(rows.items()):
        if "source" in row:
            # Says when it was written, too.
            del row["payload"]
        yield id_, json.dumps(row, sort_keys=True)


def bring_up_to_date(place: Place, docs: Path, *, anew: bool = False) -> SyncReport:
    """Index `docs`, in place or as a new generation."""
    settings = SourceSettings(paths=(docs,))
    embedder, chunks = HashingEmbedder(), ChunkSettings(max_tokens=60, overlap_tokens=10)
    source = FolderSource(settings)
    with place.open() as index:
        if anew:
            pair = (source, lambda changed: to_document(changed, settings, "docs"))
            return rebuild([pair], index, embedder, chunks, now=NOW)[0]
        return sync(
            source, index, embedder, lambda changed: to_document(changed, settings, "docs"), chunks, now=NOW
        )


def write_documents(docs: Path, edition: int, chance: random.Random, count: int = DOCUMENTS) -> None:
    """Write a new edition of half of the documents, remove some and bring some back."""
    for i in range(count):
        path = docs / f"page-{i:03}.md"
        if edition and chance.random() < 0.5:
            continue
        if edition and chance.random() < 0.1:
            path.unlink(missing_ok=True)
            continue
        sections = "\n\n".join(
            f"## Section {s}\n\n" + f"Edition {edition} of page {i} knows ERR_P{i}-{s}00{edition}. " * 8
            for s in range(1 + (i + edition) % 4)
        )
        path.write_text(f"# Page {i}\n\n{sections}\n", encoding="utf-8")


def begun(place: Place, docs: Path, step: str) -> subprocess.Popen[str]:
    """Start a step in a process of its own and return when it begins."""
    child = subprocess.Popen(
        [sys.executable, "-c", _STEP, json.dumps(asdict(place)), str(docs), step],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout
    assert child.stdout.readline() == "begins\n"
    return child


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("PYTEST_SOAK_SEED", time.time_ns() % 100_000))


@pytest.mark.soak
@pytest.mark.parametrize("anew", [False, True], ids=["sync", "rebuild"])
def test_no_document_is_lost_doubled_or_half_written_by_kill_9(tmp_path: Path, seed: int, anew: bool) -> None:
    chance = random.Random(seed)
    docs, place = tmp_path / "docs", Place(str(tmp_path / "index"))
    docs.mkdir()
    write_documents(docs, 0, chance)
    began = time.monotonic()
    bring_up_to_date(place.beside("first"), docs)
    whole_run = time.monotonic() - began
    in_flight = 0
    for kill in range(KILLS):
        child = begun(place, docs, "rebuild" if anew else "sync")
        time.sleep(chance.uniform(0, whole_run))
        in_flight += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()
        write_documents(docs, kill + 1, chance)
    assert in_flight >= KILLS // 2, f"seed {seed}: the child was mostly done before it was killed"
    report = take_a_step(place, docs, "rebuild" if anew else "sync")
    assert report, seed
    assert report.complete, seed
    assert not report.skipped, seed
    assert bring_up_to_date(place, docs).embedded == 0, seed
    bring_up_to_date(place.beside("clean"), docs)
    assert place.content() == place.beside("clean").content(), seed
    assert place.orphans() == set(), seed


READERS = 4
STEPS = 20
ANCHOR = "ERR_ANCHOR-7001"
HANG_SECONDS = 20
PATIENT_SECONDS = 30.0
HURRIED_SECONDS = 2.0


def take_a_step(place: Place, docs: Path, step: str) -> SyncReport | None:
    """Do what a run does first, then sync, rebuild or roll back."""
    with place.open() as index:
        index.sweep()
        if step == "rollback":
            # There is none to roll back to before the first rebuild, and after a rollback to the last one.
            with contextlib.suppress(IndexingError):
                index.rollback()
            return None
    return bring_up_to_date(place, docs, anew=step == "rebuild")


class Readers:
    """Four that search without a pause, and what they saw that must not be."""

    def __init__(self, place: Place, documents: int) -> None:
        self.place = place
        self.documents = documents
        self.problems: list[str] = []
        self.searches: Counter[str] = Counter()
        self.trouble = threading.Event()
        """Set while the server is down or hangs: then a search may fail, and has to say so."""
        self.troubles = 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(READERS)]

    def __enter__(self) -> Readers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @contextlib.contextmanager
    def in_trouble(self) -> Iterator[None]:
        self.troubles += 1
        self.trouble.set()
        try:
            yield
        finally:
            self.trouble.clear()

    def _read(self) -> None:
        vector = HashingEmbedder().embed([ANCHOR], kind="query")[0]
        everyone = Where(frozenset({"members"}))
        with self.place.open() as index:
            while not self._over.is_set():
                before = self.troubles
                hurried = self.trouble.is_set()
                wait = HURRIED_SECONDS if hurried else PATIENT_SECONDS
                try:
                    found = index.rank(ANCHOR, vector, 5, everyone, time.monotonic() + wait)
                    self._look(found.arms, found.failed, before, hurried)
                    self._count(len(index.documents(everyone)))
                except IndexingError as error:
                    self._failed(str(error), before, hurried)
                except Exception as error:
                    self.problems.append(f"a bug: {error!r}")
                    raise

    def _look(self, arms: Any, failed: Any, before: int, hurried: bool) -> None:
        if failed:
            self._failed(str(failed), before, hurried)
        if "codes" in arms:
            self.searches["answered"] += 1
            if "docs:anchor.md" not in {scored.chunk.uri for scored in arms["codes"]}:
                self.problems.append("the anchor was not found")

    def _count(self, held: int) -> None:
        if held != self.documents:
            self.problems.append(f"{held} documents, not {self.documents}")

    def _failed(self, why: str, before: int, hurried: bool) -> None:
        self.searches["said to have failed"] += 1
        if not hurried and not self.trouble.is_set() and self.troubles == before:
            self.problems.append(f"failed without a reason: {why}")


def edit(docs: Path, number: int, chance: random.Random, count: int) -> None:
    """Write a new edition of a quarter of the documents."""
    for i in chance.sample(range(count), count // 4):
        text = f"# Page {i}\n\nEdition {number} of page {i} knows ERR_P{i}-00{number}.\n"
        (docs / f"page-{i:03}.md").write_text(text, encoding="utf-8")


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "elastic"])
def test_readers_always_see_a_whole_index_while_runs_and_servers_are_killed(
    request: pytest.FixtureRequest, tmp_path: Path, seed: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    docs = tmp_path / "docs"
    docs.mkdir()
    with contextlib.ExitStack() as stack:
        node: Node | None = None
        place, count = Place(str(tmp_path / "index")), DOCUMENTS
        if kind == "elastic":
            node = stack.enter_context(Node(command_of(request.config), tmp_path / "node"))
            place, count = Place("soak", node.url), DOCUMENTS // 4
        write_documents(docs, 0, chance, count)
        (docs / "anchor.md").write_text(f"# Anchor\n\nThe anchor is {ANCHOR}.\n", "utf-8")
        began = time.monotonic()
        bring_up_to_date(place, docs)
        whole_run = time.monotonic() - began
        troubles = ["killed"] * 4 + ["hung"] * 3 if node else []
        troubles += [""] * (STEPS - len(troubles))
        chance.shuffle(troubles)
        done: Counter[str] = Counter()
        with Readers(place, count + 1) as readers:
            for number, trouble in enumerate(troubles):
                step = chance.choice(("sync", "rebuild", "rebuild", "rollback"))
                edit(docs, number, chance, count)
                place = replace(place, minutes=2 * number)
                child = begun(place, docs, step)
                time.sleep(chance.uniform(0, (whole_run if step != "rollback" else 0.2) * 1.5))
                if node and trouble:
                    with readers.in_trouble():
                        if trouble == "killed":
                            node.kill()
                            node.start()
                        else:
                            node.hang()
                            time.sleep(HANG_SECONDS)
                            node.resume()
                            # Whoever asked while it hung is answered before it counts as well again.
                            time.sleep(HURRIED_SECONDS)
                    done[f"node {trouble}"] += 1
                survives = bool(trouble) and chance.random() < 0.5
                if not survives:
                    done[f"{step}{' killed' if child.poll() is None else ''}"] += 1
                    child.send_signal(signal.SIGKILL)
                _, said = child.communicate()
                if survives:
                    done[f"{step} through it{'' if child.returncode == 0 else ' failed'}"] += 1
                    if child.returncode:
                        assert "IndexingError: " in said or "IndexAway: " in said, (seed, said)
            place = replace(place, minutes=2 * STEPS)
            take_a_step(place, docs, "sync")
        with capsys.disabled():
            sys.stdout.write(f"\n{kind}, seed {seed}: {dict(done)}, searches {dict(readers.searches)}\n")
        assert readers.problems == [], seed
        assert readers.searches["answered"] > STEPS, seed
        assert sum(times for name, times in done.items() if name.endswith("killed")) >= STEPS // 4, seed
        bring_up_to_date(place.beside("clean"), docs)
        assert place.content() == place.beside("clean").content(), seed
        assert place.orphans() == set(), seed


_STEP = """
import json, sys
from pathlib import Path
from tests.ingest.test_soak import Place, take_a_step
print("begins", flush=True)
take_a_step(Place(**json.loads(sys.argv[1])), Path(sys.argv[2]), sys.argv[3])
"""
