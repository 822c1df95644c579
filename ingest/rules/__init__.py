"""Rules stated in text: how long, from when, allowed or forbidden; found once, at index time.

A sentence gives a rule where a duration stands in a construction that sets a window, a notice, a target or a
retention, where it forbids outright, or where it sets no limit at all. A table gives one for each cell that is a duration or a prohibition, with its
own column header and the row's other cells as labels. Questions, quoted speech and code give none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ingest.blocks import blocks, cells, plain, sentences
from ingest.rules.anchor import anchors_in, told_anchor
from ingest.rules.sentence import FORBIDS, forbids, in_sentence
from ingest.rules.table import in_table
from ingest.types import Chunk, Rule, Unit
from ingest.words import fold, stems

__all__ = ["RULES_VERSION", "anchors_in", "find_rules", "topics"]

RULES_VERSION = "5"
"""Part of the index's identity: raise it when other rules are found in the same text."""


def find_rules(chunk: Chunk) -> tuple[Rule, ...]:
    """Find the rules that a chunk states, in order."""
    base = Rule(
        text="",
        amount=None,
        unit=None,
        polarity="allows",
        headings=(chunk.title, *chunk.headings),
        uri=chunk.uri,
        chunk=chunk.id,
        authority=chunk.authority,
        effective_from=chunk.effective_from,
        superseded_on=chunk.superseded_on,
    )
    parts = [block for block in blocks(chunk.body) if block.kind not in ("quote", "code", "heading")]
    told = [line for block in parts if block.kind != "table" for line in sentences(block.text)]
    section_anchor = told_anchor(told)
    found: list[Rule] = []
    intros: list[tuple[int, str]] = []
    for block in parts:
        if block.kind == "table":
            found += in_table([cells(line) for line in block.lines], base, section_anchor)
            continue
        # An item is about what the line that opens its list is about: "For Team customers:".
        depth = block.indent if block.kind == "item" else -1
        intros = [intro for intro in intros if intro[0] < depth]
        under = replace(base, headings=(*base.headings, *(text for _, text in intros)))
        opens = block.text.endswith((":", ":**", ":*"))
        if not (opens and forbids(block.text)):
            stated = [rule for line in sentences(block.text) for rule in in_sentence(plain(line), under)]
            found += (_anchored(rule, section_anchor) for rule in _once(stated))
            # "The warranty does not cover:" forbids what its items name, each by itself.
            if not stated and intros and forbids(intros[-1][1]):
                found.append(replace(under, text=f"{intros[-1][1]}: {plain(block.text)}", polarity="forbids"))
        if opens:
            intros.append((depth, plain(block.text).rstrip(":")))
    return tuple(dict.fromkeys(found))


def _once(stated: Sequence[Rule]) -> Iterator[Rule]:
    """Leave out what only repeats a window from its far side: "After 30 days no refund is possible"."""
    lengths: set[tuple[int | None, Unit | None]] = set()
    for rule in stated:
        if (
            rule.amount is None
            or (rule.amount, rule.unit) not in lengths
            or not FORBIDS.search(fold(rule.text))
        ):
            yield rule
        lengths.add((rule.amount, rule.unit))


def _anchored(rule: Rule, section_anchor: str | None) -> Rule:
    if rule.amount is None or rule.anchor or rule.before:
        return rule
    return replace(rule, anchor=section_anchor)


def topics(rule: Rule) -> frozenset[str]:
    """Return the content stems of a rule: its words, labels and headings."""
    return _topics(rule.text, rule.labels, rule.headings)


@lru_cache(maxsize=65536)
def _topics(text: str, labels: tuple[str, ...], headings: tuple[str, ...]) -> frozenset[str]:
    return frozenset(stems(" ".join([text, *labels, *headings])))
