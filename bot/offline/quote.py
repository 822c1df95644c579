"""Quoting: which sentences of the evidence answer a question, and whether they do."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.filters import whole_codes
from bot.gate import asks
from bot.types import EvidenceItem, Gazetteer
from ingest.atoms import atoms, codes
from ingest.blocks import sentences, written_out
from ingest.embed import Embedder
from ingest.words import mentions, stems, words

NEAR = 0.42
"""Cosine between question and sentence from which a sentence may stand in a comparison."""
ANSWERS = ((0.35, 0.8), (0.42, 0.5), (0.6, 0.25))
"""Cosine between question and sentence, and share (by weight) of the question's words that its chunk holds, from
which a sentence answers: the less of the one, the more of the other."""
ASKING = frozenset(
    stems(
        "how much many get gets include includes included have has does can could would may might which what when where who tell know "
        "need want give use there any please about cost costs one quick morning good hello hi your our we you they customer customers "
        "long often max maximum do make made exactly currently now today entitled entitlement eligible allowed right ticket case still"
    )
)
"""Words that ask for something without saying of what."""


@dataclass(frozen=True, slots=True)
class Line:
    """One quotable line of the evidence."""

    item: EvidenceItem
    text: str
    score: float
    nearness: float


def best_lines(
    embedder: Embedder,
    text: str,
    docs: Sequence[EvidenceItem],
    names: Gazetteer,
    keep: Callable[[EvidenceItem, str], bool] = lambda _item, _line: True,
) -> list[Line]:
    """Return the best lines of those to keep: one for each thing compared, else up to four that are not repetitions."""
    options = [(item, line) for item in docs for line in quotable(item) if keep(item, line)]
    asked = set(whole_codes(text))
    if asked:
        options = [(i, line) for i, line in options if asked & set(codes(f"{i.title} {i.section} {line}"))]
        if not options:
            return []
    if not options:
        return []
    wanted = list(dict.fromkeys(stems(text)))
    pool = [frozenset(stems(f"{item.title} {item.section} {line}")) for item, line in options]
    frequency = Counter(stem for held in pool for stem in held)
    weight = {stem: math.log(1 + len(pool) / (1 + frequency[stem])) for stem in wanted}
    total = sum(weight.values()) or 1.0
    vectors = embedder.embed(
        [f"{item.title} > {item.section}: {line}" for item, line in options], kind="passage"
    )
    near = vectors @ embedder.embed([text], kind="query")[0]
    kinds = _expected(text)
    scored = [
        Line(
            item,
            line,
            0.6 * float(near[i])
            - (0.15 if item.chunk and item.chunk.authority == "chat" else 0)
            + (0.12 if kinds & {atom.kind for atom in atoms(line)} else 0)
            + 0.4 * sum(weight[s] for s in wanted if s in pool[i]) / total,
            float(near[i]),
        )
        for i, (item, line) in enumerate(options)
    ]
    scored.sort(key=lambda line: (-line.score, line.item.n))
    compared = [value for values in names.facets.values() for value in mentions(text, values)]
    if "compare" in asks(text) and len(compared) < 2:
        compared = next(
            (
                list(values)
                for name, values in names.facets.items()
                if name in words(text) or f"{name}s" in words(text)
            ),
            [],
        )
    chosen: list[Line] = []
    if len(compared) > 1:
        for value in compared:
            best = [ln for ln in scored if mentions(f"{ln.item.title} {ln.item.section} {ln.text}", [value])]
            chosen += [ln for ln in best[:2] if ln not in chosen]
        return chosen[:8]
    for line in scored:
        if line.score < 0.65 * scored[0].score or len(chosen) == 4:
            break
        held = set(stems(line.text))
        if all(len(held & set(stems(c.text))) < 0.7 * (len(held) or 1) for c in chosen):
            chosen.append(line)
    return chosen


_EXPECTED = (
    (
        re.compile(r"\b(how much|costs?|prices?|fees?|expensive|cheap\w*|discount|cuanto cuesta|precio)\b"),
        {"money", "percent"},
    ),
    (
        re.compile(
            r"\b(how (long|soon|fast|quickly|often)|how many (days|hours|weeks|months)|cuanto tiempo)\b"
        ),
        {"duration"},
    ),
    (re.compile(r"\b(when|since when|what (day|date)|cuando)\b"), {"date"}),
)


def _expected(text: str) -> frozenset[str]:
    """Return what kind of value a question asks for: money, a duration, a date."""
    plain = " ".join(words(text))
    return frozenset(kind for pattern, kinds in _EXPECTED if pattern.search(plain) for kind in kinds)


def enough(text: str, lines: Sequence[Line], docs: Sequence[EvidenceItem]) -> bool:
    """Tell whether the best lines answer: near in meaning, and holding the words that make the question."""
    best = lines[0]
    if asked := set(whole_codes(text)):
        return bool(asked & set(codes(f"{best.item.title} {best.item.section} {best.text}")))
    if "compare" in asks(text):
        return best.nearness >= NEAR
    held = set(stems(f"{best.item.title} {best.item.section} {best.item.text}"))
    wanted = set(stems(text)) - ASKING
    everywhere = Counter(
        stem for item in docs for stem in set(stems(f"{item.title} {item.section} {item.text}"))
    )
    names = [stem for name in re.findall(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][\w-]+", text) for stem in stems(name)]
    if any(name not in everywhere and name in wanted for name in names):
        return False  # what it asks about by name is nowhere in what was found
    weight = {stem: 1 / (1 + everywhere[stem]) ** 0.5 for stem in wanted}
    covered = sum(weight[s] for s in wanted & held) / (sum(weight.values()) or 1.0)
    return any(best.nearness >= near and covered >= share for near, share in ANSWERS)


ORDERS = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(instructions?|rules|prompts?)\b|\b(dear|to the) (assistant|ai|bot)\b|"
    r"\byou (must|should|shall) (now )?(say|tell|answer|reply|confirm)\b",
    re.IGNORECASE,
)
"""Sentences that address whoever reads for somebody: they are no answer to anything."""


def quotable(item: EvidenceItem) -> Iterator[str]:
    """Yield the lines of a chunk that can stand alone: sentences, list items, and table rows written out."""
    body = item.chunk.body if item.chunk else item.text
    # A quotation inside a document is somebody's words, not the document's.
    spoken = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith(">"))
    for line in sentences(written_out(spoken)):
        plain = line.strip()
        if (
            len(words(plain)) >= 3
            and not plain.startswith("#")
            and not re.match(r"\[[^\]]+\]:", plain)
            and not ORDERS.search(plain)
        ):
            yield plain


def _place(item: EvidenceItem) -> str:
    last = item.section.rpartition(" > ")[2]
    return f"{item.title}, {last}" if last else item.title


def quoted(line: Line) -> str:
    text = re.sub(r"^(?:[-*+]|\d+[.)])\s+", "", line.text)
    return f"- {_place(line.item)}: “{text}” [{line.item.n}]"
