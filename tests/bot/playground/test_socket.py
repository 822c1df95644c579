"""What the local Slack tells a real slack_bolt app: twins, edits, commands, redelivery, reconnection."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.server import SlackServer
from bot.playground.workspace import App
from tests.bot.playground.conftest import Join


def told(slack: SlackServer, ts: str) -> list[str]:
    """Return the types of the events about one message, in the order they were sent."""
    events = [each.payload["event"] for each in slack.deliveries]
    return [each["type"] for each in events if each.get("ts") == ts]


@pytest.mark.parametrize("first", ["message", "app_mention"])
async def test_a_mention_is_two_events_with_ids_of_their_own(
    slack: SlackServer, join: Join, first: str
) -> None:
    slack.faults.twins = "message_first" if first == "message" else "mention_first"
    async with join(slack) as seen:
        ts = await slack.say("U_ANA", "C_HELP", "<@U_BOT> hello")
        await slack.wait_for(lambda: len(slack.messages("C_HELP", ts)) == 2 and not slack.unacked())
    second = ({"message", "app_mention"} - {first}).pop()
    assert told(slack, ts) == [first, second]
    twins = [each for each in seen if each["event"].get("ts") == ts]
    assert len({each["event_id"] for each in twins}) == 2
    kinds = {each["event"]["type"]: each["event"].get("channel_type") for each in twins}
    assert kinds == {"message": "channel", "app_mention": None}
    assert slack.messages("C_HELP", ts)[1].text == "an answer"
    assert slack.acks.keys() == {each.envelope_id for each in slack.deliveries}
    assert slack.violations == []


async def test_a_direct_message_is_one_event(slack: SlackServer, join: Join) -> None:
    async with join(slack):
        ts = await slack.say("U_ANA", "D_ANA", "<@U_BOT> hello")
        await slack.wait_for(lambda: not slack.unacked())
    assert told(slack, ts) == ["message"]
    assert slack.deliveries[0].payload["event"]["channel_type"] == "im"


async def test_the_app_is_told_only_of_what_it_may_know(slack: SlackServer) -> None:
    for channel in ("C_LOBBY", "C_SECRET"):
        await slack.say("U_ANA", channel, "<@U_BOT> hello")
    # message.mpim is not among the app's subscriptions, app_mention is.
    await slack.say("U_ANA", "G_GROUP", "hello")
    mentioned = await slack.say("U_ANA", "G_GROUP", "<@U_BOT> hello")
    assert [each.payload["event"]["ts"] for each in slack.deliveries] == [mentioned]


async def test_an_event_names_an_outsiders_team_and_says_nothing_of_a_guest(slack: SlackServer) -> None:
    await slack.say("U_EXT", "C_SHARED", "<@U_BOT> hello")
    await slack.say("U_GUEST", "C_HELP", "<@U_BOT> hello")
    await slack.say("U_OTHERBOT", "C_HELP", "<@U_BOT> hello")
    outsider, guest, robot = (
        each.payload for each in slack.deliveries if each.payload["event"]["type"] == "app_mention"
    )
    assert outsider["is_ext_shared_channel"]
    assert outsider["event"]["user_team"] == "T_OTHER" != outsider["authorizations"][0]["team_id"]
    assert not guest["is_ext_shared_channel"]
    member = {"client_msg_id", "type", "user", "text", "ts", "team", "channel", "event_ts"}
    assert guest["event"].keys() == member
    assert robot["event"]["bot_id"] == "B_OTHER"


async def test_an_edit_that_mentions_is_a_fresh_mention_of_the_same_message(
    slack: SlackServer, join: Join
) -> None:
    async with join(slack) as seen:
        ts = await slack.say("U_ANA", "C_HELP", "hello")
        await slack.edit("C_HELP", ts, "<@U_BOT> hello")
        await slack.edit("C_HELP", ts, "<@U_BOT> hello again")
        await slack.wait_for(lambda: not slack.unacked())
    mentions = [each for each in seen if each["event"]["type"] == "app_mention"]
    assert [each["event"]["text"] for each in mentions] == ["<@U_BOT> hello", "<@U_BOT> hello again"]
    assert {each["event"]["ts"] for each in mentions} == {ts}
    assert len({each["event_id"] for each in mentions}) == 2
    assert all(each["event"]["edited"]["user"] == "U_ANA" for each in mentions)
    changes = [each["event"] for each in seen if each["event"].get("subtype") == "message_changed"]
    assert changes[0]["previous_message"]["text"] == "hello"
    assert changes[0]["message"]["ts"] == ts != changes[0]["ts"]


async def test_a_reply_also_changes_the_root_of_its_thread(slack: SlackServer) -> None:
    root = await slack.say("U_ANA", "C_HELP", "hello")
    reply = await slack.say("U_SAM", "C_HELP", "yes?", thread_ts=root)
    answer, change = (each.payload["event"] for each in slack.deliveries[1:])
    assert (answer["ts"], answer["thread_ts"], answer["parent_user_id"]) == (reply, root, "U_ANA")
    assert (change["subtype"], change["message"]["ts"]) == ("message_changed", root)
    assert change["message"]["latest_reply"] == reply


async def test_a_deleted_message_is_gone_and_a_root_with_replies_is_a_tombstone(slack: SlackServer) -> None:
    alone = await slack.say("U_ANA", "C_HELP", "alone")
    root = await slack.say("U_ANA", "C_HELP", "root")
    reply = await slack.say("U_SAM", "C_HELP", "reply", thread_ts=root)
    await slack.delete("C_HELP", alone)
    await slack.delete("C_HELP", root)
    assert [each.subtype for each in slack.messages("C_HELP")] == ["tombstone"]
    assert [each.ts for each in slack.messages("C_HELP", root)] == [root, reply]
    gone, changed = (each.payload["event"] for each in slack.deliveries[-2:])
    assert (gone["subtype"], gone["deleted_ts"]) == ("message_deleted", alone)
    assert changed["message"]["subtype"] == "tombstone"


async def test_a_reaction_a_join_and_an_opened_tab_are_told(slack: SlackServer, join: Join) -> None:
    async with join(slack):
        ts = await slack.say("U_ANA", "C_HELP", "hello")
        await slack.react("U_SAM", "C_HELP", ts, "thumbsup")
        await slack.join("U_BOT", "C_LOBBY")
        await slack.open_home("U_ANA")
        await slack.wait_for(lambda: not slack.unacked())
    kinds = [each.what for each in slack.deliveries]
    assert kinds == ["message", "reaction_added", "member_joined_channel", "app_home_opened"]
    assert await AsyncWebClient(slack.bot_token, base_url=slack.api_url).chat_postMessage(
        channel="C_LOBBY", text="hi"
    )


async def test_a_lost_ack_brings_the_event_again(slack: SlackServer, join: Join) -> None:
    slack.lose_acks()
    async with join(slack) as seen:
        await slack.say("U_ANA", "D_ANA", "hello")
        await slack.wait_for(lambda: len(slack.acks) == 2)
    first, again = slack.deliveries
    assert first.event_id == again.event_id
    assert first.envelope_id != again.envelope_id
    assert (again.attempt, again.reason) == (1, "timeout")
    assert [each["event_id"] for each in seen] == [first.event_id] * 2
    assert slack.violations == []


async def test_the_same_event_can_be_delivered_again_by_hand(slack: SlackServer, join: Join) -> None:
    async with join(slack) as seen:
        await slack.say("U_ANA", "D_ANA", "hello")
        await slack.redeliver(slack.deliveries[0].event_id)
        await slack.wait_for(lambda: len(slack.acks) == 2)
    assert seen[0] == seen[1]


async def test_a_raw_event_reaches_the_app_with_its_id_and_attempt(slack: SlackServer, join: Join) -> None:
    async with join(slack) as seen:
        await slack.deliver({"type": "pin_added", "user": "U_ANA"}, event_id="Ev_MINE", retry_attempt=2)
        await slack.wait_for(lambda: len(slack.acks) == 1)
    assert seen[0]["event_id"] == "Ev_MINE"
    assert (slack.deliveries[0].attempt, slack.deliveries[0].reason) == (2, "timeout")


async def test_an_event_without_an_ack_is_a_broken_rule_and_comes_again() -> None:
    async with SlackServer(ack_seconds=0.05) as slack:
        deaf = SocketModeClient(
            slack.app_token, web_client=AsyncWebClient(base_url=slack.api_url), ping_interval=1
        )
        await deaf.connect()  # type: ignore[no-untyped-call]  # the SDK does not annotate it
        try:
            await slack.say("U_ANA", "D_ANA", "hello")
            await slack.wait_for(lambda: len(slack.deliveries) == 2)
        finally:
            await deaf.close()  # type: ignore[no-untyped-call]  # the SDK does not annotate it
        assert slack.violations[0].kind == "unacked"
        assert slack.deliveries[1].attempt == 1
        assert [each.what for each in slack.unacked()] == ["message", "message"]


async def test_a_second_ack_and_an_ack_of_nothing_are_broken_rules(slack: SlackServer) -> None:
    opened = await AsyncWebClient(base_url=slack.api_url).apps_connections_open(app_token=slack.app_token)
    async with aiohttp.ClientSession() as session, session.ws_connect(opened["url"]) as socket:
        assert (await socket.receive_json())["num_connections"] == 1
        await slack.say("U_ANA", "D_ANA", "hello")
        envelope = (await socket.receive_json())["envelope_id"]
        for each in (envelope, envelope, "of nothing"):
            await socket.send_str(json.dumps({"envelope_id": each}))
        await slack.wait_for(lambda: len(slack.violations) == 2)
    assert [each.kind for each in slack.violations] == ["double_ack", "unknown_ack"]


async def test_an_address_opens_one_connection_and_the_eleventh_is_refused(slack: SlackServer) -> None:
    client = AsyncWebClient(base_url=slack.api_url)

    async def address() -> str:
        return str((await client.apps_connections_open(app_token=slack.app_token))["url"])

    async with aiohttp.ClientSession() as session:
        used = await address()
        sockets = [await session.ws_connect(used)]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(used)
        sockets += [await session.ws_connect(await address()) for _ in range(9)]
        late = await session.ws_connect(await address())
        assert (await late.receive_json())["reason"] == "too_many_websockets"
        for each in [*sockets, late]:
            await each.close()


@pytest.mark.parametrize("way", ["refresh_requested", "warning", "cut"])
async def test_an_app_comes_back_when_its_connection_goes(slack: SlackServer, join: Join, way: str) -> None:
    async with join(slack) as seen:
        if way == "cut":
            await slack.cut()
        else:
            await slack.disconnect("warning" if way == "warning" else "refresh_requested")
        await slack.wait_for(lambda: slack.socket.opened == 2)
        await slack.say("U_ANA", "D_ANA", "hello")
        await slack.wait_for(lambda: slack.acks)
    assert [each["event"]["text"] for each in seen] == ["hello"]


async def test_a_disabled_link_gives_no_new_address(slack: SlackServer, join: Join) -> None:
    async with join(slack):
        await slack.disconnect("link_disabled")
        await slack.wait_for(lambda: any(each.error == "socket_mode_not_enabled" for each in slack.calls))
        assert slack.socket.connections == 0


async def test_events_wait_while_no_app_is_connected(slack: SlackServer, join: Join) -> None:
    ts = await slack.say("U_ANA", "C_HELP", "<@U_BOT> hello")
    async with join(slack):
        await slack.wait_for(lambda: len(slack.messages("C_HELP", ts)) == 2)


async def test_a_command_is_answered_by_its_ack_and_by_its_response_url(
    slack: SlackServer, join: Join
) -> None:
    async with join(slack) as seen:
        sent = await slack.command("U_ADMIN", "C_HELP", "/twohop", "reindex")
        await slack.wait_for(lambda: len(slack.ephemerals("U_ADMIN")) == 2)
    assert {each.text for each in slack.ephemerals("U_ADMIN", "C_HELP")} == {"at once", "in a while"}
    assert slack.ephemerals("U_ANA") == slack.messages("C_HELP") == []
    assert (seen[0]["text"], seen[0]["user_id"], seen[0]["channel_name"]) == ("reindex", "U_ADMIN", "help")
    assert sent.answer == {"text": "at once"}
    with pytest.raises(ValueError, match="no command '/other'"):
        await slack.command("U_ADMIN", "C_HELP", "/other")


async def test_an_ack_that_carries_what_slack_refuses_is_a_broken_rule(slack: SlackServer) -> None:
    opened = await AsyncWebClient(base_url=slack.api_url).apps_connections_open(app_token=slack.app_token)
    async with aiohttp.ClientSession() as session, session.ws_connect(opened["url"]) as socket:
        sent = await slack.command("U_ADMIN", "C_HELP", "/twohop")
        answer = {"envelope_id": sent.envelope_id, "payload": {"text": "x", "blocks": [{"type": "poem"}]}}
        await slack.wait_for(lambda: sent.sent is not None)
        await socket.send_str(json.dumps(answer))
        await slack.wait_for(lambda: slack.violations)
    assert [each.kind for each in slack.violations] == ["bad_answer"]
    assert slack.ephemerals("U_ADMIN") == []


async def test_a_response_url_serves_five_times(slack: SlackServer) -> None:
    url = (await slack.command("U_ADMIN", "C_HELP", "/twohop")).payload["response_url"]

    async def respond(body: dict[str, Any]) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
            return response.status, await response.text()

    assert await respond({"text": "one"}) == (200, "ok")
    assert await respond({"text": "two", "replace_original": True}) == (200, "ok")
    assert [each.text for each in slack.ephemerals("U_ADMIN")] == ["two"]
    assert await respond({"text": "all see it", "response_type": "in_channel"}) == (200, "ok")
    assert [each.text for each in slack.messages("C_HELP")] == ["all see it"]
    assert await respond({}) == (400, "no_text")
    assert await respond({"delete_original": True}) == (200, "ok")
    assert slack.ephemerals("U_ADMIN") == []
    assert await respond({"text": "six"}) == (404, "used_url")


async def test_a_click_opens_a_modal_once(slack: SlackServer, join: Join, client: AsyncWebClient) -> None:
    button = {
        "type": "button",
        "action_id": "more",
        "value": "7",
        "text": {"type": "plain_text", "text": "More"},
    }
    blocks = [{"type": "actions", "block_id": "b", "elements": [button]}]
    posted = await client.chat_postMessage(channel="C_HELP", text="press", blocks=blocks)
    async with join(slack) as seen:
        await slack.click("U_ANA", "C_HELP", posted["ts"], "more")
        await slack.wait_for(lambda: slack.state.views)
    clicked = next(each for each in seen if each.get("type") == "block_actions")
    assert (clicked["actions"][0]["value"], clicked["actions"][0]["block_id"]) == ("7", "b")
    assert next(iter(slack.state.views.values())).user == "U_ANA"
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await client.views_open(trigger_id=clicked["trigger_id"], view={"type": "modal"})
    with pytest.raises(ValueError, match="no element 'less'"):
        await slack.click("U_ANA", "C_HELP", posted["ts"], "less")


async def test_people_do_only_what_they_can(slack: SlackServer) -> None:
    with pytest.raises(ValueError, match="no user 'U_NOBODY'"):
        await slack.say("U_NOBODY", "C_HELP", "hello")
    with pytest.raises(ValueError, match="no channel 'C_NOWHERE'"):
        await slack.say("U_ANA", "C_NOWHERE", "hello")
    with pytest.raises(ValueError, match="'U_EXT' is not in 'C_HELP'"):
        await slack.say("U_EXT", "C_HELP", "hello")
    with pytest.raises(ValueError, match=r"no thread '1\.0'"):
        await slack.say("U_ANA", "C_HELP", "hello", thread_ts="1.0")


async def test_waiting_ends_with_a_report(slack: SlackServer) -> None:
    await slack.say("U_ANA", "C_HELP", "hello")
    with pytest.raises(TimeoutError, match=r"0 connections\nC_HELP .* U_ANA: 'hello'"):
        await slack.wait_for(lambda: False, seconds=0.01)


async def test_a_manifest_says_what_the_app_may_do() -> None:
    app = App.from_manifest(
        {
            "features": {"slash_commands": [{"command": "/ask"}]},
            "oauth_config": {"scopes": {"bot": ["app_mentions:read"]}},
            "settings": {"event_subscriptions": {"bot_events": ["app_mention"]}},
        }
    )
    async with SlackServer(app=app) as slack:
        await slack.say("U_ANA", "C_HELP", "<@U_BOT> hello")
        await slack.command("U_ANA", "C_HELP", "/ask", "hello")
        assert [each.what for each in slack.deliveries] == ["app_mention", "/ask"]
