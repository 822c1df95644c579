"""The verdict: which rule applies to this case, by scope, precedence and dates; code's own decision, with its reasons.

Method: candidates are every rule-bearing chunk of the topic, not only what was shown. A rule applies when each facet
value in its scope equals a known fact. The most specific rule wins, then terms over policy over help over FAQ over
chat, then unhedged over hedged, then the newer one; what is still tied is reported, not resolved. The deadline is
computed from the record's own dates and compared with the time of the request, not with now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bot.types import Decision, Verdict
from bot.verdict.case import Case, case_of, cases_in, put
from bot.verdict.choose import Candidate, about_action, about_words, candidates, choose
from bot.verdict.record import of_record
from bot.verdict.topic import ACTS, demanded, heads, other_focus, points, topic_of, wants_verdict
from bot.verdict.wording import numbered, worded
from ingest.atoms import atoms, same
from ingest.dates import Calendar, format_duration
from ingest.rules import anchors_in, topics
from ingest.types import Chunk
from ingest.words import stems, words

__all__ = [
    "Case",
    "case_of",
    "cases_in",
    "decide",
    "heads",
    "numbered",
    "of_record",
    "put",
    "together",
    "topic_of",
    "wants_verdict",
]


_SERVICE = frozenset(stems("sla service level agreement target meet met hit promise commit"))
"""Words of a question about the service level as a whole."""


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
    """Decide the question for the case as the question puts it, or return None where no rule of its topic is known.

    `chunks` are all rule-bearing chunks that the asker may read and that may concern the topic. The verdict is
    `undecided`, with its gaps, where a rule is there but a fact or a date is missing, or where rules are tied.
    """
    rules = candidates(chunks, case, vocabulary)
    topic = topic_of(text, vocabulary, synonyms)
    for matters in _matters(text, topic, case, rules, vocabulary, synonyms, actions):
        verdicts = []
        for action, about in matters:
            choice = choose(about, action, case, anchors, now)
            beside = _beside(text, topic, about, case, [*actions, *vocabulary]) if choice else ()
            # Without a declared action the topic's words are all there is to tell that a rule is meant, and of a
            # ticket only what its facets key.
            if choice and (action or (not beside and (choice.best.scope.keys or not case.evidence))):
                asked = replace(case, beside=beside, focus=not other_focus(text))
                verdicts.append(worded(choice, action, asked, calendar, now))
        if verdicts:
            return together(verdicts)
    return None


def _beside(
    text: str, topic: frozenset[str], about: Sequence[Candidate], case: Case, declared: Collection[str]
) -> tuple[str, ...]:
    """Return the words of the question that neither the matter's rules nor the case nor a declared name speak of.

    "Is 4812 entitled to a refund to another card?" is not answered by how long there is time for a refund.
    """
    known = {stem for name in declared for stem in stems(name.replace("_", " "))}
    known |= {stem for c in about if c.fit != "no" for stem in topics(c.rule)}
    known |= {stem for word in words(text) if anchors_in(word) for stem in stems(word)}
    if case.evidence:
        known |= set(stems(f"{case.customer} {case.label}"))
    return tuple(
        dict.fromkeys(word for word in words(text) if (own := frozenset(stems(word)) & topic) and own - known)
    )


def _matters(
    text: str,
    topic: frozenset[str],
    case: Case,
    rules: list[Candidate],
    vocabulary: Mapping[str, Collection[str]],
    synonyms: Mapping[str, Sequence[str]],
    actions: Collection[str],
) -> Iterator[list[tuple[str, list[Candidate]]]]:
    """Yield what the question may be about, nearest reading first: each a list of actions with the rules about them."""
    named = heads(topic, actions)
    if named:
        yield [(action, about_action(rules, wanted, synonyms)) for action, wanted in named]
    else:
        yield [("", about_words(rules, topic))]
    if not named and case.stated and not topic:
        # "The FAQ says 14 days, is that so on Team?" means what a rule of 14 days is about.
        quoted = [c for c in rules if c.rule.amount and _states(c, case)]
        yield [
            (action, about_action(rules, wanted, synonyms))
            for action in actions
            if (wanted := frozenset(stems(action)) - ACTS) and about_action(quoted, wanted, synonyms)
        ]
    if frozenset(stems("sla")) & topic:
        # A question about the service level means every target that is set in hours.
        timed = [c for c in rules if c.rule.unit in ("hour", "business_hour")]
        # "Is there an SLA credit?" is about what other rules give, not about whether the target was met.
        others = {
            stem for c in rules if c not in timed for stem in stems(" ".join([c.rule.text, *c.rule.labels]))
        }
        if (topic - _SERVICE) & others - {stem for action in actions for stem in stems(action)}:
            return
        yield [(action, about_action(timed, frozenset(stems(action)) - ACTS, synonyms)) for action in actions]
    if not case.evidence and not topic and (case.events or case.actions) and points(text):
        # "Charged for annual Team on 1 September, asks on 1 October, in time?": the one thing a customer can ask for.
        asked = [(action, wanted) for action in actions if (wanted := demanded(action))]
        yield (
            [(action, about_action(rules, wanted, synonyms)) for action, wanted in asked]
            if len(asked) == 1
            else []
        )
    own = frozenset(stems(f"{case.text} {case.customer}"))
    own |= {stem for word in words(text) if anchors_in(word) & set(case.events) for stem in stems(word)}
    if case.evidence and (not topic - own or case.when) and points(text):
        # "Are they entitled to it?": what it is stands in the ticket.
        told = heads(topic_of(case.text, vocabulary, synonyms), actions)
        if not told:
            rules = [c for c in rules if c.rule.unit not in ("hour", "business_hour")]
            told = [head for name in case.actions for head in heads(frozenset(stems(name)), [name])]
        yield [(action, about_action(rules, wanted, synonyms)) for action, wanted in told]


def _states(candidate: Candidate, case: Case) -> bool:
    rule = candidate.rule
    own = atoms(format_duration(rule.amount, rule.unit)) if rule.amount and rule.unit else ()
    return any(same(atom, other) for atom in case.stated for other in own)


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
        tuple(dict.fromkeys(word for verdict in verdicts for word in verdict.beside)),
        tuple(id_ for verdict in verdicts for id_ in verdict.overruled),
    )
