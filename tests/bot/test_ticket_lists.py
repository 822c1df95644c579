"""Ticket lists and counts as people ask for them: denied, by a flag, by everyday words, in short forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from bot.app import Desk
from bot.filters import read
from bot.gate import asks
from bot.types import Answer, Gazetteer, PastTurn
from ingest.errors import TwohopError
from ingest.tickets import TicketFilter
from tests.bot.test_filters import NAMES as ALBARAN
from tests.desks import answer, prepared, small_settings
from tests.fakes import HashingEmbedder

TODAY = date(2026, 9, 26)
NORDKAP = Gazetteer(
    {"tier": ("Gold", "Silver"), "is_vip": ("false", "true"), "region": ("EU", "US")},
    status=("open", "waiting", "closed"),
    priority=("low", "urgent"),
    customers=("Nordkap Outdoor", "Bela Vista"),
    assignees=("Ilse Brandt", "Tom Reed"),
    actions=("first reply", "return request", "delivery"),
)


@pytest.mark.parametrize(
    "text",
    [
        "which tickets haven't had a first reply",
        "which tickets havent had a first reply",
        "tickets that dont have a first reply",
        "which tickets havent been answered",
        "which tickets hasnt anyone answered",
        "which tickets did not get a first reply",
        "which tickets are yet to be answered",
        "tickets still to be answered",
        "tickets that need a reply",
        "list tickets without any reply so far",
        "which tickets has nobody answered",
        "which tickets has no one replied to yet",
        "list tickets where a first response was never sent",
        "list tickets whose first reply is missing",
        "tickets with zero replies",
        "tickets that we have to answer",
        "tickets that must be answered",
        "tickets we still owe an answer",
        "tickets where we failed to send a first reply",
        "tickets except those that got a first reply",
        "tickets que nadie ha contestado",
    ],
)
def test_a_denied_action_is_one_that_did_not_take_place(text: str) -> None:
    assert read(text, ALBARAN, TODAY).filters == {"lacks": "first response"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "which tickets did we never get around to giving a first reply",
            "never get around to giving a first reply",
        ),
        ("list the tickets that are not really closed", "not really closed"),
        ("list tickets without a customer reply", "without a customer reply"),
        ("tickets which hardly got a first response", "hardly got a first response"),
        ("how many tickets were not opened in March", "not opened in March"),
        ("list tickets where the first response was not great", "first response was not great"),
        (
            "which tickets did nobody bother to send a first response",
            "nobody bother to send a first response",
        ),
    ],
)
def test_a_denial_that_nobody_reads_is_never_its_opposite(text: str, left: str) -> None:
    reading = read(text, ALBARAN, TODAY)
    assert reading.filters == {}
    assert reading.left == (left,)


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("any tickets not closed or pending", {"not_status": ["pending", "closed"]}),
        ("any tickets neither open nor answered", {"not_status": "open", "lacks": "first response"}),
        (
            "how many tickets did not mention SSO in March",
            {"not_text": "SSO", "opened_from": "2026-03-01", "opened_to": "2026-03-31"},
        ),
        ("tickets opened not later than 5 March", {"opened_to": "2026-03-05"}),
        ("all tickets but the closed ones", {"not_status": "closed"}),
        ("tickets that are far from closed", {"not_status": "closed"}),
        ("list refund requests of tickets not closed", {"has": "refund request", "not_status": "closed"}),
        (
            "How many tickets that are not closed asked for a refund?",
            {"has": "refund request", "not_status": "closed"},
        ),
        ("How many tickets not about invoices are open?", {"not_text": "invoice", "status": "open"}),
    ],
)
def test_a_denial_of_something_else_denies_no_more_than_that(text: str, filters: dict[str, Any]) -> None:
    assert read(text, ALBARAN, TODAY).filters == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("How many cases were never answered?", {"lacks": "first reply"}),
        ("Which cases did Ilse not answer?", {"lacks": "first reply", "assignee": "Ilse Brandt"}),
        ("How many cases have no first response?", {"lacks": "first reply"}),
        ("How many unanswered cases are there?", {"lacks": "first reply"}),
        (
            "How many cases did we answer in March?",
            {"has": "first reply", "has_from": "2026-03-01", "has_to": "2026-03-31"},
        ),
    ],
)
def test_a_reply_an_answer_and_a_response_are_one_action(text: str, filters: dict[str, Any]) -> None:
    assert read(text, NORDKAP, TODAY).filters == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        (
            "Which cases claimed in March?",
            {"has": "warranty claim", "has_from": "2026-03-01", "has_to": "2026-03-31"},
        ),
        ("Which cases have not claimed?", {"lacks": "warranty claim"}),
        ("Which cases requested a feature?", {}),
    ],
)
def test_an_action_is_told_by_its_verb_alone_where_only_one_has_it(
    text: str, filters: dict[str, Any]
) -> None:
    names = replace(NORDKAP, actions=("warranty claim", "return request", "delivery"))
    assert read(text, names, TODAY).filters == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("How many VIP cases are open?", {"facets": {"is_vip": "true"}, "status": "open"}),
        ("How many non-VIP cases are open?", {"not_facets": {"is_vip": "true"}, "status": "open"}),
        ("How many cases are not VIP?", {"not_facets": {"is_vip": "true"}}),
        ("How many cases with vip: no are there?", {"not_facets": {"is_vip": "true"}}),
        ("How many cases have no first reply?", {"lacks": "first reply"}),
    ],
)
def test_a_facet_of_true_and_false_is_said_by_its_name(text: str, filters: dict[str, Any]) -> None:
    assert read(text, NORDKAP, TODAY).filters == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("list urgent prio tickets", {"priority": "urgent"}),
        ("list gold tier cases", {"facets": {"tier": "Gold"}}),
    ],
)
def test_a_fields_name_beside_its_value_is_no_word_to_look_for(text: str, filters: dict[str, Any]) -> None:
    assert read(text, NORDKAP, TODAY).filters == filters


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A small desk: six cases of three customers, whose numbers have two digits."""
    columns = "number customer tier is_vip status priority subject opened_at delivered_on first_reply_on"
    rows = [
        "71,Nordkap Outdoor,Gold,true,open,urgent,Machine drips,2026-03-02,2026-02-10,2026-03-03",
        "72,Nordkap Outdoor,Gold,true,closed,low,Grinder shows E-4402,2026-03-20,2026-02-10,",
        "73,Nordkap Outdoor,Silver,false,open,low,Wrong lid,2026-04-01,2026-03-10,2026-04-02",
        "74,Bela Vista,Silver,false,closed,urgent,Lamp is out,2026-05-05,2026-04-10,",
        "75,Bela Vista,Silver,true,open,urgent,Pump shows E-4402,2026-06-06,2026-05-10,2026-06-08",
        "76,Quill and Co,Gold,false,open,urgent,Hose is short,2026-07-07,2026-06-10,",
    ]
    named = [dict(zip(columns.split(), row.split(","), strict=True)) for row in rows]
    texts = {
        "terms.md": "# Gold terms\n\nA Gold customer may return the machine within 30 days of delivery.\n"
    }
    settings = small_settings(tmp_path_factory.mktemp("lists"), texts, named)
    tickets = settings.tickets.model_copy(
        update={
            "prefixes": ("C-",),
            "number_pattern": r"\d{1,6}",
            "facets": {"tier": "tier", "is_vip": "is_vip"},
            "events": {"delivery": "delivered_on"},
            "actions": {"first reply": "first_reply_on"},
        }
    )
    made = prepared(settings.model_copy(update={"tickets": tickets}), HashingEmbedder())
    yield made
    made.close()


async def head(desk: Desk, text: str, *history: PastTurn) -> str:
    """Return the first line of the answer, which is what people read."""
    return (await answer(desk, text, history=history)).text.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("How many cases were never answered?", "Tickets (without first reply): 3 found [1]"),
        ("How many non-VIP cases are open?", "Tickets (status open, is vip not true): 2 found [1]"),
        (
            "How many cases were closed in March?",
            "Tickets (status closed; not narrowed by “between 1 March 2026 and 31 March 2026”): 2 found [1]",
        ),
        (
            "Which customers have more than one case?",
            "Tickets (counted by customer, at least 2 each): 5 found, 2 customers [1]",
        ),
        (
            "How many open zebra cases are there?",
            "Tickets (status open): 0 found with “zebra” in their text; 4 without that condition [1]",
        ),
        (
            "Who did we answer late in April?",
            "Tickets (with first reply from 1 April 2026 to 30 April 2026; not narrowed by “late”, which a rule decides case by case): "
            "1 found [1]",
        ),
        (
            "list opend cases",
            "Tickets (all): 0 found with “opend” in their text; 6 without that condition (a value like it is “open”) [1]",
        ),
        (
            "Which customers have exactly one case?",
            "Tickets (counted by customer, exactly 1 each): 1 found, 1 customer [1]",
        ),
        (
            "Which Silver cases missed the SLA?",
            "Tickets (tier Silver; not narrowed by “missed the SLA”, which a rule decides case by case): 3 found [1]",
        ),
    ],
)
async def test_the_first_line_says_what_its_number_counts(desk: Desk, text: str, first: str) -> None:
    assert await head(desk, text) == first


async def test_only_values_with_so_many_tickets_are_counted(desk: Desk) -> None:
    answered = await answer(desk, "Which customers have more than one case?")
    assert "- Nordkap Outdoor: 3 [1]\n- Bela Vista: 2 [1]" in answered.text
    assert "Quill" not in answered.text
    assert answered.shape == "answered"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("first response for urgent tickets: Team vs Enterprise", {"compare"}),
        ("How fast must we answer urgent tickets on Team?", {"rule"}),
        ("How many business hours do we have to answer urgent tickets on Team?", {"rule"}),
        ("What is the deadline for open cases?", {"rule", "field"}),
        ("who has had ALB-4402?", {"aggregate"}),
        ("who else ran into it", {"similar"}),
        ("has anyone reported ALB-4402", {"aggregate"}),
        ("Did anybody else report the problem of TCK-4849?", {"similar"}),
        ("When was the machine on case 77 delivered?", {"field"}),
        (
            "cases where a return was requested in March 2026 by Gold customers in the EU",
            {"aggregate"},
        ),
        ("Are there any cases in which a refund is refused?", {"rule"}),
        ("Do customers with at least 10 seats in total get a discount?", set()),
        ("tickets sin respuesta", {"aggregate"}),
        ("Find past tickets similar to 4848", {"similar"}),
        ("similar cases to 4848?", {"similar"}),
        ("which customers never asked for a refund", {"aggregate"}),
        ("who has handled the most cases", {"aggregate"}),
        ("customers on team in total", {"aggregate"}),
        ("how many urgent ones since may", {"aggregate"}),
        ("who did we answer in March?", {"aggregate"}),
    ],
)
def test_a_list_is_told_from_a_rule_about_tickets(text: str, wanted: set[str]) -> None:
    assert asks(text) == wanted


async def thread(desk: Desk, *asked: str) -> list[Answer]:
    """Ask the questions one after the other in one thread."""
    history: list[PastTurn] = []
    answers = []
    for n, text in enumerate(asked):
        answered = await answer(desk, text, history=tuple(history))
        numbers = tuple(dict.fromkeys(item.ticket.number for item in answered.used if item.ticket))
        said = PastTurn(str(n), text, answered.standalone, answered.text, answered.shape, "", numbers, ())
        history.append(said)
        answers.append(answered)
    return answers


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (
            ("list open cases", "only the urgent ones", "and which of them are Gold?"),
            "Tickets (status open, priority urgent, tier Gold): 2 found [1]",
        ),
        (
            ("how many cases are open", "just those from Bela Vista"),
            "Tickets (customer Bela Vista, status open): 1 found [1]",
        ),
        (
            ("list open cases", "only the closed ones"),
            "Tickets (status closed): 2 found [1]",
        ),
        (
            ("how many cases did Nordkap open", "and Bela?"),
            "Tickets (customer Bela Vista): 2 found [1]",
        ),
        (
            ("How many VIP cases are open?", "and non-VIP?"),
            "Tickets (status open, is vip not true): 2 found [1]",
        ),
        (
            ("How many urgent cases are there?", "and which of them have no first reply?"),
            "Tickets (priority urgent, without first reply): 2 found [1]",
        ),
        (
            ("how many urgent cases since May", "and since July?"),
            "Tickets (priority urgent, opened from 1 July 2026 to 26 September 2026): 1 found [1]",
        ),
    ],
)
async def test_a_follow_up_narrows_the_list_before_it(desk: Desk, asked: Sequence[str], first: str) -> None:
    *_, last = await thread(desk, *asked)
    assert last.text.splitlines()[0] == first


async def test_the_list_before_is_sorted(desk: Desk) -> None:
    _, last = await thread(desk, "list open cases", "sort them by priority")
    first, *others = [line for line in last.text.splitlines() if line.startswith("- C-")]
    assert "| urgent |" in first
    assert "C-73" in others[-1]


async def test_the_one_before_the_latest_is_the_second(desk: Desk) -> None:
    latest, before, third = await thread(desk, "latest case", "the one before?", "and the one before that?")
    assert "C-76" in latest.text
    assert "C-75" not in latest.text
    assert "C-75" in before.text
    assert "C-74" not in before.text
    assert "C-74" in third.text


@pytest.mark.parametrize(
    "text", ["and the one on case 73?", "What about case 73?", "and #73?", "and 73?", "and case c-73?"]
)
async def test_another_ticket_is_asked_the_same_however_short_its_number(desk: Desk, text: str) -> None:
    asked = "Is the customer on case 72 entitled to return the machine?"
    *_, last = await thread(desk, asked, text)
    assert last.standalone == "Is the customer on case C-73 entitled to return the machine?"


async def test_and_of_another_ticket_asks_what_was_asked_last(desk: Desk) -> None:
    entitled = "Is the customer on case 72 entitled to return the machine?"
    *_, last = await thread(desk, entitled, "What is the status of case 72?", "and of case 73?")
    assert last.standalone == "What is the status of case C-73?"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("When was the machine on case 73 delivered?", "Ticket C-73: Wrong lid. Delivery: 10 March 2026 [1]"),
        ("When was case 73 answered?", "Ticket C-73: Wrong lid. First reply: 2 April 2026 [1]"),
        ("When did we first respond on case 73?", "Ticket C-73: Wrong lid. First reply: 2 April 2026 [1]"),
    ],
)
async def test_when_something_took_place_is_read_off_the_ticket(desk: Desk, text: str, told: str) -> None:
    assert await head(desk, text) == told


async def test_customers_in_total_are_counted(desk: Desk) -> None:
    told = "Tickets (tier Gold, counted by customer): 3 found, 2 customers [1]"
    assert await head(desk, "customers on gold in total") == told


@pytest.mark.parametrize("text", ["who has had E-4402?", "who else ran into E-4402?"])
async def test_who_met_a_code_is_whose_tickets_name_it(desk: Desk, text: str) -> None:
    assert await head(desk, text) == "Tickets (text e-4402): 2 found [1]"


async def test_a_list_and_some_of_it_are_two_lists(desk: Desk) -> None:
    answered = await answer(desk, "how many urgent ones since may, and which are still open?")
    heads = [line for line in answered.text.splitlines() if line.startswith("Tickets")]
    assert heads == [
        "Tickets (priority urgent, opened from 1 May 2026 to 26 September 2026): 3 found [1]",
        "Tickets (status open, priority urgent, opened from 1 May 2026 to 26 September 2026): 2 found [2]",
    ]
    assert answered.shape == "answered"
    assert answered.verdict is None


async def test_a_count_of_many_values_shows_the_commonest(tmp_path: Path) -> None:
    rows = [
        {"number": f"{1000 + n}", "customer": f"Shop {n}", "subject": "Lid", "opened_at": "2026-03-02"}
        for n in (*range(53), 7)
    ]
    rows = [{**row, "number": f"{2000 + n}"} for n, row in enumerate(rows)]
    made = prepared(
        small_settings(tmp_path, {"faq.md": "# Lids\n\nLids are free.\n"}, rows), HashingEmbedder()
    )
    answered = await answer(made, "How many tickets per customer are there?")
    lines = answered.text.splitlines()
    assert lines[0] == "Tickets (counted by customer): 54 found, 53 customers [1]"
    assert lines[1] == "- Shop 7: 2 [1]"
    assert "- and 3 more values [1]" in lines
    made.close()


def test_a_number_of_tickets_needs_a_field_to_count_by() -> None:
    with pytest.raises(TwohopError, match="name it under count_by"):
        TicketFilter(at_least=2)
