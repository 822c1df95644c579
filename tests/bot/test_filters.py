"""Questions over many tickets: what the words state is filtered by, and what no filter can say is named."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import bot
from bot.app import Desk
from bot.config import WordSettings, load
from bot.filters import described, read
from bot.filters.days import spans
from bot.types import Gazetteer
from ingest.embed import Embedder
from tests.bot.test_tools import toolbox, use
from tests.desks import answer, prepared
from tests.second_company import oracle

Row = Mapping[str, str]
Wanted = Callable[[Row], bool]

NAMES = Gazetteer(
    {"plan": ("Starter", "Team", "Business", "Enterprise"), "billing": ("annual", "monthly")},
    status=("open", "pending", "resolved", "closed"),
    priority=("low", "normal", "high", "urgent"),
    customers=("Ortega Hardware", "Atlas Coworking"),
    assignees=("Lucía Navarro", "Tom Ashworth", "Inés Cabrera"),
    actions=("refund request", "first response", "resolution", "charge"),
    synonyms=WordSettings().synonyms,
)
TODAY = date(2026, 9, 26)


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("How many open tickets are there?", {"status": "open"}),
        ("How many tickets are open, by priority?", {"status": "open", "count_by": "priority"}),
        ("List the urgent tickets", {"priority": "urgent"}),
        ("Show me all pending tickets of Lucía", {"status": "pending", "assignee": "Lucía Navarro"}),
        ("Which tickets does Tom have?", {"assignee": "Tom Ashworth"}),
        ("Tickets opened since 1 September 2026", {"opened_from": "2026-09-01"}),
        (
            "Tickets opened between 1 September 2026 and 15 September 2026",
            {"opened_from": "2026-09-01", "opened_to": "2026-09-15"},
        ),
        ("Which tickets were opened before 5 January 2026?", {"opened_to": "2026-01-04"}),
        ("Which tickets were opened after 5 September 2026?", {"opened_from": "2026-09-06"}),
        ("Tickets up to 3 February 2026", {"opened_to": "2026-02-03"}),
        ("Tickets opened last week", {"opened_from": "2026-09-14", "opened_to": "2026-09-20"}),
        ("tickets opened on 25 September", {"opened_from": "2026-09-25", "opened_to": "2026-09-25"}),
        ("Tickets updated yesterday", {"updated_from": "2026-09-25", "updated_to": "2026-09-25"}),
        ("How many tickets per plan?", {"count_by": "plan"}),
        ("How many tickets does each assignee have?", {"count_by": "assignee"}),
        ("Who has the most tickets?", {"count_by": "assignee"}),
        ("How many Team tickets are open?", {"status": "open", "facets": {"plan": "Team"}}),
        (
            "Which customers have more than two open tickets?",
            {"status": "open", "count_by": "customer", "at_least": 3},
        ),
        (
            "Which customers asked for a refund at least twice?",
            {"has": "refund request", "count_by": "customer", "at_least": 2},
        ),
        (
            "Which agents have fewer than five tickets?",
            {"count_by": "assignee", "at_most": 4},
        ),
        (
            "Which customers on annual billing have open tickets?",
            {"status": "open", "facets": {"billing": "annual"}, "count_by": "customer"},
        ),
        ("Tickets of Ortega Hardware", {"customer": "Ortega Hardware"}),
        ("Which cases did Ortega Hardware open?", {"customer": "Ortega Hardware"}),
        (
            "Which tickets did the people of Ortega open yesterday?",
            {"customer": "Ortega Hardware", "opened_from": "2026-09-25", "opened_to": "2026-09-25"},
        ),
        ("How many tickets does Ortega Hardware open?", {"customer": "Ortega Hardware"}),
        (
            "Which tickets does Ortega Hardware still have open?",
            {"customer": "Ortega Hardware", "status": "open"},
        ),
        ("Does Ortega have open tickets?", {"customer": "Ortega Hardware", "status": "open"}),
        ("Do any open tickets of Ortega exist?", {"customer": "Ortega Hardware", "status": "open"}),
        (
            "list cases of Team customers opened in July 2026",
            {"facets": {"plan": "Team"}, "opened_from": "2026-07-01", "opened_to": "2026-07-31"},
        ),
        ("Are there any older tickets open?", {"status": "open", "order": "oldest"}),
        ("Does Ortega have newer tickets?", {"customer": "Ortega Hardware"}),
        ("Tickets that mention ALB-1207", {"text": "alb-1207"}),
        ('Any tickets about "Mac version"?', {"text": "Mac version"}),
        ("Which tickets are about webhooks?", {"text": "webhook"}),
        ("What is the oldest open ticket?", {"status": "open", "order": "oldest", "limit": 1}),
        ("latest ticket", {"limit": 1}),
        (
            "List tickets assigned to Inés that are high priority on Business",
            {"priority": "high", "assignee": "Inés Cabrera", "facets": {"plan": "Business"}},
        ),
    ],
)
def test_filters_are_read_off_the_words(text: str, filters: dict[str, Any]) -> None:
    assert read(text, NAMES, TODAY).filters == filters


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("between 20 and 25 September 2026", "2026-09-20", "2026-09-25"),
        ("from 20 to 25 September", "2026-09-20", "2026-09-25"),
        ("20-25 September 2026", "2026-09-20", "2026-09-25"),
        ("September 20 to 25, 2026", "2026-09-20", "2026-09-25"),
        ("del 20 al 25 de septiembre de 2026", "2026-09-20", "2026-09-25"),
        ("entre el 20 y el 25 de septiembre", "2026-09-20", "2026-09-25"),
        ("from 20 August to 5 September 2026", "2026-08-20", "2026-09-05"),
        ("between 20 December and 5 January", "2025-12-20", "2026-01-05"),
        ("from June to August", "2026-06-01", "2026-08-31"),
        ("between August and October", "2026-08-01", "2026-10-31"),
        ("in June and July", "2026-06-01", "2026-07-31"),
        ("in August", "2026-08-01", "2026-08-31"),
        ("in October", "2025-10-01", "2025-10-31"),
        ("en agosto de 2025", "2025-08-01", "2025-08-31"),
        ("2026-02", "2026-02-01", "2026-02-28"),
        ("in 2025", "2025-01-01", "2025-12-31"),
        ("in Q1", "2026-01-01", "2026-03-31"),
        ("in the fourth quarter", "2025-10-01", "2025-12-31"),
        ("last quarter", "2026-04-01", "2026-06-30"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last week", "2026-09-14", "2026-09-20"),
        ("el mes pasado", "2026-08-01", "2026-08-31"),
        ("in the last 30 days", "2026-08-27", "2026-09-26"),
        ("since March", "2026-03-01", None),
        ("from 1 September onwards", "2026-09-01", None),
        ("after 5 September 2026", "2026-09-06", None),
        ("desde el 1 de septiembre", "2026-09-01", None),
        ("before June", None, "2026-05-31"),
        ("before 2026", None, "2025-12-31"),
        ("before between 14 September 2026 and 20 September 2026", None, "2026-09-13"),
        ("up to 3 February 2026", None, "2026-02-03"),
        ("antes del 5 de enero de 2026", None, "2026-01-04"),
        ("after 1 August and before 15 September", "2026-08-02", "2026-09-14"),
        ("older than 3 days", None, "2026-09-22"),
        ("open for more than 2 weeks", None, "2026-09-11"),
        ("less than a month old", "2026-08-26", None),
    ],
)
def test_days_in_every_usual_form(text: str, first: str | None, last: str | None) -> None:
    (span,) = spans(f"tickets {text}", TODAY)
    assert (span.first and span.first.isoformat(), span.last and span.last.isoformat()) == (first, last)


@pytest.mark.parametrize(
    "text", ["may we see tickets", "tickets about 2000 invoices or 45 rows", "in 24 hours"]
)
def test_what_is_no_day(text: str) -> None:
    assert spans(text, TODAY) == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("How many tickets from Spain are open?", ("Spain",)),
        ("Which Spanish customers have open tickets?", ("Spanish",)),
        ("How many tickets came in outside business hours?", ("outside business hours",)),
        ("How many tickets took more than 2 days to resolve?", ("took more than 2 days",)),
        ("Show me my open tickets", ("my",)),
        ("How many older tickets are there?", ("older",)),
        ("How many tickets does each assignee have by status?", ("by status",)),
        ("Which tickets have more than two requests?", ("more than two requests",)),
        ("How many tickets were closed last week by phone?", ("phone",)),
        ("How many tickets in June and in August?", ("in August",)),
        ("How many tickets are open? And what does the Team plan cost?", ()),
        ("We met Ortega Hardware in Lisbon. How many open tickets do they have?", ()),
        ("What is the refund window of the Team plan?", ()),
    ],
)
def test_words_that_no_filter_can_say_are_named(text: str, left: tuple[str, ...]) -> None:
    assert read(text, NAMES, TODAY).left == left


def rows(path: Path, **format_: Any) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, **format_))


SAMPLE = rows(Path(bot.__file__).parent / "demo" / "tickets.csv")


def within(column: str, first: str, last: str) -> Wanted:
    """Compare the days of a column, both included."""
    return lambda row: bool(row[column]) and first <= row[column][:10] <= last


def says(row: Row, *parts: str) -> bool:
    text = f"{row['subject']} {row['body']} {row['resolution']}".lower()
    return any(part in text for part in parts)


REFUND = (
    "refund",
    "money back",
    "moneyback",
    "pay back",
    "paid back",
    "reimburse",
    "reembolso",
    "reembolsar",
    "devolución",
    "devolver el dinero",
)

QUESTIONS: list[tuple[str, Wanted]] = [
    (
        "How many refund requests did we get from Team customers?",
        lambda r: r["plan"] == "Team" and bool(r["refund_requested_on"]),
    ),
    (
        "how many tickets did we get from Greenlane this year?",
        lambda r: r["customer"] == "Greenlane Couriers" and r["opened_at"] >= "2026",
    ),
    ("tickets opened between 20 and 25 September 2026", within("opened_at", "2026-09-20", "2026-09-25")),
    ("¿Cuántos tickets abiertos hay?", lambda r: r["status"] == "open"),
    (
        "which open tickets have no first reply yet",
        lambda r: r["status"] == "open" and not r["first_responded_at"],
    ),
    ("How many tickets were not about refunds?", lambda r: not says(r, *REFUND)),
    ("How many tickets are not closed?", lambda r: r["status"] != "closed"),
    ("Which tickets are neither closed nor resolved?", lambda r: r["status"] in ("open", "pending")),
    ("How many tickets were resolved in August?", within("resolved_at", "2026-08-01", "2026-08-31")),
    ("How many tickets were resolved last week?", within("resolved_at", "2026-09-14", "2026-09-20")),
    ("Which tickets are not resolved yet?", lambda r: not r["resolved_at"]),
    ("Which tickets are still unanswered?", lambda r: not r["first_responded_at"]),
    (
        "List the unresolved Enterprise tickets",
        lambda r: r["plan"] == "Enterprise" and not r["resolved_at"],
    ),
    (
        "How many tickets asked for a refund since July?",
        within("refund_requested_on", "2026-07-01", "2026-09-26"),
    ),
    (
        "How many customers asked for their money back in 2026?",
        within("refund_requested_on", "2026-01-01", "2026-12-31"),
    ),
    (
        "How many urgent tickets did we have in Q2?",
        lambda r: r["priority"] == "urgent" and within("opened_at", "2026-04-01", "2026-06-30")(r),
    ),
    ("Which tickets have no plan?", lambda r: not r["plan"]),
    ("How many unassigned tickets are there?", lambda r: not r["assignee"]),
    (
        "How many webhook tickets did we get this year?",
        lambda r: says(r, "webhook") and r["opened_at"] >= "2026",
    ),
    (
        "Which tickets are open for more than 3 days?",
        lambda r: r["status"] == "open" and r["opened_at"] < "2026-09-23",
    ),
    (
        "How many Team and Business tickets are open?",
        lambda r: r["plan"] in ("Team", "Business") and r["status"] == "open",
    ),
    (
        "How many tickets other than Team ones are open?",
        lambda r: r["plan"] != "Team" and r["status"] == "open",
    ),
    ("How many tickets did not ask for a refund?", lambda r: not r["refund_requested_on"]),
    ("How many tickets mention IMP-0042 or BNK-0017?", lambda r: says(r, "imp-0042", "bnk-0017")),
    (
        "How many tickets mention SSO but are not Enterprise?",
        lambda r: says(r, "sso") and r["plan"] != "Enterprise",
    ),
    ("Tickets updated yesterday", within("updated_at", "2026-09-25", "2026-09-25")),
    (
        "How many tickets did Marc close in August?",
        lambda r: r["assignee"] == "Marc Oliver" and within("resolved_at", "2026-08-01", "2026-08-31")(r),
    ),
    (
        "¿Cuántas devoluciones pidieron los clientes Business?",
        lambda r: r["plan"] == "Business" and bool(r["refund_requested_on"]),
    ),
    ("¿Qué tickets no tienen primera respuesta?", lambda r: not r["first_responded_at"]),
    (
        "¿Cuántos tickets se abrieron entre el 1 y el 15 de septiembre?",
        within("opened_at", "2026-09-01", "2026-09-15"),
    ),
    (
        "How many annual customers opened high priority tickets before June?",
        lambda r: r["billing"] == "annual" and r["priority"] == "high" and r["opened_at"] < "2026-06-01",
    ),
    ("how many tickets from ortega", lambda r: r["customer"] == "Ortega Hardware"),
    (
        "Show me all tickets of Tom except the closed ones",
        lambda r: r["assignee"] == "Tom Ashworth" and r["status"] != "closed",
    ),
    (
        "How many refunds did we get in the first quarter of 2026?",
        within("refund_requested_on", "2026-01-01", "2026-03-31"),
    ),
]


@pytest.mark.parametrize(("text", "wanted"), QUESTIONS, ids=[text for text, _ in QUESTIONS])
async def test_a_count_is_what_the_file_holds(sample: Desk, text: str, wanted: Wanted) -> None:
    expected = [row["number"] for row in SAMPLE if wanted(row)]
    answered = await answer(sample, text)
    head = answered.text.splitlines()[0]
    assert f": {len(expected)} found" in head, answered.text
    assert answered.shape == "answered", answered.text
    (table,) = (item for item in answered.used if item.kind == "table")
    assert {f"TCK-{ticket.number}" for ticket in table.tickets} <= set(expected)


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("How many open tickets does each plan have?", "plan", lambda r: r["status"] == "open"),
        ("Which assignee has the most open tickets?", "assignee", lambda r: r["status"] == "open"),
        ("How many tickets are open or pending?", "status", lambda r: r["status"] in ("open", "pending")),
        ("Which customer asked for a refund most often?", "customer", lambda r: r["refund_requested_on"]),
        (
            "How many tickets per priority in September 2026?",
            "priority",
            within("opened_at", "2026-09-01", "2026-09-30"),
        ),
    ],
)
async def test_counts_by_a_field(sample: Desk, text: str, column: str, wanted: Wanted) -> None:
    expected = Counter(row[column] for row in SAMPLE if wanted(row))
    answered = await answer(sample, text)
    for value, count in expected.items():
        assert f"- {value}: {count} " in answered.text, answered.text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("How many tickets came in outside business hours?", "outside business hours"),
        ("How many tickets from Spain are open?", "Spain"),
        ("Show me my open tickets", "my"),
    ],
)
async def test_what_was_not_used_is_said(sample: Desk, text: str, named: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape == "partial"
    assert f"not narrowed by “{named}”" in answered.text
    assert any(named in gap for gap in answered.gaps)


@pytest.mark.parametrize(
    "text",
    ["what tickets did the same customer have before?", "How many open tickets does this customer have?"],
)
async def test_a_customer_that_nobody_named_is_asked_for(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape == "clarify"
    assert "Which customer" in answered.text
    assert "found" not in answered.text


async def test_a_model_is_told_what_its_call_left_out(sample: Desk) -> None:
    text = "How many open Team tickets have no first reply?"
    result = await use(toolbox(sample, text), "find_tickets", status="open")
    assert result.text.endswith("; not used as a filter: Team, no first reply")
    full = {"status": "open", "facets": {"plan": "Team"}, "lacks": "first response"}
    result = await use(toolbox(sample, text), "find_tickets", **full)
    assert "not used" not in result.text
    assert result.items[0].text.startswith(
        "Tickets (status open, plan Team, without first response): 1 found"
    )


def test_a_table_says_its_filters_in_words() -> None:
    filters = {
        "not_status": ["closed", "resolved"],
        "facets": {"model_line": "Cargo"},
        "has": "refund request",
        "has_from": "2026-08-01",
        "opened_to": "2026-09-01",
        "count_by": "plan",
    }
    assert described(filters) == (
        "status not closed or resolved, model line Cargo, with refund request from 1 August 2026, "
        "counted by plan, opened to 1 September 2026"
    )


VELSTRAND = Path(oracle.__file__).parent
CASES = rows(VELSTRAND / "tickets.csv", delimiter=";")


@pytest.fixture(scope="module")
def velstrand(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    settings = load(VELSTRAND / "twohop.toml")
    settings = settings.model_copy(
        update={
            "data": tmp_path_factory.mktemp("velstrand"),
            "sources": settings.sources.model_copy(update={"paths": (VELSTRAND / "docs",)}),
            "tickets": settings.tickets.model_copy(update={"csv": (VELSTRAND / "tickets.csv",)}),
        }
    )
    desk = prepared(settings, embedder)
    yield desk
    desk.close()


def day(row: Row, column: str) -> date:
    return datetime.strptime(row[column][:10], "%d/%m/%Y").date()  # noqa: DTZ007


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "How many warranty claims did we get from the UK?",
            lambda r: r["market"] == "UK" and r["claimed_on"],
        ),
        ("How many cases are waiting?", lambda r: r["state"] == "waiting"),
        ("Which open cases have no warranty claim?", lambda r: r["state"] == "open" and not r["claimed_on"]),
        (
            "How many return requests were there in 2026 for Junior?",
            lambda r: (
                r["line"] == "Junior" and r["return_asked_on"] and day(r, "return_asked_on").year == 2026
            ),
        ),
        (
            "How many cases were delivered in July 2026?",
            lambda r: r["delivered_on"] and day(r, "delivered_on").strftime("%Y-%m") == "2026-07",
        ),
        ("How many cases asked to send back the bike?", lambda r: r["return_asked_on"]),
        ("How many cases from Tidewater are there?", lambda r: r["buyer"].startswith("Tidewater")),
        ("Which cases of Freja are not Cargo?", lambda r: r["handler"] == "Freja" and r["line"] != "Cargo"),
        ("How many cases opened since October 2026?", lambda r: day(r, "created") >= date(2026, 10, 1)),
    ],
)
async def test_another_company_counts_by_its_own_words(velstrand: Desk, text: str, wanted: Wanted) -> None:
    expected = [row["case_ref"] for row in CASES if wanted(row)]
    answered = await answer(velstrand, text, "2026-11-09T09:30")
    assert f": {len(expected)} found" in answered.text.splitlines()[0], answered.text
