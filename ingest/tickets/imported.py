"""Our own ticket table, a SQLite file: built from the settings and from what imported files taught."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import (
    JSON,
    URL,
    Column,
    Connection,
    DateTime,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.schema import CreateColumn

from ingest.config import TicketSettings
from ingest.errors import ConfigError, TicketImportError
from ingest.tickets import engines
from ingest.tickets.guess import FIELDS, TIMES, describe
from ingest.tickets.mapping import Stored, effective, lacking, learned, mapping_of
from ingest.tickets.rows import Record, columns_of, exchanged, records
from ingest.tickets.shape import Shape, column_names
from ingest.tickets.table import Skipped, read
from ingest.words import fold

_BATCH = 500
_NO_TICKET = "no row is a ticket: nothing was imported; mend the file or [tickets] in twohop.toml"
_NO_ROW = (
    "it has a header and no row, like an export that broke: nothing was imported and what it brought before is kept; "
    "export it again"
)
_KEEPS = 3
"""What is kept of a file's rows, as a number that changes with it: files are then read again."""
_KEPT = ("personal", "unread")
"""Columns of several values, of which a file replaces those that it has."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    file: Path
    added: int
    changed: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    """Line number and why, in the file's order."""
    guessed: TicketSettings | None
    """What the file's columns were taken for, where the settings do not say."""
    seconds: float
    notes: tuple[str, ...] = ()
    """Assumptions worth a look."""
    removed: int = 0
    """Tickets that the file brought before and has no more."""
    kept: int = 0
    """Those of them that stay, and are answered and counted."""
    failure: str = ""
    """Why the table does not hold what the file should bring; empty where it does."""

    @property
    def failed(self) -> bool:
        """Tell whether somebody has to look at the file."""
        return bool(self.failure)

    def summary(self) -> str:
        """Write the report as text lines."""
        lines = [
            f"{self.file.name}: {self.added} tickets added, {self.changed} changed, "
            f"{self.unchanged} unchanged, {len(self.skipped)} rows skipped ({self.seconds:.1f} s)"
        ]
        lines += [f"  line {line}: {reason}" for line, reason in self.skipped]
        if self.removed:
            lines.append(f"  {self.removed} tickets that it brought before and has no more were removed")
        if self.failure:
            lines.append(f"  {self.failure}")
        elif self.kept:
            lines.append(
                f"  kept: {self.kept} tickets that it brought before and has no more; they are answered and counted. "
                f"Remove them: twohop tickets import {self.file.name} --replace"
            )
        lines += [f"  note: {note}" for note in self.notes]
        if self.guessed is not None:
            lines.append("  the columns were taken for (mend a wrong guess under [tickets] in twohop.toml):")
            lines += [f"    {line}" for line in describe(self.guessed)]
        return "\n".join(lines)


_META = Table(
    "ticket_meta",
    MetaData(),
    Column("key", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)


class Imported:
    """The tickets that came from files.

    Empty sections of the settings are guessed from the imported files; the guess is kept in the database, so that every
    process reads the table alike.
    """

    def __init__(self, url: URL, given: TicketSettings, zone: ZoneInfo) -> None:
        """Open or create the table; columns that an older one lacks are added.

        Raises:
            ConfigError: the database cannot be used, or the settings contradict themselves.
        """
        self._url = url
        self._given = given
        self._zone = zone
        if url.get_backend_name() != "sqlite":
            raise ConfigError(
                "TICKETS_DATABASE_URL is a company's own database, which is only read; "
                'name its table or view in twohop.toml, [tickets] table = "…"'
            )
        self._write, self.engine = engines.writing(url), engines.reading_sqlite(url)
        with self._writing() as connection:
            _META.create(connection, checkfirst=True)
            _prepare(connection, _table(self.shape(connection).settings))

    def close(self) -> None:
        """Release the database."""
        self.engine.dispose()
        self._write.dispose()

    def shape(self, connection: Connection, before: Shape | None = None) -> Shape:
        """Return the table's shape now; it is `before` where nobody has imported since."""
        meta = _meta(connection)
        version = meta.get("version", "")
        if before is not None and before.version == version:
            return before
        settings = effective(self._given, _stored(meta))
        return Shape(version, settings, _table(settings))

    def as_of(self, connection: Connection, _shape: Shape) -> datetime | None:
        """Return when tickets were last imported."""
        at = _meta(connection).get("imported_at")
        return datetime.fromisoformat(at).astimezone(self._zone) if at else None

    def problems(self, connection: Connection, _shape: Shape) -> tuple[str, ...]:
        """Name each column of the settings that no imported file had; nothing before the first import."""
        meta = _meta(connection)
        missing = lacking(self._given, _stored(meta)) if "mapping" in meta else ()
        if not missing:
            return ()
        return (
            f"no imported file had the {'; or the '.join(missing)}; mend the settings, then `twohop index` or "
            f"`twohop tickets import FILE`",
        )

    def warnings(self, _connection: Connection, _shape: Shape) -> tuple[str, ...]:
        """Say nothing: the table is ours."""
        return ()

    def import_csv(
        self, path: Path, now: datetime, *, anew: bool, replace: bool, allow_removal: bool
    ) -> ImportReport:
        """Import a ticket file in one transaction; a bad row is named and skipped.

        Importing the same file again changes nothing. Spellings of a value (team, TEAM) become the commonest. Unless
        `anew`, a file whose rows were all taken, and which nobody touched since, is not read again. With `replace`,
        tickets that it brought before and does not have any more are removed, but none where a row could not be read,
        since it may be one of them.

        Raises:
            TicketImportError: the file cannot be read or lacks a configured column, would read known dates with day and
                month the other way round, or more than half of its tickets would go without `allow_removal`; nothing
                was imported.
        """
        began = time.monotonic()
        mark = self._mark(path)
        with engines.starting(self.engine, self._url, self._given) as connection:
            taken = json.loads(_meta(connection).get("files", "{}")).get(str(path.absolute()))
        if not anew and mark and taken and taken["mark"] == mark:
            return ImportReport(path, 0, 0, taken["tickets"], (), None, time.monotonic() - began)
        content = read(path)
        day_first = self._given.day_first if "day_first" in self._given.model_fields_set else None
        with self._writing() as connection:
            stored = _stored(_meta(connection))
            mapping = mapping_of(path, content, self._given, stored)
            stored = learned(mapping, stored)
            settings = effective(self._given, stored)
            shape = Shape("", settings, table := _table(settings))
            found = records(content, mapping, shape.numbers, self._zone, day_first)
            skipped = tuple(sorted((*content.skipped, *found.skipped)))
            if not found.good:
                # A file that brings no ticket teaches nothing either.
                why = _NO_TICKET if skipped else _NO_ROW
                return ImportReport(path, 0, 0, 0, skipped, None, time.monotonic() - began, failure=why)
            _prepare(connection, table)
            existing = _existing(connection, table, [record.number for record in found.good])
            if day_first is None:
                _refuse_exchanged(path, found.good, existing, shape, self._zone)
            added, changed = _upsert(
                connection,
                table,
                shape,
                found.good,
                existing,
                str(path.absolute()),
                now.astimezone(UTC).replace(tzinfo=None),
            )
            gone = _gone(connection, table, path, {record.number for record in found.good})
            known = len(gone) + sum(row["file"] == str(path.absolute()) for row in existing.values())
            removing = replace and not content.skipped
            if removing and 2 * len(gone) > known and not allow_removal:
                raise TicketImportError(
                    f"{path} no longer has {len(gone)} of the {known} tickets that it brought before: nothing was imported; "
                    "export it again, or add --allow-removal where they are to go"
                )
            for batch in batches(gone if removing else []):
                connection.execute(delete(table).where(table.c.number.in_(batch)))
            marks = (
                {}
                if skipped or found.unread or (gone and not removing)
                else {str(path.absolute()): {"mark": mark, "tickets": len(found.good)}}
            )
            _keep(connection, stored, now.astimezone(self._zone), marks)
        return ImportReport(
            file=path,
            added=added,
            changed=changed,
            unchanged=len(found.good) - added - changed,
            skipped=skipped,
            guessed=settings if _is_guess(settings, self._given) else None,
            seconds=time.monotonic() - began,
            notes=(*found.notes, *found.unread),
            removed=len(gone) if removing else 0,
            kept=0 if removing else len(gone),
        )

    def _mark(self, path: Path) -> str:
        """Return what changes with the file, with the settings and with the zone that it is read by."""
        try:
            stat = path.stat()
        except OSError:
            # Reading it says what the matter is.
            return ""
        said = f"{_KEEPS} {stat.st_size} {stat.st_mtime_ns} {self._zone.key} {self._given.model_dump_json()}"
        return hashlib.sha256(said.encode()).hexdigest()

    def _writing(self) -> AbstractContextManager[Connection]:
        return engines.starting(self._write, self._url, self._given)


def _table(settings: TicketSettings) -> Table:
    names = column_names(settings)

    def words_column(name: str) -> Column[str]:
        return Column(name, Text, nullable=False, server_default="")

    return Table(
        "tickets",
        MetaData(),
        Column("number", String(200), primary_key=True),
        *(words_column(name) for name in FIELDS if name not in TIMES and name != "number"),
        Column("opened_at", DateTime),
        Column("updated_at", DateTime),
        Column("imported_at", DateTime),
        words_column("file"),
        words_column("folded"),
        *(words_column(column) for (section, _), column in names.items() if section == "facets"),
        *(Column(column, String(40)) for (section, _), column in names.items() if section != "facets"),
        Column("personal", JSON),
        Column("unread", JSON),
    )


def _prepare(connection: Connection, table: Table) -> None:
    """Create the table, or add the columns that it lacks."""
    table.create(connection, checkfirst=True)
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in there:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")


def _is_guess(settings: TicketSettings, given: TicketSettings) -> bool:
    """Tell whether the settings hold more than what was given and fields called by their own names."""
    same = {name: column for name, column in settings.columns.items() if given.columns or name != column}
    return settings.model_copy(update={"columns": same}) != given


def _meta(connection: Connection) -> dict[str, str]:
    return {row.key: row.value for row in connection.execute(select(_META))}


def _stored(meta: Mapping[str, str]) -> Stored:
    kept: dict[str, Any] = json.loads(meta.get("mapping", "{}"))
    for name in ("personal", "prefixes"):
        kept[name] = tuple(kept.get(name, ()))
    return Stored(**kept)


def _keep(connection: Connection, stored: Stored, now: datetime, marks: Mapping[str, Any]) -> None:
    meta = _meta(connection)
    values = {
        "version": str(int(meta.get("version", "0")) + 1),
        "mapping": json.dumps(asdict(stored), ensure_ascii=False),
        "imported_at": now.isoformat(),
        "files": json.dumps({**json.loads(meta.get("files", "{}")), **marks}),
    }
    for key, value in values.items():
        if key in meta:
            connection.execute(update(_META).where(_META.c.key == key).values(value=value))
        else:
            connection.execute(insert(_META).values(key=key, value=value))


def _existing(connection: Connection, table: Table, numbers: Sequence[str]) -> dict[str, RowMapping]:
    return {
        row["number"]: row
        for batch in batches(numbers)
        for row in connection.execute(select(table).where(table.c.number.in_(batch))).mappings()
    }


def _gone(connection: Connection, table: Table, path: Path, there: Collection[str]) -> list[str]:
    """Return the numbers of the tickets that this file was the last to bring, and that it does not have any more."""
    brought = select(table.c.number).where(table.c.file == str(path.absolute())).order_by(table.c.number)
    return [number for number in connection.execute(brought).scalars() if number not in there]


def _refuse_exchanged(
    path: Path, found: Sequence[Record], existing: Mapping[str, RowMapping], shape: Shape, zone: ZoneInfo
) -> None:
    """Refuse a file whose dates would be read with day and month the other way round than those that are known."""
    said = [
        why
        for record in found
        if (before := existing.get(record.number)) and (why := exchanged(record, before, shape.names, zone))
    ]
    if said:
        raise TicketImportError(
            f"{path} would move known dates: {said[0]}{f', and {len(said) - 1} more' if said[1:] else ''}; nothing was "
            "imported. Say which is right, [tickets] day_first = true or false, or write dates like 2026-09-02"
        )


def _upsert(
    connection: Connection,
    table: Table,
    shape: Shape,
    found: Sequence[Record],
    existing: Mapping[str, RowMapping],
    file: str,
    now: datetime,
) -> tuple[int, int]:
    """Write what is new or differs; return how many tickets were added and changed."""
    rows = [columns_of(record, shape.names) for record in found]
    others = [number for number, before in existing.items() if before["file"] != file]
    for batch in batches(others):
        connection.execute(update(table).where(table.c.number.in_(batch)).values(file=file))
    _share_spellings(connection, table, shape, rows, existing)
    added, changed = [], []
    for row in rows:
        before = existing.get(row["number"])
        for kept in _KEPT:
            values = {**((before[kept] if before else None) or {}), **row[kept]}
            row[kept] = {name: value for name, value in values.items() if value}
        if before is None:
            texts = dict.fromkeys(("subject", "body", "resolution"), "") | row
            added.append({**row, "file": file, "folded": _folded(texts), "imported_at": now})
        elif any((before[name] or {}) != row[name] for name in _KEPT) or any(
            before[name] != value for name, value in row.items() if name not in _KEPT
        ):
            changed.append(
                {**row, "of": row["number"], "folded": _folded({**before, **row}), "imported_at": now}
            )
    if added:
        connection.execute(insert(table), added)
    if changed:
        connection.execute(update(table).where(table.c.number == bindparam("of")), changed)
    return len(added), len(changed)


def _folded(row: Mapping[str, Any]) -> str:
    """Return what a search for words looks through."""
    return fold("\n".join((row["subject"], row["body"], row["resolution"])))


def _share_spellings(
    connection: Connection,
    table: Table,
    shape: Shape,
    rows: Sequence[dict[str, Any]],
    existing: Mapping[str, RowMapping],
) -> None:
    """Give values that differ only in case the commonest spelling, in the new rows and in the table."""
    for name in ("status", "priority", *shape.of("facets").values()):
        column = table.c[name]
        grouped = select(column, func.count()).group_by(column)
        stored: dict[str, int] = {row[0]: row[1] for row in connection.execute(grouped)}
        used = Counter(stored)
        if rows and name in rows[0]:
            used.subtract(Counter(row[name] for row in existing.values()))
            used.update(row[name] for row in rows)
        groups: dict[str, list[str]] = {}
        for value in used:
            groups.setdefault(value.casefold(), []).append(value)
        best: dict[str, str] = {}
        for variants in groups.values():
            chosen = max(
                variants, key=lambda v: (used[v], v in stored, v != v.upper() and v[:1].isupper(), v)
            )
            best |= dict.fromkeys(variants, chosen)
        for row in rows:
            if name in row:
                row[name] = best[row[name]]
        for value in stored:
            if best[value] != value:
                connection.execute(update(table).where(column == value).values({name: best[value]}))


def batches(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(numbers), _BATCH):
        yield numbers[start : start + _BATCH]
