"""A list or count of tickets reads as a person writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.listing import described, listing
from bot.reading.lists import TicketList
from ingest.tickets import TicketPage
from ingest.types import Ticket


def ticket(number: str, **more: Any) -> Ticket:
    held = {"customer": "Ortega Hardware", "subject": "Pump drips", "status": "open", **more}
    return Ticket(number=number, opened_at=datetime(2026, 5, 3, tzinfo=UTC), **held)


def told(filters: Mapping[str, Any], page: TicketPage, **more: Any) -> tuple[str, ...]:
    return listing(TicketList(filters, **more), page, lambda number: f"TCK-{number}")


def test_a_list_of_one_customers_tickets_does_not_repeat_the_customer() -> None:
    page = TicketPage((ticket("1"), ticket("2", subject="Hose is short")), 2)
    assert told({"customer": "Ortega Hardware", "status": "open"}, page) == (
        "2 open tickets of Ortega Hardware:",
        "- TCK-1 Pump drips (open, opened 3 May 2026)",
        "- TCK-2 Hose is short (open, opened 3 May 2026)",
    )


def test_a_list_of_several_customers_names_them() -> None:
    lines = told({"status": "open"}, TicketPage((ticket("1"),), 1))
    assert lines == ("1 open ticket:", "- TCK-1 Pump drips (Ortega Hardware, open, opened 3 May 2026)")


def test_a_few_counts_stand_in_a_row_and_many_below_each_other() -> None:
    few = TicketPage((), 16, {"open": 12, "pending": 3, "": 1})
    assert told({"count_by": "status"}, few) == ("16 tickets, by status:", "open 12, pending 3, (none) 1.")
    many = TicketPage((), 30, {f"Shop {n}": 1 for n in range(30)})
    lines = told({"count_by": "customer"}, many)
    assert lines[1] == "- Shop 0 1"
    assert lines[-1] == "- and 10 more"


@pytest.mark.parametrize(
    ("filters", "total", "head"),
    [
        ({"status": "open"}, 12, "12 open tickets, the newest one:"),
        ({"order": "oldest", "limit": 1}, 12, "12 tickets, the oldest one:"),
        ({"order": "priority"}, 3, "3 tickets, the most urgent one:"),
    ],
)
def test_what_is_shown_of_more_is_said(filters: Mapping[str, Any], total: int, head: str) -> None:
    assert told(filters, TicketPage((ticket("1"),), total))[0] == head


def test_nothing_found_says_what_was_looked_for() -> None:
    assert told({"status": "open", "text": "e-4402"}, TicketPage()) == (
        "No open tickets that mention “e-4402”.",
    )


def test_what_was_not_used_and_what_was_read_loosely_stand_below() -> None:
    lines = told(
        {"status": ["New", "In progress"]},
        TicketPage((ticket("1"),), 1),
        not_understood=("outside business hours",),
        assumed=("“open”: New, In progress",),
    )
    assert lines[0] == "1 New or In progress ticket:"
    assert lines[-2:] == (
        "Read as: “open”: New, In progress.",
        "Not narrowed by “outside business hours”: no field of the tickets says so.",
    )


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"facets": {"plan": ["Team", "Business"]}, "priority": "urgent"}, "urgent priority Team or Business tickets"),
        ({"facets": {"is_vip": "true"}, "not_status": "closed"}, "vip tickets that are not closed"),
        ({"status": "open", "not_facets": {"is_vip": "true"}}, "open non-vip tickets"),
        ({"not_facets": {"plan": "Team"}, "assignee": "Tom Reed"}, "tickets assigned to Tom Reed that are not Team"),
        ({"has": "refund request", "has_from": "2026-08-01", "has_to": "2026-08-31"}, "tickets with refund request between 1 August 2026 and 31 August 2026"),
        ({"lacks": "first response", "opened_from": "2026-09-01"}, "tickets without first response opened since 1 September 2026"),
        ({"updated_to": "2026-09-01", "not_text": ["refund", '"money back"']}, "tickets updated until 1 September 2026 that do not mention “refund”"),
        ({"not_customer": "Ortega Hardware", "opened_from": "2026-09-01", "opened_to": "2026-09-01"}, "tickets not of Ortega Hardware opened on 1 September 2026"),
    ],
)  # fmt: skip
def test_filters_read_as_words(filters: Mapping[str, Any], said: str) -> None:
    assert described(filters) == said
