"""The index run as a child process, and the interval: real processes, nothing that asserts on the wall clock."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import ConfigError
from ingest.schedule import KILLED, ChildRun, Plan, Schedule, run_child

LONG = 600.0
"""A deadline that no test reaches."""
STARTED = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
SLEEPS = STARTED + "time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPS
PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1] + '.grand'])\n"
)


def python(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", program, *map(str, arguments)]


async def run(program: str, *arguments: object, deadline: float = LONG, **more: Any) -> ChildRun:
    return await run_child(python(program, *arguments), deadline_seconds=deadline, **more)


def written(path: Path) -> bool:
    return path.is_file() and bool(path.read_text())


async def run_late(ready: Path, program: str, *arguments: object, grace_seconds: float) -> ChildRun:
    """Run into a deadline that comes after the program wrote `ready`, however slowly this machine starts it."""
    deadline = 2.0
    while True:
        found = await run(program, *arguments, deadline=deadline, grace_seconds=grace_seconds)
        assert not found.ok
        assert found.reason == f"it was stopped at its deadline of {deadline:g} seconds"
        if written(ready):
            return found
        deadline *= 4


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; the test's own limit is for a condition that never comes."""
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("what was waited for did not come")


def pid_in(path: Path) -> Callable[[], int]:
    return lambda: int(path.read_text() or 0) if path.is_file() else 0


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    # An orphan that nobody has reaped yet is dead all the same.
    return state != "Z"


async def test_the_report_is_the_last_line_that_is_an_object() -> None:
    program = 'print("{\\"added\\": 1}"); print("{\\"added\\": 2, \\"text\\": \\"a\\u2028b\\"}"); print("[3]"); print("{broken")'
    found = await run(program)
    assert found.ok
    assert found.returncode == 0
    assert found.report == {"added": 2, "text": "a\u2028b"}
    assert found.reason == ""


@pytest.mark.parametrize("program", ["pass", "print('done')", "print('[1, 2]')", "print('{' * 100_000)"])
async def test_without_a_report_a_run_is_not_ok(program: str) -> None:
    found = await run(program)
    assert (found.ok, found.returncode, found.report) == (False, 0, None)
    assert found.reason == "it printed no report"


async def test_a_failed_run_keeps_its_report_and_says_its_last_line() -> None:
    found = await run(
        "import sys; print('{\"ok\": false}'); print('first\\nerror: the disk is full', file=sys.stderr); sys.exit(2)"
    )
    assert (found.ok, found.returncode, found.report) == (False, 2, {"ok": False})
    assert found.output == "first\nerror: the disk is full"
    assert found.reason == "it ended with exit code 2: error: the disk is full"


async def test_a_child_that_was_killed_is_told_from_one_that_failed() -> None:
    found = await run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert found.returncode == -9
    assert found.reason.startswith(f"{KILLED} 9, as a machine that is short of memory does")


async def test_a_command_that_is_not_there_is_a_failed_run() -> None:
    found = await run_child(["/nowhere/twohop"], deadline_seconds=LONG)
    assert (found.ok, found.returncode, found.report) == (False, None, None)
    assert "'/nowhere/twohop' cannot be started" in found.reason


async def test_of_a_flood_only_the_end_is_kept() -> None:
    flood = "import sys\nfor i in range(200_000): print('x' * 50, file=sys.stderr); print('y' * 50)\n"
    found = await run(flood + "print('{\"added\": 7}'); print('last', file=sys.stderr)")
    assert found.report == {"added": 7}
    assert len(found.output) <= 16_000
    assert found.output.endswith("x\nlast")


async def test_output_that_is_no_text_is_shown_as_far_as_it_is() -> None:
    found = await run(
        "import os; os.write(2, b'\\xff\\xfe no text'); os.write(1, b'\\xff\\n{\"added\": 1}\\n')"
    )
    assert found.ok
    assert found.output.endswith("no text")


async def test_the_child_is_nice_has_one_thread_and_a_group_of_its_own() -> None:
    program = (
        "import json, os, sys; print(json.dumps({'nice': os.getpriority(os.PRIO_PROCESS, 0), 'group': os.getpgrp(), "
        "'pid': os.getpid(), 'session': os.getsid(0), 'env': dict(os.environ), 'stdin': sys.stdin.read()}))"
    )
    # The child waits for a moment of its own: its niceness is set right after it has started.
    found = await run("import time; time.sleep(0.2)\n" + program, env={"TOKEN": "s3cret"})
    assert found.report is not None
    assert found.report["nice"] == min(19, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
    assert found.report["group"] == found.report["pid"] != os.getpgrp()
    assert found.report["session"] == os.getsid(0)
    assert found.report["stdin"] == ""
    assert found.report["env"]["OMP_NUM_THREADS"] == "1"
    assert found.report["env"]["TOKEN"] == "s3cret"
    assert "HOME" not in found.report["env"]


async def test_torch_counts_one_thread_in_the_child() -> None:
    found = await run("import torch; print('{\"threads\": %d}' % torch.get_num_threads())")
    assert found.report == {"threads": 1}


@pytest.mark.parametrize(("program", "returncode"), [(SLEEPS, -signal.SIGTERM), (DEAF, -signal.SIGKILL)])
async def test_at_the_deadline_the_child_is_ended(program: str, returncode: int, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    found = await run_late(started, program, started, grace_seconds=0.2)
    assert (found.returncode, found.report) == (returncode, None)
    assert not alive(int(started.read_text()))


async def test_a_child_that_ends_well_when_asked_to_was_late_all_the_same(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('{\"added\": 1}'), sys.exit(0)))\n"
    ) + SLEEPS
    found = await run_late(tmp_path / "pid", program, tmp_path / "pid", grace_seconds=60)
    assert (found.returncode, found.report) == (0, {"added": 1})


async def test_at_the_deadline_grandchildren_are_killed_too(tmp_path: Path) -> None:
    grandchild = tmp_path / "pid.grand"
    await run_late(grandchild, PARENT + "child.wait()", tmp_path / "pid", DEAF, grace_seconds=0.2)
    await until(lambda: not alive(pid_in(grandchild)()))


async def test_what_a_child_leaves_running_is_killed_and_does_not_hold_up_its_report(tmp_path: Path) -> None:
    wait = (
        "import pathlib, time\nwhile not pathlib.Path(sys.argv[1] + '.grand').is_file(): time.sleep(0.01)\n"
    )
    found = await run(PARENT + wait + "print('{\"added\": 1}')", tmp_path / "pid", DEAF)
    assert (found.ok, found.report) == (True, {"added": 1})
    await until(lambda: not alive(pid_in(tmp_path / "pid.grand")()))


async def test_a_process_that_left_the_group_does_not_hold_up_the_report(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print('{\"pid\": %d}' % child.pid)"
    )
    found = await run(program)
    assert found.report is not None
    try:
        assert found.ok
        assert alive(found.report["pid"])
    finally:
        os.kill(found.report["pid"], signal.SIGKILL)


async def test_a_cancelled_caller_leaves_no_process(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    task = asyncio.create_task(run(PARENT + "child.wait()", started, DEAF, grace_seconds=0.2))
    grand = pid_in(tmp_path / "pid.grand")
    await until(grand)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(grand()))


async def test_a_caller_cancelled_twice_leaves_no_process(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    task = asyncio.create_task(run(DEAF, started, grace_seconds=LONG))
    await until(pid_in(started))
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.05)
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(pid_in(started)()))


# --- the schedule ----------------------------------------------------------------------------------------------

MOMENT = datetime(2026, 11, 30, 9, tzinfo=UTC)
LOGS = (
    "import os, sys, time\n"
    "log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "os.write(log, b'begin\\n'); time.sleep(float(sys.argv[2])); os.write(log, b'end\\n'); print('{}')"
)


EVERY_SECOND = Plan("docs", str(1 / 60))


def schedule(program: str, *arguments: object, plan: Plan = EVERY_SECOND) -> Schedule:
    async def runs(_plan: Plan, _slot: str) -> ChildRun:
        return await run(program, *arguments, grace_seconds=0.2)

    return Schedule(runs, [plan])


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.is_file() else []


async def test_a_plan_runs_again_and_again_and_never_two_at_a_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ingest.schedule")
    log = tmp_path / "log"
    # Each run takes longer than the interval.
    timed = schedule(LOGS, log, 0.3, plan=Plan("docs", "0.002"))
    timed.start()
    try:
        await until(lambda: lines(log).count("end") >= 3)
    finally:
        await timed.stop(wait_seconds=LONG)
    found = lines(log)
    assert found == ["begin", "end"] * (len(found) // 2)
    left_out = r"no index run of 'docs' is started: the last one is under way since \d{4}-.*; the next one is due at \d{4}-"
    assert re.search(left_out, caplog.text)
    again = len(found)
    await asyncio.sleep(0.3)
    assert len(lines(log)) == again


async def test_plans_are_independent_and_each_is_told_its_slot() -> None:
    seen: list[tuple[str, str]] = []

    async def note(plan: Plan, slot: str) -> ChildRun | None:
        seen.append((plan.name, slot))
        return None

    timed = Schedule(note, [Plan("docs", "0.003"), Plan("wiki", "0.005")])
    timed.start()
    await until(lambda: {"docs", "wiki"} <= {name for name, _ in seen} and len(seen) > 6)
    await timed.stop()
    assert all(slot.startswith(f"{name}@") for name, slot in seen)
    assert len(set(seen)) == len(seen)


async def test_what_was_missed_runs_at_once() -> None:
    seen: list[str] = []

    async def note(plan: Plan, slot: str) -> ChildRun | None:
        seen.append(slot)
        return None

    plans = [Plan("docs", "600"), Plan("wiki", "600")]
    timed = Schedule(note, plans, now=lambda: MOMENT)
    timed.start(at_once=plans[:1])
    await until(lambda: seen)
    await timed.stop()
    assert seen == ["docs@2026-11-30T00:00:00+00:00"]


MADRID = ZoneInfo("Europe/Madrid")


@pytest.mark.parametrize(
    ("when", "now", "due"),
    [
        ("60", "2026-11-30T09:59:59+00:00", "2026-11-30T09:00:00+00:00"),
        ("60", "2026-11-30T10:00:00+00:00", "2026-11-30T10:00:00+00:00"),
        ("90", "2026-11-30T10:00:00+00:00", "2026-11-30T09:00:00+00:00"),
        ("0 3 * * *", "2026-11-30T01:30:00+00:00", "2026-11-29T02:00:00+00:00"),
        ("0 3 * * *", "2026-11-30T02:00:00+00:00", "2026-11-30T02:00:00+00:00"),
        # In summer the desk is two hours ahead.
        ("0 3 * * *", "2026-07-30T02:30:00+00:00", "2026-07-30T01:00:00+00:00"),
        # 30 November 2026 is a Monday, the day before a Sunday, which cron calls 0 or 7.
        ("0 3 * * 0", "2026-11-30T09:00:00+00:00", "2026-11-29T02:00:00+00:00"),
        ("0 3 * * 7", "2026-11-30T09:00:00+00:00", "2026-11-29T02:00:00+00:00"),
        ("0 3 * * 1-5", "2026-11-30T09:00:00+00:00", "2026-11-30T02:00:00+00:00"),
        ("0 3 * * mon-fri", "2026-11-29T09:00:00+00:00", "2026-11-27T02:00:00+00:00"),
        ("*/15 * * * *", "2026-11-30T09:44:00+00:00", "2026-11-30T09:30:00+00:00"),
        ("0 0 1 1 *", "2026-11-30T09:44:00+00:00", "2025-12-31T23:00:00+00:00"),
    ],
)
def test_the_slot_is_the_latest_moment_that_was_due(when: str, now: str, due: str) -> None:
    async def nothing(_plan: Plan, _slot: str) -> ChildRun | None:
        return None

    plan = Plan("docs", when)
    timed = Schedule(nothing, [plan], zone=MADRID, now=lambda: datetime.fromisoformat(now))
    assert timed.slot(plan) == f"docs@{due}"


def timed_at(now: datetime, when: str, zone: str = "UTC") -> tuple[Schedule, Plan]:
    async def nothing(_plan: Plan, _slot: str) -> ChildRun | None:
        return None

    plan = Plan("docs", when)
    return Schedule(nothing, [plan], zone=ZoneInfo(zone), now=lambda: now), plan


def slot_at(now: datetime, when: str, zone: str) -> datetime:
    timed, plan = timed_at(now, when, zone)
    return datetime.fromisoformat(timed.slot(plan).removeprefix("docs@"))


MINUTE = timedelta(minutes=1)
CHANGES = (
    ("Europe/Madrid", "2026-03-29T01:00:00+00:00"),
    ("Europe/Madrid", "2026-10-25T01:00:00+00:00"),
    ("America/New_York", "2026-03-08T07:00:00+00:00"),
    ("America/New_York", "2026-11-01T06:00:00+00:00"),
    # Half an hour.
    ("Australia/Lord_Howe", "2026-04-04T15:00:00+00:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00+00:00"),
    # At midnight.
    ("America/Havana", "2026-03-08T05:00:00+00:00"),
    ("America/Havana", "2026-11-01T05:00:00+00:00"),
    # 30 December 2011 was no day there.
    ("Pacific/Apia", "2011-12-30T10:00:00+00:00"),
    ("Asia/Kathmandu", "2026-10-25T01:00:00+00:00"),
    ("UTC", "2026-10-25T01:00:00+00:00"),
)


def fits(field: str, value: int) -> bool:
    """Match a field of a cron line; no more of them than are drawn here."""
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    return field == "*" or value in map(int, field.split(","))


def is_due(line: str, zone: ZoneInfo, moment: datetime) -> bool:
    """Tell by looking at one minute of the clock on the wall whether a line of minute and hour is due."""
    minute, hour, *_ = line.split()

    def shown(wall: datetime) -> bool:
        return fits(minute, wall.minute) and fits(hour, wall.hour)

    wall = moment.astimezone(zone)
    if hour == "*":
        return shown(wall)
    before = (moment - MINUTE).astimezone(zone).replace(tzinfo=None) + MINUTE
    skipped = range(max(0, (wall.replace(tzinfo=None) - before) // MINUTE))
    return (shown(wall) and not wall.fold) or any(shown(before + at * MINUTE) for at in skipped)


lines_of_cron = st.builds(
    "{} {} * * *".format,
    st.sampled_from(["0", "30", "59", "5,35", "*", "*/15", "*/7"]),
    st.sampled_from(["*", "0", "1", "2", "3", "23", "1,2", "2,3", "*/2", "*/6"]),
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CHANGES), lines_of_cron, st.integers(-30 * 3600, 30 * 3600), st.integers(0, 4 * 3600))
def test_a_cron_lines_slot_is_its_latest_moment_on_either_side_of_a_change_of_clock(
    change: tuple[str, str], line: str, seconds: int, later: int
) -> None:
    name, at = change
    zone = ZoneInfo(name)
    now = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    slot = slot_at(now, line, name)
    latest = now.replace(second=0)
    while not is_due(line, zone, latest):
        latest -= MINUTE
    assert slot == latest
    # Another process reads the same moment off another clock, and names the same slot.
    assert slot == slot_at(now.astimezone(zone), line, name)
    assert slot <= slot_at(now + timedelta(seconds=later), line, name)
    timed, plan = timed_at(now, line, name)
    due = timed.due(plan)
    assert due is not None
    following = now.replace(second=0) + MINUTE
    while not is_due(line, zone, following):
        following += MINUTE
    assert due == following > now
    assert timed.period_seconds(plan) > 0


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.integers(1, 10_000), st.floats(0.0001, 100)),
    st.sampled_from(CHANGES),
    st.integers(-(10**11), 10**11),
)
def test_an_intervals_slot_is_its_latest_moment(minutes: float, change: tuple[str, str], micros: int) -> None:
    step = timedelta(minutes=minutes)
    now = (datetime.fromisoformat(change[1]) + timedelta(microseconds=micros)).astimezone(ZoneInfo(change[0]))
    timed, plan = timed_at(now, str(minutes), change[0])
    slot, due = slot_at(now, str(minutes), change[0]), timed.due(plan)
    assert due is not None
    assert slot.astimezone(UTC) <= now.astimezone(UTC) < due
    assert due - slot == step
    assert timed.period_seconds(plan) == step.total_seconds()


@pytest.mark.parametrize(("zone", "at"), CHANGES)
@pytest.mark.parametrize(
    ("line", "most"), [("30 * * * *", 60), ("*/20 * * * *", 60), ("30 2 * * *", 24 * 60)]
)
def test_a_cron_line_is_due_once_in_a_repeated_hour_and_never_too_late_in_a_skipped_one(
    zone: str, at: str, line: str, most: int
) -> None:
    """The whole series of moments around a change of clock: as many as there are days, or as time that passes."""
    now, end = (datetime.fromisoformat(at) + timedelta(days=days) for days in (-3, 3))
    found = []
    while now < end:
        timed, plan = timed_at(now, line, zone)
        due = timed.due(plan)
        assert due is not None
        found.append(now := due)
    gaps = [(later - earlier) / MINUTE for earlier, later in pairwise(found)]
    assert min(gaps) > 0
    assert max(gaps) <= most + 60
    if most > 60:
        days = [moment.astimezone(ZoneInfo(zone)).date() for moment in found]
        # A day that was skipped as a whole is made up for at the beginning of the next.
        assert len(days) - len(set(days)) == (zone == "Pacific/Apia")


@pytest.mark.parametrize(
    "now", ["2026-10-25T00:40:00+00:00", "2026-10-25T01:40:00+00:00", "2026-10-25T12:00:00+00:00"]
)
async def test_a_start_on_the_day_that_clocks_go_back_leaves_the_event_loop_alive(now: str) -> None:
    seen: list[str] = []

    async def note(_plan: Plan, slot: str) -> ChildRun | None:
        seen.append(slot)
        return None

    plans = [Plan("docs", "30 2 * * *"), Plan("wiki", "15 * * * *")]
    timed = Schedule(note, plans, zone=MADRID, now=lambda: datetime.fromisoformat(now))
    timed.start(at_once=plans)
    await until(lambda: len(seen) == 2)
    await timed.stop()
    assert seen[0] == "docs@2026-10-25T00:30:00+00:00"


def test_a_plan_that_is_due_every_minute_of_a_month_is_found_at_once() -> None:
    """Nothing counts through the moments that are past: a line of a month ago, and one a thousand times a second."""
    at = datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert slot_at(at, "* * * 1 *", "UTC") == datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    assert slot_at(at, "0.00001", "UTC") == at


@pytest.mark.parametrize(
    ("when", "seconds"), [("15", 900), ("0 3 * * *", 86_400), ("0 3 * * 0", 7 * 86_400), ("0.5", 30)]
)
def test_the_time_between_two_moments(when: str, seconds: float) -> None:
    plan = Plan("docs", when)
    assert schedule("pass", plan=plan).period_seconds(plan) == seconds


async def test_stop_kills_a_run_that_does_not_end(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    timed = schedule(DEAF, started)
    timed.start(at_once=[EVERY_SECOND])
    await until(pid_in(started))
    await timed.stop()
    assert not alive(pid_in(started)())
    await timed.stop()


async def test_stop_waits_for_a_run_that_ends_in_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    timed = schedule(LOGS, log, 0.2)
    timed.start(at_once=[EVERY_SECOND])
    await until(lambda: lines(log))
    await timed.stop(wait_seconds=LONG)
    assert lines(log) == ["begin", "end"]


async def test_how_each_run_ended_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ingest.schedule")

    async def broken(_plan: Plan, _slot: str) -> ChildRun:
        raise ValueError("a bug")

    async def others(_plan: Plan, _slot: str) -> None:
        return None

    rare = Plan("docs", "600")
    for timed in (
        schedule("print('{}')", plan=rare),
        schedule("import sys; sys.exit('error: no folder')", plan=rare),
        Schedule(broken, [rare]),
        Schedule(others, [rare]),
    ):
        timed.start(at_once=[rare])
        await timed.stop(wait_seconds=LONG)
    records = [record for record in caplog.records if record.name == "ingest.schedule"]
    assert [record.levelname for record in records] == ["INFO", "ERROR", "ERROR", "INFO"]
    assert records[1].getMessage().endswith("it ended with exit code 1: error: no folder")
    assert records[2].exc_info is not None
    assert "another process" in records[3].getMessage()


@pytest.mark.parametrize(
    "when",
    [
        "0",
        "-5",
        "nan",
        "0.000000001",
        "1e300",
        "",
        "soon",
        "0 3 * *",
        "61 3 * * *",
        "0 0 30 2 *",
        "0 3 * * 9",
    ],
)
def test_a_plan_that_is_none_is_refused(when: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(when))):
        schedule("pass", plan=Plan("docs", when))


async def test_a_long_report_survives_the_way_through_a_pipe(tmp_path: Path) -> None:
    report = {"skipped": [{"uri": f"docs:página {i}.md", "reason": "no text"} for i in range(5000)]}
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report, ensure_ascii=False), "utf-8")
    found = await run(
        "import pathlib, sys; sys.stdout.buffer.write(pathlib.Path(sys.argv[1]).read_bytes())", file
    )
    assert found.report == report
