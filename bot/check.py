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
from ingest.atoms import atoms, negated, same, sentences, stems, words

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
_GROUNDED = 0.6
"""Share of a sentence's content stems that its sources must hold."""
_SMALL = frozenset(
    stem
    for word in [
        "found",
        "says",
        "say",
        "according",
        "states",
        "stated",
        "source",
        "sources",
        "document",
        "documents",
        "rule",
        "rules",
        "also",
        "note",
        "see",
        "here",
        "following",
        "answer",
        "question",
        "ticket",
        "tickets",
        "evidence",
        "terms",
        "section",
        "page",
        "yes",
    ]
    for stem in stems(word)
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What of a text may stay, and why the rest may not."""

    text: str
    problems: tuple[str, ...]


def check(draft: str, shown: Sequence[EvidenceItem], verdict: Verdict | None = None) -> Checked:
    """Keep the sentences of `draft` that their cited evidence supports and that do not touch the verdict.

    Markers stay as evidence numbers; `finish` renumbers them.
    """
    by_number = {item.n: item for item in shown}
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
            reason = _unsupported(sentence, items) or (_against(sentence, verdict, items) if verdict else "")
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


def _unsupported(sentence: str, items: Sequence[EvidenceItem]) -> str:
    """Return why the cited items do not support the sentence, or an empty string."""
    plain = MARKER.sub(" ", sentence)
    content = [stem for stem in stems(plain) if stem not in _SMALL]
    if not items:
        return "" if not content and not atoms(plain) else "cites nothing"
    said = [f"{item.title}\n{item.section}\n{item.text}" for item in items]
    known = [atom for text in said for atom in atoms(text)]
    for atom in atoms(plain):
        if atom.kind == "url":
            if atom.text not in {item.url for item in items}:
                return f"has the link {atom.text!r}, which is no source's own address"
        elif not any(same(atom, other) or atom.value == other.value for other in known):
            return f"says {atom.text!r}, which is not in what it cites"
    folded = set(words(" ".join(said)))
    for name in re.findall(r"(?<=[\w,;:] )[A-ZÁÉÍÓÚÑ][\w'’-]+", plain):
        if not set(words(name)) <= folded and name.casefold() not in _MONTHS:
            return f"names {name!r}, which is not in what it cites"
    held = {stem for text in said for stem in stems(text)}
    if content and sum(stem in held for stem in content) < _GROUNDED * len(content):
        return "is not what its sources say"
    if re.search(r"[“\"]", plain) and _verbatim(plain, items):
        return ""
    # What stands word for word in a source says what the source says.
    pieces = [piece for one in sentences(plain) for piece in re.split(r"[.;]\s+", one) if words(piece)]
    own = [piece for piece in pieces if not _verbatim(piece, items)]
    return next((reason for one in own if (reason := _other_polarity(one, said))), "")


def _other_polarity(plain: str, said: Sequence[str]) -> str:
    """Return a problem where the sentences of the sources that are most like this one all have the other polarity."""
    wanted = set(stems(plain))
    lines = [line for text in said for part in (text, *text.splitlines()) for line in sentences(part)]
    shares = [(len(wanted & set(stems(line))) / (len(wanted) or 1), line) for line in lines]
    best = max((share for share, _ in shares), default=0.0)
    near = [line for share, line in shares if share >= max(0.6, best - 0.15)]
    if near and all(negated(line) != negated(plain) for line in near):
        return "turns its source's yes into a no, or the reverse"
    return ""


def _against(sentence: str, verdict: Verdict, items: Sequence[EvidenceItem]) -> str:
    """Return why the sentence may not stand beside the verdict: another date, duration or outcome, or words of its own.

    Outcomes can be worded in too many ways to list ("it lapsed in August", "they missed it"), so beside a verdict a
    sentence may only use words that its sources or the verdict use.
    """
    plain = MARKER.sub(" ", sentence)
    if (
        verdict.beside
        and _verbatim(plain, items)
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
    if verdict.decision in ("yes", "no") and not _verbatim(plain, items):
        return "is no quotation, and code has decided"
    return ""


def _verbatim(plain: str, items: Sequence[EvidenceItem]) -> bool:
    quoted = re.findall(r"[“\"]([^”\"]{8,})[”\"]", plain) or [plain]
    folded = [" ".join(words(item.text)) for item in items]
    return all(any(" ".join(words(quote)) in text for text in folded) for quote in quoted)


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
