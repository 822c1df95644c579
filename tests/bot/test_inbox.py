"""The inbox: each message once, one at a time in a thread, and nothing lost with a process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Engine, event

from bot.store import Inbound, Inbox
from bot.store.state import opened


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = opened(database_url)
    yield engine
    engine.dispose()


def message(ts: str, root: str = "", *, event_id: str = "", channel: str = "C", user: str = "U") -> Inbound:
    return Inbound(event_id or f"Ev{ts}", "T", channel, "channel", user, "text", ts, root or ts)


def test_a_message_is_kept_once_by_its_event_and_by_its_place(engine: Engine) -> None:
    inbox = Inbox(engine, "a", 30)
    assert inbox.put(message("1"))
    assert not inbox.put(message("1"))
    assert not inbox.put(message("1", event_id="Ev-twin"))
    assert not inbox.put(message("2", event_id="Ev1"))
    assert inbox.put(message("1", event_id="Ev-other", channel="C2"))
    assert inbox.counts() == {"new": 2}


def test_a_thread_is_answered_one_after_the_other_and_threads_at_the_same_time(engine: Engine) -> None:
    one, two = Inbox(engine, "a", 30), Inbox(engine, "b", 30)
    for inbound in (message("2", "1"), message("1"), message("3")):
        one.put(inbound)
    first, other = one.claim(), two.claim()
    assert first is not None
    assert other is not None
    assert {first.ts, other.ts} == {"1", "3"}
    assert one.claim() is None
    first = first if first.ts == "1" else other
    owner = one if first.owner == "a" else two
    assert owner.sending(first, [], "turn1")
    assert one.claim() is None
    assert owner.finish(first)
    follow_up = two.claim()
    assert follow_up is not None
    assert follow_up.ts == "2"
    assert two.last_turn(follow_up) == "turn1"


def test_one_person_with_many_questions_keeps_nobody_waiting(engine: Engine) -> None:
    clock = Clock()
    inbox = Inbox(engine, "a", 30, clock)
    for ts, user in (("1", "U1"), ("2", "U1"), ("3", "U1"), ("4", "U2"), ("5", "U2")):
        clock.now += 1
        inbox.put(message(ts, user=user))
    taken = [row.ts for _ in range(5) if (row := inbox.claim())]
    assert taken == ["1", "4", "2", "5", "3"]


def test_a_message_that_comes_late_waits_for_the_one_under_way(engine: Engine) -> None:
    one, two = Inbox(engine, "a", 30), Inbox(engine, "b", 30)
    one.put(message("2", "1"))
    assert one.claim()
    one.put(message("1"))
    assert two.claim() is None


def test_many_processes_take_each_row_once(engine: Engine) -> None:
    boxes = [Inbox(engine, f"p{n}", 30) for n in range(4)]
    for n in range(40):
        boxes[0].put(message(str(n), str(n % 8)))
    taken: list[str] = []

    def work(inbox: Inbox) -> None:
        while inbox.counts().get("done", 0) < 40:
            row = inbox.claim()
            if row is None:
                continue
            taken.append(row.id)
            assert inbox.sending(row, [])
            assert inbox.finish(row)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, inbox) for inbox in boxes]:
            done.result()
    assert len(taken) == len(set(taken)) == 40
    assert boxes[0].counts() == {"done": 40}


def test_a_row_of_a_dead_process_is_taken_over_when_its_lease_ends(engine: Engine) -> None:
    clock = Clock()
    dead, alive = Inbox(engine, "dead", 30, clock), Inbox(engine, "alive", 30, clock)
    dead.put(message("1"))
    row = dead.claim()
    assert row is not None
    clock.now += 29
    assert alive.claim() is None
    assert dead.renew([row.id]) == {row.id: False}
    clock.now += 29
    assert alive.claim() is None
    clock.now += 2
    taken = alive.claim()
    assert taken is not None
    assert (taken.state, taken.tries) == ("working", 2)
    assert dead.renew([row.id]) == {}
    assert not dead.sending(row, [])
    assert alive.sending(taken, [{"text": "x"}])
    clock.now += 31
    again = dead.claim()
    assert again is not None
    assert (again.state, again.parts) == ("sending", [{"text": "x"}])
    assert not alive.posting(taken)
    assert not alive.finish(taken)
    assert dead.finish(again)


def test_what_is_given_back_is_taken_at_once_and_costs_no_try(engine: Engine) -> None:
    one, two = Inbox(engine, "a", 30), Inbox(engine, "b", 30)
    one.put(message("1"))
    one.put(message("2"))
    first, second = one.claim(), one.claim()
    assert first is not None
    assert second is not None
    one.sending(second, [{"text": "x"}])
    one.release()
    taken = {row.ts: row for row in (two.claim(), two.claim()) if row}
    assert (taken["1"].state, taken["1"].tries) == ("working", 1)
    assert (taken["2"].state, taken["2"].parts) == ("sending", [{"text": "x"}])


def test_what_could_not_be_posted_waits_and_holds_its_thread(engine: Engine) -> None:
    clock = Clock()
    inbox = Inbox(engine, "a", 30, clock)
    inbox.put(message("1"))
    inbox.put(message("2", "1"))
    row = inbox.claim()
    assert row is not None
    inbox.sending(row, [])
    assert inbox.posting(row)
    assert inbox.later(row, 60, "ratelimited")
    clock.now += 59
    assert inbox.claim() is None
    clock.now += 2
    again = inbox.claim()
    assert again is not None
    assert (again.ts, again.posts, again.error) == ("1", 1, "ratelimited")


def test_a_stop_reaches_what_waits_and_what_is_being_answered_in_its_thread_only(engine: Engine) -> None:
    inbox = Inbox(engine, "a", 30)
    for inbound in (message("1"), message("2", "1"), message("3")):
        inbox.put(inbound)
    first, other = inbox.claim(), inbox.claim()
    assert first is not None
    assert other is not None
    inbox.stop("T", "C", "1")
    held = inbox.renew([first.id, other.id])
    assert held == {row.id: row.ts == "1" for row in (first, other)}
    row = first if first.ts == "1" else other
    inbox.finish(row)
    waiting = inbox.claim()
    assert waiting is not None
    assert (waiting.ts, waiting.stopped) == ("2", True)


def test_a_row_that_another_process_closes_between_a_look_and_a_claim_stays_closed(engine: Engine) -> None:
    one, two = Inbox(engine, "a", 30), Inbox(engine, "b", 30)
    one.put(message("2", "1"))
    one.put(message("3"))

    looked = False

    @event.listens_for(engine, "before_cursor_execute")
    def meanwhile(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        """Begin an earlier message of the first thread, so that its second cannot be, and close the other thread's."""
        nonlocal looked
        if looked or not statement.startswith("UPDATE inbox"):
            return
        looked = True
        two.put(message("1"))
        taken = {row.ts: row for row in (two.claim(), two.claim()) if row}
        assert two.sending(taken["3"], [])
        assert two.finish(taken["3"])

    assert one.claim() is None
    assert two.counts() == {"new": 1, "working": 1, "done": 1}


@pytest.mark.postgres
def test_connections_that_the_server_cut_are_replaced(postgres_url: str) -> None:
    engine = opened(postgres_url)
    inbox = Inbox(engine, "a", 30)
    assert inbox.put(message("1"))
    with psycopg.connect(postgres_url) as admin:
        cut = admin.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert cut == [(True,)]
    assert inbox.put(message("2"))
    engine.dispose()
