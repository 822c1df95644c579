"""Rules that take a right away from some cases, rules of the desk's own duty, and terms that were not yet in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from bot.app import Desk
from ingest.config import TicketSettings
from ingest.embed import Embedder
from tests.desks import answer, prepared, small_settings

FAQ = """---
authority: faq
---
# Frequently asked questions

## Can I send a kettle back?

Every customer may return a kettle within 21 days of delivery.

## How long is the warranty?

All our kettles have a warranty of 12 months from delivery.
"""
RETURNS = """---
authority: policy
---
# Return policy

Bronze customers may return a kettle within 14 days of delivery. Gold customers may return a kettle within 60 days of delivery.

## What cannot be returned

Refurbished kettles and opened filters cannot be returned.

## Refund

The refund is paid within 5 business days of the arrival of the kettle at our warehouse.
"""
WARRANTY = """---
authority: policy
effective: 2025-01-01
---
# Warranty policy

| Model | Warranty period |
|---|---|
| Alto | 36 months from delivery |
| Basso | 60 months from delivery |

## What is left out

The warranty does not cover:

- scale damage,
- gaskets and other wearing parts.
"""
TICKETS = TicketSettings(
    prefixes=("CASE-",),
    facets={"tier": "tier", "model": "model"},
    events={"delivery": "delivered_on"},
    actions={"return request": "return_asked_on", "warranty claim": "claimed_on"},
)


def row(number: int, tier: str, model: str, subject: str, delivered: str, **dates: str) -> Mapping[str, str]:
    return {
        "number": str(number),
        "customer": f"Kitchen {number}",
        "tier": tier,
        "model": model,
        "status": "open",
        "subject": subject,
        "body": "Please look at it.",
        "opened_at": "2026-07-20",
        "delivered_on": delivered,
        "return_asked_on": dates.get("asked", ""),
        "claimed_on": dates.get("claimed", ""),
    }


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    settings = small_settings(
        tmp_path_factory.mktemp("kettles"),
        {"faq.md": FAQ, "returns.md": RETURNS, "warranty.md": WARRANTY},
        [
            row(80001, "", "Alto", "Return", "2026-08-01", asked="2026-08-12"),
            row(80002, "Bronze", "Alto", "Return of a refurbished kettle", "2026-08-01", asked="2026-08-07"),
            row(80003, "Bronze", "Alto", "Return of a kettle", "2026-08-01", asked="2026-08-07"),
            row(80004, "Gold", "Basso", "It does not boil", "2022-01-31", claimed="2026-08-01"),
            row(80005, "Gold", "Alto", "Worn gasket", "2026-01-01", claimed="2026-08-01"),
            row(80006, "Gold", "Alto", "Damage in the lid", "2026-01-01", claimed="2026-08-01"),
            row(80007, "Gold", "Basso", "Return", "2026-08-01", asked="2026-08-12"),
        ],
    )
    tickets = TICKETS.model_copy(update={"csv": settings.tickets.csv})
    made = prepared(settings.model_copy(update={"tickets": tickets}), embedder)
    yield made
    made.close()


async def test_what_arrives_at_our_warehouse_is_no_delivery_and_the_desks_own_duty_no_right(
    desk: Desk,
) -> None:
    for number in (80001, 80003, 80007):
        answered = await answer(desk, f"Can the customer on case {number} return the kettle?")
        assert answered.verdict is not None
        assert answered.verdict.decision == "yes"
        assert "5 business days" not in answered.verdict.text


async def test_a_record_without_the_facet_that_keys_the_rules_is_told_so(desk: Desk) -> None:
    answered = await answer(desk, "Can the customer on case 80001 return the kettle?")
    assert answered.shape == "partial"
    assert "has no tier" in answered.text
    assert "Bronze: 14 days" in answered.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Can the customer on case 80002 return the kettle?", "Refurbished kettles"),
        ("Is the warranty claim on case 80005 covered?", "gaskets and other wearing parts"),
    ],
)
async def test_an_exclusion_that_names_what_the_case_is_about_goes_first(
    desk: Desk, question: str, said: str
) -> None:
    answered = await answer(desk, question)
    assert answered.verdict is not None
    assert answered.verdict.decision == "no"
    assert said in answered.verdict.text


async def test_half_of_an_exclusions_words_exclude_nothing(desk: Desk) -> None:
    answered = await answer(desk, "Is the warranty claim on case 80006 in time?")
    assert answered.verdict is not None
    assert answered.verdict.decision == "yes"
    assert "1 January 2029" in answered.text


async def test_a_weaker_rule_does_not_stand_in_for_one_that_was_not_yet_in_force(desk: Desk) -> None:
    answered = await answer(desk, "Is case 80004 still under warranty?")
    assert answered.verdict is not None
    assert answered.verdict.decision == "undecided"
    assert "60 months" in answered.text
    assert "in force from 1 January 2025" in answered.text
