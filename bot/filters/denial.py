"""Where a question denies what it names: "no reply yet", "havent been answered", "nobody replied", "the reply is missing"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from bot.filters.phrases import AWAITING, NEGATORS, SKIPPED, bag
from ingest.words import words as words_of

_CONTRACTED = re.compile(r".+n['’]t|(?:do|does|did|have|has|had|is|are|was|were|ca|could|wo|would|should)nt")
_PAIRS = frozenset(
    {
        ("yet", "to"),
        ("still", "to"),
        ("left", "to"),
        ("failed", "to"),
        ("fail", "to"),
        ("forgot", "to"),
        ("far", "from"),
    }
)
_DUE = frozenset({("have", "to"), ("has", "to")})
"""What has to be done is not done yet."""
_EXCEPT_PAIRS = frozenset({("other", "than"), ("rather", "than"), ("apart", "from"), ("instead", "of")})
_EXCEPT = bag("except excluding excepto salvo minus")
"""They also deny a whole sentence: "except those that asked for a refund"."""
_THOSE = bag("those ones that which who que")
_ALL = bag("all everything anything everyone any tickets cases todos todas")
_OR = bag("or nor ni o")
_HARDLY = bag("hardly barely scarcely seldom rarely almost nearly fail fails failed refused forgot")
"""They may deny, and nobody knows how much."""
_NOBODY = bag("one anyone anybody someone somebody")
_ENDS = bag(
    "that which who whose where when while and or but nor with about for from of on in by at que y o pero con sobre de por en "
    "mention mentions mentioned mentioning contain contains containing regarding"
)
"""Words that a negation does not reach over."""
_MISSING = bag("missing lacking absent outstanding falta faltan")
_AUXILIARY = bag("is was are were has have had did does do be been yet still ever")
_OF_NOUNS = bag("no without except excluding nor neither sin excepto salvo ningun ninguna nobody")
"""What begins something else when it stands behind: "refund requests without a plan"."""
_HAPPENED = bag(
    "sent given made received there issued provided done happened taken come arrived recorded yet"
)


def denies(word: str) -> bool:
    """Tell whether a word denies what follows it, with or without its apostrophe."""
    return bool(_CONTRACTED.fullmatch(word)) or re.split("['’]", word)[0] in NEGATORS


def within(text: str) -> bool:
    """Tell whether some words deny a thing or say that it is waited for."""
    said = words_of(text)
    return any(denies(word) or word in AWAITING for word in said) or bool(_DUE & set(pairwise(said)))


def before(words: Sequence[str], free: Sequence[bool], i: int, *, awaiting: bool = False) -> list[int]:
    """Return the places of the words that deny what stands at place `i`, an empty list where none do.

    Words that are not `free` are about something else. With `awaiting`, what is waited for or needed is denied, too.
    """
    plain = [re.split("['’]", word)[0] for word in words]
    if i > 1 and plain[i - 1] in _OR:
        # "Not closed or resolved" denies both.
        denied = before(words, free, i - 2, awaiting=awaiting)
        return [*denied, i - 1] if denied or plain[i - 1] in ("nor", "ni") else []
    whole = True
    for j in range(i - 1, max(-1, i - 7), -1):
        pair = (plain[j], plain[j + 1])
        if pair in _EXCEPT_PAIRS or (whole and pair in _PAIRS):
            return [j, j + 1]
        if plain[j] in _EXCEPT or (plain[j] == "but" and j and plain[j - 1] in _ALL):
            return [j]
        if whole and denies(words[j]):
            return [j, *(k for k in range(j + 1, i) if plain[k] in _NOBODY)]
        if whole and awaiting and (plain[j] in AWAITING or pair in _DUE):
            return [j]
        whole = whole and plain[j] not in _THOSE - SKIPPED
        if not free[j] or plain[j] not in SKIPPED | _NOBODY | _THOSE:
            return []
    return []


def behind(
    words: Sequence[str], bound: Sequence[bool], i: int
) -> tuple[Literal["denied", "doubted", ""], list[int]]:
    """Tell whether what ends at place `i` is denied by what follows it, and the places of those words.

    A negation before something `bound` is about that: "refund requests not closed".
    """
    j = _after(words, i)
    if j < len(words) and words[j] in _MISSING:
        return "denied", list(range(i + 1, j + 1))
    if j == len(words) or not denies(words[j]) or words[j] in _OF_NOUNS:
        return "", []
    end = _after(words, j)
    if end == len(words):
        return "denied", list(range(i + 1, end))
    if words[end] in _HAPPENED:
        return "denied", list(range(i + 1, end + 1))
    return ("", []) if bound[end] or words[end] in _ENDS else ("doubted", list(range(i + 1, end + 1)))


def _after(words: Sequence[str], i: int) -> int:
    """Return the first place behind `i` that holds no auxiliary verb."""
    return next((j for j in range(i + 1, len(words)) if words[j] not in _AUXILIARY), len(words))


def doubted(words: Sequence[str], bound: Sequence[bool], i: int) -> list[int]:
    """Return the words before place `i` that may deny it in a way that nobody reads ("not really closed").

    A negation that stands before something `bound`, which it may be about, denies that.
    """
    for j in range(i - 1, max(-1, i - 9), -1):
        if bound[j]:
            return []
        if denies(words[j]) or words[j] in _HARDLY:
            return list(range(j, i))
        if words[j] in _ENDS:
            return []
    return []
