"""`twohop serve`: it starts only with tokens that work, says as whom, and ends without losing a question."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest

from bot.app import Desk
from bot.playground.server import SlackServer
from bot.playground.workspace import App, Workspace
from bot.slack.app import manifest
from bot.store.state import opened
from ingest.embed import Embedder
from ingest.runs import DIED, Run, Runs
from tests import postgres
from tests.bot.slack.conftest import PATIENCE, SUPPORT, Bot, replies

ROOT = Path(__file__).parents[3]
T = TypeVar("T")


def environment(data: Path, slack: SlackServer, state: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TWOHOP_", "SLACK_"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "TWOHOP_DATA": str(data),
        "DATABASE_URL": f"sqlite:///{state / 'state.db'}",
        "SLACK_BOT_TOKEN": slack.bot_token,
        "SLACK_APP_TOKEN": slack.app_token,
        "TWOHOP_SLACK__API_URL": slack.api_url,
        "TWOHOP_SYNC__EVERY_MINUTES": "0",
        **more,
    }


@asynccontextmanager
async def served(env: dict[str, str], cwd: Path, log: Path | None = None) -> AsyncIterator[Process]:
    """Run `twohop serve` as a process of its own; it is killed at the end if it still runs.

    What it says goes to `log`, or is kept for `output`.
    """
    with log.open("wb") if log else nullcontext(asyncio.subprocess.PIPE) as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bot.cli", "serve", env=env, cwd=cwd, stderr=stderr
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def output(process: Process) -> str:
    """Wait for the process's end and return what it said."""
    _, said = await asyncio.wait_for(process.communicate(), 120)
    return said.decode()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"SLACK_BOT_TOKEN": ""}, ["SLACK_BOT_TOKEN is not set", "xoxb-"]),
        ({"SLACK_APP_TOKEN": ""}, ["SLACK_APP_TOKEN is not set", "connections:write"]),
        ({"SLACK_BOT_TOKEN": "xapp-1"}, ["SLACK_BOT_TOKEN begins with 'xapp-'", "OAuth & Permissions"]),
        ({"SLACK_APP_TOKEN": "xoxb-secret"}, ["SLACK_APP_TOKEN begins with 'xoxb-'", "App-Level Tokens"]),
        ({"SLACK_BOT_TOKEN": "xoxb-wrong-secret"}, ["SLACK_BOT_TOKEN", "invalid_auth"]),
        ({"SLACK_APP_TOKEN": "xapp-wrong-secret"}, ["SLACK_APP_TOKEN", "invalid_auth"]),
        ({"TWOHOP_SLACK__API_URL": "http://127.0.0.1:9/api/"}, ["cannot be reached", "127.0.0.1:9"]),
    ],
)
async def test_a_token_that_does_not_work_stops_the_start_and_names_the_fix(
    sample: Desk, tmp_path: Path, more: dict[str, str], named: list[str]
) -> None:
    async with (
        SlackServer(Workspace.sample(), App.from_manifest(manifest()), ack_seconds=PATIENCE) as slack,
        served(environment(sample.settings.data, slack, tmp_path, **more), tmp_path) as process,
    ):
        said = await output(process)
    assert process.returncode == 2
    for words in named:
        assert words in said
    assert "secret" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("method", "error", "named"),
    [
        ("auth.test", "not_allowed_token_type", "SLACK_BOT_TOKEN"),
        ("auth.test", "token_revoked", "SLACK_BOT_TOKEN"),
        ("auth.test", "account_inactive", "SLACK_BOT_TOKEN"),
        ("apps.connections.open", "not_allowed_token_type", "SLACK_APP_TOKEN"),
        ("apps.connections.open", "missing_scope", "connections:write"),
    ],
)
async def test_what_slack_answers_to_a_token_is_named(
    slack: SlackServer, bot: Bot, method: str, error: str, named: str
) -> None:
    from ingest.errors import ConfigError

    slack.fail(method, error)
    with pytest.raises(ConfigError, match=named) as caught:
        async with bot():
            raise AssertionError("it started")
    assert error in str(caught.value)


async def test_the_embedding_model_is_loaded_before_a_question_waits_for_it(
    sample: Desk, slack: SlackServer, tmp_path: Path
) -> None:
    from bot.app import build
    from bot.slack.app import serve
    from ingest.embed import embedder_for
    from tests.bot.slack.conftest import settings_of

    settings, said = settings_of(sample, slack, tmp_path), list[str]()
    desk = build(settings, embedder_for(settings.embedding, on_load=said.append))
    ready = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        if "answering" in line:
            ready.set()

    serving = asyncio.create_task(serve(desk, reindex=(), say=say))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, waiting):
        task.cancel()
    await asyncio.gather(serving, waiting, return_exceptions=True)
    desk.close()
    assert [line for line in said if line == settings.embedding.model or "answering" in line] == [
        settings.embedding.model,
        "answering mentions and direct messages; Ctrl-C or SIGTERM ends it",
    ]


async def test_a_scope_that_is_missing_stops_the_start(
    sample: Desk, embedder: Embedder, tmp_path: Path
) -> None:
    from bot.app import build
    from bot.slack.app import connected
    from ingest.errors import ConfigError
    from tests.bot.slack.conftest import settings_of

    less = App(scopes=frozenset({"chat:write", "app_mentions:read"}))
    async with SlackServer(Workspace.sample(), less, ack_seconds=PATIENCE) as slack:
        desk = build(settings_of(sample, slack, tmp_path), embedder)
        with pytest.raises(ConfigError, match=r"lacks the scopes .*im:history.*reinstall"):
            async with connected(desk):
                raise AssertionError("it started")
        desk.close()


async def test_a_killed_process_leaves_its_question_to_the_next_which_ends_politely(
    sample: Desk, slack: SlackServer, tmp_path: Path
) -> None:
    env = environment(sample.settings.data, slack, tmp_path, TWOHOP_SLACK__LEASE_SECONDS="0.5")
    gate = slack.hold("chat.postMessage")
    async with served(env, tmp_path) as process:
        await slack.connected()
        ts = await slack.say(SUPPORT, "D_SAM", "thanks")
        await slack.wait_for(lambda: not slack.unacked() and slack.status)
        process.kill()
        await output(process)
    assert replies(slack, "D_SAM", ts) == []
    gate.set()
    async with served(env, tmp_path) as process:
        await slack.wait_for(lambda: replies(slack, "D_SAM", ts))
        await slack.wait_for(lambda: not slack.unfinished())
        process.send_signal(signal.SIGTERM)
        said = await output(process)
    assert process.returncode == 0
    assert "connected to Sample (T_HOME) as @" in said
    assert "stopping" in said
    assert replies(slack, "D_SAM", ts) == ["You are welcome."]


def children(pid: int) -> set[int]:
    """Return the processes that a process has started and that run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end while we look.
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(stat.parent.name))
    return found


def caught(runs: Runs, bots: dict[int, Process]) -> tuple[Run, Process, set[int]] | None:
    """Return the run under way, its bot, and its child's process group, which is stopped so that it cannot end."""
    run = runs.running()
    if run is None:
        return None
    owner = bots[int(run.owner.split(":")[1])]
    # A child may end while we look at it.
    with suppress(ProcessLookupError):
        groups = {child for child in children(owner.pid) if os.getpgid(child) == child}
        for group in groups:
            os.killpg(group, signal.SIGSTOP)
        if groups and runs.get(run.id).state == "running":
            return run, owner, groups
        for group in groups:
            os.killpg(group, signal.SIGCONT)
    return None


async def until(condition: Callable[[], T | None], seconds: float = 1800) -> T:
    """Wait for something to hold and return it; the time is only how long a broken one is waited for."""
    async with asyncio.timeout(seconds):
        while True:
            if found := condition():
                return found
            await asyncio.sleep(0.05)


@pytest.mark.soak
async def test_two_processes_run_each_moment_once_and_one_takes_over_when_the_other_is_killed(
    slack: SlackServer, tmp_path: Path, database_url: str
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "page.md").write_text("# Refunds\n\nA refund is possible within 14 days.\n", encoding="utf-8")
    env = environment(
        tmp_path / "data",
        slack,
        tmp_path,
        DATABASE_URL=database_url,
        TWOHOP_SOURCES__PATHS=json.dumps([str(docs)]),
        TWOHOP_SYNC__EVERY_MINUTES="0.05",
        TWOHOP_SYNC__LEASE_SECONDS="10",
    )
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    engine = opened(database_url)
    runs = Runs(engine, "test", 10)

    def rows() -> list[Run]:
        """Return the runs, oldest first."""
        return list(runs.history(1000))[::-1]

    def said() -> str:
        return "".join(log.read_text(encoding="utf-8") for log in logs)

    async with served(env, tmp_path, logs[0]) as one, served(env, tmp_path, logs[1]) as two:
        await slack.connected(2, 1800)
        await until(lambda: len([run for run in rows() if run.slot and run.state == "complete"]) >= 2)

        # Killed with its child while its run is under way: nobody is left to close it but the other.
        bots = {process.pid: process for process in (one, two)}
        killed, owner, groups = await until(lambda: caught(runs, bots))
        owner.kill()
        for group in groups:
            os.killpg(group, signal.SIGKILL)
        await owner.wait()
        killed = runs.get(killed.id)
        assert killed.state == "running"
        survivor = next(process for process in bots.values() if process.pid != owner.pid)
        later = await until(
            lambda: [run for run in rows() if run.started_at > killed.started_at and run.state == "complete"]
        )
        assert survivor.returncode is None
        survivor.send_signal(signal.SIGTERM)
        ended = await survivor.wait()
    assert ended == 0

    buried = runs.get(killed.id)
    assert (buried.state, buried.failure) == ("failed", DIED)
    assert {run.owner.split(":")[1] for run in later} == {str(survivor.pid)}
    # The next run began when the lease was over, and not before.
    assert min(run.started_at for run in later) >= killed.due
    past = rows()
    slots = [run.slot for run in past if run.slot]
    assert len(set(slots)) == len(slots)
    for earlier, following in pairwise(past):
        assert earlier.ended_at is not None
        assert earlier.ended_at <= following.started_at
    # No run ended that the rows do not know; the log lacks the first, which no moment started, and what nobody saw end.
    complete = [run for run in past if run.state == "complete"]
    assert 1 <= said().count("the index run ended well") <= len(complete)
    assert {run.failure for run in past if run.state == "failed"} == {DIED}
    engine.dispose()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    """Return a PostgreSQL of this test's own, which it may stop."""
    if request.config.getoption("--postgres") != postgres.THROW_AWAY:
        pytest.skip("stops its server: run it with --postgres without a URL")
    server = postgres.Server()
    yield server
    server.remove()


@pytest.mark.postgres
async def test_a_database_that_restarts_ends_nothing_and_what_it_could_not_keep_is_not_acked(
    sample: Desk, tmp_path: Path, database: postgres.Server
) -> None:
    log = tmp_path / "log"
    async with SlackServer(Workspace.sample(), App.from_manifest(manifest()), ack_seconds=0) as slack:
        env = environment(sample.settings.data, slack, tmp_path, DATABASE_URL=database.url)
        async with served(env, tmp_path, log) as process:
            await slack.connected()
            before = await slack.say(SUPPORT, "D_SAM", "thanks")
            await slack.wait_for(lambda: replies(slack, "D_SAM", before))
            await slack.wait_for(lambda: not slack.unfinished())
            database.stop()
            ts = await slack.say(SUPPORT, "D_SAM", "hello")
            await until(lambda: "ERROR bot.slack.bolt" in log.read_text(encoding="utf-8"))
            (lost,) = slack.unacked()
            database.start()
            await slack.redeliver(lost.event_id)
            await slack.wait_for(lambda: replies(slack, "D_SAM", ts))
            await slack.wait_for(lambda: not slack.unacked() and not slack.unfinished())
            assert process.returncode is None
            process.send_signal(signal.SIGTERM)
            ended = await process.wait()
        assert ended == 0
        assert len(replies(slack, "D_SAM", ts)) == 1
