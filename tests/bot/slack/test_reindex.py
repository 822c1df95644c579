"""`/twohop`: who may start an index run, that one runs at a time, and that whoever asked is told how it ended."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from bot.playground.server import SlackServer
from bot.playground.socket_mode import Delivery
from bot.slack import reindex
from bot.slack.views import REFUSALS
from bot.store.state import opened
from ingest.errors import ConfigError
from ingest.runs import Run, Runs
from ingest.schedule import KILLED
from ingest.types import Where
from tests.bot.slack.conftest import ADMIN, MEMBER, Bot, until

REPORT = {
    "ok": True,
    "added": 2,
    "changed": 1,
    "removed": 0,
    "unchanged": 21,
    "skipped": [{"uri": "docs:bad.md", "reason": "not UTF-8 <!channel>"}],
    "withheld": [{"uri": "docs:new.md", "reason": "draft: true says that it is not published"}],
    "failures": [],
}


def prints(report: object, *, code: int = 0, until: Path | None = None) -> tuple[str, ...]:
    """Return a command that prints a report, once the file `until` is there."""
    wait = f"\nwhile not os.path.exists({str(until)!r}): time.sleep(0.02)" if until else ""
    return (
        sys.executable,
        "-c",
        f"import os, sys, time{wait}\nprint({json.dumps(report)!r})\nsys.exit({code})",
    )


def told(slack: SlackServer, user: str = "D_ADMIN") -> list[str]:
    return [message.text for message in slack.messages(user) if message.user == slack.app.user]


async def twohop(slack: SlackServer, user: str, text: str) -> str:
    delivery: Delivery = await slack.command(user, "C_HELP", "/twohop", text)
    await slack.wait_for(lambda: delivery.acked is not None)
    before = slack.ephemerals(user, "C_HELP")
    return before[-1].text


async def test_an_admin_is_told_the_counts_and_what_was_skipped(slack: SlackServer, bot: Bot) -> None:
    async with bot(reindex=prints(REPORT)):
        assert "has begun" in await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack))
    (said,) = told(slack)
    assert "2 added, 1 changed, 0 removed, 21 unchanged, 1 skipped" in said
    assert "docs:bad.md: not UTF-8 &lt;!channel&gt;" in said
    assert "Kept out:\n" in said
    assert "docs:new.md: draft: true says that it is not published" in said


async def test_somebody_else_gets_a_reason_and_starts_nothing(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    async with bot(reindex=prints(REPORT)) as desk:
        assert "Only this bot's admins" in await twohop(slack, MEMBER, "reindex")
        assert Runs(desk.store.engine, "test", 30).latest() is None


async def test_one_run_at_a_time(slack: SlackServer, bot: Bot, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with bot(reindex=prints(REPORT, until=go)):
        assert "has begun" in await twohop(slack, ADMIN, "reindex")
        assert "already under way since" in await twohop(slack, ADMIN, "reindex")
        assert "running" in await twohop(slack, ADMIN, "status")
        go.touch()
        await slack.wait_for(lambda: told(slack))
        assert "2 added" in await done(slack)


async def done(slack: SlackServer) -> str:
    """Ask for the status until the run is closed, which is just after its result was told."""
    while "is running" in (said := await twohop(slack, ADMIN, "status")):
        pass
    return said


async def test_a_failure_is_told_with_its_next_step(slack: SlackServer, bot: Bot) -> None:
    failed = {**REPORT, "ok": False, "failures": ["docs: the folder 'x' is away"]}
    async with bot(reindex=prints(failed, code=1)):
        await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack))
    (said,) = told(slack)
    assert "the folder 'x' is away" in said
    assert "Next step" in said


async def test_a_message_of_a_failed_run_and_its_notes_are_each_logged_once(
    slack: SlackServer, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    report = json.dumps({**REPORT, "notes": ["sync.golden cannot be read"]})
    program = f"import sys; print({report!r}); sys.exit('loading\\nerror: the disk is full')"
    async with bot(reindex=(sys.executable, "-c", program)):
        await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack))
    (failed,) = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
    assert failed.endswith("it ended with exit code 1: error: the disk is full\nloading")
    assert [
        record for record in caplog.records if record.getMessage().endswith(": sync.golden cannot be read")
    ]


async def test_a_run_that_the_bots_end_interrupts_is_told(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    async with bot(reindex=prints(REPORT, until=tmp_path / "never")):
        await twohop(slack, ADMIN, "reindex")
    (said,) = told(slack)
    assert "the bot was stopped" in said


async def test_a_run_whose_process_died_is_told_by_the_next_start(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    dead = Runs(opened(f"sqlite:///{tmp_path / 'state.db'}"), "dead", 1.0, clock=lambda: time.time() - 100)
    assert dead.start("sync", why="slack", who=ADMIN)
    async with bot(reindex=prints(REPORT)):
        await slack.wait_for(lambda: told(slack))
        await done(slack)
        assert "has begun" in await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: len(told(slack)) == 2)
    assert "its process ended" in told(slack)[0]


async def test_the_status_has_no_counts_for_members_and_nothing_for_outsiders(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot(reindex=prints(REPORT)) as desk:
        await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack))
        await done(slack)
        admin, member = await twohop(slack, ADMIN, "status"), await twohop(slack, MEMBER, "status")
        held = len(desk.index.documents(Where(desk.everyone())))
        outside: Delivery = await slack.command("U_EXT", "C_SHARED", "/twohop", "status")
        await slack.wait_for(lambda: outside.acked is not None)
        (refused,) = slack.ephemerals("U_EXT", "C_SHARED")
    assert f"{held} documents are indexed. The index is of " in admin
    assert "Questions: 0 waiting" in admin
    assert re.fullmatch(r"The index is of \d\d [A-Z][a-z]+, \d\d:\d\d\.", member)
    assert refused.text == REFUSALS["external"]


def test_a_run_that_was_killed_is_not_told_as_something_to_mend_in_the_sources() -> None:
    killed = Run(id="1", kind="sync", sources=[], why="slack", started_at=0, owner="", due=0, state="failed")
    killed.failure = f"{KILLED} 9, as a machine that is short of memory does it"
    said = reindex.told(killed)
    assert "killed by signal 9" in said
    assert "see to the machine's memory" in said
    assert "mend what it names" not in said


async def test_after_a_rollback_the_status_is_that_of_the_index_that_answers(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot(reindex=prints(REPORT)) as desk:
        runs = Runs(desk.store.engine, "test", 30)
        run = runs.start("rollback", why="command")
        assert run
        runs.finish(run.id, "complete", report={"generation": "generation-1", "read_at": 1_796_036_400.0})
        admin, member = await twohop(slack, ADMIN, "status"), await twohop(slack, MEMBER, "status")
    back = "The index was rolled back to the one of 30 November, "
    assert member.startswith(back)
    assert back in admin
    assert "The index was rolled back to generation-1." in admin


async def test_anything_else_is_help(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        assert "/twohop reindex" in await twohop(slack, MEMBER, "")
        assert "sample company" in await twohop(slack, ADMIN, "reindex")


async def test_the_clock_starts_a_run_of_which_nobody_is_told(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    argv = (sys.executable, "-c", f"open({str(ran)!r}, 'w').close(); print({json.dumps(REPORT)!r})")
    async with bot(reindex=argv, sync={"every_minutes": 0.01}) as desk:
        runs = Runs(desk.store.engine, "test", 30)
        while "No index run" in await twohop(slack, ADMIN, "status"):
            pass
        await done(slack)
        latest = runs.latest()
    assert ran.exists()
    assert latest is not None
    assert (latest.who, latest.why) == ("", "schedule")
    assert told(slack) == []


async def test_one_source_is_read_alone_and_another_name_is_none(slack: SlackServer, bot: Bot) -> None:
    async with bot(reindex=prints(REPORT)) as desk:
        assert "There is no source 'wiki'. The sources are: docs, tickets" in await twohop(
            slack, ADMIN, "reindex wiki"
        )
        assert "has begun" in await twohop(slack, ADMIN, "reindex tickets")
        await slack.wait_for(lambda: told(slack))
        latest = Runs(desk.store.engine, "test", 30).latest()
    assert latest is not None
    assert (latest.sources, latest.who, latest.why) == (["tickets"], ADMIN, "slack")


LOGS = (
    "import os, sys, time\n"
    "log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "os.write(log, b'begin\\n'); time.sleep(0.3); os.write(log, b'end\\n'); print('{}')"
)


async def test_two_bots_with_one_schedule_run_each_moment_once(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    argv = (sys.executable, "-c", LOGS, str(log))
    plans = {"every_minutes": 0.02, "schedule": {"tickets": "0.03"}}
    async with bot(reindex=argv, sync=plans) as desk, bot(reindex=argv, sync=plans):
        runs = Runs(desk.store.engine, "test", 30)
        plans_run = {("docs",), ("tickets",)}
        await until(
            lambda: (
                log.exists()
                and log.read_text().count("end") >= 6
                and {tuple(run.sources) for run in runs.history(100)} == plans_run
            )
        )
        # Read before the bots end, which stops the runs under way.
        lines = log.read_text().split()
        rows = runs.history(100)
    begun = [line for line in lines if line == "begin"]
    assert lines[: len(lines) // 2 * 2] == ["begin", "end"] * (len(lines) // 2)
    assert len({run.slot for run in rows}) == len(rows) >= len(begun)
    assert {tuple(run.sources) for run in rows} == plans_run


async def test_a_run_that_hangs_is_cut_at_its_deadline_and_reported(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    argv = prints(REPORT, until=tmp_path / "never")
    async with bot(reindex=argv, sync={"deadline_minutes": 0.02}):
        await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack))
        assert "is failed" in await done(slack)
    (said,) = told(slack)
    assert "it was stopped at its deadline of 1.2 seconds" in said
    assert "Next step" in said


async def test_admins_are_told_once_that_the_index_is_late(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    reason = "docs: the folder 'x' is away"
    earlier = Runs(opened(f"sqlite:///{tmp_path / 'state.db'}"), "earlier", 30)
    run = earlier.start("sync", why="schedule")
    assert run
    assert earlier.finish(run.id, "failed", failure=reason)
    argv = prints({**REPORT, "ok": False, "failures": [reason]}, code=1)
    often = {"every_minutes": 0.01, "lease_seconds": 0.6}
    async with bot(reindex=argv, sync=often) as desk, bot(reindex=argv, sync=often):
        await slack.wait_for(lambda: told(slack))
        before = len(Runs(desk.store.engine, "test", 30).history(100))
        await until(lambda: len(Runs(desk.store.engine, "test", 30).history(100)) > before + 3)
    (said,) = told(slack)
    assert "The index is late: the sources should be read every 0.01 minutes" in said
    assert reason in said
    assert "Next step" in said


async def test_a_plan_for_a_source_that_is_not_there_stops_the_start(slack: SlackServer, bot: Bot) -> None:
    with pytest.raises(ConfigError, match=r"sync\.schedule names 'wiki'; the sources are docs, tickets"):
        async with bot(reindex=prints(REPORT), sync={"schedule": {"wiki": "5"}}):
            pass
    with pytest.raises(ConfigError, match="'soon' cannot be scheduled"):
        async with bot(reindex=prints(REPORT), sync={"schedule": {"docs": "soon"}}):
            pass
