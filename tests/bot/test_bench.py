"""The benchmark: every part has its row, and what is printed is computed from what was recorded."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import count

import pytest
from rich.console import Console

from bot.app import Desk
from bot.bench.answer import PARTS, UNIT, Report, Row, Sample, Watch, measure, rows
from bot.bench.measure import TimedEmbedder, machine, p95, resident_mb
from bot.types import Question
from tests.desks import prepared, sample_settings
from tests.fakes import HashingEmbedder

ASKED = (
    "Is the customer on ticket 4812 entitled to a refund?",
    "How many tickets are open, by priority?",
    "Has anybody else reported the problem of TCK-4849?",
    "thanks",
)
ROUNDS = 2


class Ticking:
    """A clock that is one second later each time it is read."""

    def __init__(self) -> None:
        self._ticks = count(1)

    def __call__(self) -> float:
        return float(next(self._ticks))


@pytest.fixture(scope="module")
def clock() -> Ticking:
    return Ticking()


@pytest.fixture(scope="module")
def embedder(clock: Ticking) -> TimedEmbedder:
    return TimedEmbedder(HashingEmbedder(), clock)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, embedder: TimedEmbedder) -> Iterator[Desk]:
    """Return a desk over the sample company whose embedder is timed by the fake clock."""
    desk = prepared(sample_settings(tmp_path_factory.mktemp("bench")), embedder)
    yield desk
    desk.close()


def questions(desk: Desk) -> Sequence[Question]:
    now = datetime(2026, 9, 26, 12, tzinfo=desk.zone)
    return [Question(text, desk.asker(), now) for text in ASKED]


async def test_every_part_is_measured_each_round_and_the_first_round_is_not_counted(
    desk: Desk, embedder: TimedEmbedder, clock: Ticking
) -> None:
    samples = await measure(desk, embedder, questions(desk), rounds=ROUNDS, clock=clock)
    found = {row.name: row for row in rows(samples)}
    assert list(found) == [name for name in PARTS if name != "tool deadline"]
    for name in (UNIT, "gate", "index, bare rank", "retrieval", "whole turn, gated", "ack: inbox insert"):
        assert found[name].samples == ROUNDS * len(ASKED), name
    for name in ("tool get_ticket", "tool find_tickets", "tool similar_tickets", "tool search_docs"):
        assert found[name].samples >= ROUNDS, name
    # Only the first question has a rule to decide it; nothing is drafted for thanks.
    assert found["verdict"].samples == ROUNDS
    assert found["checks"].samples == ROUNDS * (len(ASKED) - 1)
    # The clock is read at both ends of a part, and at both ends of an embedding inside it.
    assert set(samples[UNIT]) == set(samples["retrieval"]) == {Sample(3.0, 1.0)}
    for name in ("gate", "index, bare rank", "verdict", "checks", "ack: inbox insert"):
        assert set(samples[name]) == {Sample(1.0, 0.0)}, name
    for sample in samples["whole turn, gated"]:
        assert sample.seconds == 1.0 + 2 * sample.embedding
    assert (found["gate"].median_share, found["gate"].own_median_share) == (1 / 3, 1 / 3)
    assert (found["retrieval"].median_share, found["retrieval"].own_median_share) == (1.0, 2 / 3)


async def test_it_leaves_nothing_behind(desk: Desk, embedder: TimedEmbedder, clock: Ticking) -> None:
    before = sorted(desk.settings.data.iterdir())
    kept = [path.stat().st_size for path in before if path.is_file()]
    await measure(desk, embedder, questions(desk)[:1], rounds=1, clock=clock)
    assert sorted(desk.settings.data.iterdir()) == before
    assert [path.stat().st_size for path in before if path.is_file()] == kept


async def test_embeddings_at_the_same_time_are_not_counted_twice(
    embedder: TimedEmbedder, clock: Ticking
) -> None:
    def embed() -> None:
        embedder.embed(["a question"], kind="query")

    watch = Watch(clock, embedder)
    with watch.time("gate"):
        await asyncio.gather(*(asyncio.to_thread(embed) for _ in range(20)))
    (sample,) = watch.samples["gate"]
    assert 1.0 <= sample.embedding <= 20.0
    assert sample.seconds == 1.0 + 2 * sample.embedding


def test_a_row_is_computed_from_its_samples_and_the_unit() -> None:
    samples = {
        UNIT: [Sample(s, s) for s in (0.010, 0.020, 0.030)],
        "retrieval": [Sample(s / 100, 0.01) for s in range(2, 22)],
        "gate": [],
    }
    unit, retrieval = rows(samples)
    assert unit == Row(UNIT, 3, 20.0, 30.0, 1.0, 1.5, 20.0, 30.0, 1.0, 1.5)
    assert (retrieval.name, retrieval.samples) == ("retrieval", 20)
    assert [retrieval.median_ms, retrieval.p95_ms] == pytest.approx([115.0, 200.0])
    assert [retrieval.median_share, retrieval.p95_share] == pytest.approx([5.75, 10.0])
    assert [retrieval.own_median_ms, retrieval.own_p95_ms] == pytest.approx([105.0, 190.0])
    assert [retrieval.own_median_share, retrieval.own_p95_share] == pytest.approx([5.25, 9.5])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([7], 7), (range(1, 21), 19), (range(1, 22), 20), (range(100, 0, -1), 95)],
)
def test_p95_is_the_nearest_rank(values: Sequence[float], expected: float) -> None:
    assert p95(values) == expected


def test_the_report_prints_what_was_computed_and_what_it_depends_on() -> None:
    taken = {UNIT: [Sample(0.02, 0.02)], "gate": [Sample(0.001)], "whole turn, hybrid": [Sample(123.4, 3.4)]}
    found = rows(taken)
    report = Report(found, 3, 7, machine(HashingEmbedder.name), {"at the start": 80.4, "after the run": 612.0})
    printed = io.StringIO()
    Console(width=80, file=printed).print(report.table())
    text = printed.getvalue()
    assert "7 questions, 3 rounds after one that is not counted" in text
    assert "…" not in text
    gate = next(line for line in text.splitlines() if "gate" in line).split()
    assert gate == ["gate", "1", "1", "1", "0.05", "0.05", "0.05", "0.05"]
    turn = next(line for line in text.splitlines() if "whole turn" in line).split()
    assert turn == ["whole", "turn,", "hybrid", "1", "123400", "123400", "6170", "6170", "6000", "6000"]
    notes = "\n".join(report.notes())
    assert "memory (MB): at the start 80, after the run 612" in notes
    assert "embedder fake/hashing" in notes
    assert {"CPUs", "Python", "torch threads", "load"} <= set(report.machine)
    assert json.loads(json.dumps(report.as_json()))["rows"][1]["median_share"] == pytest.approx(0.05)


def test_memory_grows_with_what_is_held() -> None:
    before = resident_mb()
    held = bytes(range(256)) * 400_000
    assert resident_mb() - before > len(held) / 2_000_000
