"""The verdict: which rule applies to this case, by scope, precedence and dates; code's own decision, with its reasons.

Method: candidates are every rule-bearing chunk of the topic, not only what was shown. A rule applies when each facet
value in its scope equals a known fact. The most specific rule wins, then terms over policy over help over FAQ over
chat, then unhedged over hedged, then the newer one; what is still tied is reported, not resolved. The deadline is
computed from the record's own dates and compared with the time of the request, not with now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from bot.types import Decision, Verdict
from bot.verdict.case import Case, case_of, cases_in, put
from bot.verdict.choose import Candidate, about_action, about_words, candidates, choose
from bot.verdict.topic import ACTS, heads, topic_of, wants_verdict
from bot.verdict.wording import numbered, worded
from ingest.atoms import stems
from ingest.dates import Calendar
from ingest.types import Chunk

__all__ = [
    "Case",
    "case_of",
    "cases_in",
    "decide",
    "numbered",
    "put",
    "together",
    "topic_of",
    "wants_verdict",
]


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
    for matters in _matters(topic, case, rules, vocabulary, synonyms, actions):
        choices = [(choose(about, action, case, anchors, now), action) for action, about in matters]
        verdicts = [worded(choice, action, case, calendar, now) for choice, action in choices if choice]
        if verdicts:
            return together(verdicts)
    return None


def _matters(
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
    if frozenset(stems("sla")) & topic:
        # A question about the service level means every target that is set in hours.
        timed = [c for c in rules if c.rule.unit in ("hour", "business_hour")]
        yield [(action, about_action(timed, frozenset(stems(action)) - ACTS, synonyms)) for action in actions]
    if case.evidence and not topic:
        # "Are they entitled to it?": what it is stands in the ticket.
        told = heads(topic_of(case.text, vocabulary, synonyms), actions)
        yield [(action, about_action(rules, wanted, synonyms)) for action, wanted in told]


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
