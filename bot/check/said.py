"""What a source says, unit by unit, and whether a text is one of these units in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.types import EvidenceItem
from ingest.atoms import atoms, negated
from ingest.blocks import sentences, written_out
from ingest.words import stems, words

_GLUE = frozenset(
    "a an the of in on for at it its it's that this there is are was were be been has have had do does did you your we our "
    "they their as then so please also el la los las un una de del en es son se".split()
)
"""Words that may be missing or added without a change of what is said; who does what to whom is in none of them."""
_SHARE = 0.5
"""How much of a claim's words a unit must hold to be what the claim is about."""
_FEW = 3
"""Content words below which a claim is read together with the question."""
_ID = "=id:"
_TICKET_SAYS = re.compile(r"the ticket says:?", re.IGNORECASE)
_QUOTED = re.compile(r"[“\"]([^”\"]+)[”\"]")


@dataclass(frozen=True, slots=True)
class Unit:
    """One sentence, table row or field of a source, or a cell of a row with the row's label."""

    item: EvidenceItem
    text: str

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.item.title} {self.item.section}"


def own_words(item: EvidenceItem) -> str:
    """Return what a source itself states: of a ticket its fields and resolution, of a document no quotations in it.

    What a customer wrote, or a mail that a page warns of, may be quoted but is nobody's statement.
    """
    if item.ticket is not None and item.ticket.body:
        return item.text.replace(item.ticket.body, "")
    text = item.chunk.body if item.chunk else item.text
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


def units(item: EvidenceItem) -> Iterator[Unit]:
    """Yield what a source states: its sentences, the parts of one that semicolons join, its rows, and each of their cells."""
    own = own_words(item)
    if item.kind == "table":
        yield from (Unit(item, line.removeprefix("- ")) for line in own.splitlines() if words(line))
        return
    if item.kind != "doc":
        # A ticket's fields, a formula: no line goes on in the next.
        yield from (Unit(item, line) for text in own.splitlines() for line in _lines(text))
        return
    for line in _lines(own):
        yield Unit(item, line)
        cells = _cells(line)
        if len(cells) > 1:
            label, *rest = cells
            yield from (Unit(item, f"{label}; {cell}") for cell in rest)
        else:
            parts = [part for part in line.split("; ") if len(words(part)) > 3]
            yield from (Unit(item, part) for part in parts if len(parts) > 1)


def says(claim: str, stated: Sequence[Unit]) -> bool:
    """Tell whether a claim is one of the units, or units that semicolons join, as the fields of a ticket are told."""
    parts = [part for part in claim.split("; ") if words(part)]
    return any(_same(claim, unit) for unit in stated) or (
        len(parts) > 1 and all(any(_same(part, unit) for unit in stated) for part in parts)
    )


def _same(claim: str, unit: Unit) -> bool:
    """Tell whether a claim is the unit in its own words and order, but for glue and for naming where it stands.

    Numbers and dates are compared by value. What limits a statement ("only", "if", "not") can so not be lost, and no two
    of its parts can change places. Under a heading that denies ("What is not in the export") nothing says it alone.
    """
    if unit.item.kind == "doc" and negated(unit.place):
        return False
    said, stated = _tokens(claim), _tokens(unit.text)
    if said == stated:
        return True
    own, place = set(stated), set(_tokens(unit.place))
    return tuple(token for token in said if token in own or token not in place) == stated


def quotes(plain: str, items: Sequence[EvidenceItem]) -> bool:
    """Tell whether a text is nothing but units of its sources, in quotation marks or not, and where they stand.

    A ticket's body may be quoted after "The ticket says:"; nobody else's words are.
    """
    place = frozenset(stem for item in items for stem in stems(f"{item.title} {item.section}"))
    stated = [_tokens(unit.text) for item in items for unit in units(item)]
    written = [_tokens(line) for item in items if item.ticket for line in sentences(item.ticket.body)]
    at = 0
    found = list(_QUOTED.finditer(plain))
    for match in found:
        before = plain[at : match.start()]
        known = [*stated, *written] if _TICKET_SAYS.search(before) else stated
        if not _joined(match[1], known):
            return False
        at = match.end()
    outside = _TICKET_SAYS.sub("", _QUOTED.sub(" · ", plain))
    rest = [piece for piece in re.split(r"[·():,.—-]\s|\s[·(—-]|\n", outside) if words(piece)]
    return all(_joined(piece, stated) or (bool(found) and not set(stems(piece)) - place) for piece in rest)


def nearest(claim: str, items: Sequence[EvidenceItem], question: str) -> Unit | None:
    """Return the unit that a claim is about, or None; the shortest of those that share most with it.

    What lacks an id or code of the claim is about something else, and so is what shares only its heading.
    """
    wanted = _content(claim)
    named = {token for token in wanted if token.startswith(_ID)}
    if len(wanted) < _FEW:
        wanted |= _content(question)
    found: list[tuple[int, Unit]] = []
    for unit in (unit for item in items for unit in units(item)):
        own = _content(unit.text)
        held = own | _content(unit.place)
        if named <= held and wanted & own:
            found.append((len(wanted & held), unit))
    shared = max((share for share, _ in found), default=0)
    if shared < 2 or shared < _SHARE * len(wanted):
        return None
    best = [unit for share, unit in found if share == shared]
    return max(best, key=lambda unit: (len(wanted & _content(unit.text)), -len(unit.text)))


def _lines(text: str) -> Iterator[str]:
    for line in sentences(written_out(text)):
        if not line.startswith("# "):
            yield line.removeprefix("- ").strip()


def _cells(line: str) -> list[str]:
    return [cell for cell in line.split("; ") if ": " in cell]


def _joined(piece: str, known: Sequence[tuple[str, ...]]) -> bool:
    """Tell whether a piece is one unit, or units that semicolons join, as the fields of a ticket are told."""
    parts = [piece] if _tokens(piece) in known else piece.split("; ")
    return all(_tokens(part) in known for part in parts if words(part))


def _content(text: str) -> frozenset[str]:
    return frozenset(token for token in _tokens(text) if stems(token) and not token.startswith("=url:"))


@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    """Return what a text says, in order: stems without glue, each number, date or id by its value; "can't" is "can not"."""
    text = re.sub(r"n['’]t\b", " not", re.sub(r"\b([Cc])an(?:['’]t|not)\b", r"\1an not", text))
    found: list[str] = []
    at = 0
    for atom in atoms(text):
        if atom.start < at:
            continue
        found += _plain(text[at : atom.start])
        found.append(f"={atom.kind}:{atom.value}")
        at = atom.end
    return (*found, *_plain(text[at:]))


def _plain(text: str) -> list[str]:
    return [stem for word in words(text) if word not in _GLUE for stem in (stems(word) or (word,))]
