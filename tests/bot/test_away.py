"""A ticket database or a cluster that is away when a command starts fails alone; a wrong setting stops the start."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner, Result

from bot.app import build
from bot.cli import app
from bot.config import Settings, load
from ingest.config import CalendarSettings, TicketSettings
from ingest.errors import ConfigError, DatabaseAway, IndexAway, IndexingError
from ingest.tickets import TicketStore
from tests.desks import answer
from tests.fakes import HashingEmbedder
from tests.ingest.elastic_server import ElasticServer, error

BIKE = "Within how many days can I return a bike?"
CASE = "What is the status of ticket 4812?"
SETTINGS = """
[sources]
paths = ["docs"]

[tickets]
table = "cases"
columns = { number = "case_no", status = "state", subject = "title" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with a document and a company's own ticket database."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "returns.md").write_text(
        "# Returns\n\nA bike can be returned within 20 days of its delivery.\n", "utf-8"
    )
    (tmp_path / "twohop.toml").write_text(SETTINGS, "utf-8")
    connection = sqlite3.connect(tmp_path / "crm.db")
    connection.execute("CREATE TABLE cases (case_no integer primary key, state text, title text)")
    connection.execute("INSERT INTO cases VALUES (4812, 'open', 'Refund')")
    connection.commit()
    connection.close()
    monkeypatch.setenv("TWOHOP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TICKETS_DATABASE_URL", f"sqlite:///{tmp_path / 'crm.db'}")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_documents_are_read_and_answered_while_the_ticket_database_is_away(folder: Path) -> None:
    shutil.move(folder / "crm.db", folder / "away.db")
    alone = run("index", "--source", "docs", "--json")
    assert alone.exit_code == 0, alone.output
    whole = run("index", "--json")
    assert whole.exit_code == 1
    report = json.loads(whole.stdout.splitlines()[-1])
    assert report["failures"] == ["tickets: the ticket database cannot be read at the moment"]
    assert report["sources"]["docs"]["unchanged"] == 1
    assert (report["sources"]["docs"]["complete"], report["sources"]["tickets"]["complete"]) == (True, False)
    asked = run("ask", BIKE)
    assert asked.exit_code == 0
    assert "20 days" in asked.stdout
    assert "crm.db" in asked.stderr
    missed = run("ask", CASE)
    assert missed.exit_code == 0
    assert "ticket database cannot be read at the moment" in missed.stdout.lower()
    shutil.move(folder / "away.db", folder / "crm.db")
    assert run("index", "--json").exit_code == 0
    assert "open" in run("ask", CASE).stdout


@pytest.mark.parametrize("may_be_away", [True, False])
def test_a_wrong_setting_stops_every_start(folder: Path, may_be_away: bool) -> None:
    url = f"sqlite:///{folder / 'crm.db'}"
    for table, columns in (("cases", {"number": "case_number"}), ("tickets", {"number": "case_no"})):
        settings = TicketSettings(table=table, columns=columns)
        with pytest.raises(ConfigError) as caught:
            TicketStore(url, settings, CalendarSettings(), may_be_away=may_be_away)
        assert not isinstance(caught.value, DatabaseAway)


def test_a_server_that_cannot_be_reached_is_away_and_stops_the_start_of_whoever_needs_it() -> None:
    settings = TicketSettings(table="cases", columns={"number": "case_no"}, timeout_seconds=1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://bot:secret@127.0.0.1:{closed.getsockname()[1]}/crm"
        with pytest.raises(DatabaseAway):
            TicketStore(url, settings, CalendarSettings())
        store = TicketStore(url, settings, CalendarSettings(), may_be_away=True)
    assert "127.0.0.1" in store.away
    assert "secret" not in store.away
    assert store.customers() == ()
    store.close()


@pytest.mark.postgres
def test_a_database_that_the_server_does_not_have_is_a_wrong_setting(postgres_url: str) -> None:
    settings = TicketSettings(table="cases", columns={"number": "case_no"})
    wrong = make_url(postgres_url).set(database="no_such_database").render_as_string(hide_password=False)
    with pytest.raises(ConfigError) as caught:
        TicketStore(wrong, settings, CalendarSettings(), may_be_away=True)
    assert not isinstance(caught.value, DatabaseAway)


# --- a cluster ---------------------------------------------------------------------------------------------------


@pytest.fixture
def clustered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Settings, ElasticServer]]:
    embedder = HashingEmbedder()
    with ElasticServer("twohop", "another identity", embedder.dimensions) as server:
        monkeypatch.setenv("TWOHOP_INDEX", "elastic")
        monkeypatch.setenv("ELASTICSEARCH_URL", server.url)
        yield load(folder / "twohop.toml"), server


async def test_tickets_are_answered_by_a_desk_that_is_opened_while_the_cluster_is_away(
    clustered: tuple[Settings, ElasticServer],
) -> None:
    settings, server = clustered
    for path in ("/", "/twohop", "/_msearch", "/_alias/twohop,twohop-previous-*", "/twohop-generation-*"):
        server.say(path, error(503, "no_master", "the cluster has no master"))
    with pytest.raises(IndexAway):
        build(settings, HashingEmbedder())
    desk = build(settings, HashingEmbedder(), may_be_away=("index", "tickets"))
    try:
        (said,) = desk.away
        assert server.url in said
        told = await answer(desk, CASE)
        assert "Status: open" in told.text
        assert "The documents could not be searched, so that this rests on the tickets alone." in told.text
        assert (await answer(desk, BIKE)).shape == "unavailable"
    finally:
        desk.close()


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_the_cluster_refuses_stops_every_start(
    clustered: tuple[Settings, ElasticServer], status: int
) -> None:
    settings, server = clustered
    server.say("/", error(status, "security_exception", "no"))
    with pytest.raises(IndexingError) as caught:
        build(settings, HashingEmbedder(), may_be_away=("index", "tickets"))
    assert not isinstance(caught.value, IndexAway)
