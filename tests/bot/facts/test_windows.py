"""Windows: periods of a text over a case's own dates, bound to declared names alone."""

from collections.abc import Mapping
from datetime import date, datetime
from types import MappingProxyType
from zoneinfo import ZoneInfo

import pytest

from bot.facts.case import Case
from bot.facts.scope import Scope, columns, scope
from bot.facts.windows import Window, windows
from ingest.dates import Calendar
from ingest.types import Chunk
from ingest.units import units
from ingest.words import stems

ZONE = ZoneInfo("Europe/Madrid")
CASE = Case(
    label="ticket A-1",
    values={"size": "Large"},
    events={
        "pick-up": date(2026, 5, 4),
        "hire end": date(2026, 5, 10),
        "opening": datetime(2026, 5, 12, 10, tzinfo=ZONE),
    },
    actions={"damage report": date(2026, 5, 15), "first reply": datetime(2026, 5, 12, 13, tzinfo=ZONE)},
    evidence="ticket:A-1",
)


def found(
    text: str, asked: str = "", aliases: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[Window]:
    chunk = Chunk("docs:a.md#0", "docs:a.md", 0, "Hire", (), f"Hire\n{text}")
    return [
        window
        for unit in units(text)
        for window in windows(unit, chunk, Scope(), CASE, stems(asked), aliases, Calendar(ZONE))
    ]


@pytest.mark.parametrize(
    ("text", "event", "end"),
    [
        ("Damage is reported within 7 days of the pick-up.", "pick-up", date(2026, 5, 11)),
        ("A damage report is taken up to 3 days after the hire ended.", "hire end", date(2026, 5, 13)),
        ("Changes are possible until 2 days before the pick-up.", "pick-up", date(2026, 5, 2)),
    ],
)
def test_a_period_runs_from_the_declared_event_that_its_sentence_names(
    text: str, event: str, end: date
) -> None:
    (window,) = found(text)
    assert (window.event, window.end.at) == (event, end)


def test_a_header_says_what_the_periods_of_its_column_run_from() -> None:
    (window,) = found(
        "| Size | Days from pick-up to report damage |\n|---|---|\n| Large | 9 days |", asked="damage report"
    )
    assert (window.event, window.end.at) == ("pick-up", date(2026, 5, 13))


@pytest.mark.parametrize(
    "text",
    [
        "Deposits come back within 5 days of the invoice.",
        "A hire of 4 days is the longest.",
        "Damage is reported within 7 days (hires before 2025: 14 days).",
        "We answer within an hour when the shop is open.",
    ],
)
def test_what_no_declared_name_starts_is_no_window(text: str) -> None:
    assert not found(text)


def test_an_alias_of_the_settings_names_an_event() -> None:
    (window,) = found("Damage is reported within 7 days of collection.", aliases={"pick-up": ("collection",)})
    assert window.event == "pick-up"


def test_the_act_that_a_text_names_is_in_time_or_past() -> None:
    (late,) = found("A damage report must reach us within 7 days of the pick-up.")
    assert (late.action, late.sure, late.outcome) == ("damage report", True, "past")
    (kept,) = found("A damage report must reach us within 30 days of the pick-up.")
    assert kept.outcome == "within"


def test_hours_run_from_the_opening_where_the_text_names_the_act() -> None:
    (target,) = found("| Size | First reply |\n|---|---|\n| Large | 4 hours |")
    assert (target.event, target.is_target, target.outcome) == ("opening", True, "within")


VOCABULARY = {"size": ("Small", "Large"), "insured": ("yes", "no")}


@pytest.mark.parametrize(
    ("text", "heading", "own", "other"),
    [
        ("Large tents sleep six.", "", {"size"}, set()),
        ("Small tents sleep two.", "", set(), {"size"}),
        ("They sleep two.", "Small", set(), {"size"}),
        ("Large tents are heavy.", "Small", {"size"}, set()),
        ("Small and Large tents need pegs.", "", {"size"}, set()),
        ("Insured hires pay no deposit.", "", set(), {"insured"}),
    ],
)
def test_the_nearest_place_that_names_a_value_says_for_whom_a_unit_holds(
    text: str, heading: str, own: set[str], other: set[str]
) -> None:
    chunk = Chunk("docs:a.md#0", "docs:a.md", 0, "Hire", (heading,) if heading else (), f"Hire\n{text}")
    standing = scope(units(text)[0], chunk, {"size": "Large", "insured": "no"}, VOCABULARY)
    assert (set(standing.own), set(standing.other)) == (own, other)


def test_of_a_row_the_columns_of_other_values_are_left_out() -> None:
    (row,) = units("| What | Small | Large |\n|---|---|---|\n| Deposit | €20 | €40 |")
    assert columns(row, {"size": "Large"}, VOCABULARY).text == "What: Deposit; Large: €40"
