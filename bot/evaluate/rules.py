"""Runs the rule finder over labelled sentences, each as a document of its own."""

from __future__ import annotations

from typing import get_args

from bot.evaluate.labels import RuleSentence, RuleSet
from bot.evaluate.record import Sentence
from ingest.chunk import chunk
from ingest.types import Document, Rule, Unit


def find(of: RuleSet) -> tuple[Sentence, ...]:
    """Return what the rule finder made of each sentence."""
    return tuple(_found(of.name, sentence) for sentence in of.sentences)


def _found(name: str, sentence: RuleSentence) -> Sentence:
    document = Document(
        uri=f"sentences:{sentence.id}",
        source="sentences",
        revision="",
        title=sentence.heading or "Rules",
        text=sentence.text,
        link="",
    )
    rules = [rule for piece in chunk(document, _count) for rule in piece.rules]
    period = next((rule for rule in rules if rule.amount is not None), None)
    labelled = sentence.unit in get_args(Unit) and sentence.amount is not None
    return Sentence(
        set=name,
        id=sentence.id,
        kind=sentence.kind,
        states_rule=sentence.states_rule,
        found=bool(rules),
        period=labelled,
        found_period=period is not None,
        same_period=period is not None and labelled and _same(period, sentence),
    )


def _same(rule: Rule, sentence: RuleSentence) -> bool:
    return (rule.amount, rule.unit) == (sentence.amount, sentence.unit)


def _count(text: str) -> int:
    return len(text.split())
