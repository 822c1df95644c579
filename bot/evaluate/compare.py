"""Compares two runs over the questions that both asked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from bot.evaluate.figures import COUNTED, TOTAL, grouped
from bot.evaluate.intervals import Mean, mean
from bot.evaluate.ranking import METRICS
from bot.evaluate.record import Asked, Run
from bot.evaluate.tables import Table
from ingest.errors import ConfigError

Pair = tuple[Asked, Asked]
"""One question, as the run before and the run after answered it."""
_KINDS = ("right", "wrong", "harmful", "refused")
_SHOWN = 60


def compare(before: Run, after: Run) -> list[Table]:
    """Return the differences as tables: rates by type, retrieval, and every question whose outcome changed.

    Runs of one mode each are compared whatever their modes are, others mode by mode. Raises ConfigError where they have
    no question in common.
    """
    pairs = _pairs(before, after)
    searched = _searched(before, after)
    if not pairs and not searched:
        raise ConfigError("the two results have no question in common; evaluate the same sets twice")
    groups = grouped(pairs, _title)
    if len(groups) > 1:
        groups |= {f"all sets, {mode}": of for mode, of in grouped(pairs, _modes).items()}
    found: list[Table] = []
    for title, of in groups.items():
        found.append(_rates(title, of, before.seed))
        measured = [(was.metrics, now.metrics) for was, now in of if was.metrics and now.metrics]
        found += [_retrieval(title, measured, before.seed)] if measured else []
    found += [_retrieval(title, metrics, before.seed) for title, metrics in searched.items()]
    return [*found, _changed(pairs)] if pairs else found


def _pairs(before: Run, after: Run) -> list[Pair]:
    alike = all(len({r.mode for r in run.asked}) == 1 for run in (before, after))

    def key(record: Asked) -> Hashable:
        return (record.set, record.id) if alike else (record.set, record.id, record.mode)

    was = {key(record): record for record in before.asked}
    return [(was[key(record)], record) for record in after.asked if key(record) in was]


def _title(pair: Pair) -> str:
    return f"{pair[1].set}, {_modes(pair)}"


def _modes(pair: Pair) -> str:
    was, now = (record.mode for record in pair)
    return f"mode {now}" if was == now else f"mode {was} → {now}"


def _searched(before: Run, after: Run) -> dict[str, list[tuple[Mapping[str, float], Mapping[str, float]]]]:
    was = {(s.set, s.arm, s.id): s.metrics for s in before.searched}
    both = [s for s in after.searched if (s.set, s.arm, s.id) in was]
    return {
        title: [(was[s.set, s.arm, s.id], s.metrics) for s in of]
        for title, of in grouped(both, lambda s: f"{s.set}, {s.arm}").items()
    }


def _rates(title: str, pairs: Sequence[Pair], seed: int) -> Table:
    rows = []
    for name, of in {**dict(sorted(grouped(pairs, lambda p: p[1].type).items())), TOTAL: pairs}.items():
        cells = [
            points(
                mean(
                    [
                        float(now.outcome in COUNTED[kind]) - float(was.outcome in COUNTED[kind])
                        for was, now in of
                    ],
                    seed,
                )
            )
            for kind in _KINDS
        ]
        rows.append((name, str(len(of)), *cells))
    note = "Differences in percentage points, with paired 95 % intervals."
    return Table(f"{title}: after minus before", ("type", "n", *_KINDS), tuple(rows), note)


def _retrieval(
    title: str, metrics: Sequence[tuple[Mapping[str, float], Mapping[str, float]]], seed: int
) -> Table:
    rows = []
    for name in METRICS:
        change = mean([now[name] - was[name] for was, now in metrics], seed)
        interval = f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})"
        rows.append(
            (name, *(f"{sum(of[i][name] for of in metrics) / len(metrics):.3f}" for i in (0, 1)), interval)
        )
    head = ("", "before", "after", "difference")
    return Table(f"{title}: what searches returned, {len(metrics)} questions", head, tuple(rows))


def _changed(pairs: Sequence[Pair]) -> Table:
    rows = tuple(
        (f"{now.set} {now.id}", was.outcome, now.outcome, now.question[:_SHOWN])
        for was, now in pairs
        if was.outcome != now.outcome
    )
    return Table(
        f"{len(rows)} of {len(pairs)} questions changed", ("question", "before", "after", "text"), rows
    )


def points(change: Mean) -> str:
    """Write a difference of shares: +8 (-3 to +18)."""
    return f"{100 * change.value:+.0f} ({100 * change.low:+.0f} to {100 * change.high:+.0f})"
