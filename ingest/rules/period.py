"""Durations in a clause, and by which constructions one of them is a rule's: a window, a notice, a target, a retention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ingest.atoms import Atom, atoms
from ingest.rules.anchor import RUNS, RUNS_HERE, known_anchor, noun_anchor
from ingest.types import Unit
from ingest.words import fold

# The patterns are matched against folded text: lower case, without accents.

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
NOTICE = re.compile(r"notices?|preavisos?|antelacion")
_UNPROMISED = re.compile(
    r"\b(?:cannot|can['’]t|do not|don['’]t|no pod\w+) (?:guarantee|promise|ensure|commit|garantizar)\b"
)


@dataclass(frozen=True, slots=True)
class Period:
    """A duration in a clause, the upper end of a range, or the durations of a list; and what stands around it."""

    atoms: tuple[Atom, ...]
    start: int
    end: int
    left: str
    right: str


def periods_in(clause: str, folded: str) -> Iterator[Period]:
    """Yield the durations of a clause; `folded` is the clause in lower case, without accents."""
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
        yield Period(tuple(counted), group[0].start, group[-1].end, left, right)


def amounts(period: Period) -> Iterator[tuple[int, Unit]]:
    """Yield the lengths of a period that a rule can have."""
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


def tells_a_story(period: Period) -> bool:
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


def states_a_rule(period: Period, forbids: re.Match[str] | None, headings: Sequence[str]) -> bool:
    """Tell whether a duration is a rule's, by the construction it stands in."""
    left, right = period.left, period.right
    runs = RUNS_HERE.match(right)
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


def runs_from(period: Period) -> tuple[str | None, bool]:
    """Return what the time runs from, and whether it runs up to it: said behind it, else in front of it."""
    here = RUNS_HERE.match(period.right)
    if here:
        before = bool(here["before"])
        anchor = known_anchor(here["what"]) or ("" if here["of"] else noun_anchor(here["what"]))
        if anchor or not here["of"]:
            return anchor or None, before
    early = bool(_BEFOREHAND.match(period.right)) or any(
        found and NOTICE.fullmatch(found["noun"])
        for found in (_NOUN_RIGHT.match(period.right), _NAMED_LENGTH.search(period.left))
    )
    early = early or bool(re.search(r"\b(?:notices?|preaviso|antelacion) (?:of|de)[\w ]{0,20}$", period.left))
    for match in RUNS.finditer(period.right[:90]):
        if anchor := known_anchor(match["what"]):
            return anchor, early or bool(match["before"])
    for match in reversed(list(RUNS.finditer(period.left))):
        if anchor := known_anchor(match["what"]):
            return anchor, early or bool(match["before"])
    return None, early
