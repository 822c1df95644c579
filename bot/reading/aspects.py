"""Aspects: the things that a question asks, apart."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from ingest.atoms import AtomKind
from ingest.words import mentions, stems

_ASKS = (
    "what which who whom whose when where why how is are was were do does did can could may must should will would has have "
    "qué cuál quién cuándo dónde cómo cuánto cuánta hay was wer wann wie wo quel qui quand comment"
).split()
_APART = re.compile(
    rf"(?<=[?!;])\s+|,?\s+(?:and|but|also|y|und|et)\s+(?:also\s+)?(?=(?:{'|'.join(_ASKS)})\b)|,\s+(?=(?:{'|'.join(_ASKS[:12])})\b)",
    re.IGNORECASE,
)
_LEAST = 2
"""Content words that a part must have to be asked apart."""


def parts(text: str) -> tuple[str, ...]:
    """Split a question into the things it asks: "was it late, and what does it cost?" are two.

    A part that says too little alone stays with the one before it.
    """
    found: list[str] = []
    for part in _APART.split(text.strip()):
        if found and min(len(stems(part)), len(stems(found[-1]))) < _LEAST:
            found[-1] = f"{found[-1]} {part}"
        elif part.strip():
            found.append(part.strip())
    return tuple(found) or (text,)


@cache
def _heads() -> Mapping[AtomKind, tuple[str, ...]]:
    text = (resources.files("bot") / "data" / "expects.toml").read_text(encoding="utf-8")
    return {kind: tuple(heads) for kind, heads in tomllib.loads(text).items()}  # type: ignore[misc]


def expects(text: str) -> frozenset[AtomKind]:
    """Return the kinds of value that answer a question: money for "how much", a duration for "how long"."""
    return frozenset(kind for kind, heads in _heads().items() if mentions(text, heads))
