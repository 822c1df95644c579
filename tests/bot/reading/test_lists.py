"""Which tickets a question lists or counts, over two companies: the tickets are those that the file's rows say."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import bot
from bot.app import Desk, build
from bot.config import load
from bot.reading.lists import TicketList, merged, ticket_lists
from bot.tools import FindTickets
from bot.types import Gazetteer
from ingest.tickets import TicketFilter, TicketPage
from tests.desks import SUPPORT, sample_settings
from tests.fakes import HashingEmbedder
from tests.second_company import oracle

Row = Mapping[str, str]
Wanted = Callable[[Row], Any]

VELSTRAND = Path(oracle.__file__).parent
TODAY = {"sample": date(2026, 9, 26), "velstrand": date(2026, 11, 9)}


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Desk]]:
    """The sample and the second company, tickets only."""
    company = load(VELSTRAND / "twohop.toml")
    tickets = company.tickets.model_copy(update={"csv": (VELSTRAND / "tickets.csv",)})
    settings = {
        "sample": sample_settings(tmp_path_factory.mktemp("sample")),
        "velstrand": company.model_copy(
            update={"data": tmp_path_factory.mktemp("velstrand"), "tickets": tickets}
        ),
    }
    made = {name: build(one, HashingEmbedder(), None) for name, one in settings.items()}
    for desk in made.values():
        for path in desk.settings.tickets.csv:
            desk.import_tickets(path)
    yield made
    for desk in made.values():
        desk.close()


def rows(path: Path, **format_: Any) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, **format_))


ROWS = {
    "sample": rows(Path(bot.__file__).parent / "demo" / "tickets.csv"),
    "velstrand": rows(VELSTRAND / "tickets.csv", delimiter=";"),
}


def read(desks: Mapping[str, Desk], name: str, text: str) -> tuple[TicketList, ...]:
    def holds(word: str) -> bool:
        return desks[name].tickets.find(TicketFilter(text=word), SUPPORT).total > 0

    return ticket_lists(text, desks[name].names(), TODAY[name], holds)


def find(desk: Desk, listed: TicketList) -> TicketPage:
    arguments = FindTickets.model_validate({"limit": 50, **listed.filters})
    return desk.tickets.find(TicketFilter(**arguments.model_dump()), SUPPORT)


def day(row: Row, column: str) -> date | None:
    if not row[column]:
        return None
    form = "%d/%m/%Y" if "/" in row[column] else "%Y-%m-%d"
    return datetime.strptime(row[column][:10], form).date()  # noqa: DTZ007


def within(row: Row, column: str, first: date, last: date) -> bool:
    moment = day(row, column)
    return moment is not None and first <= moment <= last


def says(row: Row, *wanted: str) -> bool:
    columns = ("subject", "body", "resolution", "headline", "details", "outcome")
    text = " ".join(row.get(column, "") for column in columns).casefold()
    return any(word in text for word in wanted)


QUESTIONS: list[tuple[str, str, Wanted]] = [
    # Values of status, priority and facets.
    ("velstrand", "show the waiting cases", lambda r: r["state"] == "waiting"),
    ("velstrand", "How many high urgency cargo cases came from Europe's EU market?", lambda r: r["urgency"] == "high" and r["line"] == "Cargo" and r["market"] == "EU"),
    ("sample", "anything urgent from Enterprise?", lambda r: r["priority"] == "urgent" and r["plan"] == "Enterprise"),
    # Customers and colleagues, whole or by a part.
    ("velstrand", "what has Torvald Lindgren written to us about?", lambda r: r["buyer"] == "Torvald Lindgren"),
    ("velstrand", "mads open cases", lambda r: r["handler"] == "Mads" and r["state"] == "open"),
    ("sample", "Inés' pending tickets", lambda r: r["assignee"] == "Inés Cabrera" and r["status"] == "pending"),
    # Another form of a name, another order, a slip.
    ("sample", "how many enterprize tickets are open", lambda r: r["plan"] == "Enterprise" and r["status"] == "open"),
    ("velstrand", "cases from Matteo Richi", lambda r: r["buyer"] == "Matteo Ricci"),
    ("sample", "Business tickets that pay annually", lambda r: r["plan"] == "Business" and r["billing"] == "annual"),
    # What is denied.
    ("velstrand", "Which City cases aren't closed?", lambda r: r["line"] == "City" and r["state"] != "closed"),
    ("velstrand", "open cases that are not from the EU", lambda r: r["state"] == "open" and r["market"] != "EU"),
    ("sample", "everything pending except Tom's", lambda r: r["status"] == "pending" and r["assignee"] != "Tom Ashworth"),
    # What was done, and what was not.
    ("velstrand", "who asked us to send the bike back?", lambda r: r["return_asked_on"]),
    ("velstrand", "open cases that have not been delivered", lambda r: r["state"] == "open" and not r["delivered_on"]),
    ("sample", "Which open tickets did nobody reply to?", lambda r: r["status"] == "open" and not r["first_responded_at"]),
    # Days, of opening and of what was done.
    ("velstrand", "cases created between 1 and 31 October", lambda r: within(r, "created", date(2026, 10, 1), date(2026, 10, 31))),
    ("velstrand", "Which bikes were delivered before 2024?", lambda r: within(r, "delivered_on", date(2000, 1, 1), date(2023, 12, 31))),
    ("sample", "refund requests in August 2026", lambda r: within(r, "refund_requested_on", date(2026, 8, 1), date(2026, 8, 31))),
    ("velstrand", "what was modified since 1 November?", lambda r: within(r, "modified", date(2026, 11, 1), date(2026, 11, 9))),
    # Words to look for.
    ("velstrand", "any case with VS-E17?", lambda r: says(r, "vs-e17")),
    ("velstrand", "cases about a bent fork", lambda r: says(r, "bent") and says(r, "fork")),
    ("sample", "how many Okta tickets have we had", lambda r: says(r, "okta")),
    ("sample", "Business tickets that mention webhooks or Okta", lambda r: r["plan"] == "Business" and says(r, "webhook", "okta")),
    # Spanish.
    ("sample", "¿Qué tickets urgentes siguen abiertos?", lambda r: r["priority"] == "urgent" and r["status"] == "open"),
    ("sample", "tickets de Marc sin cerrar", lambda r: r["assignee"] == "Marc Oliver" and r["status"] != "closed"),
    ("sample", "¿cuántos tickets de Enterprise no están cerrados?", lambda r: r["plan"] == "Enterprise" and r["status"] != "closed"),
    ("sample", "tickets abiertos en agosto de 2026 con prioridad alta", lambda r: r["priority"] == "high" and within(r, "opened_at", date(2026, 8, 1), date(2026, 8, 31))),
    ("sample", "¿Cuántas devoluciones se pidieron en 2026?", lambda r: within(r, "refund_requested_on", date(2026, 1, 1), date(2026, 12, 31))),
    ("velstrand", "casos de Freja que no son de la UE sino de UK", lambda r: r["handler"] == "Freja" and r["market"] == "UK"),
]  # fmt: skip


@pytest.mark.parametrize(("company", "text", "wanted"), QUESTIONS, ids=[text for _, text, _ in QUESTIONS])
def test_the_tickets_are_those_that_the_rows_say(
    desks: Mapping[str, Desk], company: str, text: str, wanted: Wanted
) -> None:
    desk = desks[company]
    number = "case_ref" if company == "velstrand" else "number"
    expected = {desk.tickets.canonical(row[number]) for row in ROWS[company] if wanted(row)}
    (listed,) = read(desks, company, text)
    page = find(desk, listed)
    assert expected, "a question that no ticket answers shows nothing"
    assert page.total == len(expected), listed
    assert {ticket.number for ticket in page.tickets} <= expected


@pytest.mark.parametrize(
    ("company", "text", "filters"),
    [
        ("velstrand", "open cases per handler", {"status": "open", "count_by": "assignee"}),
        ("velstrand", "which model line causes the most warranty claims?", {"has": "warranty claim", "count_by": "model_line"}),
        ("sample", "¿Quién tiene más tickets pendientes?", {"status": "pending", "count_by": "assignee"}),
        ("velstrand", "which buyers have at least two cases", {"count_by": "customer", "at_least": 2}),
        ("sample", "customers who asked for a refund more than once", {"has": "refund request", "count_by": "customer", "at_least": 2}),
        ("sample", "Which agents have fewer than three open tickets?", {"status": "open", "count_by": "assignee", "at_most": 2}),
        ("velstrand", "the three oldest open cases", {"status": "open", "order": "oldest", "limit": 3}),
        ("velstrand", "latest case from the UK", {"facets": {"region": "UK"}, "limit": 1}),
        ("sample", "last 4 Team tickets", {"facets": {"plan": "Team"}, "limit": 4}),
    ],
)  # fmt: skip
def test_counts_bounds_and_orders(
    desks: Mapping[str, Desk], company: str, text: str, filters: Mapping[str, Any]
) -> None:
    (listed,) = read(desks, company, text)
    assert listed.filters == filters
    assert listed.not_understood == ()


NAMES = Gazetteer(
    {"hall": ("North Hall", "Annex"), "is_vip": ("false", "true")},
    status=("New", "In work", "Waiting for parts", "Solved", "Closed"),
    priority=("P1", "P2"),
    customers=("Ada Lowe", "Vega Foods"),
    assignees=("kim", "Jo Brandt"),
    actions=("delivery", "handover"),
    headers={"handover": "given out", "opened_at": "noted", "assignee": "looked after by"},
)


def listed(text: str, names: Gazetteer = NAMES) -> TicketList:
    (one,) = ticket_lists(text, names, TODAY["sample"], lambda word: word != "zebra")
    return one


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("which tickets are still open", {"status": ["New", "In work", "Waiting for parts"]}),
        ("unresolved tickets", {"not_status": ["Solved", "Closed"]}),
        ("tickets waiting on P1", {"status": "Waiting for parts", "priority": "P1"}),
        ("kims tickets", {"assignee": "kim"}),
        ("P2s in the hall north", {"priority": "P2", "facets": {"hall": "North Hall"}}),
        ("vip tickets", {"facets": {"is_vip": "true"}}),
        ("non-vip tickets", {"not_facets": {"is_vip": "true"}}),
        ("tickets not given out yet", {"lacks": "handover"}),
        ("tickets noted in August", {"opened_from": "2026-08-01", "opened_to": "2026-08-31"}),
    ],
)
def test_a_companys_own_words_are_read(text: str, filters: Mapping[str, Any]) -> None:
    assert listed(text).filters == filters


def test_open_where_no_status_is_called_so_is_said() -> None:
    assert listed("open tickets").assumed == ("“open”: New, In work, Waiting for parts",)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("P1 tickets from Spain", ("Spain",)),
        ("zebra tickets", ("zebra",)),
        ("my P1 tickets", ("my",)),
        ("tickets not really closed", ("not really closed",)),
        ("tickets not noted in August", ("not noted in August",)),
        ("P1 tickets that came in outside business hours", ("outside business hours",)),
    ],
)
def test_what_nothing_uses_is_said_and_is_no_filter(text: str, left: tuple[str, ...]) -> None:
    one = listed(text)
    assert one.not_understood == left
    assert set(one.filters) <= {"priority"}


WAYS = [
    ("{} tickets", False),
    ("which tickets are {}", False),
    ("tickets that are not {}", True),
    ("which tickets aren't {}", True),
    ("all tickets except {} ones", True),
    ("tickets que no son {}", True),
    ("tickets that have never been {}", True),
]


@pytest.mark.parametrize(("way", "denied"), WAYS)
@pytest.mark.parametrize("value", ["New", "In work", "Closed", "P1", "Annex"])
def test_a_denied_value_is_never_its_opposite(way: str, denied: bool, value: str) -> None:
    filters = listed(way.format(value)).filters
    assert len(filters) == 1
    assert all(name.startswith("not_") == denied for name in filters)


def test_a_list_and_some_of_it_are_two_lists() -> None:
    first, second = ticket_lists(
        "how many P1 ones since May, and which are still closed?", NAMES, TODAY["sample"], lambda word: True
    )
    assert first.filters == {"priority": "P1", "opened_from": "2026-05-01"}
    assert second.filters == {**first.filters, "status": "Closed"}


@pytest.mark.parametrize(
    ("before", "now", "filters"),
    [
        ("closed tickets", "only the P1 ones", {"status": "Closed", "priority": "P1"}),
        ("closed tickets", "only the new ones", {"status": "New"}),
        (
            "closed tickets of Vega",
            "and those not closed?",
            {"customer": "Vega Foods", "not_status": "Closed"},
        ),
        ("P1 tickets since May", "and since July?", {"priority": "P1", "opened_from": "2026-07-01"}),
        ("vip tickets in North Hall", "and in the Annex?", {"facets": {"is_vip": "true", "hall": "Annex"}}),
        ("tickets with a delivery in May", "and without delivery?", {"lacks": "delivery"}),
    ],
)
def test_a_follow_up_keeps_what_it_leaves_open(before: str, now: str, filters: Mapping[str, Any]) -> None:
    assert merged(listed(before), listed(now)).filters == filters


def test_one_of_many_thousand_customers_is_found() -> None:
    many = tuple(f"Shop {n} Limited" for n in range(20_000))
    names = Gazetteer({}, customers=many)
    assert listed("tickets of shop 777 limited", names).filters == {"customer": "Shop 777 Limited"}
