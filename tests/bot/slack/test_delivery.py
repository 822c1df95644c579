"""Each question is answered once, whatever Slack delivers twice, refuses or loses, and whatever process dies."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from bot.app import Desk
from bot.playground.server import SlackServer
from bot.playground.workspace import EVENTS, App, Workspace
from bot.slack import views
from bot.slack.app import manifest
from bot.store import Inbound, Inbox
from bot.store.state import opened
from bot.types import Budget, Message, Reply
from tests.bot.slack.conftest import MEMBER, PATIENCE, SUPPORT, Bot, replies
from tests.scripted import ScriptedModel, says

FAQ = "How long after a charge can a customer ask for a refund?"


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """Return a local Slack that tells the app of everything, as an app with more subscriptions than ours is told."""
    app = dataclasses.replace(App.from_manifest(manifest()), events=EVENTS | {"message.mpim"})
    async with SlackServer(Workspace.sample(), app, ack_seconds=PATIENCE) as server:
        yield server
    assert [f"{one.kind}: {one.text}" for one in server.violations] == []


def forgive_lost_acks(slack: SlackServer) -> None:
    """Take lost acks for what they are: the test's own doing."""
    slack.violations[:] = [one for one in slack.violations if one.kind != "unacked"]


async def settled(slack: SlackServer) -> None:
    """Wait until everything that was delivered is acknowledged and nothing is under way."""
    await slack.wait_for(lambda: not slack.unacked() and not slack.unfinished())


async def answered(slack: SlackServer, channel: str, ts: str, count: int = 1) -> list[str]:
    await slack.wait_for(lambda: len(replies(slack, channel, ts)) >= count)
    await settled(slack)
    return replies(slack, channel, ts)


def state(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state.db'}"


async def test_thanks_is_answered_without_a_search(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "<@U_BOT> thanks!")
        assert await answered(slack, "C_HELP", ts) == ["You are welcome."]


async def test_an_empty_mention_gets_help_and_a_file_alone_a_reason(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        empty = await slack.say(MEMBER, "C_HELP", "<@U_BOT>")
        file = await slack.say(
            MEMBER, "D_ANA", "", subtype="file_share", extra={"files": [{"id": "F1", "name": "log.txt"}]}
        )
        assert await answered(slack, "C_HELP", empty) == [views.HELP]
        assert await answered(slack, "D_ANA", file) == [views.NO_FILES]


async def test_a_question_with_a_file_is_answered_and_the_file_is_said_not_to_be_read(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot():
        ts = await slack.say(
            MEMBER, "D_ANA", FAQ, subtype="file_share", extra={"files": [{"id": "F1", "name": "log.txt"}]}
        )
        (said,) = await answered(slack, "D_ANA", ts)
    assert "14 days" in said
    assert views.FILES_UNREAD in said


@pytest.mark.parametrize("first", ["message_first", "mention_first"])
async def test_a_message_and_its_mention_are_one_question(slack: SlackServer, bot: Bot, first: Any) -> None:
    slack.faults.twins = first
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "<@U_BOT> thanks")
        in_group = await slack.say(MEMBER, "G_GROUP", "<@U_BOT> thanks")
        overheard = await slack.say(MEMBER, "G_GROUP", "thanks")
        await answered(slack, "C_HELP", ts)
        await answered(slack, "G_GROUP", in_group)
        await marker(slack)
    assert len([each for each in slack.deliveries if each.what in ("message", "app_mention")]) > 4
    assert len(replies(slack, "C_HELP", ts)) == len(replies(slack, "G_GROUP", in_group)) == 1
    assert replies(slack, "G_GROUP", overheard) == []


async def marker(slack: SlackServer) -> None:
    """Ask something else and wait for its answer: whatever came before has then been taken."""
    ts = await slack.say(MEMBER, "D_ANA", "hello")
    await answered(slack, "D_ANA", ts)


async def test_an_event_that_is_delivered_again_is_absorbed(slack: SlackServer, bot: Bot) -> None:
    slack.lose_acks(1)
    async with bot():
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: any(each.attempt for each in slack.deliveries))
        await answered(slack, "D_ANA", ts)
        first = slack.deliveries[0]
        await slack.redeliver(first.event_id)
        await slack.deliver(first.payload["event"], "Ev_new_id", 2)
        await marker(slack)
    assert replies(slack, "D_ANA", ts) == ["You are welcome."]


async def test_edits_deletions_joins_reactions_and_bots_are_nobodys_question(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "<@U_BOT> thanks")
        await answered(slack, "C_HELP", ts)
        await slack.edit("C_HELP", ts, "<@U_BOT> thank you")
        dm = await slack.say(MEMBER, "D_ANA", "thanks")
        await answered(slack, "D_ANA", dm)
        await slack.edit("D_ANA", dm, "thanks a lot")
        await slack.delete("D_ANA", dm)
        await slack.say("U_OTHERBOT", "C_HELP", "<@U_BOT> thanks")
        await slack.say(MEMBER, "C_HELP", "has joined", subtype="channel_join")
        await slack.react(MEMBER, "C_HELP", ts, "thumbsup")
        await slack.open_home(MEMBER)
        await slack.deliver({"type": "something_new", "channel": "C_HELP"})
        await marker(slack)
    posts = [call for call in slack.calls if call.method == "chat.postMessage"]
    assert len(posts) == 3


async def test_an_edit_that_adds_the_mention_is_a_question(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "thanks")
        await slack.edit("C_HELP", ts, "<@U_BOT> thanks")
        assert await answered(slack, "C_HELP", ts) == ["You are welcome."]


async def test_an_insert_that_fails_is_not_acknowledged_and_the_event_comes_again(
    slack: SlackServer, bot: Bot
) -> None:
    slack.socket.ack_seconds = 1.0
    async with bot() as desk:
        rename(desk, "inbox", "away")
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: any(each.attempt for each in slack.deliveries))
        assert slack.deliveries[0].acked is None
        rename(desk, "away", "inbox")
        await slack.wait_for(lambda: replies(slack, "D_ANA", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "D_ANA", ts) == ["You are welcome."]
    forgive_lost_acks(slack)


def rename(desk: Desk, old: str, new: str) -> None:
    with desk.store.engine.begin() as connection:
        connection.execute(sql(f"ALTER TABLE {old} RENAME TO {new}"))


async def test_no_call_to_slack_is_made_before_an_ack(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        before = len(slack.calls)
        gates = [slack.hold(method) for method in ("auth.test", "users.info", "assistant.threads.setStatus")]
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: not slack.unacked())
        assert "auth.test" not in [call.method for call in slack.calls[before:]]
        for gate in gates:
            gate.set()
        await answered(slack, "D_ANA", ts)


# --- processes that die ------------------------------------------------------------------------------------------


def inbound(slack: SlackServer, channel: str, ts: str, words: str) -> Inbound:
    return Inbound(f"Ev{ts}", "T_HOME", channel, "im", SUPPORT, words, ts, ts)


@pytest.mark.parametrize("at", ["new", "working"])
async def test_a_question_whose_process_died_before_the_answer_is_answered_by_the_next(
    slack: SlackServer, bot: Bot, tmp_path: Path, at: str
) -> None:
    ts = await slack.say(SUPPORT, "D_SAM", "thanks")
    dead = Inbox(opened(state(tmp_path)), "dead", 0.0)
    dead.put(inbound(slack, "D_SAM", ts, "thanks"))
    if at == "working":
        assert dead.claim()
    async with bot():
        assert await answered(slack, "D_SAM", ts) == ["You are welcome."]
        await marker(slack)
    assert len(replies(slack, "D_SAM", ts)) == 1


@pytest.mark.parametrize("arrived", [0, 1, 2])
async def test_an_answer_whose_process_died_over_posting_is_posted_once_and_whole(
    slack: SlackServer, bot: Bot, tmp_path: Path, arrived: int
) -> None:
    from slack_sdk.web.async_client import AsyncWebClient

    ts = await slack.say(SUPPORT, "D_SAM", "a question")
    dead = Inbox(opened(state(tmp_path)), "dead", 0.0)
    dead.put(inbound(slack, "D_SAM", ts, "a question"))
    row = dead.claim()
    assert row is not None
    parts = [views.line("one")[0].kept(), views.line("two")[0].kept()]
    assert dead.sending(row, parts)
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_url)
    for n, part in enumerate(parts[:arrived]):
        payload = {"event_type": "twohop_answer", "event_payload": {"id": row.id, "part": n}}
        await client.chat_postMessage(channel="D_SAM", thread_ts=ts, text=part["text"], metadata=payload)
    async with bot():
        await answered(slack, "D_SAM", ts, 2)
        await marker(slack)
    assert replies(slack, "D_SAM", ts) == ["one", "two"]


async def test_metadata_of_another_bot_does_not_stand_for_ours(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    ts = await slack.say(SUPPORT, "C_HELP", "a question")
    dead = Inbox(opened(state(tmp_path)), "dead", 0.0)
    dead.put(inbound(slack, "C_HELP", ts, "a question"))
    row = dead.claim()
    assert row is not None
    dead.sending(row, [views.line("one")[0].kept()])
    await slack.say("U_OTHERBOT", "C_HELP", "one", thread_ts=ts)
    forged = slack.messages("C_HELP", ts)[-1]
    forged.metadata = {"event_type": "twohop_answer", "event_payload": {"id": row.id, "part": 0}}
    async with bot():
        assert await answered(slack, "C_HELP", ts) == ["one"]


async def test_a_question_that_ends_its_process_again_and_again_gets_an_apology(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    ts = await slack.say(SUPPORT, "D_SAM", "a question")
    dead = Inbox(opened(state(tmp_path)), "dead", 0.0)
    dead.put(inbound(slack, "D_SAM", ts, "a question"))
    for _ in range(3):
        assert dead.claim()
    async with bot():
        (said,) = await answered(slack, "D_SAM", ts)
    assert "reference" in said


async def test_two_processes_on_one_database_answer_once(slack: SlackServer, bot: Bot) -> None:
    async with bot(), bot():
        await slack.connected(2)
        asked = [await slack.say(MEMBER, "D_ANA", "thanks") for _ in range(3)]
        for ts in asked:
            await answered(slack, "D_ANA", ts)
        await marker(slack)
    assert [len(replies(slack, "D_ANA", ts)) for ts in asked] == [1, 1, 1]


# --- what Slack refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "ratelimited", "times": 2},
        {"error": "internal_error"},
        {"error": "", "status": 500},
        {"error": "", "cut": True},
        {"error": "", "cut": True, "applied": True},
        {"error": "internal_error", "applied": True},
    ],
)
async def test_a_post_that_fails_is_made_again_and_stands_once(
    slack: SlackServer, bot: Bot, fault: dict[str, Any]
) -> None:
    slack.fail("chat.postMessage", **fault)
    async with bot():
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await answered(slack, "D_ANA", ts)
        await slack.wait_for(lambda: not slack.faults.calls["chat.postMessage"])
        await marker(slack)
    assert replies(slack, "D_ANA", ts) == ["You are welcome."]


async def test_blocks_that_are_refused_are_posted_as_text(slack: SlackServer, bot: Bot) -> None:
    slack.fail("chat.postMessage", "invalid_blocks")
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", f"<@U_BOT> {FAQ}")
        (said,) = await answered(slack, "C_HELP", ts)
    assert "14 days" in said
    assert "Sources" in said
    assert slack.messages("C_HELP", ts)[-1].blocks == []


async def test_a_post_that_can_never_succeed_is_given_up_and_the_next_question_is_answered(
    slack: SlackServer, bot: Bot
) -> None:
    slack.fail("chat.postMessage", "is_archived")
    async with bot() as desk:
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: not slack.faults.calls["chat.postMessage"])
        await slack.say(MEMBER, "D_ANA", "thanks", thread_ts=ts)
        assert await answered(slack, "D_ANA", ts) == ["You are welcome."]
        inbox = Inbox(desk.store.engine, "test", 0)
        await slack.wait_for(lambda: inbox.counts() == {"failed": 1, "done": 1})


async def test_who_asked_in_a_channel_where_we_may_not_post_is_told_in_a_direct_message(
    slack: SlackServer, bot: Bot
) -> None:
    slack.fail("chat.postMessage", "not_in_channel")
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "<@U_BOT> thanks")
        await slack.wait_for(lambda: [m for m in slack.messages("D_ANA") if m.user == slack.app.user])
    assert replies(slack, "C_HELP", ts) == []
    (said,) = [m.text for m in slack.messages("D_ANA") if m.user == slack.app.user]
    assert said == (
        "Slack does not let me post in <#C_HELP> (not_in_channel), so your question there has no answer. "
        "Please invite me to the channel, or ask me here."
    )


@pytest.mark.parametrize("method", ["assistant.threads.setStatus", "agents.sessions.setStatus"])
async def test_a_status_that_fails_does_not_cost_the_answer(
    slack: SlackServer, bot: Bot, method: str
) -> None:
    slack.fail(method, "internal_error", times=2)
    async with bot():
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        assert await answered(slack, "D_ANA", ts) == ["You are welcome."]


# --- what breaks, and what is stopped ----------------------------------------------------------------------------


class Broken:
    """A model that ends in a bug."""

    name = "broken"
    note = ""

    async def complete(self, *_: object, **__: object) -> Reply:
        raise RuntimeError("secret-internal-detail")


class Slow:
    """A model that says nothing until it is cancelled; it is asked on another loop than the test's."""

    name = "slow"
    note = ""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    async def complete(self, messages: list[Message], *, budget: Budget, **_: object) -> Reply:
        self.loop.call_soon_threadsafe(self.begun.set)
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_bug_is_one_line_with_a_reference_that_the_log_has_too(
    slack: SlackServer, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    async with bot(Broken()):
        ts = await slack.say(MEMBER, "C_HELP", f"<@U_BOT> {FAQ}")
        (said,) = await answered(slack, "C_HELP", ts)
    assert "secret" not in said
    reference = said.rpartition(" ")[2].rstrip(".")
    assert len(reference) == 8
    assert reference in caplog.text
    assert "secret-internal-detail" in caplog.text


async def test_stop_ends_the_answer_and_the_thread_goes_on(slack: SlackServer, bot: Bot) -> None:
    slow = Slow()
    async with bot(slow):
        ts = await slack.say(MEMBER, "D_ANA", FAQ)
        await asyncio.wait_for(slow.begun.wait(), 120)
        await slack.stop(MEMBER, "D_ANA", ts)
        assert await answered(slack, "D_ANA", ts) == [views.STOPPED]
        await slack.say(MEMBER, "D_ANA", "thanks", thread_ts=ts)
        assert await answered(slack, "D_ANA", ts, 2) == [views.STOPPED, "You are welcome."]


async def test_what_is_not_finished_at_the_end_is_answered_by_the_next_start(
    slack: SlackServer, bot: Bot
) -> None:
    slow = Slow()
    async with bot(slow, drain_seconds=0.1):
        ts = await slack.say(MEMBER, "D_ANA", FAQ)
        await asyncio.wait_for(slow.begun.wait(), 120)
    assert replies(slack, "D_ANA", ts) == []
    assert slack.unfinished() == []
    async with bot():
        (said,) = await answered(slack, "D_ANA", ts)
    assert "14 days" in said


async def test_what_a_model_writes_pings_nobody_and_links_nowhere_else(slack: SlackServer, bot: Bot) -> None:
    model = ScriptedModel(
        says("A customer can ask within 14 days <!channel> [here](https://evil.example/x) <@U_ANA> [1]."),
        forever=True,
    )
    async with bot(model):
        ts = await slack.say(MEMBER, "C_HELP", f"<@U_BOT> {FAQ}")
        await answered(slack, "C_HELP", ts)
    message = slack.messages("C_HELP", ts)[-1]
    shown = message.text + str(message.blocks)
    assert "<!channel>" not in shown
    assert "<@U_ANA>" not in shown
    assert "](https://evil" not in shown
    assert "<https://evil" not in shown


async def test_a_connection_that_is_cut_or_asked_to_go_comes_back(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        await slack.disconnect()
        await slack.wait_for(lambda: slack.socket.connections == 1)
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await answered(slack, "D_ANA", ts)
        await slack.cut()
        await slack.connected()
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await answered(slack, "D_ANA", ts)
    forgive_lost_acks(slack)
