"""Intervals of means by resampling the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TIMES = 2000


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over questions with its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


def mean(values: Sequence[float], seed: int) -> Mean:
    """Return the mean of one value a question with the percentile bootstrap's interval (Efron 1979), equal for equal seeds.

    Of paired differences it is the paired interval: a question is drawn with what both sides made of it.
    """
    import numpy as np

    if not values:
        return Mean(0.0, 0.0, 0.0, 0)
    held = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(held), (TIMES, len(held)))
    low, high = np.percentile(held[drawn].mean(axis=1), (2.5, 97.5))
    return Mean(float(held.mean()), float(low), float(high), len(held))
