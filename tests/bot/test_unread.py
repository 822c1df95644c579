"""Before sources were read to their end nobody is told that something is not in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.app import Desk, build
from bot.cli import app
from bot.cli.common import store_of
from bot.config import Settings, load
from bot.indexing import Order, carry_out
from ingest.errors import TwohopError
from ingest.runs import Pulse, Run, Runs, RunStopped
from ingest.sync import UNWATCHED
from tests.desks import answer, small_settings
from tests.indexes import EMBEDDER

NOT_YET = "have not been read to their end yet"
RETURNS = {"returns.md": "# Returns\n\nGoods can be returned within 20 days of the delivery.\n"}
REPAIRS = "# Repairs\n\nA repair takes 9 days at the workshop.\n"
RETURN = "Within how many days can goods be returned?"
REPAIR = "How many days does a repair take at the workshop?"


class Until:
    """A Watch that ends the run when a stage begins."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def stage(self, name: str) -> None:
        if name == self._stage:
            raise RunStopped("somebody cancelled it", cancelled=True)

    def progress(self, done: int, uri: str) -> None:
        """Let it go on."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    repairs = tmp_path / "repairs"
    repairs.mkdir()
    (repairs / "repairs.md").write_text(REPAIRS, "utf-8")
    return small_settings(tmp_path, RETURNS)


@contextmanager
def opened(settings: Settings) -> Iterator[tuple[Desk, Runs]]:
    desk = build(settings, EMBEDDER)
    try:
        yield desk, Runs(desk.store.engine, "tests", settings.sync.lease_seconds)
    finally:
        desk.close()


def run(desk: Desk, runs: Runs, *named: Path, until: str = "") -> Run:
    """Carry out an index run, which is cancelled where it reaches a stage."""
    begun = runs.start("sync", why="command")
    assert begun is not None
    try:
        with Pulse(runs, begun, deadline_seconds=300) as pulse:
            watch = Until(until) if until else UNWATCHED
            outcome = carry_out(desk, Order(named), watch)
            pulse.finish(outcome.as_json(), outcome.failed)
    except RunStopped:
        assert until
    return runs.get(begun.id)


async def test_during_the_first_run_it_is_said_since_when_it_is_under_way(settings: Settings) -> None:
    with opened(settings) as (desk, runs):
        begun = runs.start("sync", why="schedule")
        assert begun is not None
        told = await answer(desk, RETURN)
        assert told.shape == "unavailable"
        assert told.text.count(NOT_YET) == 1, told.text
        assert "(index run since " in told.text
        assert "could not find" not in told.text
        assert "I searched" not in told.text
        known = await answer(desk, "What do you know?")
        assert known.text.count(NOT_YET) == 1, known.text


async def test_after_a_run_that_was_cancelled_what_is_found_is_said_with_a_note_until_one_is_complete(
    settings: Settings, tmp_path: Path
) -> None:
    with opened(settings) as (desk, runs):
        stopped = run(desk, runs, *settings.sources.paths, tmp_path / "repairs", until="reading repairs")
        assert stopped.state == "cancelled"
        found = await answer(desk, RETURN)
        assert "20 days" in found.text
        assert found.shape == "partial"
        assert found.text.count(NOT_YET) == 1, found.text
        assert "run `twohop index`" in found.text
        missed = await answer(desk, REPAIR)
        assert missed.shape == "unavailable"
        assert "could not find" not in missed.text
        assert missed.text.count(NOT_YET) == 1, missed.text
        assert run(desk, runs).state == "complete"
        for question, needed in ((RETURN, "20 days"), (REPAIR, "9 days")):
            whole = await answer(desk, question)
            assert needed in whole.text
            assert whole.shape == "answered"
            assert NOT_YET not in whole.text
        assert (await answer(desk, "Who won the chess cup in Oslo?")).shape == "not_found"


async def test_a_folder_that_was_added_and_not_read_to_its_end_is_said(
    settings: Settings, tmp_path: Path
) -> None:
    with opened(settings) as (desk, runs):
        run(desk, runs)
    with opened(settings) as (desk, runs):
        assert NOT_YET not in (await answer(desk, REPAIR)).text
        run(desk, runs, tmp_path / "repairs", until="reading repairs")
        assert NOT_YET in (await answer(desk, REPAIR)).text
        run(desk, runs, tmp_path / "repairs")
        assert "9 days" in (await answer(desk, REPAIR)).text
    both = settings.sources.model_copy(update={"paths": (*settings.sources.paths, tmp_path / "new")})
    (tmp_path / "new").mkdir()
    with opened(settings.model_copy(update={"sources": both})) as (desk, runs):
        assert NOT_YET in (await answer(desk, REPAIR)).text


async def test_a_source_that_fails_does_not_make_the_others_unread(
    settings: Settings, tmp_path: Path
) -> None:
    both = settings.sources.model_copy(update={"paths": (*settings.sources.paths, tmp_path / "repairs")})
    with opened(settings.model_copy(update={"sources": both})) as (desk, runs):
        run(desk, runs)
        shutil.move(tmp_path / "repairs", tmp_path / "away")
        assert run(desk, runs).state == "failed"
    with opened(settings.model_copy(update={"sources": both})) as (desk, _):
        assert NOT_YET not in (await answer(desk, RETURN)).text


async def test_a_ticket_file_that_could_not_be_imported_was_not_read(
    settings: Settings, tmp_path: Path
) -> None:
    tickets = settings.tickets.model_copy(update={"csv": (tmp_path / "tickets.csv",)})
    with opened(settings.model_copy(update={"tickets": tickets})) as (desk, runs):
        assert run(desk, runs).state == "failed"
        assert NOT_YET in (await answer(desk, "How many tickets are open?")).text
        (tmp_path / "tickets.csv").write_text("number,subject,status\n1,Late,open\n", encoding="utf-8")
        assert run(desk, runs).state == "complete"
        assert "1 found" in (await answer(desk, "How many tickets are open?")).text


async def test_what_was_read_into_another_index_is_not_read_into_this_one(settings: Settings) -> None:
    with opened(settings) as (desk, runs):
        run(desk, runs)
    shutil.rmtree(settings.data / "index")
    with opened(settings) as (desk, runs):
        assert NOT_YET in (await answer(desk, RETURN)).text


async def test_an_index_that_no_run_wrote_is_taken_as_it_is(settings: Settings) -> None:
    with opened(settings) as (desk, _):
        desk.sync_documents()
        found = await answer(desk, RETURN)
        assert found.shape == "answered"
        assert NOT_YET not in found.text


def test_ask_waits_for_the_first_run_instead_of_asking_for_another(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TWOHOP_DATA", str(settings.data))
    (tmp_path / "twohop.toml").write_text('[sources]\npaths = ["docs"]\n', "utf-8")
    with closing(store_of(load(None))) as store:
        runs = Runs(store.engine, "tests", settings.sync.lease_seconds)
        assert runs.start("sync", why="schedule") is not None
    with pytest.raises(
        TwohopError, match=r"nothing is indexed yet; wait for the end of the index run since \d\d:"
    ):
        CliRunner().invoke(app, ["ask", RETURN], catch_exceptions=False)
