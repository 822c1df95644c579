"""Questions over many tickets: what the words state is filtered by, and what no filter can say is named."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from bot.config import WordSettings
from bot.filters import read
from bot.filters.days import spans
from bot.types import Gazetteer
from tests.bot.test_second_company import velstrand  # noqa: F401 (a fixture)

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
            "Which customers on annual billing have open tickets?",
            {"status": "open", "facets": {"billing": "annual"}, "count_by": "customer"},
        ),
        ("Tickets of Ortega Hardware", {"customer": "Ortega Hardware"}),
        ("Tickets that mention ALB-1207", {"text": "alb-1207"}),
        ('Any tickets about "Mac version"?', {"text": "Mac version"}),
        ("Which tickets are about webhooks?", {"text": "webhook"}),
        ("What is the oldest open ticket?", {"status": "open", "order": "oldest"}),
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
        ("How many tickets does each assignee have by status?", ("by status",)),
        ("Which customers have more than two tickets?", ("more than two",)),
        ("How many tickets were closed last week by phone?", ("phone",)),
        ("How many tickets in June and in August?", ("in August",)),
        ("How many tickets are open? And what does the Team plan cost?", ()),
        ("We met Ortega Hardware in Lisbon. How many open tickets do they have?", ()),
        ("What is the refund window of the Team plan?", ()),
    ],
)
def test_words_that_no_filter_can_say_are_named(text: str, left: tuple[str, ...]) -> None:
    assert read(text, NAMES, TODAY).left == left
