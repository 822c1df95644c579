"""Rules stated in text: how long, from when, allowed or forbidden; found once, at index time.

A sentence gives a rule where a duration stands in a construction that sets a window, a notice, a target or a
retention, or where it forbids outright. A table gives one for each cell that is a duration or a prohibition, with its
own column header and the row's other cells as labels. Quoted speech and code give none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, cast

from ingest.atoms import Atom, atoms, fold, mentions, sentences, stems
from ingest.types import Chunk, Polarity, Rule, Unit

RULES_VERSION = "1"
"""Part of the index's identity: raise it when other rules are found in the same text."""

_FORBIDS = re.compile(
    r"\b(?:(?:is|are|was|were|will be|can|may)(?: not|n['’]t)(?: be)? (?:\w+ly )?(?:refund|return|exchang|cancel|reimburs|credit|"
    r"eligible|entitled|covered|available|allowed|permitted|possible|transferable|included|offered|accepted)\w*|"
    r"can ?(?:not|['’]t) be (?:\w+ly )?\w+ed|cannot be \w+|non[- ]?(?:refund|return|transfer|cancel)\w*|"
    r"not (?:\w+ly )?(?:refundable|returnable|eligible|entitled|covered|available|offered|exchangeable|cancell?able)|"
    r"no (?:right (?:of|to)|refunds?\b|returns?\b|warranty|guarantee|credit|reimbursement|entitlement|money back)|"
    r"(?:do|does|will|shall) (?:not|n['’]t) (?:\w+ly )?(?:refund|give|grant|offer|qualify|apply|cover|accept|reimburse)\w*|"
    r"(?:excluded|exempt) from|ineligible|never (?:refund|return)\w*|final sale|"
    r"no (?:se )?(?:reembols|devuelv|admit|hay|son reembolsables|es reembolsable|tiene[n]? derecho)\w*|sin (?:derecho|reembolso|devolucion)|"
    r"no reembolsable\w*)\b"
)
_CELL_FORBIDS = re.compile(
    r"(?:not (?:refundable|returnable|offered|available|eligible|covered|included|applicable)|"
    r"non[- ]?(?:refundable|returnable)|no refunds?|no returns?|no (?:right|warranty|entitlement).*|cannot be .*|"
    r"no reembolsable|sin reembolso|sin derecho)\.?"
)
_NORMATIVE = re.compile(
    r"\b(?:within|up to|until|no later than|not later than|at least|at most|no more than|no longer than|maximum|max|minimum|"
    r"for (?:a period of|up to)|period|window|notice|deadline|term of|guarantee|warranty|target|commit\w*|entitled|eligible|"
    r"must|may|can|shall|will|have|has|keep|kept|retain\w*|retention|store[ds]?|delete[ds]?|remain\w*|expires?|lasts?|valid|"
    r"runs?|after|from|before|prior|following|refund\w*|return\w*|respond\w*|response|reply|repl(?:y|ies)|resol\w+|"
    r"dentro|hasta|plazo|antes|despues|desde|a partir|puede\w*|debe\w*|conserv\w*|garantia|durante|en un)\b"
)
_NARRATIVE = re.compile(
    r"\b(?:ago|i (?:waited|was|had|have)|we (?:waited|founded|started)|founded|webinar|meeting|lasted|for example|hace|years? old|"
    r"every|per|each|cada|once an?|once in|in any|any|twice)\b"
)
_COUNTED = re.compile(
    r"\b(?:within|for|of|after|least|most|to|than|until|in|during|further|another|de|hasta|en)\s+$"
)
"""What makes "a month" a duration: not "a month that has begun"."""
_HEDGE = re.compile(
    r"\b(?:as a (?:general )?rule|as a guideline|in general|generally|normally|usually|typically|in most cases|ordinarily|by default|"
    r"most of the time|rule of thumb|por regla general|en general|normalmente|generalmente|por lo general|habitualmente)\b"
)
_CONDITION = re.compile(
    r"\b(?:(?:only |except |even )?(?:if|when|where)\b(?! (?:you|the customer|they) (?:cancel|ask|request)s?\b)|unless|provided(?: that)?|"
    r"except(?: for| that)?|as long as|on condition that|subject to|salvo|siempre que|excepto)\b[^.;:()]*"
)
_UNTIL_THAT = re.compile(r"\b(?:after|beyond|past|outside|despues de) (?:that|this|it|the|those|eso)\b")
_VERBS_ANCHORED = re.compile(
    r"\b(?:(?P<before>before|prior to|ahead of|antes (?:de|del))|from|after|of|since|following|counted from|starting (?:on|from)|"
    r"beginning (?:on|with)|desde|a partir de|despues de|tras|de|del)\s+"
    r"(?:(?:the|your|their|its|a|an|each|every|that|la|el|los|su|day|date|moment|end|time|start|first|last|day 0|dia|fecha|original|initial|"
    r"relevant|latest|most recent|full|of|de|del|on which|when|in which|we|it|is|was|they|you|subscription|customer|bike|order)\s+)*"
    r"(?P<anchor>[a-z]+)"
)
_ANCHORS: Mapping[str, str] = {
    form: name
    for name, forms in {
        "charge": "charge charged charges payment paid pay billing billed cargo cobro pago",
        "purchase": "purchase purchased buying bought sale order ordered compra pedido",
        "delivery": "delivery delivered receipt received receiving arrival handover entrega recepcion",
        "renewal": "renewal renewed renews renovacion",
        "opening": "opening opened submission submitted ticket creation created report reported receipt-of-ticket apertura",
        "invoice": "invoice invoiced factura",
        "cancellation": "cancellation cancelled canceled cancelling canceling cancel closure closing closed termination terminated baja cancelacion",
        "signup": "signup sign-up registration activation activated signing registered alta",
        "expiry": "expiry expiration expires expired vencimiento",
        "request": "request requested requesting solicitud",
        "shipping": "shipping shipment shipped dispatch dispatched envio",
        "failure": "failure failed failing",
    }.items()
    for form in forms.split()
}
"""Words that name what a period runs from, and the anchor each of them means."""

_SPLIT = re.compile(
    r";\s+|,?\s+(?:whereas|while|whilst|mientras que|en cambio)\s+|,\s+(?:but|and|pero|y)\s+(?=(?:\w+\s+){0,4}?(?:subscriptions?|plans?|"
    r"customers?|payments?|fees?|orders?|items?|bikes?|tickets?|invoices?|requests?|suscripci\w+|monthly|annual|those|all other)\b)"
)
_MIXED = re.compile(r"\b(?:all|any|every|each|both|regardless|todos|todas|cualquier)\b[\w\s]{0,14}\b")


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
    prose, tables = _parts(chunk.body)
    told = sentences(prose)
    section_anchor = _running_from(told)
    found = [
        replace(rule, anchor=rule.anchor or section_anchor)
        for line in told
        for rule in _in_sentence(line, base)
    ]
    heading_anchor = section_anchor or _anchor(" ".join(told)) if tables else None
    for table in tables:
        found += _in_table(table, base, heading_anchor)
    return tuple(dict.fromkeys(found))


def _parts(body: str) -> tuple[str, list[list[list[str]]]]:
    """Split a body into its prose, without quotations and code, and its tables as rows of cells."""
    prose: list[str] = []
    tables: list[list[list[str]]] = []
    fenced = False
    rows: list[list[str]] = []
    for line in [*body.splitlines(), ""]:
        plain = line.strip()
        if plain.startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced or plain.startswith(">"):
            continue
        if plain.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", plain.strip("|"))])
            continue
        if rows:
            if len(rows) > 2:
                tables.append(rows)
            rows = []
        prose.append("" if plain.startswith("#") else line)
    return "\n".join(prose), tables


def _running_from(told: tuple[str, ...]) -> str | None:
    for line in told:
        folded = fold(line)
        if re.search(
            r"\b(?:period|window|time|clock|term|target|plazo|it|they|all|both)\w*\b.{0,40}\b(?:runs?|start|begin|count|measured|corre|cuenta)\w*",
            folded,
        ):
            anchor = _anchor(folded)
            if anchor:
                return anchor
    return None


def _anchor(folded: str) -> str | None:
    return next((anchor for anchor, _ in _anchors(fold(folded))), None)


def _anchors(folded: str) -> Iterator[tuple[str, re.Match[str]]]:
    for match in _VERBS_ANCHORED.finditer(folded):
        name = _ANCHORS.get(match["anchor"])
        if name:
            yield name, match


def _in_sentence(line: str, base: Rule) -> Iterator[Rule]:
    clauses = [clause.strip() for clause in _SPLIT.split(line) if clause and clause.strip()]
    for clause in clauses:
        folded = fold(clause)
        if line.rstrip().endswith("?"):
            continue
        durations = [
            atom for atom in atoms(clause) if atom.kind == "duration" and not atom.value.endswith("minute")
        ]
        hedges = tuple(match.group() for match in _HEDGE.finditer(fold(line)))
        conditions = tuple(clause[m.start() : m.end()].strip(" ,") for m in _CONDITION.finditer(folded))
        forbids = _FORBIDS.search(folded)
        stating = [atom for atom in durations if _states(clause, folded, atom)]
        for atom in stating:
            amount, unit = _duration(atom)
            if amount is None:
                continue
            anchor, before = _anchored(folded, atom)
            yield replace(
                base,
                text=clause,
                amount=amount,
                unit=unit,
                polarity=_allows(folded, forbids),
                anchor=anchor,
                before=before,
                hedges=hedges,
                conditions=conditions,
            )
        if forbids and not stating and not _UNTIL_THAT.search(folded):
            yield replace(base, text=clause, polarity="forbids", hedges=hedges, conditions=conditions)


def _allows(folded: str, forbids: re.Match[str] | None) -> Polarity:
    """A duration with a prohibition beside it still sets a window: "no refund is given after 30 days"."""
    del folded, forbids
    return "allows"


def _states(clause: str, folded: str, atom: Atom) -> bool:
    around = folded[max(0, atom.start - 90) : atom.end + 60]
    beside = folded[max(0, atom.start - 14) : atom.end + 8]
    if _NARRATIVE.search(beside) and "within" not in beside:
        return False
    if re.match(r"(?:an?|una?|one)\b", fold(atom.text)) and not _COUNTED.search(folded[: atom.start]):
        return False
    if re.search(r"\b(?:i|we) (?:waited|spent|took|needed)\b", folded):
        return False
    return bool(_NORMATIVE.search(around)) and len(clause) > len(atom.text)


def _anchored(folded: str, atom: Atom) -> tuple[str | None, bool]:
    """Return what the duration runs from: the nearest anchor behind it, else the nearest in front of it."""
    behind = [
        (name, m) for name, m in _anchors(folded) if m.start() >= atom.end - 1 and m.start() - atom.end < 60
    ]
    if behind:
        name, match = behind[0]
        return name, bool(match["before"])
    ahead = [(name, m) for name, m in _anchors(folded) if m.end() <= atom.start]
    if ahead:
        name, match = ahead[-1]
        return name, bool(match["before"])
    if re.search(r"\bnotice\b", folded[atom.end : atom.end + 20]):
        return None, True
    return None, False


def _duration(atom: Atom) -> tuple[int | None, Unit | None]:
    amount_text, unit = atom.value.split()
    if unit == "business_week":
        return int(amount_text) * 5, "business_day"
    if unit not in ("hour", "business_hour", "day", "business_day", "week", "month", "year"):
        return None, None
    return int(amount_text), cast(Unit, unit)


_RIGHT = re.compile(r"\b(?:refund|return|warranty|guarantee|right|window|period|entitle|reembolso|plazo)\w*")


def _plain(cell: str) -> str:
    return re.sub(r"[*_`]|\[([^\]]*)\]\([^)]*\)", r"\1", cell).strip()


def _in_table(rows: list[list[str]], base: Rule, section_anchor: str | None) -> Iterator[Rule]:
    header = [_plain(cell) for cell in rows[0]]
    for raw in rows[2:]:
        row = [_plain(cell) for cell in raw] + [""] * (len(header) - len(raw))
        cells = list(zip(header, row, strict=False))
        stated = {i: _cell(cell, name) for i, (name, cell) in enumerate(cells)}
        labels = [(name, cell) for i, (name, cell) in enumerate(cells) if cell and stated[i] is None]
        from_cell = next((a for name, cell in labels if (a := _cell_anchor(name, cell))), None)
        for i, (name, cell) in enumerate(cells):
            read = stated[i]
            if read is None or (i == 0 and len(cells) > 1):
                continue
            amount, unit = read
            own = [f"{n}: {c}" if n else c for n, c in labels]
            anchor = _cell_anchor("from", cell) or from_cell or _anchor(fold(name)) or section_anchor
            written = "; ".join([*own, f"{name}: {cell}"])
            yield replace(
                base,
                text=written,
                amount=amount,
                unit=unit,
                polarity="allows" if amount is not None else "forbids",
                anchor=anchor if amount is not None else None,
                before=bool(re.search(r"\b(?:notice|before|prior)\b", fold(f"{name} {cell}"))),
                hedges=tuple(match.group() for match in _HEDGE.finditer(fold(cell))),
                labels=(name, *own),
            )


def _cell(cell: str, header: str) -> tuple[int | None, Unit | None] | None:
    """Read a cell that is a duration or a prohibition; None for a label."""
    folded = fold(cell)
    if not cell or len(cell) > 90:
        return None
    bare = folded.rstrip(".") in ("no", "none", "never") and _RIGHT.search(fold(header))
    if bare or _CELL_FORBIDS.fullmatch(folded) or _FORBIDS.match(folded):
        return None, None
    found = [atom for atom in atoms(cell) if atom.kind == "duration"]
    if len(found) == 1 and not re.search(
        r"\b(?:per|each|every|a|an) (?:day|month|hour|year|minute|second)\b|/ ?[a-z]", folded
    ):
        amount, unit = _duration(found[0])
        return (amount, unit) if amount is not None else None
    return None


def _cell_anchor(name: str, cell: str) -> str | None:
    if not re.search(r"\b(?:from|start|run|after|anchor|desde|measured|counted)\w*", fold(name)):
        return None
    folded = fold(cell)
    return _anchor(folded) or next(
        (_ANCHORS[w] for w in re.findall(r"[a-z-]+", folded) if w in _ANCHORS), None
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """Which facet values a rule is about, and which it leaves out."""

    includes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    excludes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def keys(self) -> int:
        """How many facets it is limited in: how specific it is."""
        return len(self.includes)

    def fits(self, facts: Mapping[str, str]) -> Literal["applies", "unknown", "no"]:
        """Tell whether the rule applies where these facts are known."""
        known = {name: value.casefold() for name, value in facts.items() if value}
        for name, values in self.excludes.items():
            if known.get(name) in {value.casefold() for value in values}:
                return "no"
        missing = False
        for name, values in self.includes.items():
            if name not in known:
                missing = True
            elif known[name] not in {value.casefold() for value in values}:
                return "no"
        return "unknown" if missing else "applies"


_EXCEPT = re.compile(
    r"\b(?:except(?: for)?|excluding|other than|apart from|with the exception of|not (?:on|for|in)|does not apply to|do not apply to|"
    r"salvo|excepto|menos)\b[^.;]*"
)
_ALL = r"\b(?:all|any|every|whatever|regardless of|todos los|todas las|cualquier)(?: the| your| our| other)? "


def scope(rule: Rule, vocabulary: Mapping[str, Collection[str]]) -> Scope:
    """Return which facet values the rule is about: what stands nearest wins, from its own words out to the title."""
    key = tuple((name, tuple(sorted(values))) for name, values in sorted(vocabulary.items()))
    return _scope(rule.text, rule.labels, rule.headings, key)


@lru_cache(maxsize=65536)
def _scope(
    text: str,
    labels: tuple[str, ...],
    headings: tuple[str, ...],
    vocabulary: tuple[tuple[str, tuple[str, ...]], ...],
) -> Scope:
    places = [" ; ".join(labels) if labels else text, *reversed(headings)]
    includes: dict[str, frozenset[str]] = {}
    excludes: dict[str, frozenset[str]] = {}
    for name, values in vocabulary:
        for place in places:
            folded = fold(place)
            if re.search(rf"{_ALL}{re.escape(fold(name))}s?\b", folded):
                left_out = _excluded(place, values)
                if left_out:
                    excludes[name] = left_out
                break
            left_out = _excluded(place, values)
            named = (
                frozenset(
                    mentions(_EXCEPT.sub(" ", folded) if left_out else place, values, strict=not left_out)
                )
                - left_out
            )
            if left_out:
                excludes[name] = left_out
            if (named and len(named) < len(values)) or (named and len(values) == 1):
                includes[name] = named
            if named or left_out:
                break
    return Scope(includes, excludes)


def _excluded(place: str, values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(
        value
        for match in _EXCEPT.finditer(fold(place))
        for value in mentions(place[match.start() : match.end()], values, strict=True)
    )


def topics(rule: Rule) -> frozenset[str]:
    """Return the content stems of a rule: its words, labels and headings."""
    return _topics(rule.text, rule.labels, rule.headings)


@lru_cache(maxsize=65536)
def _topics(text: str, labels: tuple[str, ...], headings: tuple[str, ...]) -> frozenset[str]:
    return frozenset(stems(" ".join([text, *labels, *headings])))
