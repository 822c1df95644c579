"""Asks labelled questions of a desk through the pipeline, in each mode, and records what came of it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from datetime import time as clock
from pathlib import Path

from bot import pipeline
from bot.app import Desk, build
from bot.config import Settings, load
from bot.evaluate.confidence import confidence
from bot.evaluate.judge import judge, said
from bot.evaluate.labels import Labelled
from bot.evaluate.ranking import measured
from bot.evaluate.record import Asked, Taken
from bot.types import Answer, Asker, Mode, PastTurn, Question
from ingest.embed import Embedder
from ingest.words import storable

_log = logging.getLogger(__name__)


@contextmanager
def desk_of(folder: Path, embedder: Embedder | None = None) -> Iterator[Desk]:
    """Open a desk over a folder that is only read, with its own settings and its data in a temporary folder.

    Settings of the environment go before the folder's, but for where data is kept. Nothing is indexed yet.
    """
    with tempfile.TemporaryDirectory(prefix="twohop-eval-") as data:
        desk = build(_settings(folder, Path(data)), embedder)
        try:
            yield desk
        finally:
            desk.close()


def _settings(folder: Path, data: Path) -> Settings:
    ours = load(folder / "twohop.toml")
    inside = {
        "sources": {"paths": tuple(folder / path for path in ours.sources.paths)},
        "tickets": {"csv": tuple(folder / path for path in ours.tickets.csv)},
    }
    changed = {name: getattr(ours, name).model_copy(update=update) for name, update in inside.items()}
    database = ours.tickets_database_url if ours.tickets.table else ""
    where = {"index": "sqlite", "data": data, "database_url": "", "tickets_database_url": database}
    return ours.model_copy(update={**changed, **where})


async def ask(
    desk: Desk, name: str, questions: Sequence[Labelled], modes: Sequence[Mode]
) -> tuple[Asked, ...]:
    """Ask the questions of the set `name` one after another, mode by mode; each mode begins with no vector kept."""
    # Loading the model is no part of anybody's time.
    desk.embedder.embed([name], kind="query")
    records: list[Asked] = []
    for mode in modes:
        desk.remembered.forget()
        records += [await _asked(desk, name, question, mode) for question in questions]
    return _with_metrics(records, modes)


async def _asked(desk: Desk, name: str, question: Labelled, mode: Mode) -> Asked:
    began = time.perf_counter()
    try:
        now, asker = _moment(question, desk), _asker(question, desk)
        past: tuple[PastTurn, ...] = ()
        for i, turn in enumerate(question.history):
            before = await pipeline.answer(_question(turn.question, asker, now, past), desk.parts)
            past = (*past, _past(str(i), turn.question, before))
        began = time.perf_counter()
        answer = await pipeline.answer(_question(question.text, asker, now, past), desk.parts, mode)
    except Exception as error:
        # One bug must not cost the figures of all other questions; it is counted, and told with its traceback.
        _log.exception("question %s of %s in mode %s", question.id, name, mode)
        return replace(_unanswered(question, name, mode, began), why=repr(error))
    return _record(question, name, mode, answer, began)


def _moment(question: Labelled, desk: Desk) -> datetime:
    now = question.now
    moment = now if isinstance(now, datetime) else datetime.combine(now, clock(12))
    return moment if moment.tzinfo else moment.replace(tzinfo=desk.zone)


def _asker(question: Labelled, desk: Desk) -> Asker:
    """Return somebody with the label's rights; whoever is in support has the rights of the first one whom the settings name."""
    labels = frozenset(question.asker_readers)
    if "support" not in labels:
        return Asker("evaluation", labels)
    named = desk.settings.access.groups.get("support", ())
    one = desk.asker(named[0] if named else "")
    return Asker(one.user, one.readers | labels)


def _question(text: str, asker: Asker, now: datetime, past: tuple[PastTurn, ...]) -> Question:
    return Question(storable(text), asker, now, past)


def _past(id_: str, question: str, answer: Answer) -> PastTurn:
    return PastTurn(
        id_,
        question,
        answer.standalone,
        answer.text,
        answer.shape,
        answer.verdict.text if answer.verdict else "",
        tuple(dict.fromkeys(ticket.number for ticket in answer.tickets)),
        tuple(dict.fromkeys(ticket.customer for ticket in answer.tickets if ticket.customer)),
    )


def _record(question: Labelled, name: str, mode: Mode, answer: Answer, began: float) -> Asked:
    judged = judge(question, answer)
    taken: Taken = answer.route.path
    if answer.route.reasons and answer.route.reasons[-1].endswith("escalated"):
        taken = "escalated"
    return replace(
        _unanswered(question, name, mode, began),
        outcome=judged.outcome,
        why=judged.why,
        shape=answer.shape,
        route=taken,
        verdict=answer.verdict.decision if answer.verdict else "",
        answer=answer.text,
        words=len(said(answer).split()),
        confidence=confidence(answer),
        stages=dict(answer.stages),
        searches=len(answer.rankings),
        calls=len(answer.replies),
        tokens=answer.usage.input_tokens + answer.usage.output_tokens,
        ranking=tuple(dict.fromkeys(_source(uri) for of in answer.rankings for uri in of)),
    )


def _unanswered(question: Labelled, name: str, mode: Mode, began: float) -> Asked:
    """Return the record of a question that nobody could answer."""
    return Asked(
        set=name,
        mode=mode,
        id=question.id,
        type=question.type,
        question=question.text,
        outcome="crash",
        why="",
        shape="crash",
        expected_route=question.expected_route,
        route="none",
        decision=question.decision,
        ms=(time.perf_counter() - began) * 1000,
        relevant=_relevant(question),
    )


def _relevant(question: Labelled) -> tuple[str, ...]:
    nothing = question.shape in ("not_found", "clarify", "chat")
    return () if nothing else tuple(map(_source, question.sources))


def _source(uri: str) -> str:
    """Return a source as citations name it: an indexed ticket is that ticket."""
    return uri.replace("tickets:", "ticket:", 1) if uri.startswith("tickets:") else uri


def _with_metrics(records: Sequence[Asked], modes: Sequence[Mode]) -> tuple[Asked, ...]:
    found = {
        mode: measured(
            {r.id: r.ranking for r in records if r.mode == mode},
            {r.id: dict.fromkeys(r.relevant, 1) for r in records if r.mode == mode and r.relevant},
        )
        for mode in modes
    }
    return tuple(replace(record, metrics=found[record.mode].get(record.id, {})) for record in records)
