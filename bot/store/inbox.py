"""The inbox: each question that arrived, written before it is acknowledged, and how far its answer is.

A row goes new -> working -> sending -> done, or failed. What a process is doing to a row it does under a lease, so
that another process takes over when it dies; the database itself keeps a thread's questions one after the other.
Leases are dated by each process's own clock, not the database's: the clocks of machines that share a database may differ
by less than a lease.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from sqlalchemy import JSON, Column, Engine, Index, Text, UniqueConstraint, and_, func, or_, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased
from sqlmodel import Field, Session, SQLModel, col, select

from bot.store.state import STATE
from ingest.runs import rows_changed

NoMember = Literal["external", "guest", "deactivated", "bot", "unknown"]
"""Kinds of account that are not answered; `external` is somebody of another organisation."""
Refusal = Literal["", NoMember, "nobody", "shared"]
"""Why an asker gets a reason and no answer: the kind of account, that it is none, or a shared channel."""

_UNDER_WAY = ("working", "sending")
_UNFINISHED = ("new", *_UNDER_WAY)


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message that was addressed to the bot, as Slack sent it."""

    event_id: str
    team: str
    channel: str
    channel_type: str
    """`im`, `mpim`, `channel` or `group`; empty where the event does not say."""
    user: str
    text: str
    """As Slack wrote it, with its `<…>` tokens."""
    ts: str
    """Text: as a number it would lose digits."""
    thread_root: str
    files: int = 0
    refusal: Refusal = ""
    """What the event itself says; who wrote it is found out before it is answered."""

    @property
    def private(self) -> bool:
        """Tell whether only the asker reads along."""
        return self.channel_type == "im"


class Row(SQLModel, table=True):
    """One message of the inbox and how far its answer is."""

    __tablename__ = "inbox"
    __table_args__ = (
        UniqueConstraint("team", "channel", "ts"),
        Index("inbox_open", "state", "due"),
        Index("inbox_thread", "team", "channel", "thread_root"),
        # The thread lock: one answer under way in a thread, whichever process gives it.
        Index(
            "inbox_one_at_a_time",
            "team",
            "channel",
            "thread_root",
            unique=True,
            sqlite_where=text("state IN ('working', 'sending')"),
            postgresql_where=text("state IN ('working', 'sending')"),
        ),
    )
    metadata = STATE

    id: str = Field(primary_key=True)
    event_id: str = Field(unique=True)
    team: str
    channel: str
    channel_type: str
    user: str
    text: str = Field(sa_column=Column(Text, nullable=False))
    ts: str
    thread_root: str
    files: int
    refusal: str
    received_at: float
    """Unix seconds, like every time here."""
    state: str = "new"
    owner: str = ""
    """The process that has it."""
    due: float = 0.0
    """When it may be taken: for a new row from when on, for one under way the end of the lease."""
    claims: int = 0
    """How often it was taken: the value that a claim compares and sets."""
    tries: int = 0
    """How often answering began."""
    posts: int = 0
    """How often posting began."""
    turn: str = ""
    parts: list[dict[str, Any]] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    """The messages of the answer, ready to be posted."""
    stopped: bool = False
    """The asker pressed stop."""
    error: str = ""

    @property
    def inbound(self) -> Inbound:
        """Return what arrived."""
        return Inbound(
            self.event_id,
            self.team,
            self.channel,
            self.channel_type,
            self.user,
            self.text,
            self.ts,
            self.thread_root,
            self.files,
            cast(Refusal, self.refusal),
        )


class Inbox:
    """Reads and writes the inbox for one process; synchronous, short SQL only.

    `owner` names the process and `lease` is how many seconds a row is its own without a renewal.
    """

    def __init__(
        self, engine: Engine, owner: str, lease: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self.owner = owner
        self.lease = lease
        self._clock = clock

    def put(self, inbound: Inbound) -> bool:
        """Keep a message; False where it is there already, by its event or by its place in the channel."""
        row = Row(id=uuid.uuid4().hex[:12], received_at=self._clock(), **asdict(inbound))
        try:
            with Session(self._engine) as session:
                session.add(row)
                session.commit()
        except IntegrityError:
            return False
        return True

    def claim(self) -> Row | None:
        """Take a row that is waiting, or whose process let it go; None where there is nothing to do.

        The oldest of whoever has the fewest under way: one person with many questions keeps nobody waiting. Within a
        thread the oldest message goes first, and none goes while another is under way.
        """
        now = self._clock()
        other, own = aliased(Row), aliased(Row)
        under_way = (
            select(func.count())
            .select_from(own)
            .where(
                col(own.team) == Row.team,
                col(own.user) == Row.user,
                col(own.state).in_(_UNDER_WAY),
                col(own.due) > now,
            )
            .correlate(Row)
            .scalar_subquery()
        )
        earlier = (
            select(other.id)
            .where(
                col(other.team) == Row.team,
                col(other.channel) == Row.channel,
                col(other.thread_root) == Row.thread_root,
                col(other.id) != Row.id,
                or_(
                    col(other.state).in_(_UNDER_WAY),
                    and_(col(other.state) == "new", col(other.ts) < Row.ts),
                ),
            )
            .exists()
        )
        query = (
            select(Row)
            .where(
                col(Row.state).in_(_UNFINISHED),
                col(Row.due) <= now,
                or_(col(Row.state) != "new", ~earlier),
            )
            .order_by(under_way, col(Row.received_at), col(Row.ts))
            .limit(8)
        )
        with Session(self._engine, expire_on_commit=False) as session:
            rows = session.exec(query).all()
            # They stay as they were looked at: that is what a claim compares.
            session.expunge_all()
            for row in rows:
                if self._take(session, row, now):
                    return session.get(Row, row.id)
        return None

    def _take(self, session: Session, row: Row, now: float) -> bool:
        answering = row.state != "sending"
        wanted = (
            update(Row)
            .where(col(Row.id) == row.id, col(Row.claims) == row.claims, col(Row.state) == row.state)
            .values(
                state="working" if answering else "sending",
                owner=self.owner,
                due=now + self.lease,
                claims=row.claims + 1,
                tries=row.tries + answering,
            )
        )
        try:
            taken = bool(rows_changed(session, wanted))
            session.commit()
        except IntegrityError:
            # Another process has just begun with another message of this thread.
            session.rollback()
            return False
        return taken

    def renew(self, ids: Sequence[str]) -> dict[str, bool]:
        """Renew the lease of rows under way; return those still this process's own, and whether each was stopped."""
        with Session(self._engine) as session:
            mine = and_(col(Row.id).in_(ids), col(Row.owner) == self.owner, col(Row.state).in_(_UNDER_WAY))
            rows_changed(session, update(Row).where(mine).values(due=self._clock() + self.lease))
            session.commit()
            return dict(session.exec(select(Row.id, Row.stopped).where(mine)).all())

    def sending(
        self, row: Row, parts: Sequence[dict[str, Any]], turn: str = "", refusal: Refusal = ""
    ) -> bool:
        """Keep the answer, or a refusal's reason, before it is posted; False where the row is not this process's own any more."""
        return self._set(row, None, state="sending", parts=list(parts), turn=turn, refusal=refusal)

    def posting(self, row: Row) -> bool:
        """Count one attempt to post; False where the row is not this process's own any more."""
        return self._set(row, "sending", posts=Row.posts + 1)

    def finish(self, row: Row, error: str = "") -> bool:
        """Close a row: done, or failed with an error for the log."""
        return self._set(row, None, state="failed" if error else "done", owner="", error=error)

    def later(self, row: Row, seconds: float, error: str) -> bool:
        """Let anybody try to post a row again after some seconds."""
        return self._set(row, "sending", owner="", due=self._clock() + seconds, error=error)

    def release(self) -> None:
        """Give back what this process did not finish, so that the next one takes it at once."""
        back: dict[str, dict[str, Any]] = {"working": {"state": "new", "tries": Row.tries - 1}, "sending": {}}
        with Session(self._engine) as session:
            for state, values in back.items():
                rows_changed(
                    session,
                    update(Row)
                    .where(col(Row.owner) == self.owner, col(Row.state) == state)
                    .values(owner="", due=0.0, **values),
                )
            session.commit()

    def stop(self, team: str, channel: str, thread_root: str, user: str | None = None) -> bool:
        """Note that no answer is wanted to what is waiting or being answered in a thread, of one user or of all.

        Return whether something there goes on.
        """
        there = and_(
            col(Row.team) == team,
            col(Row.channel) == channel,
            col(Row.thread_root) == thread_root,
            col(Row.state).in_(("new", "working")),
        )
        with Session(self._engine) as session:
            whose = [col(Row.user) == user] if user is not None else []
            rows_changed(session, update(Row).where(there, *whose).values(stopped=True))
            session.commit()
            left = select(Row.id).where(there, col(Row.stopped).is_(False)).limit(1)
            return session.exec(left).first() is not None

    def last_turn(self, row: Row) -> str:
        """Return the id of the turn that was posted last in this row's thread, or an empty string."""
        with Session(self._engine) as session:
            found = session.exec(
                select(Row.turn)
                .where(
                    col(Row.team) == row.team,
                    col(Row.channel) == row.channel,
                    col(Row.thread_root) == row.thread_root,
                    col(Row.state) == "done",
                    col(Row.turn) != "",
                )
                .order_by(col(Row.ts).desc())
                .limit(1)
            ).first()
        return found or ""

    def counts(self) -> dict[str, int]:
        """Return how many rows are in which state."""
        with Session(self._engine) as session:
            rows = session.exec(select(Row.state, func.count()).group_by(Row.state)).all()
        return dict(rows)

    def waiting_seconds(self) -> float:
        """Return how long the oldest message that has no answer yet has been here; 0 where all have one."""
        with Session(self._engine) as session:
            oldest = session.exec(
                select(func.min(Row.received_at)).where(col(Row.state).in_(_UNFINISHED))
            ).one()
        return max(0.0, self._clock() - oldest) if oldest is not None else 0.0

    def _set(self, row: Row, was: str | None, **values: Any) -> bool:
        """Change a row that is still this process's own, as it was claimed; every change renews the lease."""
        mine = [
            col(Row.id) == row.id,
            col(Row.owner) == self.owner,
            col(Row.claims) == row.claims,
            col(Row.state).in_((was,) if was else _UNDER_WAY),
        ]
        with Session(self._engine) as session:
            changed = rows_changed(
                session,
                update(Row).where(*mine).values(**{"due": self._clock() + self.lease, **values}),
            )
            session.commit()
        return bool(changed)
