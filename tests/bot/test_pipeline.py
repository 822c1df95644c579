"""The whole flow through the front door: shapes of answers, routes, failing models, and what a prompt may hold."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

import bot
from bot import pipeline
from bot.app import Desk
from bot.offline import NOTE
from bot.types import Answer, Message, Mode, Question, Reply, Step
from ingest.errors import ModelError
from tests.bot.test_flagship import QUESTION, right
from tests.desks import answer
from tests.scripted import ScriptedModel, calls, says

EXPORT = "How long is the link of a full export valid?"


async def posed(desk: Desk, text: str, model: ScriptedModel, mode: Mode = "gated", **more: Any) -> Answer:
    parts = dataclasses.replace(desk.parts, model=model, **more)
    moment = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return await pipeline.answer(Question(text, desk.asker(), moment), parts, mode)


def fails(_: object) -> NoReturn:
    raise ModelError("the connection to 10.1.2.3 was refused")


async def test_an_unknown_ticket_is_named_with_whom_to_ask(sample: Desk) -> None:
    answered = await answer(sample, "Is the customer on ticket 9999 entitled to a refund?")
    assert answered.shape == "not_found"
    assert "TCK-9999" in answered.text
    assert answered.verdict is None
    assert answered.citations == ()
    assert f"Please ask {sample.parts.words.contact}." in answered.text


async def test_a_known_and_an_unknown_ticket_are_a_partial_answer(sample: Desk) -> None:
    answered = await answer(sample, "Are the customers on tickets 4812 and 9999 entitled to a refund?")
    assert answered.shape == "partial"
    assert "13 September 2026" in answered.text
    assert "Not settled: there is no ticket TCK-9999" in answered.text


@pytest.mark.parametrize(
    "text",
    [
        "Is the customer entitled to a refund?",
        "Is this customer still in time for a refund?",
        "Can our client get their money back?",
    ],
)
async def test_a_case_without_a_ticket_is_asked_back(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape == "clarify"
    assert "Which ticket" in answered.text
    assert answered.verdict is None
    assert answered.steps == ()


@pytest.mark.parametrize(
    "text",
    ["What is the parental leave policy?", "Do you sell office chairs?", "What is the capital of Mongolia?"],
)
async def test_what_no_source_holds_says_what_was_searched_and_whom_to_ask(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape == "not_found"
    assert f"“{text}”" in answered.text
    assert sample.parts.words.contact in answered.text
    assert answered.citations == ()
    assert answered.usage.searches >= 1


@pytest.mark.parametrize("text", ["hi", "muchas gracias", "What can you do?", "what do you know?", "tl;dr"])
async def test_small_talk_searches_nothing_and_calls_no_model(sample: Desk, text: str) -> None:
    answered = await posed(sample, text, ScriptedModel())
    assert answered.shape == "chat"
    assert answered.route.path == "none"
    assert (answered.usage.searches, answered.usage.calls, answered.steps) == (0, 0, ())
    assert answered.text


async def test_the_list_of_sources_is_the_askers(sample: Desk) -> None:
    ours = (await answer(sample, "What do you know?")).text
    theirs = (await answer(sample, "What do you know?", user="U_STRANGER")).text
    assert "Team plan terms" in ours
    assert "Team plan terms" in theirs
    assert "desk notes" in ours
    assert "the tickets, as of" in ours
    assert "desk notes" not in theirs
    assert "the tickets" not in theirs


@pytest.mark.parametrize("mode", ["gated", "agent"])
@pytest.mark.parametrize("text", [QUESTION, EXPORT])
async def test_a_model_that_fails_leaves_the_offline_answer(sample: Desk, text: str, mode: Mode) -> None:
    answered = await posed(sample, text, ScriptedModel(fails, forever=True), mode)
    assert answered.shape == "answered"
    assert answered.stop == "the model could not be used"
    assert NOTE in answered.text
    assert any("refused" in reason for reason in answered.rejected)
    assert "10.1.2.3" not in answered.text
    if text == QUESTION:
        right(answered)
    else:
        assert "7 days" in answered.text


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        EXPORT,
        "What does error ERR_SSO-4032 mean?",
        "Who handles ticket 4812?",
        "Compare the refund windows of all plans",
    ],
)
async def test_every_offline_answer_carries_the_note(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.shape in ("answered", "partial")
    assert answered.text.endswith(NOTE)
    assert answered.citations


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("How many tickets are open?", "Tickets (status open): 16 found"),
        ("How many tickets are there per plan?", "Enterprise: 16"),
        ("Who handles ticket TCK-4101?", "Assignee: Marc Oliver"),
        ("What is the status of ticket 4112?", "Status: closed"),
    ],
)
async def test_a_denial_in_one_row_takes_no_other_line_out(sample: Desk, text: str, needed: str) -> None:
    """Rows such as "Nobody can sign in" stand beside fields and counts that deny nothing."""
    answered = await answer(sample, text)
    assert needed in answered.text
    assert answered.rejected == ()


async def test_a_models_own_answer_carries_no_note(sample: Desk) -> None:
    def cites(messages: Sequence[Message]) -> Reply:
        item = next(i for i in messages[-1].evidence if "valid for 7 days" in i.text)
        return says(f"The link is valid for 7 days [{item.n}].")

    answered = await posed(sample, EXPORT, ScriptedModel(cites))
    assert answered.text == "The link is valid for 7 days [1]."
    assert [c.source for c in answered.citations] == ["docs:data-export.md"]
    assert (answered.usage.calls, answered.usage.input_tokens) == (1, 100)


async def test_the_direct_way_escalates_once(sample: Desk) -> None:
    model = ScriptedModel(
        says(""), calls(("search_docs", {"query": "export link validity"})), says("Nothing is said [99].")
    , forever=True)  # fmt: skip
    answered = await posed(sample, EXPORT, model)
    assert answered.route.path == "agent"
    assert answered.route.reasons[-1] == "one search did not answer: escalated"
    offered = [bool(tools) for _, tools in model.requests]
    assert offered[:3] == [False, True, True], "one call without tools, then the loop"
    assert not any(offered[3:])


async def test_a_direct_answer_is_one_call_without_tools(sample: Desk) -> None:
    def cites(messages: Sequence[Message]) -> Reply:
        item = messages[-1].evidence[0]
        assert item.chunk is not None
        return says(f"“{item.chunk.body.splitlines()[0]}” [{item.n}]")

    model = ScriptedModel(cites)
    answered = await posed(sample, EXPORT, model)
    model.done()
    assert answered.route.path == "direct"
    assert model.requests[0][1] == ()


async def test_a_bad_draft_is_repaired_once(sample: Desk) -> None:
    def right_one(messages: Sequence[Message]) -> Reply:
        assert "99 days" in messages[-1].text
        item = next(i for m in messages for i in m.evidence if "valid for 7 days" in i.text)
        return says(f"The link is valid for 7 days [{item.n}].")

    model = ScriptedModel(says("Zeppelins fly for 99 days [1]."), right_one)
    answered = await posed(sample, EXPORT, model)
    model.done()
    assert "valid for 7 days" in answered.text
    assert any("99 days" in reason for reason in answered.rejected)


async def test_a_bad_repair_leaves_the_quotation(sample: Desk) -> None:
    bad = says("Zeppelins fly for 99 days [1].")
    model = ScriptedModel(bad, bad)
    answered = await posed(sample, EXPORT, model)
    model.done()
    assert "99" not in answered.text
    assert "7 days" in answered.text
    assert answered.text.endswith(NOTE)


async def test_a_non_member_of_support_gets_the_rule_and_no_ticket(sample: Desk) -> None:
    refused = await answer(sample, QUESTION, user="U_STRANGER")
    assert refused.shape == "not_found"
    assert "that you may read" in refused.text
    assert "Ortega" not in refused.text
    general = await answer(sample, "What is the refund window for Team, billed annually?", user="U_STRANGER")
    assert "30 days" in general.text
    assert all(item.readers & {"members"} for item in general.used)


async def test_a_limit_of_searches_ends_the_loop_with_an_answer(sample: Desk) -> None:
    numbers = iter(range(100))
    model = ScriptedModel(
        lambda _: calls(("search_docs", {"query": f"subject {next(numbers)} of plan"})), forever=True
    )
    limits = dataclasses.replace(sample.parts.limits, searches=4, turns=50)
    answered = await posed(sample, QUESTION, model, "agent", limits=limits)
    right(answered)
    assert answered.stop == "limit of 4 searches"


async def test_every_step_is_observed_as_it_ends(sample: Desk) -> None:
    seen: list[Step] = []
    moment = datetime(2026, 9, 26, 12, tzinfo=sample.zone)
    question = Question(QUESTION, sample.asker(), moment)
    answered = await pipeline.answer(question, sample.parts, observe=seen.append)
    assert tuple(seen) == answered.steps
    assert [step.tool for step in seen][:2] == ["get_ticket", "search_docs"]
    assert "Team" in seen[2].purpose


async def test_a_text_and_its_citations_agree(sample: Desk) -> None:
    for text in (QUESTION, EXPORT, "Compare the refund windows of all plans"):
        answered = await answer(sample, text)
        assert answered.citations
        for citation in answered.citations:
            assert f"[{citation.n}]" in answered.text
        assert {c.source for c in answered.citations} <= {item.source for item in answered.used}


async def test_no_prompt_holds_a_personal_column(sample: Desk) -> None:
    with (Path(bot.__file__).parent / "demo" / "tickets.csv").open(encoding="utf-8", newline="") as stream:
        emails = {row["contact_email"] for row in csv.DictReader(stream)} - {""}
    assert len(emails) > 40
    model = ScriptedModel(
        calls(
            ("get_ticket", {"number": "4849"}),
            ("find_tickets", {"limit": 50}),
            ("similar_tickets", {"number": "4849"}),
            ("find_tickets", {"text": "@"}),
        ),
        says("I do not know."),
        forever=True,
    )
    text = "List all tickets similar to 4849 and the e-mail address of each contact"
    answered = await posed(sample, text, model, "agent")
    assert "TCK-4849" in model.prompts
    assert len([step for step in answered.steps if not step.error]) >= 4
    for email in emails:
        assert email not in model.prompts
        assert email not in answered.text
