"""Slack while the search is down, or half down: everybody gets an answer, and it says what did not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app import Desk, build
from bot.playground.server import SlackServer
from bot.slack import views
from bot.slack.app import connected
from ingest.embed import Embedder
from tests.bot.slack.conftest import MEMBER, SUPPORT, replies, settings_of
from tests.bot.test_degraded import DOWN, FLAGSHIP, NO_MEANING
from tests.faulty import ARMS, Faulty


@pytest.fixture
async def index(
    sample: Desk, embedder: Embedder, slack: SlackServer, tmp_path: Path
) -> AsyncIterator[Faulty]:
    """Run the bot on the local Slack and return its index, which fails as it is told."""
    index = Faulty(sample.index)
    desk = build(settings_of(sample, slack, tmp_path), embedder, index=index)
    try:
        async with connected(desk):
            await slack.connected()
            yield index
    finally:
        desk.close()


async def reply(slack: SlackServer, user: str, channel: str, text: str) -> str:
    ts = await slack.say(user, channel, text)
    await slack.wait_for(lambda: replies(slack, channel, ts))
    await slack.wait_for(lambda: not slack.unfinished())
    (said,) = replies(slack, channel, ts)
    blocks = slack.messages(channel, ts)[-1].blocks
    for sentence in (DOWN, NO_MEANING):
        shown = "\n".join(block.get("text", "") for block in blocks if block["type"] == "markdown")
        assert not blocks or said.count(sentence) == shown.count(sentence)
    assert "Something went wrong" not in said
    return said


async def test_a_search_that_is_down_is_said_and_tickets_are_answered(
    slack: SlackServer, index: Faulty
) -> None:
    index.down = True
    assignee = await reply(slack, SUPPORT, "D_SAM", "Who is ticket 4812 assigned to?")
    assert "Lucía Navarro" in assignee
    assert assignee.count(DOWN) == 1
    flagship = await reply(slack, SUPPORT, "D_SAM", FLAGSHIP)
    assert flagship.count(DOWN) == 1
    assert "days" not in flagship
    known = await reply(slack, MEMBER, "D_ANA", "What do you know?")
    assert "the index does not answer" in known
    index.down = False
    whole = await reply(slack, SUPPORT, "D_SAM", FLAGSHIP)
    assert "13 September" in whole
    assert DOWN not in whole


async def test_an_arm_that_is_down_is_said_once(slack: SlackServer, index: Faulty) -> None:
    index.failing = ("dense",)
    said = await reply(slack, SUPPORT, "D_SAM", FLAGSHIP)
    assert "13 September" in said
    assert said.count(NO_MEANING) == 1


async def test_a_channel_is_sent_to_a_direct_message_with_its_ticket_all_the_same(
    slack: SlackServer, index: Faulty
) -> None:
    index.failing = ARMS
    assert await reply(slack, SUPPORT, "C_HELP", f"<@U_BOT> {FLAGSHIP}") == views.TICKETS_IN_DM
    said = await reply(slack, MEMBER, "C_HELP", "<@U_BOT> What does error ERR_SSO-4032 mean?")
    assert said.count(DOWN) == 1
