"""Index runs: one at a time over all processes, a lease that outlives nobody, and a way to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine

from bot.store.state import opened
from ingest.runs import DIED, Freshness, Kind, Pulse, Run, Runs, RunStopped, State

LEASE = 30.0


class Clock:
    """A clock that stands until it is moved."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = opened(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes(engine: Engine, clock: Clock) -> tuple[Runs, Runs, Runs]:
    """Return what three processes see of the runs."""
    one, two, three = (Runs(engine, name, LEASE, clock) for name in ("one", "two", "three"))
    return one, two, three


def begun(runs: Runs, **more: str) -> Run:
    run = runs.start("sync", **{"why": "command", **more})
    assert run is not None
    return run


def test_one_run_at_a_time_over_all_processes(processes: tuple[Runs, Runs, Runs]) -> None:
    one, two, _ = processes
    run = begun(one, who="U1")
    assert two.start("rebuild", why="slack", who="U2") is None
    running = two.running()
    assert running is not None
    assert (running.id, running.who) == (run.id, "U1")
    assert one.finish(run.id, "failed", failure="why", report={"added": 1})
    assert not two.finish(run.id, "complete")
    latest = two.latest()
    assert latest is not None
    assert (latest.state, latest.failure, latest.report) == ("failed", "why", {"added": 1})
    assert two.start("sync", why="slack", who="U2") is not None


def test_of_many_that_start_at_once_one_does(engine: Engine) -> None:
    started: list[Run | None] = []
    together = threading.Barrier(8)

    def start(name: str) -> None:
        runs = Runs(engine, name, LEASE)
        together.wait()
        started.append(runs.start("sync", why="schedule", slot="docs@1"))

    threads = [threading.Thread(target=start, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 8
    assert len([run for run in started if run]) == 1


def test_a_slot_is_run_once_even_when_its_run_is_over(processes: tuple[Runs, Runs, Runs]) -> None:
    one, two, _ = processes
    run = begun(one, slot="docs@1")
    one.finish(run.id, "complete")
    assert two.start("sync", why="schedule", slot="docs@1") is None
    assert two.slot_taken("docs@1")
    assert not two.slot_taken("docs@2")
    assert two.start("sync", why="schedule", slot="docs@2") is not None


def test_the_lease_of_a_dead_process_ends_and_the_next_one_runs(
    processes: tuple[Runs, Runs, Runs], clock: Clock
) -> None:
    dead, two, _ = processes
    run = begun(dead)
    clock.now += LEASE - 1
    assert two.start("sync", why="command") is None
    assert two.signs(run) == (LEASE - 1, 1)
    clock.now += 2
    assert two.running() is None
    second = begun(two)
    buried = two.get(run.id)
    assert (buried.state, buried.failure) == ("failed", DIED)
    # Who was only thought dead stops at its next beat and cannot close the run of another.
    stopped = dead.beat(run.id, stage="", done=0, uri="")
    assert isinstance(stopped, RunStopped)
    assert not stopped.cancelled
    assert two.get(second.id).state == "running"


def test_a_beat_renews_the_lease_and_tells_how_far_it_is(
    processes: tuple[Runs, Runs, Runs], clock: Clock
) -> None:
    one, two, _ = processes
    run = begun(one)
    for done in range(5):
        clock.now += LEASE - 1
        assert one.beat(run.id, stage="reading docs", done=done, uri=f"docs:{done}.md") is None
    seen = two.running()
    assert seen is not None
    assert (seen.stage, seen.done, seen.uri) == ("reading docs", 4, "docs:4.md")


def test_what_nobody_told_is_taken_over_once(processes: tuple[Runs, Runs, Runs], clock: Clock) -> None:
    dead, one, two = processes
    asked = begun(dead, who="U1")
    clock.now += LEASE - 1
    dead.renew()
    clock.now += LEASE - 1
    assert one.abandoned() == []
    clock.now += 2
    assert [(run.id, run.state) for run in one.abandoned()] == [(asked.id, "failed")]
    assert two.abandoned() == []
    one.told(asked.id)
    clock.now += LEASE * 2
    assert two.abandoned() == []


def test_of_a_run_that_the_clock_started_nobody_has_to_be_told(
    processes: tuple[Runs, Runs, Runs], clock: Clock
) -> None:
    one, two, _ = processes
    run = begun(one)
    clock.now += LEASE * 2
    assert two.abandoned() == []
    assert two.get(run.id).state == "failed"


def test_the_last_success_of_a_source(processes: tuple[Runs, Runs, Runs], clock: Clock) -> None:
    one, *_ = processes
    ended: list[str] = []
    ends: tuple[tuple[list[str], State], ...] = (
        (["docs"], "complete"),
        ([], "complete"),
        (["wiki"], "complete"),
        ([], "failed"),
    )
    for sources, state in ends:
        run = one.start("sync", why="schedule", sources=sources)
        assert run is not None
        clock.now += 5
        one.finish(run.id, state)
        ended.append(run.id)
    found = {name: one.succeeded(name) for name in ("docs", "wiki", "")}
    assert {name: run and run.id for name, run in found.items()} == {
        "docs": ended[1],
        "wiki": ended[2],
        "": ended[1],
    }
    assert found["docs"] is not None
    assert found["docs"].seconds == 5
    assert [run.id for run in one.history(2)] == [ended[3], ended[2]]


def test_a_rollback_takes_back_what_was_read_into_the_index_before_it(
    processes: tuple[Runs, Runs, Runs], clock: Clock
) -> None:
    one, *_ = processes

    def ran(kind: Kind, sources: tuple[str, ...] = (), **report: Any) -> float:
        clock.now += 10
        run = one.start(kind, why="command", sources=sources)
        assert run is not None
        one.finish(run.id, "complete", report=report)
        return clock.now

    first, second = (datetime(2026, 11, 30, hour, tzinfo=UTC) for hour in (9, 10))
    read, again = ran("sync", generation=_made(first)), ran("sync", generation=_made(first))
    newer = ran("rebuild", generation=_made(second))
    assert one.freshness() == Freshness(newer, rolled_back=False)
    assert one.read_at(first) == again > read
    ran("rollback", read_at=one.read_at(first))
    assert one.freshness() == Freshness(again, rolled_back=True)
    success = one.succeeded("docs")
    assert success is not None
    assert success.ended_at == again
    assert [run.kind for run in one.into_live()] == ["sync", "sync"]
    assert (one.late(["docs"], 5), one.late(["docs"], 0)) == (False, False)
    clock.now += 6
    assert one.late(["docs"], 5)
    latest = ran("sync", generation=_made(first))
    assert one.freshness() == Freshness(latest, rolled_back=False)
    assert one.read_at(datetime(2026, 11, 30, 11, tzinfo=UTC)) == 1_796_036_400


def _made(moment: datetime) -> dict[str, str]:
    return {"name": "generation", "created_at": moment.isoformat()}


def test_a_pulse_keeps_the_lease_while_the_work_is_silent(engine: Engine) -> None:
    one, two = (Runs(engine, name, LEASE) for name in ("one", "two"))
    run = begun(one)
    with Pulse(one, run, deadline_seconds=600) as pulse:
        pulse.stage("embedding")
        begun_with, silent = two.get(run.id).due, threading.Event()
        # The test's own limit is for a lease that is never renewed.
        assert any(two.get(run.id).due > begun_with or silent.wait(0.05) for _ in range(6000))
        assert two.start("sync", why="command") is None
        pulse.finish({"added": 1}, ())
    assert two.get(run.id).state == "complete"


def test_a_cancelled_run_stops_at_its_next_document(engine: Engine) -> None:
    runs = Runs(engine, "one", LEASE)
    run = begun(runs)

    def work(pulse: Pulse) -> None:
        pulse.stage("reading docs")
        pulse.progress(1, "docs:a.md")
        asked = Runs(engine, "two", LEASE).cancel("the command line")
        assert asked is not None
        pulse.stage("reading wiki")

    with (
        pytest.raises(RunStopped, match="the command line cancelled it"),
        Pulse(runs, run, deadline_seconds=60) as pulse,
    ):
        work(pulse)
    ended = runs.get(run.id)
    assert (ended.state, ended.ended_at is not None) == ("cancelled", True)
    assert runs.cancel("me") is None


def test_a_run_past_its_deadline_is_closed_though_it_hangs(engine: Engine) -> None:
    runs = Runs(engine, "one", LEASE)
    run = begun(runs)
    hangs = threading.Event()

    def work(pulse: Pulse) -> None:
        while runs.get(run.id).state == "running":
            hangs.wait(0.05)
        assert Runs(engine, "two", LEASE).start("sync", why="command") is not None
        while True:
            hangs.wait(0.05)
            pulse.progress(1, "docs:a.md")

    with (
        pytest.raises(RunStopped, match=r"deadline of 0\.1 seconds"),
        Pulse(runs, run, deadline_seconds=0.1) as pulse,
    ):
        work(pulse)
    assert "deadline" in runs.get(run.id).failure


def test_an_error_closes_the_run_with_its_reason(engine: Engine) -> None:
    runs = Runs(engine, "one", LEASE)
    run = begun(runs)
    with pytest.raises(OSError, match="full"), Pulse(runs, run, deadline_seconds=60):
        raise OSError("the disk is full")
    ended = runs.get(run.id)
    assert (ended.state, ended.failure) == ("failed", "the disk is full")
