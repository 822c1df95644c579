"""Fit the scorer of evidence units on desks with labelled questions, and tell what it finds on desks it was not fitted on.

    python -m tests.benchmarks.fit_scorer DESK DESK… [--write]

A unit decides a question if it stands in one of the labelled sources and holds one of its `must` strings, or gives a
window that ends on such a day. The loss is listwise: the softmax over a question's units, of the share that decides
(Cao et al. 2007, "Learning to rank: from pairwise approach to listwise approach"), with an L2 penalty, by Adam.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt

import bot
from bot.app import Desk
from bot.evaluate.labels import Labelled, QuestionSet, read
from bot.evaluate.run import ask, desk_of
from bot.facts.deciding import Deciding
from bot.facts.scorer import Scored
from bot.types import Aspect, EvidenceItem, Gazetteer
from ingest.dates import format_date
from ingest.words import words

_PENALTY = 0.01
_STEPS = 1500
_RATE = 0.05
_FIRST = 3
"""Units that an answer shows."""
_AT_MOST = {"out_of_force": -0.8, "chat": -0.5, "scope_other": -0.8}
"""Bounds that few labels must not lift: what is no longer in force, hearsay, and what is for others."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """The units of one question: features of shape (units, features), and which of them decide."""

    desk: str
    features: Floats
    decides: Floats


def main() -> None:
    """Print how often a deciding unit is the first, and among the first three, left out and not; write the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("desks", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="write bot/data/scorer.json")
    options = parser.parse_args()
    names: list[str] = []
    samples: list[Sample] = []
    for folder in options.desks:
        samples += _samples(folder, names)
    whole = fit(samples, names)
    left_out = [
        _hits(
            fit([s for s in samples if s.desk != folder.name], names),
            [s for s in samples if s.desk == folder.name],
        )
        for folder in options.desks
    ]
    for title, hits in (
        ("fitted on all", _hits(whole, samples)),
        ("on desks left out", tuple(map(sum, zip(*left_out, strict=True)))),
    ):
        print(f"{title}: first {hits[0]}, among {_FIRST} {hits[1]}, of {len(samples)}")  # noqa: T201 - a result
    if options.write:
        target = Path(bot.__file__).parent / "data" / "scorer.json"
        weights = {name: round(float(weight), 3) for name, weight in zip(names, whole, strict=True)}
        target.write_text(f"{json.dumps(weights, indent=2)}\n", encoding="utf-8")


def fit(samples: Sequence[Sample], names: Sequence[str]) -> Floats:
    """Return the weights that put the deciding units first, within their bounds."""
    most = np.array([_AT_MOST.get(name, np.inf) for name in names])
    weights = np.zeros(samples[0].features.shape[1])
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        slope = _PENALTY * weights * len(samples)
        for sample in samples:
            scores = sample.features @ weights
            share = np.exp(scores - scores.max())
            share /= share.sum()
            wanted = share * sample.decides
            slope += sample.features.T @ (share - wanted / wanted.sum())
        slope /= len(samples)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        weights -= _RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        weights = np.minimum(weights, most)
    return weights


def _hits(weights: Floats, samples: Sequence[Sample]) -> tuple[int, int]:
    order = [sample.decides[np.argsort(-(sample.features @ weights))] for sample in samples]
    return sum(int(ranked[0]) for ranked in order), sum(int(ranked[:_FIRST].any()) for ranked in order)


class _Recording(Deciding):
    """Keeps what it scored."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.remembered, desk.parts.calendar)
        self.last: list[Scored] = []

    def units(
        self, aspect: Aspect, evidence: Sequence[EvidenceItem], names: Gazetteer, today: date
    ) -> list[Scored]:
        self.last = super().units(aspect, evidence, names, today)
        return self.last


def _samples(folder: Path, names: list[str]) -> list[Sample]:
    target = read(folder)
    assert isinstance(target, QuestionSet), f"{folder} is no desk"
    found = []
    with desk_of(folder) as desk:
        for file in desk.settings.tickets.csv:
            desk.import_tickets(file)
        desk.sync_documents()
        desk.sync_tickets()
        recording = _Recording(desk)
        object.__setattr__(desk.parts, "deciding", recording)
        object.__setattr__(desk.parts.fallback, "_deciding", recording)
        for question in target.questions:
            recording.last = []
            desk.run(ask(desk, folder.name, [question], ["gated"]))
            names[:] = names or list(recording.last[0].features) if recording.last else names
            decides = np.array([float(_decides(question, one)) for one in recording.last])
            if decides.any():
                rows = [[one.features[name] for name in names] for one in recording.last]
                found.append(Sample(folder.name, np.array(rows), decides))
    return found


def _decides(question: Labelled, one: Scored) -> bool:
    ends = " ".join(format_date(window.end.at) for window in one.windows if one.scope.holds)
    said = f" {' '.join(words(f'{one.unit.lead} {one.unit.text} {ends}'))} "
    alternatives = [text for entry in question.must for text in entry]
    return one.chunk.uri in question.sources and any(f" {' '.join(words(a))} " in said for a in alternatives)


if __name__ == "__main__":
    main()
