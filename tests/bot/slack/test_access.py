"""Who is answered where: tickets in direct messages only, outsiders and guests with a reason, rights by person."""

from __future__ import annotations

import pytest

from bot.playground.server import SlackServer
from bot.slack import views
from tests.bot.slack.conftest import MEMBER, SUPPORT, Bot, replies

FLAGSHIP = "Is the customer on ticket 4812 entitled to a refund?"
SECRETS = ("Ortega", "Team plan", "13 September", "14 August")


@pytest.mark.parametrize(
    "asked",
    [
        FLAGSHIP,
        "How many tickets are open, by priority?",
        "what about #4812?",
        "Is this customer entitled to a refund?",
    ],
)
@pytest.mark.parametrize("user", [MEMBER, SUPPORT])
async def test_a_channel_hears_nothing_of_a_ticket_whoever_asks(
    slack: SlackServer, bot: Bot, asked: str, user: str
) -> None:
    async with bot():
        ts = await slack.say(user, "C_HELP", f"<@U_BOT> {asked}")
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    (said,) = replies(slack, "C_HELP", ts)
    assert views.TICKETS_IN_DM in said
    assert not [secret for secret in SECRETS if secret in said]


@pytest.mark.parametrize("asked", ["how many tickets are open?", "which tickets are urgent?"])
async def test_a_question_about_tickets_alone_is_not_answered_with_something_else(
    slack: SlackServer, bot: Bot, asked: str
) -> None:
    async with bot():
        ts = await slack.say(SUPPORT, "C_HELP", f"<@U_BOT> {asked}")
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "C_HELP", ts) == [views.TICKETS_IN_DM]


async def test_support_is_told_to_ask_about_a_customer_in_private_and_others_learn_no_name(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot():
        asked = "<@U_BOT> Is Ortega Hardware entitled to a refund?"
        by_support = await slack.say(SUPPORT, "C_HELP", asked)
        by_member = await slack.say(MEMBER, "C_HELP", asked)
        await slack.wait_for(lambda: all(replies(slack, "C_HELP", ts) for ts in (by_support, by_member)))
        await slack.wait_for(lambda: not slack.unfinished())
    assert views.TICKETS_IN_DM in replies(slack, "C_HELP", by_support)[0]
    assert views.TICKETS_IN_DM not in replies(slack, "C_HELP", by_member)[0]


async def test_a_member_without_rights_gets_no_ticket_in_a_direct_message(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "D_ANA", FLAGSHIP)
        await slack.wait_for(lambda: replies(slack, "D_ANA", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    (said,) = replies(slack, "D_ANA", ts)
    assert not [secret for secret in SECRETS if secret in said]


async def test_a_ticket_of_a_direct_message_does_not_follow_into_a_channel(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot():
        ts = await slack.say(
            SUPPORT, "C_HELP", "<@U_BOT> How long after a charge can a customer ask for a refund?"
        )
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
        await slack.say(MEMBER, "C_HELP", "<@U_BOT> and on the Team plan?", thread_ts=ts)
        await slack.wait_for(lambda: len(replies(slack, "C_HELP", ts)) == 2)
        await slack.wait_for(lambda: not slack.unfinished())
    assert "30" in replies(slack, "C_HELP", ts)[1]


@pytest.mark.parametrize(
    ("user", "channel", "reason"),
    [
        ("U_EXT", "C_SHARED", views.REFUSALS["external"]),
        ("U_GUEST", "C_HELP", views.REFUSALS["guest"]),
        ("U_ANA", "C_SHARED", views.REFUSALS["shared"]),
    ],
)
async def test_a_refusal_in_a_channel_is_one_line_that_its_asker_alone_sees(
    slack: SlackServer, bot: Bot, user: str, channel: str, reason: str
) -> None:
    async with bot():
        ts = await slack.say(user, channel, "<@U_BOT> thanks")
        await slack.wait_for(lambda: slack.ephemerals(user, channel))
    assert [message.text for message in slack.ephemerals(user, channel)] == [reason]
    assert replies(slack, channel, ts) == []


@pytest.mark.parametrize(
    ("user", "channel", "reason"), [("U_EXT", "D_EXT", "external"), ("U_GUEST", "D_GUEST", "guest")]
)
async def test_a_refusal_in_a_direct_message_is_one_line(
    slack: SlackServer, bot: Bot, user: str, channel: str, reason: str
) -> None:
    async with bot():
        ts = await slack.say(user, channel, "thanks")
        await slack.wait_for(lambda: replies(slack, channel, ts))
    assert replies(slack, channel, ts) == [
        {"external": views.REFUSALS["external"], "guest": views.REFUSALS["guest"]}[reason]
    ]


async def test_a_member_is_answered_in_a_shared_channel_that_was_approved(
    slack: SlackServer, bot: Bot
) -> None:
    async with bot(shared_channels=("C_SHARED",)):
        ts = await slack.say(MEMBER, "C_SHARED", "<@U_BOT> thanks")
        await slack.say("U_EXT", "C_SHARED", "<@U_BOT> thanks")
        await slack.wait_for(lambda: replies(slack, "C_SHARED", ts) and slack.ephemerals("U_EXT"))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "C_SHARED", ts) == ["You are welcome."]


async def test_a_mention_by_nobody_gets_a_reason_in_its_thread(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        ts = await slack.say(MEMBER, "C_HELP", "a workflow says hello")
        await slack.deliver(
            {"type": "app_mention", "channel": "C_HELP", "text": "<@U_BOT> hi", "ts": ts, "team": "T_HOME"}
        )
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
    assert replies(slack, "C_HELP", ts) == [views.REFUSALS["nobody"]]
