"""How ticket numbers are written: one spelling for the table, every spelling people use in a question."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ingest.atoms import atoms
from ingest.errors import ConfigError
from ingest.words import fold

_JOIN = r"[\s\-_\u2010-\u2015:.]{0,3}"
_WORDS = r"tickets?|(?<!\bin )cases?|incidents?|tiques?|tiquets?|incidencias?|casos?"
_LABEL = r"(?:numbers?|nos?\b\.?|nr\b\.?|num\b\.?|n[ºo°]\.?|numeros?|ids?\b)"
_AFTER_WORD = re.compile(rf"(?<!\w)(?:{_WORDS})(?:\s*{_LABEL})?[\s:/#]*[\"'“‘(\[]?\s*$")
_LISTED = re.compile(r"[\s\"'”’)\]]*(?:[,;/&+]|(?:[,;]\s*)?\b(?:and|or|y|e|o|u|vs\.?|versus)\b)[\s\"'“‘(\[]*")
_JOINED_BEFORE = re.compile(r"(?:\w[-_./:,@+#\u2010-\u2015]|[€$£¥]\s?|/)$")
_GLUED_BEFORE = re.compile(r"(?:\w[-_.@+\u2010-\u2015]|[€$£¥]\s?)$")
_GLUED_AFTER = re.compile(r"[-_@+\u2010-\u2015]\w|[.:]\d")
_JOINED_AFTER = re.compile(r"[-_./:,@+\u2010-\u2015]\w|\s?[€$£¥%]")
_SPLIT_AFTER = re.compile(r"[,/]\w")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOT_NUMBERS = frozenset({"date", "time", "duration", "money", "percent", "version", "url", "email"})
_AMOUNTS = frozenset({"duration", "money", "percent"})
_PHONE_BEFORE = re.compile(r"\+\d[\d\s().-]*$")
_LEAST_BARE = 3


@dataclass(frozen=True, slots=True)
class Mention:
    """A ticket number in a text."""

    number: str
    """Canonical."""
    text: str
    """As it is written, with its prefix or `#`."""
    start: int
    end: int
    explicit: bool
    """Written as a ticket number; otherwise it only looks like one and counts if such a ticket exists."""


class Numbers:
    """Reads ticket numbers as a company writes them."""

    def __init__(self, prefixes: Iterable[str], pattern: str) -> None:
        """Compile the spellings.

        Raises:
            ConfigError: the pattern does not work inside a larger one.
        """
        stems = sorted(
            {stem for p in prefixes if (stem := re.sub(r"[\W_]+$", "", p.strip()))}, key=len, reverse=True
        )
        prefix = rf"(?P<prefix>(?:{'|'.join(map(_spaced, stems))}){_JOIN})?" if stems else "(?P<prefix>(?!))?"
        spelled = rf"{prefix}(?P<hash>#\s?)?(?P<number>(?a:{pattern}))"
        try:
            self._whole = re.compile(rf"(?:(?:{_WORDS})(?:\s*{_LABEL})?[\s:]*)?#?{spelled}", re.IGNORECASE)
            self._inside = re.compile(rf"(?<!\w){spelled}(?!\w)", re.IGNORECASE)
        except re.error as error:
            raise ConfigError(
                f"number_pattern {pattern!r} cannot be combined with the prefixes ({error}); "
                "write it without flags and without named groups"
            ) from error

    def canonical(self, text: str) -> str | None:
        """Return the number that a text spells, without prefix, in upper case; None when it spells none."""
        match = self._whole.fullmatch(unicodedata.normalize("NFKC", text).strip())
        return match["number"].upper() if match else None

    def mentioned(self, text: str) -> tuple[Mention, ...]:
        """Find the ticket numbers in a text, in order.

        A number is explicit after a prefix, `#` or a word like "ticket", and in a list that begins so. A bare
        one is left out inside dates, amounts, durations, versions, links and longer codes, and if it is a year.
        """
        folded = fold(text)
        found: list[Mention] = []
        for match in self._inside.finditer(text):
            start, end = match.span()
            marked = bool(match["prefix"] or match["hash"])
            listed = bool(found and found[-1].explicit and _LISTED.fullmatch(folded, found[-1].end, start))
            worded = bool(_AFTER_WORD.search(folded[max(0, start - 40) : start]))
            number = match["number"].upper()
            if marked or worded or listed:
                joined = not (worded or listed) and _GLUED_BEFORE.search(folded, max(0, start - 3), start)
                amount = not marked and _part_of(text, start, end, _NOT_NUMBERS if listed else _AMOUNTS)
                if joined or amount or self._runs_on(text, end):
                    continue
                found.append(Mention(number, text[start:end], start, end, explicit=True))
            elif self._bare(text, folded, start, end):
                found.append(Mention(number, text[start:end], start, end, explicit=False))
        return tuple(found)

    def _runs_on(self, text: str, end: int) -> bool:
        """Tell whether an explicit number begins something longer (4812.50, 4812-b); a list may go on."""
        if _GLUED_AFTER.match(text, end):
            return True
        return bool(_SPLIT_AFTER.match(text, end)) and not self._inside.match(text, end + 1)

    def _bare(self, text: str, folded: str, start: int, end: int) -> bool:
        if end - start < _LEAST_BARE or _YEAR.fullmatch(folded, start, end):
            return False
        if _JOINED_BEFORE.search(folded, max(0, start - 3), start) or _JOINED_AFTER.match(folded, end):
            return False
        return not (
            _PHONE_BEFORE.search(folded, 0, start) or _part_of(text, start, end, _NOT_NUMBERS | {"id"})
        )


def _part_of(text: str, start: int, end: int, kinds: frozenset[str]) -> bool:
    """Tell whether the place belongs to a date, an amount, a link or a longer code."""
    touching = (atom for atom in atoms(text) if atom.start < end and start < atom.end)
    return any(
        atom.kind in kinds and (atom.kind != "id" or atom.start < start or end < atom.end)
        for atom in touching
    )


def _spaced(stem: str) -> str:
    return r"\s+".join(map(re.escape, stem.split()))
