"""Rules in sentences: what a clause grants for a time or forbids, and on which conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingest.atoms import atoms
from ingest.blocks import plain
from ingest.rules.period import Period, amounts, periods_in, runs_from, states_a_rule, tells_a_story
from ingest.types import Rule
from ingest.words import fold

# The patterns are matched against folded text: lower case, without accents.

_RIGHTS = (
    r"(?:refund|reimburs|repaid|return|exchang|cancel|credited|transferr|cover|offer|accept|allow|permit|includ|grant|"
    r"given|owed|paid back|sent back|taken back|extend)"
)
_RIGHT_ADJECTIVES = (
    r"(?:(?:non-?)?(?:refund|return|reimburs|exchange|transfer|cancell?)able|eligible|entitled|covered|available|offered|"
    r"allowed|permitted|possible|accepted|included|provided)"
)
_NOT = r"(?: not|n?['’]t)"
_ADVERB = r"(?: \w+ly| yet| be)?"
FORBIDS = re.compile(
    rf"\b(?:(?:is|are|(?:will|wo|can|ca|shall|must)(?={_NOT} be)){_NOT}(?: be)?{_ADVERB} (?:{_RIGHT_ADJECTIVES}|{_RIGHTS}\w*)\b"
    rf"|(?:may|must) not(?: be)? {_RIGHTS}\w*|cannot(?: be)?{_ADVERB} {_RIGHTS}\w*|can(?:not|['’]t| not) be{_ADVERB} \w+ed\b"
    rf"|(?:do|does|will|wo|shall|can){_NOT} (?:\w+ly )?(?:refund|reimburse|get|receive|give|grant|offer|accept|cover|exchange|take back|qualify)\b"
    r"|cannot (?:refund|reimburse|give|grant|offer|accept|cover|exchange|return|take back)\b"
    r"|not (?:\w+ly )?(?:(?:refund|return|reimburs|exchange|transfer|cancell?)able|eligible|entitled|covered)\b"
    r"|no [a-z ]{2,25} (?:is|are|will be) (?:given|granted|paid|offered|accepted|issued|possible|due|made)\b"
    r"|non[- ]?(?:refund|return|transfer|cancel|exchange)\w*"
    r"|no (?:right (?:of|to)|refunds?|returns?(?! (?:label|address|form|fee|cost|shipping))|(?:warranty|guarantee)(?! that)|credits?|"
    r"(?:\w+ )?(?:refund|reimbursement|entitlement|compensation|money back|exchange)s?)\b"
    r"|(?:excluded|exempt) from|ineligible|never (?:be )?(?:refund|return|reimburse)\w*|final sale|sales? (?:is|are) final"
    r"|no (?:se )?(?:es |son |sera\w* |(?:podra|pued)\w* (?:ser )?)?(?:reembols|devolv|devuelv|devolu|retorn|cancel(?!acion)|cambi|cubr|cubiert|admit|"
    r"acept|transf)\w*|no (?:hay|existe|tiene[ns]?|da[n]?) (?:derecho|reembolso|devolucion|garantia|lugar a)\w*"
    r"|sin (?:derecho|reembolso|devolucion|garantia))"
)
_UNLIMITED = re.compile(
    r"\b(?:however (?:long|far) (?:ago|back)|no matter how (?:long|late|old)|(?:no|without(?: a| any)?) (?:time ?limit|limit (?:of|in) time|deadline|window)|"
    r"(?:need not|do not need to|don['’]t need to|do not have to|don['’]t have to) be (?:inside|within|in) (?:any|a|the) \w+|"
    r"sin (?:limite de tiempo|plazo)|por mucho tiempo que)\b"
)
_SOME = re.compile(
    r"\b(?:some|certain|not all|not every|others?|parts? of|algun[oa]s?|ciert[oa]s)\b[^,;]{0,50}$"
)
# "No refund is given after that" repeats the end of a window stated beside it.
_AFTER_THAT = re.compile(
    r"\b(?:(?:after|beyond|past|outside(?: of)?|once|despues de|pasado|fuera de) (?:that|this|it|the|these|those|el|ese|este|eso)\b"
    r"|thereafter|afterwards|after(?:wards)?$|otherwise|later (?:requests|claims|returns)|(?:late|later) (?:requests?|claims?)|"
    r"de lo contrario|transcurrido|posteriormente)"
)
_BARRED = re.compile(
    r"\b(?:cannot|can['’]t|can not|may not|must not|shall not|no pued\w+|no podra\w*)\b(?! guarantee| promise| ensure| garantiza\w*)"
    r"(?: (?!except|unless|but|only|other|if|salvo|excepto)\w+){0,5} (?P<span>(?:within|during|in|for|before|durante|dentro de|hasta|en)"
    r"(?: the| los| las)?(?: first| primer[oa]s)?)\s*$"
)
HEDGE = re.compile(
    r"\b(?:as a (?:general )?(?:rule|guideline)|(?:in|as a) general|general rule|generally|normally|usual(?:ly)?|typical(?:ly)?|"
    r"in most cases|most cases|ordinarily|by default|rule of thumb|(?:we|they) (?:aim|try|strive|endeavou?r)|aims? to|around|approximately|roughly|"
    r"(?:por|como) regla general|en general|normalmente|generalmente|por lo general|habitual(?:mente)?|aproximadamente|en la mayoria de los casos)\b"
)
_CONDITION = re.compile(
    r"(?:^|\b)(?:(?:only |but only |and only |even )?if|unless|provided(?: that)?|providing|except(?: for| that| where| when| if)?|"
    r"only (?:when|where|for|in|on|to|with|once|by)|as long as|on condition that|subject to|solo (?:si|cuando|para)|salvo|siempre que|excepto|"
    r"a menos que|(?<=^)(?:when|where|si|cuando))\b"
)
_SPLIT = re.compile(
    r";\s+|,?\s+(?:whereas|while|whilst|mientras que|en cambio)\s+|,\s+(?:but|pero)\s+|,?\s+(?:and|y)\s+(?=\S)",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"(?: (?:from|of|after|before|since|desde|antes de|despues de) [^,;.]{1,40}?)?"
    r"(?: ?(?:on|for|in|under|with|en|para|con|\() ?[^,;.]{1,40}?)?"
    r"(?P<joint>,? (?:and|or|but|y|o|pero) |[,;] )(?P<subject>(?:(?!(?:after|before|from|with|once|any|every|each|per|last|over|about)\b)[\w-]+:? ){0,4})"
)
"""What stands between two periods of a list: "30 days (on Team and) 45 days", "annual 30 days (and monthly) 7 days"."""
_OWN_SUBJECT = re.compile(
    r"^(?:(?:the|all|any|every|each|for|on|los|las|el|la|para)? ?(?!may\b|can\b|must\b|will\b|is\b|are\b|not\b|no\b|then\b|only\b|never\b|se\b)[a-z][\w'’-]*)"
    r"(?: [\w'’-]+){0,5}? (?:is|are|can|may|must|will|shall|has|have|cannot|can['’]t|isn['’]t|aren['’]t|gets?|receives?|lasts?|within|no|not|son|es|"
    r"pued\w+|podr\w+|tiene\w*|se|dentro)\b"
)
_VERB = re.compile(
    r"\b(?:is|are|can|may|must|will|shall|has|have|cannot|gets?|lasts?|within|refunded|returned|keep|isn['’]t|aren['’]t|can['’]t|son|es|se|"
    r"pued\w+|podr\w+|tiene\w*)\b"
)


def forbids(text: str) -> bool:
    """Tell whether a text denies a right outright."""
    return _forbids(fold(plain(text))) is not None


def in_sentence(line: str, base: Rule) -> Iterator[Rule]:
    """Yield the rules that a sentence states; `base` holds what they share."""
    line = re.sub(r"^\d{1,3}[.)]\s+", "", line)
    if line.rstrip("\"'”’ ").endswith("?"):
        return
    opening = tuple(match.group() for match in HEDGE.finditer(fold(line)[:40]))
    for clause in _clauses(line):
        hedges = tuple(dict.fromkeys([*opening, *(match.group() for match in HEDGE.finditer(fold(clause)))]))
        yield from _in_clause(clause, replace(base, text=clause, hedges=hedges))


def _clauses(line: str) -> list[str]:
    """Split a sentence where both sides are statements with subjects of their own."""
    clauses: list[str] = []
    start = 0
    for match in _SPLIT.finditer(line):
        before, after = line[start : match.start()], line[match.end() :]
        joined = match.group().strip(" ,").lower()
        stands = bool(_VERB.search(fold(before)) and _OWN_SUBJECT.match(fold(after)))
        if joined in ("and", "y"):
            # Two statements joined by "and" matter only where each says something of its own.
            stands = stands and _says(before) and _says(after)
        if stands or joined == ";":
            clauses.append(before.strip())
            start = match.end()
    return [*clauses, line[start:].strip()]


def _says(clause: str) -> bool:
    return any(atom.kind == "duration" for atom in atoms(clause)) or bool(FORBIDS.search(fold(clause)))


def _in_clause(clause: str, base: Rule) -> Iterator[Rule]:
    folded = fold(clause)
    limits = list(conditions_in(clause, folded))
    forbids = _forbids(folded)
    if forbids and any(start <= forbids.start() < end for start, end, _ in limits):
        forbids = None
    stated = False
    for text, period, first in _shares(clause, list(periods_in(clause, folded))):
        barred = _BARRED.search(period.left)
        if barred and not _AFTER_THAT.search(folded):
            stated = True
            span = clause[barred.start("span") : period.end]
            yield replace(base, polarity="forbids", conditions=(span, *_outside(limits, period)))
            continue
        if tells_a_story(period) or not (
            states_a_rule(period, forbids, base.headings) or (stated and not first)
        ):
            continue
        anchor, before = runs_from(period)
        for amount, unit in amounts(period):
            stated = True
            conditions = _outside(limits, period)
            yield replace(
                base, text=text, amount=amount, unit=unit, anchor=anchor, before=before, conditions=conditions
            )
    if stated:
        return
    if forbids and not _AFTER_THAT.search(folded):
        yield replace(base, polarity="forbids", conditions=tuple(text for _, _, text in limits))
    elif _UNLIMITED.search(folded):
        yield base


def _shares(clause: str, periods: Sequence[Period]) -> Iterator[tuple[str, Period, bool]]:
    """Yield each period with the words that are about it, and whether it opens its list.

    "Kept for 90 days on Team and 24 months on Business" says of Business only "Kept for … 24 months on Business".
    """
    start = 0
    head = ""
    for place, period in enumerate(periods):
        following = periods[place + 1] if place + 1 < len(periods) else None
        cut = _SHARE.fullmatch(fold(clause[period.end : following.start])) if following else None
        first = not start
        own = clause[start : period.end + cut.start("joint") if cut else len(clause)].strip(" ,")
        yield f"{head} … {own}" if head else own, period, first
        if not cut:
            start, head = 0, ""
            continue
        if first:
            head = clause[: period.start].strip()
        head = "" if cut["subject"] else head
        start = period.end + cut.end("joint")


def _forbids(folded: str) -> re.Match[str] | None:
    """Return the prohibition of a clause; "some payments cannot be refunded" forbids nothing in particular."""
    for match in FORBIDS.finditer(folded):
        if not _SOME.search(folded[: match.start()]):
            return match
    return None


def conditions_in(clause: str, folded: str) -> Iterator[tuple[int, int, str]]:
    """Yield the clauses that limit a rule; one at the head, or put in between commas, ends at its comma."""
    starts = [match.start() for match in _CONDITION.finditer(folded)]
    for place, start in enumerate(starts):
        limit = starts[place + 1] if place + 1 < len(starts) else len(folded)
        stop = re.compile(
            r"[,.;:()]" if start == 0 or folded[:start].endswith(", ") else r"[.;:()](?!\w)|\)"
        ).search(folded, start, limit)
        end = stop.start() if stop else limit
        if start == 0 and end >= len(folded.rstrip(". ")):
            continue  # nothing tells where the condition ends and the rule begins
        yield start, end, clause[start:end].strip(" ,.")


def _outside(limits: Sequence[tuple[int, int, str]], period: Period) -> tuple[str, ...]:
    """Return the conditions that do not hold the period itself: "if you ask within 14 days" is the rule."""
    return tuple(text for start, end, text in limits if not start <= period.start < end)
