"""What people say to the bot in Slack, and that it answers each of it once, in the thread."""

from __future__ import annotations

from bot.playground.server import SlackServer
from tests.bot.slack.conftest import MEMBER, SUPPORT, Bot, replies

FAQ = "How long after a charge can a customer ask for a refund?"


async def test_a_mention_is_answered_in_its_thread_with_sources(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", f"<@U_BOT> {FAQ}")
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    (said,) = replies(slack, "C_HELP", ts)
    assert "14 days" in said
    assert "[1]" in said
    message = slack.messages("C_HELP", ts)[-1]
    assert [block["type"] for block in message.blocks] == ["markdown", "context"]
    assert "[1] " in message.blocks[1]["elements"][0]["text"]
    assert not slack.unacked()


async def test_a_direct_message_about_4812_is_answered_yes(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(SUPPORT, "D_SAM", "Is the customer on ticket 4812 entitled to a refund?")
        await slack.wait_for(lambda: replies(slack, "D_SAM", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    (said,) = replies(slack, "D_SAM", ts)
    assert "Yes" in said
    assert "13 September" in said


async def test_a_follow_up_in_the_thread_knows_what_was_asked(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(SUPPORT, "D_SAM", "Is the customer on ticket 4812 entitled to a refund?")
        await slack.wait_for(lambda: len(replies(slack, "D_SAM", ts)) == 1)
        await slack.say(SUPPORT, "D_SAM", "and what about 4821?", thread_ts=ts)
        await slack.wait_for(lambda: len(replies(slack, "D_SAM", ts)) == 2)
        await slack.wait_for(lambda: not slack.unfinished())
    assert "4821" in replies(slack, "D_SAM", ts)[1]
