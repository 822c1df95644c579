"""What can be checked in text, found in one place: numbers, dates, durations, money, ids, negation, names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

import snowballstemmer

AtomKind = Literal[
    "number", "date", "time", "duration", "money", "percent", "id", "email", "url", "version"
]

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan enero",
            "february feb febrero",
            "march mar marzo",
            "april apr abril",
            "may mayo",
            "june jun junio",
            "july jul julio",
            "august aug agosto",
            "september sept sep septiembre setiembre",
            "october oct octubre",
            "november nov noviembre",
            "december dec diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday lunes",
            "tuesday martes",
            "wednesday miercoles",
            "thursday jueves",
            "friday viernes",
            "saturday sabado",
            "sunday domingo",
        )
    )
    for name in names.split()
}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SPANISH = {
    "un": 1, "uno": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8,
    "nueve": 9, "diez": 10, "once": 11, "doce": 12, "trece": 13, "catorce": 14, "quince": 15, "veinte": 20,
    "veinticuatro": 24, "treinta": 30, "cuarenta": 40, "cuarenta y cinco": 45, "cuarenta y ocho": 48, "cincuenta": 50,
    "sesenta": 60, "setenta": 70, "ochenta": 80, "noventa": 90,
}  # fmt: skip
NUMBERS: dict[str, int] = {
    **{word: n for n, word in enumerate(_ONES)},
    **{ten: 20 + 10 * i for i, ten in enumerate(_TENS)},
    **{f"{ten}{sep}{_ONES[n]}": 20 + 10 * i + n for i, ten in enumerate(_TENS) for n in range(1, 10) for sep in "- "},
    **_SPANISH,
}
"""Numbers spelled out, English and Spanish."""

UNITS = {
    form: unit
    for unit, forms in {
        "minute": "minute minutes min mins minuto minutos",
        "hour": "hour hours hr hrs h hora horas",
        "day": "day days dia dias d",
        "week": "week weeks wk wks semana semanas",
        "month": "month months mo mos mes meses",
        "year": "year years yr yrs ano anos",
    }.items()
    for form in forms.split()
}
_BUSINESS = r"(?:business|working|work|office|opening|laborables?|habiles|habil)"

_NUMBER_WORD = "|".join(sorted((w for w in NUMBERS if w not in ("un", "uno", "una")), key=len, reverse=True))
_AMOUNT = rf"(?:\d{{1,4}}|{_NUMBER_WORD})"
_UNIT = "|".join(sorted((u for u in UNITS if len(u) > 1), key=len, reverse=True))
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))

_PATTERNS: tuple[tuple[AtomKind | Literal["marker"], re.Pattern[str]], ...] = (
    ("marker", re.compile(r"\[\d+(?:\s*,\s*\d+)*\](?!\()")),
    ("url", re.compile(r"\b(?:https?://|www\.)[^\s<>()\[\]“”\"']*[^\s<>()\[\]“”\"'.,;:!?]")),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("date", re.compile(r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b")),
    (
        "date",
        re.compile(
            rf"(?<![\w.,:])(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of| de)? (?P<month>{_MONTH})\b(?! (?:be|not|only|have)\b)\.?(?:,? (?:de |of |del )?(?P<y>\d{{4}})\b)?"
        ),
    ),
    (
        "date",
        re.compile(rf"\b(?P<month>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.:\d]*\d)(?:,? (?P<y>\d{{4}})\b)?"),
    ),
    ("time", re.compile(r"\b(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d)?\b")),
    (
        "duration",
        re.compile(
            rf"\b(?P<n>{_AMOUNT})[ \u00a0-]?(?:\(\d+\) ?)?(?:(?:calendar|natural|full|consecutive|clock) )?"
            rf"(?P<b>{_BUSINESS}[ -])?(?P<u>{_UNIT})\b(?P<after> (?:laborables|habiles))?"
        ),
    ),
    ("duration", re.compile(r"\b(?P<n>\d{1,4}) ?(?P<u>h|d)\b")),
    ("duration", re.compile(rf"\b(?P<n>an?|un|una|one) (?P<b>{_BUSINESS} )?(?P<u>{_UNIT})\b(?! (?:ago|after|before)\b)")),
    (
        "money",
        re.compile(
            r"(?:(?P<c>[€$£])|\b(?P<code>eur|usd|gbp) ?)(?P<n>\d+(?:[.,]\d+)*)"
            r"|\b(?P<n2>\d+(?:[.,]\d+)*) ?(?:(?P<c2>[€$£])|(?P<code2>eur|usd|gbp|euros?|dollars?|pounds?)\b)"
        ),
    ),
    ("percent", re.compile(r"\b(?P<n>\d+(?:[.,]\d+)?) ?(?:%|percent\b|per cent\b|por ciento\b)")),
    ("id", re.compile(r"\b0x[0-9a-f]{2,}\b|(?<![\w/])#\d{2,}\b")),
    ("version", re.compile(r"\bv\d+(?:\.\d+)+\b|\b\d+\.\d+\.\d+(?:\.\d+)*\b|\b(?<=version )\d+(?:\.\d+)+\b")),
    ("id", re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[a-z0-9]+(?:[_-][a-z0-9]+)*\b(?<!\d(?:st|nd|rd|th))")),
    ("number", re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|(?<![\w.])\d+(?:\.\d+)?\b")),
    ("number", re.compile(rf"\b(?:{_NUMBER_WORD})\b")),
)


@dataclass(frozen=True, slots=True)
class Atom:
    """One checkable value in a text."""

    kind: AtomKind
    value: str
    """Canonical: `2026-09-13`, `--09-13` without a year, `30 day`, `EUR 29.00`, `err_sso-4032`."""
    text: str
    start: int
    end: int


def fold(text: str) -> str:
    """Lower the case and take the accents off, keeping every character's place."""
    return "".join(_fold_character(character) for character in text)


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    lowered = character.lower()
    plain = unicodedata.normalize("NFD", lowered)[:1]
    return plain if len(lowered) == 1 else character


@lru_cache(maxsize=4096)
def atoms(text: str) -> tuple[Atom, ...]:
    """Find the checkable values of a text, without overlaps; a date's day is not a number besides."""
    folded = fold(text)
    taken = bytearray(len(folded))
    found: list[Atom] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(folded):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            value = _value(kind, match) if kind != "marker" else ""
            if value is None:
                continue
            taken[start:end] = b"\x01" * (end - start)
            if kind != "marker":
                found.append(Atom(kind, value, text[start:end], start, end))
    return tuple(sorted(found, key=lambda atom: atom.start))


def _value(kind: AtomKind | Literal["marker"], match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    match kind:
        case "date":
            month = int(groups["m"]) if groups.get("m") else MONTHS[groups["month"]]
            day = int(groups["d"])
            year = groups["y"]
            try:
                date(int(year) if year else 2024, month, day)
            except ValueError:
                return None
            return f"{year or '-'}-{month:02}-{day:02}"
        case "time":
            return f"{int(groups['hour']):02}:{groups['minute']}"
        case "duration":
            raw = groups["n"]
            amount = int(raw) if raw.isdigit() else 1 if raw in ("a", "an") else NUMBERS[raw]
            unit = UNITS[groups["u"]]
            if groups.get("b") or groups.get("after"):
                unit = f"business_{unit}"
            return f"{amount} {unit}"
        case "money":
            symbol = groups["c"] or groups["c2"] or groups["code"] or groups["code2"] or ""
            code = {"€": "EUR", "$": "USD", "£": "GBP", "e": "EUR", "u": "USD", "g": "GBP", "d": "USD", "p": "GBP"}[symbol[0]]
            amount_text = _decimal(groups["n"] or groups["n2"] or "")
            return f"{code} {float(amount_text):.2f}"
        case "percent":
            return f"{float(_decimal(groups['n'])):g}%"
        case "version":
            return match.group().removeprefix("v")
        case "id":
            return match.group().lstrip("#")
        case "number":
            raw = match.group()
            return str(NUMBERS[raw]) if raw in NUMBERS else f"{float(raw.replace(',', '')):g}" if "." in raw else raw.replace(",", "")
        case _:
            return match.group()


def _decimal(text: str) -> str:
    """Read 1,200.50 and 1.200,50 and 29,90: the last separator with one or two digits behind it is the decimal one."""
    if found := re.fullmatch(r"(.*)[.,](\d{1,2})", text):
        return f"{re.sub(r'[.,]', '', found[1]) or 0}.{found[2]}"
    return re.sub(r"[.,]", "", text)


_IN_DAYS = {"week": ("day", 7), "year": ("month", 12), "business_week": ("business_day", 5)}


def same(one: Atom, other: Atom) -> bool:
    """Tell whether two atoms say the same: 2 weeks is 14 days, 13 September is 13 September 2026."""
    if one.kind == other.kind == "duration":
        return _duration(one.value) == _duration(other.value)
    if one.kind != other.kind:
        loose = {one.kind, other.kind} <= {"id", "number", "version"}
        return loose and _bare(one.value) == _bare(other.value)
    if one.kind == "date" and (one.value.startswith("--") or other.value.startswith("--")):
        return one.value[-5:] == other.value[-5:]
    return one.value == other.value


def _bare(value: str) -> str:
    return re.sub(r"^[a-z]+[-_ ]", "", value)


def _duration(value: str) -> tuple[int, str]:
    amount, unit = value.split()
    if unit in _IN_DAYS:
        smaller, factor = _IN_DAYS[unit]
        return int(amount) * factor, smaller
    return int(amount), unit


def resolve_date(atom: Atom, reference: date) -> date | None:
    """Return the date of an atom; without a year, the latest such day that is not after the reference."""
    if atom.kind != "date":
        return None
    if not atom.value.startswith("--"):
        return date.fromisoformat(atom.value)
    month, day = int(atom.value[2:4]), int(atom.value[5:7])
    for year in range(reference.year, reference.year - 9, -1):
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found <= reference:
            return found
    return None


_STOP = frozenset(
    fold(
        "a an the and or but if of at by for with about against between into through during before after above below to "
        "from up down in out on off over under again further then once here there when where why how all any both each few "
        "more most other some such only own same so than too very s t can will just should now is are was were be been being "
        "am have has had having do does did doing i me my we our you your he him his she her it its they them their what "
        "which who whom this that these those as until while would could shall may might must also get got us re ve ll d m "
        "there's upon via per et cetera please "
        "el la los las un una unos unas de del al y o en con por para que se su sus es son fue ser como más pero sin sobre "
        "este esta estos estas ese esa lo le les nos hay ha han muy ya cuando donde qué cuál cómo cuánto tiene tengo mi"
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?")
_SPANISH_MARKS = re.compile(r"[ñ¿¡]|\b(?:el|los|las|una|del|para|cliente|reembolso|cuál|cómo|qué|está)\b", re.IGNORECASE)
_english = snowballstemmer.stemmer("english")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded, in order; an apostrophe's tail is dropped."""
    return tuple(match.group().partition("'")[0].partition("’")[0] for match in _WORD.finditer(fold(text)))


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    return str(_english.stemWord(word))


@lru_cache(maxsize=8192)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the content words, in order."""
    return tuple(_stem(word) for word in words(text) if word not in _STOP)


_NEGATED = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nothing|isn|aren|don|doesn|didn|won|can['’]?t|isn['’]t|aren['’]t|don['’]t|"
    r"doesn['’]t|didn['’]t|won['’]t|shouldn['’]t|couldn['’]t|wouldn['’]t|wasn['’]t|weren['’]t|hasn['’]t|haven['’]t|"
    r"non[- ]?\w+able|unable|ineligible|denied|refused?|refuses|rejected|excluded|forbidden|prohibited|"
    r"sin|nunca|jamas|tampoco|ningun\w*)\b"
)


def negated(text: str) -> bool:
    """Tell whether a sentence denies something."""
    return bool(_NEGATED.search(fold(text)))


_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|no|nr|art|sec|mr|mrs|ms|dr|sr|sra|p\.ej|approx|inc|ltd|co|st)\.$", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[.!?])[”\"’')\]]*\s+(?=[\"“‘'(\[¿¡*_]*[A-ZÁÉÍÓÚÑ¿¡\d])")


def sentences(text: str) -> tuple[str, ...]:
    """Split Markdown into sentences: headings, list items and table rows stand alone."""
    found: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            found.extend(_split(" ".join(paragraph)))
            paragraph.clear()

    for line in text.splitlines():
        plain = line.strip()
        if not plain or re.fullmatch(r"[-=_*|: ]{3,}|```.*|~~~.*", plain):
            flush()
        elif re.match(r"#{1,6} |[|]", plain):
            flush()
            found.append(plain)
        elif item := re.match(r"(?:[-*+]|\d{1,3}[.)]) +", plain):
            flush()
            paragraph.append(plain if item[0][0].isdigit() else plain[item.end() :])
        else:
            paragraph.append(plain)
    flush()
    return tuple(found)


def _split(text: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for match in _BREAK.finditer(text):
        before = text[start : match.start()].rstrip()
        if _ABBREVIATION.search(before) or re.fullmatch(r"\d{1,3}\.", before):
            continue
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


_CODE = re.compile(r"[^\s,;()\[\]{}<>\"“”'’|!?`*]+")


def codes(text: str) -> tuple[str, ...]:
    """Find identifiers, folded, whole and in parts: `err_sso-4032`, `err_sso`, `4032`; ordinary words are none."""
    found: dict[str, None] = {}
    for match in _CODE.finditer(text):
        raw = match.group().strip(".:#/=-_&%+~^$€£")
        token = fold(raw)
        if "://" in token:
            continue
        digits = any(character.isdigit() for character in token)
        if "@" in token and re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", token):
            found |= dict.fromkeys([token, *token.split("@")])
        elif re.fullmatch(r"\d{1,3}|\d{1,2}(st|nd|rd|th)|\d+[.,:]\d+|\d{4}-\d{2}-\d{2}\S*|\d+-(day|hour|month|year|week|minute)s?", token):
            continue
        elif (digits and re.search(r"\d{2}|[a-z]\d|\d[a-z]|[_.-]\d", token)) or re.fullmatch(r"[A-Z]{2,}(?:_[A-Z0-9]+)+", raw):
            found[token] = None
            if re.fullmatch(r"v\d+(\.\d+)+", token):
                found[token[1:]] = None
            parts = re.split(r"[-_]", token)
            if len(parts) > 1:
                found |= dict.fromkeys(part for part in token.split("-") if len(part) > 2)
                found |= dict.fromkeys(part for part in parts if re.fullmatch(r"\d{3,}", part))
    return tuple(found)


def mentions(text: str, names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """Return which names occur in a text as whole words, longest first, none inside another.

    Case, accents and the last word's plural do not matter; an adverb counts ("annually"). With `strict`, a name that
    is written with a capital must be written so in the text: "the Team plan", not "my team".
    """
    spoken = list(_WORD.finditer(fold(text)))
    plain = [match.group().partition("'")[0].partition("’")[0] for match in spoken]
    taken = [False] * len(plain)
    found: list[str] = []
    for name in sorted({n for n in names if n}, key=lambda n: (-len(words(n)), -len(n), n)):
        wanted = words(name)
        if not wanted:
            continue
        size = len(wanted)
        for i in range(len(plain) - size + 1):
            if any(taken[i : i + size]) or not _alike(plain[i : i + size], wanted):
                continue
            original = text[spoken[i].start() : spoken[i + size - 1].end()]
            if strict and name[:1].isupper() and not original[:1].isupper():
                continue
            taken[i : i + size] = [True] * size
            found.append(name)
            break
    return tuple(found)


def _alike(said: list[str], wanted: tuple[str, ...]) -> bool:
    *head, last = wanted
    if list(said[:-1]) != head:
        return False
    spoken = said[-1]
    return spoken == last or spoken in (f"{last}s", f"{last}es", f"{last}ly") or (last.endswith("ly") and spoken == last[:-2])
