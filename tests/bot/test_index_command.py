"""`twohop index --json`: what the schedule's child prints, and how it ends."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.app import Desk, build
from bot.cli import app
from bot.config import Settings, load
from ingest.config import EmbeddingSettings
from ingest.embed import SentenceTransformerEmbedder, TextKind, Vectors
from ingest.errors import IdentityMismatch
from ingest.schedule import run_child
from ingest.types import Where

SETTINGS = """
[sources]
paths = ["docs"]

[tickets]
csv = ["tickets.csv"]
"""


@pytest.fixture(autouse=True)
def desk_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with settings, one document that can be read, one that cannot, and tickets."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWOHOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "data"))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "returns.md").write_text("# Returns\n\nGoods can be returned within 20 days.\n", "utf-8")
    (docs / "broken.md").write_bytes(b"\x00\x01\xff\xfe\x00binary" * 40)
    (tmp_path / "twohop.toml").write_text(SETTINGS, "utf-8")
    (tmp_path / "tickets.csv").write_text(
        "number,customer,status,subject,body\nT-901,Acme,open,Lost parcel,It never came\n,Beta,open,Wrong item,Blue\n",
        "utf-8",
    )
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["index", *arguments], catch_exceptions=False)


def reported(result: Result) -> dict[str, Any]:
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def test_everything_that_the_settings_name_is_indexed_and_reported(desk_folder: Path) -> None:
    result = run("--json")
    assert result.exit_code == 0
    found = reported(result)
    assert {name: found[name] for name in ("ok", "added", "changed", "removed", "unchanged", "failures")} == {
        "ok": True,
        "added": 2,
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
        "failures": [],
    }
    assert {name: of["added"] for name, of in found["sources"].items()} == {"docs": 1, "tickets": 1}
    assert found["imports"]["tickets.csv"]["added"] == 1
    assert [one["uri"] for one in found["skipped"]] == ["tickets.csv line 3", "docs:broken.md"]
    assert all(one["reason"] for one in found["skipped"])
    assert found["seconds"] >= max(of["seconds"] for of in found["sources"].values())

    (desk_folder / "docs" / "returns.md").write_text("# Returns\n\nWithin 30 days.\n", "utf-8")
    again = reported(run("--json"))
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 1, 1)


def test_a_ticket_file_that_cannot_be_read_fails_the_run_but_not_the_documents(desk_folder: Path) -> None:
    (desk_folder / "tickets.csv").unlink()
    result = run("--json")
    assert result.exit_code == 1
    found = reported(result)
    assert found["ok"] is False
    assert found["sources"]["docs"]["added"] == 1
    assert len(found["failures"]) == 1
    assert "tickets.csv cannot be read" in found["failures"][0]
    in_words = run()
    assert in_words.exit_code == 1
    assert "tickets.csv cannot be read" in in_words.stdout


async def test_as_a_child_it_is_what_the_schedule_runs() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-m", "bot.cli", "index", "--json"]
    found = await run_child(argv, deadline_seconds=300, env=environment)
    assert found.ok, found
    assert found.report is not None
    assert found.report["added"] == 2


def settings(folder: Path) -> Settings:
    return load(folder / "twohop.toml")


def titles(desk: Desk) -> set[str]:
    return {document.title for document in desk.index.documents(Where(desk.everyone()))}


def test_a_rebuild_is_beside_the_live_index_which_a_running_bot_goes_on_reading(
    desk_folder: Path, embedder: SentenceTransformerEmbedder
) -> None:
    run()
    bot = build(settings(desk_folder), embedder)
    seen: list[set[str]] = []

    class Watched(SentenceTransformerEmbedder):
        def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
            seen.append(titles(bot))
            return super().embed(texts, kind)

    rebuilding = build(settings(desk_folder), Watched(EmbeddingSettings()), for_rebuild=True)
    (desk_folder / "docs" / "returns.md").write_text("# Giving back\n\nWithin 30 days.\n", "utf-8")
    rebuilding.rebuild()
    assert seen
    assert all(found == {"Returns"} for found in seen)
    assert titles(bot) == {"Giving back"}
    assert [one.live for one in bot.index.generations()] == [True, False]
    for desk in (bot, rebuilding):
        desk.close()


def test_a_rebuild_that_cannot_read_a_folder_leaves_what_was_there(desk_folder: Path) -> None:
    run()
    pointer = desk_folder / "data" / "index" / "current"
    before = pointer.read_text("utf-8")
    (desk_folder / "docs").rename(desk_folder / "away")
    result = run("--rebuild", "--json", "--allow-removal")
    assert result.exit_code == 1
    assert "the index was not rebuilt, because of source 'docs'" in reported(result)["failures"][0]
    assert pointer.read_text("utf-8") == before
    assert [path.name for path in pointer.parent.glob("*.db")] == [before.strip()]


def test_an_index_of_another_identity_is_refused_until_it_is_rebuilt(desk_folder: Path) -> None:
    run()
    with closing(sqlite3.connect(desk_folder / "data" / "index" / "generation-1.db")) as connection:
        connection.execute("UPDATE meta SET value = 'other@384' WHERE name = 'identity'")
        connection.commit()
    with pytest.raises(IdentityMismatch, match="twohop index --rebuild"):
        run()
    assert reported(run("--rebuild", "--json"))["sources"]["docs"]["added"] == 1
    assert reported(run("--json"))["unchanged"] == 2
