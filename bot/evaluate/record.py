"""What an evaluation brings, one record a question, query or sentence; every figure is computed from these alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from bot.evaluate.judge import Outcome
from bot.types import Mode, Shape
from bot.types import Path as RoutePath
from ingest.errors import ConfigError

VERSION = 1
"""Of the file's format."""

Taken = Literal["none", "direct", "escalated", "agent"]
"""`escalated` began direct: one search did not answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One labelled question, asked in one mode."""

    set: str
    mode: Mode
    id: str
    type: str
    question: str
    outcome: Outcome
    why: str
    shape: Shape | Literal["crash"]
    expected_route: RoutePath
    route: Taken
    decision: str
    """What the label decides; empty where it decides nothing."""
    ms: float
    relevant: tuple[str, ...]
    """Sources that a right answer needs; empty where none is there to be found."""
    verdict: str = ""
    """What code decided; empty where it decided nothing."""
    answer: str = ""
    words: int = 0
    confidence: float = 0.0
    """See `confidence.py`."""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of each stage of the pipeline, in order."""
    searches: int = 0
    """Searches and look-ups by key."""
    calls: int = 0
    """Replies of the model, or of what stands in for it."""
    tokens: int = 0
    ranking: tuple[str, ...] = ()
    """Sources that the searches returned, the first search's first, each once, best first; a row where it was fetched."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Retrieval metrics by name; empty where nothing is relevant."""

    @property
    def answered(self) -> bool:
        """Tell whether it says something about the matter, right or wrong."""
        return self.shape in ("answered", "partial")


@dataclass(frozen=True, slots=True)
class Searched:
    """One query of a public set, searched in one way."""

    set: str
    arm: Literal["lexical", "dense", "hybrid"]
    id: str
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One labelled sentence, and what the rule finder made of it."""

    set: str
    id: str
    kind: str
    states_rule: bool
    found: bool
    """Some rule was found in it."""
    period: bool
    """The label has an amount with a unit that a rule can have."""
    found_period: bool
    same_period: bool
    """The first amount and unit found are the label's."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one evaluation brought."""

    seed: int
    asked: tuple[Asked, ...] = ()
    searched: tuple[Searched, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    version: int = VERSION


def hidden(record: Asked) -> Asked:
    """Return a record without question and answer, for a set that nobody may look at."""
    return replace(record, question="", why="", answer="")


def to_json(run: Run, figures: Mapping[str, Any]) -> str:
    """Return a run and the figures computed from it as one JSON object."""
    return json.dumps({**asdict(run), "figures": figures}, ensure_ascii=False, indent=1)


def from_json(path: Path) -> Run:
    """Read a run that was written; raises ConfigError."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        held = {name: held[name] for name in ("seed", "asked", "searched", "sentences", "version")}
        run = TypeAdapter(Run).validate_python(held)
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        why = (
            f"{error.errors()[0]['msg']} at {error.errors()[0]['loc']}"
            if isinstance(error, ValidationError)
            else repr(error)
        )
        raise ConfigError(
            f"{str(path)!r} is no result of an evaluation ({why:.200}); write one with twohop eval … --json FILE"
        ) from error
    if run.version != VERSION:
        raise ConfigError(f"{str(path)!r} is of version {run.version}, this is {VERSION}; evaluate again")
    return run
