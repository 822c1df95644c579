"""Units: what of a text can be quoted alone (a sentence, a list item, a table row), with what stands around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from ingest.blocks import Block, blocks, cells, plain, sentences
from ingest.words import words

UnitKind = Literal["sentence", "item", "row", "code"]
_LONGEST_LABEL = 100
"""Characters of a paragraph that may introduce what follows it; a longer one is text of its own."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One quotable piece of a text, without Markdown's marks.

    `The item "proof of purchase" below "You need:"` is `Unit("proof of purchase", "item", lead="You need:")`.
    """

    text: str
    kind: UnitKind
    lead: str = ""
    """What introduces it: the line before its list or table, or a question that stands alone above it."""
    before: str = ""
    """The sentence before it in its paragraph."""
    after: str = ""
    """The sentence after it in its paragraph."""
    cells: tuple[tuple[str, str], ...] = ()
    """Of a row: header and cell, in order; empty cells are left out."""

    @property
    def label(self) -> str:
        """What a row is about: its first cell with its header."""
        return " ".join(self.cells[0]) if self.cells else ""


@lru_cache(maxsize=4096)
def units(text: str) -> tuple[Unit, ...]:
    """Split Markdown into its units, in order; headings and lines without two words are none."""
    found: list[Unit] = []
    lead = ""
    question = ""
    for block in blocks(text):
        if block.kind == "heading":
            lead = question = ""
        elif block.kind == "table":
            found += _rows(block, lead or question)
            lead = ""
        elif block.kind == "item":
            found += _said([plain(block.text)], "item", lead or question)
        elif block.kind == "code":
            found += _said([block.text], "code", lead or question)
        else:
            said = [plain(line) for line in sentences(block.text)]
            alone = len(said) == 1 and len(said[0]) <= _LONGEST_LABEL
            if alone and said[0].endswith("?"):
                question, lead = said[0], ""
                continue
            found += _said(said, "sentence", question)
            lead = said[-1] if said and said[-1].endswith(":") else ""
    return tuple(found)


def _said(lines: list[str], kind: UnitKind, lead: str) -> Iterator[Unit]:
    lines = [line for line in lines if len(words(line)) > 1]
    for at, line in enumerate(lines):
        before = lines[at - 1] if at else ""
        after = lines[at + 1] if at + 1 < len(lines) else ""
        yield Unit(line, kind, lead, before, after)


def _rows(block: Block, lead: str) -> Iterator[Unit]:
    header, *rows = block.lines
    names = cells(header)
    for row in rows:
        pairs = tuple((name, cell) for name, cell in zip(names, cells(row), strict=False) if cell)
        if pairs:
            yield Unit(written(pairs), "row", lead, cells=pairs)


def written(pairs: tuple[tuple[str, str], ...]) -> str:
    """Write cells out as one line: `Plan: Team; Window: 30 days`."""
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)


def narrowed(unit: Unit, keep: frozenset[int]) -> Unit:
    """Return a row with these of its cells alone."""
    pairs = tuple(pair for at, pair in enumerate(unit.cells) if at in keep)
    return replace(unit, cells=pairs, text=written(pairs))
