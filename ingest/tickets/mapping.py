"""What a file's columns mean: the settings where they say, else what earlier files taught, else a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ingest.config import TicketSettings
from ingest.errors import TicketImportError
from ingest.tickets.guess import FIELDS, guess
from ingest.tickets.numbers import Numbers
from ingest.tickets.personal import by_name
from ingest.tickets.table import Table

SECTIONS = ("facets", "events", "actions")
"""The sections that grow with every imported file; `columns` are a file's own."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What earlier imports taught, as the database keeps it."""

    columns: Mapping[str, str] = field(default_factory=dict)
    facets: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)
    personal: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    number_pattern: str = ""


def effective(given: TicketSettings, stored: Stored) -> TicketSettings:
    """Fill the empty sections of the settings with what earlier imports taught."""
    taken = _columns(given)
    update: dict[str, object] = {}
    if not given.columns:
        update["columns"] = dict(stored.columns)
    for section in SECTIONS:
        if not getattr(given, section):
            learned: Mapping[str, str] = getattr(stored, section)
            update[section] = {
                name: column
                for name, column in learned.items()
                if column not in taken and not (section == "facets" and by_name(column))
            }
    if not given.personal:
        # What an earlier version took for a facet is kept out before its file is read again.
        known = dict.fromkeys((*stored.personal, *filter(by_name, stored.facets.values())))
        update["personal"] = tuple(column for column in known if column not in taken)
    if stored.number_pattern and not _says_numbers(given):
        update |= {"prefixes": stored.prefixes, "number_pattern": stored.number_pattern}
    return given.model_copy(update=update)


def mapping_of(path: Path, table: Table, given: TicketSettings, stored: Stored) -> TicketSettings:
    """Say what the columns of this file mean.

    Raises:
        TicketImportError: a configured column is not in the file, or no column holds ticket numbers.
    """
    header = table.header
    _all_there(path, header, given)
    if given.columns:
        taken = _columns(given)
        same = {
            name: name
            for name in FIELDS
            if name in header and name not in taken and name not in given.columns
        }
        given = given.model_copy(update={"columns": {**same, **given.columns}})
    fresh = guess(header, [row.cells for row in table.rows], given)
    if "number" not in fresh.columns:
        raise TicketImportError(
            f"{path}: no column looks like a ticket number; name it, [tickets.columns] number = …; "
            f"the columns are {', '.join(header)}"
        )
    update: dict[str, object] = {}
    fixed = set(fresh.columns.values())
    known = {
        section: {
            name: column
            for name, column in getattr(stored, section).items()
            if column in header and column not in fixed and column not in fresh.personal
        }
        for section in SECTIONS
        if not getattr(given, section)
    }
    claimed = {column for section in known.values() for column in section.values()}
    for section, learned in known.items():
        guessed = {name: column for name, column in getattr(fresh, section).items() if column not in claimed}
        update[section] = {**guessed, **learned}
    if not given.personal:
        update["personal"] = tuple(column for column in fresh.personal if column not in claimed)
    if not _says_numbers(given) and stored.number_pattern:
        update |= _number_format(table.column(fresh.columns["number"]), fresh, stored)
    return fresh.model_copy(update=update)


def learned(mapping: TicketSettings, stored: Stored) -> Stored:
    """Add a file's mapping to what earlier ones taught."""
    claimed = _columns(mapping) - set(mapping.personal)
    personal = dict.fromkeys(
        column for column in (*stored.personal, *mapping.personal) if column not in claimed
    )
    facets = {name: column for name, column in stored.facets.items() if column not in personal}
    return Stored(
        dict(mapping.columns),
        {**facets, **mapping.facets},
        {**stored.events, **mapping.events},
        {**stored.actions, **mapping.actions},
        tuple(personal),
        mapping.prefixes,
        mapping.number_pattern,
    )


def lacking(given: TicketSettings, stored: Stored) -> tuple[str, ...]:
    """Name each column of the settings that no imported file had."""
    sections = (stored.columns, stored.facets, stored.events, stored.actions)
    had = {column for section in sections for column in section.values()} | set(stored.personal)
    return tuple(
        f"column {column!r}, which {place}" for column, place in columns_named(given) if column not in had
    )


def _columns(settings: TicketSettings) -> set[str]:
    sections = (settings.columns, settings.facets, settings.events, settings.actions)
    return {column for section in sections for column in section.values()} | set(settings.personal)


def _says_numbers(settings: TicketSettings) -> bool:
    return bool(settings.model_fields_set & {"number_pattern", "prefixes"})


def columns_named(given: TicketSettings) -> list[tuple[str, str]]:
    """Return each column that the settings name, with the place that names it."""
    named = [
        (column, f"[tickets.{section}] names for {name!r}")
        for section in ("columns", *SECTIONS)
        for name, column in getattr(given, section).items()
    ]
    return [*named, *((column, "[tickets] personal names") for column in given.personal)]


def _all_there(path: Path, header: tuple[str, ...], given: TicketSettings) -> None:
    for column, place in columns_named(given):
        if column not in header:
            raise TicketImportError(
                f"{path} has no column {column!r}, which {place}; the columns are {', '.join(header)}"
            )


def _number_format(cells: tuple[str, ...], fresh: TicketSettings, stored: Stored) -> dict[str, object]:
    """Keep the numbers' known format where it fits the file, else let both be numbers."""
    fits = Numbers(stored.prefixes, stored.number_pattern).canonical
    if sum(fits(cell) is not None for cell in cells) >= 0.8 * len(cells):
        return {"prefixes": stored.prefixes, "number_pattern": stored.number_pattern}
    patterns = dict.fromkeys((stored.number_pattern, fresh.number_pattern))
    return {
        "prefixes": tuple(dict.fromkeys((*stored.prefixes, *fresh.prefixes))),
        "number_pattern": "|".join(f"(?:{pattern})" for pattern in patterns),
    }
