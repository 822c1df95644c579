"""No value of a personal column is in an answer, a prompt, the evidence, the index or a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bot.app import Desk
from ingest.config import TicketSettings
from ingest.embed import Embedder
from ingest.types import Where
from tests.desks import answer, prepared, small_settings

PERSONAL = {
    "Full name": "Ana Ruizmendi",
    "Contact person": "Bea Lowental <bea@example.com>",
    "Nombre completo": "Carla Ibarrondo",
    "Ansprechpartner": "Dirk Vossberg",
    "Teléfono": "600 765 321",
    "Skype": "ana.ruizmendi",
    "Name (address)": "Finca Larrabe 12",
    "Origin": "tel +34 911 222 333",
}
HIDDEN = (
    "Ruizmendi",
    "Lowental",
    "bea@",
    "Ibarrondo",
    "Vossberg",
    "765 321",
    "ruizmendi",
    "Larrabe",
    "911 222",
)
QUESTIONS = (
    "What do we know about ticket 90001?",
    "Who is the contact person of ticket 90001?",
    "What is the full name of the customer on ticket 90001?",
    "What is the teléfono of 90001?",
    "Which tickets have the contact person Bea Lowental?",
    "How many tickets are there by plan?",
    "Which tickets are open?",
    "Is there a ticket like 90001?",
    "List the tickets of the Team plan",
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    rows = [
        {
            "Ticket ID": str(90001 + at),
            "Company": f"Acme {at}",
            "Status": "open",
            "Subject": "Double charge",
            "Body": "The yearly invoice was charged twice.",
            "Plan": "Team",
            "Warranty model": "X-200",
            **PERSONAL,
        }
        for at in range(3)
    ]
    page = {"faq.md": "# Questions\n\n## Double charge\n\nA double charge is paid back within 5 days.\n"}
    settings = small_settings(tmp_path_factory.mktemp("personal"), page, rows)
    tickets = TicketSettings(csv=settings.tickets.csv)
    made = prepared(settings.model_copy(update={"tickets": tickets}), embedder)
    yield made
    made.close()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_no_personal_value_is_in_an_answer_or_its_trace(desk: Desk, question: str) -> None:
    answered = await answer(desk, question)
    whole = repr(answered)
    # The question itself is repeated.
    assert [value for value in HIDDEN if value in whole and value not in question] == []


async def test_the_other_columns_are_fields_of_the_ticket(desk: Desk) -> None:
    answered = await answer(desk, "What do we know about ticket 90001?")
    assert "Warranty model: X-200" in answered.text
    assert desk.tickets.values()["plan"] == ("Team",)
    assert set(desk.tickets.settings.personal) == set(PERSONAL)


def test_no_personal_value_is_in_the_index(desk: Desk) -> None:
    where = Where(frozenset({"support", "members"}), kind="ticket")
    for value in PERSONAL.values():
        vector = desk.embedder.embed([value], kind="query")[0]
        found = desk.index.rank(value, vector, 50, where, 1e12)
        held = json.dumps([repr(scored.chunk) for arm in found.arms.values() for scored in arm])
        assert "Double charge" in held
        assert [hidden for hidden in HIDDEN if hidden in held] == []
