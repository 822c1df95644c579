"""What every index stores: a chunk as JSON and back, exactly; its codes; and the checks before it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ingest.atoms import codes
from ingest.errors import DocumentRefused, IndexingError
from ingest.index import Vectors
from ingest.types import Chunk, Document, Rule

_DATES = frozenset({"effective_from", "superseded_on"})


def to_json(chunk: Chunk) -> str:
    """Return the whole chunk with its rules as one JSON object; equal chunks give equal text."""
    return json.dumps(_plain(chunk), ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=1024)
def from_json(text: str) -> Chunk:
    """Return the chunk that `to_json` wrote; the searches of a turn find the same ones again and again."""
    data = _values(json.loads(text))
    data["readers"] = frozenset(data["readers"])
    data["facets"] = MappingProxyType(data["facets"])
    data["rules"] = tuple(Rule(**_values(rule)) for rule in data["rules"])
    return Chunk(**data)


def checked(document: Document, chunks: Sequence[Chunk], vectors: Vectors) -> Vectors:
    """Return the vectors as float32 after checking that everything belongs together."""
    rows = np.ascontiguousarray(vectors, np.float32)
    if len(rows) != len(chunks) or (chunks and (rows.ndim != 2 or not rows.shape[1])):
        raise IndexingError(
            f"document {document.uri!r} has {len(chunks)} chunks but vectors of shape {np.shape(vectors)!r}; "
            "embed each chunk once"
        )
    if not (np.isfinite(rows).all() and rows.any(axis=-1).all()):
        raise DocumentRefused(
            f"document {document.uri!r} has a vector that is zero or not finite; check the embedding model"
        )
    ids = [chunk.id for chunk in chunks if chunk.id.startswith(document.uri) and chunk.uri == document.uri]
    if len(set(ids)) != len(chunks):
        raise IndexingError(
            f"the chunks of document {document.uri!r} are not its own or share an id; name each `uri#position`"
        )
    return rows


def graded_codes(text: str) -> dict[str, bool]:
    """Return the codes of a text, and whether each stands on its own or is a part of a longer one."""
    found = codes(text)
    parts: set[str] = set()
    for code in found:
        parts.update({*re.split("[-_@]", code), *code.split("-"), code[1:]} - {code})
    return {code: code not in parts for code in found}


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
