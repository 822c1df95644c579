"""What only the embedded index promises: files, processes, damage and its clock."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.errors import IndexingError
from ingest.index import Swept
from ingest.index.sqlite import SqliteIndex
from tests.indexes import IDENTITY, MEMBERS, everywhere, ids, rank, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "embedded"


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a child process that runs `code` with this module's names at hand."""
    program = f"import sys, time, os\nfrom pathlib import Path\nfrom ingest.index.sqlite import SqliteIndex\nfrom tests.indexes import *\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_two_processes_write_at_the_same_time(folder: Path) -> None:
    code = (
        "with SqliteIndex(Path(sys.argv[1]), IDENTITY) as index:\n"
        "    for i in range(40):\n"
        "        write(index, f'{sys.argv[2]}:{i}', 'zeppelin E-1234', 'second')\n"
    )
    children = [run_python(code, folder, name) for name in ("one", "two")]
    for child in children:
        child.communicate(timeout=120)
        assert child.returncode == 0
    with SqliteIndex(folder, IDENTITY) as index:
        assert len(index.revisions("one")) == len(index.revisions("two")) == 40
        assert len(ids(rank(index, "zeppelin", k=100), "lexical")) == 80
        assert [info.name for info in index.generations()] == ["generation-1"]
    _check_file(folder / "generation-1.db")


def _check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    connection.close()


def test_a_writer_waits_for_another_one(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY) as index:
        holder = sqlite3.connect(folder / "generation-1.db", isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: holder.execute("ROLLBACK"))
        timer.start()
        write(index, "docs:a", "zeppelin")
        assert not holder.in_transaction
        timer.join()
        holder.close()


def test_a_rebuild_whose_process_died_is_cleaned_up_by_the_next(folder: Path) -> None:
    code = (
        "generation = SqliteIndex(Path(sys.argv[1]), IDENTITY).rebuild()\n"
        "write(generation, 'docs:a', 'zeppelin')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with SqliteIndex(folder, IDENTITY) as index:
        child = run_python(code, folder)
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(IndexingError, match="another rebuild is running"):
            index.rebuild()
        child.kill()
        child.communicate()
        assert (folder / "generation-2.db").exists()
        generation = index.rebuild()
        assert not (folder / "generation-2.db").exists()
        write(generation, "docs:b", "submarine")
        generation.publish()
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:b#0"}
    assert sorted(path.name for path in folder.glob("*.db")) == ["generation-1.db", "generation-3.db"]


def test_only_our_own_files_are_ever_removed(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY, keep=1) as index:
        write(index, "docs:a", "zeppelin")
        shutil.copy(folder / "generation-1.db", folder / "generation-1-backup.db")
        (folder / "generation-7.db").write_text("somebody's notes")
        (folder / "generation-8.db").touch()
        for _ in range(2):
            generation = index.rebuild()
            write(generation, "docs:b", "submarine")
            generation.publish()
        index.rollback()
        assert index.sweep() == Swept(("generation-10",), ("generation-1-backup.db", "generation-7.db"))
    left = sorted(path.name for path in folder.glob("*.db"))
    assert left == ["generation-1-backup.db", "generation-7.db", "generation-9.db"]


def test_a_live_file_that_was_removed_by_hand_is_told_with_the_two_ways_back(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY) as index:
        write(index, "docs:a", "zeppelin")
        generation = index.rebuild()
        write(generation, "docs:b", "submarine")
        generation.publish()
    (folder / "generation-2.db").unlink()
    with pytest.raises(IndexingError, match=r"is gone.*rollback.*--rebuild"):
        SqliteIndex(folder, IDENTITY)
    with SqliteIndex(folder, IDENTITY, for_rebuild=True) as index:
        assert index.rollback().name == "generation-1"
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}


def test_a_question_that_began_in_an_old_generation_ends_there(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY) as index, SqliteIndex(folder, IDENTITY) as other:
        write(index, "docs:a", "zeppelin")
        held = index._live()
        for _ in range(4):
            generation = other.rebuild()
            write(generation, "docs:b", "submarine")
            generation.publish()
        assert not held.path.exists()
        assert ids(rank(held, "zeppelin"), "lexical") == ["docs:a#0"]
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:b#0"}


def _spoil_text(path: Path) -> None:
    path.write_text("not a database, but long enough to be read as one " * 100)


def _spoil_foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.commit()
    connection.close()


def _spoil_meta(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE meta (name, value)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "spoil", [_spoil_text, _spoil_foreign, _spoil_meta, Path.unlink, lambda path: path.write_bytes(b"")]
)
def test_a_damaged_or_foreign_file_is_named_with_the_next_step(
    folder: Path, spoil: Callable[[Path], object]
) -> None:
    with SqliteIndex(folder, IDENTITY) as index:
        write(index, "docs:a", "zeppelin")
    spoil(folder / "generation-1.db")
    with pytest.raises(IndexingError, match=r"generation-1\.db.*twohop index --rebuild"):
        SqliteIndex(folder, IDENTITY)
    with SqliteIndex(folder, IDENTITY, for_rebuild=True) as index:
        generation = index.rebuild()
        write(generation, "docs:b", "submarine")
        generation.publish()
        assert everywhere(rank(index, "submarine")) == {"docs:b#0"}


@pytest.mark.parametrize("text", ["", "generation-1.db/../x\n", "hello\n", "\x00"])
def test_a_damaged_pointer_is_named_with_the_next_step(folder: Path, text: str) -> None:
    SqliteIndex(folder, IDENTITY).close()
    (folder / "current").write_text(text)
    with pytest.raises(IndexingError, match=r"current.*twohop index --rebuild"):
        SqliteIndex(folder, IDENTITY)
    with SqliteIndex(folder, IDENTITY, for_rebuild=True) as index:
        index.rebuild().publish()
        assert index.revisions("docs") == {}


def test_a_damaged_generation_is_not_published(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY) as index:
        write(index, "docs:a", "zeppelin")
        generation = index.rebuild()
        write(generation, "docs:b", "submarine", "another")
        connection = sqlite3.connect(folder / "generation-2.db")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM chunks WHERE position = 1")
        connection.commit()
        connection.close()
        with pytest.raises(IndexingError, match=r"generation-2\.db"):
            generation.publish()
        generation.discard()
        assert everywhere(rank(index, "zeppelin submarine")) == {"docs:a#0"}


def test_a_search_stops_near_its_deadline(folder: Path) -> None:
    with SqliteIndex(folder, IDENTITY) as index:
        words = [f"word{i}" for i in range(60)]
        for i in range(30):
            write(index, f"docs:{i}", *[" ".join(words) for _ in range(50)])
        assert not rank(index, "word1").failed
        found = rank(index, " ".join(words), seconds=0.004)
        assert found.failed
        assert all(reason.startswith("late") for reason in found.failed.values())


def test_the_clock_is_a_parameter(folder: Path) -> None:
    now = datetime(2026, 9, 26, 12, tzinfo=UTC)
    with SqliteIndex(folder, IDENTITY, clock=lambda: now) as index:
        write(index, "docs:a", "zeppelin")
        assert index.documents(MEMBERS)[0].indexed_at == now
        assert index.generations()[0].created_at == now


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexingError, match="file"):
        SqliteIndex(tmp_path / "file" / "index", IDENTITY)
