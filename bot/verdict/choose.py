"""Which rule applies: by scope, then precedence; rules of equal weight that disagree are a tie, not a choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from bot.verdict.case import Case
from bot.verdict.topic import GENERIC, topic_of
from ingest.rules import topics
from ingest.scope import Scope, scope
from ingest.types import AUTHORITY, Chunk, Rule
from ingest.words import fold, mentions, stems

_VERB = re.compile(r"\b(?:is|are|was|were|can|cannot|may|will|do|does|never|not|no)\b", re.IGNORECASE)
_JOINT = re.compile(r",|\b(?:and|or)\b(?: other\b)?", re.IGNORECASE)
_TOPICAL = 0.75
"""Share, by weight, of a question's topic words that a rule must hold to be about it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule with its scope against one case."""

    rule: Rule
    chunk: Chunk
    scope: Scope
    fit: str
    named: int = 0
    """It is about something by name: 1 where the case mentions that, more where it is the case's subject."""

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


@dataclass(frozen=True, slots=True)
class Choice:
    """The rule that was chosen, and the ones it was chosen from."""

    best: Candidate
    others: tuple[Candidate, ...] = ()
    """Rules that say something else and lost."""
    tied: tuple[Candidate, ...] = ()
    """Rules of equal weight that say something else."""
    open: tuple[Candidate, ...] = ()
    """More specific rules that would apply if a fact were known."""
    later: Candidate | None = None
    """A rule that goes before the best one, but not yet on the day that counts."""
    unserved: tuple[tuple[str, str], ...] = ()
    """Facets of the case, with their values, that other rules of the matter are keyed by and none is for."""


def candidates(
    chunks: Iterable[Chunk], case: Case, vocabulary: Mapping[str, Collection[str]]
) -> list[Candidate]:
    """Return every rule of the chunks with its scope, and whether it fits the case."""
    keyed = {name: values for name, values in vocabulary.items() if name != "status"}
    facts = " ".join(case.facts.values())
    told = frozenset(stems(f"{case.text} {facts} {case.asked}"))
    titled = frozenset(stems(f"{case.subject} {facts} {case.asked}"))
    rules = {
        (rule.uri, rule.text, rule.amount, rule.unit, rule.labels): (rule, chunk)
        for chunk in chunks
        for rule in chunk.rules
    }
    seen = Counter(stem for rule, _ in rules.values() for stem in topics(rule))
    common = frozenset(stem for stem, n in seen.items() if n > max(3, len(rules) // 8))
    found = []
    for rule, chunk in rules.values():
        read = scope(rule, keyed)
        read = replace(read, includes={**_about_one(chunk, keyed), **read.includes})
        objects = [own for object_ in _objects(rule, keyed) if (own := object_ - common)]
        mentioned = any(_holds(told, own) for own in objects)
        subject = any(_holds(titled, own) for own in objects)
        unlimited = rule.amount is None and rule.polarity == "allows"
        fit = "no" if (objects or unlimited) and not mentioned else read.fits(case.facts)
        found.append(Candidate(rule, chunk, read, fit, len(keyed) + 1 if subject else int(mentioned)))
    return found


def _holds(said: frozenset[str], object_: frozenset[str]) -> bool:
    """Tell whether a text speaks of a rule's object: by half of its words, by both where it has two."""
    return len(object_ & said) >= max(len(object_) / 2, min(len(object_), 2))


def _about_one(chunk: Chunk, keyed: Mapping[str, Collection[str]]) -> Mapping[str, frozenset[str]]:
    """Return the facet values that a document's front matter says it is about."""
    return {name: frozenset({value}) for name, value in chunk.facets.items() if name in keyed}


def _objects(rule: Rule, keyed: Mapping[str, Collection[str]]) -> tuple[frozenset[str], ...]:
    """Return what a rule without a duration is about, in each way of saying it, generic words and facet values aside.

    "Invoice packs are never refunded" and "duplicate charges are corrected however long ago they were made" concern
    only a case that is about the same thing, and then they are the most specific ones. "Refurbished machines and opened
    packs cannot be returned" is about either; "not covered: gaskets and other wearing parts" about what its item names.
    """
    if rule.amount is not None or rule.labels:
        return ()
    intro, _, item = rule.text.partition(": ")
    subject = item if _VERB.search(intro) and item else _VERB.split(rule.text, maxsplit=1)[0]
    said = [subject, *(rule.headings[1:][-1:] if rule.polarity == "allows" else ())]
    parts = [part for text in said for part in (_JOINT.split(text) if rule.polarity == "forbids" else [text])]
    values = {
        stem for of in keyed.values() for value in mentions(" ".join(said), of) for stem in stems(value)
    }
    return tuple(frozenset(stems(part)) - GENERIC - values for part in parts)


def about_action(
    candidates: Sequence[Candidate], wanted: frozenset[str], synonyms: Mapping[str, Sequence[str]]
) -> list[Candidate]:
    """Keep the rules about a declared action: the ones that name it, in their own words or their section's heading.

    A document's title says what most of it is about, not what each of its rules sets; it counts only for a rule that
    names what the case is about, and for a document none of whose rules names the action nearer. A rule that denies
    one thing ("a missed target gives no credit") is about that thing alone.
    """
    fitting = [c for c in candidates if not (denied := _denied(c.rule)) or wanted & denied]
    near = [
        c
        for c in fitting
        if wanted <= topics(replace(c.rule, headings=c.rule.headings[1:]))
        or wanted <= topic_of(" ".join([c.rule.text, *c.rule.labels, *c.rule.headings[1:]]), {}, synonyms)
    ]
    documents = {c.rule.uri for c in near}
    titled = [c for c in fitting if wanted <= topics(c.rule) and (c.named or c.rule.uri not in documents)]
    return near + [c for c in titled if c not in near]


def _denied(rule: Rule) -> frozenset[str]:
    """Return what a rule says there is none of: the credit of "gives no credit"; empty where it forbids an act."""
    if rule.polarity != "forbids" or rule.labels:
        return frozenset()
    found = re.search(
        r"\b(?:gives?|given|get|gets|have|has|is|are|offers?|pays?) no (?!longer|such|right)([\w-]+(?: [\w-]+)?)",
        rule.text,
    )
    return frozenset(stems(found[1])) - GENERIC if found else frozenset()


def about_words(candidates: list[Candidate], wanted: frozenset[str]) -> list[Candidate]:
    """Keep the rules that share the most telling words with the question, and enough of them."""
    if not wanted:
        return []
    candidates = [c for c in candidates if not (denied := _denied(c.rule)) or wanted & denied]
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


def event_of(rule: Rule, case: Case, by_action: bool) -> tuple[str, date | datetime] | None:
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


def undated_event(rule: Rule, case: Case) -> str:
    """Return the case's event that the rule's time runs from, where its date is there but cannot be read."""
    wanted = set(stems(rule.anchor or ""))
    return next((name for name in case.undated if wanted & set(stems(name))), "")


def choose(
    about: list[Candidate], action: str, case: Case, anchors: Collection[str], now: datetime
) -> Choice | None:
    """Choose the rule for the case among the rules about one matter; None where no formal rule applies.

    `action` is the declared action that the matter is about, or an empty string; `anchors` are the declared events.
    """
    events = {id(c): event_of(c.rule, case, bool(action)) for c in about}
    day = {id(c): _day(e[1]) if (e := events[id(c)]) else now.date() for c in about}
    live = [c for c in about if _in_force(c.rule, day[id(c)])]
    # A rule whose time runs from something that the case has no date of is about another matter, if any other is not.
    known = {stem for anchor in anchors for stem in stems(anchor)}
    dated = [
        c
        for c in live
        if events[id(c)]
        or undated_event(c.rule, case)
        or c.rule.amount is None
        or (not case.evidence and known & set(stems(c.rule.anchor or "")))
    ]
    live = dated if any(c.fit == "applies" for c in dated) else live
    applying = [c for c in live if c.fit == "applies"]
    formal = [c for c in applying if c.rule.authority != "chat"]
    if not formal:
        return None
    best = max(formal, key=lambda c: (c.precedence, c.rule.amount is not None, c.rule.anchor is not None))
    undeclared = best.rule.anchor and not known & set(stems(best.rule.anchor))
    if case.evidence and undeclared and not events[id(best)] and not undated_event(best.rule, case):
        return None  # it runs from something that nobody declared: the case says nothing of that
    alike = [c for c in live if c.outcome != best.outcome and _same_matter(c, best)]
    tied = [c for c in alike if c in formal and c.precedence == best.precedence]
    if any(rival.rule.text == best.rule.text for rival in tied):
        return None  # one sentence with two durations: which of them is asked, a reader sees
    if tied and not case.evidence:
        return None  # without a case there is nothing to decide: the reader gets the sentences
    unknown = [
        c
        for c in live
        if c.fit == "unknown"
        and c.rule.authority != "chat"
        and c.scope.keys > best.scope.keys
        and _same_matter(c, best)
    ]
    later = [
        c
        for c in about
        if c.fit == "applies"
        and c.rule.effective_from
        and day[id(c)] < c.rule.effective_from
        and c.precedence[:2] > best.precedence[:2]
        and c.outcome != best.outcome
        and _same_matter(c, best)
    ]
    return Choice(
        best,
        tuple(c for c in alike if c in applying and c.precedence != best.precedence and c.rule.amount),
        tuple(tied[:2]),
        () if best.named else tuple(unknown),
        max(later, key=lambda c: c.precedence, default=None),
        ()
        if best.scope.keys or best.named
        else tuple(_unserved(case, [c for c in live if _same_matter(c, best)])),
    )


def _unserved(case: Case, rules: Sequence[Candidate]) -> Iterator[tuple[str, str]]:
    specific = [c.scope.includes for c in rules if c.scope.includes]
    for name, value in case.facts.items():
        # A facet that only some of them look at as well, such as a region's exception, asks for no terms of its own.
        keyed = {fold(own) for keys in specific for own in keys.get(name, ())}
        if keyed and all(name in keys for keys in specific) and fold(value) not in keyed:
            yield name, value


def _same_matter(one: Candidate, other: Candidate) -> bool:
    """Tell whether two rules set the same thing: their time runs from the same event, where both name one."""
    timed = [c.rule for c in (one, other) if c.rule.amount is not None]
    anchors = {rule.anchor for rule in timed if rule.anchor}
    units = {"business" in (rule.unit or "") for rule in timed if None in {r.anchor for r in timed}}
    return len(anchors) <= 1 and len(units) <= 1 and one.rule.before == other.rule.before
