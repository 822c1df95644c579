"""Index runs as rows: who asked for one, how far it is and how it ended; one at a time over all processes, by a lease."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, cast

from sqlalchemy import (
    JSON,
    Column,
    CursorResult,
    Engine,
    Index,
    MetaData,
    Text,
    delete,
    func,
    or_,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.sql.dml import UpdateBase
from sqlmodel import Field, Session, SQLModel, col, select

from ingest.errors import IndexingError

STATE = MetaData()
"""Tables of our own state: the runs here, and those that `bot` adds; the tickets' tables have another metadata."""

Kind = Literal["sync", "rebuild", "rollback"]
State = Literal["running", "complete", "failed", "cancelled"]

DIED = "its process ended before it did"
_KEPT_SECONDS = 90 * 86_400.0
_LOOKED_AT = 500
"""Runs that are searched for the last success of a source."""
_BEAT_SECONDS = 1.0
"""Longest time between two looks at whether a run shall stop."""

_log = logging.getLogger(__name__)


def rows_changed(session: Session, statement: UpdateBase) -> int:
    """Run an UPDATE or DELETE and return how many rows it changed; rows that the session holds stay as they were read."""
    done = session.execute(statement, execution_options={"synchronize_session": False})
    # A session's own type does not say that it counts.
    return cast("CursorResult[Any]", done).rowcount


class Run(SQLModel, table=True):
    """One index run; its lease ends at `due` unless it is renewed."""

    __table_args__ = (
        Index(
            "run_one_at_a_time",
            "state",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
    )
    metadata = STATE

    id: str = Field(primary_key=True)
    kind: str
    sources: list[str] = Field(sa_column=Column(JSON, nullable=False))
    """Names of the sources that were asked for; none means all of them."""
    who: str = ""
    """Whoever asked: a Slack user id, or an empty string for the clock and the command line."""
    why: str
    """What started it: `schedule`, `slack` or `command`."""
    slot: str | None = Field(default=None, unique=True)
    """The schedule and the moment that it was due: a moment is run once over all processes."""
    started_at: float = Field(index=True)
    """Unix seconds, like every time here."""
    ended_at: float | None = None
    state: str = "running"
    owner: str
    """The process that tells whoever asked."""
    due: float
    """The end of the lease."""
    stage: str = ""
    done: int = 0
    """Documents looked at in this stage."""
    uri: str = ""
    """The last one of them."""
    cancelled_by: str = ""
    told: bool = True
    """Whoever asked was told how it ended, or nobody waits for that."""
    report: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    """What `twohop index --json` prints."""
    failure: str = Field(default="", sa_column=Column(Text, nullable=False))
    """Why it is not complete, for a person."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it runs."""
        return self.ended_at - self.started_at if self.ended_at else 0.0


class Alarm(SQLModel, table=True):
    """A source that was not read to its end for too long; there is a row while that is so."""

    metadata = STATE

    source: str = Field(primary_key=True)
    since: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """Of when the live index is."""

    read_at: float | None
    """When the last complete run into it ended; None where that is not known."""
    rolled_back: bool
    """Whether a rollback made it live, and no complete run brought it up to date since."""


class RunStopped(IndexingError):
    """A run has to end before its end; `cancelled` tells that somebody wanted that."""

    def __init__(self, reason: str, *, cancelled: bool) -> None:
        super().__init__(f"the index run was stopped: {reason}")
        self.cancelled = cancelled


class Runs:
    """Reads and writes runs for one process; `lease` is how many seconds a run lives without a renewal.

    Leases are dated by each process's own clock, not the database's: clocks of machines that share a database may differ
    by less than a lease.
    """

    def __init__(
        self, engine: Engine, owner: str, lease: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self.owner = owner
        self.lease = lease
        self._clock = clock

    def start(
        self,
        kind: Kind,
        *,
        why: str,
        who: str = "",
        sources: Collection[str] = (),
        slot: str | None = None,
    ) -> Run | None:
        """Start a run, or return None where one is under way or this slot was run already."""
        now = self._clock()
        run = Run(
            id=uuid.uuid4().hex[:12],
            kind=kind,
            sources=sorted(sources),
            who=who,
            why=why,
            slot=slot,
            started_at=now,
            owner=self.owner,
            due=now + self.lease,
            told=not who,
        )
        self._bury(now)
        try:
            with Session(self._engine, expire_on_commit=False) as session:
                session.add(run)
                session.commit()
        except IntegrityError:
            return None
        return run

    def _bury(self, now: float) -> None:
        """Close the run whose lease is over, and forget what is long past."""
        with Session(self._engine) as session:
            rows_changed(
                session,
                update(Run)
                .where(col(Run.state) == "running", col(Run.due) < now)
                .values(state="failed", ended_at=now, failure=DIED),
            )
            rows_changed(
                session,
                delete(Run).where(col(Run.started_at) < now - _KEPT_SECONDS, col(Run.state) != "running"),
            )
            session.commit()

    def get(self, id_: str) -> Run:
        """Return a run; raises IndexingError where there is none of this id."""
        with Session(self._engine) as session:
            run = session.get(Run, id_)
        if run is None:
            raise IndexingError(f"there is no index run {id_!r}; `twohop index history` lists them")
        return run

    def running(self) -> Run | None:
        """Return the run under way; one whose lease is over is none."""
        query = select(Run).where(Run.state == "running", Run.due >= self._clock())
        with Session(self._engine) as session:
            return session.exec(query).first()

    def signs(self, run: Run) -> tuple[float, float]:
        """Return how many seconds ago a run under way gave a sign of life, and in how many without another it is over."""
        left = run.due - self._clock()
        return max(0.0, self.lease - left), max(0.0, left)

    def history(self, most: int = 20) -> Sequence[Run]:
        """Return the latest runs, newest first."""
        with Session(self._engine) as session:
            return session.exec(select(Run).order_by(col(Run.started_at).desc()).limit(most)).all()

    def latest(self) -> Run | None:
        """Return the run that was started last."""
        return next(iter(self.history(1)), None)

    def succeeded(self, source: str = "") -> Run | None:
        """Return the last complete run of this source into the live index; without one, of all sources."""
        return next(
            (
                run
                for run in self.into_live()
                if run.state == "complete" and (not run.sources or source in run.sources)
            ),
            None,
        )

    def into_live(self) -> Iterator[Run]:
        """Yield the latest runs, newest first, but rollbacks and what a rollback took back."""
        until = math.inf
        for run in self.history(_LOOKED_AT):
            if run.kind != "rollback":
                if run.ended_at is None or run.ended_at <= until:
                    yield run
            elif run.state == "complete":
                until = min(until, run.report.get("read_at", until))

    def freshness(self) -> Freshness:
        """Return of when the live index is."""
        back = self._rollback()
        since = (back.ended_at if back else None) or 0.0
        with Session(self._engine) as session:
            read_at = session.exec(
                select(func.max(Run.ended_at)).where(
                    Run.state == "complete", Run.kind != "rollback", col(Run.ended_at) > since
                )
            ).one()
        if back is None or read_at is not None:
            return Freshness(read_at, rolled_back=False)
        return Freshness(back.report.get("read_at"), rolled_back=True)

    def late(self, sources: Collection[str], seconds: float) -> bool:
        """Tell whether the last complete run of one of these sources, or a rollback since, is longer ago than that.

        What is behind because somebody rolled back is not late: nothing failed.
        """
        back = self._rollback()
        ends = [run.ended_at or 0.0 if (run := self.succeeded(name)) else 0.0 for name in sources]
        since = max((back.ended_at if back else None) or 0.0, min(ends, default=0.0))
        return self._clock() - since > seconds

    def _rollback(self) -> Run | None:
        """Return the last rollback that went well."""
        query = select(Run).where(Run.state == "complete", Run.kind == "rollback")
        with Session(self._engine) as session:
            return session.exec(query.order_by(col(Run.ended_at).desc()).limit(1)).first()

    def read_at(self, created_at: datetime) -> float:
        """Return when the last complete run into the generation of this date ended; its date, where none is known."""
        made = created_at.isoformat()
        return next(
            (
                run.ended_at or run.started_at
                for run in self.history(_LOOKED_AT)
                if run.state == "complete" and (run.report.get("generation") or {}).get("created_at") == made
            ),
            created_at.timestamp(),
        )

    def raise_alarm(self, source: str) -> bool:
        """Note that a source is late; False where that is known."""
        try:
            with Session(self._engine) as session:
                session.add(Alarm(source=source, since=self._clock()))
                session.commit()
        except IntegrityError:
            return False
        return True

    def calm(self, source: str) -> bool:
        """Note that a source is not late; False where it was not."""
        with Session(self._engine) as session:
            gone = delete(Alarm).where(col(Alarm.source) == source)
            changed = rows_changed(session, gone)
            session.commit()
        return bool(changed)

    def alarms(self) -> tuple[str, ...]:
        """Return the plans whose sources are late."""
        with Session(self._engine) as session:
            return tuple(session.exec(select(Alarm.source).order_by(Alarm.source)).all())

    def counts(self) -> dict[str, int]:
        """Return how many of the runs that are kept are in which state."""
        with Session(self._engine) as session:
            rows = session.exec(select(Run.state, func.count()).group_by(Run.state)).all()
        return dict(rows)

    def now(self) -> float:
        """Return the time by which runs are dated."""
        return self._clock()

    def slot_taken(self, slot: str) -> bool:
        """Tell whether a run of this slot was started, in any process."""
        with Session(self._engine) as session:
            return session.exec(select(Run.id).where(Run.slot == slot)).first() is not None

    def beat(self, id_: str, *, stage: str, done: int, uri: str) -> RunStopped | None:
        """Renew a run's lease and note how far it is; return why it has to stop, if it has to."""
        with Session(self._engine) as session:
            changed = rows_changed(
                session,
                update(Run)
                .where(col(Run.id) == id_, col(Run.state) == "running")
                .values(due=self._clock() + self.lease, stage=stage, done=done, uri=uri),
            )
            session.commit()
            run = session.get(Run, id_)
        if not changed or run is None:
            return RunStopped("its lease was lost to another process", cancelled=False)
        return RunStopped(f"{run.cancelled_by} cancelled it", cancelled=True) if run.cancelled_by else None

    def renew(self) -> None:
        """Renew the leases of this process's runs, also of those whose end is yet to be told."""
        with Session(self._engine) as session:
            rows_changed(
                session,
                update(Run)
                .where(col(Run.owner) == self.owner, _open())
                .values(due=self._clock() + self.lease),
            )
            session.commit()

    def finish(
        self, id_: str, state: State, *, failure: str = "", report: Mapping[str, Any] | None = None
    ) -> bool:
        """Close a run; False where it was closed before, which stays as it is."""
        values: dict[str, Any] = {"state": state, "failure": failure, "ended_at": self._clock()}
        if report is not None:
            values["report"] = dict(report)
        with Session(self._engine) as session:
            changed = rows_changed(
                session,
                update(Run).where(col(Run.id) == id_, col(Run.state) == "running").values(**values),
            )
            session.commit()
        return bool(changed)

    def cancel(self, who: str) -> Run | None:
        """Ask the run under way to stop at its next document, and return it."""
        run = self.running()
        if run is not None:
            with Session(self._engine) as session:
                rows_changed(
                    session,
                    update(Run)
                    .where(col(Run.id) == run.id, col(Run.state) == "running")
                    .values(cancelled_by=who),
                )
                session.commit()
        return run

    def told(self, id_: str) -> None:
        """Note that whoever asked was told how a run ended."""
        with Session(self._engine) as session:
            rows_changed(session, update(Run).where(col(Run.id) == id_).values(told=True))
            session.commit()

    def abandoned(self) -> Sequence[Run]:
        """Close the run whose process died, and take over those that nobody told whoever asked about."""
        now = self._clock()
        self._bury(now)
        taken: list[Run] = []
        with Session(self._engine, expire_on_commit=False) as session:
            for run in session.exec(
                select(Run)
                .where(col(Run.told).is_(False), Run.state != "running", Run.due < now)
                # In one order in all processes: in two they could wait for each other.
                .order_by(col(Run.id))
            ).all():
                changed = rows_changed(
                    session,
                    update(Run)
                    .where(col(Run.id) == run.id, col(Run.owner) == run.owner, col(Run.due) == run.due)
                    .values(owner=self.owner, due=now + self.lease),
                )
                if changed:
                    taken.append(run)
            session.commit()
        return taken


def _open() -> Any:
    return or_(col(Run.state) == "running", col(Run.told).is_(False))


class Pulse:
    """A run at work: keeps its lease, notes how far it is, and stops it at the next document where it has to stop.

    A thread of its own beats, so that a long embedding does not cost the lease. An error that leaves the `with` closes
    the run; whoever leaves it without one has called `finish`.
    """

    def __init__(self, runs: Runs, run: Run, *, deadline_seconds: float) -> None:
        self._runs = runs
        self.run = run
        self._ends = time.monotonic() + deadline_seconds
        self._deadline = deadline_seconds
        self._now = ("", 0, "")
        self._stopped: RunStopped | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"pulse {run.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        self._over.set()
        self._thread.join()
        if error is not None:
            cancelled = isinstance(error, KeyboardInterrupt) or (
                isinstance(error, RunStopped) and error.cancelled
            )
            why = str(error) or type(error).__name__
            self._runs.finish(self.run.id, "cancelled" if cancelled else "failed", failure=why)

    def stage(self, name: str) -> None:
        """Begin a stage; raises RunStopped where the run has to stop, as the database says at this moment."""
        self._now = (name, 0, "")
        self._beat()
        self.progress(0, "")

    def progress(self, done: int, uri: str) -> None:
        """Note the document that was just looked at; raises RunStopped where the run has to stop."""
        self._now = (self._now[0], done, uri)
        if self._stopped is not None:
            raise self._stopped

    def stop(self, reason: str) -> None:
        """Let the run stop at its next document."""
        self._stopped = self._stopped or RunStopped(reason, cancelled=True)

    def finish(self, report: Mapping[str, Any], failures: Sequence[str]) -> None:
        """Close the run with its report."""
        self._runs.finish(
            self.run.id, "failed" if failures else "complete", failure="\n".join(failures), report=report
        )

    def _keep(self) -> None:
        while not self._over.wait(min(_BEAT_SECONDS, self._runs.lease / 3)):
            self._beat()

    def _beat(self) -> None:
        stage, done, uri = self._now
        try:
            found = self._runs.beat(self.run.id, stage=stage, done=done, uri=uri)
            if found is None and time.monotonic() > self._ends:
                found = RunStopped(f"it reached its deadline of {self._deadline:g} seconds", cancelled=False)
                # Closed at once: where the work hangs, it would keep everybody else waiting.
                self._runs.finish(self.run.id, "failed", failure=str(found))
        except SQLAlchemyError:
            # The lease is long enough to miss some beats; the next one tries again.
            _log.warning("index run %s could not renew its lease", self.run.id, exc_info=True)
            return
        self._stopped = self._stopped or found
