"""What Velstrand's terms say, written by hand: an oracle that shares no code with `bot` or `ingest`."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

Matter = Literal["warranty", "return"]
Case = dict[str, Any]
"""The fields of a ticket: `ingest.types.Ticket(**case)` takes it as it is, `as_csv([case])` writes it out."""

HERE = Path(__file__).parent
ZONE = ZoneInfo("Europe/Copenhagen")
NOW = datetime(2026, 11, 9, 9, 30, tzinfo=ZONE)
"""The desk's time for every question about this company; later than every date in tickets and grid."""

EDITION = date(2023, 3, 1)
"""First day of the Cargo edition that replaced the one of 2019, by day of delivery."""

WARRANTY_MONTHS: Mapping[tuple[str, str], int | None] = {
    ("Cargo", "EU"): 36,
    ("Cargo", "UK"): 24,
    ("Cargo", "US"): 18,
    ("City", "EU"): 24,
    ("City", "UK"): 18,
    ("City", "US"): 15,
    ("Junior", "EU"): 48,
    ("Junior", "UK"): 36,
    ("Junior", "US"): None,
}
CARGO_2019_MONTHS: Mapping[str, int] = {"EU": 24, "UK": 18, "US": 12}
RETURN_BUSINESS_DAYS: Mapping[tuple[str, str], int | None] = {
    ("Cargo", "EU"): 20,
    ("Cargo", "UK"): 15,
    ("Cargo", "US"): None,
    ("City", "EU"): 14,
    ("City", "UK"): 12,
    ("City", "US"): 8,
    ("Junior", "EU"): 25,
    ("Junior", "UK"): None,
    ("Junior", "US"): 6,
}

ACTIONS: Mapping[Matter, str] = {"warranty": "warranty claim", "return": "return request"}
MATTERS: tuple[Matter, ...] = ("warranty", "return")

COLUMNS = (
    "case_ref",
    "buyer",
    "line",
    "market",
    "state",
    "urgency",
    "handler",
    "headline",
    "details",
    "outcome",
    "created",
    "modified",
    "delivered_on",
    "claimed_on",
    "return_asked_on",
    "phone",
)


def expected(
    model_line: str, region: str, matter: Matter, delivered: date, acted: date
) -> tuple[bool, date | None]:
    """Return whether the terms give the right on that day, and its last day (None: no such right)."""
    if matter == "warranty":
        months = WARRANTY_MONTHS[model_line, region]
        if model_line == "Cargo" and delivered < EDITION:
            months = CARGO_2019_MONTHS[region]
        last = None if months is None else _months_later(delivered, months)
    else:
        days = RETURN_BUSINESS_DAYS[model_line, region]
        last = None if days is None else _business_days_later(delivered, days)
    return (last is not None and acted <= last), last


def expected_of(case: Case, matter: Matter) -> tuple[bool, date | None]:
    """Return `expected` for a case of the grid."""
    facets = case["facets"]
    acted = case["actions"][ACTIONS[matter]]
    return expected(facets["model_line"], facets["region"], matter, case["events"]["delivery"], acted)


def matter_of(case: Case) -> Matter:
    """Return what a case of the grid is about; each has one action."""
    (action,) = case["actions"]
    return next(matter for matter in MATTERS if ACTIONS[matter] == action)


@cache
def holidays() -> frozenset[date]:
    """Return the desk's holidays as `twohop.toml` lists them."""
    settings = tomllib.loads((HERE / "twohop.toml").read_text(encoding="utf-8"))
    return frozenset(settings["calendar"]["holidays"])


def _months_later(day: date, months: int) -> date:
    year, month = day.year, day.month
    for _ in range(months):
        month += 1
        if month == 13:
            year, month = year + 1, 1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    length = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    return date(year, month, min(day.day, length))


def _business_days_later(day: date, count: int) -> date:
    while count:
        day += timedelta(days=1)
        if day.isoweekday() <= 5 and day not in holidays():
            count -= 1
    return day


BUYERS = ("Hanne Kjærgaard", "Cargo Junction Ltd")
"""The second is named like a model line, whatever it bought."""
SERIES = ("BK25", "QT31")

DELIVERED: Mapping[Matter, Mapping[tuple[str, str], tuple[date, date]]] = {
    # For the two id series: a plain day, and one where the end of a month or a leap day matters.
    "warranty": {
        ("Cargo", "EU"): (date(2023, 6, 14), date(2023, 3, 31)),
        ("Cargo", "UK"): (date(2024, 5, 7), date(2024, 2, 29)),
        ("Cargo", "US"): (date(2024, 11, 12), date(2024, 8, 31)),
        ("City", "EU"): (date(2024, 9, 3), date(2024, 2, 29)),
        ("City", "UK"): (date(2025, 3, 5), date(2023, 8, 31)),
        ("City", "US"): (date(2025, 4, 17), date(2023, 11, 30)),
        ("Junior", "EU"): (date(2022, 10, 6), date(2021, 12, 31)),
        ("Junior", "UK"): (date(2023, 9, 12), date(2021, 10, 1)),
        ("Junior", "US"): (date(2026, 6, 2), date(2026, 8, 31)),
    },
    # Windows across Easter, Whitsun, Christmas and New Year, and deliveries on a Saturday and on a holiday.
    "return": {
        ("Cargo", "EU"): (date(2026, 8, 11), date(2025, 12, 15)),
        ("Cargo", "UK"): (date(2026, 9, 1), date(2025, 4, 10)),
        ("Cargo", "US"): (date(2026, 9, 14), date(2025, 12, 19)),
        ("City", "EU"): (date(2026, 9, 8), date(2026, 3, 28)),
        ("City", "UK"): (date(2026, 10, 2), date(2024, 12, 24)),
        ("City", "US"): (date(2026, 7, 6), date(2025, 5, 28)),
        ("Junior", "EU"): (date(2026, 8, 3), date(2026, 4, 1)),
        ("Junior", "UK"): (date(2026, 10, 5), date(2026, 5, 13)),
        ("Junior", "US"): (date(2026, 10, 12), date(2026, 5, 21)),
    },
}

EDITION_EVE = (date(2023, 2, 28), date(2022, 8, 31))
"""Deliveries under the Cargo edition of 2019, for the two id series; one is the last day of that edition."""


def grid() -> Iterator[Case]:
    """Yield cases whose rule needs the ticket first.

    Line x region x matter x the day before, on and after the last day x two id series x two buyers.
    Every id is used once, so the grid can be imported whole or case by case.
    """
    number = 1000
    for matter, days in _blocks():
        for (line, region), delivered in days.items():
            for offset in (-1, 0, 1):
                for series, day in zip(SERIES, delivered, strict=True):
                    for buyer in BUYERS:
                        number += 1
                        last = expected(line, region, matter, day, day)[1]
                        acted = (last or day + timedelta(days=4)) + timedelta(days=offset)
                        yield _case(f"{series}-{number}", buyer, line, region, matter, day, acted)


def _blocks() -> Iterator[tuple[Matter, Mapping[tuple[str, str], tuple[date, date]]]]:
    for matter in MATTERS:
        yield matter, DELIVERED[matter]
    yield "warranty", {("Cargo", region): EDITION_EVE for region in CARGO_2019_MONTHS}


def _case(
    number: str, buyer: str, line: str, region: str, matter: Matter, delivered: date, acted: date
) -> Case:
    # The ticket is created after the action, so that comparing the wrong time shows on the last day.
    opened = datetime.combine(acted + timedelta(days=2), time(10, 15), ZONE)
    words = {
        "warranty": ("Motor cuts out under load", "The buyer filed a warranty claim and sent two photos."),
        "return": ("Not the right size after all", "The buyer would like to return it and asks what to do."),
    }[matter]
    return {
        "number": number,
        "customer": buyer,
        "subject": words[0],
        "body": words[1],
        "status": "open",
        "priority": "normal",
        "assignee": "Freja",
        "opened_at": opened,
        "updated_at": opened + timedelta(hours=3),
        "facets": {"model_line": line, "region": region},
        "events": {"delivery": delivered},
        "actions": {ACTIONS[matter]: acted},
        "personal": {"phone": "+45 70 99 03 17"},
    }


def as_csv(cases: Iterable[Case]) -> str:
    """Write cases as the company's own export: its columns, `;`, CRLF, byte order mark, days first."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for case in cases:
        actions = case["actions"]
        writer.writerow(
            [
                f"RMA {case['number']}",
                case["customer"],
                case["facets"]["model_line"],
                case["facets"]["region"],
                case["status"],
                case["priority"],
                case["assignee"],
                case["subject"],
                case["body"],
                "",
                f"{case['opened_at']:%d/%m/%Y %H:%M}",
                f"{case['updated_at']:%d/%m/%Y %H:%M}",
                f"{case['events']['delivery']:%d/%m/%Y}",
                *(f"{actions[name]:%d/%m/%Y}" if name in actions else "" for name in ACTIONS.values()),
                case["personal"]["phone"],
            ]
        )
    return "\ufeff" + out.getvalue()
