"""What a rule is applied to: the facts and dates of a ticket, or of the question itself, as the question puts them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from ingest.atoms import Atom, atoms, resolve_date
from ingest.blocks import sentences
from ingest.dates import format_date
from ingest.rules import anchors_in
from ingest.types import Ticket
from ingest.words import fold, mentions, stems, words

_TURNED = re.compile(
    r"\b(too late|expired?|lapsed?|is over|was over|miss(ed)?|outside|overdue|breach(ed)?|out of (time|warranty|guarantee)|run out|late|"
    r"after (the|its|their) (\w+ )?(window|deadline|period|time)|fuera de plazo|demasiado tarde|tarde|vencid[oa]|caducad[oa]|pasad[oa] (el|de) plazo|no tiene derecho|refuse[ds]?|den(y|ied)|reject(ed)?|declined?|not (entitled|eligible|covered|allowed|\w+able)|ineligible|already over|over when)\b"
)
"""Words of a question whose literal yes means that the time is over."""


_STRAIGHT = re.compile(
    r"\b(met|meet|meets|meeting|hit|made|make|keep|kept|reach(ed)?|achieved?|fulfil(l?ed)?|honou?red|within|in time|on time|fast enough|quick(ly)? enough|"
    r"soon enough|early enough|inside|punctual\w*|respected|complied|(was|were|did|has|have|is) (\w+ ){0,2}?(answer(ed)?|respond(ed)?|repl(y|ied)|resolved?|solved?)|a tiempo|cumpl\w+)\b"
)
"""Words of a question whose literal yes means that a target was met."""
_WHEN = re.compile(
    r"\b((until|till|by|since) (when|(what|which) (day|date))|when (is|does|do|will|can|must|should|did) .*\b(last|latest|end|ends|over|expires?|closes?|lapses?|due|run out|deadline)|"
    r"(has|is|did|was) (the|its|their) (\w+ )?(window|deadline|period|time) .*\b(closed?|end(ed)?|expired?|over|passed|run out|open)|"
    r"(last|latest) (day|date|moment)|what (is|was) the (last|latest|deadline|due)|how (long|much longer|much (more )?time|many (more )?days)|"
    r"deadline|hasta cuando|hasta que dia)\b"
)
"""Words of a question that wants the last day."""
_ASKED_ON = re.compile(
    r"\b(still|request(ed|s)?|ask(ed|s)?|asking|claim(ed|s)?|entitled|eligible|in time|on time|too late|possible|okay?)\b.*\b(on|by|of) (\d|[a-z]+ \d)"
)
DEMANDS = frozenset(stems("request claim application report"))
"""Words of an action's name that say that the customer asked."""
_BETWEEN = re.compile(r"\bbetween \d{1,2} \w+(?: \d{4})? and \d{1,2} \w+ \d{4}\b")
_INDIRECT = re.compile(
    r"\b(check|know|knows|tell|see|ask|asks|asked|asking|sure|wonder(ing)?|confirm)( \w+)? if\b"
)
_SUPPOSES = re.compile(
    r"\b(if|suppos(e|ed|ing)|assum(e|ed|ing)|imagine|hypothetically|had (it|they|he|she|the|this|that|ticket|\d+)|had \S+ (\S+ )?been|"
    r"were (it|they) on|would (it|they|this|that|have|still)|(fuera|hubiera|estuviera|tuviera|pagara)(n|mos)?)\b"
)
"""Words of a question about a case as it is not."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule is applied to: facts and dates, of a ticket or of the question itself."""

    label: str
    """How the case is named in a sentence: `ticket TCK-4812`, or `this case`."""
    facts: Mapping[str, str]
    events: Mapping[str, date | datetime] = field(default_factory=dict)
    actions: Mapping[str, date | datetime] = field(default_factory=dict)
    opened: datetime | None = None
    text: str = ""
    subject: str = ""
    asked: str = ""
    """The question."""
    evidence: str = ""
    """Id of the evidence item that holds it; empty when the question itself states it."""
    customer: str = ""
    outcome: str = ""
    """How the ticket ended, quoted from its resolution."""
    record: Mapping[str, str] = field(default_factory=dict)
    """Every field of the ticket that has a closed set of values: the facts, status and assignee."""
    supposed: tuple[str, ...] = ()
    """What the question supposes instead of the record: `plan Starter instead of Team`."""
    premises: tuple[str, ...] = ()
    """What the question takes for granted and the record denies, as sentences."""
    ends: date | None = None
    """The last day, as the question has it."""
    stated: tuple[Atom, ...] = ()
    """Durations that the question states."""
    beside: tuple[str, ...] = ()
    """Words of the question that the rule does not speak of."""
    undated: Mapping[str, str] = field(default_factory=dict)
    """Events and actions whose dates are there and cannot be read, and why."""
    unread: bool = False
    """The question supposes something that could not be read."""
    focus: bool = True
    """The question asks whether or how long, not who, where or how much."""
    when: bool = False
    """The question asks for the last day, not whether it is over."""
    turned: bool | None = False
    """The question asks whether the time is over, not whether it still runs; None where it asks which of the two."""
    straight: bool = True
    """The question asks in known words whether a target was met; a verb that nobody knows may ask for the opposite."""


def case_of(ticket: Ticket, label: str, evidence: str) -> Case:
    """Read a case off a ticket row."""
    # Of a flag only its name says what it is about; "true" keys no rule.
    facts = {
        name: value for name, value in ticket.facets.items() if value and fold(value) not in ("true", "false")
    }
    if ticket.priority:
        facts["priority"] = ticket.priority
    return Case(
        label=f"ticket {label}",
        facts=facts,
        events={**({"opening": ticket.opened_at} if ticket.opened_at else {}), **ticket.events},
        actions=ticket.actions,
        opened=ticket.opened_at,
        undated=ticket.unread,
        text=f"{ticket.subject} {ticket.body}",
        subject=ticket.subject,
        evidence=evidence,
        customer=ticket.customer,
        outcome=next(iter(sentences(ticket.resolution)), ""),
        record={**facts, "status": ticket.status or "", "assignee": ticket.assignee or ""},
    )


def case_in(
    text: str,
    vocabulary: Mapping[str, Collection[str]],
    anchors: Iterable[str],
    now: datetime,
    after: date | None = None,
) -> Case:
    """Read a case off the question itself: facet values it names, and dates that stand beside an anchor word.

    A date without a year is the last one before `now`; a request's is the first one that is not before `after`.
    """
    facts = {
        name: found[0]
        for name, values in vocabulary.items()
        if name != "status" and len(found := mentions(text, values, strict=True)) == 1
    }
    events: dict[str, date | datetime] = {}
    actions: dict[str, date | datetime] = {}
    seen = 0
    # A whole month is the day of nothing: "charged between 1 May 2025 and 31 May 2025".
    text = _BETWEEN.sub(lambda found: " " * len(found.group()), text)
    for atom in atoms(text):
        if atom.kind != "date" or (day := resolve_date(atom, now.date())) is None:
            continue
        said = text[max(seen, atom.start - 45) : atom.start].rpartition(",")[2]
        if edge := re.search(r"\b(before|prior to|after)\s+(?:the\s+)?$", said, re.IGNORECASE):
            # "Charged before 1 July" is the day before at the latest.
            day += timedelta(days=1 if edge[1].lower() == "after" else -1)
        before = set(stems(said))
        seen = atom.end
        anchor = next((n for n in anchors if set(stems(n)) & before or n in anchors_in(said)), None)
        if anchor:
            events[anchor] = day
        else:
            turned = after and day < after and str(day.year) not in atom.text
            actions["request"] = day.replace(year=day.year + 1) if turned else day
    return Case("this case", facts, events, actions)


def cases_in(
    text: str, vocabulary: Mapping[str, Collection[str]], anchors: Collection[str], now: datetime
) -> tuple[Case, ...]:
    """Read the cases off a question: one for each of several values of a facet that it names, else one."""
    base = case_in(text, vocabulary, anchors, now)
    for name, values in vocabulary.items():
        named = mentions(text, values, strict=True)
        if name != "status" and len(named) > 1:
            return tuple(replace(base, label=value, facts={**base.facts, name: value}) for value in named)
    return (base,)


def put(text: str, case: Case, vocabulary: Mapping[str, Collection[str]], now: datetime) -> Case:
    """Return the case as the question puts it: what it supposes, takes for granted, states, or turns round."""
    plain = " ".join(words(text))
    case = replace(
        case,
        asked=text,
        when=bool(_WHEN.search(plain)),
        turned=None if re.search(r"\bor\b.*\bmet\b|\bmet\b.*\bor\b", plain) else bool(_TURNED.search(plain)),
        straight=bool(_STRAIGHT.search(plain)),
        stated=tuple(atom for atom in atoms(text) if atom.kind == "duration"),
        ends=_ends(text, now),
    )
    others = _other_values(text, case, vocabulary) if case.evidence else {}
    supposes = bool(_SUPPOSES.search(_INDIRECT.sub(" ", plain)))
    if case.evidence and (supposes or _moved(text) or _asked_anew(text, case, now)):
        supposing = _supposing(text, case, others, now)
        unread = supposes and not supposing.supposed and bool(case.stated)
        return replace(supposing, unread=unread)
    label = f"{case.label[0].upper()}{case.label[1:]}"
    return replace(
        case,
        premises=tuple(
            f"{label} has {name} {case.facts[name]}, not {value}" for name, value in others.items()
        ),
    )


def _ends(text: str, now: datetime) -> date | None:
    """Return the day on which the question says that the time ends ("does it run until 18 September?")."""
    for atom in atoms(text):
        said = text[max(0, atom.start - 30) : atom.start]
        if atom.kind == "date" and re.search(
            r"\b(ends?|ended|until|till|expires?|expired|closes?|closed|runs? out|last day is|deadline is|hasta(?: el)?)(?: on| until)?\s*$",
            said,
            re.IGNORECASE,
        ):
            return resolve_date(atom, now.date())
    return None


def _supposing(text: str, case: Case, others: Mapping[str, str], now: datetime) -> Case:
    """Put the values and the date that the question supposes in the place of the record's."""
    said = _told(text, case, now)
    asked = said.actions.get("request")
    moved = _moved(text)
    actions = {name: asked or moment + moved for name, moment in case.actions.items()}
    first = next((moment for name, moment in actions.items() if DEMANDS & set(stems(name))), asked)
    recorded = next((moment for name, moment in case.actions.items() if DEMANDS & set(stems(name))), None)
    supposed = [f"{name} {value} instead of {case.facts[name]}" for name, value in others.items()]
    supposed += [f"the {name} on {format_date(day)}" for name, day in said.events.items()]
    if first and (asked or moved):
        other = f" (the one on record came on {format_date(recorded)})" if recorded else ""
        supposed.append(f"a request on {format_date(first)}{other}")
    return replace(
        case,
        facts={**case.facts, **others},
        events={**case.events, **said.events},
        actions={**actions, **({"request": asked} if asked else {})},
        undated={n: why for n, why in case.undated.items() if not (asked and DEMANDS & set(stems(n)))},
        stated=() if moved else case.stated,
        supposed=tuple(supposed),
    )


def _told(text: str, case: Case, now: datetime) -> Case:
    """Read the dates that the question gives; one without a year is the one that follows the case's events."""
    anchors = [name for name in case.events if name != "opening"]
    first = min((_day(moment) for moment in case.events.values()), default=now.date())
    return case_in(text, {}, anchors, datetime.combine(max(first, now.date()), now.timetz()), after=first)


def _asked_anew(text: str, case: Case, now: datetime) -> bool:
    """Tell whether a question gives a request a date that the record does not have: "still in time on 8 October?"."""
    asked = _told(text, case, now).actions.get("request")
    known = {_day(moment) for moment in [*case.events.values(), *case.actions.values()]}
    return asked is not None and _day(asked) not in known and bool(_ASKED_ON.search(" ".join(words(text))))


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _moved(text: str) -> timedelta:
    """Return by how much a question moves an action: "two days earlier" is minus two days."""
    spans = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
    for atom in atoms(re.sub(r"\ban? (?=(?:day|week|hour) (?:earlier|sooner|later))", "one ", text)):
        then = re.search(
            r"\W*(earlier|sooner|later|afterwards)\b",
            text[text.find(atom.text.split()[-1], atom.start) :][:40],
        )
        if atom.kind != "duration" or not then:
            continue
        amount, unit = atom.value.split()
        if amount.isdigit() and unit in spans:
            return int(amount) * spans[unit] * (1 if then[1] in ("later", "afterwards") else -1)
    return timedelta()


def _other_values(text: str, case: Case, vocabulary: Mapping[str, Collection[str]]) -> Mapping[str, str]:
    """Return the facet values that the question names where the record has another."""
    found = {}
    for name, fact in case.facts.items():
        named = [
            value
            for value in mentions(text, vocabulary.get(name, ()), strict=True)
            if value.casefold() != fact.casefold()
        ]
        supposes = bool(_SUPPOSES.search(" ".join(words(text))))
        if len(named) == 1 and (supposes or not mentions(text, [fact], strict=True)):
            found[name] = named[0]
    return found
