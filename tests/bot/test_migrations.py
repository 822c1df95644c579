"""Migrations: what the models describe, from whatever was there, on both databases; nothing lost, nothing half done."""

from __future__ import annotations

import gc
import re
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import MetaData, inspect, make_url, text
from sqlmodel import SQLModel
from typer.testing import CliRunner

from bot.cli import app
from bot.store import Inbox, Store
from bot.store.state import STATE, VERSION_TABLE, engine_of, opened
from ingest.embed import Embedder, embedder_for
from ingest.errors import ConfigError
from ingest.runs import Runs
from tests.desks import prepared, small_settings

HERE = Path(__file__).parent
BEFORE = (HERE / "state_before_migrations.sql").read_text(encoding="utf-8")
ROWS = """
INSERT INTO turn VALUES ('t1', '', '2026-09-26 12:00:00', 'U1', 'gated', '2026-09-26T12:00:00+00:00', 'Q', 'Q', 'answered',
  'Áé', '{"verdict": null}', '[["members"]]', '["4812"]', '[]', 12);
INSERT INTO inbox VALUES ('i1', 'Ev1', 'T', 'C', 'channel', 'U1', 'hello', '1.0', '1.0', 0, '', 1.5, 'new', '', 0, 0, 0, 0,
  '', '[]', false, '');
INSERT INTO run VALUES ('r1', 'sync', '["docs"]', '', 'schedule', 'docs@1', 1.5, 2.5, 'complete', 'p', 9.5, '', 3, '', '',
  true, '{"added": 3}', '');
INSERT INTO alarm VALUES ('docs', 1.5);
"""
ANOTHER = """
import time
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("turn") as turn:
        turn.add_column(sa.Column("helpful", sa.Boolean(), nullable=False, server_default=sa.true()))
        turn.alter_column("shape", new_column_name="form")
    {then}
"""


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Yield a transaction on a database as it stands."""
    engine = engine_of(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def run_script(url: str, script: str) -> None:
    with connected(url) as connection:
        for statement in script.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)


def made_before(url: str) -> None:
    """Make the state as versions without migrations did, with a row in each table."""
    moment = "DATETIME" if url.startswith("sqlite") else "TIMESTAMP WITH TIME ZONE"
    run_script(url, BEFORE.replace("{moment}", moment) + ROWS)


def contents(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables but the version."""
    with connected(url) as connection:
        names = sorted(set(inspect(connection).get_table_names()) - {VERSION_TABLE})
        return {
            name: [dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()]
            for name in names
        }


def revision(url: str) -> str | None:
    with connected(url) as connection:
        found: str | None = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE}
        ).get_current_revision()
        return found


def differences(url: str) -> list[Any]:
    with connected(url) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        return list(compare_metadata(context, STATE))


@pytest.fixture
def later(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes the migrations of a version after this one, and returns their folder."""

    def write(then: str = "") -> str:
        folder = tmp_path / "later"
        shutil.copytree(HERE.parents[1] / "bot" / "migrations", folder, dirs_exist_ok=True)
        (folder / "versions" / "0002_later.py").write_text(ANOTHER.replace("{then}", then), encoding="utf-8")
        return str(folder)

    return write


def test_an_empty_database_gets_what_the_models_describe(database_url: str) -> None:
    opened(database_url).dispose()
    assert set(contents(database_url)) == set(STATE.tables)
    assert differences(database_url) == []


def test_a_difference_between_models_and_tables_is_seen(database_url: str) -> None:
    opened(database_url).dispose()
    run_script(database_url, "DROP INDEX inbox_open;\nALTER TABLE turn ADD COLUMN extra INTEGER;\n")
    assert sorted(str(found[0]) for found in differences(database_url)) == ["add_index", "remove_column"]


def test_a_database_from_before_the_migrations_goes_on_with_its_rows(database_url: str) -> None:
    made_before(database_url)
    before = contents(database_url)
    opened(database_url).dispose()
    assert contents(database_url) == before
    assert differences(database_url) == []
    store = Store(database_url)
    try:
        assert (store.get("t1").text, store.get("t1").tickets) == ("Áé", ["4812"])
        row = Inbox(store.engine, "p", 30).claim()
        assert row is not None
        assert row.text == "hello"
        runs = Runs(store.engine, "p", 30)
        assert runs.get("r1").report == {"added": 3}
        assert runs.slot_taken("docs@1")
        assert not runs.raise_alarm("docs")
    finally:
        store.close()


def test_a_database_from_before_a_table_gets_that_table(database_url: str) -> None:
    made_before(database_url)
    run_script(database_url, "DROP TABLE alarm;\nDROP INDEX inbox_thread;\n")
    opened(database_url).dispose()
    assert differences(database_url) == []
    assert [row["id"] for row in contents(database_url)["turn"]] == ["t1"]


def test_a_table_of_our_name_that_is_not_ours_is_refused_and_left_alone(database_url: str) -> None:
    run_script(database_url, "CREATE TABLE run (id INTEGER, distance INTEGER);\n")
    with pytest.raises(ConfigError, match=r"a table 'run' without .*slot.*name another database"):
        opened(database_url)
    assert contents(database_url) == {"run": []}


def test_the_next_revision_keeps_the_rows(database_url: str, later: Callable[..., str]) -> None:
    made_before(database_url)
    opened(database_url).dispose()
    opened(database_url, later()).dispose()
    assert revision(database_url) == "0002"
    (turn,) = contents(database_url)["turn"]
    assert (turn["id"], turn["form"], turn["text"], bool(turn["helpful"])) == ("t1", "answered", "Áé", True)


def test_a_revision_that_fails_leaves_the_database_as_it_was(
    database_url: str, later: Callable[..., str]
) -> None:
    made_before(database_url)
    opened(database_url).dispose()
    before = contents(database_url)
    with pytest.raises(ZeroDivisionError):
        opened(database_url, later("1 / 0"))
    assert contents(database_url) == before
    assert revision(database_url) == "0001"
    opened(database_url).dispose()


def test_of_processes_that_start_at_once_one_changes_the_tables(
    database_url: str, later: Callable[..., str]
) -> None:
    made_before(database_url)
    migrations = later("time.sleep(0.1)")
    together = threading.Barrier(4)
    failed: list[BaseException] = []

    def start() -> None:
        together.wait()
        try:
            opened(database_url, migrations).dispose()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert revision(database_url) == "0002"
    assert [row["id"] for row in contents(database_url)["turn"]] == ["t1"]


def test_a_database_of_a_newer_version_refuses_the_start(
    database_url: str, later: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(database_url, later()).dispose()
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["trace"])
    assert isinstance(refused.exception, ConfigError)
    said = str(refused.exception)
    assert "is at revision '0002', and this version knows only up to '0001'" in said
    assert "install the version that wrote it" in said
    assert revision(database_url) == "0002"


@pytest.mark.postgres
@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_is_named_as_people_name_it(postgres_url: str, scheme: str) -> None:
    engine = opened(scheme + postgres_url[postgres_url.index(":") :])
    assert engine.dialect.driver == "psycopg"
    engine.dispose()


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"DATABASE_URL, .* cannot be used.*127\.0\.0\.1") as refused:
        opened("postgres://bot:secret@127.0.0.1:9/state")
    assert "secret" not in str(refused.value)


@contextmanager
def only_read(url: str) -> Iterator[str]:
    """Make a state that is up to date one that can only be read, and yield what reaches it so."""
    address = make_url(url)
    if url.startswith("sqlite"):
        file = Path(address.database or "")
        with closing(sqlite3.connect(file)) as whole:
            whole.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        held = bytearray(file.read_bytes())
        # What writes this version of the format is newer than SQLite, which then only reads it; a test may run as root.
        held[18] = 9
        file.write_bytes(held)
        yield url
        return
    role = f"twohop_reader_{uuid.uuid4().hex[:8]}"
    run_script(
        url,
        f"CREATE ROLE {role} LOGIN PASSWORD 'hidden'; GRANT USAGE ON SCHEMA public TO {role}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};",
    )
    try:
        yield address.set(username=role, password="hidden").render_as_string(hide_password=False)
    finally:
        run_script(url, f"DROP OWNED BY {role}; DROP ROLE {role};")


def test_a_state_that_can_only_be_read_is_refused_at_the_start_and_by_the_doctor(
    database_url: str, tmp_path: Path
) -> None:
    opened(database_url).dispose()
    with only_read(database_url) as url:
        with pytest.raises(ConfigError) as refused:
            opened(url)
        environ = {"DATABASE_URL": url, "TWOHOP_DATA": str(tmp_path / "data")}
        told = CliRunner().invoke(app, ["doctor"], env=environ).output
        asked = CliRunner().invoke(app, ["ask", "How long is the refund window?"], env=environ)
    assert re.search(
        r"permission denied for table \w+; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES|"
        r"readonly database; see that whoever runs Twohop may write the file",
        said := str(refused.value),
    ), said
    assert "database.db" in said or "of DATABASE_URL, 'postgresql" in said
    assert isinstance(asked.exception, ConfigError)
    (line,) = [line for line in told.splitlines() if " state database: " in line]
    assert line.startswith("FAIL")
    assert "hidden" not in said + told


def test_a_state_that_loses_its_right_to_write_is_not_well_and_no_account_is_named(database_url: str) -> None:
    opened(database_url).dispose()
    store = Store(database_url)
    store.prove()
    store.close()
    with only_read(database_url) as url:
        store.engine = engine_of(url)
        with pytest.raises(ConfigError, match=r"permission denied|readonly database") as unwell:
            store.prove()
        store.close()
    assert not re.search("twohop_reader|hidden|://", str(unwell.value))


def test_a_state_that_cannot_be_reached_is_the_state_databases_matter_alone(tmp_path: Path) -> None:
    settings = small_settings(tmp_path, {"a.md": "# A\n\nText."})
    prepared(settings, embedder_for(settings.embedding)).close()
    environ = {
        "DATABASE_URL": "postgresql://bot:hidden@127.0.0.1:9/state",
        "TWOHOP_DATA": str(settings.data),
        "TWOHOP_SOURCES__PATHS": f'["{tmp_path / "docs"}"]',
    }
    lines = CliRunner().invoke(app, ["doctor"], env=environ).output.splitlines()
    failed = [line for line in lines if line.startswith("FAIL")]
    assert len(failed) == 1, failed
    assert re.match(r"FAIL  state database: .*DATABASE_URL.*127\.0\.0\.1.*check that it runs", failed[0])
    assert [line for line in lines if line.startswith("ok    index: 1 documents")]
    assert "hidden" not in "\n".join(lines)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_a_database_in_memory_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL names no file"):
        opened(url)


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(ConfigError, match="a database of the kind 'mysql'; write postgresql://") as refused:
        opened("mysql://bot:secret@127.0.0.1/state")
    assert "secret" not in str(refused.value)


def test_the_state_and_the_tickets_share_no_table_and_no_metadata(tmp_path: Path, embedder: Embedder) -> None:
    settings = small_settings(tmp_path, {"a.md": "# A\n\nText."}, [{"number": "4812", "subject": "Refund"}])
    desk = prepared(settings, embedder)
    try:
        state, tickets = (
            set(contents(f"sqlite:///{settings.data / name}.db")) for name in ("state", "tickets")
        )
        assert state == set(STATE.tables)
        assert tickets
        assert not state & tickets
        held = [set(found.tables) for found in gc.get_objects() if type(found) is MetaData]
        assert [tables for tables in held if tables & tickets]
        assert not [tables for tables in held if tables & tickets and tables & state]
        assert not SQLModel.metadata.tables
    finally:
        desk.close()
