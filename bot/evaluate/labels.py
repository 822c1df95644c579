"""What can be evaluated, read from files: labelled questions, public retrieval sets and labelled rule sentences."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.types import Path as RoutePath
from bot.types import Shape
from ingest.errors import ConfigError

_SHOWN = 80


class Line(BaseModel):
    """One line of a set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]


def _alternatives(value: object) -> object:
    """Read a string as a list of one alternative, so that `"must": ["30 days"]` and `[["30 days"]]` are the same."""
    return [[one] if isinstance(one, str) else one for one in value] if isinstance(value, list) else value


class Past(BaseModel):
    """An earlier turn of the thread; only its question is asked again."""

    question: str
    answer: str = ""


class Labelled(Line):
    """One labelled question, of a desk or of a file; `QUESTIONS.md` beside the sample defines the fields."""

    type: str
    history: tuple[Past, ...] = ()
    now: date | datetime
    asker_readers: tuple[str, ...] = ("members", "support")
    expected_route: RoutePath
    sources: tuple[str, ...] = ()
    shape: Shape
    decision: Literal["yes", "no", ""] = ""
    must: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_alternatives)] = ()
    """Of each entry's alternatives one has to occur."""
    must_not: tuple[str, ...] = ()
    answer: str = ""
    why: str = ""
    needs: str = ""


class RuleSentence(Line):
    """One sentence, list item or table row, and whether it states a rule."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    states_rule: bool
    kind: str
    heading: str = ""
    amount: float | None = None
    unit: str | None = None


class _Query(Line):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Paper(Line):
    """A document of a public set."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    title: str = ""
    text: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Labelled questions, and the desk's folder they are asked of; None asks what is configured, or the sample."""

    name: str
    questions: tuple[Labelled, ...]
    desk: Path | None = None
    blind: bool = False
    """Its questions and answers must not be looked at."""


@dataclass(frozen=True, slots=True)
class PublicSet:
    """Documents, queries, and for each query the ids of the documents that answer it."""

    name: str
    papers: tuple[Paper, ...]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Sentences that state a rule or only look like it."""

    name: str
    sentences: tuple[RuleSentence, ...]


Target = QuestionSet | PublicSet | RuleSet
L = TypeVar("L", bound=Line)


def read(path: Path) -> Target:
    """Read what a path holds; raises ConfigError naming the file, the line, the value and what to write instead."""
    if path.is_dir():
        held = {name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv") if (path / name).is_file()}
        if (path / "twohop.toml").is_file() and (path / "questions.jsonl").is_file():
            return QuestionSet(_name(path), lines(path / "questions.jsonl", Labelled), path)
        if len(held) == 3:
            return _public(path)
        lacking = f"; of a public set it has only {', '.join(sorted(held))}" if held else ""
        raise ConfigError(f"{str(path)!r} is neither a desk nor a public set{lacking}; {_kinds()}")
    if _states_rules(path):
        return RuleSet(path.name, lines(path, RuleSentence))
    return QuestionSet(path.name, lines(path, Labelled))


def papers(folder: Path) -> tuple[Paper, ...]:
    """Read the documents of a public set, or of a folder that holds only documents."""
    return lines(folder / "corpus.jsonl", Paper)


def chosen(
    questions: Sequence[Labelled], *, only: Collection[str] = (), skip_needs: Collection[str] = ()
) -> tuple[Labelled, ...]:
    """Leave out what was not asked for, and what needs something that is not read."""
    return tuple(q for q in questions if (not only or q.id in only) and q.needs not in skip_needs)


def lines(path: Path, kind: type[L]) -> tuple[L, ...]:
    """Read a file of one JSON object a line."""
    found: dict[str, L] = {}
    for number, line in _numbered(path):
        try:
            one = kind.model_validate_json(line)
        except ValidationError as error:
            raise ConfigError(f"{path.name} line {number} is {line[:_SHOWN]!r}: {_why(error)}") from error
        if one.id in found:
            raise ConfigError(
                f"{path.name} line {number} has the id {one.id!r} of an earlier line; give it another"
            )
        found[one.id] = one
    if not found:
        raise ConfigError(f"question set {str(path)!r} holds no question; write one JSON object a line")
    return tuple(found.values())


def _why(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    given = f" (it is {first['input']!r:.60})" if where and first["type"] != "missing" else ""
    return f"{where or 'the line'}: {first['msg']}{given}; mend the line, or take it out"


def _numbered(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"question set {str(path)!r} cannot be read ({error}); {_kinds()}") from error
    return [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _states_rules(path: Path) -> bool:
    first = next(iter(_numbered(path)), (0, "{}"))[1]
    try:
        value: Any = json.loads(first)
    except json.JSONDecodeError:
        return False
    return isinstance(value, dict) and "states_rule" in value


def _public(path: Path) -> PublicSet:
    queries = {query.id: query.text for query in lines(path / "queries.jsonl", _Query)}
    held = papers(path)
    known = {paper.id for paper in held}
    relevant: dict[str, dict[str, int]] = {}
    rows = csv.reader([line for _, line in _numbered(path / "qrels.tsv")], delimiter="\t")
    for number, row in enumerate(rows, start=1):
        if number == 1 and row[0].startswith("query"):
            continue
        where = f"{path.name}/qrels.tsv line {number} is {' '.join(row)[:_SHOWN]!r}"
        if len(row) != 3 or not row[2].strip().isdigit():
            raise ConfigError(
                f"{where}: write query-id, corpus-id and a score of 0 or more, separated by tabs"
            )
        query, paper, score = row
        for name, one, ids in (("query", query, queries), ("document", paper, known)):
            if one not in ids:
                raise ConfigError(f"{where}: there is no {name} {one!r}; mend the line, or take it out")
        if int(score):
            relevant.setdefault(query, {})[paper] = int(score)
    if not relevant:
        raise ConfigError(f"public set {str(path)!r} has no query with a document in qrels.tsv; add some")
    return PublicSet(_name(path), held, {q: text for q, text in queries.items() if q in relevant}, relevant)


def _kinds() -> str:
    return (
        "give a desk (a folder with twohop.toml and questions.jsonl), a public set (a folder with corpus.jsonl, "
        "queries.jsonl and qrels.tsv), or a file of labelled questions or rule sentences, one JSON object a line"
    )


def _name(path: Path) -> str:
    return path.resolve().name
