"""Rules in tables: each cell that is a duration or a prohibition, with its column's header and its row's other cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ingest.atoms import atoms
from ingest.rules.anchor import RUNS, known_anchor, noun_anchor
from ingest.rules.period import NOTICE, Period, amounts, periods_in, runs_from, states_a_rule, tells_a_story
from ingest.rules.sentence import FORBIDS, HEDGE, conditions_in
from ingest.types import Rule
from ingest.words import fold

# The patterns are matched against folded text: lower case, without accents.

_RATE = re.compile(
    r"\b(?:per|each|every|cada|por) (?:day|week|month|hour|year|minute|second|dia|mes|ano|hora)\b|/ ?[a-z]|\ba (?:day|week|month|year)$"
)
_BARE_NO = re.compile(r"(?:none|no|never|not|n/a|ningun[oa]?|nunca|✗|✘|❌|x)\.?")
_NAMES_RIGHT = re.compile(
    r"\b(?:refund|return|exchange|warranty|guarantee|right|window|period|entitle|reembols|devoluc|garantia|plazo|derecho)\w*"
)
_CELL_FORBIDS = re.compile(
    r"(?:no (?:right|target|refunds?|returns?|warranty|guarantee|entitlement|credits?)|sin |cannot |can['’]t |"
    r"not (?:\w+able|offered|available|included|covered|possible|given|granted)|no reembols|no se )"
)
_TERM_HEADER = re.compile(
    r"\b(?:renews?|renewed|every|frequency|interval|cycle|se renueva|frecuencia|cada)\b"
)
"""Columns that tell how long a term is or how often something comes, which is no window."""
_FROM_HEADER = re.compile(
    r"\b(?:from|starts?|runs?|after|anchor|since|desde|measured|counted|counts?|corre|cuenta|a partir|inicio)\b"
)


def in_table(rows: Sequence[Sequence[str]], base: Rule, section_anchor: str | None) -> Iterator[Rule]:
    """Yield the rules that a table states, row by row; the first row is its header."""
    header, *body = rows
    for row in body:
        pairs = list(zip(header, row, strict=False))
        stated = [
            _cell(name, cell) if place or len(pairs) == 1 else None
            for place, (name, cell) in enumerate(pairs)
        ]
        labels = [
            f"{name}: {cell}" if name else cell
            for (name, cell), own in zip(pairs, stated, strict=True)
            if own is None and _is_label(cell)
        ]
        running = next(
            (
                anchor
                for name, cell in pairs
                if _FROM_HEADER.search(fold(name)) and (anchor := _cell_anchor(cell))
            ),
            None,
        )
        conditions = tuple(text for _, cell in pairs for _, _, text in conditions_in(cell, fold(cell)))
        for place, (name, cell) in enumerate(pairs):
            read = stated[place]
            if read is None:
                continue
            own = f"{name}: {cell}" if name else cell
            kept = [
                f"{other}: {value}" if other else value
                for at, (other, value) in enumerate(pairs)
                if at == place or (stated[at] is None and _is_label(value))
            ]
            told = replace(
                base,
                text="; ".join(kept or [own]),
                labels=(name, *labels),
                hedges=tuple(match.group() for match in HEDGE.finditer(fold(own))),
                conditions=conditions,
            )
            if isinstance(read, str):
                yield replace(told, polarity="forbids")
                continue
            anchor, before = runs_from(read)
            early = before or bool(NOTICE.search(fold(name)))
            anchor = anchor or running or _header_anchor(name) or (None if early else section_anchor)
            for amount, unit in amounts(read):
                yield replace(told, amount=amount, unit=unit, anchor=anchor, before=early)


def _is_label(cell: str) -> bool:
    """Tell whether a cell names what its row is about: short, and neither a length of time nor a bare amount."""
    if (
        len(cell) > 60
        or not re.search(r"[^\W\d_]", cell)
        or re.fullmatch(r"[\d.,%€$£ ]+[a-z]{0,3}", fold(cell))
    ):
        return False
    return not any(atom.kind == "duration" for atom in atoms(cell))


def _cell(name: str, cell: str) -> Period | Literal["forbids"] | None:
    """Read a cell that is a duration or a prohibition; None for a label."""
    folded = fold(cell)
    if not cell or len(cell) > 90 or _TERM_HEADER.search(fold(name)):
        return None
    # A bare "none" denies only what its column promises: a notice of none is no prohibition.
    if _BARE_NO.fullmatch(folded) and _NAMES_RIGHT.search(fold(name)):
        return "forbids"
    periods = list(periods_in(cell, folded))
    if not periods:
        denies = _CELL_FORBIDS.match(folded) or any(match.start() < 12 for match in FORBIDS.finditer(folded))
        return "forbids" if denies else None
    if len(periods) != 1 or _RATE.search(folded) or not list(amounts(periods[0])):
        return None
    # A cell that is a sentence states a rule as a sentence does.
    stated = not tells_a_story(periods[0]) and (
        len(folded.split()) <= 5 or states_a_rule(periods[0], None, (name,))
    )
    return periods[0] if stated else None


def _cell_anchor(cell: str) -> str | None:
    return known_anchor(fold(cell)) or noun_anchor(fold(cell))


def _header_anchor(name: str) -> str | None:
    match = RUNS.search(fold(name))
    return known_anchor(match["what"]) if match else None
