"""Reads a ticket file: encoding, delimiter, rows and dates, with a reason for each row that cannot be."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from ingest.atoms import MONTHS, WEEKDAYS
from ingest.errors import TicketImportError
from ingest.words import fold

Skipped = tuple[int, str]
"""Line number and why."""

_DELIMITERS = ",;\t|"
_LARGEST_CELL = 10_000_000
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LONGEST_DATE = 60
YEARS = range(1900, 3000)
"""The years that a date may be of: others stand for "none" and "never", and a deadline from them may be no date at all."""
NOTHING = frozenset(
    {"", "-", "–", "—", "n/a", "na", "null", "none", "nat", "nan", "0000-00-00", "0000-00-00 00:00:00"}
)


@dataclass(frozen=True, slots=True)
class Row:
    """One record with the line it begins on; cells are trimmed and as many as the header has."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A ticket file that could be read, and the rows that could not."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]

    def column(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column."""
        at = self.header.index(name)
        return tuple(row.cells[at] for row in self.rows)


def read(path: Path) -> Table:
    """Read a CSV file in UTF-8, delimited by comma, semicolon, tab or bar.

    Raises:
        TicketImportError: the file is missing, empty, in another encoding or without a header.
    """
    text = _decode(path)
    with _long_cells():
        return _table(path, *_delimiter(text))


@contextmanager
def _long_cells() -> Iterator[None]:
    """Allow cells beyond the csv module's 128 KiB, which is a setting of the whole process."""
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _table(path: Path, text: str, delimiter: str) -> Table:
    rows: list[Row] = []
    skipped: list[Skipped] = []
    header: tuple[str, ...] = ()
    width = 0
    for line, cells in _records(text, delimiter):
        if isinstance(cells, str):
            if not header:
                raise TicketImportError(f"{path}: the header on line {line} cannot be read: {cells}")
            skipped.append((line, cells))
        elif not any(cell.strip() for cell in cells):
            continue
        elif not header:
            header, width = _header(path, cells), len(cells)
        elif reason := _wrong(cells, header, width):
            skipped.append((line, reason))
        else:
            rows.append(Row(line, tuple(map(_clean, cells[: len(header)]))))
    if not header:
        raise TicketImportError(f"{path} is empty; export the tickets with a header line")
    return Table(header, tuple(rows), tuple(skipped))


def _decode(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TicketImportError(
            f"{path} cannot be read ({error.strerror}); give the path of a CSV file"
        ) from error
    if not data.strip():
        raise TicketImportError(f"{path} is empty; export the tickets with a header line")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TicketImportError(f'{path} is UTF-16; save it as "CSV UTF-8"')
    if data[:2] == b"PK":
        raise TicketImportError(f'{path} is a spreadsheet or an archive; save it as "CSV UTF-8"')
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        lines = re.split(rb"\r\n|\r|\n", data[: error.start])
        cell = data[max(0, error.start - 20) : error.end + 10].decode("cp1252", "replace")
        raise TicketImportError(
            f"{path}: line {len(lines)} is not UTF-8 (Windows-1252? near {cell!r}); nothing was imported. "
            'Save it as "CSV UTF-8", or convert it: iconv -f WINDOWS-1252 -t UTF-8'
        ) from error


def _delimiter(text: str) -> tuple[str, str]:
    """Return the text behind a `sep=` line and the delimiter that gives most records the header's width."""
    if named := re.match(r"sep=(.)\r?\n", text):
        return text[named.end() :], named[1]

    def fit(delimiter: str) -> float:
        widths = []
        for _, cells in _records(text, delimiter):
            if not isinstance(cells, str) and any(cells):
                widths.append(len(cells))
            if len(widths) > 50:
                break
        if not widths or widths[0] == 1:
            return 0
        return widths[0] * sum(width == widths[0] for width in widths) / len(widths)

    return text, max(_DELIMITERS, key=fit)


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each record, or why it cannot be read, with the line it begins on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            why = str(error)
            if "unexpected end" in why:
                why = "a quotation mark opens here and is never closed; nothing after it was read"
            elif "expected after" in why:
                why = (
                    f"text follows a closing quotation mark (to line {reader.line_num}); double marks inside"
                )
            yield line, why


def _header(path: Path, cells: Sequence[str]) -> tuple[str, ...]:
    names = [_clean(cell) for cell in cells]
    while names and not names[-1]:
        names.pop()
    names = [name or f"column {at}" for at, name in enumerate(names, start=1)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TicketImportError(f"{path}: the header names {twice[0]!r} more than once; rename one of them")
    data = next(
        (name for name in names if re.fullmatch(r"[\d\s.,:/+-]*\d[\d\s.,:/+-]*", name) or "@" in name), None
    )
    if data is not None:
        raise TicketImportError(
            f"{path}: the first line looks like a ticket, not a header ({data!r}); put the column names first"
        )
    if len(names) < 2:
        raise TicketImportError(
            f"{path}: only one column was found, {names[0]!r}; separate columns by comma, semicolon or tab"
        )
    return tuple(names)


def _wrong(cells: Sequence[str], header: Sequence[str], width: int) -> str:
    """Say what is wrong with a record; `width` counts the header's nameless columns at the end, too."""
    if len(cells) < len(header):
        return f"{len(cells)} cells where the header has {len(header)}"
    if len(cells) > width or any(cell.strip() for cell in cells[len(header) :]):
        return f"{len(cells)} cells where the header has {len(header)}; quote the cells that contain the delimiter"
    for name, cell in zip(header, cells, strict=False):
        if found := CONTROL.search(cell):
            return f"{name}: control character U+{ord(found[0]):04X}"
    return ""


def _clean(cell: str) -> str:
    return unicodedata.normalize(
        "NFC", cell.replace("\r\n", "\n").replace("\r", "\n").strip().strip("\ufeff")
    )


_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = "|".join([*WEEKDAYS, *sorted({name[:3] for name in WEEKDAYS})])
_NUMERIC = re.compile(r"(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})")
_DATES = (
    re.compile(r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})"),
    _NUMERIC,
    re.compile(
        rf"(?:(?:{_DAY})\.?,? )?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of| de|\.)?[- ]"
        rf"(?P<month>{_MONTH})\.?,?(?: de)?[- ](?P<y>\d{{4}})"
    ),
    re.compile(
        rf"(?:(?:{_DAY})\.?,? )?(?P<month>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})"
    ),
)
_TIME = re.compile(
    r"(?:t|,? (?:at )?| a las )(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?P<zone>z|utc|gmt|[+-]\d{2}:?(?:\d{2})?))?"
)


class Unreadable(ValueError):
    """A date that cannot be read; the text says why."""


class Unlikely(Unreadable):
    """A date of a year that stands for "none" or "never"."""


def read_date(text: str, day_first: bool | None, zone: ZoneInfo) -> date | datetime | None:
    """Read one date or date with time; None for an empty cell.

    A date alone stays a `date`; a time without a zone is in `zone`; with `day_first` None a date such as
    03/04/2026 is refused, because nobody knows.

    Raises:
        Unreadable: it is no date, or no date that exists.
    """
    if len(text := text.strip()) > _LONGEST_DATE:
        raise Unreadable(f"{text[:_LONGEST_DATE]!r}… is too long for a date")
    plain = re.sub(r"\s+", " ", fold(text))
    if plain in NOTHING:
        return None
    for pattern in _DATES:
        if match := pattern.match(plain):
            day = _day(text, match, day_first)
            rest = plain[match.end() :]
            return _with_time(text, day, rest, zone) if rest else day
    raise Unreadable(f"{text!r} is not a date")


def looks_dated(text: str) -> bool:
    """Tell whether a text is written like a date, even of a day that does not exist."""
    if len(text) > _LONGEST_DATE:
        return False
    plain = re.sub(r"\s+", " ", fold(text.strip()))
    matches = (pattern.match(plain) for pattern in _DATES)
    return any(
        match and (match.end() == len(plain) or _TIME.fullmatch(plain, match.end())) for match in matches
    )


def _day(text: str, match: re.Match[str], day_first: bool | None) -> date:
    groups = match.groupdict()
    if "a" in groups:
        first, second = int(groups["a"]), int(groups["b"])
        if groups["sep"] == "." or first > 12:
            day_first = True
        elif second > 12:
            day_first = False
        elif day_first is None and first != second:
            raise Unreadable(f"{text!r} can be read two ways, and tickets.day_first is not set")
        day, month = (first, second) if day_first else (second, first)
    else:
        month = int(groups["m"]) if "m" in groups else MONTHS[groups["month"]]
        day = int(groups["d"])
    if int(groups["y"]) not in YEARS:
        raise Unlikely(f"{text!r} is not of a year from {YEARS[0]} to {YEARS[-1]}")
    try:
        return date(int(groups["y"]), month, day)
    except ValueError as error:
        raise Unreadable(f"{text!r} is no day of the calendar") from error


def _with_time(text: str, day: date, rest: str, zone: ZoneInfo) -> datetime:
    match = _TIME.fullmatch(rest)
    if match is None:
        raise Unreadable(f"{text!r} is not a date with a time")
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise Unreadable(f"{text!r} has no such hour")
        hour = hour % 12 + (12 if match["half"] == "p" else 0)
    fraction = int((match["fraction"] or "").ljust(6, "0")[:6])
    try:
        moment = datetime(
            day.year, day.month, day.day, hour, int(match["minute"]), int(match["second"] or 0), fraction,
            tzinfo=_zone(match["zone"]) or zone,
        )  # fmt: skip
        return moment.astimezone(zone)
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"{text!r} is no time of the clock") from error


def _zone(text: str | None) -> timezone | None:
    if not text:
        return None
    if text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


@dataclass(frozen=True, slots=True)
class Order:
    """How a column writes its slashed dates."""

    day_first: bool | None
    """None where the column holds both."""
    decided: bool
    """Some value of the column leaves no doubt."""
    doubtful: str
    """A value that can be read two ways, if there is one."""


def order_of(cells: Iterable[str]) -> Order:
    """Find out from a column's own values whether its days come first."""
    seen: set[bool] = set()
    doubtful = ""
    for cell in cells:
        if match := _NUMERIC.match(cell):
            first, second = int(match["a"]), int(match["b"])
            if match["sep"] == ".":
                continue
            if first > 12 or second > 12:
                seen.add(first > 12)
            elif first != second:
                doubtful = doubtful or cell
    return Order(next(iter(seen)) if len(seen) == 1 else None, bool(seen), doubtful)


def orders(
    columns: Mapping[str, Sequence[str]], setting: bool | None
) -> tuple[dict[str, bool | None], tuple[str, ...]]:
    """Decide for each date column whether days come first, and say where it was only assumed.

    A column's own unambiguous values decide; then the setting, if somebody gave it; then what the other
    columns of the file agree on; then months come first. In a column that holds both only the setting decides.
    """
    found = {name: order_of(cells) for name, cells in columns.items()}
    others = {order.day_first for order in found.values() if order.decided}
    shared = next(iter(others)) if len(others) == 1 else None
    assumed = setting if setting is not None else shared if shared is not None else False
    notes = tuple(
        f"{name}: {order.doubtful!r} was read with the {'day' if assumed else 'month'} first; "
        f"if that is wrong, set day_first = {'false' if assumed else 'true'}"
        for name, order in found.items()
        if order.doubtful and not order.decided and setting is None and shared is None
    )

    def first(order: Order) -> bool | None:
        if order.day_first is not None:
            return order.day_first
        return setting if order.decided else assumed

    return {name: first(order) for name, order in found.items()}, notes
