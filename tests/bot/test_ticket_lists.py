"""Ticket lists and counts as people ask for them: denied, by a flag, by everyday words, in short forms."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from bot.config import WordSettings
from bot.filters import read
from bot.types import Gazetteer

TODAY = date(2026, 9, 26)
ALBARAN = Gazetteer(
    {"plan": ("Starter", "Team", "Business", "Enterprise"), "billing": ("annual", "monthly")},
    status=("open", "pending", "resolved", "closed"),
    priority=("low", "normal", "high", "urgent"),
    customers=("Ortega Hardware", "Atlas Coworking"),
    assignees=("Lucía Navarro", "Tom Ashworth", "Inés Cabrera"),
    actions=("refund request", "first response", "resolution", "charge"),
    synonyms=WordSettings().synonyms,
)
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
