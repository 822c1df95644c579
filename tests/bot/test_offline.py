"""The offline model: which filters it reads off a question, what it plans, and when it says nothing."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from bot.app import Desk
from bot.facts.deciding import Deciding
from bot.offline import MOST_CALLS, OfflineModel, plan
from bot.tools import TOOLS
from bot.types import Budget, EvidenceItem, Gazetteer, Limits, Message
from ingest.dates import Calendar
from tests.desks import answer
from tests.fakes import HashingEmbedder

NAMES = Gazetteer(
    {"plan": ("Starter", "Team", "Business", "Enterprise"), "billing": ("annual", "monthly")},
    status=("open", "pending", "resolved", "closed"),
    priority=("low", "normal", "high", "urgent"),
    customers=("Ortega Hardware", "Atlas Coworking"),
    assignees=("Lucía Navarro", "Tom Ashworth", "Inés Cabrera"),
)
TODAY = date(2026, 9, 26)


def test_a_list_is_planned_with_its_filters() -> None:
    calls = plan("How many Team tickets are open?", (), NAMES, TODAY)
    assert calls[0][0] == "find_tickets"
    assert json.loads(calls[0][1]) == {"status": "open", "facets": {"plan": "Team"}}


def test_a_comparison_is_one_search_a_value() -> None:
    calls = plan("Compare webhooks on Team and Business", (), NAMES, TODAY)
    queries = [json.loads(arguments)["query"] for name, arguments in calls if name == "search_docs"]
    assert len(queries) == 2
    assert {query.split()[0] for query in queries} == {"Team", "Business"}
    assert all("webhooks" in query for query in queries)


def test_similar_tickets_are_looked_for_by_text() -> None:
    text = "Have we seen something like a red queue before?"
    assert ("similar_tickets", json.dumps({"text": text})) in plan(text, (), NAMES, TODAY)


def test_a_plan_is_the_same_each_time_and_holds_nothing_twice() -> None:
    text = "Compare webhooks on Team and Business, and how many tickets are open?"
    first = plan(text, (), NAMES, TODAY)
    assert first == plan(text, (), NAMES, TODAY)
    assert len(first) == len(set(first)) >= 3


async def test_a_call_that_was_made_is_not_made_again() -> None:
    model = OfflineModel(Deciding(HashingEmbedder(), Calendar(ZoneInfo("UTC"))), lambda: NAMES)
    messages = [Message("user", "Compare SSO on all plans", now=datetime(2026, 9, 26, tzinfo=UTC))]
    made: list[tuple[str, str]] = []
    for _ in range(MOST_CALLS):
        reply = await model.complete(messages, tools=TOOLS, budget=Budget.start(Limits()))
        if not reply.calls:
            break
        made += [(call.name, call.arguments) for call in reply.calls]
        messages.append(Message("assistant", "", calls=reply.calls))
    assert len(made) == len(set(made)) == 4
    assert not reply.calls, "it stops by itself"


async def test_without_evidence_nothing_is_said() -> None:
    model = OfflineModel(Deciding(HashingEmbedder(), Calendar(ZoneInfo("UTC"))), lambda: NAMES)
    asked = Message("user", "How long is the refund window?", now=datetime(2026, 9, 26, tzinfo=UTC))
    reply = await model.complete([asked], budget=Budget.start(Limits()))
    assert (reply.text, reply.calls) == ("", ())


async def test_a_schema_is_answered_with_nothing() -> None:
    model = OfflineModel(Deciding(HashingEmbedder(), Calendar(ZoneInfo("UTC"))), lambda: NAMES)
    asked = Message("user", "and Business?", now=datetime(2026, 9, 26, tzinfo=UTC))
    reply = await model.complete([asked], schema={"type": "object"}, budget=Budget.start(Limits()))
    assert (reply.text, reply.calls) == ("", ())


async def shown(desk: Desk, text: str, query: str) -> str:
    """Let the offline model answer `text` from what a search for `query` finds."""
    evidence: tuple[EvidenceItem, ...] = (await answer(desk, query, mode="agent")).used
    assert evidence, "the query found something"
    asked = Message("user", text, evidence, datetime(2026, 9, 26, 12, tzinfo=desk.zone))
    return (await desk.parts.fallback.complete([asked], budget=Budget.start(Limits()))).text


async def test_an_off_topic_question_is_not_answered_from_what_is_shown(sample: Desk) -> None:
    query = "How long is the link of a full export valid?"
    assert "7 days" in await shown(sample, query, query)
    for text in (
        "How tall is the Eiffel tower?",
        "Which football club won the league in 1994?",
        "What is the best recipe for paella?",
    ):
        assert await shown(sample, text, query) == ""


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of Mongolia?",
        "Do you sell office chairs?",
        "How do I change the tyres of my car?",
        "What is the dental plan for employees?",
    ],
)
async def test_an_off_topic_question_finds_nothing(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape == "not_found", answered.text
    assert answered.citations == ()
