"""The checks that text must pass before anyone sees it; deterministic, and closed where in doubt.

The model chooses what to say, its sources say it: a sentence stays if it is a sentence of what it cites, in its words
and order; the sentence that it comes nearest to is quoted in the place of any other. A paraphrase cannot be told from a
lie by code: "14 days" and "30 days" are alike to an embedding (cosine 0.91), "only", "if" and who did it to whom are
lost in bags of words. Citations are resolved after ALCE's definitions (arXiv 2305.14627).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.check.said import nearest, quotes, says, units
from bot.types import Citation, EvidenceItem, Verdict
from bot.verdict import numbered
from ingest.atoms import MONTHS, atoms, same
from ingest.blocks import sentences
from ingest.words import stems, words

MARKER = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]")
_LIST_MARK = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")
_LONGEST = 8000
"""Characters of a draft that are looked at; nobody reads more in a thread."""
_SMALL = frozenset(
    stems(
        "found find says say said according states stated source sources document documents rule rules also note see here following "
        "follow follows answer question ticket tickets evidence terms section page describe described list listed given give gives "
        "provide provides provided mean means use used using get gets customer customers user users case people person we you they"
    )
)
"""Words that claim nothing."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What may be shown of a text, and what may not."""

    text: str
    problems: tuple[str, ...]
    """Sentences that are left out, and why."""
    reworded: tuple[str, ...] = ()
    """Sentences in whose place a source's own one stands."""


def check(
    draft: str, shown: Sequence[EvidenceItem], verdict: Verdict | None = None, question: str = ""
) -> Checked:
    """Keep the sentences of `draft` that what they cite says itself and that do not touch the verdict; quote for the others.

    A sentence that says little itself ("60 minutes") is read together with the question. Beside a verdict of yes or no
    nothing is quoted that the draft does not quote. Markers stay as evidence numbers; `finish` renumbers them.
    """
    by_number = {item.n: item for item in shown}
    kept: list[str] = []
    problems: list[str] = []
    reworded: list[str] = []
    told: set[str] = set()
    for line in draft[:_LONGEST].splitlines():
        good: list[str] = []
        mark = _LIST_MARK.match(line)
        for piece, cited in _pieces(line[mark.end() :] if mark else line):
            if missing := [n for n in cited if n not in by_number]:
                problems.append(f"{_short(piece)} cites {missing}, which was not shown")
                continue
            items = [by_number[n] for n in cited]
            reason = _unsupported(piece, items) or (_against(piece, verdict, items) if verdict else "")
            if not reason:
                good.append(piece)
                continue
            quoted = _quoted(piece, items, verdict, question)
            (reworded if quoted else problems).append(f"{_short(piece)} {reason}")
            good += [quote for quote in quoted if quote not in told]
            told |= set(quoted)
        if good:
            kept.append(f"{mark[0] if mark else ''}{' '.join(good)}")
        elif not line.strip() and kept and kept[-1]:
            kept.append("")
    return Checked("\n".join(kept).strip(), tuple(problems), tuple(reworded))


def _short(sentence: str) -> str:
    return repr(sentence if len(sentence) <= 90 else sentence[:87] + "…")


def _pieces(line: str) -> Iterable[tuple[str, tuple[int, ...]]]:
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


def _unsupported(piece: str, items: Sequence[EvidenceItem]) -> str:
    """Return why what is cited does not itself say this, or an empty string."""
    plain = MARKER.sub(" ", piece)
    if not items or not words(plain):
        return "cites nothing" if words(plain) else "says nothing"
    for atom in atoms(plain):
        if atom.kind == "url" and atom.text not in {item.url for item in items}:
            return f"has the link {atom.text!r}, which is no source's own address"
    stated = [unit for item in items for unit in units(item)]
    # Whole first: a row whose subject holds a question mark is one unit.
    if quotes(plain, items) or says(plain, stated) or all(says(claim, stated) for claim in sentences(plain)):
        return ""
    return "is not what its sources say in their own words"


def _quoted(piece: str, items: Sequence[EvidenceItem], verdict: Verdict | None, question: str) -> list[str]:
    """Return the sources' own sentences for a piece that may not stand, each with its marker; none beside a yes or no."""
    if verdict and verdict.decision in ("yes", "no"):
        return []
    found: list[str] = []
    for claim in sentences(MARKER.sub(" ", piece)):
        unit = nearest(claim, items, question)
        quote = f"{_place(unit.item)}“{unit.text}” [{unit.item.n}]" if unit else ""
        if unit and quote not in found and not (verdict and _against(quote, verdict, [unit.item])):
            found.append(quote)
    return found


def _place(item: EvidenceItem) -> str:
    """Return where a quotation stands, as its beginning: what it says may hold there only."""
    return f"{', '.join(part for part in (item.title, item.section) if part)}: "


def _against(sentence: str, verdict: Verdict, items: Sequence[EvidenceItem]) -> str:
    """Return why the sentence may not stand beside the verdict: another date, duration or outcome, or words of its own.

    Outcomes can be worded in too many ways to list ("it lapsed in August", "they missed it"), so beside a verdict a
    sentence may only use words that its sources or the verdict use.
    """
    plain = MARKER.sub(" ", sentence)
    if (
        verdict.beside
        and quotes(plain, items)
        and frozenset(stems(" ".join(verdict.beside))) & set(stems(plain))
    ):
        return ""  # a quotation on what the rule does not speak of
    decided = atoms(verdict.text)
    for atom in atoms(plain):
        if atom.kind in ("date", "duration") and not any(same(atom, other) for other in decided):
            return f"says {atom.text!r} beside the verdict"
    months = set(words(plain)) & MONTHS.keys() - {"may"}
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
    if verdict.decision in ("yes", "no") and not quotes(plain, items):
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
