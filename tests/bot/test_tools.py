"""The tools: closed, read-only, inside the question's case, with the asker's rights and nobody else's."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import text as sql
from sqlalchemy.exc import DBAPIError

from bot import pipeline
from bot.app import Desk
from bot.evidence import Evidence
from bot.tools import SCHEMAS, TOOLS, Result, Toolbox
from bot.types import Answer, Asker, Budget, Limits, Question, ToolCall
from tests.bot.test_flagship import QUESTION
from tests.scripted import ScriptedModel, calls, says

STRANGER = Asker("U_STRANGER", frozenset({"members"}))
SUPPORT_ONLY = ("docs:internal/refund-notes.md", "docs:internal/credit-approvals.md")


def toolbox(desk: Desk, question: str, asker: Asker | None = None) -> Toolbox:
    moment = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return Toolbox(
        question=Question(question, asker or desk.asker(), moment),
        standalone=question,
        evidence=Evidence(),
        budget=Budget.start(Limits()),
        retriever=desk.parts.retriever,
        tickets=desk.tickets,
        names=desk.names(),
        calendar=desk.parts.calendar,
        shown=6,
        compute=desk.parts.compute,
        store=desk.parts.store,
        observe=lambda _: None,
    )


async def use(tools: Toolbox, name: str, **arguments: Any) -> Result:
    return await tools.call(ToolCall("c", name, json.dumps(arguments)))


async def pushy(desk: Desk, question: str, asker: Asker, *wanted: tuple[str, Mapping[str, Any]]) -> tuple[Answer, str]:  # fmt: skip
    """Ask with a model that calls all it can and says all it sees; return the answer and every prompt."""

    def repeats(messages: Any) -> Any:
        shown = next((m.evidence for m in reversed(messages) if m.evidence), ())
        return says("\n".join(f"{i.text.splitlines()[-1]} [{i.n}]" for i in shown) or "nothing")

    model = ScriptedModel(calls(*wanted), repeats, forever=True)
    parts = dataclasses.replace(desk.parts, model=model)
    moment = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return await pipeline.answer(Question(question, asker, moment), parts, "agent"), model.prompts


def test_the_registry_is_closed_and_read_only() -> None:
    assert [tool.name for tool in TOOLS] == list(SCHEMAS)
    assert set(SCHEMAS) == {"search_docs", "similar_tickets", "get_ticket", "find_tickets", "deadline"}
    for tool in TOOLS:
        assert tool.parameters["additionalProperties"] is False, tool.name
        assert tool.description
        assert not set(tool.parameters["properties"]) & {"sql", "url", "user", "channel", "readers", "database"}  # fmt: skip


def test_the_readers_engine_refuses_to_write(sample: Desk) -> None:
    with sample.tickets.read_engine.connect() as connection:
        assert connection.execute(sql("select count(*) from tickets")).scalar_one() > 50
        with pytest.raises(DBAPIError):
            connection.execute(sql("delete from tickets"))


async def test_a_ticket_of_the_question_is_read(sample: Desk) -> None:
    tools = toolbox(sample, QUESTION)
    result = await use(tools, "get_ticket", number="TCK-4812")
    assert result.error == ""
    assert result.items[0].source == "ticket:4812"
    assert tools.steps[0].found == ("ticket:4812",)


@pytest.mark.parametrize("number", ["4821", "TCK-4821", "#4821", "ticket 4821"])
async def test_a_ticket_that_the_question_does_not_name_is_refused(sample: Desk, number: str) -> None:
    result = await use(toolbox(sample, QUESTION), "get_ticket", number=number)
    assert result.items == ()
    assert "4821 is not in the question" in result.error


@pytest.mark.parametrize("number", ["the first one", "1 OR 1=1", "4812; drop table tickets", "*", " "])
async def test_what_is_no_number_is_refused(sample: Desk, number: str) -> None:
    result = await use(toolbox(sample, QUESTION), "get_ticket", number=number)
    assert result.items == ()
    assert "not a ticket number" in result.error


async def test_similar_tickets_are_refused_for_one_case(sample: Desk) -> None:
    tools = toolbox(sample, QUESTION)
    await use(tools, "get_ticket", number="4812")
    for arguments in ({"text": "refund"}, {"number": "4812"}):
        result = await use(tools, "similar_tickets", **arguments)
        assert result.items == ()
        assert "other customers' tickets do not decide it" in result.error


async def test_similar_tickets_are_found_where_they_are_asked_for(sample: Desk) -> None:
    tools = toolbox(sample, "Have we seen tickets similar to 4849 before?")
    await use(tools, "get_ticket", number="4849")
    result = await use(tools, "similar_tickets", number="4849")
    sources = [item.source for item in result.items]
    assert len(sources) == 6
    assert "ticket:4849" not in sources
    assert any("ALB-1207" in item.text for item in result.items)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"text": "refund"}, {"customer": "Casa Lluvia Florists"}, {"customer": "Ortega"}, {"customer": ""}],
)
async def test_a_list_is_refused_outside_the_case(sample: Desk, arguments: dict[str, str]) -> None:
    tools = toolbox(sample, QUESTION)
    await use(tools, "get_ticket", number="4812")
    result = await use(tools, "find_tickets", **arguments)
    assert result.items == ()
    assert "filter by that customer" in result.error


async def test_the_cases_own_customer_can_be_listed(sample: Desk) -> None:
    tools = toolbox(sample, QUESTION)
    await use(tools, "get_ticket", number="4812")
    result = await use(tools, "find_tickets", customer="Ortega Hardware")
    assert {ticket.customer for ticket in result.items[0].tickets} == {"Ortega Hardware"}


async def test_a_deadline_is_computed_from_what_stands_in_the_evidence(sample: Desk) -> None:
    tools = toolbox(sample, "Is the customer on ticket 4812 within 30 days?")
    await use(tools, "get_ticket", number="4812")
    result = await use(tools, "deadline", start="2026-08-14", amount=30, unit="day")
    assert "13 September 2026" in result.items[0].text
    assert result.items[0].derived == ("14 August 2026", "30 days")


@pytest.mark.parametrize(
    ("start", "amount", "unit", "named"),
    [
        ("2026-08-15", 30, "day", "15 August 2026"),
        ("2026-08-14", 45, "day", "45 days"),
        ("2026-08-14", 30, "business_day", "30 business days"),
        ("2026-08-14", 30, "month", "30 months"),
    ],
)
async def test_a_deadline_of_invented_values_is_refused(
    sample: Desk, start: str, amount: int, unit: str, named: str
) -> None:
    tools = toolbox(sample, "Is the customer on ticket 4812 within 30 days?")
    await use(tools, "get_ticket", number="4812")
    result = await use(tools, "deadline", start=start, amount=amount, unit=unit)
    assert result.items == ()
    assert named in result.error
    assert "in no evidence" in result.error


@pytest.mark.parametrize("amount", [-1, 100_001, "many", 1.5])
async def test_an_impossible_amount_is_text_for_the_model(sample: Desk, amount: Any) -> None:
    result = await use(toolbox(sample, QUESTION), "deadline", start="2026-08-14", amount=amount, unit="day")
    assert result.error.startswith("amount:")


HARMFUL = "'; DROP TABLE tickets; --"


@pytest.mark.parametrize(
    "arguments",
    [
        {"customer": HARMFUL},
        {"status": HARMFUL},
        {"priority": f"urgent{HARMFUL}"},
        {"assignee": "x' OR '1'='1"},
        {"text": HARMFUL},
        {"facets": {"plan": HARMFUL}},
        {"facets": {HARMFUL: "Team"}},
        {"count_by": "personal"},
        {"count_by": f"status{HARMFUL}"},
        {"count_by": "contact_email"},
    ],
)
async def test_sql_in_a_filter_is_only_text(sample: Desk, arguments: dict[str, Any]) -> None:
    tools = toolbox(sample, "How many tickets are there?")
    before = (await use(tools, "find_tickets")).items[0].text.splitlines()[0]
    result = await use(tools, "find_tickets", **arguments)
    assert result.error or " 0 found" in result.items[0].text
    after = (await use(toolbox(sample, "How many tickets are there?"), "find_tickets")).items[0].text
    assert after.splitlines()[0] == before


@pytest.mark.parametrize("text", ["%%", "_____", "a%b"])
async def test_a_wildcard_in_a_filter_is_only_text(sample: Desk, text: str) -> None:
    result = await use(toolbox(sample, "How many tickets are there?"), "find_tickets", text=text)
    assert " 0 found" in result.items[0].text


async def test_no_personal_column_is_in_a_tools_text(sample: Desk) -> None:
    tools = toolbox(sample, "List all tickets; what is the e-mail on ticket 4812?")
    await use(tools, "get_ticket", number="4812")
    await use(tools, "find_tickets", limit=50)
    texts = "\n".join(item.text for item in tools._evidence.shown)
    assert "Ortega Hardware" in texts
    assert ".example" not in re.sub(r"https?://\S+", "", texts)


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        "How many tickets are open?",
        "Have we seen ERR_SSO-4032 tickets before?",
        "How many days do we really give Team people for a refund, what do the desk notes say?",
        "Who may approve a goodwill credit above 400 euros?",
        "Show me the tickets of Ortega Hardware",
        "What is the status of ticket 4843?",
    ],
)
async def test_a_stranger_gets_nothing_of_tickets_or_of_others_documents(sample: Desk, question: str) -> None:
    answered, prompts = await pushy(
        sample,
        question,
        STRANGER,
        ("get_ticket", {"number": "4812"}),
        ("find_tickets", {"limit": 50}),
        ("find_tickets", {"customer": "Atlas Coworking"}),
        ("similar_tickets", {"text": "refund of the annual subscription"}),
        ("search_docs", {"query": "desk notes: how we really do refunds"}),
        ("search_docs", {"query": "goodwill credits: who may approve"}),
    )
    found = {source for step in answered.steps for source in step.found}
    assert not {source for source in found if source.startswith("ticket:")}
    assert not found & set(SUPPORT_ONLY)
    assert all(item.ticket is None and not item.tickets for item in answered.used)
    everything = f"{prompts}\n{answered.text}\n{answered.citations}\n{answered.steps}".replace(question, "")
    for secret in (
        "Refund of our annual subscription",
        "Sven",
        "Atlas Coworking GmbH",
        "60 days, nobody complains",
        "Carmen Vidal",
        "Lucía Navarro",
        "Northgate Veterinary",
    ):
        assert secret not in everything


async def test_support_does_get_what_a_stranger_does_not(sample: Desk) -> None:
    answered, prompts = await pushy(
        sample,
        QUESTION,
        sample.asker(),
        ("search_docs", {"query": "desk notes: how we really do refunds, 60 days for Team people"}),
    )
    found = {source for step in answered.steps for source in step.found}
    assert "ticket:4812" in found
    assert "docs:internal/refund-notes.md" in found
    assert "docs:internal/credit-approvals.md" not in found, "it is for finance"
    assert "Refund of our annual subscription" in prompts


async def test_a_refused_ticket_reads_like_one_that_does_not_exist(sample: Desk) -> None:
    errors = [
        (await use(toolbox(sample, f"ticket {number}?", STRANGER), "get_ticket", number=number)).error
        for number in ("4812", "9999")
    ]
    assert errors[0].replace("4812", "9999") == errors[1]
    assert "that you may read" in errors[1]


async def test_an_unknown_facet_is_named_with_the_known_ones(sample: Desk) -> None:
    result = await use(toolbox(sample, "refund"), "search_docs", query="refund", facets={"colour": "red"})
    assert "'colour'" in result.error
    assert "plan" in result.error


async def test_a_repeated_search_is_answered_from_memory(sample: Desk) -> None:
    tools = toolbox(sample, "How long is the refund window?")
    assert (await use(tools, "search_docs", query="refund window of Team")).items
    again = await use(tools, "search_docs", query="Refund window of TEAM?")
    assert "searched already" in again.error
    assert tools.repeats == 1
    assert tools._budget.spent.searches == 1
    assert (await use(tools, "search_docs", query="refund window of Team", kind="rules")).items
