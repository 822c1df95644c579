"""The flagship failure, over and over: a model that is sure, cites truly, and is wrong. None of it is posted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

import pytest

from bot import pipeline
from bot.app import Desk
from bot.types import Answer, Message, Mode, Question, Reply
from tests.bot.test_flagship import QUESTION, right
from tests.scripted import ScriptedModel, calls, says

WRONG = (
    "No, the refund window closed on 28 August [{ticket}][{faq}].",
    "It lapsed in August [{ticket}][{faq}].",
    "Unfortunately they missed it [{ticket}][{faq}].",
    "The customer is out of luck: the general rule applies [{faq}].",
    "The window is 14 days from the charge, so the request came too late [{faq}].",
    "no [{faq}]",
    "The refund must be refused [{ticket}][{faq}]",
    "A refund is not possible for Ortega Hardware [{ticket}].",
    "Yes, they have until 28 August [{ticket}][{faq}].",
    "Two weeks is all they had [{faq}].",
)


def confident(text: str) -> ScriptedModel:
    """Return a model that stops after the first hop and says `text`, citing what it was truly shown."""

    def speak(messages: Sequence[Message]) -> Reply:
        shown = next(m.evidence for m in reversed(messages) if m.evidence)
        ticket = next(item.n for item in shown if item.ticket is not None)
        faq = next((item.n for item in shown if "faq" in item.source), ticket)
        return says(text.format(ticket=ticket, faq=faq))

    return ScriptedModel(speak, forever=True)


async def posted(desk: Desk, model: ScriptedModel, mode: Mode, question: str = QUESTION) -> Answer:
    parts = dataclasses.replace(desk.parts, model=model)
    moment = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return await pipeline.answer(Question(question, desk.asker(), moment), parts, mode)


@pytest.mark.parametrize("mode", ["gated", "agent"])
@pytest.mark.parametrize("text", WRONG)
async def test_a_confident_no_is_never_posted(sample: Desk, text: str, mode: Mode) -> None:
    answered = await posted(sample, confident(text), mode)
    right(answered)
    for word in (
        "lapsed",
        "missed",
        "out of luck",
        "too late",
        "refused",
        "not possible",
        "28 August",
        "Two weeks",
    ):
        assert word not in answered.text


@pytest.mark.parametrize("mode", ["gated", "agent"])
async def test_the_article_s_own_path_is_vetoed(sample: Desk, mode: Mode) -> None:
    """The model computes the FAQ's deadline with the tool, truly, and answers with it."""

    def no(messages: Sequence[Message]) -> Reply:
        shown = next(m.evidence for m in reversed(messages) if m.evidence)
        n = {item.kind: item.n for item in shown}
        return says(f"No, it closed on 28 August [{n['ticket']}][{n['computed']}].")

    model = ScriptedModel(calls(("deadline", {"start": "2026-08-14", "amount": 14, "unit": "day"})), no)
    answered = await posted(sample, model, mode)
    right(answered)
    model.done()


@pytest.mark.parametrize("mode", ["gated", "agent"])
async def test_invented_days_are_no_computation(sample: Desk, mode: Mode) -> None:
    model = ScriptedModel(
        calls(("deadline", {"start": "2026-08-14", "amount": 47, "unit": "day"})),
        says("They have until 30 September [1]."),
    )
    answered = await posted(sample, model, mode)
    right(answered)
    assert "30 September" not in answered.text
    step = next(step for step in answered.steps if step.tool == "deadline")
    assert "no evidence" in step.error


@pytest.mark.parametrize("mode", ["gated", "agent"])
async def test_a_citation_of_nothing_is_not_posted(sample: Desk, mode: Mode) -> None:
    model = ScriptedModel(says("Exports are kept for 99 days [99]."), forever=True)
    answered = await posted(sample, model, mode, "How long are data exports kept?")
    assert "99" not in answered.text
    assert any("99" in reason for reason in answered.rejected)


async def test_a_model_that_never_stops_ends_within_its_turns(sample: Desk) -> None:
    queries = iter(range(1000))
    model = ScriptedModel(
        lambda _: calls(("search_docs", {"query": f"subject number {next(queries)} of plan"})), forever=True
    )
    answered = await posted(sample, model, "agent")
    right(answered)
    assert answered.stop
    assert answered.stop != "answered"
    assert len(model.requests) <= sample.parts.limits.turns + 1
    assert model.requests[-1][1] == (), "the last call has no tools in it"


async def test_a_model_that_never_searches_still_had_a_search(sample: Desk) -> None:
    model = ScriptedModel(says("Data is kept for ever."), forever=True)
    answered = await posted(sample, model, "agent", "How long are data exports kept?")
    assert answered.usage.searches >= 1
    assert "for ever" not in answered.text


async def test_a_repeated_search_costs_nothing_and_ends_the_loop(sample: Desk) -> None:
    model = ScriptedModel(calls(("search_docs", {"query": "refund window"})), forever=True)
    answered = await posted(sample, model, "agent")
    right(answered)
    assert answered.stop == "repeated searches"
    repeated = [step for step in answered.steps if "already" in step.error]
    assert len(repeated) == 2


async def test_unknown_tools_and_malformed_arguments_are_text_for_the_model(sample: Desk) -> None:
    model = ScriptedModel(
        calls(
            ("delete_ticket", {"number": "4812"}),
            ("get_ticket", "{not json"),
            ("get_ticket", {"number": "4812", "drop": "table"}),
            ("find_tickets", {"limit": 10_000}),
            ("search_docs", "[]"),
            ("search_docs", {"query": "refund", "facets": {"colour": "red"}}),
        ),
        says("See the terms."),
    )
    answered = await posted(sample, model, "agent")
    right(answered)
    tool_messages = [m for messages, _ in model.requests for m in messages if m.role == "tool"]
    assert len(tool_messages) == 6, "every call is answered"
    errors = [step.error for step in answered.steps if step.by == "model"]
    assert all(errors)
    assert "no tool 'delete_ticket'" in errors[0]
