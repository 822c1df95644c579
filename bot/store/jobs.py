"""Jobs: index runs that somebody or the clock asked for, one at a time over all processes."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence

from sqlalchemy import Column, Engine, Index, Text, text, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Field, Session, SQLModel, col, select

from bot.store.state import STATE


class Job(SQLModel, table=True):
    """One job; it is running until its result has been told to whoever asked for it."""

    __table_args__ = (
        Index(
            "job_one_at_a_time",
            "kind",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
    )
    metadata = STATE

    id: str = Field(primary_key=True)
    kind: str
    user: str
    """Whoever asked, or an empty string for the clock."""
    started_at: float
    """Unix seconds, like every time here."""
    state: str = "running"
    owner: str
    due: float
    """The end of the lease."""
    result: str = Field(default="", sa_column=Column(Text, nullable=False))


class Jobs:
    """Reads and writes jobs for one process; `lease` is how many seconds a job lives without a renewal."""

    def __init__(
        self, engine: Engine, owner: str, lease: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self.owner = owner
        self.lease = lease
        self._clock = clock

    def start(self, kind: str, user: str) -> Job | None:
        """Start a job, or return None where one of its kind runs already."""
        now = self._clock()
        job = Job(
            id=uuid.uuid4().hex[:12],
            kind=kind,
            user=user,
            started_at=now,
            owner=self.owner,
            due=now + self.lease,
        )
        try:
            with Session(self._engine, expire_on_commit=False) as session:
                session.add(job)
                session.commit()
        except IntegrityError:
            return None
        return job

    def running(self, kind: str) -> Job | None:
        """Return the job of a kind that is under way."""
        with Session(self._engine) as session:
            return session.exec(select(Job).where(Job.kind == kind, Job.state == "running")).first()

    def latest(self, kind: str) -> Job | None:
        """Return the job of a kind that was started last."""
        query = select(Job).where(Job.kind == kind).order_by(col(Job.started_at).desc()).limit(1)
        with Session(self._engine) as session:
            return session.exec(query).first()

    def renew(self) -> None:
        """Renew the lease of this process's jobs."""
        with Session(self._engine) as session:
            session.execute(
                update(Job)
                .where(col(Job.owner) == self.owner, col(Job.state) == "running")
                .values(due=self._clock() + self.lease)
                .execution_options(synchronize_session=False)
            )
            session.commit()

    def finish(self, job: Job, *, failed: bool, result: str) -> bool:
        """Close a job with its result; False where it is not this process's own any more."""
        with Session(self._engine) as session:
            changed = session.execute(
                update(Job)
                .where(col(Job.id) == job.id, col(Job.owner) == self.owner, col(Job.state) == "running")
                .values(state="failed" if failed else "done", result=result)
                .execution_options(synchronize_session=False)
            )
            session.commit()
        return bool(changed.rowcount)  # type: ignore[attr-defined]

    def abandoned(self) -> Sequence[Job]:
        """Take over the jobs whose process died, to tell whoever asked for them."""
        now = self._clock()
        taken: list[Job] = []
        with Session(self._engine, expire_on_commit=False) as session:
            for job in session.exec(select(Job).where(Job.state == "running", Job.due < now)).all():
                changed = session.execute(
                    update(Job)
                    .where(col(Job.id) == job.id, col(Job.owner) == job.owner, col(Job.due) == job.due)
                    .values(owner=self.owner, due=now + self.lease)
                    .execution_options(synchronize_session=False)
                )
                if changed.rowcount:  # type: ignore[attr-defined]
                    taken.append(job)
            session.commit()
        return taken
