"""Words of English and Spanish text: folded, stemmed, and names among them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from threading import Lock

import snowballstemmer


def fold(text: str) -> str:
    """Lower the case and take the accents off, keeping every character's place."""
    return text.lower() if text.isascii() else "".join(map(_fold_character, text))


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    lowered = character.lower()
    parts = unicodedata.normalize("NFD", lowered)
    if all(map(unicodedata.combining, parts[1:])):
        return parts[0]
    return lowered if len(lowered) == 1 else character


_STOP = frozenset(
    fold(
        "a an the and or but if of at by for with about against between into through during before after above below to "
        "from up down in out on off over under again further then once here there when where why how all any both each few "
        "more most other some such only own same so than too very s t can will just should now is are was were be been being "
        "am have has had having do does did doing i me my we our you your he him his she her it its they them their what "
        "which who whom this that these those as until while would could shall may might must also get got us re ve ll d m "
        "upon via per et cetera please "
        "el la los las un una unos unas de del al y o en con por para que se su sus es son fue ser como más pero sin sobre "
        "este esta estos estas ese esa lo le les nos hay ha han muy ya cuando donde qué cuál cómo cuánto tiene tengo mi"
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?")
_SPANISH_FORM = re.compile(r"\w{2,}(?:cion|ciones|miento|mientos|idad|idades|mente)|\w{5,}[oa]s?")
_stemming = Lock()
"""A snowball stemmer keeps its state in the object: one word at a time."""
_english = snowballstemmer.stemmer("english")
_spanish = snowballstemmer.stemmer("spanish")


def _spoken(match: re.Match[str]) -> str:
    return re.split("['’]", match.group())[0]


def storable(text: str) -> str:
    """Replace what no database takes: halves of characters (lone surrogates) and NULs."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded, in order; an apostrophe's tail is dropped."""
    return tuple(map(_spoken, _WORD.finditer(fold(unicodedata.normalize("NFC", text)))))


def placed(text: str) -> tuple[tuple[str, int, int], ...]:
    """Return the words as `words` does, with where each begins and ends in a text that is normalised (NFC)."""
    return tuple((_spoken(match), *match.span()) for match in _WORD.finditer(fold(text)))


_IRREGULAR = {
    "kept": "keep", "held": "hold", "paid": "pay", "sent": "send", "given": "give", "gave": "give", "bought": "buy",
    "sold": "sell", "told": "tell", "made": "make", "lost": "lose", "left": "leave", "met": "meet", "took": "take",
    "taken": "take", "broken": "break", "broke": "break", "chosen": "choose", "written": "write", "wrote": "write",
}  # fmt: skip
"""Forms that a suffix stemmer cannot bring together."""


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    # By the word's own form and never by its neighbours: question and text must agree on it.
    word = _IRREGULAR.get(word, word)
    stemmer = _spanish if _SPANISH_FORM.fullmatch(word) else _english
    with _stemming:
        return str(stemmer.stemWord(word))


@lru_cache(maxsize=8192)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the content words, in order; stop words of English and Spanish are left out."""
    return tuple(_stem(word) for word in words(text) if word not in _STOP)


def akin(one: str, other: str) -> bool:
    """Tell whether two stems are of one family: `arriv` and `arrival`, `activ` and `activat`.

    They share a beginning of at least four letters that leaves at most two of the shorter stem over.
    """
    if one == other:
        return True
    short = min(len(one), len(other))
    if short < 4 or one[:4] != other[:4]:
        return False
    shared = next((at for at in range(4, short) if one[at] != other[at]), short)
    return shared >= short - 2


def share_of(name: str, said: Iterable[str]) -> float:
    """Return which part of a name's stems has kin among some stems: 0.5 for "fault clearance" in "the fault"."""
    wanted = stems(name.replace("_", " ").replace("-", " "))
    held = tuple(said)
    return sum(any(akin(stem, other) for other in held) for stem in wanted) / len(wanted) if wanted else 0.0


def mentions(text: str, names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """Return which names occur in a text as whole words, longest first, none inside another.

    Case, accents and the last word's plural do not matter; "annually" is "annual". With `strict`, a name that is
    written with a capital must be written so in the text ("the Team plan", not "my team"), and one in capitals
    wholly so ("US", not "us").
    """
    text = unicodedata.normalize("NFC", text)
    spoken = list(_WORD.finditer(fold(text)))
    said = list(map(_spoken, spoken))
    places: dict[str, list[int]] = {}
    for at, word in enumerate(said):
        places.setdefault(word, []).append(at)
    bases: dict[str, list[str]] = {}
    for word in places:
        for form in forms(word):
            bases.setdefault(form, []).append(word)

    def starts(wanted: tuple[str, ...]) -> Iterator[int]:
        """Yield where the words of a name stand. Of thousands of names only those are compared whose first word is there."""
        *before, last = wanted
        alike = {last, *forms(last), *bases.get(last, ())}
        if not before:
            yield from sorted(at for word in alike for at in places.get(word, ()))
            return
        for at in places.get(before[0], ()):
            end = at + len(before)
            if end < len(said) and said[at:end] == before and said[end] in alike:
                yield at

    split = {name: wanted for name in names if (wanted := _split(name))}
    standing = {name: found for name, wanted in split.items() if (found := list(starts(wanted)))}
    taken = [False] * len(said)
    named: list[str] = []
    for name in sorted(standing, key=lambda name: (-len(split[name]), -len(name), name)):
        size = len(split[name])
        for at in standing[name]:
            written = text[spoken[at].start() : spoken[at + size - 1].end()]
            if any(taken[at : at + size]) or (strict and not _written_alike(written, name)):
                continue
            taken[at : at + size] = [True] * size
            named.append(name)
            break
    return tuple(named)


# The names of a desk are asked for again with every text.
_split = lru_cache(maxsize=65536)(words)


@lru_cache(maxsize=4096)
def forms(word: str) -> frozenset[str]:
    """Return the plurals of a word, and its adverb where that means the same ("annually"; but "monthly" is no "month")."""
    found = {f"{word}s", f"{word}es"} if len(word) > 1 else set()
    if word.endswith("y"):
        found.add(f"{word[:-1]}ies")
    if word.endswith("al"):
        found.add(f"{word}ly")
    return frozenset(found)


def _written_alike(text: str, name: str) -> bool:
    if len(name) > 1 and name.isupper():
        return text[: len(name)].isupper()
    return text[:1].isupper() or not name[:1].isupper()
