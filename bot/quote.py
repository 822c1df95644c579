"""The answer that needs no model: the sentences that decide, with what limits them, where they stand, and the case's fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bot.facts.scorer import Scored
from bot.types import Aspect
from ingest.atoms import codes
from ingest.units import Unit, units
from ingest.words import mentions, stems, words

_MOST = 3
"""Units of an aspect."""
_NEAR = 3.0
"""How far, in the scorer's units, a unit may stand behind the best one."""
_ALIKE = 0.7
"""Share of a unit's stems that another one holds, from which it says nothing new."""
_LIMITS = frozenset(
    "unless except only but however if provided otherwise then not salvo excepto solo pero si sino außer nur aber wenn sauf sinon".split()
)
"""Words with which a neighbouring sentence limits one."""
NEAR = 0.42
"""Cosine from which a unit may stand in a comparison."""
ANSWERS = ((0.35, 0.8), (0.42, 0.5), (0.6, 0.2))
"""Cosine between aspect and unit, and share (by rarity) of the aspect's words that its chunk holds, from which a unit
answers: the less of the one, the more of the other."""
ASKING = frozenset(
    stems(
        "how much many get gets includes include included has have does can could would may might which what when where who tell know "
        "need want give use there any please about cost costs one quick morning good hello hi your our we you they customer customers "
        "long often max maximum do make made exactly currently now today entitled entitlement eligible allowed right ticket case still"
    )
)
"""Words that ask for something without saying of what."""
ORDERS = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instructions?|rules|prompts?)\b|\b(dear|to the) (assistant|ai|bot)\b|"
    r"\byou (must|should|shall) (now )?(say|tell|answer|reply|confirm)\b",
    re.IGNORECASE,
)
"""Sentences that address whoever reads for somebody: they are no answer to anything."""


def quote(aspect: Aspect, found: Sequence[Scored], *, asked: Sequence[str] = ()) -> list[Scored]:
    """Return the units that decide an aspect, best first: of a how-to all steps in their order, of a comparison some for
    each of its values, of a question that names codes those that hold one (`asked`)."""
    fit = [one for one in found if not ORDERS.search(one.unit.text)]
    if asked:
        fit = [one for one in fit if set(asked) & set(codes(_whole(one)))]
    if aspect.intent == "howto":
        return _steps(fit)
    compared = [value for said in aspect.values.values() for value in said]
    if aspect.intent == "compare" and len(compared) > 1:
        chosen: list[Scored] = []
        for value in compared:
            own = [one for one in fit if mentions(_whole(one), [value])]
            chosen += [one for one in _best(own)[:2] if one not in chosen]
        return chosen
    return _best(fit)


def decides(
    text: str, best: Sequence[Scored], found: Sequence[Scored], asked: Sequence[str], *, compares: bool
) -> bool:
    """Tell whether the best units answer: near in meaning, and their chunk holds the words that make the question.

    `found` is everything that was scored: what is in none of it cannot be answered from it.
    """
    if not best:
        return False
    if asked:
        return True
    if compares:
        return max(one.nearness for one in best) >= NEAR
    wanted = set(stems(text)) - ASKING
    chunks = {one.chunk.id: one.chunk for one in found}.values()
    held = {chunk.id: set(stems(f"{chunk.title} {chunk.section} {chunk.body}")) for chunk in chunks}
    everywhere = Counter(stem for of in held.values() for stem in of)
    names = [stem for name in re.findall(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][\w-]+", text) for stem in stems(name)]
    if any(name not in everywhere and name in wanted for name in names):
        return False  # what it asks about by name is nowhere in what was found
    weight = {stem: 1 / (1 + everywhere[stem]) ** 0.5 for stem in wanted}
    whole = sum(weight.values()) or 1.0
    shares = {id_: sum(weight[stem] for stem in wanted & of) / whole for id_, of in held.items()}
    return any(
        one.nearness >= near and shares[one.chunk.id] >= share for one in best for near, share in ANSWERS
    )


def line(one: Scored, n: int) -> str:
    """Write a unit as a line of an answer: where it stands, its words with what limits them, its evidence number."""
    place = ", ".join([one.chunk.title, *one.chunk.headings[-1:]])
    return f"- {place}: “{_shown(one.unit)}” [{n}]"


def _whole(one: Scored) -> str:
    return f"{one.chunk.title} {one.chunk.section} {one.unit.lead} {one.unit.text}"


def _best(found: Sequence[Scored]) -> list[Scored]:
    chosen: list[Scored] = []
    for one in found:
        if len(chosen) == _MOST or one.score < found[0].score - _NEAR:
            break
        held = set(stems(one.unit.text))
        if any(len(held & set(stems(_shown(other.unit)))) >= _ALIKE * max(1, len(held)) for other in chosen):
            continue
        if one.chunk.authority == "chat" and not chosen and _formal(found, one):
            continue
        if one.scope.other and chosen:
            continue
        chosen.append(one)
    return chosen


def _formal(found: Iterable[Scored], one: Scored) -> bool:
    return any(other.chunk.authority != "chat" and other.score >= one.score - _NEAR for other in found)


def _steps(found: Sequence[Scored]) -> list[Scored]:
    """Return all list items of the section of the best item, in order; the best units where there is no list."""
    best = next((one for one in found[: 2 * _MOST] if one.unit.kind == "item"), None)
    if best is None:
        return _best(found)
    same = [one for one in found if one.unit.kind == "item" and one.chunk.uri == best.chunk.uri]
    same = [one for one in same if one.chunk.headings == best.chunk.headings]
    order = {(one.chunk.id, unit.text): at for one in same for at, unit in enumerate(units(one.chunk.body))}
    return sorted(same, key=lambda one: (one.chunk.position, order[one.chunk.id, one.unit.text]))


def _shown(unit: Unit) -> str:
    text = f"{unit.lead} {unit.text}" if unit.lead and unit.kind == "item" else unit.text
    if unit.after and _LIMITS & set(words(unit.after)):
        text = f"{text} {unit.after}"
    return text
