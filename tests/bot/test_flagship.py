"""The question the product exists for: a rule that one search cannot find, over a grid with an independent oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from bot.app import Desk
from bot.config import Settings, load
from bot.sample import sample as folder
from bot.types import Answer, Mode
from ingest.embed import Embedder
from tests.desks import answer, indexed_tickets, prepared, small_settings
from tests.scripted import ScriptedModel, calls, says

QUESTION = "Is the customer on ticket 4812 entitled to a refund?"
WINDOWS = {
    ("Starter", "annual"): 14,
    ("Starter", "monthly"): None,
    ("Team", "annual"): 30,
    ("Team", "monthly"): None,
    ("Business", "annual"): 45,
    ("Business", "monthly"): 7,
    ("Enterprise", "annual"): 60,
}
"""The oracle's table, written by hand from the sample's terms: days from the charge, None for no refund."""


def right(answered: Answer) -> None:
    """Assert everything the right answer to the flagship holds."""
    assert answered.shape == "answered", answered.text
    assert answered.verdict is not None
    assert answered.verdict.decision == "yes"
    for needed in ("Yes", "30 days", "13 September", "11 days before", "14 days", "general rule"):
        assert needed in answered.text, (needed, answered.text)
    assert "28 August" not in answered.text
    cited = {citation.source for citation in answered.citations}
    assert "ticket:4812" in cited
    assert any("team" in source for source in cited)
    assert {c.n for c in answered.citations} == set(range(1, len(answered.citations) + 1))


@pytest.mark.parametrize("now", ["2026-09-26T12:00", "2026-12-01T12:00", "2026-09-02T18:00"])
@pytest.mark.parametrize("mode", ["gated", "agent"])
async def test_the_flagship_is_right_whenever_it_is_asked(sample: Desk, now: str, mode: Mode) -> None:
    right(await answer(sample, QUESTION, now, mode))


@pytest.mark.parametrize(
    "text",
    [
        "is the customer on #4812 entitled to a refund",
        "TCK-4812: can they still get their money back?",
        "Does the client of tck-4812 qualify for a refund?",
        "¿Tiene derecho a un reembolso el cliente del ticket 4812?",
        "Ticket 4812: is it too late for a refund?",
        "Hi! Quick one: is the customer on ticket 4812 still within the refund window? Thanks",
        "Is Ortega Hardware entitled to a refund?",
    ],
)
async def test_the_flagship_in_other_words(sample: Desk, text: str) -> None:
    answered = await answer(sample, text)
    assert answered.verdict is not None, answered.text
    assert answered.verdict.decision == "yes", answered.text
    assert "13 September" in answered.text


@pytest.mark.parametrize("mode", ["naive", "hybrid"])
async def test_the_baselines_do_not_answer_it(sample: Desk, mode: Mode) -> None:
    answered = await answer(sample, QUESTION, mode=mode)
    assert "13 September" not in answered.text
    assert answered.verdict is None
    assert "baseline" in answered.route.reasons[0]


@pytest.mark.parametrize("mode", ["gated", "agent"])
async def test_no_other_customers_ticket_reaches_a_prompt(sample: Desk, mode: Mode) -> None:
    model = ScriptedModel(
        calls(
            ("get_ticket", {"number": "4821"}),
            ("similar_tickets", {"text": "refund"}),
            ("find_tickets", {"text": "refund"}),
        ),
        calls(("similar_tickets", {"number": "4812"})),
        says("It is as the terms say [1]."),
        forever=True,
    )
    with_model = dataclasses.replace(sample.parts, model=model)
    from datetime import datetime

    from bot import pipeline
    from bot.types import Question

    moment = datetime(2026, 9, 26, 12, tzinfo=sample.zone)
    answered = await pipeline.answer(Question(QUESTION, sample.asker(), moment), with_model, mode)
    right(answered)
    own = {t.number: t for t in indexed_tickets(sample.tickets, moment)}
    for number in ("4821", "4182"):
        assert own[number].customer not in model.prompts
        assert own[number].subject not in model.prompts


def grid() -> Iterator[tuple[dict[str, str], bool, date | None]]:
    """Yield ticket rows over plan x billing x request day x ids x names, with what the oracle says."""
    ids = ["4812", "4821", "4182"]
    names = ["Ortega Hardware", "Team Rocket Ltd", "Monthly Muse SL"]
    number = 0
    for (plan, billing), window in WINDOWS.items():
        for asked in (0, 7, 8, 14, 15, 30, 31, 45, 46, 60, 61):
            charged = date(2026, 8, 14) if asked % 2 else date(2026, 1, 31)
            row = {
                "number": f"TCK-{ids[number % 3]}" if number < 3 else f"TCK-{5000 + number}",
                "customer": names[number % 3],
                "plan": plan,
                "billing": billing,
                "status": "open",
                "priority": "normal",
                "assignee": "",
                "subject": "Refund request",
                "body": "They ask for their money back.",
                "resolution": "",
                "opened_at": f"{charged + timedelta(days=asked)}T10:00",
                "updated_at": "",
                "charged_on": str(charged),
                "refund_requested_on": str(charged + timedelta(days=asked)),
                "first_responded_at": "",
                "resolved_at": "",
                "contact_email": "",
            }
            number += 1
            last = charged + timedelta(days=window) if window is not None else None
            yield row, last is not None and asked <= (window or 0), last


def grid_desk(data: Path, embedder: Embedder) -> Desk:
    """Return a desk over the sample's documents and the grid's tickets."""
    ours = load(folder() / "twohop.toml")
    made = small_settings(data, {}, [row for row, _, _ in grid()])
    settings = Settings(
        data=made.data,
        sources=ours.sources.model_copy(update={"paths": (folder() / "docs",)}),
        tickets=ours.tickets.model_copy(update={"csv": made.tickets.csv}),
        calendar=ours.calendar,
    )
    return prepared(settings, embedder)


async def test_the_grid_of_plans_billings_and_days(
    tmp_path_factory: pytest.TempPathFactory, embedder: Embedder
) -> None:
    desk = grid_desk(tmp_path_factory.mktemp("grid"), embedder)
    try:
        for row, yes, last in grid():
            answered = await answer(
                desk, f"Is the customer on ticket {row['number']} entitled to a refund?", "2026-12-01T09:00"
            )
            what = (row["plan"], row["billing"], row["charged_on"], row["refund_requested_on"], answered.text)
            assert answered.verdict is not None, what
            assert answered.verdict.decision == ("yes" if yes else "no"), what
            if last is not None:
                assert f"{last.day} {last:%B %Y}" in answered.text, what
    finally:
        desk.close()


async def test_the_follow_up_finds_the_shops_other_ticket(sample: Desk) -> None:
    from datetime import datetime

    now = datetime(2026, 9, 26, 10, tzinfo=sample.zone)
    first = await sample.answer(QUESTION, now=now)
    second = await sample.answer(
        "what about the one the same shop opened yesterday?", now=now, after=first.turn.id
    )
    assert "Ortega Hardware" in second.answer.standalone
    assert "25 September 2026" in second.answer.standalone
    own = next(
        t
        for t in indexed_tickets(sample.tickets, now)
        if t.customer == "Ortega Hardware" and t.opened_at and t.opened_at.date() == date(2026, 9, 25)
    )
    assert own.number in second.answer.text


def test_every_case_of_the_grid_has_its_own_number() -> None:
    rows = [row["number"] for row, _, _ in grid()]
    assert len(set(rows)) == len(rows) == 77
