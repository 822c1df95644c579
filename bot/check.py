"""The checks that text must pass before anyone sees it; deterministic, and closed where in doubt.

Order and method: reference check, atom check, polarity check, case check (control of citations by code, after ALCE's
definitions, arXiv 2305.14627). Embeddings cannot tell 14 days from 30 (cosine 0.91), so none are used here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.types import Citation, EvidenceItem, Verdict
from bot.verdict import numbered
from ingest.atoms import atoms, negated, same, sentences, stems, words, written_out

MARKER = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]")
_MONTHS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ]
)
_LONGEST = 8000
"""Characters of a draft that are looked at; nobody reads more in a thread."""
_NEAR = 0.15
"""How much less of a claim's words a sentence may hold than the best one, and still be what the claim is about."""
_SMALL = frozenset(
    stems(
        "found find says say said according states stated source sources document documents rule rules also note see here following "
        "follow follows answer question ticket tickets evidence terms section page describe described list listed given give gives "
        "provide provides provided mean means use used using get gets customer customers user users case people person we you they"
    )
)
"""Words that claim nothing."""
_DENIALS = frozenset(stems("not no never cannot without"))
_MODIFIERS = re.compile(
    r"\b(yes|at least|at most|at the latest|no more than|no less than|more than|less than|fewer than|up to|only|all|any|every|each|both|either|"
    r"always|ever|forever|anyone|everyone|anybody|everybody|anything|everything|nobody|below|above|under|over|beyond|before|after|"
    r"until|within|except|unless|without|must|should|required|mandatory|compulsory|optional|automatically|immediately|again|once|twice|"
    r"thrice|double|half|fortnight|decade|quarter|dozen|couple|few|several|many|most|free|unlimited|permanent\w*|temporar\w*)\b"
)
"""Small words that turn what a sentence claims: they must stand in the sentence that supports it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What of a text may stay, and why the rest may not."""

    text: str
    problems: tuple[str, ...]


def check(
    draft: str, shown: Sequence[EvidenceItem], verdict: Verdict | None = None, question: str = ""
) -> Checked:
    """Keep the sentences of `draft` that their cited evidence supports and that do not touch the verdict.

    A sentence that says little itself ("60 minutes") is read together with the question.

    Markers stay as evidence numbers; `finish` renumbers them.
    """
    by_number = {item.n: item for item in shown}
    draft = draft[:_LONGEST]
    kept: list[str] = []
    problems: list[str] = []
    for line in draft.splitlines():
        good: list[str] = []
        for sentence, cited in _units(line):
            missing = [n for n in cited if n not in by_number]
            if missing:
                problems.append(f"{_short(sentence)} cites {missing}, which was not shown")
                continue
            items = [by_number[n] for n in cited]
            reason = _unsupported(sentence, items, question) or (
                _against(sentence, verdict, items) if verdict else ""
            )
            if reason:
                problems.append(f"{_short(sentence)} {reason}")
            else:
                good.append(sentence)
        if good:
            kept.append(" ".join(good))
        elif not line.strip() and kept and kept[-1]:
            kept.append("")
    return Checked("\n".join(kept).strip(), tuple(problems))


def _short(sentence: str) -> str:
    return repr(sentence if len(sentence) <= 90 else sentence[:87] + "…")


def _units(line: str) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Yield the sentences of a line with the numbers each one cites; a line's unmarked sentences belong to its next marker."""
    if not line.strip():
        return
    pieces = [
        m.group().strip() for m in re.finditer(r".+?(?:[.!?:;]?[”\"’)]*(?:\s*\[[\d,\s]+\])+[.!?]?|$)", line)
    ]
    pieces = [piece for piece in pieces if piece]
    pending: list[str] = []
    for piece in pieces:
        cited = tuple(int(n) for group in MARKER.findall(piece) for n in group.split(","))
        if cited:
            for part in pending:
                yield part, cited
            pending = []
            yield piece, cited
        else:
            pending.append(piece)
    for part in pending:
        yield part, ()


def _unsupported(sentence: str, items: Sequence[EvidenceItem], question: str = "") -> str:
    """Return why the cited items do not support the sentence, or an empty string.

    A claim is compared with single sentences and table cells of its sources, not with whole chunks: two true halves of
    one chunk make a false sentence ("a reset link is valid for 12 hours").
    """
    plain = MARKER.sub(" ", sentence)
    if not items or not words(plain):
        return "cites nothing" if words(plain) else "says nothing"
    for atom in atoms(plain):
        if atom.kind == "url" and atom.text not in {item.url for item in items}:
            return f"has the link {atom.text!r}, which is no source's own address"
    if _only_quotes(plain, items):
        return ""
    return next((reason for claim in _claims(plain) if (reason := _not_said(claim, items, question))), "")


def _claims(plain: str) -> Iterable[str]:
    """Yield what a sentence claims, one thing after the other; "Customer: Ortega; Plan: Team" claims two."""
    for one in sentences(plain):
        yield from (piece for piece in re.split(r"[.;]\s+|:\s+(?=[“\"])", one) if words(piece))


def _not_said(claim: str, items: Sequence[EvidenceItem], question: str) -> str:
    """Return why no one sentence of the items says what the claim says, or an empty string.

    A claim that joins two statements is taken apart, and each must be said.
    """
    if _only_quotes(claim, items):
        return ""
    units = [unit for item in items for unit in _units_of(item)]
    reason = _missing(claim, units, question)
    parts = re.split(r",? and |, (?:but|so|while) ", claim) if reason else []
    if len(parts) > 1 and all(len(_content(part)) > 1 and not _missing(part, units, "") for part in parts):
        return ""
    return reason


def _missing(claim: str, units: Sequence[str], question: str) -> str:
    """Return what keeps the unit that comes nearest to the claim from saying it, or an empty string where one does."""
    content = _content(claim)
    wanted = content if len(content) > 2 else content | _content(question)
    shares = [(len(wanted & set(stems(unit))) / (len(wanted) or 1), unit) for unit in units]
    best = max((share for share, _ in shares), default=0.0)
    near = sorted((pair for pair in shares if pair[0] >= best - _NEAR and pair[0] > 0), reverse=True)
    reasons = [_differs(claim, content, unit) for _, unit in near]
    return "" if "" in reasons else next(iter(reasons), "is not what its sources say")


def _differs(claim: str, content: frozenset[str], unit: str) -> str:
    spoken = words(unit)
    joined = f" {' '.join(spoken)} "
    known = atoms(unit)
    for atom in atoms(claim):
        there = any(same(atom, other) or atom.value == other.value for other in known)
        if atom.kind != "url" and not there and f" {' '.join(words(atom.text))} " not in joined:
            return f"says {atom.text!r}, which is not in what it cites"
    for name in re.findall(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][\w'’-]+", claim):
        if not set(words(name)) <= set(spoken) and name.casefold() not in _MONTHS:
            return f"names {name!r}, which is not in what it cites"
    if content - set(stems(unit)):
        return "is not what its sources say"
    for modifier in _MODIFIERS.findall(" ".join(words(claim))):
        if f" {modifier} " not in joined:
            return f"says {modifier!r}, which its source does not"
    if negated(unit) != negated(claim):
        return "turns its source's yes into a no, or the reverse"
    return ""


def _content(text: str) -> frozenset[str]:
    return frozenset(stems(_without_atoms(text))) - _SMALL - _DENIALS


def _without_atoms(text: str) -> str:
    """Return a text without its numbers, dates and ids, which are compared by value."""
    for atom in reversed(atoms(text)):
        text = f"{text[: atom.start]} {text[atom.end :]}"
    return text


def _units_of(item: EvidenceItem) -> Iterable[str]:
    """Yield what a source says, sentence by sentence, each with its heading; of a table row each cell with its label."""
    place = f"{item.title} {item.section}"
    for line in sentences(written_out(_own_words(item))):
        cells = [cell for cell in line.removeprefix("- ").split("; ") if ": " in cell]
        if len(cells) < 2:
            yield f"{place} {line}"
            continue
        label, *rest = cells
        yield from (f"{place} {label}; {cell}" for cell in rest)


def _own_words(item: EvidenceItem) -> str:
    """Return what a source itself states: of a ticket its fields and resolution, of a document no quotations in it.

    What a customer wrote, or a mail that a page warns of, may be quoted but is nobody's statement.
    """
    if item.ticket is not None and item.ticket.body:
        return item.text.replace(item.ticket.body, "")
    return "\n".join(line for line in item.text.splitlines() if not line.lstrip().startswith(">"))


def _only_quotes(plain: str, items: Sequence[EvidenceItem], *, whole: bool = False) -> bool:
    """Tell whether a text is nothing but words of its sources: quotations, and where they stand.

    Of a document a quotation is a sentence or more than three words of one ("12 hours" alone says nothing of what);
    with `whole`, a sentence.
    """
    places = frozenset(stem for i in items for stem in stems(f"{i.title} {i.section}"))
    lines = frozenset(" ".join(words(line)) for i in items for line in sentences(written_out(i.text)))
    everything = [_folded(f"{i.title} | {i.section} | {i.text} | {written_out(i.text)}") for i in items]
    stated = [
        _folded(f"{i.title} | {i.section} | {(own := _own_words(i))} | {written_out(own)}") for i in items
    ]
    rows = all(item.kind != "doc" for item in items)

    def stands(piece: str, texts: Sequence[str]) -> bool:
        said = " ".join(words(piece))
        enough = rows or said in lines or (len(words(piece)) > 3 and not whole)
        return enough and any(f" {said} " in text for text in texts)

    quotes = re.findall(r"[“\"]([^”\"]+)[”\"]", plain)
    outside = re.sub(r"[“\"][^”\"]+[”\"]", " · ", plain)
    rest = [piece for piece in re.split(r"[·():;,.—-]\s|\s[·(—-]|\n", outside) if words(piece)]
    return all(stands(quote, everything) for quote in quotes) and all(
        stands(piece, stated) or (bool(quotes) and not set(stems(piece)) - places - _SMALL) for piece in rest
    )


def _folded(text: str) -> str:
    return f" {' '.join(words(text))} "


def _against(sentence: str, verdict: Verdict, items: Sequence[EvidenceItem]) -> str:
    """Return why the sentence may not stand beside the verdict: another date, duration or outcome, or words of its own.

    Outcomes can be worded in too many ways to list ("it lapsed in August", "they missed it"), so beside a verdict a
    sentence may only use words that its sources or the verdict use.
    """
    plain = MARKER.sub(" ", sentence)
    if (
        verdict.beside
        and _only_quotes(plain, items)
        and frozenset(stems(" ".join(verdict.beside))) & set(stems(plain))
    ):
        return ""  # a quotation on what the rule does not speak of
    decided = atoms(verdict.text)
    for atom in atoms(plain):
        if atom.kind in ("date", "duration") and not any(same(atom, other) for other in decided):
            return f"says {atom.text!r} beside the verdict"
    months = set(words(plain)) & _MONTHS - {"may"}
    if months - set(words(verdict.text)):
        return "names a month that the verdict does not"
    lead = words(plain)[:2]
    if lead and lead[0] in ("yes", "no", "si") and (verdict.decision != "rule" or verdict.beside):
        return "gives an outcome of its own"
    held = {stem for item in items for stem in stems(f"{item.title} {item.section} {item.text}")} | set(
        stems(verdict.text)
    )
    foreign = [stem for stem in stems(plain) if stem not in held and stem not in _SMALL]
    if foreign:
        return "words an outcome beside the verdict"
    if verdict.decision in ("yes", "no") and not _only_quotes(plain, items, whole=True):
        return "is no quotation, and code has decided"
    return ""


def finish(
    verdict: Verdict | None, text: str, evidence: Mapping[str, EvidenceItem]
) -> tuple[str, tuple[Citation, ...]]:
    """Join the verdict's sentence and the checked text, renumber the markers by first use, and list what they cite."""
    numbers = {id_: item.n for id_, item in evidence.items()}
    by_number = {item.n: item for item in evidence.values()}
    whole = "\n\n".join(part for part in ((numbered(verdict, numbers) if verdict else ""), text) if part)
    order: dict[int, int] = {}
    near: dict[int, str] = {}

    def renumber(match: re.Match[str]) -> str:
        shown = []
        for raw in match[1].split(","):
            n = int(raw)
            if n not in by_number:
                continue
            order.setdefault(n, len(order) + 1)
            near.setdefault(n, whole[max(0, match.start() - 300) : match.start()])
            shown.append(f"[{order[n]}]")
        return "".join(shown)

    out = MARKER.sub(renumber, whole)
    out = re.sub(r"(\[\d+\])(?:\s*\1)+", r"\1", out)
    citations = tuple(
        Citation(
            n=new,
            source=by_number[n].source,
            title=by_number[n].title,
            section=by_number[n].section,
            url=by_number[n].url,
            quote=_quote(by_number[n], near[n]),
        )
        for n, new in sorted(order.items(), key=lambda pair: pair[1])
    )
    return out, citations


def _quote(item: EvidenceItem, near: str) -> str:
    """Return the item's sentence that shares most with the words before its marker."""
    wanted = set(stems(near.rpartition("\n")[2][-300:]))
    body = item.chunk.body if item.chunk else item.text
    options: list[str] = [line for line in sentences(body) if len(line) > 2] or [body]
    best = max(options, key=lambda line: len(wanted & set(stems(line))) / (len(set(stems(line))) + 3))
    return best if len(best) <= 400 else best[:397] + "…"
