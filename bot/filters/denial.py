"""Where a question denies what it names: "no reply yet", "havent been answered", "nobody replied", "the reply is missing"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from bot.filters.phrases import AWAITING, NEGATORS, SKIPPED, bag

_CONTRACTED = re.compile(r".+n['’]t|(?:do|does|did|have|has|had|is|are|was|were|ca|could|wo|would|should)nt")
_PAIRS = frozenset({("other", "than"), ("apart", "from"), ("yet", "to"), ("still", "to"), ("left", "to")})
_NOBODY = bag("one anyone anybody someone somebody")
_ENDS = bag(
    "that which who whose where when while and or but nor with about for from of on in by at que y o pero con sobre de por en"
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


def before(words: Sequence[str], free: Sequence[bool], i: int, *, awaiting: bool = False) -> list[int]:
    """Return the places of the words that deny what stands at place `i`, an empty list where none do.

    Words that are not `free` are about something else. With `awaiting`, what is waited for or needed is denied, too.
    """
    plain = [re.split("['’]", word)[0] for word in words]
    for j in range(i - 1, max(-1, i - 7), -1):
        if denies(words[j]):
            return [j, *(k for k in range(j + 1, i) if plain[k] in _NOBODY)]
        if (plain[j], plain[j + 1]) in _PAIRS:
            return [j, j + 1]
        if awaiting and plain[j] in AWAITING:
            return [j]
        if not free[j] or plain[j] not in SKIPPED | _NOBODY:
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
        if denies(words[j]):
            return list(range(j, i))
        if words[j] in _ENDS:
            return []
    return []
