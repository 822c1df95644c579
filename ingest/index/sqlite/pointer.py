"""Which generations a folder holds and which of them is live: the pointer is the only thing that is ever swapped."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ingest.errors import IndexingError
from ingest.index.sqlite.wire import REBUILD, connect


def names(folder: Path) -> list[str]:
    """Read the pointer: the live generation's file, then those to roll back to."""
    path = folder / "current"
    try:
        found = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise IndexingError(
            f"the index's pointer {str(path)!r} cannot be read ({error}); {REBUILD}"
        ) from error
    found = [name for name in found if name]
    if not found or not all(re.fullmatch(r"generation-\d+\.db", name) for name in found):
        raise IndexingError(f"the index's pointer {str(path)!r} is not one of ours; {REBUILD}")
    return found


def point(folder: Path, order: Sequence[str]) -> None:
    """Replace the pointer in one step that survives a power cut."""
    temporary = folder / "current.new"
    with temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write("".join(f"{name}\n" for name in order))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(folder / "current")
    # A folder cannot be opened, and need not be, on Windows.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def file_of(path: Path) -> tuple[str, int]:
    """Tell one generation's file from another, even where a later one got the name of a removed one."""
    try:
        return path.name, path.stat().st_ino
    except OSError:
        return path.name, 0


def number_of(name: str) -> int:
    found = re.match(r"generation-(\d+)", name)
    return int(found[1]) if found else 0


def created_at(path: Path) -> datetime | None:
    try:
        with contextlib.closing(connect(path)) as connection:
            (created,) = connection.execute("SELECT value FROM meta WHERE name = 'created_at'").fetchone()
            return datetime.fromisoformat(created)
    except sqlite3.Error:
        return None


def is_ours(path: Path) -> bool:
    """Tell whether a file is a generation, or one that was killed before anything stood in it."""
    if not re.fullmatch(r"generation-[1-9]\d*\.db", path.name):
        return False
    try:
        with contextlib.closing(connect(path)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.Error:
        return False
    return not tables or created_at(path) is not None


def unlink(path: Path) -> None:
    """Remove a generation with its log; where an open file cannot be removed, the next rebuild does it."""
    with contextlib.suppress(OSError):
        for suffix in ("-wal", "-shm", ""):
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
