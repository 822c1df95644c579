"""A Chunk as JSON and back, exactly: what every index stores and gives back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

from ingest.types import Chunk, Rule

_DATES = frozenset({"effective_from", "superseded_on"})


def to_json(chunk: Chunk) -> str:
    """Return the whole chunk with its rules as one JSON object; equal chunks give equal text."""
    return json.dumps(_plain(chunk), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Chunk:
    """Return the chunk that `to_json` wrote."""
    data = _values(json.loads(text))
    data["readers"] = frozenset(data["readers"])
    data["facets"] = MappingProxyType(data["facets"])
    data["rules"] = tuple(Rule(**_values(rule)) for rule in data["rules"])
    return Chunk(**data)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists back into tuples and the fields that hold a date back into dates."""
    return {
        name: tuple(value)
        if isinstance(value, list)
        else date.fromisoformat(value)
        if name in _DATES and value
        else value
        for name, value in data.items()
    }
