"""The page: one self-contained HTML file with plots, the tables beside them, and what was not right."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import get_args

from bot.evaluate.figures import TOTAL, by_type, failed, grouped, risk, routes, sets, stages
from bot.evaluate.judge import Outcome
from bot.evaluate.plots import bars, curves, matrix
from bot.evaluate.record import Asked, Run
from bot.evaluate.tables import Table, of_queries, of_sentences, of_sets, outcomes, side_by_side

_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def render(run: Run) -> str:
    """Return the page; it refers to nothing outside itself, and whatever was read is escaped."""
    css = (resources.files("bot.evaluate") / "page.css").read_text("utf-8")
    measured = dict.fromkeys(r.set for of in (run.asked, run.searched, run.sentences) for r in of)
    lead = (
        f"{', '.join(measured)}. Intervals are 95 %, by resampling the questions (seed {run.seed}). "
        "Right counts answers without the verdict of their label (undecided) and refusals where nothing was there to "
        "answer with (abstained); wrong counts answers that say it too late."
    )
    body = [f'<h1>How good the answers are</h1><p class="lead">{escape(lead)}</p>']
    if len(sets(run.asked)) > 1:
        body.append(f'<h2>By set</h2><div class="pair">{"".join(map(_table, of_sets(run)))}</div>')
    body += [_set(name, records, run.seed) for name, records in sets(run.asked).items()]
    if run.searched:
        body.append("<h2>Public sets: documents found</h2>" + "".join(map(_table, of_queries(run))))
    if run.sentences:
        body.append("<h2>Rules found in sentences</h2>" + "".join(map(_table, of_sentences(run))))
    body.append(_failures(failed(run.asked)))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Twohop: evaluation</title><style>{css}</style><body>{''.join(body)}</body></html>\n"
    )


def _set(name: str, records: Sequence[Asked], seed: int) -> str:
    modes = grouped(records, lambda r: str(r.mode))
    rates, *rest = side_by_side(name, modes, seed)
    retrieval = [table for table in rest if "returned" in table.title]
    paths, times = (next(t for t in rest if part in t.title) for part in ("routes", "milliseconds"))
    parts = [f"<h2>{escape(name)}</h2>"]
    parts.append(_pair("Outcomes by mode", _bars([(mode, of) for mode, of in modes.items()], name), rates))
    for mode, of in modes.items():
        plot = _bars([(kind, held) for kind, held in by_type(of).items() if kind != TOTAL], name)
        parts.append(_pair(f"Outcomes by type, mode {mode}", plot, outcomes(name, mode, of, seed)))
    lines = {mode: [(p.coverage, p.risk) for p in risk(of)] for mode, of in modes.items()}
    plot = curves(lines, "answered, of all questions", "wrong or harmful, of these", "risk against coverage")
    parts.append(_pair("Risk against coverage, the surest answers first", plot, *retrieval))
    plots = "".join(
        f"<div><h3>{escape(f'mode {mode}')}</h3>{_matrix(of)}</div>" for mode, of in modes.items()
    )
    parts.append(
        _pair("Routes: expected (rows) and taken (columns)", f'<div class="many">{plots}</div>', paths)
    )
    spent = {mode: stages(of) for mode, of in modes.items()}
    names = list(dict.fromkeys(s for of in sorted(spent.values(), key=len, reverse=True) for s in of))
    parts.append(_pair("Time by stage", bars(list(spent.items()), names, "ms", "time by stage"), times))
    return "".join(parts)


def _bars(rows: Sequence[tuple[str, Sequence[Asked]]], name: str) -> str:
    counted: list[tuple[str, dict[str, float]]] = [
        (label, {outcome: float(sum(r.outcome == outcome for r in of)) for outcome in _OUTCOMES})
        for label, of in rows
    ]
    shown = [outcome for outcome in _OUTCOMES if any(of[outcome] for _, of in counted)]
    return bars(counted, shown, "", f"outcomes of {name}")


def _matrix(records: Sequence[Asked]) -> str:
    cells = {
        pair: (cell.n, f"{cell.right} right, {cell.searches:.1f} searches")
        for pair, cell in routes(records).items()
    }
    order = ("none", "direct", "escalated", "agent")
    rows, columns = ([one for one in order if any(one == pair[i] for pair in cells)] for i in (0, 1))
    return matrix(cells, rows, columns, "expected and taken routes")


def _pair(title: str, plot: str, *beside: Table) -> str:
    held = "".join(map(_table, beside))
    return f'<div class="pair"><div class="card"><h3>{escape(title)}</h3>{plot}</div><div>{held}</div></div>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join(
        f"<tr{' class=total' if row[0] == TOTAL else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f'<div class="card"><h3>{escape(table.title)}</h3><table><tr>{head}</tr>{rows}</table>{note}</div>'


def _failures(records: Sequence[Asked]) -> str:
    if not records:
        return ""
    shown = "".join(map(_failure, records))
    return f'<h2>Not right: {len(records)}</h2><div class="card">{shown}</div>'


def _failure(record: Asked) -> str:
    colour = f"var(--{record.outcome})"
    why = (
        f"type {record.type}, route {record.route} (expected {record.expected_route}); "
        f"{record.why or 'no verdict'}"
    )
    return (
        f'<details><summary><span class="tag" style="background:{colour}">{escape(record.outcome)}</span>'
        f"<b>{escape(f'{record.set} {record.id}, {record.mode}')}</b> {escape(record.question)}</summary>"
        f'<p class="why">{escape(why)}</p><p>{escape(record.answer)}</p></details>'
    )
