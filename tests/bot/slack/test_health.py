"""What a bot at work says of itself: `/healthz` with a reason for each part that is not well, `/metrics`, JSON logs."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.exc import OperationalError

from bot.app import Desk, build
from bot.chat import fault
from bot.config import HealthSettings
from bot.health import Health, answering, looks
from bot.metrics import Metrics, Part
from bot.playground.server import SlackServer
from bot.slack.app import connected
from bot.store import Inbox
from bot.types import ChatModel
from ingest.embed import Embedder
from ingest.errors import ConfigError, IndexingError, ModelError
from ingest.runs import Runs
from tests.bot.slack.conftest import MEMBER, SUPPORT, replies, settings_of
from tests.bot.slack.test_serve import environment, output, served
from tests.faulty import Faulty
from tests.scripted import ScriptedModel, says

PARTS = {"slack", "queue", "index", "state database", "ticket database", "search", "model"}
FLAGSHIP = "Is the customer on ticket 4812 entitled to a refund?"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Port:
    """The health port, asked as an operator's tools ask it."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def get(self, path: str) -> tuple[int, str]:
        async with ClientSession() as session, session.get(f"http://127.0.0.1:{self.number}{path}") as found:
            return found.status, await found.text()

    async def healthz(self) -> tuple[int, Mapping[str, Any]]:
        status, text = await self.get("/healthz")
        return status, json.loads(text)

    async def metrics(self) -> Mapping[str, float]:
        """Return every sample under `name{label=value,…}`, without the prefix."""
        status, text = await self.get("/metrics")
        assert status == 200
        return {
            sample.name.removeprefix("twohop_")
            + (
                f"{{{','.join(f'{k}={v}' for k, v in sample.labels.items())}}}" if sample.labels else ""
            ): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


Watched = Callable[..., AbstractAsyncContextManager[Port]]


@pytest.fixture
def watched(sample: Desk, embedder: Embedder, slack: SlackServer, tmp_path: Path) -> Watched:
    """Return what runs the bot with its health port open: `async with watched() as port`."""

    @asynccontextmanager
    async def running(model: ChatModel | None = None, **health: Any) -> AsyncIterator[Port]:
        port = Port(free_port())
        section = HealthSettings(port=port.number, **health)
        settings = settings_of(sample, slack, tmp_path).model_copy(update={"health": section})
        desk = build(settings, embedder, model)
        try:
            async with connected(desk):
                await slack.connected()
                yield port
        finally:
            desk.close()

    return running


async def asked(slack: SlackServer, text: str, user: str = SUPPORT, channel: str = "D_SAM") -> str:
    """Ask, wait for the end of the answer, and return it."""
    ts = await slack.say(user, channel, text)
    await slack.wait_for(lambda: replies(slack, channel, ts))
    await slack.wait_for(lambda: not slack.unfinished())
    return "\n".join(replies(slack, channel, ts))


async def test_a_bot_that_is_well_says_so_of_every_part(slack: SlackServer, watched: Watched) -> None:
    async with watched() as port:
        status, report = await port.healthz()
        alive = await port.get("/livez")
        metrics = await port.metrics()
    assert (status, report["ok"], report["reasons"]) == (200, True, [])
    assert set(report["parts"]) == PARTS
    assert alive == (200, '{"ok": true}')
    assert {metrics[f"healthy{{part={name}}}"] for name in PARTS} == {1.0}
    assert metrics["queue_age_seconds"] == 0


async def test_what_was_answered_is_counted_and_nobody_is_named(slack: SlackServer, watched: Watched) -> None:
    async with watched() as port:
        assert "13 September 2026" in await asked(slack, FLAGSHIP)
        await slack.wait_for(lambda: not slack.unfinished())
        metrics = await port.metrics()
        said = "".join([text for path in ("/metrics", "/healthz") for _, text in [await port.get(path)]])
    (turn,) = [name for name in metrics if name.startswith("turns_total")]
    assert re.fullmatch(r"turns_total\{mode=gated,route=(direct|agent),shape=answered\}", turn)
    assert metrics[turn] == 1
    assert metrics["verdicts_total{decision=yes}"] == 1
    assert [metrics[name] for name in metrics if name.startswith("stops_total")] == [1]
    assert not [name for name in metrics if "=other" in name]
    assert metrics["searches_total"] >= 2
    assert metrics["queue_depth{state=done}"] == 1
    stages = {name: value for name, value in metrics.items() if name.startswith("stage_seconds_count")}
    assert {stage for stage in ("get_ticket", "search_docs") if any(stage in name for name in stages)} == {
        "get_ticket",
        "search_docs",
    }
    for secret in ("4812", "Ortega", SUPPORT, "D_SAM", "xoxb-", "xapp-"):
        assert secret not in said


async def test_a_refusal_and_an_error_of_slack_are_counted(slack: SlackServer, watched: Watched) -> None:
    async with watched() as port:
        slack.fail("chat.postMessage", "ratelimited")
        slack.fail("assistant.threads.setStatus", "internal_error")
        await asked(slack, "thanks")
        ts = await slack.say("U_GUEST", "C_HELP", "<@U_BOT> hello")
        await slack.wait_for(lambda: slack.ephemerals("U_GUEST") and ts)
        await slack.wait_for(lambda: not slack.unfinished())
        metrics = await port.metrics()
    assert metrics["slack_errors_total{error=ratelimited,method=chat.postMessage}"] == 1
    assert metrics["slack_errors_total{error=refused,method=assistant.threads.setStatus}"] == 1
    assert metrics["refusals_total{reason=guest}"] == 1


async def test_a_question_that_waits_too_long_is_a_reason_until_it_is_answered(
    slack: SlackServer, watched: Watched
) -> None:
    async with watched(queue_seconds=0.001) as port:
        gate = slack.hold("chat.postMessage")
        ts = await slack.say(SUPPORT, "D_SAM", "thanks")
        await slack.wait_for(lambda: not slack.unacked() and slack.status)
        status, report = await port.healthz()
        gate.set()
        await slack.wait_for(lambda: replies(slack, "D_SAM", ts) and not slack.unfinished())
        async with asyncio.timeout(300):
            while (await port.healthz())[0] != 200:
                pass
    assert status == 503
    (reason,) = report["reasons"]
    assert reason.startswith("queue: 1 messages have no answer yet")


async def test_a_model_that_is_down_is_a_reason_until_it_answers(
    slack: SlackServer, watched: Watched
) -> None:
    def away(_: object) -> Any:
        raise ModelError("no connection to http://10.1.2.3", plainly=fault.UNREACHABLE)

    model = ScriptedModel(away, says("I do not know."), forever=True)
    async with watched(model) as port:
        await asked(slack, "How long is the refund window?", MEMBER, "D_ANA")
        status, report = await port.healthz()
        metrics = await port.metrics()
        await asked(slack, "What does error ERR_SSO-4032 mean?", MEMBER, "D_ANA")
        after, _ = await port.healthz()
    assert status == 503
    (reason,) = report["reasons"]
    assert reason.startswith("model: unreachable")
    assert metrics["model_seconds_count{outcome=unreachable}"] == 1
    assert after == 200


async def test_it_answers_while_the_workers_are_busy(slack: SlackServer, watched: Watched) -> None:
    go = threading.Event()

    def busy(_: object) -> Any:
        go.wait(60)
        return says("I do not know.")

    async with watched(ScriptedModel(busy, forever=True)) as port:
        try:
            ts = await slack.say(MEMBER, "D_ANA", "How long is the refund window?")
            await slack.wait_for(lambda: slack.status)
            status, report = await port.healthz()
        finally:
            go.set()
        await slack.wait_for(lambda: replies(slack, "D_ANA", ts) and not slack.unfinished())
    assert (status, report["parts"]["queue"]["queue_depth"]) == (200, {"working": 1})


async def test_a_port_that_is_taken_stops_the_start_and_0_opens_none(watched: Watched) -> None:
    said: list[str] = []
    async with answering(HealthSettings(), {}, Metrics(), said.append):
        assert said == []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {number} of '127\.0\.0\.1' .* TWOHOP_HEALTH__PORT"):
            async with answering(
                HealthSettings(port=number), {"search": lambda: Part(True, "")}, Metrics(), said.append
            ):
                raise AssertionError("it started")


async def test_a_part_that_hangs_is_waited_for_a_moment_and_asked_once() -> None:
    go = threading.Event()
    looks: list[str] = []

    def hanging() -> Part:
        looks.append("asked")
        go.wait(60)
        return Part(True, "answers")

    health = Health({"search": hanging, "queue": lambda: Part(True, "empty")}, seconds=0.05)
    try:
        first, second = await health.look(), await health.look()
        assert [part.ok for part in first.values()] == [False, True]
        assert second["search"].said == "did not answer in 0.05 s"
        assert looks == ["asked"]
        go.set()
        async with asyncio.timeout(300):
            while not (await health.look())["search"].ok:
                pass
    finally:
        go.set()
        health.close()


async def test_a_search_that_is_down_or_half_down_is_a_reason_until_it_is_back(
    sample: Desk, embedder: Embedder, slack: SlackServer, tmp_path: Path
) -> None:
    desk = build(settings_of(sample, slack, tmp_path), embedder)
    desk.index = faulty = Faulty(desk.index)
    inbox, runs = Inbox(desk.store.engine, "test", 30), Runs(desk.store.engine, "test", 30)
    health = Health(looks(desk, inbox, runs, Metrics()), seconds=60)

    async def reasons() -> list[str]:
        return [f"{name}: {part.said}" for name, part in (await health.look()).items() if not part.ok]

    assert await reasons() == []
    faulty.failing = ("lexical",)
    assert await reasons() == ["search: lexical: it broke"]
    faulty.down = True
    (reason,) = await reasons()
    assert reason.startswith("search: the cluster")
    assert "start it" in reason
    faulty.failing, faulty.down = (), False
    runs.raise_alarm("docs")
    (reason,) = await reasons()
    assert reason.startswith("index: late: docs; never read to its end by a run")
    runs.raise_alarm("*")
    (reason,) = await reasons()
    assert reason.startswith("index: late: the sources, docs; never read")
    first = runs.start("sync", why="schedule")
    assert first is not None
    runs.beat(first.id, stage="reading docs", done=7, uri="docs:a.md")
    assert await reasons() == []
    assert (await health.look())["index"].said == "first run under way, reading docs: 7 documents"
    runs.finish(first.id, "failed", failure="the disk is full")
    assert len(await reasons()) == 1
    for name in ("docs", "*"):
        runs.calm(name)
    assert await reasons() == []
    health.close()
    desk.close()


async def test_a_reason_names_the_next_step_and_no_address_of_a_database() -> None:
    def state() -> Part:
        raise OperationalError("SELECT 1", {}, Exception("no route to postgresql://bot:secret@10.1.2.3"))

    def search() -> Part:
        raise IndexingError(
            "Elasticsearch 'https://search.example.com' cannot be reached; check that it runs"
        )

    health = Health({"state database": state, "search": search}, seconds=60)
    parts = await health.look()
    health.close()
    assert parts["state database"].said.startswith("the state database fails: away; ")
    assert parts["search"].said.endswith("check that it runs")


async def test_each_line_of_a_json_log_is_an_object_with_its_row_and_without_secrets_or_questions(
    sample: Desk, slack: SlackServer, tmp_path: Path
) -> None:
    port = Port(free_port())
    env = environment(
        sample.settings.data,
        slack,
        tmp_path,
        TWOHOP_LOG="json",
        TWOHOP_HEALTH__PORT=str(port.number),
        OPENAI_API_KEY="sk-unused",
    )
    async with served(env, tmp_path) as process:
        await slack.connected()
        await asked(slack, FLAGSHIP)
        status, _ = await port.healthz()
        process.send_signal(signal.SIGTERM)
        said = await output(process)
    assert (process.returncode, status) == (0, 200)
    lines = [json.loads(line) for line in said.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    (answered,) = [line for line in lines if line["message"].startswith("turn ")]
    assert answered["row"]
    messages = "\n".join(line["message"] for line in lines)
    assert "OPENAI_API_KEY is set" in messages
    assert f"health and metrics are on http://127.0.0.1:{port.number}" in messages
    for secret in (slack.bot_token, slack.app_token, "4812", "Ortega", "sk-unused"):
        assert secret not in said
