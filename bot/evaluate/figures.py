"""The figures: counts and rates by type, the routes and their cost, retrieval, risk against coverage, time by stage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any, TypeVar

from bot.evaluate.intervals import Mean, mean
from bot.evaluate.judge import Outcome
from bot.evaluate.ranking import METRICS
from bot.evaluate.record import Asked, Run, Searched, Sentence

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

COUNTED: Mapping[str, frozenset[Outcome]] = {
    "right": frozenset(("right", "undecided", "abstained")),
    "undecided": frozenset(("undecided",)),
    "abstained": frozenset(("abstained",)),
    "wrong": frozenset(("wrong", "late")),
    "late": frozenset(("late",)),
    "harmful": frozenset(("harmful",)),
    "refused": frozenset(("refused",)),
    "crash": frozenset(("crash",)),
}
"""What is counted, and the outcomes in it: right, wrong, harmful, refused and crash add up to all questions."""
SPLIT = ("right", "wrong", "harmful", "refused", "crash")
TOTAL = "all"


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the risk-coverage curve."""

    coverage: float
    """Share of all questions that are answered."""
    risk: float
    """Share of those that are wrong or harmful."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Questions of one expected route that took another, or the same."""

    n: int
    right: int
    searches: float
    calls: float
    """Means of a question."""


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by a key, in the order in which keys first occur."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def by_type(records: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Group records by type, and all of them last."""
    return {**dict(sorted(grouped(records, lambda r: r.type).items())), TOTAL: list(records)}


def count(records: Iterable[Asked], name: str) -> int:
    """Count the records of a counted kind."""
    return sum(record.outcome in COUNTED[name] for record in records)


def failed(records: Iterable[Asked]) -> list[Asked]:
    """Return what was not right, and may be looked at."""
    good = ("right", "abstained")
    return [record for record in records if record.outcome not in good and record.question]


def rate(records: Sequence[Asked], name: str, seed: int) -> Mean:
    """Return the share of a counted kind."""
    return mean([float(record.outcome in COUNTED[name]) for record in records], seed)


def retrieval(records: Sequence[Asked | Searched], seed: int) -> dict[str, Mean]:
    """Return the mean of each retrieval metric over the questions that have something to be found."""
    held = [record.metrics for record in records if record.metrics]
    return {name: mean([of[name] for of in held], seed) for name in METRICS} if held else {}


def routes(records: Sequence[Asked]) -> dict[tuple[str, str], Cell]:
    """Return for each expected route and each taken one how many went so, and what it cost."""
    return {
        pair: Cell(len(of), count(of, "right"), fmean(r.searches for r in of), fmean(r.calls for r in of))
        for pair, of in sorted(grouped(records, lambda r: (str(r.expected_route), str(r.route))).items())
    }


def risk(records: Sequence[Asked]) -> list[Point]:
    """Return the risk-coverage curve: the share of wrong among the answered, the surest first.

    El-Yaniv and Wiener (JMLR 2010). Answers of equal confidence are in no order: each counts as their mean.
    """
    points: list[Point] = []
    answered = sorted((r for r in records if r.answered), key=lambda r: -r.confidence)
    taken, failed = 0, 0.0
    for of in grouped(answered, lambda r: r.confidence).values():
        share = (count(of, "wrong") + count(of, "harmful")) / len(of)
        for _ in of:
            taken, failed = taken + 1, failed + share
            points.append(Point(taken / len(records), failed / taken))
    return points


def area(points: Sequence[Point]) -> float:
    """Return the area under the curve, as the mean risk over the answered: smaller is better."""
    return fmean(point.risk for point in points) if points else 0.0


def stages(records: Sequence[Asked]) -> dict[str, float]:
    """Return the mean milliseconds of each stage of the pipeline, in the order in which stages first occur."""
    names = dict.fromkeys(name for record in records for name in record.stages)
    return {name: fmean(record.stages.get(name, 0.0) for record in records) for name in names}


def words(records: Sequence[Asked]) -> float:
    """Return the median length of an answer in words."""
    return median([r.words for r in records if r.answered] or [0])


def periods(sentences: Sequence[Sentence]) -> dict[str, tuple[int, int]]:
    """Return hits and of how many: precision and recall of stating a rule, and of amount and unit."""
    found = [s for s in sentences if s.found]
    stating = [s for s in sentences if s.states_rule]
    same = sum(s.same_period for s in sentences)
    return {
        "states a rule, precision": (sum(s.states_rule for s in found), len(found)),
        "states a rule, recall": (sum(s.found for s in stating), len(stating)),
        "amount and unit, precision": (same, sum(s.found_period for s in sentences)),
        "amount and unit, recall": (same, sum(s.period for s in sentences)),
    }


def everything(run: Run) -> dict[str, Any]:
    """Return the figures of a run for machines: by set, by mode, by type."""
    asked = {
        name: {mode: _of_records(held, run.seed) for mode, held in grouped(of, lambda r: r.mode).items()}
        for name, of in sets(run.asked).items()
    }
    searched = {
        name: {
            arm: {metric: asdict(value) for metric, value in retrieval(held, run.seed).items()}
            for arm, held in grouped(of, lambda s: s.arm).items()
        }
        for name, of in grouped(run.searched, lambda s: s.set).items()
    }
    sentences = {name: periods(of) for name, of in grouped(run.sentences, lambda s: s.set).items()}
    return {"asked": asked, "searched": searched, "sentences": sentences}


def sets(records: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Group records by set; several sets are followed by all of them together."""
    groups = grouped(records, lambda r: r.set)
    return {**groups, "all sets": list(records)} if len(groups) > 1 else groups


def _of_records(records: Sequence[Asked], seed: int) -> dict[str, Any]:
    curve = risk(records)
    return {
        "types": {
            name: {
                "n": len(of),
                **{kind: {"count": count(of, kind), **asdict(rate(of, kind, seed))} for kind in COUNTED},
            }
            for name, of in by_type(records).items()
        },
        "outcomes": dict(Counter(r.outcome for r in records)),
        "retrieval": {name: asdict(value) for name, value in retrieval(records, seed).items()},
        "routes": [
            {"expected": expected, "taken": taken, **asdict(cell)}
            for (expected, taken), cell in routes(records).items()
        ],
        "risk": {"area": area(curve), "curve": [asdict(point) for point in curve]},
        "stages_ms": stages(records),
        "median_words": words(records),
        "median_ms": median(r.ms for r in records),
    }
