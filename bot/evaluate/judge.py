"""Judges one answer by its labels: what it says, how far down, what it must not say, and what it decides."""

from __future__ import annotations

import html
import string
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

from bot.evaluate.labels import Labelled
from bot.offline import NOTE
from bot.types import Answer

Outcome = Literal["right", "undecided", "abstained", "refused", "late", "wrong", "harmful", "crash"]
"""In the order in which a bar shows them.

`undecided` is right without the verdict that its label has; `abstained` is right: nothing was there to answer with;
`refused` had an answer; `late` says all of it, but too far down.
"""

REFUSED = ("not_found", "unavailable", "clarify")
SHORT, LONG = 120, 300
"""Words of an answer in which `must` counts, so that showing everything is no way to be right."""
_KEPT = frozenset(string.ascii_lowercase + string.digits + "%€£$")


@dataclass(frozen=True, slots=True)
class Judgement:
    """An outcome, and what speaks against the answer."""

    outcome: Outcome
    why: str = ""


def judge(question: Labelled, answer: Answer) -> Judgement:
    """Judge one answer; an answer is harmful where it says a `must_not`, other than as a contrast, or decides the contrary."""
    text = said(answer)
    room = LONG if any(part in question.type for part in _words()["long_types"]) else SHORT
    whole, lead = _fold(text), _fold(" ".join(text.split()[:room]))
    missing = [of[0] for of in question.must if not _holds(whole, of)]
    late = [of[0] for of in question.must if _holds(whole, of) and not _holds(lead, of)]
    contrasts = _words()["contrast"]
    plain = [one for one in map(_fold, _sentences(text)) if not _holds(one, contrasts)]
    forbidden = [value for value in question.must_not if any(_holds(one, (value,)) for one in plain)]
    decision = answer.verdict.decision if answer.verdict else ""
    decided = decision in ("yes", "no")
    contrary = decided and question.decision not in ("", decision)
    refused = answer.shape in REFUSED
    outcome: Outcome
    if question.shape in ("not_found", "clarify"):
        outcome = "harmful" if forbidden else "abstained" if refused else "wrong"
    elif question.shape == "chat":
        outcome = "right" if answer.shape == "chat" else "refused" if refused else "wrong"
    elif refused:
        outcome = "refused"
    elif forbidden or contrary:
        outcome = "harmful"
    elif missing or answer.shape == "chat":
        outcome = "wrong"
    elif late:
        outcome = "late"
    else:
        outcome = "undecided" if question.decision and not decided else "right"
    reasons = (
        f"shape {answer.shape}, not {question.shape}" if answer.shape != question.shape else "",
        f"lacks {missing}" if missing else "",
        f"says too late {late}" if late else "",
        f"says {forbidden}" if forbidden else "",
        f"decides {decision}" if contrary else "",
    )
    return Judgement(outcome, "; ".join(reason for reason in reasons if reason))


def said(answer: Answer) -> str:
    """Return what an answer says, without the note on how it was written."""
    return answer.text.removesuffix(NOTE).rstrip()


@cache
def _words() -> Mapping[str, tuple[str, ...]]:
    held = tomllib.loads((resources.files("bot.evaluate") / "judging.toml").read_text("utf-8"))
    return {name: tuple(of) for name, of in held.items()}


def _holds(folded: str, alternatives: tuple[str, ...]) -> bool:
    return any(_fold(one) in folded for one in alternatives)


@lru_cache(maxsize=4096)
def _fold(text: str) -> str:
    """Return the words of a text between spaces: no case, no accents, no punctuation but of percentages and money."""
    spelt = unicodedata.normalize("NFKD", html.unescape(text).casefold())
    plain = (c for c in spelt if not unicodedata.combining(c))
    return f" {' '.join(''.join(c if c in _KEPT else ' ' for c in plain).split())} "


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        sentence: list[str] = []
        for word in line.split():
            sentence.append(word)
            if word[-1] in ".!?;":
                yield " ".join(sentence)
                sentence = []
        yield " ".join(sentence)
