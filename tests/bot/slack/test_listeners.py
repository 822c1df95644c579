"""What is a question to the bot, who asks it, and that listeners and manifest name the same things."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult

from bot.slack.access import Us
from bot.slack.app import manifest
from bot.slack.listeners import normalise, register
from bot.store import Inbound

US = Us("U_BOT", "B_BOT", "twohop", "T_HOME", "Home")


def body(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole = {
        "type": "app_mention",
        "user": "U1",
        "text": "<@U_BOT> hi",
        "channel": "C1",
        "ts": "1.000100",
        **event,
    }
    return {
        "type": "event_callback",
        "team_id": "T_HOME",
        "event_id": "Ev1",
        "event": {name: value for name, value in whole.items() if value is not None},
        **more,
    }


DM = {"type": "message", "channel": "D1", "channel_type": "im", "text": "hi"}
GROUP = {"type": "message", "channel": "G1", "channel_type": "mpim"}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"thread_ts": "0.5"},
        {"edited": {"user": "U1", "ts": "2.0"}},
        {"subtype": "file_share", "files": [{"id": "F1"}]},
        {"subtype": "thread_broadcast"},
        DM,
        {**DM, "channel_type": None},
        {**DM, "subtype": "file_share", "text": "", "files": [{"id": "F1"}]},
        {**GROUP, "text": "<@U_BOT> hi"},
        {"type": "message", "channel_type": "channel", "text": "hey <@U_BOT|twohop>"},
    ],
)
def test_what_is_addressed_to_the_bot_is_a_question(event: dict[str, Any]) -> None:
    found = normalise(body(event), US)
    assert found is not None
    assert found.refusal == ""
    assert found.thread_root == event.get("thread_ts", "1.000100")
    assert found.private == (event.get("channel") == "D1")


@pytest.mark.parametrize(
    "event",
    [
        {"subtype": "message_changed"},
        {**DM, "subtype": "message_deleted"},
        {**DM, "subtype": "message_replied"},
        {**DM, "subtype": "bot_message", "bot_id": "B2"},
        {**DM, "subtype": "channel_join"},
        {**DM, "subtype": "assistant_app_thread"},
        {**DM, "bot_id": "B_BOT"},
        {"bot_id": "B2", "user": "U2"},
        {"bot_profile": {"id": "B2"}},
        {**DM, "user": "U_BOT"},
        {**DM, "user": "USLACKBOT"},
        {**DM, "hidden": True},
        {**GROUP, "text": "hi all"},
        {"type": "message", "channel_type": "channel", "text": "plain chatter"},
        {"type": "message", "channel_type": "channel", "text": "ask <@U_ANA>"},
        {"type": "reaction_added"},
        {"channel": None},
        {"ts": None},
    ],
)
def test_what_is_not_is_ignored(event: dict[str, Any]) -> None:
    assert normalise(body(event), US) is None


@pytest.mark.parametrize(
    ("event", "more", "refusal"),
    [
        ({"user": None}, {}, "nobody"),
        ({"user_team": "T_OTHER"}, {}, "external"),
        ({"source_team": "T_OTHER"}, {}, "external"),
        ({"team": "T_OTHER"}, {}, "external"),
        ({}, {"is_ext_shared_channel": True}, "shared"),
        ({"team": "T_HOME"}, {"is_ext_shared_channel": True}, "shared"),
        ({"team": "T_HOME", "channel": "C_OK"}, {"is_ext_shared_channel": True}, ""),
        ({"user_team": "T_OTHER", "channel": "C_OK"}, {"is_ext_shared_channel": True}, "external"),
        # What Slack does not document says nothing: who somebody is comes from users.info.
        ({"user_profile": {"is_restricted": True}}, {}, ""),
        ({"user_profile": {"is_stranger": True}}, {}, ""),
    ],
)
def test_what_an_event_itself_says_against_an_answer(
    event: dict[str, Any], more: dict[str, Any], refusal: str
) -> None:
    found = normalise(body(event, **more), US, {"C_OK", ""})
    assert found is not None
    assert found.refusal == refusal


def test_in_a_grid_another_team_may_be_a_sibling_and_is_found_out_later() -> None:
    grid = dataclasses.replace(US, enterprise="E_ORG")
    found = normalise(
        body({"user_team": "T_OTHER", "channel": "C_OK"}, is_ext_shared_channel=True), grid, {"C_OK"}
    )
    assert found is not None
    assert found.refusal == ""


class Heard:
    """Keeps what the listeners hand on."""

    def __init__(self) -> None:
        self.said: list[object] = []

    async def receive(self, inbound: Inbound) -> None:
        self.said.append(("asked", inbound.event_id))

    async def stop(self, *where: str) -> None:
        self.said.append(("stopped", where))

    async def command(self, payload: object) -> str:
        self.said.append("command")
        return "reply"


def app_with(heard: Heard) -> AsyncApp:
    async def authorize(**_: Any) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None, team_id="T_HOME", bot_user_id="U_BOT", bot_id="B_BOT", bot_token="xoxb-1"
        )

    app = AsyncApp(name="test", authorize=authorize, process_before_response=True)
    register(app, US, (), receive=heard.receive, stop=heard.stop, command=heard.command)
    return app


async def dispatch(heard: Heard, payload: dict[str, Any]) -> int:
    response = await app_with(heard).async_dispatch(AsyncBoltRequest(body=payload, mode="socket_mode"))
    return response.status


async def test_every_event_and_command_of_the_manifest_is_listened_to() -> None:
    events = manifest()["settings"]["event_subscriptions"]["bot_events"]
    made = {
        "app_mention": body({}),
        "message.im": body(DM),
        "agent_session_stopped": body({"type": "agent_session_stopped", "thread_ts": "0.5"}),
    }
    assert set(events) == set(made), "an event without a listener, or a listener without its event"
    for name in events:
        heard = Heard()
        assert await dispatch(heard, made[name]) == 200
        assert heard.said, name
    (command,) = manifest()["features"]["slash_commands"]
    heard = Heard()
    assert await dispatch(heard, {"command": command["command"], "user_id": "U1", "team_id": "T_HOME"}) == 200
    assert heard.said == ["command"]


def test_the_manifest_asks_for_what_is_used_and_for_no_more() -> None:
    scopes = set(manifest()["oauth_config"]["scopes"]["bot"])
    for_events = {"app_mentions:read", "im:history"}
    for_methods = {"chat:write", "assistant:write", "channels:history", "groups:history", "im:write"}
    assert scopes == {*for_events, *for_methods, "users:read", "commands"}
    assert manifest()["settings"]["socket_mode_enabled"] is True
    assert "assistant_view" not in manifest()["features"]


@pytest.mark.parametrize(
    "payload",
    [
        body({"type": "something_new"}),
        body({"type": "message", "channel_type": "channel", "text": "chatter"}),
        {"command": "/other", "user_id": "U1", "team_id": "T_HOME"},
        {
            "type": "block_actions",
            "user": {"id": "U1"},
            "team": {"id": "T_HOME"},
            "actions": [{"action_id": "old", "block_id": "b", "type": "button"}],
        },
        {"type": "shortcut", "callback_id": "old", "user": {"id": "U1"}, "team": {"id": "T_HOME"}},
        {
            "type": "view_submission",
            "view": {"callback_id": "old", "type": "modal"},
            "user": {"id": "U1"},
            "team": {"id": "T_HOME"},
        },
    ],
)
async def test_what_nobody_knows_is_acknowledged(payload: dict[str, Any]) -> None:
    heard = Heard()
    assert await dispatch(heard, payload) == 200
    assert heard.said == []
