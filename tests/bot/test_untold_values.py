"""A kind of customer that only documents name: its rules are its own, never everybody's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import pytest

from bot.app import Desk
from ingest.config import TicketSettings
from ingest.embed import Embedder
from ingest.rules import find_rules
from ingest.scope import scope, taught
from ingest.types import Chunk
from tests.desks import answer, prepared, small_settings

FAQ = """---
authority: faq
---
# Frequently asked questions

## Returns

You can return a bike within 14 days of delivery.
"""
TERMS = """---
authority: terms
---
# {value} care terms

## Returns

Customers with {value} care can return a bike within {days} days of delivery.
"""
TICKETS = TicketSettings(
    prefixes=("CASE-",),
    facets={"care": "care"},
    events={"delivery": "delivered_on"},
    actions={"return request": "return_asked_on"},
    personal=("phone",),
)


def row(number: int, customer: str, care: str) -> Mapping[str, str]:
    return {
        "number": str(number),
        "customer": customer,
        "care": care,
        "status": "open",
        "subject": "Bike return",
        "body": "I would like to return the bike.",
        "opened_at": "2026-07-20",
        "delivered_on": "2026-08-01",
        "return_asked_on": "2026-08-18",
        "phone": "600123456",
    }


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    settings = small_settings(
        tmp_path_factory.mktemp("care"),
        {
            "faq.md": FAQ,
            "terms-gold.md": TERMS.format(value="Gold", days=60),
            "terms-silver.md": TERMS.format(value="Silver", days=20),
        },
        [row(70001, "Zoe Q", "Gold"), row(70002, "Max B", "Bronze"), row(70003, "Ana R", "")],
    )
    tickets = TICKETS.model_copy(update={"csv": settings.tickets.csv})
    made = prepared(settings.model_copy(update={"tickets": tickets}), embedder)
    yield made
    made.close()


@pytest.mark.parametrize("number", [70002, 70003])
async def test_terms_of_a_value_that_no_ticket_has_are_not_everybodys(desk: Desk, number: int) -> None:
    answered = await answer(desk, f"Is CASE-{number} entitled to return the bike?")
    assert answered.verdict is not None
    assert answered.verdict.decision == "no"
    assert "15 August 2026" in answered.text
    assert ("Silver: 20 days" in answered.text) is ("has no care" in answered.text) is (number == 70003)


async def test_a_value_without_terms_of_its_own_is_said_to_have_none(desk: Desk) -> None:
    answered = await answer(desk, "Is CASE-70002 entitled to return the bike?")
    assert "there are no terms of Bronze care" in answered.text
    answered = await answer(desk, "Can Platinum care customers return a bike?")
    assert "14 days" in answered.text
    assert "there are no terms of Platinum care" in answered.text


@pytest.mark.parametrize(
    "question", ["Can Silver care customers return a bike?", "How long can Silver customers return a bike?"]
)
async def test_a_question_about_it_gets_its_own_rule(desk: Desk, question: str) -> None:
    answered = await answer(desk, question)
    assert answered.verdict is not None
    assert "The rule for this case (Silver) is 20 days" in answered.verdict.text


async def test_a_general_question_gets_the_general_rule_and_each_kinds(desk: Desk) -> None:
    answered = await answer(desk, "How long can customers return a bike?")
    for said in ("In general: 14 days", "Gold: 60 days", "Silver: 20 days"):
        assert said in answered.text


async def test_a_question_may_suppose_it(desk: Desk) -> None:
    answered = await answer(desk, "If CASE-70001 were on Silver care, would the return be in time?")
    assert "Supposing care Silver instead of Gold: Yes." in answered.text
    assert "21 August 2026" in answered.text


def chunk(body: str, title: str = "Returns", facets: Mapping[str, str] | None = None) -> Chunk:
    made = Chunk(
        "d#0", "d", 0, title, (), f"{title}\n{body}", facets=facets or {}, effective_from=date(2026, 1, 1)
    )
    return Chunk(**{**{n: getattr(made, n) for n in Chunk.__slots__}, "rules": find_rules(made)})


@pytest.mark.parametrize(
    ("body", "title", "found"),
    [
        ("Customers with Silver care may return a bike within 20 days.", "Returns", ("Silver",)),
        ("You may return a bike within 20 days.", "Silver care terms", ("Silver",)),
        ("For customers on Silver or Iron care returns are possible within 20 days.", "Returns", ("Silver", "Iron")),
        ("Con el care Silver puede devolver la bicicleta en un plazo de 20 días.", "Devoluciones", ("Silver",)),
        ("| Care | Return window |\n|---|---|\n| Gold | 60 days |\n| Silver | 20 days |", "Returns", ("Silver",)),
        ("| Customer | Return window |\n|---|---|\n| Gold | 60 days |\n| Silver | 20 days |", "Returns", ("Silver",)),
        ("| Matter | Gold | Silver |\n|---|---|---|\n| Return window | 60 days | 20 days |", "Returns", ("Silver",)),
        ("Silver care customers may return a bike within 20 days.", "Returns", ("Silver",)),
        ("On Silver care you may return a bike within 20 days.", "Returns", ("Silver",)),
        ("You may return a bike within 20 days of delivery.", "Returns", ()),
        ("Customers with Gold care may return a bike within 60 days.", "Gold care terms", ()),
        ("On any care you may return a bike within 20 days.", "Changing care", ()),
        ("Your care plan may be cancelled within 20 days.", "Your care", ()),
        ("Customer care answers within 2 days. A customer may return a bike within 9 days.", "Customer care", ()),
        ("| Care | Return window |\n|---|---|\n| Gold | 60 days |\n| All others | 14 days |", "Returns", ()),
    ],
)  # fmt: skip
def test_values_are_learned_where_documents_name_them(body: str, title: str, found: tuple[str, ...]) -> None:
    assert taught({"care": ("Gold", "Bronze")}, [chunk(body, title)])["care"] == ("Gold", "Bronze", *found)


def test_values_in_small_letters_are_learned_in_small_letters() -> None:
    for body in (
        "Customers with silver care may return a bike within 20 days.",
        "Customers with Silver care may return a bike within 20 days. On either care it is collected in 9 days.",
    ):
        assert taught({"care": ("gold",)}, [chunk(body)])["care"] == ("gold", "silver")


def test_front_matter_names_a_value() -> None:
    made = chunk("You may return a bike within 20 days.", facets={"care": "Silver"})
    assert taught({"care": ("Gold",)}, [made])["care"] == ("Gold", "Silver")


def test_a_rule_is_scoped_by_what_was_learned() -> None:
    made = chunk("You may return a bike within 20 days.", "Silver care terms")
    read = scope(made.rules[0], taught({"care": ("Gold",)}, [made]))
    assert read.includes == {"care": frozenset({"Silver"})}


async def test_a_personal_column_is_said_not_to_be_shown(desk: Desk) -> None:
    answered = await answer(desk, "what is the phone of case 70001?")
    assert (
        "Phone of ticket CASE-70001 is in a personal column, and personal columns are not shown"
        in answered.text
    )
    assert "600123456" not in answered.text


async def test_a_list_of_a_plans_cases_is_a_list(desk: Desk) -> None:
    answered = await answer(desk, "list cases of Gold care opened in July 2026")
    assert "Tickets (care Gold, opened from 1 July 2026 to 31 July 2026): 1 found" in answered.text
