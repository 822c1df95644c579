"""Questions that the record alone decides: is the ticket open, is it a Team customer, is it assigned to Marc."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from bot.gate import RECORD
from bot.types import Verdict
from bot.verdict.case import Case
from bot.verdict.topic import GENERIC, points, topic_of
from bot.verdict.wording import cite
from ingest.words import mentions, stems, words

_ASKS = re.compile(
    r"^(?:(?!how|what|when|why|who|which|where)\w+ ){0,4}?(?:is|isnt|isn|are|was|wasnt|does|has|did|esta|es|tiene)\b"
)
_ADDED = frozenset(stems("number address buyer shop store it give me tell contact"))
"""Words beside the name of a personal column that ask for nothing else."""
_FIELDS = frozenset(
    stems(
        "assigned assignee owned own owns handled handling handle status state priority stand set still yet marked"
    )
)


def of_record(
    text: str, case: Case, vocabulary: Mapping[str, Collection[str]], personal: Collection[str] = ()
) -> Verdict | None:
    """Decide a yes-or-no question about one field of the ticket, or return None where it asks for more.

    `vocabulary` is field name to known values, with status and assignee among them; `personal` are the columns that
    are not shown, and a question about one of them is told so.
    """
    if case.evidence and (column := _withheld(text, personal)):
        said = f"{column[0].upper()}{column[1:]} of {case.label} is in a personal column, and personal columns are not shown"
        return Verdict("rule", f"{said} {cite(case.evidence)}.", (case.evidence,), facts=dict(case.record))
    if not case.evidence or case.supposed or points(text) or not _ASKS.search(" ".join(words(text))):
        return None
    asked = {name: named for name in case.record if (named := _named(text, vocabulary.get(name, ())))}
    if not asked or topic_of(text, vocabulary, {}) - _FIELDS - _firsts(asked):
        return None
    right = all(any(_same(value, case.record[name]) for value in named) for name, named in asked.items())
    facts = ", ".join(f"{name} {case.record[name] or 'not set'}" for name in asked)
    label = f"{case.label[0].upper()}{case.label[1:]}"
    several = any(len(named) > 1 for named in asked.values())
    lead = "" if several else "Yes. " if right else "No. "
    return Verdict(
        "rule" if several else "yes" if right else "no",
        f"{lead}{label} has {facts} {cite(case.evidence)}.",
        (case.evidence,),
        facts=dict(case.record),
    )


def _withheld(text: str, personal: Collection[str]) -> str:
    """Return the personal column that a question asks for and nothing else, or an empty string."""
    wanted = frozenset(stems(text.replace("e-mail", "email"))) - _FIELDS - RECORD - GENERIC
    for column in personal:
        own = stems(column.replace("_", " "))
        # Of "contact_email" people say the email.
        if own and own[-1] in wanted and wanted <= {*own, *_ADDED}:
            return column.replace("_", " ")
    return ""


def _named(text: str, values: Collection[str]) -> tuple[str, ...]:
    """Return the values that a text names, people also by their first names."""
    whole = mentions(text, values)
    spoken = set(words(text))
    return whole or tuple(value for value in values if " " in value and words(value)[0] in spoken)


def _firsts(asked: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    return frozenset(stem for named in asked.values() for value in named for stem in stems(value))


def _same(value: str, fact: str) -> bool:
    return value.casefold() == fact.casefold()
