"""Follow-ups made standalone: by rule from the thread, by a model only where it adds nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from bot.app import Desk
from bot.rewrite import SCHEMA, absolute, adds, condensed, follow_up, standalone
from bot.types import Asker, Budget, Gazetteer, Limits, PastTurn, Question, Reply
from ingest.errors import ModelError
from ingest.tickets.numbers import Numbers
from tests.desks import answer
from tests.scripted import ScriptedModel, says

NAMES = Gazetteer(
    {"plan": ("Starter", "Team", "Business", "Enterprise"), "billing": ("annual", "monthly")},
    status=("open", "closed"),
    priority=("low", "normal", "high", "urgent"),
    customers=("Ortega Hardware", "Casa Lluvia Florists"),
    assignees=("Lucía Navarro",),
)
NUMBERS = Numbers(("TCK-",), r"\d{3,7}")
FLAGSHIP = "Is the customer on ticket 4812 entitled to a refund?"
ANSWER = "Yes. Ortega Hardware is on Team, billed annually: 30 days, until 13 September 2026 [1][2]."
TURN = PastTurn(
    "a1", FLAGSHIP, FLAGSHIP, ANSWER, "answered", tickets=("4812",), customers=("Ortega Hardware",)
)
WINDOW = PastTurn("b1", "What is the refund window for Team?", "What is the refund window for Team?", "30 days.", "answered")  # fmt: skip


async def rewritten(
    text: str, *history: PastTurn, model: ScriptedModel | None = None, now: str = "2026-09-26T10:00"
) -> str:
    moment = datetime.fromisoformat(now).replace(tzinfo=ZoneInfo("Europe/Madrid"))
    question = Question(text, Asker("u", frozenset({"members", "support"})), moment, history)
    model = model or ScriptedModel(says(""), forever=True)
    text, _ = await standalone(question, model, Budget.start(Limits()), NAMES, "TCK-", NUMBERS.mentioned)
    return text


async def test_a_first_question_calls_no_model() -> None:
    model = ScriptedModel()
    assert await rewritten(FLAGSHIP, model=model) == FLAGSHIP
    assert model.requests == []


async def test_a_follow_up_calls_the_model_once_without_tools() -> None:
    model = ScriptedModel(says(""))
    await rewritten("and 4821?", TURN, model=model)
    model.done()
    ((messages, tools),) = model.requests
    assert tools == ()
    assert FLAGSHIP in messages[-1].text
    assert messages[-1].text.endswith("Q: and 4821?\nToday is 26 September 2026.")


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("what about the one the same shop opened yesterday?", ("Ortega Hardware", "25 September 2026")),
        ("Which other tickets does the same customer have?", ("Ortega Hardware",)),
        ("and 4821?", ("entitled to a refund", "TCK-4821")),
        ("what about #4821?", ("entitled to a refund", "TCK-4821")),
        ("who is assigned to it?", ("who is assigned", "TCK-4812")),
        ("What is the status of that ticket?", ("status", "TCK-4812")),
        ("When were they charged?", ("When were Ortega Hardware charged", "TCK-4812")),
        ("¿y el mismo cliente qué más abrió?", ("Ortega Hardware",)),
    ],
)
async def test_a_reference_is_filled_from_the_thread(text: str, needed: tuple[str, ...]) -> None:
    made = await rewritten(text, TURN)
    for part in needed:
        assert part in made


async def test_another_ticket_replaces_the_first() -> None:
    assert "4812" not in await rewritten("and 4821?", TURN)


async def test_a_number_of_any_form_replaces_the_first() -> None:
    first, second = "3f2b8c1a-0d4e-4f6a-9b7c-1a2b3c4d5e6f", "7d9e0f1a-2b3c-4d5e-8f6a-7b8c9d0e1f2a"
    mentioned = Numbers((), r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").mentioned
    asked = f"Is the customer on ticket {first} entitled to a refund?"
    past = PastTurn("a1", asked, asked, "Yes.", "answered", tickets=(first.upper(),))
    made = follow_up(f"and {second}?", [past], NAMES, "#", mentioned, date(2026, 9, 26))
    assert made == f"Is the customer on ticket #{second.upper()} entitled to a refund?"


async def test_another_value_replaces_the_first() -> None:
    made = await rewritten("what about Business?", WINDOW)
    assert made == "What is the refund window for Business?"


async def test_a_complete_question_stays_as_it_is() -> None:
    text = "Which documents describe the retention of audit logs?"
    assert await rewritten(text, TURN) == text


async def test_a_named_customer_is_not_replaced() -> None:
    text = "Which tickets did Casa Lluvia Florists open, and is the shop on Starter?"
    assert "Ortega" not in await rewritten(text, TURN)


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-09-26T00:05", "25 September 2026"),
        ("2026-03-01T23:55", "28 February 2026"),
        ("2026-01-01T12:00", "31 December 2025"),
    ],
)
async def test_yesterday_is_a_date_of_the_desks_clock(now: str, day: str) -> None:
    made = await rewritten("Which tickets were opened yesterday?", now=now)
    assert made == f"Which tickets were opened on {day}?"


def test_on_and_relative_dates_do_not_double() -> None:
    moment = datetime(2026, 9, 26, 10, tzinfo=ZoneInfo("Europe/Madrid"))
    made = absolute(Question("What came in last week?", Asker("u", frozenset()), moment))
    assert "between 14 September 2026 and 20 September 2026" in made
    assert "in between" not in made


async def test_a_good_proposal_is_used() -> None:
    good = "Is the customer on ticket 4812, Ortega Hardware, still on Team?"
    model = ScriptedModel(says(json.dumps({"question": f" {good} "})))
    assert await rewritten("are they still on Team?", TURN, model=model) == good
    model.done()


@pytest.mark.parametrize(
    "proposal",
    [
        "Is Casa Lluvia Florists entitled to a refund?",
        "Is the customer on ticket 4821 entitled to a refund?",
        "Is Ortega Hardware entitled to a refund until 28 August 2026?",
        "Is Ortega Hardware entitled to a refund within 45 days?",
        "Does ERR_SSO-4032 affect Ortega Hardware?",
        "Will Ortega Hardware get €500 back?",
    ],
)
async def test_a_proposal_that_adds_something_is_not_used(proposal: str) -> None:
    model = ScriptedModel(says(json.dumps({"question": proposal})))
    made = await rewritten("is it still open?", TURN, model=model)
    assert made == "is ticket TCK-4812 still open?"


@pytest.mark.parametrize(
    "raw",
    [
        "no JSON",
        "{",
        "[]",
        "7",
        "null",
        '"text"',
        "{}",
        '{"question": 7}',
        '{"question": null}',
        '{"question": "  "}',
        '{"query": "x"}',
        "",
    ],
)
async def test_a_malformed_proposal_is_not_used(raw: str) -> None:
    made = await rewritten("is it still open?", TURN, model=ScriptedModel(says(raw)))
    assert made == "is ticket TCK-4812 still open?"


async def test_a_model_that_fails_leaves_the_rule() -> None:
    def fails(_: object) -> Reply:
        raise ModelError("no connection")

    assert "TCK-4821" in await rewritten("and 4821?", TURN, model=ScriptedModel(fails))


@pytest.mark.parametrize(
    ("proposal", "added"),
    [
        ("Is Ortega Hardware on Team?", ""),
        ("What of ticket #4812?", ""),
        ("Is it 12 days?", "12 days"),
        ("Is Bodegas on it?", "Bodegas"),
        ("Did Ortega call Bodegas?", "Bodegas"),
    ],
)
def test_what_a_proposal_adds_is_named(proposal: str, added: str) -> None:
    assert adds(proposal, f"{FLAGSHIP} {ANSWER}") == added


def test_the_schema_asks_for_one_question() -> None:
    properties = SCHEMA["properties"]
    assert isinstance(properties, Mapping)
    assert list(properties) == SCHEMA["required"] == ["question"]


def test_a_pasted_log_is_cut_to_what_a_search_can_use() -> None:
    lines = [f"2026-09-26T10:{i % 60:02d}:00 worker-{i} retry of batch {i} ended" for i in range(900)]
    lines[500] = "2026-09-26T10:11:00 worker-7 ALB-1207: the number would leave a gap"
    cut = condensed("What does this mean?\n" + "\n".join([*lines, "ALB-1207", "ALB-1207"]))
    assert len(cut) < 2500
    assert cut.startswith("What does this mean?")
    assert "ALB-1207" in cut
    assert condensed("What does ALB-1207 mean?") == "What does ALB-1207 mean?"


@pytest.mark.parametrize(
    "text",
    ["And if they were on the Business plan?", "And on the Business plan?", "what about the business terms?"],
)
async def test_a_plans_name_is_no_word_for_the_customer(text: str) -> None:
    made = await rewritten(text, TURN)
    assert made == "Is the customer on ticket 4812 entitled to a refund if it were Business?"


async def test_a_question_about_the_customer_stays_on_the_ticket() -> None:
    made = await rewritten("When did the customer ask?", TURN)
    assert made == "When did Ortega Hardware ask? (ticket TCK-4812)"
    made = await rewritten("Which tickets did the customer open?", TURN)
    assert "TCK-4812" not in made


@pytest.mark.parametrize("text", ["And if they were on the Business plan?", "what about the business terms?"])
async def test_a_plan_supposed_in_a_thread_is_what_the_rule_is_about(sample: Desk, text: str) -> None:
    answered = await answer(sample, text, history=(TURN,))
    assert "Supposing plan Business instead of Team: Yes." in answered.text
    assert "45 days" in answered.text
    assert "28 September 2026" in answered.text


async def test_when_the_customer_asked_is_read_off_the_threads_ticket(sample: Desk) -> None:
    answered = await answer(sample, "When did the customer ask?", history=(TURN,))
    assert "2 September 2026" in answered.text
    assert {citation.source for citation in answered.citations} == {"ticket:4812"}
