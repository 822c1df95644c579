"""The shape of the tickets: the columns that questions are put to, whichever table they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, RowMapping

from ingest.config import TicketSettings
from ingest.errors import ConfigError, TwohopError
from ingest.tickets.guess import FIELDS, TIMES
from ingest.tickets.mapping import SECTIONS
from ingest.tickets.numbers import Numbers
from ingest.words import words

COUNTED = ("customer", "status", "priority", "assignee")
"""The fixed fields that can be counted by; every facet can, too."""
_NOT_SHOWN = ("file", "folded", "personal", "key", "unread")


class Shape:
    """One version of the settings with the rows and the spellings that follow from it.

    The rows have a column for each fixed field, `imported_at`, `folded` (what a search for words looks through) and one
    for each facet (text), event and action (text: a day, or a moment in UTC), named by `column_names`. Times are in UTC
    without a zone; what is not there is empty text, or NULL for a time.
    """

    def __init__(
        self,
        version: str,
        settings: TicketSettings,
        rows: FromClause,
        key: str = "number",
        spellings: Callable[[str], Sequence[Any]] = lambda number: [number],
    ) -> None:
        self.version = version
        self.settings = settings
        self.rows = rows
        self.numbers = Numbers(settings.prefixes, settings.number_pattern)
        self.names = column_names(settings)
        self.key = rows.c[key]
        """What a row is found by; `spellings` are the values it may have for a canonical number."""
        self.spellings = spellings
        self.public = tuple(c for c in rows.c if c.name.partition("_")[0] not in _NOT_SHOWN)

    def of(self, section: str) -> dict[str, str]:
        """Return the columns of a section by the names in the settings."""
        return {name: column for (named, name), column in self.names.items() if named == section}

    def facet(self, name: str) -> str:
        """Return a facet's column."""
        facets = self.of("facets")
        wanted = words(name.replace("_", " "))
        for known, column in facets.items():
            if known == name or words(known.replace("_", " ")) == wanted:
                return column
        raise TwohopError(
            f"there is no facet {name!r}; the facets are {', '.join(facets) or 'not known yet'}"
        )

    def moment(self, name: str) -> ColumnElement[Any] | None:
        """Return the column of a declared action or event, None when there is none of that name."""
        wanted = words(name.replace("_", " "))
        for (section, known), column in self.names.items():
            if section != "facets" and words(known.replace("_", " ")) == wanted:
                return self.rows.c[column]
        return self.rows.c.opened_at if wanted == ("opening",) else None

    def field(self, name: str) -> ColumnElement[Any]:
        """Return the column of a fixed field or facet that a ticket may lack."""
        if name in COUNTED:
            return self.rows.c[name]
        try:
            return self.rows.c[self.facet(name)]
        except TwohopError:
            moments = [known for section, known in self.names if section != "facets"]
            raise TwohopError(
                f"there is no action, event or field {name!r}; there are "
                f"{', '.join((*moments, *COUNTED, *self.of('facets')))}"
            ) from None

    def countable(self, name: str) -> str:
        """Return the column to count by."""
        if name in COUNTED:
            return name
        if name in self.of("facets"):
            return self.names["facets", name]
        raise TwohopError(f"cannot count by {name!r}; count by {', '.join((*COUNTED, *self.of('facets')))}")

    def personal(self, row: RowMapping) -> Mapping[str, str]:
        """Return a row's personal values by their columns; none where the row was read without them."""
        if "personal" in row:
            return row["personal"] or {}
        found = {name: row.get(personal_column(at)) for at, name in enumerate(self.settings.personal)}
        return {name: value for name, value in found.items() if value}

    def unread(self, row: RowMapping) -> Mapping[str, str]:
        """Return why dates of a row cannot be read, by their names; none where the row was read without the reasons."""
        if "unread" in row:
            return row["unread"] or {}
        found = {name: row.get(unread_column(at)) for at, name in enumerate(dated(self.settings))}
        return {name: why for name, why in found.items() if why}


def dated(settings: TicketSettings) -> dict[str, str]:
    """Return the columns that hold dates, by the names of events (`opening` too), actions, and `update`."""
    names = {"opened_at": "opening", "updated_at": "update"}
    times = {names[field]: settings.columns[field] for field in sorted(TIMES) if field in settings.columns}
    return {**times, **settings.events, **settings.actions}


STRANGE = "unread_text"
"""The column that says which texts of a row are not read as they are."""


def unread_column(at: int) -> str:
    """Name the column that says why the date of this place in `dated` cannot be read."""
    return f"unread_{at}"


def personal_column(at: int) -> str:
    """Name the column that holds the personal column of this place in the settings."""
    return f"personal_{at}"


def column_names(settings: TicketSettings) -> dict[tuple[str, str], str]:
    """Return the rows' column of each facet, event and action, by section and name.

    Raises:
        ConfigError: the settings contradict themselves.
    """
    _refuse_contradictions(settings)
    return {
        (section, name): column
        for section in SECTIONS
        for name, column in _section_names(section, getattr(settings, section)).items()
    }


def _refuse_contradictions(settings: TicketSettings) -> None:
    for name in settings.columns:
        if name not in FIELDS:
            raise ConfigError(f"[tickets.columns] has no field {name!r}; the fields are {', '.join(FIELDS)}")
    for name in settings.facets:
        if name in FIELDS:
            raise ConfigError(f"[tickets.facets] {name!r} is a fixed field; map it under [tickets.columns]")
    for section in ("columns", *SECTIONS):
        for name, column in getattr(settings, section).items():
            if column in settings.personal:
                raise ConfigError(
                    f"column {column!r} is personal and cannot be {name!r} of [tickets.{section}] too"
                )


def _section_names(section: str, declared: Mapping[str, str]) -> dict[str, str]:
    """Name the columns of a section so that every database takes them."""
    names: dict[str, str] = {}
    for name in declared:
        column = f"{section[:-1]}_{'_'.join(words(name.replace('_', ' ')))}"[:60]
        if column in names.values():
            raise ConfigError(
                f"[tickets.{section}] {name!r} is written like another name there; rename one of them"
            )
        names[name] = column
    return names
