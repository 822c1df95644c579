"""`twohop index --json`: what the schedule's child prints, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.app import Desk, build
from bot.cli import app
from bot.config import Settings, load
from bot.health import looks
from bot.indexing import Order, carry_out
from bot.metrics import Metrics
from bot.store import Inbox
from bot.store.state import opened
from ingest.config import EmbeddingSettings
from ingest.embed import Embedder, TextKind, Vectors
from ingest.embed.onnx import OnnxEmbedder
from ingest.errors import ConfigError, IdentityMismatch, TwohopError
from ingest.runs import Run, Runs
from ingest.schedule import run_child
from ingest.sources import Changed, Source
from ingest.sources.roots import Root
from ingest.sync import UNWATCHED, ToDocument
from ingest.types import Document, Where
from tests.indexes import cluster

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
    """Run `twohop index …`."""
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
    desk_folder: Path, embedder: Embedder
) -> None:
    run()
    bot = build(settings(desk_folder), embedder)
    seen: list[set[str]] = []

    class Watched(OnnxEmbedder):
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


def test_a_bot_of_other_settings_answers_from_the_old_generation_until_it_is_started_anew(
    desk_folder: Path, embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    run()
    bot = build(settings(desk_folder), embedder)
    assert titles(bot) == {"Returns"}
    pointer = desk_folder / "data" / "index"
    (desk_folder / "docs" / "returns.md").write_text("# Giving back\n\nWithin 30 days.\n", "utf-8")
    run("--rebuild")
    with closing(
        sqlite3.connect(pointer / (pointer / "current").read_text("utf-8").split()[0])
    ) as connection:
        connection.execute("UPDATE meta SET value = 'other@384' WHERE name = 'identity'")
        connection.commit()
    for _ in range(3):
        assert titles(bot) == {"Returns"}
    assert [record.message for record in caplog.records if "answering from generation-1.db" in record.message]
    # It may read the old one and never write into it.
    with pytest.raises(IdentityMismatch):
        bot.sync_documents()
    bot.close()


# Runs


def runs_of(folder: Path, lease: float = 60.0) -> Runs:
    """Return the runs as another process sees them."""
    return Runs(opened(f"sqlite:///{folder / 'data' / 'state.db'}"), "another", lease)


def latest(folder: Path) -> Run:
    found = runs_of(folder).latest()
    assert found is not None
    return found


def test_a_run_is_a_row_and_is_listed(desk_folder: Path) -> None:
    run()
    run("--rebuild")
    newest, first = json.loads(run("history", "--json").stdout)
    assert (first["kind"], first["why"], first["state"], first["report"]["added"]) == (
        "sync",
        "command",
        "complete",
        2,
    )
    assert (newest["kind"], newest["stage"], newest["failure"]) == ("rebuild", "swapping", "")
    assert newest["ended_at"] >= newest["started_at"] >= first["ended_at"]
    shown = run("history").stdout.splitlines()
    assert len(shown) == 2
    assert "rebuild of everything  by command  complete after" in shown[0]
    status = run("status").stdout
    assert "running   nothing" in status
    assert "live      generation-2" in status
    assert "kept      generation-1" in status


def test_one_run_at_a_time_and_who_is_in_the_way_is_said(desk_folder: Path) -> None:
    run()
    other = runs_of(desk_folder)
    started = other.start("rebuild", why="slack", who="U1")
    assert started is not None
    other.beat(started.id, stage="building docs", done=7, uri="docs:a.md")
    sign = r"its last sign of life is \d+ s old; if its process is gone, a run may start in \d+ s"
    with pytest.raises(TwohopError, match=rf"an index run is under way since.*; {sign}"):
        run()
    status = run("status").stdout
    assert re.search(sign, status)
    assert "rebuild of everything  by slack (U1)  running" in status
    assert "building docs: 7 documents, docs:a.md" in status
    assert json.loads(run("status", "--json").stdout)["running"]["done"] == 7
    assert f"run {started.id} is asked to stop" in run("cancel").stdout
    stopped = other.beat(started.id, stage="", done=8, uri="")
    assert stopped is not None
    assert "the command line cancelled it" in str(stopped)
    other.finish(started.id, "cancelled", failure=str(stopped))
    assert run().exit_code == 0
    with pytest.raises(TwohopError, match="no index run is under way"):
        run("cancel")


def test_after_the_lease_of_a_killed_run_the_next_one_goes_on(
    desk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOHOP_SYNC__LEASE_SECONDS", "2")
    for i in range(400):
        (desk_folder / "docs" / f"page-{i}.md").write_text(f"# Page {i}\n\nWithin {i} days.\n", "utf-8")
    child = child_run("--rebuild")
    within(lambda: latest_of(desk_folder, "building docs"))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert runs_of(desk_folder).running() is not None
    within(lambda: runs_of(desk_folder).running() is None)
    found = reported(run("--json"))
    assert found["added"] == 402
    folder = desk_folder / "data" / "index"
    assert [path.name for path in folder.glob("*.db")] == (folder / "current").read_text("utf-8").split()
    killed = runs_of(desk_folder).history()[-1]
    assert (killed.kind, killed.state) == ("rebuild", "failed")
    assert "its process ended" in killed.failure


@pytest.mark.parametrize("how", ["cancel", "SIGTERM"])
def test_a_run_that_is_asked_to_stop_stops_at_a_document_and_leaves_the_live_index(
    desk_folder: Path, how: str
) -> None:
    run()
    before = (desk_folder / "data" / "index" / "current").read_text("utf-8")
    for i in range(400):
        (desk_folder / "docs" / f"page-{i}.md").write_text(f"# Page {i}\n\nWithin {i} days.\n", "utf-8")
    child = child_run("--rebuild")
    within(lambda: latest_of(desk_folder, "building docs"))
    if how == "cancel":
        run("cancel")
    else:
        child.send_signal(signal.SIGTERM)
    _, said = child.communicate()
    assert child.returncode == 2
    assert "error: the index run was stopped:" in said
    ended = latest(desk_folder)
    assert ended.state == "cancelled"
    assert (desk_folder / "data" / "index" / "current").read_text("utf-8") == before
    assert [path.name for path in (desk_folder / "data" / "index").glob("*.db")] == before.split()


def child_run(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bot.cli", "index", *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def latest_of(folder: Path, stage: str) -> bool:
    """Tell whether the run under way has looked at documents of a stage."""
    found = runs_of(folder).running() if (folder / "data" / "state.db").is_file() else None
    return found is not None and found.stage == stage and found.done > 0


def within(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the test's own limit is for one that never comes."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("what was waited for did not come")


def test_rollback_swaps_back_and_the_next_run_brings_it_up_to_date(desk_folder: Path) -> None:
    run()
    (desk_folder / "docs" / "returns.md").write_text("# Giving back\n\nWithin 30 days.\n", "utf-8")
    run("--rebuild")
    assert "generation-1" in run("rollback").stdout
    assert (latest(desk_folder).kind, latest(desk_folder).state) == ("rollback", "complete")
    assert "live      generation-1" in run("status").stdout
    with pytest.raises(TwohopError, match="no generation before"):
        run("rollback")
    assert latest(desk_folder).state == "failed"
    found = run()
    assert "docs: 0 added, 1 changed" in found.stdout
    assert "removed generation-2, which was rolled back from" in found.stdout


def test_after_a_rollback_the_age_is_that_of_the_index_that_answers(
    desk_folder: Path, embedder: Embedder
) -> None:
    run()
    run("--rebuild")
    rebuilt = reported(run("status", "--json"))
    run("rollback")
    back = reported(run("status", "--json"))
    assert (rebuilt["rolled_back"], back["rolled_back"]) == (False, True)
    assert back["read_at"] == back["succeeded"]["ended_at"] < rebuilt["read_at"]
    assert "rolled back to that of" in run("status").stdout
    with closing(build(settings(desk_folder), embedder)) as bot:
        part = looks(bot, Inbox(bot.store.engine, "test", 60), runs_of(desk_folder), Metrics())["index"]()
        age = part.numbers["index_age_seconds"]
        assert isinstance(age, float)
        assert age > time.time() - rebuilt["read_at"]
        assert "rolled back" in part.said
    run()
    mended = reported(run("status", "--json"))
    assert (mended["rolled_back"], mended["read_at"] > rebuilt["read_at"]) == (False, True)


def test_front_matter_that_is_misspelt_is_named_and_never_opens_a_document(desk_folder: Path) -> None:
    (desk_folder / "docs" / "odd.md").write_text("---\nauthorty: terms\n---\n\nOdd text.\n", "utf-8")
    (desk_folder / "docs" / "secret.md").write_text("---\nraeders: [legal]\n---\n\nSecret text.\n", "utf-8")
    found = reported(run("--json"))
    skipped = {one["uri"]: one["reason"] for one in found["skipped"]}
    assert "'raeders' looks like 'readers' misspelt" in skipped["docs:secret.md"]
    assert found["sources"]["docs"]["added"] == 2
    (note,) = found["notes"]
    assert "docs:odd.md: front matter key 'authorty' means nothing here; is it 'authority'?" in note


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("max_tokens = 5000", r"chunks\.max_tokens = 5000 is more than the 256 tokens .*MiniLM.*at most 256"),
        (
            "overlap_tokens = 300",
            r"overlap_tokens 300 is more than a quarter of max_tokens 200; set at most 50",
        ),
    ],
)
def test_chunks_that_cannot_be_as_the_settings_say_stop_the_start(
    desk_folder: Path, line: str, said: str
) -> None:
    (desk_folder / "twohop.toml").write_text(f"{SETTINGS}\n[chunks]\n{line}\n", "utf-8")
    with pytest.raises(ConfigError, match=said):
        run()


def test_a_cluster_that_is_away_does_not_hide_the_runs(
    desk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setenv("TWOHOP_INDEX", "elastic")
    monkeypatch.setenv("ELASTICSEARCH_URL", "http://127.0.0.1:9")
    result = run("status")
    assert result.exit_code == 2
    assert "success   " in result.stdout
    assert "generations cannot be listed: Elasticsearch 'http://127.0.0.1:9'" in result.stdout


def test_a_folder_forgotten_after_a_rebuild_leaves_again_after_a_rollback(desk_folder: Path) -> None:
    more = desk_folder / "more"
    more.mkdir()
    (more / "extra.md").write_text("# Extra\n\nExtra text.\n", "utf-8")
    run("more")
    run("--rebuild")
    run("--forget", "more")
    run("rollback")
    found = reported(run("--json"))
    assert found["sources"]["more"]["removed"] == 1


def test_one_source_is_read_alone(desk_folder: Path) -> None:
    (desk_folder / "tickets.csv").unlink()
    found = reported(run("--source", "docs", "--json"))
    assert (found["ok"], list(found["sources"])) == (True, ["docs"])
    assert latest(desk_folder).sources == ["docs"]
    with pytest.raises(TwohopError, match="--source 'wiki': the sources are docs, tickets"):
        run("--source", "wiki")
    with pytest.raises(TwohopError, match="--source goes with neither"):
        run("--source", "docs", "--rebuild")


def test_a_dry_run_tells_what_would_be_done_and_its_cost_and_does_nothing(desk_folder: Path) -> None:
    run()
    docs = desk_folder / "docs"
    (docs / "returns.md").write_text("# Returns\n\nWithin 30 days.\n", "utf-8")
    (docs / "new.md").write_text("# New\n\nA new page.\n", "utf-8")
    listed = [path.name for path in (desk_folder / "data" / "index").glob("*.db")]
    found = reported(run("--dry-run", "--json"))
    assert found["dry_run"] is True
    assert found["documents"] == {"added": ["docs:new.md"], "changed": ["docs:returns.md"], "removed": []}
    assert found["cost"]["chunks"] == 2
    assert found["cost"]["seconds"] >= 0
    in_words = run("--dry-run").stdout
    assert "  added docs:new.md" in in_words
    assert "nothing was done; a run would embed 2 chunks in about" in in_words
    anew = reported(run("--dry-run", "--rebuild", "--json"))
    assert (anew["added"], anew["cost"]["chunks"]) == (3, 3)
    assert len(json.loads(run("history", "--json").stdout)) == 1
    assert [path.name for path in (desk_folder / "data" / "index").glob("*.db")] == listed
    assert reported(run("--json"))["changed"] == 1


@pytest.mark.parametrize(
    ("embedded", "seconds", "said"),
    [
        # Loading the model is most of a small run: what it took tells nothing of a large one.
        ([(1, 9.0), (2, 9.0), (300, 10.0), (600, 10.0)], 1, "in about 1 s (60 a second)"),
        ([(1, 9.0), (256, 1024.0)], 4, "in about 4 s (0.25 a second)"),
    ],
)
def test_a_dry_run_tells_its_cost_by_the_larger_runs(
    desk_folder: Path, embedded: list[tuple[int, float]], seconds: int, said: str
) -> None:
    runs = runs_of(desk_folder)
    for count, took in embedded:
        begun = runs.start("sync", why="command")
        assert begun is not None
        source = {"embedded": count, "embedding_seconds": took, "seconds": took * 2}
        runs.finish(begun.id, "complete", report={"sources": {"docs": source}})
    (desk_folder / "tickets.csv").unlink()
    assert f"would embed 1 chunks {said}" in run("--dry-run").stdout


def test_a_run_reports_how_long_embedding_took(desk_folder: Path) -> None:
    first, second = (reported(run("--json"))["sources"]["docs"] for _ in range(2))
    assert 0 < first["embedding_seconds"] <= first["seconds"]
    assert second["embedding_seconds"] == 0


def test_a_command_s_name_among_paths_is_told_apart(desk_folder: Path) -> None:
    with pytest.raises(TwohopError, match="write `twohop index status`"):
        run("docs", "status")
    (desk_folder / "status").mkdir()
    (desk_folder / "status" / "page.md").write_text("# Status page\n\nAll is well.\n", "utf-8")
    assert "status: 1 added" in run("./status").stdout
    assert "running   nothing" in run("status").stdout


# Golden questions

PAGES = {
    "refunds.md": ("Refunds", "A refund is paid within 14 days of the charge."),
    "exports.md": ("Data export", "An export holds every invoice as a CSV file."),
    "seats.md": ("Seats", "The Team plan includes ten users."),
}
ASKED = (
    ("r", "When is a refund paid?", ["docs:refunds.md"]),
    ("e", "How do I export all invoices?", ["docs:exports.md"]),
    ("s", "How many users has the Team plan?", ["docs:seats.md"]),
    ("t", "What is ticket 901 about?", ["ticket:901"]),
)


@pytest.fixture(params=["sqlite", pytest.param("elastic", marks=pytest.mark.elasticsearch)])
def golden(
    request: pytest.FixtureRequest, desk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Return the folder with documents, golden questions, and an index that answers them all."""
    with ExitStack() as stack:
        if request.param == "elastic":
            wanted, _ = stack.enter_context(cluster(request.config.getoption("--elasticsearch")))
            monkeypatch.setenv("TWOHOP_INDEX", "elastic")
            monkeypatch.setenv("ELASTICSEARCH_URL", wanted.url)
            monkeypatch.setenv("TWOHOP_ELASTICSEARCH__PREFIX", wanted.prefix)
        _write_golden(desk_folder)
        yield desk_folder


def _write_golden(desk_folder: Path) -> None:
    for name, (title, text) in PAGES.items():
        (desk_folder / "docs" / name).write_text(f"# {title}\n\n{text}\n", "utf-8")
    for i in range(15):
        (desk_folder / "docs" / f"other-{i}.md").write_text(
            f"# Note {i}\n\nWhen users export or pay, it is noted.\n", "utf-8"
        )
    lines = [json.dumps({"id": id_, "text": text, "sources": sources}) for id_, text, sources in ASKED]
    (desk_folder / "golden.jsonl").write_text("\n".join(lines), "utf-8")
    (desk_folder / "twohop.toml").write_text(f'{SETTINGS}\n[sync]\ngolden = "golden.jsonl"\n', "utf-8")
    assert reported(run("--json"))["golden"] == {"r": 1.0, "e": 1.0, "s": 1.0}


def asked(desk: Desk) -> set[str]:
    """Return what the answer to a golden question cites."""
    answer = desk.run(desk.answer(ASKED[0][1])).answer
    return {citation.source for citation in answer.citations}


def test_a_rebuild_that_finds_less_is_refused_and_the_bot_keeps_answering(
    golden: Path, embedder: Embedder
) -> None:
    bot = build(settings(golden), embedder)
    # What an export that went wrong looks like: every page is there, and says nothing.
    for name in ("refunds.md", "exports.md"):
        (golden / "docs" / name).write_text("# Please log in\n\nYour session is over.\n", "utf-8")
    result = run("--rebuild", "--json")
    assert result.exit_code == 1
    (said,) = reported(result)["failures"]
    assert "recall fell from 1.000 to 0.333" in said
    assert "r (1.00 to 0.00) 'When is a refund paid?'" in said
    assert "e (1.00 to 0.00)" in said
    assert "s (" not in said
    ended = latest(golden)
    assert (ended.kind, ended.state, ended.failure) == ("rebuild", "failed", said)
    assert {"Refunds", "Data export"} <= titles(bot)
    assert asked(bot) == {"docs:refunds.md"}
    assert [one.live for one in bot.index.generations()] == [True]
    bot.close()


def test_a_broken_chunker_is_refused_at_the_swap(golden: Path, embedder: Embedder) -> None:
    class Broken(Desk):
        """Loses what stands below a document's title, and the title of two."""

        def _documents(self, root: Root) -> tuple[Source, ToDocument]:
            source, read = super()._documents(root)

            def cut(changed: Changed) -> Document:
                document = read(changed)
                title = "Page" if document.title in ("Refunds", "Seats") else document.title
                return replace(document, title=title, text=document.text[:2])

            return source, cut

    bot, broken = build(settings(golden), embedder), Broken(settings(golden), embedder, for_rebuild=True)
    outcome = carry_out(broken, Order(rebuild=True), UNWATCHED)
    (said,) = outcome.failed
    assert "the golden questions find less: recall fell from 1.000 to 0.333" in said
    assert "r (1.00 to 0.00) 'When is a refund paid?'" in said
    assert "s (1.00 to 0.00) 'How many users has the Team plan?'" in said
    assert "e (" not in said
    assert said in list(outcome.lines())
    # Nothing of it is left, and whoever asks meanwhile is answered from what there was.
    assert [one.live for one in bot.index.generations()] == [True]
    assert bot.index.sweep().removed == ()
    assert bot.golden_recall() == {"r": 1.0, "e": 1.0, "s": 1.0}
    assert asked(bot) == {"docs:refunds.md"}
    for desk in (bot, broken):
        desk.close()


def test_an_index_of_another_identity_is_measured_against_what_was_recorded(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWOHOP_CHUNKS__MAX_TOKENS", "120")
    with pytest.raises(IdentityMismatch, match=r"120/40.*twohop index --rebuild"):
        run()
    (golden / "docs" / "refunds.md").write_text("# Please log in\n\nYour session is over.\n", "utf-8")
    (said,) = reported(run("--rebuild", "--json"))["failures"]
    assert "recall fell from 1.000 to 0.667" in said


def test_golden_questions_that_were_never_asked_are_said_to_be_compared_with_nothing(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (golden / "golden.jsonl").read_text("utf-8").splitlines()
    (golden / "golden.jsonl").write_text(lines[0].replace('"r"', '"new"'), "utf-8")
    monkeypatch.setenv("TWOHOP_CHUNKS__MAX_TOKENS", "120")
    found = run("--rebuild").stdout
    assert "golden questions: 1 asked, recall 1.000; there is nothing yet to compare that with" in found
    found = run("--rebuild").stdout
    assert "golden questions: 1 asked, recall 1.000" in found
    assert "nothing yet" not in found


def test_a_dry_run_asks_no_golden_question_and_says_that_a_rebuild_would(golden: Path) -> None:
    found = run("--dry-run", "--rebuild").stdout
    assert "before the swap the golden questions are asked" in found
    assert "recall" not in found
    assert "golden" not in run("--dry-run").stdout


BROKEN = {
    "[[": r"sync\.golden 'golden\.jsonl' line 1 is '\[\[', which is no question .*; write lines such as",
    '[{"text": "a"}]': r"line 1 is .* no question \(.*object.*\); write lines such as",
    '{"text": "no sources"}': r"line 1 is .* no question \(sources: Field required\); write lines such as",
    '{"text": "", "sources": ["docs:seats.md"]}': r"line 1 is .* no question \(text: .*\); write lines such as",
    '{"text": "only a ticket", "sources": ["ticket:901"]}': "holds no question .*; write lines such as",
    '{"id": "a", "text": "a", "sources": ["docs:seats.md"]}\n'
    '{"id": "a", "text": "b", "sources": ["docs:seats.md"]}': "line 2 has the id 'a' of an earlier line; give it",
    '{"text": "a", "sources": ["docs:seats.md", "seats.md", "docs:Seats.md"]}': (
        r"not in the index: 'seats\.md' \(line 1\), 'docs:Seats\.md' \(line 1\); write in sync\.golden what"
    ),
}


@pytest.mark.parametrize("lines", BROKEN)
def test_golden_questions_that_cannot_be_asked_refuse_a_rebuild_and_no_sync(
    desk_folder: Path, embedder: Embedder, lines: str
) -> None:
    _write_golden(desk_folder)
    (desk_folder / "golden.jsonl").write_text(lines, "utf-8")
    (desk_folder / "docs" / "new.md").write_text("# New\n\nA new page.\n", "utf-8")
    desk = build(settings(desk_folder), embedder)
    earlier = runs_of(desk_folder).history()
    for history in ([], earlier):
        outcome = carry_out(desk, Order(), UNWATCHED, history)
        (note,) = outcome.notes
        assert re.search(BROKEN[lines], note)
        assert f"note: {note}" in list(outcome.lines())
        assert outcome.as_json()["ok"] is True
    assert "New" in titles(desk)
    before = desk.index.generations()
    with pytest.raises(ConfigError, match=BROKEN[lines]):
        carry_out(desk, Order(rebuild=True), UNWATCHED, earlier)
    assert desk.index.generations() == before
    desk.close()


def test_a_golden_question_that_finds_nothing_is_named(golden: Path) -> None:
    hidden = "---\nreaders: [support]\n---\n# Secret\n\nThe spare key is in the drawer.\n"
    (golden / "docs" / "secret.md").write_text(hidden, "utf-8")
    with (golden / "golden.jsonl").open("a", encoding="utf-8") as file:
        question = {"id": "k", "text": "Where is the spare key?", "sources": ["docs:secret.md"]}
        file.write(f"\n{json.dumps(question)}")
    assert "golden questions that find none of their documents: k" in run("--rebuild").stdout


def test_a_golden_file_that_is_gone_stops_a_rebuild(golden: Path) -> None:
    (golden / "golden.jsonl").unlink()
    with pytest.raises(ConfigError, match="take the setting out"):
        run("--rebuild")
    assert latest(golden).state == "failed"
