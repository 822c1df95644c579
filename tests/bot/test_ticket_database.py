"""A company's own ticket database: other names for everything, read where it is, by the flows that answer."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import create_engine, make_url, text

from bot.app import Desk
from bot.config import Settings
from bot.sample import sample as folder
from ingest.config import CalendarSettings, TicketSettings
from ingest.embed import Embedder
from ingest.tickets import TicketStore
from tests.desks import answer, prepared, sample_settings

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
    with (folder() / "tickets.csv").open(encoding="utf-8", newline="") as stream:
        held = list(csv.DictReader(stream))
    rows = [{theirs: row[ours] or None for theirs, ours in OURS.items()} for row in held]
    for row in rows:
        row["case_no"] = int(row["case_no"].removeprefix("TCK-"))
        opened_at = datetime.fromisoformat(row["created"]).replace(tzinfo=MADRID)
        row["created"] = opened_at.isoformat()
    return rows


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
