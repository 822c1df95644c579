"""The ticket tables: files in, spellings of numbers, lookups and lists out, and nothing written by a reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError

from bot.evidence import ticket_text
from ingest.config import CalendarSettings, TicketSettings
from ingest.errors import ConfigError, TicketImportError, TwohopError
from ingest.tickets import AmbiguousName, TicketFilter, TicketStore, describe, guess
from tests.desks import indexed_tickets

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 9, 26, 12, tzinfo=MADRID)
SUPPORT = frozenset({"members", "support"})
STRANGER = frozenset({"members"})
HEADER = (
    "number,customer,plan,billing,status,priority,assignee,subject,body,resolution,opened_at,updated_at,"
    "charged_on,refund_requested_on,contact_email"
)
ROWS = [
    'TCK-4812,Ortega Hardware,Team,annual,open,normal,Ana,Refund,"We want our money back\nsoon",,2026-09-02 10:14,'
    "2026-09-03T08:00:00Z,2026-08-14,2026-09-02,shop@ortega.example",
    "#4821,Bistró Núñez,Starter,monthly,open,urgent,Ben,Refund of March,,,2026-09-04 09:00,,2026-09-01,,",
    "4182,Ortega Hermanos,Team,annual,closed,low,Ana,Login,ERR_SSO-4032 at 100%,Reset,2026-08-30 23:30,,,,",
    "4900,Nord Supply,Team,monthly,open,high,,Export,,,2026-09-05 00:00,,,,",
]

Make = Callable[..., TicketStore]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    stores: list[TicketStore] = []

    def build(name: str = "tickets.db", **settings: Any) -> TicketStore:
        url = f"sqlite:///{tmp_path / 'some data' / name}"
        stores.append(TicketStore(url, TicketSettings(**settings), CalendarSettings(zone="Europe/Madrid")))
        return stores[-1]

    yield build
    for store in stores:
        store.close()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def file(*lines: str, name: str = "tickets.csv", encoding: str = "utf-8", end: str = "\n") -> Path:
        path = tmp_path / name
        path.write_bytes((end.join(lines) + end).encode(encoding))
        return path

    return file


@pytest.fixture
def store(make: Make, write: Callable[..., Path]) -> TicketStore:
    made = make()
    made.import_csv(write(HEADER, *ROWS), NOW)
    return made


def numbers(store: TicketStore, **filters: Any) -> list[str]:
    return [ticket.number for ticket in store.find(TicketFilter(**filters), SUPPORT).tickets]


def test_a_ticket_comes_back_with_its_facets_events_and_actions_in_the_desks_zone(store: TicketStore) -> None:
    ticket = store.get("4812", SUPPORT)
    assert ticket is not None
    assert (ticket.customer, ticket.subject, ticket.body) == (
        "Ortega Hardware",
        "Refund",
        "We want our money back\nsoon",
    )
    assert ticket.facets == {"plan": "Team", "billing": "annual"}
    assert ticket.opened_at == datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)
    assert ticket.updated_at is not None
    assert ticket.updated_at.isoformat() == "2026-09-03T10:00:00+02:00"
    assert ticket.events == {"charge": date(2026, 8, 14), "opening": ticket.opened_at}
    assert type(ticket.events["charge"]) is date
    assert ticket.actions == {"refund request": date(2026, 9, 2)}
    assert ticket.personal == {"contact_email": "shop@ortega.example"}
    assert ticket.imported_at == NOW == store.as_of()


@pytest.mark.parametrize(
    "spelled", ["4812", "#4812", "TCK-4812", "tck 4812", " Tck4812 ", "ticket #4812", "TCK\u20114812"]
)
def test_every_spelling_finds_the_same_ticket(store: TicketStore, spelled: str) -> None:
    assert store.canonical(spelled) == "4812"
    found = store.get(spelled, SUPPORT)
    assert found is not None
    assert found.number == "4812"


@pytest.mark.parametrize(
    "spelled", ["", "48", "TCK-", "x4812", "4812.50", "4812-b", "4812 4821", "٤٨١٢", "0x4812"]
)
def test_what_is_no_number_spells_none(store: TicketStore, spelled: str) -> None:
    assert store.canonical(spelled) is None


def test_a_ticket_that_may_not_be_read_looks_like_one_that_does_not_exist(store: TicketStore) -> None:
    assert store.get("4812", STRANGER) is None
    assert store.get("9999", SUPPORT) is None
    assert store.get("4812", frozenset()) is None
    for filters in (TicketFilter(), TicketFilter(customer="Nobody"), TicketFilter(count_by="plan")):
        page = store.find(filters, STRANGER)
        assert (page.tickets, page.total, page.counts) == ((), 0, {})


@pytest.mark.parametrize(
    ("question", "explicit", "bare"),
    [
        ("Is the customer on ticket 4812 entitled to a refund?", ["4812"], []),
        ("compare tickets 4812, 4821 and 4182", ["4812", "4821", "4182"], []),
        ("tickets 4812,4821/4182", ["4812", "4821", "4182"], []),
        ("#4812 or TCK-4821?", ["4812", "4821"], []),
        ("tck-4812's plan, please (case no. 4821)", ["4812", "4821"], []),
        ("¿Y el tique 4812? ¿La incidencia nº 4821 y 4182?", ["4812", "4821", "4182"], []),
        ("see https://desk.example/tickets/4812", ["4812"], []),
        ("ticket 4812 and 300 days", ["4812"], []),
        ("what about 4812?", [], ["4812"]),
        ("in case 4812 people ask", [], ["4812"]),
        ("ERR_SSO-4032, 0x80070005 and v2.3.100", [], []),
        ("4812.50 or 4,812 or €4812 or 4812 EUR", [], []),
        ("in 2026, on 2026-09-02, at 10:14 or 1000 hours", [], []),
        ("call +34 600 123 456", [], []),
        ("INV-4812, 4812-b, ticket 4812-b, 4812th, foo#4812, a4812@x.example", [], []),
        ("https://x.example/page/4812?from=4821", [], []),
    ],
)
def test_mentions(store: TicketStore, question: str, explicit: list[str], bare: list[str]) -> None:
    found = store.mentioned(question)
    assert [m.number for m in found if m.explicit] == explicit
    assert [m.number for m in found if not m.explicit] == bare
    assert all(question[m.start : m.end] == m.text for m in found)


@pytest.fixture(scope="module")
def spellers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TicketStore, TicketStore]]:
    folder = tmp_path_factory.mktemp("spellers")
    cycles = TicketSettings(prefixes=("RMA ",), number_pattern=r"[A-Z]{2}\d{2}-\d{4}")
    stores = tuple(
        TicketStore(f"sqlite:///{folder / name}.db", settings, CalendarSettings())
        for name, settings in (("one", TicketSettings()), ("two", cycles))
    )
    yield stores[0], stores[1]
    for made in stores:
        made.close()


@given(data=st.data())
def test_any_spelling_is_canonical_and_is_found_in_any_sentence(
    spellers: tuple[TicketStore, TicketStore], data: st.DataObject
) -> None:
    second = data.draw(st.booleans())
    pattern = r"[A-Z]{2}[0-9]{2}-[0-9]{4}" if second else r"[0-9]{3,7}"
    number = data.draw(st.from_regex(pattern, fullmatch=True))
    prefix = data.draw(
        st.sampled_from(["RMA ", "rma-", "Rma", "#"] if second else ["TCK-", "tck ", "Tck", "#", "TCK#"])
    )
    spelled = prefix + data.draw(st.sampled_from([number, number.lower()]))
    reader = spellers[second]
    assert reader.canonical(f" {spelled} ") == number
    assert reader.canonical(number) == number
    before, after = data.draw(
        st.sampled_from([("is ", " paid?"), ("", ""), ("(", ")"), ("¿", "?"), ("a, ", ", b"), ("x\n", ".")])
    )
    (found,) = reader.mentioned(f"{before}{spelled}{after}")
    assert (found.number, found.text, found.explicit) == (number, spelled, True)


@given(st.text(max_size=80))
def test_reading_numbers_never_fails_and_what_is_mentioned_is_canonical(
    spellers: tuple[TicketStore, TicketStore], text: str
) -> None:
    for reader in spellers:
        once = reader.canonical(text)
        assert once is None or reader.canonical(once) == once
        for mention in reader.mentioned(text):
            assert text[mention.start : mention.end] == mention.text
            assert reader.canonical(mention.text) == mention.number


def test_lists_are_filtered_counted_and_ordered(store: TicketStore) -> None:
    assert numbers(store) == ["4900", "4821", "4812", "4182"]
    assert numbers(store, order="oldest", limit=2) == ["4182", "4812"]
    assert numbers(store, order="priority") == ["4821", "4900", "4812", "4182"]
    assert numbers(store, order="updated")[0] == "4812"
    assert numbers(store, status="OPEN", facets={"plan": "team"}) == ["4900", "4812"]
    assert numbers(store, assignee="ana") == ["4812", "4182"]
    page = store.find(TicketFilter(status="open", count_by="plan", limit=1), SUPPORT)
    assert (len(page.tickets), page.total, dict(page.counts)) == (1, 3, {"Team": 2, "Starter": 1})
    assert store.find(TicketFilter(count_by="assignee"), SUPPORT).counts == {"Ana": 2, "": 1, "Ben": 1}


def test_days_are_the_desks_and_inclusive(store: TicketStore) -> None:
    day = date(2026, 9, 4)
    assert numbers(store, opened_from=day, opened_to=day) == ["4821"]
    assert numbers(store, opened_to=date(2026, 8, 30)) == ["4182"]
    assert numbers(store, opened_from=datetime(2026, 9, 4, 9, 1)) == ["4900"]  # noqa: DTZ001 (naive is the desk's)
    assert numbers(store, updated_from=date(2026, 9, 3)) == ["4812"]


def test_words_are_found_inside_text_and_wildcards_are_only_characters(store: TicketStore) -> None:
    assert numbers(store, text="money BACK") == ["4812"]
    assert numbers(store, text="back OUR money") == ["4812"]
    assert numbers(store, text='"back our money"') == []
    assert numbers(store, text='"our MONEY back"') == ["4812"]
    assert numbers(store, text="err_sso-4032") == ["4182"]
    assert numbers(store, text="100%") == ["4182"]
    assert numbers(store, text="%") == ["4182"]
    assert numbers(store, text="' OR 1=1 --") == []
    assert numbers(store, text="ortega.example") == []


def test_several_values_mean_any_and_not_leaves_out(store: TicketStore) -> None:
    assert numbers(store, priority=["urgent", "low"]) == ["4821", "4182"]
    assert numbers(store, facets={"plan": ["Team", "Starter"], "billing": "monthly"}) == ["4900", "4821"]
    assert numbers(store, not_status="closed", not_priority=["high", "urgent"]) == ["4812"]
    assert numbers(store, not_facets={"plan": "Team"}) == ["4821"]
    assert numbers(store, not_customer="Nord", not_assignee="Ana") == ["4821"]
    assert numbers(store, text=["err_sso-4032", "money back"]) == ["4812", "4182"]
    assert numbers(store, not_text=["refund", "login"]) == ["4900"]
    with pytest.raises(TwohopError, match="known are closed, open"):
        store.find(TicketFilter(not_status="asleep"), SUPPORT)


def test_what_took_place_and_what_did_not(store: TicketStore) -> None:
    assert numbers(store, has="refund request") == ["4812"]
    assert numbers(store, has="charge", lacks="refund request") == ["4821"]
    assert numbers(store, lacks=["assignee"]) == ["4900"]
    assert numbers(store, has=["assignee", "plan"], lacks=["charge"]) == ["4182"]
    assert numbers(store, has="opening") == ["4900", "4821", "4812", "4182"]
    for name in ("contact_email", "number; DROP TABLE tickets"):
        with pytest.raises(
            TwohopError, match=r"there are charge, refund request, customer, .* plan, billing"
        ):
            store.find(TicketFilter(has=name), SUPPORT)
    with pytest.raises(TwohopError, match="name it under has"):
        TicketFilter(has_from=date(2026, 9, 1))


def test_the_days_of_an_action_are_the_desks_and_inclusive(make: Make, write: Callable[..., Path]) -> None:
    made = make()
    rows = [f"{4000 + i},Nord,{when}" for i, when in enumerate(("2026-09-04", "2026-09-05 00:15", "2026-09-05 23:59", ""))]  # fmt: skip
    made.import_csv(write("number,customer,refund_requested_on", *rows), NOW)
    day = date(2026, 9, 5)
    # A quarter past midnight in Madrid is still the day before in UTC.
    assert sorted(numbers(made, has="refund request", has_from=day, has_to=day)) == ["4001", "4002"]
    assert sorted(numbers(made, has="refund request", has_to=date(2026, 9, 4))) == ["4000"]
    assert sorted(numbers(made, has="refund request", has_from=date(2026, 9, 4))) == ["4000", "4001", "4002"]
    assert numbers(made, lacks="refund request") == ["4003"]


def test_a_customer_is_found_by_a_part_of_the_name(store: TicketStore) -> None:
    assert numbers(store, customer="ortega hardware") == ["4812"]
    assert numbers(store, customer="bistro nunez") == ["4821"]
    assert numbers(store, customer="Nord") == ["4900"]
    assert numbers(store, customer="hermanos") == ["4182"]
    with pytest.raises(AmbiguousName, match="Ortega Hardware, Ortega Hermanos"):
        store.find(TicketFilter(customer="Ortega"), SUPPORT)
    with pytest.raises(TwohopError, match="'Nrod Supply'; close names are Nord Supply"):
        store.find(TicketFilter(customer="Nrod Supply"), SUPPORT)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"facets": {"region": "EU"}}, "no facet 'region'; the facets are plan, billing"),
        ({"facets": {"plan": "Gold"}}, "plan 'Gold'; known are Starter, Team"),
        ({"facets": {"contact_email": "shop@ortega.example"}}, "no facet 'contact_email'"),
        ({"status": "asleep"}, "known are closed, open"),
        ({"count_by": "contact_email"}, "count by customer, status, priority, assignee, plan, billing"),
        ({"count_by": "number; DROP TABLE tickets"}, "cannot count by"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(
    store: TicketStore, filters: dict[str, Any], message: str
) -> None:
    with pytest.raises(TwohopError, match=message):
        store.find(TicketFilter(**filters), SUPPORT)


def test_a_limit_is_between_1_and_50() -> None:
    for limit in (0, 51):
        with pytest.raises(TwohopError, match=f"limit {limit}"):
            TicketFilter(limit=limit)


def test_personal_columns_are_only_in_a_ticket_asked_by_number(store: TicketStore) -> None:
    listed = store.find(TicketFilter(limit=50), SUPPORT).tickets
    indexed = indexed_tickets(store, NOW)
    assert all(not ticket.personal for ticket in (*listed, *indexed))
    assert "ortega.example" not in repr((listed, indexed))


def test_values_customers_and_assignees(store: TicketStore) -> None:
    assert store.values() == {
        "plan": ("Starter", "Team"),
        "billing": ("annual", "monthly"),
        "priority": ("high", "low", "normal", "urgent"),
        "status": ("closed", "open"),
    }
    assert store.customers() == ("Bistró Núñez", "Nord Supply", "Ortega Hardware", "Ortega Hermanos")
    assert store.assignees() == ("Ana", "Ben")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tickets (number) VALUES ('1')",
        "UPDATE tickets SET status = 'closed'",
        "DELETE FROM tickets",
        "DROP TABLE tickets",
        "CREATE TABLE more (x)",
        "ATTACH DATABASE ':memory:' AS other",
        "ATTACH DATABASE '{folder}/other.db' AS other",
        "VACUUM INTO '{folder}/copy.db'",
        "CREATE INDEX more ON tickets (status)",
        "WITH t AS (SELECT 1) UPDATE tickets SET status = 'closed'",
    ],
)
@pytest.mark.parametrize("unlocked", [False, True])
def test_the_database_refuses_to_write_for_a_reader(
    store: TicketStore, tmp_path: Path, statement: str, unlocked: bool
) -> None:
    before = {file.name for file in tmp_path.rglob("*")}
    with store.read_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if unlocked:
            connection.exec_driver_sql("PRAGMA query_only=OFF")
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql(statement.format(folder=tmp_path))
    assert {file.name for file in tmp_path.rglob("*")} == before
    ticket = store.get("4812", SUPPORT)
    assert ticket is not None
    assert ticket.status == "open"


def test_the_same_file_again_changes_nothing_and_another_changes_what_differs(
    make: Make, write: Callable[..., Path]
) -> None:
    store = make()
    first = store.import_csv(write(HEADER, *ROWS), NOW)
    assert (first.added, first.changed, first.unchanged, first.skipped) == (4, 0, 0, ())
    later = NOW.replace(day=27)
    again = store.import_csv(write(HEADER, *ROWS), later)
    assert (again.added, again.changed, again.unchanged) == (0, 0, 4)
    assert store.as_of() == later
    changed = store.import_csv(
        write(HEADER, ROWS[3].replace("open", "closed").replace("Export", "Exporté")), later
    )
    assert (changed.added, changed.changed, changed.unchanged) == (0, 1, 0)
    ticket = store.get("4900", SUPPORT)
    assert ticket is not None
    assert (ticket.status, ticket.imported_at) == ("closed", later)
    assert numbers(store, text="exporte") == ["4900"]
    assert store.find(TicketFilter(), SUPPORT).total == 4


def test_bad_rows_are_named_with_their_line_and_the_rest_is_imported(
    make: Make, write: Callable[..., Path]
) -> None:
    store = make()
    report = store.import_csv(
        write(
            "number,subject,plan,charged_on",
            '4812,"two',
            'lines",Team,2026-08-14',
            ",no number,Team,",
            "48x2,odd number,Team,",
            "4813,no such day,Team,2026-02-30",
            "4814,no date,Team,soon",
            "4815,too few",
            "4816,too, many,Team,",
            "4817,nul\x00,Team,",
            "4812,other content,Team,",
            '4818,"say "hi" there",Team,',
            "4819,fine,Team,-",
            "4819,fine,Team,-",
            ",,,",
            "",
            "4820,bell\x07,Team,",
        ),
        NOW,
    )
    assert [line for line, _ in report.skipped] == [4, 5, 8, 9, 10, 11, 12, 17]
    reasons = " | ".join([*(reason for _, reason in report.skipped), *report.notes])
    for part in (
        "no ticket number",
        "'48x2' is not a ticket number",
        "charged_on: '2026-02-30' is no day of the calendar",
        "'soon' is not a date",
        "2 cells where the header has 4",
        "5 cells where the header has 4",
        "U+0000",
        "number 4812 is on line 2 too",
        "quotation mark",
        "U+0007",
    ):
        assert part in reasons
    assert (report.added, report.unchanged) == (4, 0)
    assert "4 tickets added" in report.summary()
    assert "line 6: charged_on: '2026-02-30'" in report.summary()
    assert sorted(numbers(store)) == ["4812", "4813", "4814", "4819"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_marks_and_line_ends(
    make: Make, write: Callable[..., Path], delimiter: str, encoding: str, end: str
) -> None:
    store = make()
    lines = [
        delimiter.join(["number", "customer", "subject"]),
        delimiter.join(["4812", "Núñez", f'"a, b; c\td{end}e"']),
        delimiter.join(["4813", "Ortega", '"He said ""no"""']),
    ]
    report = store.import_csv(write(*lines, encoding=encoding, end=end), NOW)
    assert (report.added, report.skipped) == (2, ())
    ticket = store.get("4813", SUPPORT)
    assert ticket is not None
    assert (ticket.customer, ticket.subject) == ("Ortega", 'He said "no"')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (
            b"number,subject\n4812,a\n4813,caf\xe9\n",
            r"line 3 is not UTF-8 .*café.*; nothing was imported.*CSV UTF-8",
        ),
        (b"\xff\xfen\x00", "UTF-16"),
        (b"PK\x03\x04", "spreadsheet"),
        (b"number\n4812\n", "only one column"),
        (b"number,number\n4812,a\n", "names 'number' more than once"),
        (b"4812,Ortega\n4813,Nord\n", "looks like a ticket, not a header"),
        (b"foo,bar\nx,y\n", r"no column looks like a ticket number; .*the columns are foo, bar"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_whole(
    make: Make, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    store = make()
    with pytest.raises(TicketImportError, match=message) as error:
        store.import_csv(path, NOW)
    assert "broken.csv" in str(error.value)
    assert store.find(TicketFilter(), SUPPORT).total == 0
    assert store.as_of() is None


def test_a_missing_file_and_a_missing_column_are_named(
    make: Make, write: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(TicketImportError, match=r"nowhere\.csv cannot be read"):
        make().import_csv(tmp_path / "nowhere.csv", NOW)
    with pytest.raises(
        TicketImportError,
        match=r"no column 'tier', which \[tickets.facets\] names for 'plan'; the columns are",
    ):
        make("b.db", facets={"plan": "tier"}).import_csv(write(HEADER, *ROWS), NOW)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-09-02", date(2026, 9, 2)),
        ("2026-09-02 10:14", datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)),
        ("2026-09-02T08:14:00Z", datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)),
        ("2026-09-02T10:14:00+02:00", datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)),
        ("2026-09-02 10:14:05.123", datetime(2026, 9, 2, 10, 14, 5, 123000, tzinfo=MADRID)),
        ("9/2/2026 1:05 PM", datetime(2026, 9, 2, 13, 5, tzinfo=MADRID)),
        ("02.09.2026", date(2026, 9, 2)),
        ("2 Sep 2026", date(2026, 9, 2)),
        ("Sep 2, 2026", date(2026, 9, 2)),
        ("Wed, 2 September 2026", date(2026, 9, 2)),
        ("2 de septiembre de 2026", date(2026, 9, 2)),
        ("2-Sep-2026 10:14", datetime(2026, 9, 2, 10, 14, tzinfo=MADRID)),
    ],
)
def test_dates_are_read_as_they_are_written(
    make: Make, write: Callable[..., Path], written: str, expected: date
) -> None:
    store = make(events={"charge": "charged"})
    report = store.import_csv(write("number,subject,charged", f'4812,a,"{written}"'), NOW)
    assert report.skipped == ()
    ticket = store.get("4812", SUPPORT)
    assert ticket is not None
    assert ticket.events == {"charge": expected}
    assert type(ticket.events["charge"]) is type(expected)


@pytest.mark.parametrize(
    "written",
    "02/09/26|2026-13-01|2026-09-02 25:00|2026-09-02 10:14 CET|45537|tomorrow|0001-01-01|9999-12-31|"
    "9999-12-31T23:59:59-12:00".split("|"),
)
def test_a_date_that_cannot_be_read_is_named_and_its_ticket_says_so(
    make: Make, write: Callable[..., Path], written: str
) -> None:
    store = make(events={"charge": "charged"}, columns={"opened_at": "opened"})
    file = write("number,subject,opened,charged", f'4812,a,{written},"{written}"')
    for added in (1, 0):
        report = store.import_csv(file, NOW, anew=False)
        assert (report.added, report.changed, report.skipped) == (added, 0, ())
        assert f"line 2: charged: {written!r}" in report.summary()
    ticket = store.get("4812", SUPPORT)
    assert ticket is not None
    assert (ticket.opened_at, dict(ticket.events)) == (None, {})
    assert ticket.unread.keys() == {"opening", "charge"}
    assert ticket.unread["charge"].startswith(repr(written))
    mended = write("number,subject,opened,charged", "4812,a,2026-09-01,2026-09-02")
    assert store.import_csv(mended, NOW).changed == 1
    ticket = store.get("4812", SUPPORT)
    assert ticket is not None
    assert (ticket.unread, ticket.events["charge"]) == ({}, date(2026, 9, 2))


def test_days_first_or_months_first(make: Make, write: Callable[..., Path]) -> None:
    def charges(name: str, *cells: str, **settings: Any) -> list[date | datetime | None]:
        made = make(name, events={"charge": "charged", "delivery": "delivered"}, **settings)
        rows = [f"481{at},a,{cell}" for at, cell in enumerate(cells)]
        made.import_csv(write("number,subject,charged,delivered", *rows), NOW)
        found = [made.get(f"481{at}", SUPPORT) for at in range(len(cells))]
        return [ticket.events.get("charge") if ticket else None for ticket in found]

    assert charges("a.db", "02/09/2025,") == [date(2025, 2, 9)]
    assert charges("b.db", "02/09/2025,", day_first=True) == [date(2025, 9, 2)]
    assert charges("c.db", "02/09/2025,", "13/09/2025,") == [date(2025, 9, 2), date(2025, 9, 13)]
    assert charges("d.db", "02/09/2025,", "09/13/2025,", day_first=True) == [
        date(2025, 2, 9),
        date(2025, 9, 13),
    ]
    assert charges("e.db", "02/09/2025,13/09/2025") == [date(2025, 9, 2)], (
        "another column of the file decides"
    )
    mixed = charges("f.db", "02/09/2025,", "13/09/2025,", "09/13/2025,")
    assert mixed == [None, date(2025, 9, 13), date(2025, 9, 13)]
    said = charges("g.db", "02/09/2025,", "13/09/2025,", "09/13/2025,", day_first=True)
    assert said[0] == date(2025, 9, 2)


def test_an_assumed_order_of_days_and_months_is_said(make: Make, write: Callable[..., Path]) -> None:
    report = make().import_csv(write("number,subject,charged_on", "4812,a,02/09/2025"), NOW)
    assert "charged_on: '02/09/2025' was read with the month first" in report.summary()
    assert "day_first = true" in report.summary()


def test_a_file_that_would_move_known_dates_is_refused_until_the_order_is_said(
    make: Make, write: Callable[..., Path]
) -> None:
    header = "number,subject,opened_at,charged_on,refund_requested_on"
    before = ["4812,a,01/04/2026 10:00,01/04/2026,02/04/2026", "4813,b,13/04/2026,13/04/2026,14/04/2026"]
    store = make()
    store.import_csv(write(header, *before), NOW)

    def charged() -> Any:
        found = store.get("4812", SUPPORT)
        return found and (found.opened, found.events["charge"], found.actions["refund request"])

    first = (datetime(2026, 4, 1, 10, tzinfo=MADRID), date(2026, 4, 1), date(2026, 4, 2))
    assert charged() == first
    shorter = write(header, "4814,new,01/04/2026 10:00,02/02/2026,", before[0])
    with pytest.raises(
        TicketImportError,
        match=r"line 3, opening '01/04/2026 10:00' was read as 1 April 2026 before, and is 4 January now.*day_first",
    ):
        store.import_csv(shorter, NOW)
    assert charged() == first
    assert store.get("4814", SUPPORT) is None
    said = make(day_first=True)
    assert said.import_csv(shorter, NOW).unchanged == 1
    assert charged() == first
    otherwise = make(day_first=False)
    assert otherwise.import_csv(shorter, NOW).changed == 2
    assert charged()[1] == date(2026, 1, 4)


def test_a_date_that_is_corrected_to_another_is_taken(make: Make, write: Callable[..., Path]) -> None:
    store = make()
    store.import_csv(write("number,subject,charged_on", "4812,a,2026-04-01"), NOW)
    report = store.import_csv(write("number,subject,charged_on", "4812,a,2026-01-04"), NOW)
    assert (report.changed, report.failure) == (1, "")


def test_a_day_that_came_without_a_time_is_shown_as_a_day(make: Make, write: Callable[..., Path]) -> None:
    store = make(events={"charge": "charged_on"})
    rows = ["4812,a,2026-03-20,2026-03-20T00:00:00", "4813,b,2026-03-20 09:30,2026-03-20 09:30"]
    store.import_csv(write("number,subject,opened_at,charged_on", *rows), NOW)
    day, moment = (store.get(number, SUPPORT) for number in ("4812", "4813"))
    assert day is not None
    assert moment is not None
    assert day.events == {"charge": date(2026, 3, 20), "opening": date(2026, 3, 20)}
    assert day.opened == date(2026, 3, 20)
    assert moment.opened == moment.events["charge"] == datetime(2026, 3, 20, 9, 30, tzinfo=MADRID)
    assert "Opened: 20 March 2026\n" in ticket_text(day, "TCK-4812")
    assert "00:00" not in ticket_text(day, "TCK-4812")
    assert "Opened: 20 March 2026, 09:30" in ticket_text(moment, "TCK-4813")


@pytest.mark.parametrize("replace", [False, True])
def test_tickets_that_left_their_file_are_told_and_go_where_the_file_is_the_truth(
    make: Make, write: Callable[..., Path], replace: bool
) -> None:
    store = make()
    store.import_csv(write("number,subject", "4900,other", name="other.csv"), NOW)
    store.import_csv(write("number,subject", *(f"481{n},a" for n in range(6))), NOW)
    report = store.import_csv(write("number,subject", *(f"481{n},a" for n in range(4))), NOW, replace=replace)
    told = report.summary()
    assert (report.kept, report.removed, report.failed) == ((0, 2, False) if replace else (2, 0, False))
    assert (
        "kept: 2 tickets" in told,
        "2 tickets that it brought before and has no more were removed" in told,
    ) == (
        not replace,
        replace,
    )
    assert ("twohop tickets import tickets.csv --replace" in told) is not replace
    assert store.find(TicketFilter(), SUPPORT).total == (5 if replace else 7)
    again = store.import_csv(
        write("number,subject", *(f"481{n},a" for n in range(4))), NOW, anew=False, replace=True
    )
    assert (again.removed, again.unchanged) == ((0, 4) if replace else (2, 4)), (
        "what was kept by hand goes later"
    )


def test_a_file_that_lost_most_of_its_tickets_is_refused(make: Make, write: Callable[..., Path]) -> None:
    store = make()
    store.import_csv(write("number,subject", *(f"481{n},a" for n in range(6))), NOW)
    short = write("number,subject", "4810,a", "4816,new", "4817,new", "4818,new", "4819,new", "4820,new")
    for _ in range(2):
        with pytest.raises(
            TicketImportError,
            match=r"no longer has 5 of the 6 tickets that it brought before.*--allow-removal",
        ):
            store.import_csv(short, NOW, anew=False, replace=True)
    assert store.find(TicketFilter(), SUPPORT).total == 6
    assert store.get("4816", SUPPORT) is None
    report = store.import_csv(short, NOW, anew=False, replace=True, allow_removal=True)
    assert (report.kept, report.removed, report.failed) == (0, 5, False)
    assert store.find(TicketFilter(), SUPPORT).total == 6


def test_nothing_goes_while_a_row_cannot_be_read_and_a_ticket_is_its_last_files(
    make: Make, write: Callable[..., Path]
) -> None:
    store = make()
    rows = [f"481{n},a" for n in range(6)]
    store.import_csv(write("number,subject", *rows), NOW)
    torn = store.import_csv(write("number,subject", *rows[:4], "4814"), NOW, replace=True)
    assert (torn.kept, torn.removed) == (2, 0)
    store.import_csv(write("number,subject", "4815,a", name="other.csv"), NOW)
    report = store.import_csv(write("number,subject", *rows[:4]), NOW, replace=True)
    assert report.removed == 1
    assert store.get("4815", SUPPORT) is not None


def test_a_file_of_a_header_alone_is_a_failure_and_keeps_the_tickets(
    make: Make, write: Callable[..., Path]
) -> None:
    store = make()
    store.import_csv(write(HEADER, *ROWS), NOW)
    report = store.import_csv(write(HEADER), NOW, replace=True, allow_removal=True)
    assert report.failed
    assert "a header and no row, like an export that broke" in report.summary()
    assert store.find(TicketFilter(), SUPPORT).total == 4


def test_spellings_of_one_value_become_the_commonest(make: Make, write: Callable[..., Path]) -> None:
    store = make(facets={"plan": "plan"})

    def plans(*values: str, start: int = 4810) -> Path:
        return write("number,status,plan", *(f"{start + at},Open,{value}" for at, value in enumerate(values)))

    store.import_csv(plans("Team", " team ", "Team", "TEAM"), NOW)
    assert store.values()["plan"] == ("Team",)
    again = store.import_csv(plans("Team", "team", "Team", "TEAM"), NOW)
    assert (again.changed, again.unchanged) == (0, 4)
    store.import_csv(plans(*["TEAM"] * 5, start=4900), NOW)
    assert store.values()["plan"] == ("TEAM",)
    assert store.find(TicketFilter(facets={"plan": "team"}), SUPPORT).total == 9


def test_the_mapping_is_guessed_said_and_kept_for_other_processes(
    make: Make, write: Callable[..., Path]
) -> None:
    first = make()
    report = first.import_csv(write(HEADER, *ROWS), NOW)
    assert report.guessed is not None
    assert report.guessed.facets == {"plan": "plan", "billing": "billing"}
    assert report.guessed.events == {"charge": "charged_on"}
    assert report.guessed.actions == {"refund request": "refund_requested_on"}
    assert report.guessed.personal == ("contact_email",)
    assert "events: charge = charged_on" in report.summary()
    second = make()
    assert second.settings == report.guessed == first.settings
    assert describe(second.settings) == second.describe()
    assert second.get("4812", SUPPORT) == first.get("4812", SUPPORT)


def test_a_second_file_adds_to_what_the_first_taught(make: Make, write: Callable[..., Path]) -> None:
    store, other = make(), make()
    store.import_csv(write(HEADER, *ROWS), NOW)
    assert other.values()["plan"] == ("Starter", "Team")
    store.import_csv(
        write("number,subject,region,plan", "5001,a,EU,Team", "5002,b,UK,Team", "4812,Refund,EU,Team"), NOW
    )
    assert list(store.settings.facets) == ["plan", "billing", "region"]
    ticket = other.get("4812", SUPPORT)
    assert ticket is not None
    assert ticket.facets == {"plan": "Team", "billing": "annual", "region": "EU"}
    assert ticket.customer == "Ortega Hardware"
    assert other.values()["region"] == ("EU", "UK")


def test_only_empty_sections_are_guessed(make: Make, write: Callable[..., Path]) -> None:
    store = make(facets={"tier": "plan"})
    report = store.import_csv(write(HEADER, *ROWS), NOW)
    assert store.settings.facets == {"tier": "plan"}
    assert report.guessed is not None
    assert report.guessed.events == {"charge": "charged_on"}
    later = make(facets={"tier": "plan"}, events={"renewal": "renewed_on"})
    assert later.settings.events == {"renewal": "renewed_on"}
    assert later.get("4812", SUPPORT) is not None, "the older table gets the column it lacks"


def test_odd_headers_in_english_and_spanish() -> None:
    english = guess(
        [
            "Ticket ID",
            "Customer Name",
            "Customer Email",
            "Product",
            "Date of Purchase",
            "Ticket Subject",
            "Ticket Description",
            "Ticket Status",
            "Ticket Priority",
            "Ticket Channel",
            "First Response Time",
            "Renewed At",
            "Delivered On",
            "Resolved At",
        ],
        [
            [
                "4812",
                "A",
                "a@b.example",
                "TV",
                "2025-01-02",
                "s",
                "long text",
                "Open",
                "Low",
                "Chat",
                "2025-02-01 10:00",
                "",
                "",
                "",
            ],
            [
                "4813",
                "B",
                "c@d.example",
                "TV",
                "2025-01-03",
                "s",
                "other text",
                "Open",
                "Low",
                "E-mail",
                "2025-02-02 10:00",
                "",
                "",
                "",
            ],
        ],
    )
    assert english.columns == {
        "number": "Ticket ID",
        "customer": "Customer Name",
        "status": "Ticket Status",
        "priority": "Ticket Priority",
        "subject": "Ticket Subject",
        "body": "Ticket Description",
    }
    assert english.facets == {"product": "Product", "channel": "Ticket Channel"}
    assert english.events == {
        "purchase": "Date of Purchase",
        "renewal": "Renewed At",
        "delivery": "Delivered On",
    }
    assert english.actions == {"first response": "First Response Time", "resolution": "Resolved At"}
    assert english.personal == ("Customer Email",)
    spanish = guess(
        [
            "Nº Ticket",
            "Cliente",
            "Estado",
            "Prioridad",
            "Asunto",
            "Descripción",
            "Fecha de apertura",
            "Fecha de compra",
            "Correo",
            "Tarifa",
        ],
        [
            [
                "INC0012345",
                "Núñez",
                "Abierto",
                "Alta",
                "a",
                "b",
                "13/04/2026 10:00",
                "13/02/2026",
                "a@b.example",
                "Mensual",
            ],
            [
                "INC0012346",
                "Ortega",
                "Abierto",
                "Alta",
                "a",
                "b",
                "31/02/2026",
                "13/02/2026",
                "a@b.example",
                "Anual",
            ],
        ],
    )
    assert list(spanish.columns) == [
        "number",
        "customer",
        "status",
        "priority",
        "subject",
        "body",
        "opened_at",
    ]
    assert (spanish.facets, spanish.events, spanish.personal) == (
        {"tarifa": "Tarifa"},
        {"compra": "Fecha de compra"},
        ("Correo",),
    )
    assert (spanish.prefixes, spanish.number_pattern) == (("INC",), r"\d{7}")


def test_short_numbers_are_mentioned_only_explicitly(make: Make, write: Callable[..., Path]) -> None:
    store = make()
    store.import_csv(write("id,text,priority", '14,"We pay twice. Why?",P1', "7,Crash,P0"), NOW)
    ticket = store.get("14", SUPPORT)
    assert ticket is not None
    assert (ticket.subject, ticket.body) == ("We pay twice. Why?",) * 2
    assert store.mentioned("within 14 of 7") == ()
    assert [m.number for m in store.mentioned("tickets 7 and 14")] == ["7", "14"]
    assert numbers(store, order="priority") == ["7", "14"]


def test_a_second_company_with_other_numbers_words_and_a_semicolon(
    make: Make, write: Callable[..., Path]
) -> None:
    store = make(
        prefixes=("RMA ",),
        number_pattern=r"[A-Z]{2}\d{2}-\d{4}",
        columns={"number": "case_ref", "customer": "buyer", "opened_at": "created"},
        facets={"model_line": "line"},
        events={"delivery": "delivered_on"},
        personal=("phone",),
        readers=("workshop",),
        day_first=True,
    )
    report = store.import_csv(
        write(
            "case_ref;buyer;line;created;delivered_on;phone",
            "RMA BK26-0413;Torvald Lindqvist;Cargo;04/11/2026 10:15;10/10/2024;+46 8 555",
            "bk26-0431;Torvald Lindgren;Cargo;05/11/2026 15:50;30/09/2024;",
            "4812;Nobody;Cargo;05/11/2026;;",
            encoding="utf-8-sig",
            end="\r\n",
        ),
        NOW,
    )
    assert (report.added, [line for line, _ in report.skipped]) == (2, [4])
    assert store.get("rma-bk26-0413", SUPPORT) is None
    ticket = store.get("rma-bk26-0413", frozenset({"workshop"}))
    assert ticket is not None
    assert ticket.opened_at == datetime(2026, 11, 4, 10, 15, tzinfo=MADRID)
    assert ticket.events["delivery"] == date(2024, 10, 10)
    found = store.mentioned(
        "Compare RMA BK26-0413 and bk26-0431, not XBK26-0413 or BK26-04139; and BK26-0001?"
    )
    assert [(m.number, m.explicit) for m in found] == [
        ("BK26-0413", True),
        ("BK26-0431", True),
        ("BK26-0001", False),
    ]


def test_the_index_gets_the_newest_tickets_within_the_age(make: Make, write: Callable[..., Path]) -> None:
    store = make(index_max_age_days=25, index_max_count=2)
    store.import_csv(write(HEADER, *ROWS), NOW)
    assert [ticket.number for ticket in indexed_tickets(store, NOW)] == ["4900", "4821"]
    assert [ticket.number for ticket in indexed_tickets(store, NOW.replace(day=29))] == ["4900"]
    assert list(store.all_for_index(NOW.replace(year=2027))) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": {"colour": "x"}}, "no field 'colour'"),
        ({"facets": {"status": "state"}}, "'status' is a fixed field"),
        ({"facets": {"plan": "email"}, "personal": ("email",)}, "'email' is personal"),
        ({"facets": {"my plan": "a", "my-plan": "b"}}, "'my-plan' is written like another"),
        ({"number_pattern": "(?i)[a-z]+"}, "number_pattern"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(
    make: Make, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**settings)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://x/y", "tickets.db"])
def test_a_database_that_cannot_be_guarded_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="TICKETS_DATABASE_URL"):
        TicketStore(url, TicketSettings(), CalendarSettings())


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tickets.db").write_text("hello, this is not a database at all" * 20)
    with pytest.raises(ConfigError, match=r"tickets\.db.*cannot be used"):
        TicketStore(f"sqlite:///{tmp_path / 'tickets.db'}", TicketSettings(), CalendarSettings())


def test_readers_and_imports_at_once(make: Make, write: Callable[..., Path]) -> None:
    store = make()
    files = [
        write(HEADER, *(row.replace("open", state) for row in ROWS), name=f"{state}.csv")
        for state in ("open", "pending")
    ]
    store.import_csv(files[0], NOW)
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            for _ in range(10):
                work()
        except BaseException as error:
            failures.append(error)

    def look() -> None:
        page = store.find(TicketFilter(count_by="status"), SUPPORT)
        assert page.total == 4
        assert dict(page.counts) in ({"open": 3, "closed": 1}, {"pending": 3, "closed": 1}), page.counts

    jobs: list[Callable[[], object]] = [look, look, *(lambda f=f: store.import_csv(f, NOW) for f in files)]
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_rows_are_data_even_in_sql(store: TicketStore) -> None:
    with store.read_engine.connect() as connection:
        assert connection.execute(sql("SELECT count(*) FROM tickets")).scalar() == 4
    assert numbers(store, text="'; DROP TABLE tickets; --") == []
    assert store.get("'; DROP TABLE tickets; --", SUPPORT) is None
    assert len(numbers(store)) == 4


def test_a_listed_file_is_read_again_only_when_it_or_its_settings_changed(
    make: Make, write: Callable[..., Path]
) -> None:
    store, file, later = make(), write(HEADER, *ROWS), NOW.replace(day=28)
    assert store.import_csv(file, NOW, anew=False).added == 4
    again = store.import_csv(file, later, anew=False)
    assert (again.added, again.changed, again.unchanged, again.skipped) == (0, 0, 4, ())
    # What is said of the tickets' age is when their file last changed.
    assert store.as_of() == NOW
    assert make(facets={"plan": "plan"}).import_csv(file, later, anew=False).unchanged == 4
    assert store.as_of() == later
    write(HEADER, *(row.replace("open", "pending") for row in ROWS))
    assert store.import_csv(file, later.replace(day=29), anew=False).changed == 3
    assert store.as_of() == later.replace(day=29)


def test_a_file_with_rows_that_are_no_tickets_names_them_each_time(
    make: Make, write: Callable[..., Path]
) -> None:
    store, file = make(), write(HEADER, *ROWS, "draft,x,,,,,,,,,,,,,")
    for _ in range(2):
        assert [line for line, _ in store.import_csv(file, NOW, anew=False).skipped] == [7]
