"""A company's own ticket database: other names for everything, read where it is, by the flows that answer."""

from __future__ import annotations

import csv
import logging
import os
import re
import shutil
import signal
import sqlite3
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from sqlalchemy import MetaData, Table, create_engine, inspect, make_url, text
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from bot.app import Desk, build
from bot.cli import app
from bot.config import Settings
from bot.health import looks
from bot.metrics import Metrics
from bot.sample import sample as folder
from bot.store import Inbox
from bot.store.state import opened as state
from ingest.config import CalendarSettings, SourceSettings, TicketSettings
from ingest.embed import Embedder
from ingest.errors import ConfigError, DatabaseAway, TicketImportError, TicketsUnavailable, TwohopError
from ingest.runs import Runs
from ingest.sources import Failed
from ingest.tickets import TicketFilter, TicketStore
from ingest.tickets.dialects import Postgresql, Sqlite, refuse_writes
from ingest.tickets.engines import reading
from tests import postgres
from tests.desks import answer, prepared, sample_settings, small_settings
from tests.fakes import HashingEmbedder

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 9, 26, 12, tzinfo=MADRID)
SUPPORT = frozenset({"members", "support"})
COLUMNS = {
    "number": "case_no",
    "customer": "client name",
    "status": "state",
    "priority": "urgency",
    "assignee": "owner",
    "subject": "title",
    "body": "details",
    "resolution": "answer",
    "opened_at": "created",
    "updated_at": "changed",
}
FACETS = {"plan": "tier", "billing": "Cycle"}
EVENTS = {"charge": "charged"}
ACTIONS = {
    "refund request": "refund_asked",
    "first response": "answered_first",
    "resolution": "done",
}
PERSONAL = ("mail",)
OURS = {
    **{column: name for name, column in COLUMNS.items()},
    "tier": "plan",
    "Cycle": "billing",
    "charged": "charged_on",
    "refund_asked": "refund_requested_on",
    "answered_first": "first_responded_at",
    "done": "resolved_at",
    "mail": "contact_email",
}
"""Column of the company to column of the sample's file."""
TYPES = {
    "case_no": "integer primary key",
    "created": "timestamp with time zone",
    "changed": "timestamp",
    "charged": "date",
    "refund_asked": "date",
    "answered_first": "timestamp",
    "done": "timestamp",
}
Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Company:
    """A database of somebody else's, and the account that owns it."""

    url: str

    @property
    def sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    @property
    def table(self) -> str:
        return "cases" if self.sqlite else "desk.cases"

    def run(self, *statements: str, rows: Rows = ()) -> None:
        """Do what the company does with its own database."""
        url = make_url(self.url)
        engine = create_engine(url if self.sqlite else url.set(drivername="postgresql+psycopg"))
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement), *([rows] if rows else []))
        engine.dispose()

    def fill(self, rows: Rows, table: str = "", **types: str) -> None:
        """Make a table with these rows; a column of the given types, else of those above, else of text."""
        names = list(rows[0])
        kinds = TYPES | types
        made = ", ".join(f'"{name}" {kinds.get(name, "text")}' for name in names)
        if not self.sqlite:
            self.run("CREATE SCHEMA IF NOT EXISTS desk")
        self.run(f"CREATE TABLE {table or self.table} ({made})")
        values = ", ".join(f":v{at}" for at in range(len(names)))
        numbered = [{f"v{at}": row[name] for at, name in enumerate(names)} for row in rows]
        self.run(f"INSERT INTO {table or self.table} VALUES ({values})", rows=numbered)

    def settings(self, **more: Any) -> TicketSettings:
        """Return settings that map the table, as far as they are not given."""
        mapped = {
            "columns": COLUMNS,
            "facets": FACETS,
            "events": EVENTS,
            "actions": ACTIONS,
            "personal": PERSONAL,
        }
        return TicketSettings(**{"table": self.table, **mapped, **more})


@pytest.fixture
def company(database_url: str) -> Company:
    """Return an empty database on each kind of server."""
    made = Company(database_url)
    made.run("SELECT 1")
    return made


@pytest.fixture
def opened(company: Company) -> Iterator[Callable[..., TicketStore]]:
    stores: list[TicketStore] = []

    def build_store(**more: Any) -> TicketStore:
        clock = more.pop("clock", lambda: 0.0)
        settings = company.settings(**more)
        stores.append(TicketStore(company.url, settings, CalendarSettings(zone="Europe/Madrid"), clock))
        return stores[-1]

    yield build_store
    for store in stores:
        store.close()


def sample_rows() -> Rows:
    """Return the sample's tickets as the company keeps them."""

    def kept(held: dict[str, str]) -> dict[str, object]:
        row = {theirs: held[ours] for theirs, ours in OURS.items()}
        opened_at = datetime.fromisoformat(row["created"]).replace(tzinfo=MADRID)
        own = {"case_no": int(row["case_no"].removeprefix("TCK-")), "created": opened_at.isoformat()}
        return {**{name: value or None for name, value in row.items()}, **own}

    with (folder() / "tickets.csv").open(encoding="utf-8", newline="") as stream:
        return [kept(held) for held in csv.DictReader(stream)]


def case(number: Any, **given: Any) -> dict[str, Any]:
    """Return one row of the company's."""
    empty: dict[str, Any] = dict.fromkeys(OURS)
    return {**empty, "case_no": number, "client name": "Nord Supply", "title": "Export", **given}


def settings_of(company: Company, data: Path, **more: Any) -> Settings:
    """Return the sample's settings over the company's own tickets."""
    tickets = company.settings(**more)
    return sample_settings(data).model_copy(update={"tickets": tickets, "tickets_database_url": company.url})


@pytest.fixture
def desk(company: Company, tmp_path: Path, embedder: Embedder) -> Iterator[Desk]:
    company.fill(sample_rows())
    made = prepared(settings_of(company, tmp_path), embedder)
    yield made
    made.close()


async def test_the_question_the_product_exists_for_on_a_companys_own_table(desk: Desk) -> None:
    answered = await answer(desk, "Is the customer on ticket 4812 entitled to a refund?")
    assert answered.verdict is not None
    assert answered.verdict.decision == "yes"
    for needed in ("30 days", "13 September", "11 days before"):
        assert needed in answered.text, answered.text
    assert {"ticket:4812"} < {citation.source for citation in answered.citations}


async def test_the_same_answers_as_from_the_file(desk: Desk, sample: Desk) -> None:
    for question in (
        "Who works on ticket 4812?",
        "How many open tickets does each plan have?",
        "Which urgent tickets were opened in August?",
        "Was ticket 4821 answered in time?",
        "How was ERR_SSO-4032 solved for Northgate Veterinary?",
    ):
        theirs, ours = await answer(desk, question), await answer(sample, question)
        assert theirs.text == ours.text


def test_a_row_in_the_companys_words_is_a_ticket_in_ours(
    company: Company, opened: Callable[..., TicketStore]
) -> None:
    company.fill(
        [
            case(
                4812,
                **{
                    "client name": "  Bistró Núñez ",
                    "tier": "Team",
                    "title": "a\tb\nc",
                    "mail": "x@y.example",
                },
                created="2026-09-01T22:30:00Z",
                changed="2026-09-02 10:14:00",
                charged="2026-08-14",
                answered_first="2026-09-02 11:00:00",
            ),
            case(4900),
        ]
    )
    store = opened()
    ticket = store.get("TCK-4812", SUPPORT)
    assert ticket is not None
    assert (ticket.number, ticket.customer, ticket.subject) == ("4812", "Bistró Núñez", "a b c")
    assert ticket.facets == {"plan": "Team"}
    assert ticket.opened_at == datetime(2026, 9, 2, 0, 30, tzinfo=MADRID)
    assert ticket.updated_at == datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)
    assert ticket.events == {"charge": date(2026, 8, 14), "opening": ticket.opened_at}
    assert ticket.actions == {"first response": datetime(2026, 9, 2, 11, tzinfo=MADRID)}
    assert ticket.personal == {"mail": "x@y.example"}
    assert store.as_of() == ticket.updated_at
    assert store.get("9999", SUPPORT) is None
    assert store.get("4812", frozenset({"members"})) is None
    assert store.find(TicketFilter(customer="bistro nunez"), SUPPORT).total == 1
    (listed,) = store.find(TicketFilter(has="first response", has_from=date(2026, 9, 2)), SUPPORT).tickets
    assert (listed.number, dict(listed.personal)) == ("4812", {})
    day = date(2026, 9, 2)
    assert store.find(TicketFilter(opened_from=day, opened_to=day), SUPPORT).total == 1
    assert store.find(TicketFilter(lacks="charge"), SUPPORT).tickets[0].number == "4900"


def test_words_are_found_whatever_their_case_and_accents(
    company: Company, opened: Callable[..., TicketStore]
) -> None:
    company.fill([case(4812, title="Facturación", details="100% ÓPTIMO"), case(4813, answer="Reset_it")])
    store = opened()
    for said, number in (("facturacion", "4812"), ("optimo", "4812"), ("100%", "4812"), ("RESET_IT", "4813")):
        assert [t.number for t in store.find(TicketFilter(text=said), SUPPORT).tickets] == [number]
    assert store.find(TicketFilter(text="' OR 1=1 --"), SUPPORT).total == 0


@pytest.mark.parametrize("spelled", ["4812", "TCK-4812", "tck-4812", "#4812"])
def test_a_number_kept_as_text_is_found_however_it_is_written(
    company: Company, opened: Callable[..., TicketStore], spelled: str
) -> None:
    company.fill([case(spelled), case("TCK-48120")], case_no="varchar(20)")
    store = opened()
    for asked in ("4812", "tck 4812", "#4812"):
        found = store.get(asked, SUPPORT)
        assert found is not None
        assert found.number == "4812"


def test_a_view_is_as_good_as_a_table(company: Company, opened: Callable[..., TicketStore]) -> None:
    company.fill(sample_rows())
    view = company.table.replace("cases", "Open cases")
    quoted = view.replace("Open cases", '"Open cases"')
    company.run(f"CREATE VIEW {quoted} AS SELECT * FROM {company.table} WHERE state = 'open'")
    store = opened(table=view)
    assert store.values()["status"] == ("open",)
    assert store.find(TicketFilter(), SUPPORT).total > 5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"table": "casos"}, r"no table or view '.*casos'.*there are .*cases"),
        ({"table": "nowhere.cases"}, "no table or view 'nowhere.cases'|unknown database \"nowhere\""),
        (
            {"facets": {"plan": "plan_code"}},
            r"no column 'plan_code', which \[tickets.facets\] names for 'plan'",
        ),
        (
            {"personal": ("phone",)},
            r"no column 'phone', which \[tickets\] personal names; its columns are case_no",
        ),
        ({"columns": {"customer": "client name"}}, r"\[tickets.columns\] number"),
        ({"columns": {"colour": "x"}}, "no field 'colour'"),
        (
            {"events": {"charge": "title"}},
            "'title'.*(is TEXT.*not a date|holds no dates: 'Export' is not a date)",
        ),
        ({"columns": {**COLUMNS, "opened_at": "details"}}, "'details'.*(not a date|no dates)"),
        ({"number_pattern": r"RMA\d+"}, r"'case_no' holds '4812', which do not fit number_pattern"),
    ],
)
def test_a_mapping_that_cannot_be_stops_the_start_and_names_what_is_wrong(
    company: Company, opened: Callable[..., TicketStore], more: dict[str, Any], message: str
) -> None:
    company.fill([case(4812, details="as before")])
    with pytest.raises(ConfigError, match=message):
        opened(**{"table": company.table, **more})


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all.db",
        "postgresql://nobody:secret@127.0.0.1:1/none",
        "postgres://u@127.0.0.1:1/x",
    ],
)
def test_a_database_that_is_not_there_stops_the_start_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="TICKETS_DATABASE_URL") as raised:
        TicketStore(url, TicketSettings(table="cases", timeout_seconds=2), CalendarSettings())
    assert "secret" not in str(raised.value)


BAD_ADDRESSES = (
    "postgresql://u:pass@127.0.0.1:notaport/x",
    "postgresql://u:sec@ret@127.0.0.1:1/x",
    "postgres://u:sec@r/et@127.0.0.1:1/x",
    "postgresql+psycopg://u:sec@r?et@127.0.0.1:1/x",
)


@pytest.mark.parametrize("url", BAD_ADDRESSES)
def test_an_address_that_cannot_be_is_refused_without_a_word_of_it(url: str) -> None:
    for opening in (
        lambda: TicketStore(url, TicketSettings(table="cases"), CalendarSettings()),
        lambda: state(url),
    ):
        with pytest.raises(ConfigError, match=r"DATABASE_URL.*percent-encoded") as raised:
            opening()
        told = "".join(traceback.format_exception(raised.value)).partition("ConfigError")[2]
        assert not re.search(r"pass@|sec|ret|notaport|r/et|127", told), told


def test_a_password_is_shown_nowhere(tmp_path: Path) -> None:
    environ = {
        "TICKETS_DATABASE_URL": "postgresql://u@127.0.0.1:1/x?password=hidden1&connect_timeout=2",
        "DATABASE_URL": "postgresql://u:hid@den2@127.0.0.1:1/x",
        "TWOHOP_DATA": str(tmp_path),
    }
    config = tmp_path / "twohop.toml"
    config.write_text('[tickets]\ntable = "cases"\n')
    told = CliRunner().invoke(app, ["doctor", "--config", str(config)], env=environ).output
    assert "FAIL  tickets: the tickets' database" in told
    assert not re.search("hid|den[12]", told), told


def test_a_ticket_file_that_is_not_there_is_named_by_the_doctor(tmp_path: Path) -> None:
    config = tmp_path / "twohop.toml"
    config.write_text('[tickets]\ncsv = ["no.csv"]\n')
    result = CliRunner().invoke(app, ["doctor", "--config", str(config)], env={"TWOHOP_DATA": str(tmp_path)})
    assert re.search(r"FAIL  tickets: \[tickets\] csv names '.*no\.csv', which is no file", result.output)
    assert result.exit_code == 1


def test_a_file_of_ours_that_cannot_be_opened_is_named_by_its_path(tmp_path: Path) -> None:
    for name in ("tickets.db", "state.db"):
        (tmp_path / name).mkdir()
    for opening in (
        lambda: TicketStore(f"sqlite:///{tmp_path / 'tickets.db'}", TicketSettings(), CalendarSettings()),
        lambda: state(f"sqlite:///{tmp_path / 'state.db'}"),
    ):
        with pytest.raises(ConfigError, match=re.escape(str(tmp_path)) + ".*file and its folder") as raised:
            opening()
        assert "DATABASE_URL" not in str(raised.value)


@pytest.mark.postgres
def test_an_account_that_may_not_read_is_told_the_grants_that_it_needs(postgres_url: str) -> None:
    company = Company(postgres_url)
    company.run('CREATE SCHEMA "Desk"')
    company.fill([case(4812)], '"Desk"."Cases"')
    role = f"Twohop-{uuid.uuid4().hex[:8]}"
    url = make_url(company.url).set(username=role).render_as_string(hide_password=False)
    company.run(f'CREATE ROLE "{role}" LOGIN')
    settings = company.settings(table="Desk.Cases")
    try:
        for granted in ("SELECT 1", f'GRANT USAGE ON SCHEMA "Desk" TO "{role}"'):
            company.run(granted)
            with pytest.raises(
                ConfigError, match=r"permission denied for .*GRANT USAGE ON SCHEMA"
            ) as refused:
                TicketStore(url, settings, CalendarSettings())
        company.run(*str(refused.value).partition("'Desk.Cases': ")[2].split("; "))
        store = TicketStore(url, settings, CalendarSettings())
        assert store.get("4812", SUPPORT) is not None
        store.close()
    finally:
        company.run(f'DROP OWNED BY "{role}"', f'DROP ROLE "{role}"')


@pytest.mark.postgres
@pytest.mark.parametrize("said", ["desk.cases", "Cases", "DESK.Case", "public.Cases"])
def test_a_table_in_another_schema_or_case_is_named_and_may_be_quoted(postgres_url: str, said: str) -> None:
    company = Company(postgres_url)
    company.run('CREATE SCHEMA "Desk"')
    company.fill([case(4812)], '"Desk"."Cases"')
    with pytest.raises(ConfigError, match=r"no table or view '.*'.*there are Desk\.Cases"):
        TicketStore(company.url, company.settings(table=said), CalendarSettings())
    store = TicketStore(company.url, company.settings(table='"Desk"."Cases"'), CalendarSettings())
    assert store.get("4812", SUPPORT) is not None
    store.close()


def test_what_the_matter_is_while_it_runs_is_said_with_its_kind_and_its_step_and_no_name(
    company: Company, small: Desk
) -> None:
    inbox, runs = Inbox(small.store.engine, "test", 30), Runs(small.store.engine, "test", 30)
    look = looks(small, inbox, runs, Metrics())["ticket database"]
    assert look().ok
    company.run(f"ALTER TABLE {company.table} RENAME COLUMN tier TO level")
    with pytest.raises(TicketsUnavailable, match="as it is set up; whoever runs Twohop") as changed:
        look()
    assert re.search(
        rf"not what the settings say: .*tier.*; mend '{company.table}', or what \[tickets\].*doctor",
        changed.value.reason,
    )
    assert "at the moment" not in changed.value.reason
    assert "SELECT" not in changed.value.reason


@pytest.mark.postgres
def test_a_right_that_is_taken_away_while_it_runs_is_said_without_the_account(postgres_url: str) -> None:
    company = Company(postgres_url)
    company.fill([case(4812)])
    role = f"twohop_reader_{uuid.uuid4().hex[:8]}"
    company.run(
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA desk TO {role}",
        f"GRANT SELECT ON desk.cases TO {role}",
    )
    url = make_url(company.url).set(username=role).render_as_string(hide_password=False)
    try:
        store = TicketStore(url, company.settings(), CalendarSettings())
        company.run(f"REVOKE SELECT ON desk.cases FROM {role}")
        with pytest.raises(TicketsUnavailable) as refused:
            store.get("4812", SUPPORT)
        store.close()
    finally:
        company.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert refused.value.reason.startswith(
        "its account may not read: permission denied for table cases; grant SELECT on"
    )
    assert role not in refused.value.reason


@pytest.mark.postgres
def test_a_view_that_is_too_slow_for_the_start_names_the_setting_and_the_view(postgres_url: str) -> None:
    company = Company(postgres_url)
    company.fill([case(4812)])
    company.run("CREATE VIEW desk.slow AS SELECT c.* FROM desk.cases c, pg_sleep(60)")
    with pytest.raises(
        DatabaseAway, match=r"statement timeout; .*timeout_seconds \(0.2 s\): see what 'desk.slow' waits for"
    ):
        TicketStore(company.url, company.settings(table="desk.slow", timeout_seconds=0.2), CalendarSettings())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("value", "made"), [("1758362400", '"changed"'), ("1758362400123", '"changed" / 1000')]
)
def test_seconds_since_1970_are_told_the_view_that_makes_dates_of_them(
    company: Company, opened: Callable[..., TicketStore], value: str, made: str
) -> None:
    company.fill([case(4812, changed=value)], changed="integer")
    with pytest.raises(ConfigError, match=r"holds no dates.*or a view that makes dates of it") as refused:
        opened()
    view = f"""SELECT …, datetime({made}, 'unixepoch') AS "changed" …"""
    assert view in str(refused.value)
    names = ", ".join(f'"{name}"' for name in case(4812) if name != "changed")
    company.run(f"CREATE VIEW dated AS {view.replace('…', names, 1).replace(' …', ' FROM cases')}")
    found = opened(table="dated").get("4812", SUPPORT)
    assert found is not None
    assert found.updated_at is not None
    assert found.updated_at.year == 2025


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {table}",
        "UPDATE {table} SET state = 'closed'",
        "INSERT INTO {table} (case_no) VALUES (1)",
        "CREATE TABLE twohop (x integer)",
        "DROP TABLE {table}",
        "CREATE INDEX more ON {table} (state)",
    ],
)
def test_nothing_can_be_written_there(
    company: Company, opened: Callable[..., TicketStore], statement: str
) -> None:
    company.fill([case(4812)])
    store = opened()
    with store.read_engine.connect() as connection, pytest.raises(DBAPIError):
        connection.exec_driver_sql(statement.format(table=company.table))
    assert store.find(TicketFilter(), SUPPORT).total == 1


def test_a_database_that_lets_us_write_is_refused_and_left_as_it_was(company: Company) -> None:
    company.fill([case(4812)])
    url = make_url(company.url)
    dialect = Sqlite(TicketSettings(), MADRID) if company.sqlite else Postgresql(MADRID)
    schema, _, name = company.table.rpartition(".")
    table = Table(name, MetaData(), schema=schema or None)
    engine = create_engine(url if company.sqlite else url.set(drivername="postgresql+psycopg"))
    with pytest.raises(ConfigError, match="let a statement through that writes"):
        refuse_writes(engine, dialect, table)
    with engine.connect() as connection:
        assert connection.exec_driver_sql(f"SELECT count(*) FROM {company.table}").scalar() == 1
        assert inspect(connection).get_table_names(schema or None) == ["cases"]
    engine.dispose()


def test_no_table_of_ours_is_made_there(company: Company, opened: Callable[..., TicketStore]) -> None:
    company.fill([case(4812)])
    store = opened()
    store.problems()
    store.describe()
    with store.read_engine.connect() as connection:
        schemas = [None] if company.sqlite else ["desk", "public"]
        assert [n for s in schemas for n in inspect(connection).get_table_names(s)] == ["cases"]


def test_rows_that_cannot_be_tickets_are_told_to_the_index_run_by_their_number(
    company: Company, opened: Callable[..., TicketStore]
) -> None:
    rows = [case("4812"), case("4813"), case("TCK-4813"), case(None), case("draft"), case("4815")]
    rows[0]["charged"] = "2026-08-14"
    if company.sqlite:
        rows[5]["charged"] = "soon"
    company.fill(rows, case_no="varchar(20)")
    if not company.sqlite:
        company.run(f"UPDATE {company.table} SET charged = 'infinity' WHERE case_no = '4815'")
    store = opened()
    found = list(store.all_for_index(NOW))
    assert [t.number for t in found if not isinstance(t, Failed)] == ["4812"]
    reasons = {f.uri: f.reason for f in found if isinstance(f, Failed)}
    assert reasons.keys() == {"tickets:", "tickets:4813", "tickets:draft", "tickets:4815"}
    assert reasons["tickets:"] == "1 rows have no number in 'case_no'"
    assert "2 rows have this number" in reasons["tickets:4813"]
    assert "'draft' is not a ticket number" in reasons["tickets:draft"]
    assert reasons["tickets:4815"].startswith("charged: ")
    with pytest.raises(TwohopError, match="more than one row of the ticket database has the number '4813'"):
        store.get("4813", SUPPORT)
    odd = store.get("4815", SUPPORT)
    assert odd is not None
    assert "charge" not in odd.events
    assert odd.unread["charge"].startswith("'soon' is" if company.sqlite else "'infinity' is")


POISON = {
    "bytes that are no text": ("details = CAST(x'47e9' AS TEXT)", "details holds bytes that are not UTF-8"),
    "a name of such bytes": ("\"client name\" = CAST(x'47e9' AS TEXT)", "client name holds bytes"),
    "a date of such bytes": ("charged = CAST(x'e9e9' AS TEXT)", "charged: '\ufffd\ufffd' is not a date"),
    "binary data as a date": ("charged = x'00ff'", "charged: '\\x00\ufffd' is not a date"),
    "a NUL in a text": ("details = 'a' || char(0) || 'zebra'", ""),
    "a text of megabytes": (
        "details = replace(hex(zeroblob(3000000)), '0', 'z')",
        "details is longer than 100000 characters",
    ),
    "a date before any calendar": ("created = '0001-01-01T00:00:00+00:00'", "created: '0001-01-01T00"),
    "a date that means never": ("charged = '9999-12-31T23:59:59-12:00'", "charged: '9999-12-31T23"),
    "a date of megabytes": ("charged = replace(hex(zeroblob(3000000)), '0', 'z')", "is too long for a date"),
    "a number for a date": ("charged = 1e300", "charged: '1.0e+300' is not a date"),
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("poison", "reason"), POISON.values(), ids=POISON)
def test_one_row_that_cannot_be_read_is_named_and_takes_no_other_down(
    company: Company, opened: Callable[..., TicketStore], poison: str, reason: str
) -> None:
    company.fill([case(4812, details="the zebra", charged="2026-08-14"), case(4813, charged="2026-08-14")])
    company.run(f"UPDATE {company.table} SET {poison.replace(':', chr(92) + ':')} WHERE case_no = 4813")
    store = opened()
    assert "4812" in [t.number for t in store.find(TicketFilter(text="zebra"), SUPPORT).tickets]
    assert store.find(TicketFilter(has="charge", order="updated", count_by="customer"), SUPPORT).total >= 1
    assert store.get("4813", SUPPORT) is not None
    found = list(store.all_for_index(NOW))
    assert "4812" in [t.number for t in found if not isinstance(t, Failed)]
    reasons = {f.uri: f.reason for f in found if isinstance(f, Failed)}
    assert reasons.keys() == ({"tickets:4813"} if reason else set())
    assert reason in reasons.get("tickets:4813", "")


@pytest.mark.postgres
def test_bytes_that_are_no_text_take_no_other_row_down_on_a_server_that_keeps_any(
    postgres_server: str, postgres_url: str
) -> None:
    name = f"ascii_{uuid.uuid4().hex[:8]}"
    made = f"CREATE DATABASE {name} ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0"
    url = (
        make_url(postgres_url)
        .set(database=name)
        .update_query_dict({"client_encoding": "utf8"})
        .render_as_string(hide_password=False)
    )
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(made)
        try:
            company = Company(url)
            company.fill([case(4812), case(4813)])
            company.run(
                r"UPDATE desk.cases SET details = E'caf\xe9' WHERE case_no = 4813",
                r"""UPDATE desk.cases SET "client name" = E'N\xfa' WHERE case_no = 4813""",
            )
            store = TicketStore(url, company.settings(), CalendarSettings())
            assert store.find(TicketFilter(), SUPPORT).total == 2
            odd = store.get("4813", SUPPORT)
            assert odd is not None
            assert odd.body == "caf\ufffd"
            assert [t.number for t in store.all_for_index(NOW) if not isinstance(t, Failed)] == [
                "4813",
                "4812",
            ]
            store.close()
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_database_in_another_encoding_is_read(
    company: Company, opened: Callable[..., TicketStore], tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "database.db")) as made:
        made.execute("PRAGMA encoding = 'UTF-16le'")
        made.execute("VACUUM")
    company.fill([case(4812, title="Facturación", charged="2026-08-14")])
    store = opened()
    assert store.find(TicketFilter(text="facturacion"), SUPPORT).total == 1
    (ticket,) = store.all_for_index(NOW)
    assert not isinstance(ticket, Failed)
    assert ticket.events["charge"] == date(2026, 8, 14)


def test_numbers_that_stand_twice_are_a_warning_and_the_rest_answers(
    company: Company, opened: Callable[..., TicketStore]
) -> None:
    company.fill([case(4812), case(4812), case(4813)], case_no="integer")
    store = opened()
    twice = f"several rows of {company.table!r} have the number 4812; map a view with one row a ticket"
    assert store.problems() == ()
    assert twice in store.warnings()
    assert store.get("4813", SUPPORT) is not None


def test_all_tickets_reach_the_index_newest_first_and_old_ones_do_not(
    company: Company, opened: Callable[..., TicketStore]
) -> None:
    first = datetime(2026, 9, 1, tzinfo=MADRID)
    company.fill(
        [case(1000 + n, created=(first - timedelta(hours=n)).isoformat()) for n in range(1201)]
        + [case(9000, created="2020-01-01T00:00:00Z"), case(9001)]
    )
    found = [t.number for t in opened().all_for_index(NOW) if not isinstance(t, Failed)]
    assert found == [*(str(1000 + n) for n in range(1201)), "9001"]


def test_names_are_read_again_after_a_minute(company: Company, opened: Callable[..., TicketStore]) -> None:
    company.fill([case(4812)])
    now = [0.0]
    store = opened(clock=lambda: now[0])
    company.run(f"""INSERT INTO {company.table} (case_no, "client name") VALUES (4813, 'Ortega')""")
    assert store.customers() == ("Nord Supply",)
    now[0] = 60.0
    assert store.customers() == ("Nord Supply", "Ortega")


def test_a_file_is_not_imported_into_a_companys_database(
    company: Company, opened: Callable[..., TicketStore], tmp_path: Path
) -> None:
    company.fill([case(4812)])
    with pytest.raises(TicketImportError, match="Twohop writes nothing; take the file out"):
        opened().import_csv(tmp_path / "tickets.csv", NOW)


@pytest.mark.parametrize(
    ("url", "tickets", "message"),
    [
        ("sqlite:///x.db", {}, r"which table or view.*\[tickets\] table"),
        ("", {"table": "cases"}, "'cases', but TICKETS_DATABASE_URL is not set"),
        ("sqlite:///x.db", {"table": "cases", "csv": (Path("t.csv"),)}, "csv names 't.csv'"),
    ],
)
def test_settings_that_do_not_go_together_stop_the_start(
    tmp_path: Path, url: str, tickets: dict[str, Any], message: str
) -> None:
    settings = Settings(data=tmp_path, tickets_database_url=url, tickets=TicketSettings(**tickets))
    with pytest.raises(ConfigError, match=message):
        build(settings, HashingEmbedder())


@pytest.fixture
def small(company: Company, tmp_path: Path) -> Iterator[Desk]:
    """Return a desk with a short document, over a company's few tickets."""
    company.fill(
        [case(4812, tier="Team", state="open", changed="2026-09-20 10:00:00"), case(4813, state="closed")]
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hours.md").write_text(
        "# Opening hours\n\nThe support desk is open from 9:00 to 18:00.\n"
    )
    settings = Settings(
        data=tmp_path / "data",
        sources=SourceSettings(paths=(tmp_path / "docs",)),
        tickets=company.settings(),
        tickets_database_url=company.url,
    )
    made = prepared(settings, HashingEmbedder())
    yield made
    made.close()


def test_a_scheduled_run_sees_what_changed_in_the_companys_table(company: Company, small: Desk) -> None:
    assert (
        small.sync_tickets().unchanged == ("tickets:4813", "tickets:4812") or small.sync_tickets().unchanged
    )
    company.run(
        f"UPDATE {company.table} SET details = 'it hangs' WHERE case_no = 4812",
        f"DELETE FROM {company.table} WHERE case_no = 4813",
    )
    report = small.sync_tickets()
    assert (report.changed, report.removed, report.skipped) == (("tickets:4812",), ("tickets:4813",), ())


async def test_an_answer_says_when_a_database_last_changed_that_has_not_for_long(small: Desk) -> None:
    line = (
        "The newest change that the ticket database records is of 20 September 2026, 10:00; it may be a copy that is "
        "no longer filled."
    )
    for now, said in (("2026-09-23T09:00", 0), ("2026-09-24T09:00", 1)):
        for question in ("What is the status of ticket 4812?", "How many open tickets are there?"):
            answered = await answer(small, question, now)
            assert answered.shape == "answered", answered.text
            assert answered.text.count(line) == said, answered.text
            assert "as of" not in answered.text
    hours = await answer(small, "When is the support desk open?", "2026-09-24T09:00")
    assert "newest change" not in hours.text
    sources = await answer(small, "What do you know?", "2026-09-24T09:00")
    assert (
        "- the tickets, from their database as it is when you ask; the newest change there is of 20 September 2026, 10:00"
        in sources.text
    )


async def test_an_answer_from_imported_tickets_says_of_when_they_are(tmp_path: Path) -> None:
    settings = small_settings(
        tmp_path, {"a.md": "# Hours\n\nThe desk is open from 9:00."}, [{"number": "4812", "status": "open"}]
    )
    desk = prepared(settings, HashingEmbedder())
    try:
        answered = await answer(desk, "What is the status of ticket 4812?", "2999-01-01T09:00")
        assert re.search(r"The tickets are as of .*; they may have changed since\.", answered.text), (
            answered.text
        )
    finally:
        desk.close()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_database_that_goes_away_is_said_and_documents_still_answer(
    company: Company, small: Desk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file, away = tmp_path / "database.db", tmp_path / "away.db"
    shutil.move(file, away)
    answered = await answer(small, "What is the status of ticket 4812?")
    assert answered.shape == "not_found"
    assert answered.text.startswith("The ticket database cannot be read at the moment.")
    counted = await answer(small, "How many open tickets are there?")
    assert "the ticket database cannot be read at the moment" in counted.text.lower()
    assert "9:00" in (await answer(small, "When is the support desk open?")).text
    assert small.sync_tickets().failure == "the ticket database cannot be read at the moment"
    shutil.move(away, file)
    assert "open" in (await answer(small, "What is the status of ticket 4812?")).text
    assert [
        record.getMessage().split(": ")[0]
        for record in caplog.records
        if record.name == "ingest.tickets.store"
    ] == [
        f"the tickets' database {company.url} cannot be read",
        "over",
    ]


@pytest.mark.postgres
def test_a_server_that_stops_or_hangs_is_unavailable_and_is_reached_again_afterwards(
    request: pytest.FixtureRequest,
) -> None:
    if request.config.getoption("--postgres") != postgres.THROW_AWAY:
        pytest.skip("stops and halts a server, so that it needs one of its own: --postgres without a URL")
    server = postgres.Server()
    try:
        company = Company(server.url)
        company.fill([case(4812)])
        store = TicketStore(server.url, company.settings(timeout_seconds=1), CalendarSettings())
        server.stop()
        with pytest.raises(TicketsUnavailable, match="cannot be read at the moment"):
            store.get("4812", SUPPORT)
        assert store.customers() == ("Nord Supply",)
        server.start()
        assert store.get("4812", SUPPORT) is not None
        server.stop()
        server.start()
        assert store.get("4812", SUPPORT) is not None
        with psycopg.connect(server.url) as admin:
            listed = admin.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'twohop'")
            halted = [row[0] for row in listed.fetchall()]
        for pid in halted:
            os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(TicketsUnavailable):
                store.get("4812", SUPPORT)
            assert store.get("4812", SUPPORT) is not None
        finally:
            for pid in halted:
                os.kill(pid, signal.SIGCONT)
        with psycopg.connect(server.url) as owner:
            owner.execute("LOCK TABLE desk.cases")
            with pytest.raises(TicketsUnavailable, match="took too long"):
                store.get("4812", SUPPORT)
        store.close()
    finally:
        server.remove()


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["desk.cases", '"Desk of ours"."Cases"'])
def test_an_account_that_could_write_is_warned_of_with_the_grants_that_are_enough(
    postgres_url: str, table: str
) -> None:
    company = Company(postgres_url)
    company.run('CREATE SCHEMA "Desk of ours"')
    company.fill([case(4812)], table)
    settings = company.settings(table=table)
    store = TicketStore(company.url, settings, CalendarSettings())
    (warning,) = store.warnings()
    store.close()
    role = f"twohop_reader_{uuid.uuid4().hex[:8]}"
    grants = warning.partition(": ")[2].replace("'…'", "'secret'").replace("twohop_tickets", role)
    assert "GRANT CONNECT ON DATABASE" in grants
    company.run(*(line for line in grants.split("; ")))
    try:
        url = (
            make_url(company.url).set(username=role, password="secret").render_as_string(hide_password=False)
        )
        store = TicketStore(url, settings, CalendarSettings())
        assert store.warnings() == ()
        assert store.get("4812", SUPPORT) is not None
        store.close()
    finally:
        company.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_statement_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "slow.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE cases (number INTEGER PRIMARY KEY, customer TEXT)")
        made.commit()
    store = TicketStore(
        f"sqlite:///{file}", TicketSettings(table="cases", timeout_seconds=0.2), CalendarSettings()
    )
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with (
        pytest.raises(TicketsUnavailable, match="took too long") as slow,
        reading(store.read_engine, store.settings) as connection,
    ):
        connection.exec_driver_sql(endless)
    assert re.search(r"tickets.timeout_seconds \(0.2 s\): see what 'cases' waits for", slow.value.reason)
    store.close()


def test_the_doctor_tells_what_was_found(company: Company, tmp_path: Path) -> None:
    company.fill([case(4812, tier="Team")])
    config = tmp_path / "twohop.toml"
    table = f'table = "{company.table}"\npersonal = ["mail"]\n'
    columns = "\n".join(f'{name} = "{column}"' for name, column in COLUMNS.items())
    config.write_text(f'[tickets]\n{table}facets = {{ plan = "tier" }}\n[tickets.columns]\n{columns}\n')
    environ = {"TICKETS_DATABASE_URL": company.url, "TWOHOP_DATA": str(tmp_path / "data")}
    told = CliRunner().invoke(app, ["doctor", "--config", str(config)], env=environ).output
    (line,) = [line for line in told.splitlines() if " tickets: " in line]
    assert line.startswith("ok")
    for needed in (f"{company.table}, only read", "1 customers", "number = case_no", "facets: plan = tier"):
        assert needed in line, line
    assert ("warning: the account" in line) is not company.sqlite


RETURNS = "# Returns\n\nGoods can be returned within 30 days of delivery.\n"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("events", "why"),
    [
        (
            {"delivered": "01/08/2026", "asked": "2026-08-20"},
            "the delivery.*'01/08/2026' can be read two ways",
        ),
        ({"delivered": "not a date", "asked": "2026-08-20"}, "the delivery.*'not a date' is not a date"),
        (
            {"delivered": "2026-08-01", "asked": "9999-12-31"},
            "the return request.*'9999-12-31' is not of a year",
        ),
        ({"delivered": None, "asked": "2026-08-20"}, "the delivery is not in ticket"),
    ],
)
@pytest.mark.parametrize("imported", [False, True])
async def test_a_date_that_is_there_and_cannot_be_read_is_said_in_place_of_a_verdict(
    company: Company, tmp_path: Path, events: dict[str, str | None], why: str, imported: bool
) -> None:
    dated: Rows = [
        {"delivered": "31/12/2025", "asked": "2026-01-02"},
        {"delivered": "12/31/2025", "asked": None},
    ]
    rows = [
        {
            "number": 7000 + at,
            "status": "open",
            "subject": "Return of a lamp",
            "body": "Can it go back?",
            **of,
        }
        for at, of in enumerate([*dated, events])
    ]
    mapping: dict[str, Any] = {"events": {"delivery": "delivered"}, "actions": {"return request": "asked"}}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "returns.md").write_text(RETURNS)
    settings = Settings(data=tmp_path / "data", sources=SourceSettings(paths=(tmp_path / "docs",)))
    if imported:
        file = tmp_path / "tickets.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        tickets: dict[str, Any] = {"tickets": TicketSettings(csv=(file,), **mapping)}
    else:
        company.fill(rows)
        mapped = TicketSettings(table=company.table, **mapping)
        tickets = {"tickets": mapped, "tickets_database_url": company.url}
    made = prepared(settings.model_copy(update=tickets), HashingEmbedder())
    answered = await answer(made, "Can the goods on ticket 7002 still be returned?")
    made.close()
    assert answered.verdict is not None, answered.text
    assert answered.verdict.decision == "undecided", answered.text
    assert re.search(why, answered.text), answered.text
