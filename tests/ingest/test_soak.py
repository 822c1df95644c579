"""Long proofs: an index run that is killed anywhere is finished by the next one, and nobody sees half an index meanwhile."""

from __future__ import annotations

import contextlib
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
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.config import ChunkSettings, SourceSettings
from ingest.errors import IndexingError
from ingest.index.sqlite import SqliteIndex
from ingest.parse import to_document
from ingest.sources.folder import FolderSource
from ingest.sync import SyncReport, rebuild, sync
from ingest.types import Where
from tests.fakes import HashingEmbedder

IDENTITY = "fake/hashing@64"
NOW = datetime(2026, 9, 26, 12, tzinfo=UTC)
DOCUMENTS = 200
KILLS = 10


def bring_up_to_date(folder: Path, docs: Path, *, anew: bool = False) -> SyncReport:
    """Index `docs` into `folder`, in place or as a new generation."""
    settings = SourceSettings(paths=(docs,))
    embedder, chunks = HashingEmbedder(), ChunkSettings(max_tokens=60, overlap_tokens=10)
    source = FolderSource(settings)
    with SqliteIndex(folder, IDENTITY) as index:
        if anew:
            pair = (source, lambda changed: to_document(changed, settings, "docs"))
            return rebuild([pair], index, embedder, chunks, now=NOW)[0]
        return sync(
            source, index, embedder, lambda changed: to_document(changed, settings, "docs"), chunks, now=NOW
        )


def write_documents(docs: Path, edition: int, chance: random.Random) -> None:
    """Write a new edition of half of the documents, remove some and bring some back."""
    for i in range(DOCUMENTS):
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


def content(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield every row of the live generation that a search can see, after checking the file."""
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


@pytest.mark.soak
@pytest.mark.parametrize("anew", [False, True], ids=["sync", "rebuild"])
def test_no_document_is_lost_doubled_or_half_written_by_kill_9(tmp_path: Path, anew: bool) -> None:
    seed = int(os.environ.get("PYTEST_SOAK_SEED", time.time_ns() % 100_000))
    chance = random.Random(seed)
    docs, folder = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    write_documents(docs, 0, chance)
    began = time.monotonic()
    bring_up_to_date(tmp_path / "first", docs)
    whole_run = time.monotonic() - began
    in_flight = 0
    for kill in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(folder), str(docs), "anew" if anew else ""],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert child.stdout
        assert child.stdout.readline() == "begins\n"
        time.sleep(chance.uniform(0, whole_run))
        in_flight += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()
        write_documents(docs, kill + 1, chance)
    assert in_flight >= KILLS // 2, f"seed {seed}: the child was mostly done before it was killed"
    report = bring_up_to_date(folder, docs, anew=anew)
    assert report.complete, seed
    assert not report.skipped, seed
    assert bring_up_to_date(folder, docs).embedded == 0, seed
    bring_up_to_date(tmp_path / "clean", docs)
    assert list(content(folder)) == list(content(tmp_path / "clean")), seed
    named = (folder / "current").read_text().split()
    assert {path.name for path in folder.glob("generation-*.db")} == set(named), seed


READERS = 4
STEPS = 20
ANCHOR = "ERR_ANCHOR-7001"


def take_a_step(folder: Path, docs: Path, step: str) -> None:
    """Do what a run does first, then sync, rebuild or roll back."""
    with SqliteIndex(folder, IDENTITY) as index:
        index.sweep()
        if step == "rollback":
            # There is none to roll back to before the first rebuild, and after a rollback to the last one.
            with contextlib.suppress(IndexingError):
                index.rollback()
    if step != "rollback":
        bring_up_to_date(folder, docs, anew=step == "rebuild")


@pytest.mark.soak
def test_readers_always_see_a_whole_index_while_runs_are_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("PYTEST_SOAK_SEED", time.time_ns() % 100_000))
    chance = random.Random(seed)
    docs, folder = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    write_documents(docs, 0, chance)
    (docs / "anchor.md").write_text(f"# Anchor\n\nThe anchor is {ANCHOR}.\n", "utf-8")
    began = time.monotonic()
    bring_up_to_date(folder, docs)
    whole_run = time.monotonic() - began
    over, problems, searches = threading.Event(), list[str](), Counter[int]()
    everyone = Where(frozenset({"members"}))

    def read(reader: int) -> None:
        vector = HashingEmbedder().embed([ANCHOR], kind="query")[0]
        with SqliteIndex(folder, IDENTITY) as index:
            while not over.is_set():
                try:
                    found = index.rank(ANCHOR, vector, 5, everyone, time.monotonic() + 30)
                    held = len(index.documents(everyone))
                except IndexingError as error:
                    problems.append(f"a search failed: {error}")
                    continue
                searches[reader] += 1
                if found.failed:
                    problems.append(f"an arm failed: {found.failed}")
                elif "docs:anchor.md" not in {scored.chunk.uri for scored in found.arms["codes"]}:
                    problems.append("the anchor was not found")
                if held != DOCUMENTS + 1:
                    problems.append(f"{held} documents, not {DOCUMENTS + 1}")

    readers = [threading.Thread(target=read, args=(i,)) for i in range(READERS)]
    for reader in readers:
        reader.start()
    killed: Counter[str] = Counter()
    try:
        for number in range(STEPS):
            step = chance.choice(("sync", "rebuild", "rebuild", "rollback"))
            for i in chance.sample(range(DOCUMENTS), DOCUMENTS // 4):
                text = f"# Page {i}\n\nEdition {number} of page {i} knows ERR_P{i}-00{number}.\n"
                (docs / f"page-{i:03}.md").write_text(text, encoding="utf-8")
            child = subprocess.Popen(
                [sys.executable, "-c", _STEP, str(folder), str(docs), step],
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[2],
            )
            assert child.stdout
            assert child.stdout.readline() == "begins\n"
            time.sleep(chance.uniform(0, (whole_run if step != "rollback" else 0.2) * 2))
            killed[f"{step}{' killed' if child.poll() is None else ''}"] += 1
            child.send_signal(signal.SIGKILL)
            child.communicate()
        take_a_step(folder, docs, "sync")
    finally:
        over.set()
        for reader in readers:
            reader.join()
    with capsys.disabled():
        sys.stdout.write(f"\nseed {seed}: {dict(killed)}, searches {dict(searches)}\n")
    assert problems == [], seed
    assert len(searches) == READERS
    assert sum(count for name, count in killed.items() if name.endswith("killed")) >= STEPS // 4, seed
    bring_up_to_date(tmp_path / "clean", docs)
    assert list(content(folder)) == list(content(tmp_path / "clean")), seed
    named = (folder / "current").read_text().split()
    assert {path.name for path in folder.glob("generation-*.db")} == set(named), seed


_STEP = """
import sys
from pathlib import Path
from tests.ingest.test_soak import take_a_step
print("begins", flush=True)
take_a_step(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
"""
_CHILD = """
import sys
from pathlib import Path
from tests.ingest.test_soak import bring_up_to_date
print("begins", flush=True)
bring_up_to_date(Path(sys.argv[1]), Path(sys.argv[2]), anew=bool(sys.argv[3]))
"""
