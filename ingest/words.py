"""Words of English and Spanish text: folded, stemmed, and names among them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
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


def mentions(text: str, names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """Return which names occur in a text as whole words, longest first, none inside another.

    Case, accents and the last word's plural do not matter; "annually" is "annual". With `strict`, a name that is
    written with a capital must be written so in the text ("the Team plan", not "my team"), and one in capitals
    wholly so ("US", not "us").
    """
    text = unicodedata.normalize("NFC", text)
    spoken = list(_WORD.finditer(fold(text)))
    said = list(map(_spoken, spoken))
    taken = [False] * len(said)
    found: list[str] = []
    split = {name: words(name) for name in names}
    for name, wanted in sorted(split.items(), key=lambda item: (-len(item[1]), -len(item[0]), item[0])):
        size = len(wanted)
        for at in range(len(said) - size + 1 if size else 0):
            if any(taken[at : at + size]) or not _alike(said[at : at + size], wanted):
                continue
            if strict and not _written_alike(text[spoken[at].start() : spoken[at + size - 1].end()], name):
                continue
            taken[at : at + size] = [True] * size
            found.append(name)
            break
    return tuple(found)


def _alike(said: list[str], wanted: tuple[str, ...]) -> bool:
    if tuple(said[:-1]) != wanted[:-1]:
        return False
    return said[-1] == wanted[-1] or said[-1] in _forms(wanted[-1]) or wanted[-1] in _forms(said[-1])


@lru_cache(maxsize=4096)
def _forms(word: str) -> frozenset[str]:
    """Return the plurals of a word, and its adverb where that means the same ("annually"; but "monthly" is no "month")."""
    forms = {f"{word}s", f"{word}es"} if len(word) > 1 else set()
    if word.endswith("y"):
        forms.add(f"{word[:-1]}ies")
    if word.endswith("al"):
        forms.add(f"{word}ly")
    return frozenset(forms)


def _written_alike(text: str, name: str) -> bool:
    if len(name) > 1 and name.isupper():
        return text[: len(name)].isupper()
    return text[:1].isupper() or not name[:1].isupper()
