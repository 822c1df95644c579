"""Questions typed in a hurry: known names get their capitals back, everyday words keep theirs."""

from __future__ import annotations

import pytest

from bot.spelling import respelt
from bot.types import Gazetteer

NAMES = Gazetteer(
    facets={"plan": ("Team", "Starter", "Business", "Gold Care"), "billing": ("annual", "monthly"), "region": ("EU", "US")},
    priority=("urgent", "low"),
    status=("open",),
    customers=("Casa Lluvia", "Brightwater Ltd", "Paper & Co", "Blue Heron Books", "Blue Sky", "Starter Motors"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("how long do annual team ppl have?", "how long do annual Team people have?"),
        ("refund window annual starter?", "refund window annual Starter?"),
        ("since business is billed monthly, can they", "since Business is billed monthly, can they"),
        ("are packs refundable on business", "are packs refundable on Business"),
        ("what did team cost a month", "what did Team cost a month"),
        ("first reply: team vs starter", "first reply: Team vs Starter"),
        ("does the business plan include it", "does the Business plan include it"),
        ("what do gold care customers get", "what do Gold Care customers get"),
        ("all eu customers", "all EU customers"),
        ("my team moves from starter to team", "my team moves from Starter to Team"),
    ],
)
def test_a_small_word_that_stands_as_a_value_gets_its_capital(typed: str, meant: str) -> None:
    assert respelt(typed, NAMES) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "how do I add a team member?",
        "what are our business hours",
        "within 3 business days",
        "can the business change its name",
        "we are in business for ten years",
        "my team is slow",
        "the support team answered",
        "tell us about it",
        "what about paper invoices",
        "Is the Team plan open?",
        "write to w/x.y or a.nt, prio.csv and #prio",
    ],
)
def test_everyday_words_stay_as_they_are(typed: str) -> None:
    assert respelt(typed, NAMES) == typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("casa lluvia wants her money back", "Casa Lluvia wants her money back"),
        ("is blue heron in time?", "is Blue Heron in time?"),
        ("tickets from brightwater", "tickets from Brightwater"),
        ("it is from blue", "it is from blue"),
    ],
)
def test_a_customer_is_known_by_what_only_that_name_begins_with(typed: str, meant: str) -> None:
    assert respelt(typed, NAMES) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("which tickets havent had a reply, dont list closed", "which tickets haven't had a reply, don't list closed"),
        ("whats the max size, pls", "what's the max size, please"),
        ("urgent prio tix w/o a reply", "urgent priority tickets without a reply"),
    ],
)  # fmt: skip
def test_apostrophes_and_short_forms_are_written_out(typed: str, meant: str) -> None:
    assert respelt(typed, NAMES) == meant
