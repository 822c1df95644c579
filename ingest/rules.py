"""Rules stated in text: how long, from when, allowed or forbidden; found once, at index time.

A sentence gives a rule where a duration stands in a construction that sets a window, a notice, a target or a
retention, where it forbids outright, or where it sets no limit at all. A table gives one for each cell that is a duration or a prohibition, with its
own column header and the row's other cells as labels. Questions, quoted speech and code give none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, cast

from ingest.atoms import Atom, atoms, blocks, cells, fold, plain, sentences, stems, words
from ingest.types import Chunk, Rule, Unit

RULES_VERSION = "4"
"""Part of the index's identity: raise it when other rules are found in the same text."""

# All patterns below are matched against folded text: lower case, without accents.

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
_FORBIDS = re.compile(
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

_MODAL = re.compile(
    r"\b(?:may|can|cannot|must|will|shall|should|is|are|has|have|gets?|entitled|eligible|become|becomes|expires?|ends?|"
    r"lasts?|keeps?|retain|due|required|need|needs|aim|[a-z]+['’]ll|pued\w+|deb\w+|podra\w*|es|son|se|tiene\w*|"
    r"dispon\w+|hay que|conserv\w+)\b"
)
_PAST = re.compile(
    r"\b(?:i|i['’]ve|i['’]d|my|was|were|had|did|waited|took|came|wrote|asked|contacted|noticed|called|arrived|founded|launched|"
    r"lasted|spent|answered|fixed|fue|era|estuvo|espere|esperamos|tarde|tardaron|tuve|mi)\b"
)
_RELATIVE = re.compile(
    r"\b(?:that|which|who|if|when|once|after|before|until|que|cuando) (?:[\w'’]+ ){0,3}?(?:was|were|had|did|fue|era)\b"
)
_NEVER_LEFT = re.compile(
    r"\b(?:last|past|previous|preceding|ultim[oa]s|every|each|per|cada|any|those|these|"
    r"twice|times|veces|of about|about|another|guarantee an? \w+ within)\s*$"
)
_NEVER_RIGHT = re.compile(
    r"^[\s-]*(?:ago|old|older|of age|later,? (?:i|we|they|he|she)|earlier|drive|walk|de edad|mas tarde)\b"
)
_COMPARED = re.compile(
    r"\b(?<!no )(?<!not )(?:more|older|longer|later|less|fewer|sooner|mas|menos)(?: than| de)\s*$|\b(?:over|beyond|past|under)\s*$"
)
_LIMIT = re.compile(
    r"(?:\b(?:within|up to|until|(?:no|not) (?:later|more|longer|less|fewer) than|at least|at most|maximum|minimum|max|min|"
    r"(?:maximum|minimum|period) of|dentro de|hasta|como (?:maximo|minimo)|a mas tardar|(?:al|por lo) menos|"
    r"(?:maximo|minimo|periodo|plazo)(?: maximo| minimo)? de|en menos de|no mas de)|:)"
    r"(?: the| a| an| its| their| your| los| las| un| el plazo de| un plazo de)?"
    r"(?: first| next| following| initial| full| further| maximum of| period of| primer[oa]s| proxim[oa]s| siguientes)?\s*$"
)
_NOUN = (
    r"(?:windows?|periods?|terms?|notices?|warrant(?:y|ies)|guarantees?|deadlines?|limits?|targets?|retention|trials?|times?|"
    r"grace|validity|plazos?|periodos?|garantias?|preavisos?|antelacion|prueba)"
)
_NAMED_LENGTH = re.compile(
    rf"\b(?P<noun>{_NOUN})\b[^.;]{{0,60}}?(?:\b(?:of|is|are|lasts?|runs?|remains?|ends?|expires?|de|es|son|dura|duran|sera|vence)|:|=)"
    r"(?: for| after| in| at| always| currently| set at| limited to| de| a| los)*\s*$"
)
_KEPT = re.compile(
    r"\b(?:keeps?|kept|retain\w*|stor(?:e|es|ed|age)|holds?|held|archived?|available|accessible|valid|cover\w*|guarantee\w*|"
    r"under (?:warranty|guarantee)|remains?|stays?|saved?|preserved?|lasts?|conserv\w+|guard\w+|almacen\w+|disponibles?|valid[oa]s?|"
    r"cubiert[oa]s?)\b[^.;]{0,70}?\b(?:for|durante|por|lasts?)(?: up to| at least| a period of| a| the first| a further| los)*\s*$"
    r"|\b(?:lasts?|dura[n]?)\s*$"
)
_DONE = r"(?:delet|remov|purg|eras|clos|expir|laps|suspend|cancel|terminat|read-only|deactivat|elimin|borra|caduc|venc|suspend)\w*"
_DONE_AFTER = re.compile(rf"\b{_DONE}\b[^.;]{{0,40}}\b(?:after|in|tras|a los|despues de|en)\s*$")
_AFTER_DONE = re.compile(rf"^[^.;]{{0,80}}\b{_DONE}")
_ANSWERED = re.compile(
    r"\b(?:repl(?:y|ies|ied)|respon[ds]\w*|answer\w*|resolv\w+|resolution|ship\w*|process\w*|refunded|deliver(?:ed|y)?|get back|"
    r"contact|arrives?|credited|paid|contest\w+|atend\w+|reembols\w+|resolv\w+)\b[^.;]{0,40}\b(?:in|en)\s*$"
)
_GIVEN = re.compile(
    r"\b(?:have|has|gets?|allows?|allowed|gives?|given|grant\w*|offers?|dispone\w*|tiene[ns]?|cuenta[ns]? con|hay)\b[^.;]{0,25}$"
)
_TO_DO = re.compile(r"^ (?:in which )?(?:to \w+|para \w+)")
_NOUN_RIGHT = re.compile(
    r"^['’]?s?[- ](?:of |de )?(?:(?!(?:unless|at|an?|the|in|on|for|to|of|if|and|or|but|from|after|before|with|is|are|per|that|this|no|until)\b)[a-z-]+ ){0,2}?"
    rf"(?P<noun>{_NOUN})\b"
)
_BEFOREHAND = re.compile(
    r"^['’]?s? (?:in advance|ahead|beforehand|before(?:hand)?\b(?=$|[.,;])|de antelacion|con antelacion)"
)
_NOTICE = re.compile(r"notices?|preavisos?|antelacion")
_BARRED = re.compile(
    r"\b(?:cannot|can['’]t|can not|may not|must not|shall not|no pued\w+|no podra\w*)\b(?! guarantee| promise| ensure| garantiza\w*)"
    r"(?: (?!except|unless|but|only|other|if|salvo|excepto)\w+){0,5} (?P<span>(?:within|during|in|for|before|durante|dentro de|hasta|en)"
    r"(?: the| los| las)?(?: first| primer[oa]s)?)\s*$"
)
_UNPROMISED = re.compile(
    r"\b(?:cannot|can['’]t|do not|don['’]t|no pod\w+) (?:guarantee|promise|ensure|commit|garantizar)\b"
)

_HEDGE = re.compile(
    r"\b(?:as a (?:general )?(?:rule|guideline)|(?:in|as a) general|general rule|generally|normally|usual(?:ly)?|typical(?:ly)?|"
    r"in most cases|most cases|ordinarily|by default|rule of thumb|(?:we|they) (?:aim|try|strive|endeavou?r)|aims? to|around|approximately|roughly|"
    r"(?:por|como) regla general|en general|normalmente|generalmente|por lo general|habitual(?:mente)?|aproximadamente|en la mayoria de los casos)\b"
)
_CONDITION = re.compile(
    r"(?:^|\b)(?:(?:only |but only |and only |even )?if|unless|provided(?: that)?|providing|except(?: for| that| where| when| if)?|"
    r"only (?:when|where|for|in|on|to|with|once|by)|as long as|on condition that|subject to|solo (?:si|cuando|para)|salvo|siempre que|excepto|"
    r"a menos que|(?<=^)(?:when|where|si|cuando))\b"
)

_ANCHORS: Mapping[str, str] = {
    form: name
    for name, forms in {
        "charge": "charge charged charges payment payments paid pay billing billed debit debited cargo cobro pago pagado",
        "purchase": "purchase purchased purchases purchasing buying bought buy sale order ordered ordering compra comprado pedido adquisicion",
        "delivery": "delivery delivered delivers arrival arrives arrived handover entrega entregado entregados recepcion",
        "renewal": "renewal renewed renews renew renewing renovacion renovarse renueva",
        "opening": "opening opened submission submitted creation created report reported filed raised logged apertura abierto abrir abierta creacion",
        "invoice": "invoice invoiced factura",
        "cancellation": "cancellation cancelled canceled cancelling canceling cancel cancels termination terminated terminates baja cancelacion",
        "closure": "closure closing closed cierre",
        "signup": "signup sign-up registration registered activation activated signing signed subscribing subscribed alta registro activacion",
        "expiry": "expiry expiration expires expired expire vencimiento caducidad",
        "request": "request requested requests solicitud peticion",
        "approval": "approval approved aprobacion",
        "shipping": "shipping shipment shipped dispatch dispatched envio",
        "failure": "failure failed fails",
        "claim": "claim claimed reclamacion",
    }.items()
    for form in forms.split()
}
"""Words that name what a period runs from, and the anchor each of them means."""
_RECEIVED = frozenset(
    "receive receives received receiving receipt recibe recibir recibido recibirse recibirlo reciba".split()
)
_NO_ANCHOR = frozenset(
    (
        "the a an your their its our his her each every any that this these those it they we you he she is are was were been being be has have had "
        "day days date dates moment time month months week weeks year years hour hours first last original initial relevant latest most recent full "
        "of on in at to by for from when which whom who end start beginning calendar next previous same actual respective later earlier "
        "el la los las su sus un una de del al dia fecha momento que en se es desde final fin inicio primer primera ultimo respectiva"
    ).split()
)
_BEFORE = r"before|prior to|ahead of|preceding|in advance of|antes de(?:l)?|previos? a(?:l)?|previas? a(?:l)?|(?:antelacion|preaviso) (?:a(?:l)?|sobre|respecto a(?:l)?)"
_FROM = r"from|after|since|following|desde|a partir de(?:l)?|despues de(?:l)?|tras|siguientes? a(?:l)?|posterior(?:es)? a(?:l)?|contados? (?:desde|a partir de(?:l)?)"
_RUNS = re.compile(rf"\b(?:(?P<before>{_BEFORE})|(?P<after>{_FROM}))\b(?P<what>[^.;:()]*)")
_RUNS_HERE = re.compile(
    rf"^[\s,'’)-]*(?:(?:counted|counting|starting|beginning|running|measured|calculated|calendar|naturales|contados|notice|de|with effect) )*"
    rf"(?:(?P<before>{_BEFORE})|(?P<after>{_FROM})|(?P<of>of|del?|al?))\b(?P<what>[^.;:()]*)"
)
_WHAT_ENDS = re.compile(
    r",|\b(?:due to|because|for|under|via|if|unless|provided|by|without|and|but|or|whichever|si|salvo|siempre|sin|y|o|pero)\b"
)
_TOLD = re.compile(
    r"\b(?:period|window|time|clock|term|target|count|warranty|deadline|hours?|days?|plazo|periodo|garantia|it|they|all|both|values)s?\b.{0,40}"
    r"\b(?:runs?|starts?|begins?|counts?|counted|measured|corren?|cuentan?|empiezan?|comienzan?|from|when|opens?)\b"
)
_STARTS = re.compile(
    r"\b(?:starts?|begins?|runs?|empieza|comienza) (?:when|once|on|cuando|con|el dia)(?P<what>[^.;]*)"
)
_DAY_ZERO = re.compile(
    r"\b(?P<what>[a-z ]{3,40}) (?:is|counts as|es) (?:day|el dia) (?:0|1|zero|one|cero|uno)\b"
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


@dataclass(frozen=True, slots=True)
class _Period:
    """A duration in a clause, the upper end of a range, or the durations of a list; and what stands around it."""

    atoms: tuple[Atom, ...]
    start: int
    end: int
    left: str
    right: str


def anchors_in(text: str) -> frozenset[str]:
    """Return what the words of a text may name for a period to run from: the charge of "we paid on"."""
    return frozenset(_ANCHORS[word] for word in words(text) if word in _ANCHORS)


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
    parts = [block for block in blocks(chunk.body) if block.kind not in ("quote", "code", "heading")]
    told = [line for block in parts if block.kind != "table" for line in sentences(block.text)]
    section_anchor = _told_anchor(told)
    found: list[Rule] = []
    intros: list[tuple[int, str]] = []
    for block in parts:
        if block.kind == "table":
            found += _in_table([cells(line) for line in block.lines], base, section_anchor)
            continue
        # An item is about what the line that opens its list is about: "For Team customers:".
        depth = block.indent if block.kind == "item" else -1
        intros = [intro for intro in intros if intro[0] < depth]
        under = replace(base, headings=(*base.headings, *(text for _, text in intros)))
        stated = [rule for line in sentences(block.text) for rule in _in_sentence(plain(line), under)]
        found += (_anchored(rule, section_anchor) for rule in _once(stated))
        if block.text.endswith((":", ":**", ":*")):
            intros.append((depth, plain(block.text).rstrip(":")))
    return tuple(dict.fromkeys(found))


def _once(stated: Sequence[Rule]) -> Iterator[Rule]:
    """Leave out what only repeats a window from its far side: "After 30 days no refund is possible"."""
    lengths: set[tuple[int | None, Unit | None]] = set()
    for rule in stated:
        if (
            rule.amount is None
            or (rule.amount, rule.unit) not in lengths
            or not _FORBIDS.search(fold(rule.text))
        ):
            yield rule
        lengths.add((rule.amount, rule.unit))


def _anchored(rule: Rule, section_anchor: str | None) -> Rule:
    if rule.amount is None or rule.anchor or rule.before:
        return rule
    return replace(rule, anchor=section_anchor)


def _told_anchor(told: Sequence[str]) -> str | None:
    """Return what the section's periods run from, where a sentence says so: "The period runs from the charge"."""
    for line in told:
        folded = fold(plain(line))
        if any(atom.kind == "duration" for atom in atoms(line)):
            continue
        said = [match["what"] for match in _DAY_ZERO.finditer(folded)]
        if _TOLD.search(folded):
            said += [match["what"] for match in _RUNS.finditer(folded) if match["after"]]
            said += [match["what"] for match in _STARTS.finditer(folded)]
        if anchor := next(filter(None, map(_lexical, said)), None):
            return anchor
    return None


def _in_sentence(line: str, base: Rule) -> Iterator[Rule]:
    line = re.sub(r"^\d{1,3}[.)]\s+", "", line)
    if line.rstrip("\"'”’ ").endswith("?"):
        return
    opening = tuple(match.group() for match in _HEDGE.finditer(fold(line)[:40]))
    for clause in _clauses(line):
        hedges = tuple(dict.fromkeys([*opening, *(match.group() for match in _HEDGE.finditer(fold(clause)))]))
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
    return any(atom.kind == "duration" for atom in atoms(clause)) or bool(_FORBIDS.search(fold(clause)))


def _in_clause(clause: str, base: Rule) -> Iterator[Rule]:
    folded = fold(clause)
    limits = list(_conditions(clause, folded))
    forbids = _forbids(folded)
    if forbids and any(start <= forbids.start() < end for start, end, _ in limits):
        forbids = None
    stated = False
    for text, period, first in _shares(clause, list(_periods(clause, folded))):
        barred = _BARRED.search(period.left)
        if barred and not _AFTER_THAT.search(folded):
            stated = True
            span = clause[barred.start("span") : period.end]
            yield replace(base, polarity="forbids", conditions=(span, *_outside(limits, period)))
            continue
        if _tells(period) or not (_states(period, forbids, base.headings) or (stated and not first)):
            continue
        anchor, before = _runs(period)
        for amount, unit in _amounts(period):
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


def _shares(clause: str, periods: Sequence[_Period]) -> Iterator[tuple[str, _Period, bool]]:
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
    for match in _FORBIDS.finditer(folded):
        if not _SOME.search(folded[: match.start()]):
            return match
    return None


def _conditions(clause: str, folded: str) -> Iterator[tuple[int, int, str]]:
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


def _outside(limits: Sequence[tuple[int, int, str]], period: _Period) -> tuple[str, ...]:
    """Return the conditions that do not hold the period itself: "if you ask within 14 days" is the rule."""
    return tuple(text for start, end, text in limits if not start <= period.start < end)


def _periods(clause: str, folded: str) -> Iterator[_Period]:
    found = [atom for atom in atoms(clause) if atom.kind == "duration"]
    while found:
        group = [found.pop(0)]
        joints = set()
        while found and (
            joint := re.fullmatch(r" (to|or|and|a|o|y) | ?([-–]) ?", folded[group[-1].end : found[0].start])
        ):
            joints.add(joint[1] or joint[2])
            group.append(found.pop(0))
        left, right = folded[: group[0].start], folded[group[-1].end :]
        between = re.search(r"\b(?:between|from|entre)\s*$", left)
        # "30 and 7 days before" are two periods, "between 4 and 7 days" is one, to its upper end.
        counted = group if joints <= {"and", "y"} and not between else group[-1:]
        if between and len(group) > 1:
            left = left[: between.start()]
        yield _Period(tuple(counted), group[0].start, group[-1].end, left, right)


def _amounts(period: _Period) -> Iterator[tuple[int, Unit]]:
    for atom in period.atoms:
        amount, unit = atom.value.split()
        if unit == "minute" and amount.isdigit() and int(amount) % 60 == 0:
            amount, unit = str(int(amount) // 60), "hour"
        if (
            unit in ("hour", "business_hour", "day", "business_day", "month", "year")
            and amount.isdigit()
            and int(amount)
        ):
            yield int(amount), cast(Unit, unit)


def _tells(period: _Period) -> bool:
    """Tell whether a duration is part of a story, a rate or a look back, and so no rule's."""
    left, right = period.left, period.right
    if _NEVER_LEFT.search(left) or _UNPROMISED.search(left):
        return True
    if _NEVER_RIGHT.match(right) and not _COMPARED.search(left):
        return True
    # What was charged, or when it was, is no story: "the card that was charged, within 10 days".
    if _PAST.search(_RELATIVE.sub(" ", left)) and not _MODAL.search(left):
        return True
    article = period.atoms[0].text.lower().startswith(("a ", "an ", "un ", "una "))
    if re.search(r"\bnever\b", left) or (article and re.search(r"\b(?:in|en)\s*$", left)):
        return True
    mine = re.search(r"\b(?:i|my|mi)\b", left)
    return bool(mine and not re.search(r"\b(?:may|can|must|have to|puedo|tengo)\b", left))


def _states(period: _Period, forbids: re.Match[str] | None, headings: Sequence[str]) -> bool:
    """Tell whether a duration is a rule's, by the construction it stands in."""
    left, right = period.left, period.right
    runs = _RUNS_HERE.match(right)
    beforehand = bool(runs and runs["before"]) or bool(_BEFOREHAND.match(right))
    if _COMPARED.search(left):
        return bool(forbids) or beforehand
    if re.search(
        r"\b(?:after|beyond|past|outside|pasad[oa]s|transcurrid[oa]s|despues de|mas alla de)(?: the| los)?\s*$",
        left,
    ):
        return bool(forbids) or bool(_DONE_AFTER.search(left) or _AFTER_DONE.match(right))
    if re.match(r"^[^.;]{0,12}$", left) and left.endswith(": ") and len(right) < 40:
        return any(_about_length(heading) for heading in headings)
    if _LIMIT.search(left) and not left.endswith(":"):
        return not left.rstrip().endswith(":") or any(_about_length(text) for text in (*headings, left))
    if re.match(r"^ (?:have|has|han) (?:passed|elapsed|gone by|pasado|transcurrido)\b", right):
        return bool(forbids)
    if _NAMED_LENGTH.search(left) or _KEPT.search(left) or _DONE_AFTER.search(left) or _ANSWERED.search(left):
        return True
    if _NOUN_RIGHT.match(right):
        return True
    if _GIVEN.search(left) and (_TO_DO.match(right) or runs):
        return True
    strong = beforehand or bool(runs and runs["after"])
    return strong and bool(_MODAL.search(left) or _MODAL.search(right) or not _PAST.search(right))


def _about_length(text: str) -> bool:
    return bool(
        re.search(
            rf"\b(?:{_NOUN}|refunds?|returns?|reembolsos?|devoluciones|sla|response|notice)\b", fold(text)
        )
    )


def _runs(period: _Period) -> tuple[str | None, bool]:
    """Return what the time runs from, and whether it runs up to it: said behind it, else in front of it."""
    here = _RUNS_HERE.match(period.right)
    if here:
        before = bool(here["before"])
        anchor = _lexical(here["what"]) or ("" if here["of"] else _noun(here["what"]))
        if anchor or not here["of"]:
            return anchor or None, before
    early = bool(_BEFOREHAND.match(period.right)) or any(
        found and _NOTICE.fullmatch(found["noun"])
        for found in (_NOUN_RIGHT.match(period.right), _NAMED_LENGTH.search(period.left))
    )
    early = early or bool(re.search(r"\b(?:notices?|preaviso|antelacion) (?:of|de)[\w ]{0,20}$", period.left))
    for match in _RUNS.finditer(period.right[:90]):
        if anchor := _lexical(match["what"]):
            return anchor, early or bool(match["before"])
    for match in reversed(list(_RUNS.finditer(period.left))):
        if anchor := _lexical(match["what"]):
            return anchor, early or bool(match["before"])
    return None, early


def _lexical(what: str) -> str | None:
    """Return the anchor that a phrase names in words we know."""
    said = _said(what)
    named = [_ANCHORS[word] for word in said if word in _ANCHORS]
    if _RECEIVED & set(said):
        # The customer's receiving the goods is their delivery; what the desk receives is something else.
        ours = (
            "return"
            if {"return", "returned", "back"} & set(said)
            else "receipt"
            if said[0] == "we"
            else "delivery"
        )
        return next((name for name in named if name in ("request", "invoice", "cancellation", "claim")), ours)
    return named[0] if named else None


def _noun(what: str) -> str | None:
    """Return the word for an anchor we do not know: better a name no case has a date for than none."""
    said = _said(what)
    if not said or said[0] in ("that", "this", "which", "eso", "esto"):
        return None
    telling = [word for word in said if word not in _NO_ANCHOR]
    # "Before they take effect" is named by its end, "after the first failure" by its head.
    sentence = said[0] in ("it", "they", "we", "you", "he", "she", "se")
    return telling[-1 if sentence else 0] if telling else None


def _said(what: str) -> list[str]:
    return re.findall(r"[a-z]+(?:-[a-z]+)*", _WHAT_ENDS.split(what, maxsplit=1)[0])[:10]


_RATE = re.compile(
    r"\b(?:per|each|every|cada|por) (?:day|week|month|hour|year|minute|second|dia|mes|ano|hora)\b|/ ?[a-z]|\ba (?:day|week|month|year)$"
)
_BARE_NO = re.compile(r"(?:none|no|never|not|n/a|ningun[oa]?|nunca|✗|✘|❌|x)\.?")
_NAMES_RIGHT = re.compile(
    r"\b(?:refund|return|exchange|warranty|guarantee|right|window|period|entitle|reembols|devoluc|garantia|plazo|derecho)\w*"
)
_CELL_FORBIDS = re.compile(
    r"(?:no (?:right|target|refunds?|returns?|warranty|guarantee|entitlement|credits?)|sin |cannot |can['’]t |"
    r"not (?:\w+able|offered|available|included|covered|possible|given|granted)|no reembols|no se )"
)
_TERM_HEADER = re.compile(
    r"\b(?:renews?|renewed|every|frequency|interval|cycle|se renueva|frecuencia|cada)\b"
)
"""Columns that tell how long a term is or how often something comes, which is no window."""
_FROM_HEADER = re.compile(
    r"\b(?:from|starts?|runs?|after|anchor|since|desde|measured|counted|counts?|corre|cuenta|a partir|inicio)\b"
)


def _in_table(rows: Sequence[Sequence[str]], base: Rule, section_anchor: str | None) -> Iterator[Rule]:
    header, *body = rows
    for row in body:
        pairs = list(zip(header, row, strict=False))
        stated = [
            _cell(name, cell) if place or len(pairs) == 1 else None
            for place, (name, cell) in enumerate(pairs)
        ]
        labels = [
            f"{name}: {cell}" if name else cell
            for (name, cell), own in zip(pairs, stated, strict=True)
            if own is None and _is_label(cell)
        ]
        running = next(
            (
                anchor
                for name, cell in pairs
                if _FROM_HEADER.search(fold(name)) and (anchor := _cell_anchor(cell))
            ),
            None,
        )
        conditions = tuple(text for _, cell in pairs for _, _, text in _conditions(cell, fold(cell)))
        for place, (name, cell) in enumerate(pairs):
            read = stated[place]
            if read is None:
                continue
            own = f"{name}: {cell}" if name else cell
            kept = [
                f"{other}: {value}" if other else value
                for at, (other, value) in enumerate(pairs)
                if at == place or (stated[at] is None and _is_label(value))
            ]
            told = replace(
                base,
                text="; ".join(kept or [own]),
                labels=(name, *labels),
                hedges=tuple(match.group() for match in _HEDGE.finditer(fold(own))),
                conditions=conditions,
            )
            if isinstance(read, str):
                yield replace(told, polarity="forbids")
                continue
            anchor, before = _runs(read)
            early = before or bool(_NOTICE.search(fold(name)))
            anchor = anchor or running or _header_anchor(name) or (None if early else section_anchor)
            for amount, unit in _amounts(read):
                yield replace(told, amount=amount, unit=unit, anchor=anchor, before=early)


def _is_label(cell: str) -> bool:
    """Tell whether a cell names what its row is about: short, and neither a length of time nor a bare amount."""
    if (
        len(cell) > 60
        or not re.search(r"[^\W\d_]", cell)
        or re.fullmatch(r"[\d.,%€$£ ]+[a-z]{0,3}", fold(cell))
    ):
        return False
    return not any(atom.kind == "duration" for atom in atoms(cell))


def _cell(name: str, cell: str) -> _Period | Literal["forbids"] | None:
    """Read a cell that is a duration or a prohibition; None for a label."""
    folded = fold(cell)
    if not cell or len(cell) > 90 or _TERM_HEADER.search(fold(name)):
        return None
    # A bare "none" denies only what its column promises: a notice of none is no prohibition.
    if _BARE_NO.fullmatch(folded) and _NAMES_RIGHT.search(fold(name)):
        return "forbids"
    periods = list(_periods(cell, folded))
    if not periods:
        denies = _CELL_FORBIDS.match(folded) or any(match.start() < 12 for match in _FORBIDS.finditer(folded))
        return "forbids" if denies else None
    if len(periods) != 1 or _RATE.search(folded) or not list(_amounts(periods[0])):
        return None
    # A cell that is a sentence states a rule as a sentence does.
    stated = not _tells(periods[0]) and (len(folded.split()) <= 5 or _states(periods[0], None, (name,)))
    return periods[0] if stated else None


def _cell_anchor(cell: str) -> str | None:
    return _lexical(fold(cell)) or _noun(fold(cell))


def _header_anchor(name: str) -> str | None:
    match = _RUNS.search(fold(name))
    return _lexical(match["what"]) if match else None


def topics(rule: Rule) -> frozenset[str]:
    """Return the content stems of a rule: its words, labels and headings."""
    return _topics(rule.text, rule.labels, rule.headings)


@lru_cache(maxsize=65536)
def _topics(text: str, labels: tuple[str, ...], headings: tuple[str, ...]) -> frozenset[str]:
    return frozenset(stems(" ".join([text, *labels, *headings])))
