"""The verdict's sentences: what code says about the rule it chose, with its dates, margin and formula."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from bot.types import Decision, Verdict
from bot.verdict.case import Case
from bot.verdict.choose import Candidate, Choice, event_of, undated_event
from bot.verdict.topic import ACTS
from ingest.atoms import atoms, same
from ingest.dates import Calendar, deadline, format_date, format_duration
from ingest.rules import topics
from ingest.types import AUTHORITY, Rule
from ingest.words import stems


def cite(id_: str) -> str:
    """Return the placeholder of an evidence id; it becomes `[n]` when the verdict is numbered."""
    return f"\x00{id_}\x00" if id_ else ""


def numbered(verdict: Verdict, numbers: Mapping[str, int]) -> str:
    """Return the verdict's text with its placeholders turned into `[n]`; unknown ids vanish."""
    return re.sub(
        r" ?\x00([^\x00]*)\x00", lambda m: f" [{numbers[m[1]]}]" if m[1] in numbers else "", verdict.text
    )


def _place(rule: Rule) -> str:
    title, *path = rule.headings or ("the documents",)
    return ", ".join([title, *path[-1:]])


def _said(rule: Rule) -> str:
    if rule.amount is None or rule.unit is None:
        return "without a time limit" if rule.polarity == "allows" else "no such right"
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


def worded(choice: Choice, action: str, case: Case, calendar: Calendar, now: datetime) -> Verdict:
    """Return the verdict that a choice makes, in words."""
    if choice.tied:
        return _tied([choice.best, *choice.tied], case)
    if choice.open and not case.evidence:
        return _depends(choice.best, choice.open, case)
    if choice.later and case.evidence:
        return _before_its_time(choice.best, choice.later, action, case)
    verdict = _apply(choice.best, choice.others, action, case, calendar, now)
    if choice.open:
        verdict = replace(verdict, gaps=(*verdict.gaps, _lacking(choice.open, case)))
    unserved = " or ".join(f"{value} {name.replace('_', ' ')}" for name, value in choice.unserved)
    said = f" Among the sources there are no terms of {unserved} for this." if unserved else ""
    return replace(verdict, text=verdict.text + said)


def _apply(
    best: Candidate, others: Sequence[Candidate], action: str, case: Case, calendar: Calendar, now: datetime
) -> Verdict:
    rule = best.rule
    own, ticket = cite(best.chunk.id), cite(case.evidence)
    why = f"Rule applied: {_place(rule)}: {_quote(rule)} {own}."
    before = _before(case, rule)
    if rule.amount is None or rule.unit is None:
        allowed = rule.polarity == "allows"
        said = "sets no time limit" if allowed else "gives no such right"
        text = f"{before}{_outright(allowed, case, rule)}For {_who(case, best)} the rule {said} {ticket}{own}. {why}"
        return _verdict("yes" if allowed else "no", text, best, others, case)
    event = event_of(rule, case, bool(action))
    if event is None:
        text = f"{before}The rule for {_who(case, best)} is {_said(rule)} {own}. {why}"
        gap = _unreadable(case, undated_event(rule, case)) or (
            f"the date of the {rule.anchor or 'event it runs from'} is not in {case.label}"
        )
        return (
            _verdict("undecided", text, best, others, case, (gap,))
            if case.evidence
            else _verdict("rule", text, best, others, case)
        )
    if name := _undated_moment(action, rule, case, now):
        text = f"{before}The rule for {_who(case, best)} is {_said(rule)} {ticket}{own}. {why}"
        return _verdict("undecided", text, best, others, case, (_unreadable(case, name),))
    _, start = event
    end = deadline(start, rule.amount, rule.unit, calendar, before=rule.before)
    when, what = _moment(action, rule, case, now)
    computed = f"Computed: {end.formula}. {why}"
    until = f"{'it had to be done by' if rule.before else 'it runs until'} {format_date(end.at)}"
    if when is None:
        past = (
            ""
            if end.met_by(now)
            else f" That is past by now: {end.margin(now).text.replace('after', 'since')}."
        )
        until = f"it is due by {format_date(end.at)}" if rule.unit in ("hour", "business_hour") else until
        text = f"{before}For {_who(case, best)} {until}: {_said(rule)} {ticket}{own}.{past} {computed}"
        return _verdict("due", text, best, others, case)
    met = end.met_by(when)
    text = (
        f"{before}{_lead(met, case, rule, end.at)}For {_who(case, best)} the rule is {_said(rule)}, so {until}; "
        f"{what} came on {format_date(when)}, {end.margin(when).text} {ticket}{own}. {computed}"
    )
    gaps = tuple(f"to be checked by a person: {condition}" for condition in rule.conditions)
    return _verdict("yes" if met else "no", text, best, others, case, gaps)


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


def _outright(allowed: bool, case: Case, rule: Rule) -> str:
    premises = "".join(f"{premise}. " for premise in case.premises)
    if not case.evidence or _neutral(case, rule):
        return premises
    return f"{premises}{'Yes' if allowed is not case.turned else 'No'}. "


def _neutral(case: Case, rule: Rule) -> bool:
    """Tell whether the question asks for more than the rule says, so that no yes or no of the rule's answers it.

    A target of hours is met or missed, whatever else is asked.
    """
    target = rule.unit in ("hour", "business_hour")
    return (bool(case.beside) and not target) or not case.focus or case.unread


def _before(case: Case, rule: Rule) -> str:
    """Return what has to be said first: what the question supposes, or that its yes or no is not the rule's to give."""
    if case.supposed:
        return f"Supposing {' and '.join(case.supposed)}: "
    if case.beside and _neutral(case, rule):
        return f"The rule does not speak of {_named(case.beside)}. What it says: "
    if case.unread:
        return "What the question supposes could not be read. What the record says: "
    return "" if case.focus else "As for the time limit: "


def _named(said: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in said)


def _lead(met: bool, case: Case, rule: Rule, end: date | datetime) -> str:
    """Answer the question as it was put: "is it too late?" is answered no where the time still runs."""
    target = rule.unit in ("hour", "business_hour")
    said = (
        ("the target was met" if met else "the target was missed")
        if target
        else "it is in time"
        if met
        else "it is past"
    )
    last = end.date() if isinstance(end, datetime) else end
    wrong = _corrections(case, rule)
    if case.ends and case.ends != last and case.focus:
        wrong = (*wrong, f"The last day is {format_date(last)}, not {format_date(case.ends)}")
    if wrong:
        return f"{'. '.join(wrong)}. By the rule that applies {said}. "
    if _neutral(case, rule):
        return ""
    if case.when:
        return f"Until {format_date(end)}. "
    if case.turned is None or (target and not case.turned and not case.straight):
        return f"{said[0].upper()}{said[1:]}. "
    if case.turned:
        return f"{'No' if met else 'Yes'}, {said}. "
    return f"{'Yes' if met else 'No'}{', ' + said if target else ''}. "


def _moment(action: str, rule: Rule, case: Case, now: datetime) -> tuple[date | datetime | None, str]:
    """Return the time that is compared with the deadline, and what it is called."""
    if action and action in case.actions:
        return case.actions[action], f"the {action}"
    if case.when and case.evidence and rule.unit not in ("hour", "business_hour"):
        return (
            None,
            "",
        )  # nothing was asked for yet, as far as the record says, and the last day is the answer
    if "request" in case.actions:
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


def _undated_moment(action: str, rule: Rule, case: Case, now: datetime) -> str:
    """Return the action whose date would be compared with the deadline, and is there but cannot be read."""
    unknown = {name: now for name in case.undated if name not in (*case.events, *case.actions, "update")}
    _, what = _moment(action, rule, replace(case, actions={**unknown, **case.actions}), now)
    name = what.removeprefix("the ")
    return name if name in unknown else ""


def _unreadable(case: Case, name: str) -> str:
    """Say that a date of the case is there and cannot be read; empty without a name."""
    return (
        f"the date of the {name} of {case.label} cannot be read: {case.undated[name]}; mend the row"
        if name
        else ""
    )


def _verdict(
    decision: Decision,
    text: str,
    best: Candidate,
    others: Sequence[Candidate],
    case: Case,
    gaps: tuple[str, ...] = (),
) -> Verdict:
    """Return the verdict with a note on each rule that says something else, and why it lost."""
    seen = {best.outcome}
    notes: list[str] = []
    overruled: list[str] = []
    for other in sorted(others, key=lambda c: (c.rule.authority != "chat", c.precedence), reverse=True):
        if other.outcome in seen or len(notes) == 2:
            continue
        seen.add(other.outcome)
        overruled.append(other.chunk.id)
        notes.append(
            f"{_place(other.rule)} says {_said(other.rule)} {cite(other.chunk.id)}; {_because(best, other)}."
        )
    if case.outcome and not case.supposed:
        notes.append(
            f"{case.label[0].upper()}{case.label[1:]} ended with: “{case.outcome}” {cite(case.evidence)}."
        )
    if case.beside and _neutral(case, best.rule):
        gaps = (*gaps, f"what the sources say of {_named(case.beside)}, as far as it is not quoted here")
    own = [case.evidence] if case.evidence else []
    return Verdict(
        decision="rule" if _neutral(case, best.rule) and decision in ("yes", "no") else decision,
        text=" ".join([text, *notes]),
        used=tuple(dict.fromkeys([*own, best.chunk.id, *overruled])),
        rule=best.rule,
        facts=dict(case.facts),
        gaps=gaps,
        beside=case.beside if _neutral(case, best.rule) else (),
        overruled=tuple(overruled),
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


def _before_its_time(best: Candidate, later: Candidate, action: str, case: Case) -> Verdict:
    """Leave it open where the rule that goes first was not yet in force, and what held before is only a weaker one."""
    event = event_of(later.rule, case, bool(action))
    day = f" on {format_date(event[1])}, the day of the {event[0]}" if event else " on the day that counts"
    since = format_date(later.rule.effective_from) if later.rule.effective_from else ""
    text = (
        f"{_place(later.rule)} says for {_who(case, later)} {_said(later.rule)}: {_quote(later.rule)} {cite(later.chunk.id)}, "
        f"but it is in force from {since} only and was not{day}. What the sources hold besides is weaker: "
        f"{_place(best.rule)} says {_said(best.rule)} {cite(best.chunk.id)}. A person must decide."
    )
    used = ([case.evidence] if case.evidence else []) + [later.chunk.id, best.chunk.id]
    return Verdict(
        "undecided", text, tuple(used), None, dict(case.facts), ("which rule held before that",), overruled=()
    )


def _lacking(open_: Sequence[Candidate], case: Case) -> str:
    """Return what the record lacks, and what the rules say of the cases that have it."""
    missing = sorted(
        {name.replace("_", " ") for c in open_ for name in c.scope.includes if name not in case.facts}
    )
    others = dict.fromkeys(f"{_values(c)}: {_said(c.rule)}" for c in open_)
    return f"{case.label} has no {' and no '.join(missing)}, and there the rule is another ({'; '.join([*others][:4])})"


def _values(candidate: Candidate) -> str:
    return ", ".join(sorted(value for values in candidate.scope.includes.values() for value in values))


def _depends(best: Candidate, unknown: Sequence[Candidate], case: Case) -> Verdict:
    missing = sorted({name for c in unknown for name in c.scope.includes if name not in case.facts})
    lines = [
        f"{_values(c)}: {_said(c.rule)} {cite(c.chunk.id)}"
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
