"""Labelled questions asked in every mode: was the route right, every source found, the answer right, wrong or refused."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bot import pipeline
from bot.app import Desk
from bot.types import Answer, Asker, Mode, PastTurn, Question, Shape
from bot.types import Path as RoutePath
from ingest.errors import ConfigError
from ingest.words import words

Outcome = Literal["right", "wrong", "refused"]
K = 5


class Labelled(BaseModel):
    """One labelled question, as `QUESTIONS.md` beside the sample defines it."""

    model_config = ConfigDict(extra="forbid")

    id: str
    type: str
    text: str
    history: list[dict[str, str]] = []
    now: date
    asker_readers: list[str] = ["members", "support"]
    expected_route: RoutePath
    sources: list[str] = []
    shape: Shape
    must: list[str] = []
    must_not: list[str] = []


@dataclass(frozen=True, slots=True)
class Judged:
    """One question's outcome."""

    question: Labelled
    answer: Answer
    outcome: Outcome
    routed: bool
    recalled: bool | None
    why: str


def read(path: Path) -> list[Labelled]:
    """Read a question set; raises ConfigError for a file that cannot be read or holds no question, and for a bad line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"question set {str(path)!r} cannot be read ({error}); check the name") from error
    questions = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                questions.append(Labelled.model_validate_json(line))
            except ValidationError as error:
                raise ConfigError(
                    f"{path.name} line {number}: {error.errors()[0]['msg']} at {error.errors()[0]['loc']}"
                ) from error
    if not questions:
        raise ConfigError(f"question set {str(path)!r} holds no question; write one JSON object a line")
    return questions


def judge(question: Labelled, answer: Answer) -> Judged:
    """Judge one answer by its labels: shape, must and must-not strings, route, and all-source recall at 5."""
    said = _fold(answer.text)
    missing = [text for text in question.must if _fold(text) not in said]
    forbidden = [text for text in question.must_not if _fold(text) in said]
    refused = answer.shape in ("not_found", "unavailable", "clarify")
    if question.shape in ("not_found", "clarify"):
        right = (
            refused and not forbidden and (question.shape == answer.shape or question.shape == "not_found")
        )
    elif question.shape == "chat":
        right = answer.shape == "chat" and not missing and not forbidden
    else:
        right = not refused and answer.shape != "chat" and not missing and not forbidden
    outcome: Outcome = "right" if right else "refused" if refused else "wrong"
    seen = list(
        dict.fromkeys([*(item.source for item in answer.used), *(s for st in answer.steps for s in st.found)])
    )
    cited = [citation.source for citation in answer.citations]
    first = list(dict.fromkeys([*cited, *seen]))[:K]
    wanted = [source.replace("tickets:", "ticket:") for source in question.sources]
    recalled = (
        all(source in first for source in wanted)
        if wanted and question.shape not in ("not_found", "chat")
        else None
    )
    why = "; ".join(
        part
        for part in (
            f"shape {answer.shape}, not {question.shape}" if answer.shape != question.shape else "",
            f"lacks {missing}" if missing else "",
            f"says {forbidden}" if forbidden else "",
        )
        if part
    )
    # The gate's own choice is judged: an escalation comes after it.
    escalated = answer.route.reasons[-1].endswith("escalated")
    routed = ("direct" if escalated else answer.route.path) == question.expected_route
    return Judged(question, answer, outcome, routed, recalled, why)


def _fold(text: str) -> str:
    return " ".join(words(text))


async def ask(desk: Desk, question: Labelled, mode: Mode) -> Answer:
    """Ask one labelled question at its clock, with its history asked as past turns."""
    now = datetime.combine(question.now, time(12), desk.zone)
    asker = Asker("evaluation", frozenset(question.asker_readers))
    past: list[PastTurn] = []
    for i, turn in enumerate(question.history):
        asked = turn["question"]
        before = await pipeline.answer(Question(asked, asker, now, tuple(past)), desk.parts)
        tickets = [item.ticket for item in before.used if item.ticket]
        rows = [
            row
            for item in before.used
            if item.kind == "table" and len(item.tickets) == 1
            for row in item.tickets
        ]
        past.append(
            PastTurn(
                str(i),
                asked,
                before.standalone,
                before.text,
                before.shape,
                before.verdict.text if before.verdict else "",
                tuple(t.number for t in [*tickets, *rows]),
                tuple(t.customer for t in [*tickets, *rows] if t.customer),
            )
        )
    return await pipeline.answer(Question(question.text, asker, now, tuple(past)), desk.parts, mode)


def evaluate(
    desk: Desk, name: str, questions: Sequence[Labelled], modes: Sequence[Mode], *, failures: bool = False
) -> str:
    """Ask a whole set in each mode and return the report as a Markdown table per mode."""
    lines: list[str] = []
    for mode in modes:
        judged = [judge(question, desk.run(ask(desk, question, mode))) for question in questions]
        lines += [f"## {name}, mode {mode}, {len(judged)} questions", "", *table(judged), ""]
        if failures:
            lines += [
                f"- {j.question.id} ({j.question.type}) {j.outcome}: {j.question.text}\n  {j.why or 'route'}; "
                f"route {j.answer.route.path}, expected {j.question.expected_route}; "
                f"says {json.dumps(j.answer.text[:300], ensure_ascii=False)}"
                for j in judged
                if j.outcome != "right" or not j.routed or j.recalled is False
            ]
    return "\n".join(lines)


def table(judged: Sequence[Judged]) -> list[str]:
    """Return one row a type: n, route accuracy, all-source recall@5, right, wrong, refused."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for j in judged:
        groups[j.question.type].append(j)
    rows = [
        "| type | n | route | all sources @5 | right | wrong | refused |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, group in [*sorted(groups.items()), ("all", list(judged))]:
        recalled = [j.recalled for j in group if j.recalled is not None]
        share = f"{sum(recalled)}/{len(recalled)}" if recalled else "–"
        counts = [sum(j.outcome == outcome for j in group) for outcome in ("right", "wrong", "refused")]
        rows.append(
            f"| {name} | {len(group)} | {sum(j.routed for j in group)} | {share} | {counts[0]} | {counts[1]} | {counts[2]} |"
        )
    return rows
