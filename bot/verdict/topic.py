"""What a question is about: its topic words, the declared actions it names, and whether it asks for a rule at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from bot.gate import asks
from bot.verdict.case import DEMANDS, Case
from ingest.atoms import MONTHS, atoms
from ingest.words import mentions, stems, words

GENERIC = frozenset(
    stems(
        "customer client account ticket case company plan subscription entitled eligible entitlement allowed get give still "
        "ask asked request requested claim claims claimed apply applies rule policy long many much day days hour hours time date deadline window "
        "due end ends close closed expire possible right want like know please tell shop store user person people folk one now today make "
        "back happen charge payment fee period buyer order item purchase billing compare compared versus vs difference different longer "
        "shorter higher faster better annual monthly see look say says said somebody someone valid count hold holds true "
        "answer answered cliente tiene derecho plazo puede instead faq faqs docs documentation article page help site website correct true sure check "
        "confirm need needs want wants try tell told think thought mate guys folks cheers hey quick urgent really actually exactly "
        "ok late too past fuera tarde over before earlier sooner later afterwards been had would suppose supposing assume assuming imagine "
        "miss missed refused denied rejected declined lapsed overdue qualify qualified pay paid keep made within during hi hello thanks thank wondering obliged run runs ran out left leave leaves remain remaining slack spare outside isn isnt aren doesn didn hasn wasn weren not anything something nothing refuse kindly colleague boss friend word words reply short only just simply plain good fine okay go through process processed "
        "honour honor owe owed owes grant granted issue issued due offer offered full fully whole money ticket's yes no "
        "según dice todavía aún hoy recibir dar"
    )
)
"""Words that ask for a rule without saying which."""

ACTS = GENERIC | frozenset(stems("application report reported"))
"""Words of an action's name that say somebody acted, not about what: the refund of a "refund request"."""


_POINTS = re.compile(
    r"\b(entitled?|eligib\w+|qualif\w+|in time|on time|late|windows?|deadlines?|until when|by when|(last|final|latest) (day|date)|time|left|slack|within|outside|"
    r"overdue|expired?|lapsed?|owed?|refused?|deny|denied|rights?|rules?|ask(ed)?|request(ed)?|claim(ed)?|(get|gets|have|has|receive) (\S+ ){1,4}back|tiene derecho|derecho|plazo)\b"
)
_SAYS = re.compile(
    r"\b(says?|said|told|reads|dice|claims?|which (?:one )?(?:counts|applies|holds|wins|is right))\b"
)
"""Words of a question that holds one length of time against another."""
_OTHER_FOCUS = re.compile(
    r"\b(who|whom|whose|where|why|quien|donde|por que|cuanto dinero|"
    r"how (?!long\b|many (?:\w+ )?(?:days?|hours?|weeks?|months?)\b|much (?:\w+ )?(?:time|longer)\b|soon\b|fast\b|quickly\b|late\b|early\b|far\b)\w+)\b"
)


def topic_of(
    text: str, vocabulary: Mapping[str, Collection[str]], synonyms: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    """Return the stems that say what a question is about: no ids, dates, facet values, or words that merely ask."""
    named = {
        stem for values in vocabulary.values() for value in mentions(text, values) for stem in stems(value)
    }
    added, said = _spoken_of(text, tuple((word, tuple(others)) for word, others in synonyms.items()))
    return (_plain(text) - GENERIC - named - said) | added


# Rules are read again for each question, and their words do not change.
@lru_cache(maxsize=16384)
def _plain(text: str) -> frozenset[str]:
    plain = text
    for atom in reversed(atoms(text)):
        plain = plain[: atom.start] + " " + plain[atom.end :]
    return frozenset(stems(" ".join(word for word in words(plain) if word not in MONTHS)))


@lru_cache(maxsize=16384)
def _spoken_of(
    text: str, synonyms: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of the topic words whose synonyms a text says, and the stems of those synonyms."""
    plain, stemmed = f" {' '.join(words(text))} ", f" {' '.join(stems(text))} "
    added: set[str] = set()
    said: set[str] = set()
    for word, others in synonyms:
        for other in others:
            literal, loose = _phrase(other)
            if literal.search(plain) or (loose and loose.search(stemmed)):
                added |= set(stems(word))
                said |= set(stems(other))
    return frozenset(added), frozenset(said)


@lru_cache(maxsize=1024)
def _phrase(phrase: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """Return the patterns of a phrase: over words, and over stems for any form of it ("sent back" for "send back")."""
    literal = re.compile(rf"\b{re.escape(' '.join(words(phrase)))}\w*\b")
    wanted = stems(phrase)
    if len(wanted) != len(words(phrase)):
        return literal, None
    # A verb and its particle may stand apart: "send the bike back".
    gap = r" (?:\S+ ){0,4}" if len(wanted) == 2 else " "
    return literal, re.compile(rf" {gap.join(map(re.escape, wanted))} ")


def heads(topic: frozenset[str], actions: Collection[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the declared actions that the question is about: `refund request` makes `refund` the topic's head."""
    found = []
    for action in actions:
        wanted = frozenset(stems(action)) - ACTS
        if wanted and wanted <= topic:
            found.append((action, wanted))
    return found


def demanded(action: str) -> frozenset[str]:
    """Return what a declared action asks for, the refund of a "refund request"; empty where it is the desk's own act."""
    said = frozenset(stems(action))
    return said - ACTS if said & DEMANDS else frozenset()


def points(text: str) -> bool:
    """Tell whether a question asks for a right or a time limit without naming of what: "are they entitled to it?"."""
    return not other_focus(text) and bool(_POINTS.search(" ".join(words(text))))


def other_focus(text: str) -> bool:
    """Tell whether a question asks for something else than whether a rule holds or how long: who, where, why, how much."""
    return bool(_OTHER_FOCUS.search(" ".join(words(text))))


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
    if "rule" in wanted and (case.evidence or (case.facts and "aggregate" not in wanted)):
        return True
    if "rule" in wanted and not wanted & {"similar", "aggregate"}:
        # "How long is the refund window?" has a general answer, and one for each kind of case.
        return bool(heads(topic_of(text, vocabulary, synonyms), actions))
    if wanted & {"field", "similar", "aggregate"}:
        return False
    topic = topic_of(text, vocabulary, synonyms)
    named = heads(topic, actions)
    if case.evidence:
        return bool(named)
    # "First response urgent, Team vs Enterprise" names an action and a kind of case and nothing else.
    alone = bool(named) and topic <= {stem for action, _ in named for stem in stems(action)}
    return bool(case.facts) and (alone or bool(case.stated and _SAYS.search(" ".join(words(text)))))
