"""The benchmarks: every part has its row, and what is printed is computed from what was recorded."""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bot.app import Desk
from bot.bench.answer import PARTS, UNIT, Report, Row, Sample, Watch, measure, rows
from bot.bench.child import in_child
from bot.bench.corpus import Corpus, FakeEmbedder
from bot.bench.measure import Tell, TimedEmbedder, machine, p95, resident_mb
from bot.bench.search import ELASTIC_PARTS, SQLITE_PARTS
from bot.cli import app
from bot.types import Question
from ingest.errors import ConfigError, IndexingError, TwohopError
from tests.desks import prepared, sample_settings
from tests.fakes import HashingEmbedder
from tests.indexes import cluster

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
    report = Report(
        found, 3, 7, machine(HashingEmbedder.name), {"at the start": 80.4, "after the run": 612.0}
    )
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
    assert {"CPUs", "Python", "load"} <= set(report.machine)
    assert json.loads(json.dumps(report.as_json()))["rows"][1]["median_share"] == pytest.approx(0.05)


def test_memory_grows_with_what_is_held() -> None:
    before = resident_mb()
    held = bytes(range(256)) * 400_000
    assert resident_mb() - before > len(held) / 2_000_000


def bench(*arguments: str, **environ: str) -> dict[str, Any]:
    """Run a benchmark of the command line in the working folder and return its JSON."""
    result = CliRunner().invoke(app, ["bench", *arguments, "--json"], env=environ)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def numbers(row: Mapping[str, Any], *names: str) -> list[float]:
    found = [row[name] for name in names]
    assert all(math.isfinite(value) and value > 0 for value in found), row
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder that must be empty afterwards."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("place")
def test_an_unchanged_sync_embeds_nothing_and_a_changed_one_only_what_changed() -> None:
    found = bench("index", "--sizes", "12,24", "--real", "3", "--rounds", "2")
    rows = {
        (row["chunks"], row["step"]): row for row in found["rows"] if row["embedder"] == FakeEmbedder.name
    }
    sizes = sorted({chunks for chunks, _ in rows})
    assert len(sizes) == 2
    assert [step for chunks, step in rows if chunks == sizes[1]] == [
        *("only writing", "first sync", "nothing changed", "1 changed", "1 % changed")
    ]
    for row in found["rows"]:
        numbers(row, "seconds", "of_bare", "growth", "peak_mb")
    for size in sizes:
        first, unchanged, one = (rows[size, step] for step in ("first sync", "nothing changed", "1 changed"))
        assert (first["changed"], first["embedded"]) == (first["documents"], size)
        assert (unchanged["changed"], unchanged["embedded"]) == (0, 0)
        assert one["changed"] == 1
        assert 0 < one["embedded"] < size
    assert rows[sizes[0], "first sync"]["growth"] == 1
    real = {row["step"]: row for row in found["rows"] if row["embedder"] != FakeEmbedder.name}
    assert real["only embedding"]["of_bare"] == 1
    assert (
        real["only embedding"]["embedded"] == real["first sync"]["embedded"] == real["first sync"]["chunks"]
    )
    assert real["nothing changed"]["embedded"] == 0


@pytest.mark.usefixtures("place")
def test_each_part_of_a_search_has_a_ratio_to_the_bare_engine() -> None:
    found = bench("search", "--sizes", "40", "--questions", "4", "--rounds", "2")
    rows = {(row["filter"], row["part"]): row for row in found["rows"]}
    assert [part for of, part in rows if of == "filter"] == list(SQLITE_PARTS)
    assert [part for of, part in rows if of == "no filter"] == list(SQLITE_PARTS)
    for (_, part), row in rows.items():
        numbers(row, "median_ms", "p95_ms", "median_share", "p95_share")
        # Two of the four questions hold a code.
        assert row["samples"] == (4 if "codes" in part else 8)
    for part in ("bare FTS5", "bare numpy scan", "bare look-up of codes", "bare, all"):
        assert rows["filter", part]["median_share"] == 1
    assert all(hits >= 1 for hits in found["found"].values())


@pytest.mark.elasticsearch
@pytest.mark.usefixtures("place")
def test_elasticsearch_is_measured_in_the_same_run_and_left_clean(request: pytest.FixtureRequest) -> None:
    with cluster(request.config.getoption("--elasticsearch")) as (settings, client):
        environ = {"ELASTICSEARCH_URL": settings.url, "TWOHOP_ELASTICSEARCH__PREFIX": settings.prefix}
        few = ("--sizes", "12", "--questions", "3", "--rounds", "1")
        found = bench("search", *few, **environ)
        parts = [
            row["part"] for row in found["rows"] if (row["index"], row["filter"]) == ("elastic", "filter")
        ]
        assert parts == list(ELASTIC_PARTS)
        synced = bench(
            "index", "--sizes", "12", "--real", "0", "--rounds", "1", "--index", "elastic", **environ
        )
        assert {row["index"] for row in synced["rows"]} == {"elastic"}
        assert dict(client.indices.get(index=f"{settings.prefix}*")) == {}


@pytest.mark.usefixtures("place")
def test_embedding_is_measured_beside_torch_in_the_same_run() -> None:
    found = bench("embed", "--rounds", "1", PYTHONPATH=str(Path(__file__).parents[2]))
    rows = {(row["work"], row["runtime"]): row for row in found["rows"]}
    assert len(rows) == 6
    for (_, runtime), row in rows.items():
        numbers(row, "ms", "cpu_ms", "of_torch", "peak_mb")
        assert runtime == "ONNX Runtime" or row["of_torch"] == 1


@pytest.mark.usefixtures("place")
def test_answers_and_acknowledgements_go_on_while_the_index_is_rebuilt() -> None:
    here = str(Path(__file__).parents[2])
    found = bench("rebuild", "--chunks", "5", "--questions", "1", PYTHONPATH=here)
    assert [row["name"] for row in found["rows"]] == [
        *("answer, median", "answer, p95", "acknowledgement, median", "acknowledgement, p99")
    ]
    for row in found["rows"]:
        numbers(row, "rest_samples", "rebuild_samples", "rest_ms", "rebuild_ms", "ratio")
    assert found["chunks"] > 100


def doubled(value: int, tell: Tell) -> int:
    tell("doubling", 1, 2)
    return 2 * value


def refused(tell: Tell) -> None:
    raise IndexingError("the index is full")


def broken(tell: Tell) -> None:
    raise ZeroDivisionError


def killed(tell: Tell) -> None:
    os._exit(3)


def test_a_child_tells_how_far_it_is_and_hands_back_its_value() -> None:
    told: list[tuple[str, int, int]] = []
    assert in_child(doubled, 21, tell=lambda *said: told.append(said)) == 42
    assert told == [("doubling", 1, 2)]


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (refused, IndexingError, "^the index is full$"),
        (broken, TwohopError, "ZeroDivisionError"),
        (killed, TwohopError, "code 3"),
    ],
)
def test_what_goes_wrong_in_a_child_is_told(
    work: Callable[[Tell], None], kind: type[TwohopError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        in_child(work, tell=lambda *_: None)


def test_the_corpus_is_the_same_for_a_seed_and_grows_at_its_end(tmp_path: Path) -> None:
    small, large = list(Corpus(1).pages(30)), list(Corpus(1).pages(60))
    assert sum(page.chunks for page in large) == 60
    assert large[: len(small) - 1] == small[:-1]
    assert next(Corpus(2).pages(30)).text != small[0].text
    paths = Corpus(1).write(tmp_path, 200)
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    for part in ("\n|---|", "ERR_AB", "facets: {plan: Team}", "readers: [support]", " days"):
        assert part in text
    counts = Counter(re.findall(r"[a-z]+", text.casefold())).most_common(2000)
    # Zipf: the tenth word comes several times as often as the hundredth.
    assert counts[9][1] > 3 * counts[99][1] > 9 * counts[999][1]


@pytest.mark.parametrize("sizes", ["", "x", "0,5", "10,"])
def test_sizes_that_are_none_are_refused_by_name(sizes: str) -> None:
    result = CliRunner().invoke(app, ["bench", "search", "--sizes", sizes])
    assert isinstance(result.exception, ConfigError)
    assert repr(sizes) in str(result.exception)
