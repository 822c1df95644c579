"""The figures as tables, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bot.evaluate.figures import (
    COUNTED,
    area,
    by_type,
    count,
    grouped,
    periods,
    rate,
    retrieval,
    risk,
    routes,
    sets,
    stages,
    words,
)
from bot.evaluate.intervals import Mean
from bot.evaluate.ranking import METRICS
from bot.evaluate.record import Asked, Run, Searched, Sentence


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title; the first column names the row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def markdown(table: Table) -> str:
    """Return a table as Markdown, its columns aligned."""
    lines = [table.head, *table.rows]
    wide = [max(len(line[i]) for line in lines) for i in range(len(table.head))]
    shown = [
        "| "
        + " | ".join(
            cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, wide, strict=True))
        )
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(wide)) + "|"
    return "\n".join(
        [f"### {table.title}", "", shown[0], rule, *shown[1:], *(["", table.note] if table.note else [])]
    )


def tables(run: Run) -> list[Table]:
    """Return all tables of a run: each set's, all sets together where there are several, searches and sentences."""
    found: list[Table] = []
    for name, records in sets(run.asked).items():
        modes = grouped(records, lambda r: str(r.mode))
        found += [outcomes(name, mode, of, run.seed) for mode, of in modes.items()]
        found += side_by_side(name, modes, run.seed)
    return [*found, *of_sets(run), *of_queries(run), *of_sentences(run)]


def of_sets(run: Run) -> list[Table]:
    """Return the outcomes by set in each mode, where there are several sets."""
    if len({r.set for r in run.asked}) < 2:
        return []
    return [
        Table(
            f"by set, mode {mode}",
            ("set", *_HEAD),
            tuple(_counts(name, held, run.seed) for name, held in sets(of).items()),
        )
        for mode, of in grouped(run.asked, lambda r: str(r.mode)).items()
    ]


def of_queries(run: Run) -> list[Table]:
    """Return how well the queries of each public set are searched."""
    found: list[Table] = []
    for name, queries in grouped(run.searched, lambda s: s.set).items():
        arms: dict[str, list[Searched]] = grouped(queries, lambda s: str(s.arm))
        found.append(_retrieval(name, arms, run.seed))
    return found


def of_sentences(run: Run) -> list[Table]:
    """Return how well rules are found in each set of sentences."""
    found = [_sentences(name, of) for name, of in grouped(run.sentences, lambda s: s.set).items()]
    return [table for of in found for table in of]


def shown(value: Mean) -> str:
    """Write a mean with its interval: .61 (.52-.70)."""
    if not value.n:
        return "–"
    mean, low, high = (f"{of:.2f}".removeprefix("0") for of in (value.value, value.low, value.high))
    return f"{mean} ({low}–{high})"


def percent(value: Mean) -> str:
    """Write a share with its interval: 31 % (18-46)."""
    return f"{value.value:.0%} ({value.low:.0%}–{value.high:.0%})".replace("%–", "–") if value.n else "–"


_HEAD = ("n", *(name for name in COUNTED if name != "crash"))


def _counts(name: str, records: Sequence[Asked], seed: int) -> tuple[str, ...]:
    share = rate(records, "right", seed)
    right = f"{count(records, 'right')} ({share.low:.0%}–{share.high:.0%})".replace("%–", "–")
    return (name, str(len(records)), right, *(str(count(records, kind)) for kind in _HEAD[2:]))


def outcomes(name: str, mode: str, records: Sequence[Asked], seed: int) -> Table:
    """Return the outcomes by type."""
    crashes = count(records, "crash")
    rows = tuple(_counts(kind, of, seed) for kind, of in by_type(records).items())
    note = f"{crashes} crashed; see the log." if crashes else ""
    return Table(f"{name}, mode {mode}", ("type", *_HEAD), rows, note)


def side_by_side(name: str, modes: Mapping[str, Sequence[Asked]], seed: int) -> list[Table]:
    """Return what is compared between modes: rates, retrieval, routes, time."""
    head = tuple(modes)
    curves = {mode: risk(of) for mode, of in modes.items()}
    rates = [
        (kind, *(percent(rate(of, kind, seed)) for of in modes.values()))
        for kind in COUNTED
        if any(count(of, kind) for of in modes.values())
    ]
    rates += [
        ("median words", *(f"{words(of):g}" for of in modes.values())),
        ("area under risk-coverage", *(f"{area(curve):.3f}" for curve in curves.values())),
    ]
    found = [Table(f"{name}: outcomes, 95 % intervals", ("", *head), tuple(rates))]
    if any(r.metrics for of in modes.values() for r in of):
        found.append(_retrieval(name, modes, seed))
    found.append(_routes(name, modes))
    longest = sorted(map(stages, modes.values()), key=len, reverse=True)
    names = dict.fromkeys(stage for of in longest for stage in of)
    times = [(stage, *(f"{stages(of).get(stage, 0.0):.1f}" for of in modes.values())) for stage in names]
    times.append(("median of the whole", *(f"{median(r.ms for r in of):.1f}" for of in modes.values())))
    found.append(Table(f"{name}: mean milliseconds by stage", ("", *head), tuple(times)))
    return found


def _retrieval(name: str, columns: Mapping[str, Sequence[Asked | Searched]], seed: int) -> Table:
    means = {column: retrieval(of, seed) for column, of in columns.items()}
    n = max(value.n for of in means.values() for value in of.values())
    rows = tuple((metric, *(shown(of[metric]) for of in means.values() if of)) for metric in METRICS)
    return Table(
        f"{name}: what searches returned, {n} questions", ("", *(c for c, of in means.items() if of)), rows
    )


def _routes(name: str, modes: Mapping[str, Sequence[Asked]]) -> Table:
    rows = tuple(
        (mode, expected, taken, str(cell.n), str(cell.right), f"{cell.searches:.1f}", f"{cell.calls:.1f}")
        for mode, of in modes.items()
        for (expected, taken), cell in routes(of).items()
    )
    return Table(
        f"{name}: routes and what they cost",
        ("mode", "expected", "taken", "n", "right", "searches", "model calls"),
        rows,
    )


def _sentences(name: str, sentences: Sequence[Sentence]) -> list[Table]:
    share = {
        what: f"{hits}/{n}" + (f" {hits / n:.0%}" if n else "")
        for what, (hits, n) in periods(sentences).items()
    }
    kinds = sorted(
        grouped(sentences, lambda s: s.kind).items(), key=lambda kind: (not kind[1][0].states_rule, kind[0])
    )
    rows = tuple(
        (
            kind,
            "yes" if of[0].states_rule else "no",
            str(len(of)),
            str(sum(s.found for s in of)),
            f"{sum(s.same_period for s in of)}/{sum(s.period for s in of)}"
            if any(s.period for s in of)
            else "–",
        )
        for kind, of in kinds
    )
    return [
        Table(f"{name}: rules found in sentences", ("", "share"), tuple(share.items())),
        Table(
            f"{name}: by kind",
            ("kind", "states a rule", "n", "rule found", "amount and unit right"),
            rows,
        ),
    ]
