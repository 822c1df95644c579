"""The verdict: which rule applies to this case, by scope, precedence and dates; code's own decision, with its reasons.

Method: candidates are every rule-bearing chunk of the topic, not only what was shown. A rule applies when each facet
value in its scope equals a known fact. The most specific rule wins, then terms over policy over help over FAQ over
chat, then unhedged over hedged, then the newer one; what is still tied is reported, not resolved. The deadline is
computed from the record's own dates and compared with the time of the request, not with now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from bot.gate import asks
from bot.types import Decision, Verdict
from ingest.atoms import MONTHS, Atom, atoms, mentions, resolve_date, same, stems, words
from ingest.dates import Calendar, deadline, format_date, format_duration
from ingest.rules import Scope, scope, topics
from ingest.types import AUTHORITY, Chunk, Rule, Ticket

GENERIC = frozenset(
    stems(
        "customer client account ticket case company plan subscription entitled eligible entitlement allowed get give still "
        "ask asked request requested apply applies rule policy long many much day days hour hours time date deadline window "
        "due end ends close closed expire possible right want like know please tell shop store user person one now today make "
        "back happen charge payment fee period buyer order item purchase billing compare compared difference different longer "
        "shorter higher faster better annual monthly see look say says said somebody someone valid count hold holds true "
        "answer answered cliente tiene derecho plazo puede"
    )
)
"""Words that ask for a rule without saying which."""
ACTS = GENERIC | frozenset(stems("claim claimed request requested application report reported"))
"""Words of an action's name that say somebody acted, not about what: the refund of a "refund request"."""


_TOPICAL = 0.75
"""Share, by weight, of a question's topic words that a rule must hold to be about it."""
_TURNED = re.compile(
    r"\b(too late|expired?|lapsed?|is over|was over|missed|overdue|breach(ed)?|out of (time|warranty|guarantee)|run out|late|"
    r"refused?|denied|rejected|declined|not (entitled|eligible|covered|allowed)|ineligible|already over|over when)\b"
)
"""Words of a question whose literal yes means that the time is over."""


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
    evidence: str = ""
    """Id of the evidence item that holds it; empty when the question itself states it."""
    customer: str = ""
    premises: tuple[str, ...] = ()
    """What the question takes for granted and the record denies, as sentences."""
    stated: tuple[Atom, ...] = ()
    """Durations that the question states."""
    turned: bool | None = False
    """The question asks whether the time is over, not whether it still runs; None where it asks which of the two."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule with its scope against one case."""

    rule: Rule
    chunk: Chunk
    scope: Scope
    fit: str
    named: int = 0
    """It forbids something by name: 1 where the case mentions that, more where it is what the case is about."""

    @property
    def precedence(self) -> tuple[int, int, int, int]:
        """Specific, authoritative, unhedged, newer: the larger wins."""
        effective = self.rule.effective_from
        return (
            self.scope.keys + self.named,
            AUTHORITY[self.rule.authority],
            0 if self.rule.hedges else 1,
            effective.toordinal() if effective else 0,
        )

    @property
    def outcome(self) -> tuple[object, ...]:
        """What the rule says: two rules with equal outcomes do not disagree."""
        return (self.rule.amount, self.rule.unit, self.rule.polarity, self.rule.before)


def cite(id_: str) -> str:
    """Return the placeholder of an evidence id; it becomes `[n]` when the verdict is numbered."""
    return f"\x00{id_}\x00" if id_ else ""


def numbered(verdict: Verdict, numbers: Mapping[str, int]) -> str:
    """Return the verdict's text with its placeholders turned into `[n]`; unknown ids vanish."""
    return re.sub(
        r" ?\x00([^\x00]*)\x00", lambda m: f" [{numbers[m[1]]}]" if m[1] in numbers else "", verdict.text
    )


def case_of(ticket: Ticket, label: str, evidence: str) -> Case:
    """Read a case off a ticket row."""
    facts = {name: value for name, value in ticket.facets.items() if value}
    if ticket.priority:
        facts["priority"] = ticket.priority
    return Case(
        label=f"ticket {label}",
        facts=facts,
        events={**({"opening": ticket.opened_at} if ticket.opened_at else {}), **ticket.events},
        actions=ticket.actions,
        opened=ticket.opened_at,
        text=f"{ticket.subject} {ticket.body}",
        subject=ticket.subject,
        evidence=evidence,
        customer=ticket.customer,
    )


def case_in(
    text: str, vocabulary: Mapping[str, Collection[str]], anchors: Iterable[str], now: datetime
) -> Case:
    """Read a case off the question itself: facet values it names, and dates that stand beside an anchor word."""
    facts = {
        name: found[0]
        for name, values in vocabulary.items()
        if name != "status" and len(found := mentions(text, values, strict=True)) == 1
    }
    events: dict[str, date | datetime] = {}
    actions: dict[str, date | datetime] = {}
    seen = 0
    for atom in atoms(text):
        if atom.kind != "date" or (day := resolve_date(atom, now.date())) is None:
            continue
        before = set(stems(text[max(seen, atom.start - 45) : atom.start].rpartition(",")[2]))
        seen = atom.end
        anchor = next((name for name in anchors if set(stems(name)) & before), None)
        if anchor:
            events[anchor] = day
        else:
            actions["request"] = day
    return Case("this case", facts, events, actions, text=text)


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


def topic_of(
    text: str, vocabulary: Mapping[str, Collection[str]], synonyms: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    """Return the stems that say what a question is about: no ids, dates, facet values, or words that merely ask."""
    plain = text
    added = [word for word, others in synonyms.items() if any(_says(text, other) for other in others)]
    for atom in reversed(atoms(text)):
        plain = plain[: atom.start] + " " + plain[atom.end :]
    plain = " ".join(word for word in words(plain) if word not in MONTHS)
    named = {
        stem for values in vocabulary.values() for value in mentions(text, values) for stem in stems(value)
    }
    return (frozenset(stems(plain)) - GENERIC - named) | frozenset(s for word in added for s in stems(word))


def _says(text: str, phrase: str) -> bool:
    """Tell whether a text says a phrase, in any form of its words ("sent back" for "send back")."""
    if re.search(rf"\b{re.escape(' '.join(words(phrase)))}\w*\b", " ".join(words(text))):
        return True
    wanted = stems(phrase)
    if len(wanted) != len(words(phrase)):
        return False
    # A verb and its particle may stand apart: "send the bike back".
    gap = r" (?:\S+ ){0,4}" if len(wanted) == 2 else " "
    return bool(re.search(rf" {gap.join(map(re.escape, wanted))} ", f" {' '.join(stems(text))} "))


def decide(
    text: str,
    case: Case,
    chunks: Iterable[Chunk],
    *,
    vocabulary: Mapping[str, Collection[str]],
    synonyms: Mapping[str, Sequence[str]],
    actions: Collection[str],
    anchors: Collection[str],
    calendar: Calendar,
    now: datetime,
) -> Verdict | None:
    """Decide the question for the case, or return None where no rule of its topic is known.

    `chunks` are all rule-bearing chunks that the asker may read and that may concern the topic. The verdict is
    `undecided`, with its gaps, where a rule is there but a fact or a date is missing, or where rules are tied.
    """
    plain = words(text)
    either = "or" in plain and "met" in plain
    case = replace(
        case,
        turned=None if either else bool(_TURNED.search(" ".join(plain))),
        premises=_denied(text, case, vocabulary) if case.evidence else (),
        stated=tuple(atom for atom in atoms(text) if atom.kind == "duration"),
    )
    topic = topic_of(text, vocabulary, synonyms)
    heads = _heads(topic, actions)
    verdicts: list[Verdict] = []
    candidates = _candidates(chunks, case, vocabulary)
    for action, wanted in heads or [("", topic)]:
        about = _named_about(candidates, wanted, synonyms) if heads else _about(candidates, wanted)
        verdict = _one(about, action, case, anchors, calendar, now) if about else None
        if verdict:
            verdicts.append(verdict)
    if not verdicts and frozenset(stems("sla")) & topic:
        # A question about the service level means every target that is set in hours.
        for action in actions:
            about = _named_about(candidates, frozenset(stems(action)) - ACTS, synonyms)
            about = [c for c in about if c.rule.unit in ("hour", "business_hour")]
            verdict = _one(about, action, case, anchors, calendar, now) if about else None
            verdicts += [verdict] if verdict else []
    if not verdicts and case.evidence and not topic:
        # "Are they entitled to it?": what it is stands in the ticket.
        for action, wanted in _heads(topic_of(case.text, vocabulary, synonyms), actions):
            about = _named_about(candidates, wanted, synonyms)
            verdict = _one(about, action, case, anchors, calendar, now) if about else None
            verdicts += [verdict] if verdict else []
    return together(verdicts) if verdicts else None


def _heads(topic: frozenset[str], actions: Collection[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the declared actions that the question is about: `refund request` makes `refund` the topic's head."""
    heads = []
    for action in actions:
        wanted = frozenset(stems(action)) - ACTS
        if wanted and wanted <= topic:
            heads.append((action, wanted))
    return heads


def _candidates(
    chunks: Iterable[Chunk], case: Case, vocabulary: Mapping[str, Collection[str]]
) -> list[Candidate]:
    keyed = {name: values for name, values in vocabulary.items() if name != "status"}
    named = frozenset(stem for values in keyed.values() for value in values for stem in stems(value))
    told = frozenset(stems(case.text))
    rules = {
        (rule.uri, rule.text, rule.amount, rule.unit, rule.labels): (rule, chunk)
        for chunk in chunks
        for rule in chunk.rules
    }
    seen = Counter(stem for rule, _ in rules.values() for stem in topics(rule))
    common = named | {stem for stem, n in seen.items() if n > max(3, len(rules) // 8)}
    found = []
    for rule, chunk in rules.values():
        read = scope(rule, keyed)
        object_ = _object(rule) - common
        mentioned = 2 * len(object_ & told) >= len(object_) > 0
        subject = 2 * len(object_ & frozenset(stems(case.subject))) >= len(object_) > 0
        fit = "no" if object_ and not mentioned else read.fits(case.facts)
        found.append(Candidate(rule, chunk, read, fit, len(keyed) + 1 if subject else int(mentioned)))
    return found


def _object(rule: Rule) -> frozenset[str]:
    """Return what an outright prohibition is about ("invoice packs are never refunded"), generic words aside.

    Such a rule concerns only a case that is about the same thing, and then it is the most specific one.
    """
    if rule.polarity != "forbids" or rule.labels:
        return frozenset()
    subject = re.split(
        r"\b(?:is|are|was|were|can|cannot|may|will|do|does|never|not|no)\b",
        rule.text,
        maxsplit=1,
        flags=re.IGNORECASE,
    )[0]
    return frozenset(stems(subject)) - GENERIC


def _named_about(
    candidates: list[Candidate], wanted: frozenset[str], synonyms: Mapping[str, Sequence[str]]
) -> list[Candidate]:
    """Keep the rules about a declared action: the ones that name it, in their own words or their section's heading.

    A document's title says what most of it is about, not what each of its rules sets; it counts only for a document
    none of whose rules names it nearer.
    """
    near = [
        c
        for c in candidates
        if wanted <= topics(replace(c.rule, headings=c.rule.headings[1:]))
        or wanted <= topic_of(" ".join([c.rule.text, *c.rule.labels, *c.rule.headings[1:]]), {}, synonyms)
    ]
    documents = {c.rule.uri for c in near}
    return near + [c for c in candidates if c.rule.uri not in documents and wanted <= topics(c.rule)]


def _about(candidates: list[Candidate], wanted: frozenset[str]) -> list[Candidate]:
    """Keep the rules that share the most telling words with the question, and enough of them."""
    if not wanted:
        return []
    of = {id(candidate): topics(candidate.rule) for candidate in candidates}
    weight = {stem: 1 / (1 + sum(stem in topic for topic in of.values())) ** 0.5 for stem in wanted}
    scores = [(sum(weight.get(stem, 0) for stem in of[id(c)]), c) for c in candidates if c.fit != "no"]
    best = max((score for score, _ in scores), default=0.0)
    if best < _TOPICAL * sum(weight.values()):
        return []
    return [candidate for score, candidate in scores if score >= 0.85 * best]


def _in_force(rule: Rule, day: date) -> bool:
    return (rule.effective_from is None or rule.effective_from <= day) and (
        rule.superseded_on is None or day < rule.superseded_on
    )


def _day(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _event(rule: Rule, case: Case, by_action: bool) -> tuple[str, date | datetime] | None:
    """Return the case's event that the rule's time runs from; the only one there is where the rule names none."""
    if rule.anchor:
        wanted = set(stems(rule.anchor))
        for name, moment in case.events.items():
            if wanted & set(stems(name)):
                return name, moment
        return None
    if not by_action and case.evidence:
        return None
    others = [(name, moment) for name, moment in case.events.items() if name != "opening"]
    if rule.unit in ("hour", "business_hour") and "opening" in case.events:
        return "opening", case.events["opening"]
    return others[0] if len(others) == 1 else None


def _one(
    about: list[Candidate],
    action: str,
    case: Case,
    anchors: Collection[str],
    calendar: Calendar,
    now: datetime,
) -> Verdict | None:
    events = {id(c): _event(c.rule, case, bool(action)) for c in about}
    live = [c for c in about if _in_force(c.rule, _day(e[1]) if (e := events[id(c)]) else now.date())]
    # A rule whose time runs from something that the case has no date of is about another matter, if any other is not.
    known = {stem for anchor in anchors for stem in stems(anchor)}
    dated = [
        c
        for c in live
        if events[id(c)]
        or c.rule.amount is None
        or (not case.evidence and known & set(stems(c.rule.anchor or "")))
    ]
    live = dated if any(c.fit == "applies" for c in dated) else live
    applying = [c for c in live if c.fit == "applies"]
    formal = [c for c in applying if c.rule.authority != "chat"]
    if not formal:
        return None
    best = max(formal, key=lambda c: (c.precedence, c.rule.amount is not None, c.rule.anchor is not None))
    rivals = [
        c
        for c in formal
        if c.precedence == best.precedence and c.outcome != best.outcome and _same_matter(c, best)
    ]
    unknown = [c for c in live if c.fit == "unknown" and c.rule.authority != "chat" and _same_matter(c, best)]
    if any(rival.rule.text == best.rule.text for rival in rivals):
        return None  # one sentence with two durations: which of them is asked, a reader sees
    if rivals:
        # Without a case there is nothing to decide: the reader gets the sentences.
        return _tied([best, *rivals[:2]], case) if case.evidence else None
    if not case.evidence and any(c.scope.keys > best.scope.keys for c in unknown):
        return _depends(best, [c for c in unknown if c.scope.keys > best.scope.keys], case)
    others = [
        c
        for c in applying
        if c.outcome != best.outcome
        and c.precedence != best.precedence
        and c.rule.amount
        and _same_matter(c, best)
    ]
    return _apply(best, others, action, case, calendar, now)


def _same_matter(one: Candidate, other: Candidate) -> bool:
    """Tell whether two rules set the same thing: their time runs from the same event, where both name one."""
    timed = [c.rule for c in (one, other) if c.rule.amount is not None]
    anchors = {rule.anchor for rule in timed if rule.anchor}
    units = {"business" in (rule.unit or "") for rule in timed if None in {r.anchor for r in timed}}
    return len(anchors) <= 1 and len(units) <= 1 and one.rule.before == other.rule.before


def _place(rule: Rule) -> str:
    title, *path = rule.headings or ("the documents",)
    return ", ".join([title, *path[-1:]])


def _said(rule: Rule) -> str:
    if rule.amount is None or rule.unit is None:
        return "no such right"
    anchor = f" {'before' if rule.before else 'from'} the {rule.anchor}" if rule.anchor else ""
    return f"{format_duration(rule.amount, rule.unit)}{anchor}"


def _quote(rule: Rule) -> str:
    return f"“{rule.text.strip()}”"


def _who(case: Case, best: Candidate) -> str:
    keys = [case.facts[name] for name in best.scope.includes if name in case.facts]
    about = ", ".join(keys)
    whose = f"{case.customer} ({case.label}" if case.customer else f"{case.label} ("
    if not case.customer:
        return f"{case.label} ({about})" if about else case.label
    return f"{whose}{', ' + about if about else ''})"


def _apply(
    best: Candidate, others: list[Candidate], action: str, case: Case, calendar: Calendar, now: datetime
) -> Verdict:
    rule = best.rule
    used = [case.evidence] if case.evidence else []
    used.append(best.chunk.id)
    own, ticket = cite(best.chunk.id), cite(case.evidence)
    why = f"Rule applied: {_place(rule)}: {_quote(rule)} {own}."
    if rule.amount is None or rule.unit is None:
        lead = "".join(f"{premise}. " for premise in case.premises) + (
            "" if not case.evidence else "Yes: " if case.turned else "No. "
        )
        text = f"{lead}For {_who(case, best)} the rule gives no such right {ticket}{own}. {why}"
        return _with_others("no", text, best, others, used, case, ())
    event = _event(rule, case, bool(action))
    if event is None:
        wanted = rule.anchor or "event it runs from"
        text = f"The rule for {_who(case, best)} is {_said(rule)} {own}. {why}"
        gap = f"the date of the {wanted} is not in {case.label}"
        decision: Decision = "undecided" if case.evidence else "rule"
        return _with_others(decision, text, best, others, used, case, (gap,) if case.evidence else ())
    _, start = event
    end = deadline(start, rule.amount, rule.unit, calendar, before=rule.before)
    when, what = _moment(action, rule, case, now)
    formula = end.formula
    if when is None:
        gone = (
            ""
            if end.met_by(now)
            else f" That is past by now: {end.margin(now).text.replace('after', 'since')}."
        )
        text = (
            f"For {_who(case, best)} it is due by {format_date(end.at)}: {_said(rule)} {ticket}{own}.{gone}"
        )
        text += f" Computed: {formula}. {why}"
        return _with_others("due", text, best, others, used, case, ())
    met = end.met_by(when)
    until = f"{'it had to be done by' if rule.before else 'it runs until'} {format_date(end.at)}"
    text = (
        f"{_lead(met, case, rule)}. For {_who(case, best)} the rule is {_said(rule)}, so {until}; {what} came on "
        f"{format_date(when)}, {end.margin(when).text} {ticket}{own}. Computed: {formula}. {why}"
    )
    gaps = tuple(f"to be checked by a person: {condition}" for condition in rule.conditions)
    return _with_others("yes" if met else "no", text, best, others, used, case, gaps)


def _denied(text: str, case: Case, vocabulary: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return where the question names another facet value than the record has."""
    found = []
    for name, fact in case.facts.items():
        named = [
            v
            for v in mentions(text, vocabulary.get(name, ()), strict=True)
            if v.casefold() != fact.casefold()
        ]
        if len(named) == 1 and not mentions(text, [fact], strict=True):
            found.append(f"{case.label[0].upper()}{case.label[1:]} has {name} {fact}, not {named[0]}")
    return tuple(found)


def _corrections(case: Case, rule: Rule) -> tuple[str, ...]:
    """Return what has to be put right before the answer: a wrong premise, or a duration that is not the rule's."""
    if rule.amount is None or rule.unit is None:
        return case.premises
    right = atoms(format_duration(rule.amount, rule.unit))
    wrong = [atom.text for atom in case.stated if not any(same(atom, other) for other in right)]
    return (
        *case.premises,
        *([f"The rule is not {' or '.join(wrong)}"] if wrong and len(wrong) == len(case.stated) else []),
    )


def _lead(met: bool, case: Case, rule: Rule) -> str:
    """Answer the question as it was put: "is it too late?" is answered no where the time still runs."""
    target = rule.unit in ("hour", "business_hour")
    said = (
        ("the target was met" if met else "the target was missed")
        if target
        else "it is in time"
        if met
        else "it is past"
    )
    if wrong := _corrections(case, rule):
        return f"{'. '.join(wrong)}. By the rule that applies {said}"
    if case.turned is None:
        return f"{said[0].upper()}{said[1:]}"
    if case.turned:
        return f"{'No' if met else 'Yes'}, {said}"
    return f"{'Yes' if met else 'No'}{', ' + said if target else ''}"


def _moment(action: str, rule: Rule, case: Case, now: datetime) -> tuple[date | datetime | None, str]:
    """Return the time that is compared with the deadline, and what it is called."""
    if action and action in case.actions:
        return case.actions[action], f"the {action}"
    if not case.evidence and "request" in case.actions:
        return case.actions["request"], "the request"
    about = topics(rule)
    for name, moment in case.actions.items() if not action else ():
        wanted = frozenset(stems(name)) - ACTS
        if not wanted or wanted <= about:
            return moment, f"the {name}"
    if rule.unit in ("hour", "business_hour"):
        return None, ""
    if case.opened and about & set(stems(case.text)):
        return case.opened, "the ticket, which asks for it and has no date of its own for that,"
    return now, "the question"


def _with_others(
    decision: Decision,
    text: str,
    best: Candidate,
    others: list[Candidate],
    used: list[str],
    case: Case,
    gaps: tuple[str, ...],
) -> Verdict:
    seen = {best.outcome}
    notes: list[str] = []
    for other in sorted(others, key=lambda c: (c.rule.authority != "chat", c.precedence), reverse=True):
        if other.outcome in seen or len(notes) == 2:
            continue
        seen.add(other.outcome)
        used.append(other.chunk.id)
        notes.append(
            f"{_place(other.rule)} says {_said(other.rule)} {cite(other.chunk.id)}; {_because(best, other)}."
        )
    overruled = tuple(used[len(used) - len(notes) :]) if notes else ()
    return Verdict(
        decision,
        " ".join([text, *notes]),
        tuple(dict.fromkeys(used)),
        best.rule,
        dict(case.facts),
        gaps,
        overruled,
    )


def _because(best: Candidate, other: Candidate) -> str:
    if best.named:
        return "the rule that names just this goes before it"
    if best.scope.keys > other.scope.keys:
        general = "the general rule" if not other.scope.keys else "the more general rule"
        return f"that is {general}, and the specific one applies"
    if AUTHORITY[best.rule.authority] > AUTHORITY[other.rule.authority]:
        return f"{best.rule.authority} text goes before {other.rule.authority} text"
    if other.rule.hedges and not best.rule.hedges:
        return f"it is hedged (“{other.rule.hedges[0]}”) and the other is not"
    if best.precedence > other.precedence:
        return "the newer text goes before the older one"
    return "it does not decide this case"


def _tied(tied: list[Candidate], case: Case) -> Verdict:
    lines = [f"{_place(c.rule)} says {_said(c.rule)}: {_quote(c.rule)} {cite(c.chunk.id)}" for c in tied]
    text = (
        f"Two rules of equal weight disagree for {case.label}, so a person must decide. "
        + ". ".join(lines)
        + "."
    )
    used = ([case.evidence] if case.evidence else []) + [c.chunk.id for c in tied]
    return Verdict(
        "undecided", text, tuple(used), None, dict(case.facts), ("which of the two rules applies",)
    )


def _depends(best: Candidate, unknown: list[Candidate], case: Case) -> Verdict:
    missing = sorted({name for c in unknown for name in c.scope.includes if name not in case.facts})
    lines = [
        f"{', '.join(sorted(v for values in c.scope.includes.values() for v in values))}: {_said(c.rule)} "
        f"{cite(c.chunk.id)}"
        for c in sorted(unknown, key=lambda c: c.precedence, reverse=True)[:8]
    ]
    text = (
        f"It depends on the {' and the '.join(missing)}. In general: {_said(best.rule)} {cite(best.chunk.id)}. "
        + "; ".join(dict.fromkeys(lines))
        + "."
    )
    used = ([case.evidence] if case.evidence else []) + [best.chunk.id, *(c.chunk.id for c in unknown[:8])]
    return Verdict(
        "undecided" if case.facts else "rule",
        text,
        tuple(dict.fromkeys(used)),
        None,
        dict(case.facts),
        tuple(f"which {m}" for m in missing) if case.facts else (),
    )


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return several verdicts as one, each in its own line; differing decisions leave it to the reader."""
    if len(verdicts) == 1:
        return verdicts[0]
    decisions = {verdict.decision for verdict in verdicts}
    decision: Decision = (
        decisions.pop() if len(decisions) == 1 else "undecided" if "undecided" in decisions else "rule"
    )
    return Verdict(
        decision,
        "\n".join(verdict.text for verdict in verdicts),
        tuple(dict.fromkeys(id_ for verdict in verdicts for id_ in verdict.used)),
        verdicts[0].rule,
        verdicts[0].facts,
        tuple(gap for verdict in verdicts for gap in verdict.gaps),
        tuple(id_ for verdict in verdicts for id_ in verdict.overruled),
    )


def wants_verdict(
    text: str,
    case: Case,
    *,
    actions: Collection[str],
    vocabulary: Mapping[str, Collection[str]],
    synonyms: Mapping[str, Sequence[str]],
) -> bool:
    """Tell whether the question asks for a rule about a case, or for the rule of a kind of case it names.

    A question about a ticket that names a declared action ("warranty ok for …?") asks for its rule, unless it asks
    for a field or for other tickets.
    """
    wanted = asks(text)
    if "rule" in wanted and (case.evidence or case.facts):
        return True
    if "rule" in wanted and not wanted & {"similar", "aggregate"}:
        # "How long is the refund window?" has a general answer, and one for each kind of case.
        return bool(_heads(topic_of(text, vocabulary, synonyms), actions))
    if not case.evidence or wanted & {"field", "similar", "aggregate"}:
        return False
    return bool(_heads(topic_of(text, vocabulary, synonyms), actions))
