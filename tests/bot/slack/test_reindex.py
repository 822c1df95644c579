"""`/twohop`: who may start an index run, that one runs at a time, and that whoever asked is told how it ended."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bot.playground.server import SlackServer
from bot.playground.socket_mode import Delivery
from bot.store.state import opened
from ingest.runs import Runs
from tests.bot.slack.conftest import ADMIN, MEMBER, Bot

REPORT = {
    "ok": True,
    "added": 2,
    "changed": 1,
    "removed": 0,
    "unchanged": 21,
    "skipped": [{"uri": "docs:bad.md", "reason": "not UTF-8 <!channel>"}],
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
        await slack.wait_for(lambda: told(slack), 30)
    (said,) = told(slack)
    assert "2 added, 1 changed, 0 removed, 21 unchanged, 1 skipped" in said
    assert "docs:bad.md: not UTF-8 &lt;!channel&gt;" in said


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
        assert "running" in await twohop(slack, MEMBER, "status")
        go.touch()
        await slack.wait_for(lambda: told(slack), 30)
        assert "2 added" in await done(slack)


async def done(slack: SlackServer) -> str:
    """Ask for the status until the run is closed, which is just after its result was told."""
    while "is running" in (said := await twohop(slack, MEMBER, "status")):
        pass
    return said


async def test_a_failure_is_told_with_its_next_step(slack: SlackServer, bot: Bot) -> None:
    failed = {**REPORT, "ok": False, "failures": ["docs: the folder 'x' is away"]}
    async with bot(reindex=prints(failed, code=1)):
        await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: told(slack), 30)
    (said,) = told(slack)
    assert "the folder 'x' is away" in said
    assert "Next step" in said


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
        await slack.wait_for(lambda: told(slack), 30)
        await done(slack)
        assert "has begun" in await twohop(slack, ADMIN, "reindex")
        await slack.wait_for(lambda: len(told(slack)) == 2, 30)
    assert "its process ended" in told(slack)[0]


async def test_anything_else_is_help(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        assert "/twohop reindex" in await twohop(slack, MEMBER, "")
        assert "sample company" in await twohop(slack, ADMIN, "reindex")


async def test_the_clock_starts_a_run_of_which_nobody_is_told(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    argv = (sys.executable, "-c", f"open({str(ran)!r}, 'w').close(); print({json.dumps(REPORT)!r})")
    async with bot(reindex=argv, every_minutes=0.01) as desk:
        runs = Runs(desk.store.engine, "test", 30)
        while "No index run" in await twohop(slack, MEMBER, "status"):
            pass
        await done(slack)
        latest = runs.latest()
    assert ran.exists()
    assert latest is not None
    assert (latest.who, latest.why) == ("", "schedule")
    assert told(slack) == []
