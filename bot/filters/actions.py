"""The words that name an action or an event: a reply is an answer is a response, in whatever form."""

from __future__ import annotations

from itertools import chain

from bot.filters.phrases import DONE, REPLIED
from ingest.words import stems, words


def tells_of(text: str, name: str) -> bool:
    """Tell whether a text names an action or event by all parts of its name, or says that somebody answered."""
    spoken = [stem for word in words(text) for stem in stems(positive(word))]
    parts = stems(name)

    def said(part: str) -> bool:
        family = {part, *(stem for word in family_of(part) for stem in stems(word))}
        return any(alike(stem, member) for stem in spoken for member in family)

    return all(map(said, parts)) or (bool(parts) and said(parts[-1]) and bool(REPLIED & set(words(text))))


def family_of(stem: str) -> tuple[str, ...]:
    """Return the everyday words for a part of an action's name: a reply is a response is an answer."""
    families = ((head, *said) for head, said in DONE.items())
    return tuple(
        chain(*(family for family in families if any(alike(s, stem) for word in family for s in stems(word))))
    )


def alike(one: str, other: str) -> bool:
    """Tell whether two stems are of one family: resolv and resolut, respond and respons."""
    if one == other:
        return True
    size = min(len(one), len(other)) - 1
    return size >= 5 and one[:size] == other[:size] and abs(len(one) - len(other)) <= 3


def positive(word: str) -> str:
    return word[2:] if word.startswith("un") and len(word) > 6 else word
