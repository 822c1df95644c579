"""What can be checked in text, found in one place: numbers, dates, durations, money, ids, negation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from ingest.words import fold

AtomKind = Literal["number", "date", "time", "duration", "money", "percent", "id", "email", "url", "version"]

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan enero ene",
            "february feb febrero",
            "march mar marzo",
            "april apr abril abr",
            "may mayo",
            "june jun junio",
            "july jul julio",
            "august aug agosto",
            "september sept sep septiembre setiembre",
            "october oct octubre",
            "november nov noviembre",
            "december dec diciembre dic",
        ),
        start=1,
    )
    for name in names.split()
}
"""Names of months and their number, English and Spanish, folded."""
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
"""Names of weekdays, Monday is 0, English and Spanish, folded."""
_ONES = "zero one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNOS = "cero uno dos tres cuatro cinco seis siete ocho nueve"
_DIECES = (
    "diez once doce trece catorce quince dieciseis diecisiete dieciocho diecinueve veinte veintiuno veintidos "
    "veintitres veinticuatro veinticinco veintiseis veintisiete veintiocho veintinueve"
)
_TREINTAS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa"


def _numbers() -> dict[str, int]:
    ones, unos = _ONES.split(), _UNOS.split()
    found = {
        word: n
        for names in (f"{_ONES} {_TEENS}", f"{_UNOS} {_DIECES}")
        for n, word in enumerate(names.split())
    }
    for place, ten in enumerate(_TENS.split(), start=2):
        found |= {ten: 10 * place} | {
            f"{ten}{gap}{ones[n]}": 10 * place + n for n in range(1, 10) for gap in "- "
        }
    for place, ten in enumerate(_TREINTAS.split(), start=3):
        found |= {ten: 10 * place} | {f"{ten} y {unos[n]}": 10 * place + n for n in range(1, 10)}
    return found


NUMBERS = _numbers()
"""Numbers spelled out below one hundred, English and Spanish, folded."""
UNITS = {
    form: unit
    for unit, forms in {
        "second": "second seconds sec secs segundo segundos",
        "minute": "minute minutes min mins minuto minutos",
        "hour": "hour hours hr hrs hora horas",
        "day": "day days dia dias",
        "business_day": "weekday weekdays workday workdays",
        "week": "week weeks wk wks semana semanas",
        "month": "month months mes meses",
        "year": "year years yr yrs ano anos",
    }.items()
    for form in forms.split()
}


def _any(forms: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, forms), key=len, reverse=True))


# "one" is mostly a pronoun ("which one"), and Spanish "once" an English adverb: they count only before a unit.
_ALONE = {word for word in NUMBERS if not {" ", "-"} & set(word)} - {"one", "uno", "once"}
# A ten is tried once, and not with each of its ones: that is half of the time that this pattern takes.
_WORD_NUMBER = (
    rf"(?:{_any(_TENS.split())})(?:[ -](?:{_any(_ONES.split()[1:])}))?"
    rf"|(?:{_any(_TREINTAS.split())})(?: y (?:{_any(_UNOS.split()[1:])}))?"
    rf"|{_any(_ALONE - set(_TENS.split()) - set(_TREINTAS.split()))}"
)
_DIGITS = r"\d{1,3}(?:,\d{3})+|\d{1,4}(?:[.,]\d{1,2})?"
_AMOUNT = rf"(?:{_DIGITS}|{_WORD_NUMBER}|one|uno|once(?= (?:dias|semanas|meses|horas|minutos|anos)))"
# "twenty-four" and "treinta y cinco" are one number each, not the ends of a range.
_LOW = rf"(?:\d{{1,3}}|(?:{_WORD_NUMBER}|one|uno)(?!-| y ))"
_BUSINESS = r"(?:business|working|work|office|opening|bank|banking)[ -]"
_PLAIN_DAYS = r"(?:calendar|full|consecutive|clock|whole|clear|further|additional|straight)[ -]"
_BEHIND = r" (?:laborables?|habiles|habil)"
_UNIT = _any(UNITS)
_MONTH = _any(MONTHS)
_YEAR = r"(?P<y>(?:19|20)\d{2})"


def _shortest(forms: Iterable[str]) -> tuple[str, ...]:
    """Return the forms that hold none of the others: a text without these has none of all."""
    every = sorted(forms, key=len)
    return tuple(form for n, form in enumerate(every) if not any(other in form for other in every[:n]))


_DIGIT = tuple("0123456789")
_SOME_UNIT = _shortest(UNITS)
_SOME_NUMBER = _shortest(_ALONE)
_PATTERNS: tuple[tuple[AtomKind | Literal["marker"], tuple[str, ...], re.Pattern[str]], ...] = (
    ("marker", _DIGIT, re.compile(r"\[\d+(?:\s*[,;]\s*\d+)*\](?!\()|(?m:^[ \t>]*\d{1,3}[.)](?=[ \t]))")),
    ("url", ("/", "w."), re.compile(r"\b(?:https?://|www\.)[^\s<>()\[\]“”\"'|]*[^\s<>()\[\]“”\"'|.,;:!?]")),
    ("email", ("@",), re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("date", _DIGIT, re.compile(r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?=t\d|\b(?!-\w))")),
    ("date", _DIGIT, re.compile(r"(?<![\w./-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})(?![\w/-])")),
    (
        "date",
        _DIGIT,
        re.compile(
            rf"(?<![\w.,:/-])(?P<d>\d{{1,2}})(?:st|nd|rd|th|º|\.º)?(?: (?:of |de )?|-)(?P<month>{_MONTH})\b\.?"
            rf"(?:(?:,? (?:de |of |del )?|-){_YEAR}\b)?"
        ),
    ),
    ("date", _DIGIT, re.compile(rf"\b(?P<month>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.:,/-]?\d)(?:,? {_YEAR}\b)?")),
    ("time", _DIGIT, re.compile(r"(?<![\w.:])(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?")),
    ("time", _DIGIT, re.compile(r"(?:(?<=\dt)|(?<![\w.:]))(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\w:])")),
    (
        "duration",
        _SOME_UNIT,
        re.compile(
            rf"(?<![\w.,:/-])(?:(?P<low>{_LOW})(?: to | or | and | a | o | y |[ ]?[-–][ ]?))?(?P<n>{_AMOUNT})[ \u00a0-]?"
            rf"(?:\(\d+\) )?(?:{_PLAIN_DAYS})?(?P<b>{_BUSINESS})?(?P<u>{_UNIT})\b(?: naturales\b|(?P<behind>{_BEHIND}\b))?"
        ),
    ),
    ("duration", _DIGIT, re.compile(r"(?<![\w.,/-])(?:(?P<low>\d{1,4})[-–])?(?P<n>\d{1,4}) ?(?P<u>[hd])\b")),
    ("duration", _SOME_UNIT, re.compile(rf"\b(?P<n>an?|una?) (?:{_PLAIN_DAYS})?(?P<b>{_BUSINESS})?(?P<u>{_UNIT})\b(?: naturales\b|(?P<behind>{_BEHIND}\b))?")),
    (
        "money",
        _DIGIT,
        re.compile(
            r"(?:(?P<c>[€$£]) ?|\b(?P<code>eur|usd|gbp) ?)(?P<n>\d+(?:[.,]\d+)*)"
            r"|(?<![\w.,])(?P<n2>\d+(?:[.,]\d+)*) ?(?:(?P<c2>[€$£])|(?P<code2>eur|usd|gbp|euros?|dollars?|dolares|pounds?|libras)\b)"
        ),
    ),
    ("percent", _DIGIT, re.compile(r"(?<![\w.,])(?P<n>\d+(?:[.,]\d+)?) ?(?:%|percent\b|per cent\b|por ciento\b)")),
    ("id", _DIGIT, re.compile(r"\b0x[0-9a-f]{2,}\b|(?<![\w/&])#\d{2,}\b|(?<![\w.,/])\d{1,4}/\d{1,4}(?![\w/])")),
    ("version", _DIGIT, re.compile(r"\bv ?\d+(?:\.\d+)+\b|(?<![\w.,])\d+\.\d+\.\d+(?:\.\d+)*\b|(?<=version )\d+(?:\.\d+)+\b")),
    ("id", _DIGIT, re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])(?!\d+(?:st|nd|rd|th)\b)[a-z0-9]+(?:[_-][a-z0-9]+|(?<=\d)/\d+)*\b")),
    ("id", ("_",), re.compile(r"\b[a-z]{2,}(?:_[a-z0-9]+)+\b")),
    ("number", _DIGIT, re.compile(r"(?<![\w.,])\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?\b|(?<![\w.,])\d+(?:[.,]\d+)*(?!\w)")),
    ("number", _SOME_NUMBER, re.compile(rf"\b(?:{_WORD_NUMBER})\b(?!-)")),
)  # fmt: skip
_NEEDED = frozenset(needed for _, needed, _ in _PATTERNS)
_RATE_BEFORE = re.compile(r"(?:\b(?:once|twice|times?|per|veces|vez)|\d[\d.,]*(?: [a-z]+){0,2}|[€$£%])\s*$")
_MODAL_MAY_BEFORE = re.compile(
    r"\b(?:on|by|until|till|from|since|before|after|of|and|to|the|between|dated?|,)\s*$|^\s*$"
)
_VERSION_BEFORE = re.compile(r"\b(?:version|release|chapter|section|article|clause|plan)\s*$")
_MAY_IS_MONTH_AFTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]|—–]|(?:19|20)\d{2}\b|(?:and|or|but|to|until|at|for|is|was|on|in|to)\b)"
)


@dataclass(frozen=True, slots=True)
class Atom:
    """One checkable value in a text."""

    kind: AtomKind
    value: str
    """Canonical: `2026-09-13`, `--09-13` without a year, `30 day`, `EUR 29.00`, `err_sso-4032`, `v2.3.1`."""
    text: str
    start: int
    end: int


@lru_cache(maxsize=8192)
def atoms(text: str, *, day_first: bool | None = None) -> tuple[Atom, ...]:
    """Find the checkable values of a text, in order and without overlaps: a date's day is not a number besides.

    02/09/2025 is a date only where `day_first` says how to read it; otherwise it is an `id`, which can be compared
    but not computed with. Citation markers ([1]) and the numbers of list items are left out.
    """
    folded = fold(text)
    held = folded if folded.isascii() else "".join("0" if sign.isdecimal() else sign for sign in folded)
    worth = {needed: any(map(held.__contains__, needed)) for needed in _NEEDED}
    taken = bytearray(len(folded))
    found: list[Atom] = []
    for kind, needed, pattern in _PATTERNS:
        if not worth[needed]:
            continue
        for match in pattern.finditer(folded):
            start, end = match.span()
            if any(taken[start:end]):
                continue
            read = [] if kind == "marker" else list(_read(kind, match, text, day_first))
            if kind != "marker" and not read:
                continue
            taken[start:end] = b"\x01" * (end - start)
            found += read
    return tuple(sorted(found, key=lambda atom: atom.start))


def _read(
    kind: AtomKind | Literal["marker"], match: re.Match[str], text: str, day_first: bool | None
) -> Iterator[Atom]:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    start, end = match.span()
    value: str | None = match.group()
    match kind:
        case "date" if "sep" in groups:
            value = _numeric_date(groups, day_first)
            if value is None:
                kind, value = "id", match.group()
        case "date":
            value = None if _is_modal(match, text) else _date(groups)
        case "time":
            value = _time(groups)
        case "duration":
            if _is_rate(match, text):
                return
            if low := groups.get("low"):
                yield Atom("duration", _duration(low, groups), low, start, start + len(low))
                start = match.start("n")
            value = _duration(groups["n"], groups)
        case "money":
            value = _money(groups)
        case "percent":
            value = f"{float(_decimal(groups['n'])):g}%"
        case "version":
            value = f"v{match.group().removeprefix('v').strip()}"
        case "id":
            value = match.group().lstrip("#")
            if "_" in value and not re.search(r"\d", value) and not text[start:end].isupper():
                return
        case "number":
            value = _number(match.group())
        case _:
            pass
    if value is not None and kind != "marker":
        yield Atom(kind, value, text[start:end], start, end)


def _date(groups: dict[str, str]) -> str | None:
    month = int(groups["m"]) if "m" in groups else MONTHS[groups["month"]]
    day, year = int(groups["d"]), groups.get("y")
    try:
        date(int(year) if year else 2024, month, day)
    except ValueError:
        return None
    return f"{year or '-'}-{month:02}-{day:02}"


def _numeric_date(groups: dict[str, str], day_first: bool | None) -> str | None:
    first, second = int(groups["a"]), int(groups["b"])
    if first <= 12 and second <= 12 and first != second and day_first is None:
        return None
    day_leads = first > 12 or (second <= 12 and bool(day_first))
    day, month = (first, second) if day_leads else (second, first)
    return _date({"d": str(day), "m": str(month), "y": groups["y"]})


def _is_modal(match: re.Match[str], text: str) -> bool:
    """Tell whether "may" after or before a number is the verb: "version 2 may be refunded", "you may 10 times"."""
    if match.groupdict().get("month") != "may":
        return False
    before, after = fold(text[: match.start()]), fold(text[match.end() :])
    if match.group()[0] != "m" and _VERSION_BEFORE.search(before):
        return True
    if match["y"] or text[match.start("month")] == "M":
        return False
    if match.group()[0] == "m":
        return not _MODAL_MAY_BEFORE.search(before)
    return not _MAY_IS_MONTH_AFTER.match(after)


def _time(groups: dict[str, str]) -> str | None:
    hour = int(groups["hour"])
    if half := groups.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half == "p")
    return f"{hour:02}:{groups.get('minute', '00')}"


def _is_rate(match: re.Match[str], text: str) -> bool:
    """Tell whether "a day" is a rate ("5 a day", "once a year"), and whether 3D is no three days."""
    if match["u"] in ("h", "d"):
        return text[match.start("u")].isupper()
    return match["n"] in ("a", "an", "un", "una") and bool(_RATE_BEFORE.search(fold(text[: match.start()])))


def _duration(raw: str, groups: dict[str, str]) -> str:
    unit = {"h": "hour", "d": "day"}.get(groups["u"]) or UNITS[groups["u"]]
    if "b" in groups or "behind" in groups:
        unit = f"business_{unit.removeprefix('business_')}"
    if raw in NUMBERS:
        amount = float(NUMBERS[raw])
    elif raw[0].isdigit():
        amount = float(raw.replace(",", "") if re.search(r",\d{3}", raw) else raw.replace(",", "."))
    else:
        amount = 1.0
    for larger, smaller, factor in (("week", "day", 7), ("business_week", "business_day", 5)):
        if unit == larger:
            amount, unit = amount * factor, smaller
    # Half an hour has no whole amount of hours; calendar units have no fixed parts.
    if amount != int(amount) and unit == "hour":
        amount, unit = amount * 60, "minute"
    return f"{amount:g} {unit}"


def _money(groups: dict[str, str]) -> str:
    symbol = next(groups[name] for name in ("c", "c2", "code", "code2") if name in groups)
    currency = {"€": "EUR", "$": "USD", "£": "GBP", "e": "EUR", "u": "USD", "d": "USD", "g": "GBP", "p": "GBP", "l": "GBP"}  # fmt: skip
    return f"{currency[symbol[0]]} {float(_decimal(groups.get('n') or groups['n2'])):.2f}"


def _decimal(text: str) -> str:
    """Read 1,200.50 and 1.200,50 and 29,90: the last separator with one or two digits behind it is the decimal one."""
    if found := re.fullmatch(r"(.*)[.,](\d{1,2})", text):
        return f"{re.sub(r'[.,]', '', found[1]) or 0}.{found[2]}"
    return re.sub(r"[.,]", "", text)


def _number(raw: str) -> str:
    if raw in NUMBERS:
        return str(NUMBERS[raw])
    plain = re.sub(r"[\u00a0\u202f]", "", raw)
    if re.fullmatch(r"[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})*", plain):
        return re.sub(r"[.,]", "", plain)
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+\.\d+", plain):
        return f"{float(plain.replace(',', '')):.12g}"
    if re.fullmatch(r"\d+[.,]\d+", plain):
        return f"{float(plain.replace(',', '.')):.12g}"
    return plain


_SMALLER = {"year": ("month", 12)}


def same(a: Atom, b: Atom) -> bool:
    """Tell whether two atoms say the same: 12 months are one year, 13 September is 13 September 2026.

    Kinds must be equal, save that a long number is its id: 4812, #4812 and TCK-4812.
    """
    if a.kind != b.kind:
        return {a.kind, b.kind} == {"id", "number"} and _bare(a.value) == _bare(b.value)
    if a.kind == "duration":
        return _smallest(a.value) == _smallest(b.value)
    if a.kind == "date" and "--" in (a.value[:2], b.value[:2]):
        return a.value[-5:] == b.value[-5:]
    return a.value == b.value or (
        a.kind == "id" and "#" in a.text + b.text and _bare(a.value) == _bare(b.value)
    )


def _bare(value: str) -> str:
    return re.sub(r"^[a-z]+[-_]?(?=\d{3,}$)", "", value)


def _smallest(value: str) -> tuple[float, str]:
    amount, unit = value.split()
    smaller, factor = _SMALLER.get(unit, (unit, 1))
    return float(amount) * factor, smaller


def resolve_date(found: Atom | str, reference: date) -> date | None:
    """Return the date of an atom, or the first one in a text; None where there is none.

    Without a year it is the latest such day that is not after the reference.
    """
    if isinstance(found, str):
        dated = next((atom for atom in atoms(found) if atom.kind == "date"), None)
        return resolve_date(dated, reference) if dated else None
    if found.kind != "date":
        return None
    if not found.value.startswith("--"):
        return date.fromisoformat(found.value)
    month, day = int(found.value[2:4]), int(found.value[5:7])
    # Two leap days can be eight years apart.
    for year in range(reference.year, max(0, reference.year - 9), -1):
        try:
            resolved = date(year, month, day)
        except ValueError:
            continue
        if resolved <= reference:
            return resolved
    return None


_NOT_DENIAL = re.compile(
    r"\b(?:no|not) (?:later|more|longer|less|fewer|earlier|sooner|greater) than\b|\bnot (?:only|just|least)\b|\bwhether or not\b|"
    r"\bno matter\b|\bno problem\b|\bno\. ?\d+|\bsin embargo\b|\bno (?:mas|menos) (?:tarde )?(?:de|que)\b|\bno (?:solo|solamente)\b"
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|cannot|cant|without|neither|nor|none|nothing|nobody|non[- ]?\w+able|unable|ineligible|denied|denies|"
    r"refuse[sd]?|rejected|excluded|forbidden|prohibited|[a-z]+n['’]t|sin|nunca|jamas|tampoco|nadie|ni|ningun\w*)\b"
)


def negated(text: str) -> bool:
    """Tell whether a sentence denies something; "no later than" and "not only" deny nothing."""
    return bool(_DENIAL.search(_NOT_DENIAL.sub(" ", fold(text))))


_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"“”'’|!?`*=]+")
_NO_CODES = frozenset({"url", "date", "time", "duration", "money", "percent"})
_YEAR_ALONE = re.compile(r"(?i)\b(?:in|of|since|until|year|en|de|desde|año) (?:19|20)\d\d\b")


@lru_cache(maxsize=8192)
def codes(text: str) -> tuple[str, ...]:
    """Find identifiers, folded, whole and in parts: `err_sso-4032`, `err_sso`, `4032`; ordinary words are none.

    A code holds a digit beside letters or four digits, or is WRITTEN_SO; dates, amounts and links are none.
    """
    spans = [(atom.start, atom.end) for atom in atoms(text) if atom.kind in _NO_CODES]
    masked = list(text)
    for start, end in [*spans, *(match.span() for match in _YEAR_ALONE.finditer(text))]:
        masked[start:end] = " " * (end - start)
    found: dict[str, None] = {}
    for match in _TOKEN.finditer("".join(masked)):
        raw = match.group().strip(".:#/-_&%+~^$€£–—…")
        if raw.isalpha():
            continue  # as most are
        token = fold(raw)
        if re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", token):
            found |= dict.fromkeys([token, *token.split("@")])
        elif _is_code(raw, token):
            found[token] = None
            found |= dict.fromkeys(part for part in _parts(raw) if part != token)
    return tuple(found)


def _is_code(raw: str, token: str) -> bool:
    if re.fullmatch(r"[A-Z]{2,}(?:_[A-Z0-9]+)+", raw):
        return True
    if re.fullmatch(r"\d+(?:st|nd|rd|th)|\d+[.:/]\d{1,3}|\d{1,3}(?:\.\d{3})+", token):
        return False
    if re.fullmatch(r"v?\d+(?:\.\d+){2,}|v\d+(?:\.\d+)*|\d{4,}", token):
        return True
    has_letter, has_digit = re.search(r"[a-z]", token), re.search(r"\d", token)
    if not has_letter:
        return bool(re.search(r"\d{4}", token))
    return bool(has_digit)


def _parts(raw: str) -> Iterator[str]:
    token = fold(raw)
    if re.fullmatch(r"v\d+(?:\.\d+)*", token):
        if "." in token:
            yield token[1:]
        return
    split = re.split(r"[-/:]", raw)
    for n, part in enumerate(split):
        if len(split) > 2 and n:
            yield fold("-".join(split[n:]))
        yield from (
            fold(piece)
            for piece in dict.fromkeys([part, *part.split("_")])
            if re.fullmatch(r"\d{3,}|[A-Z]{2,}(?:_[A-Z0-9]+)+|(?=\w*\d)(?=\w*[A-Za-z])\w{4,}", piece)
        )
    # "ERR_SSO-4032" is also spoken of by its last name, "SSO-4032".
    if tail := re.search(r"_([A-Za-z]{2,}-\d+)$", raw):
        yield fold(tail[1])
