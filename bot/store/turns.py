"""Turns: each question with its answer, its steps, usage, timings and recorded model outputs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import JSON, Column, Text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Field, Session, SQLModel, col, select

from bot.store.state import STATE, opened, prove, reason
from bot.types import Answer, Mode, PastTurn, Question, Shape
from ingest.database import shown
from ingest.errors import ConfigError, TwohopError


class Turn(SQLModel, table=True):
    """One question with its answer and how it came about."""

    metadata = STATE

    id: str = Field(primary_key=True)
    after: str = ""
    """The turn that this one follows in its thread."""
    asked_at: datetime
    user: str
    mode: str
    now: str
    """The desk's clock of the question."""
    question: str = Field(sa_column=Column(Text))
    standalone: str = Field(sa_column=Column(Text))
    shape: str
    text: str = Field(sa_column=Column(Text))
    detail: dict[str, Any] = Field(sa_column=Column(JSON))
    """The answer as `ask --json` prints it, with the model's recorded outputs."""
    readers: list[list[str]] = Field(sa_column=Column(JSON))
    """Who may read each item that was used; a follow-up by anybody else does not see the turn."""
    tickets: list[str] = Field(sa_column=Column(JSON))
    customers: list[str] = Field(sa_column=Column(JSON))
    ms: int = 0


class Store:
    """Keeps turns; synchronous, for the store executor."""

    def __init__(self, url: str) -> None:
        self.engine = opened(url)

    @property
    def place(self) -> str:
        """Where the state is kept, without a password."""
        return shown(self.engine.url)

    def prove(self) -> None:
        """Prove that it can be written; raises ConfigError with what the matter is and the next step, no account named."""
        try:
            prove(self.engine)
        except SQLAlchemyError as error:
            raise ConfigError(reason(error, self.engine, plain=True)) from error

    def close(self) -> None:
        """Release the connections."""
        self.engine.dispose()

    def keep(
        self, question: Question, answer: Answer, mode: Mode, ms: int, *, after: str = "", id_: str = ""
    ) -> Turn:
        """Write one turn and return it."""
        turn = Turn(
            id=id_ or uuid.uuid4().hex[:12],
            after=after,
            asked_at=datetime.now(UTC),
            user=question.asker.user,
            mode=mode,
            now=question.now.isoformat(),
            question=question.text,
            standalone=answer.standalone,
            shape=answer.shape,
            text=answer.text,
            detail={},
            readers=[sorted(item.readers) for item in answer.used],
            tickets=list(dict.fromkeys(ticket.number for ticket in answer.tickets)),
            customers=list(dict.fromkeys(ticket.customer for ticket in answer.tickets if ticket.customer)),
            ms=ms,
        )
        turn.detail = {
            **public(answer, turn.id, ms),
            "standalone": answer.standalone,
            "rejected": list(answer.rejected),
            "replies": [json.loads(json.dumps(asdict(reply))) for reply in answer.replies],
        }
        with Session(self.engine, expire_on_commit=False) as session:
            session.add(turn)
            session.commit()
        return turn

    def get(self, id_: str = "") -> Turn:
        """Return a turn by its id or an unambiguous beginning of it; the latest one without an id."""
        with Session(self.engine) as session:
            query = select(Turn).order_by(col(Turn.asked_at).desc())
            if id_:
                query = query.where(col(Turn.id).startswith(id_, autoescape=True))
            found = session.exec(query.limit(2)).all()
        if not found:
            raise TwohopError(
                f"there is no turn {id_!r}; `twohop trace` shows the latest"
                if id_
                else "nothing was asked yet"
            )
        if id_ and len(found) > 1 and found[0].id != id_:
            raise TwohopError(f"several turns begin with {id_!r}; give more of the id")
        return found[0]

    def thread(self, id_: str, readers: frozenset[str], most: int = 20) -> tuple[PastTurn, ...]:
        """Return the turns that lead to this one, oldest first, itself included.

        A turn that used something these readers may not see is left out: a thread gives nobody more rights.
        """
        past: list[PastTurn] = []
        while id_ and len(past) < most:
            turn = self.get(id_)
            verdict = turn.detail.get("verdict") or {}
            id_ = turn.after
            if not all(readers & set(labels) for labels in turn.readers):
                continue
            past.append(
                PastTurn(
                    turn.id,
                    turn.question,
                    turn.standalone,
                    turn.text,
                    cast(Shape, turn.shape),
                    verdict.get("text", ""),
                    tuple(turn.tickets),
                    tuple(turn.customers),
                )
            )
        return tuple(reversed(past))


def public(answer: Answer, id_: str, ms: int) -> Mapping[str, Any]:
    """Return the stable interface of `ask --json`."""
    verdict = answer.verdict
    return {
        "turn": id_,
        "shape": answer.shape,
        "text": answer.text,
        "verdict": {"decision": verdict.decision, "text": verdict.text, "facts": dict(verdict.facts)}
        if verdict
        else None,
        "citations": [asdict(citation) for citation in answer.citations],
        "route": {"path": answer.route.path, "reasons": list(answer.route.reasons)},
        "steps": [
            {
                "tool": step.tool,
                "arguments": dict(step.arguments),
                "found": list(step.found),
                "ms": step.ms,
                "by": step.by,
                "purpose": step.purpose,
                "error": step.error,
                "failed": dict(step.failed),
            }
            for step in answer.steps
        ],
        "stop": answer.stop,
        "gaps": list(answer.gaps),
        "usage": asdict(answer.usage),
        "ms": ms,
    }
