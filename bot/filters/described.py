"""A ticket list's filters, as its head says them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from ingest.dates import format_date


def described(arguments: Mapping[str, Any]) -> str:
    """Write the arguments of find_tickets as a table's head says them: `status open, without first response`."""
    said: list[str] = []
    for name, value in arguments.items():
        bare, no = name.removeprefix("not_"), "not " if name.startswith("not_") else ""
        if not value or name in ("limit", "order") or name.endswith(("_from", "_to")):
            continue
        if bare == "facets":
            said += [f"{facet.replace('_', ' ')} {no}{_or(values)}" for facet, values in value.items()]
        elif bare in ("has", "lacks"):
            days = _between(arguments, "has") if bare == "has" else ""
            said.append(f"{'with' if bare == 'has' else 'without'} {_or(value, ' and ')} {days}".rstrip())
        elif bare == "count_by":
            said.append(f"counted by {value.replace('_', ' ')}")
        elif name in ("at_least", "at_most"):
            exactly = arguments.get("at_least") == arguments.get("at_most")
            if not exactly or name == "at_least":
                said.append(f"{'exactly' if exactly else name.replace('_', ' ')} {value} each")
        else:
            said.append(f"{bare} {no}{_or(value)}")
    for name in ("opened", "updated"):
        said += [f"{name} {days}"] if (days := _between(arguments, name)) else []
    return ", ".join(said)


def _between(arguments: Mapping[str, Any], name: str) -> str:
    """Write the days of a filter: `from 1 August 2026 to 31 August 2026`."""
    ends = {end: arguments.get(f"{name}_{end}") for end in ("from", "to")}
    return " ".join(f"{end} {format_date(date.fromisoformat(day))}" for end, day in ends.items() if day)


def _or(value: Any, joint: str = " or ") -> str:
    return value if isinstance(value, str) else joint.join(map(str, value))
