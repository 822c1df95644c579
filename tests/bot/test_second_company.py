"""Another trade, with other facets, ids, units and rules: its own two-hop grid passes on settings alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.app import Desk
from bot.config import load
from ingest.embed import Embedder
from tests.desks import answer, prepared
from tests.second_company import oracle
from tests.second_company.questions import QUESTIONS

HERE = Path(oracle.__file__).parent
CASES = list(oracle.grid())


@pytest.fixture(scope="module")
def velstrand(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Desk]:
    data = tmp_path_factory.mktemp("velstrand")
    file = data / "tickets.csv"
    file.write_bytes(oracle.as_csv(CASES).encode("utf-8"))
    settings = load(HERE / "twohop.toml")
    settings = settings.model_copy(
        update={
            "data": data,
            "sources": settings.sources.model_copy(update={"paths": (HERE / "docs",)}),
            "tickets": settings.tickets.model_copy(update={"csv": (file, HERE / "tickets.csv")}),
        }
    )
    desk = prepared(settings, embedder)
    yield desk
    desk.close()


@pytest.mark.parametrize("part", range(8))
async def test_its_grid(velstrand: Desk, part: int) -> None:
    now = oracle.NOW.replace(tzinfo=None).isoformat()
    wrong = []
    for i, case in list(enumerate(CASES))[part::8]:
        matter = oracle.matter_of(case)
        yes, last = oracle.expected_of(case, matter)
        phrasing = QUESTIONS[matter][i // 8 % len(QUESTIONS[matter])]
        question = phrasing.text.format(ref=f"RMA {case['number']}")
        answered = await answer(velstrand, question, now)
        decided = answered.verdict.decision if answered.verdict else "none"
        dated = last is None or f"{last.day} {last:%B %Y}" in answered.text
        if decided != ("yes" if yes else "no") or not dated:
            wrong.append(
                f"{question} {case['facets']} → {decided}, expected {yes} until {last}: {answered.text[:400]}"
            )
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:6])


@pytest.mark.parametrize(
    ("phrasing", "turned"),
    [
        ("Is the claim on {ref} in time?", False),
        ("Was the claim on {ref} too late?", True),
        ("Is the customer on {ref} entitled to it?", False),
    ],
)
async def test_a_claim_is_a_request_in_this_trade(velstrand: Desk, phrasing: str, turned: bool) -> None:
    now = oracle.NOW.replace(tzinfo=None).isoformat()
    cases = [case for case in CASES if oracle.matter_of(case) == "warranty"][::20]
    assert len(cases) > 3
    for case in cases:
        yes, _ = oracle.expected_of(case, "warranty")
        answered = await answer(velstrand, phrasing.format(ref=f"RMA {case['number']}"), now)
        assert answered.verdict is not None, answered.text
        assert answered.verdict.decision == ("yes" if yes else "no"), answered.text
        assert answered.text.startswith("Yes" if yes is not turned else "No"), answered.text


async def test_a_supposed_delivery_is_what_the_time_runs_from(velstrand: Desk) -> None:
    now = oracle.NOW.replace(tzinfo=None).isoformat()
    case = next(case for case in CASES if case["number"] == "BK25-1006")
    assert case["facets"] == {"model_line": "Cargo", "region": "EU"}
    question = "If RMA BK25-1006 had been delivered on 2 March 2023, would the claim be in time?"
    answered = await answer(velstrand, question, now)
    assert answered.verdict is not None
    assert answered.verdict.decision == "no"
    assert "Supposing the delivery on 2 March 2023" in answered.text
    assert "2 March 2026" in answered.text
