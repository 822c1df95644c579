"""What the local Slack answers the real slack_sdk client: contents, refusals, rates, streams, statuses, faults."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.blocks import expansion
from bot.playground.server import SlackServer
from bot.playground.workspace import App, Workspace


async def refused(call: Any) -> dict[str, Any]:
    """Return the answer of a call that Slack refuses."""
    with pytest.raises(SlackApiError) as caught:
        await call
    return dict(caught.value.response.data)


def text(words: str, kind: str = "mrkdwn") -> dict[str, Any]:
    return {"type": kind, "text": words}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


# Who may call


async def test_auth_test_names_the_app_and_its_scopes(slack: SlackServer, client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert (answer["user_id"], answer["bot_id"], answer["team_id"]) == ("U_BOT", "B_BOT", "T_HOME")
    assert set(answer.headers["x-oauth-scopes"].split(",")) == slack.app.scopes


async def test_tokens_of_the_wrong_kind_are_refused(slack: SlackServer, client: AsyncWebClient) -> None:
    nobody = AsyncWebClient(base_url=slack.api_url)
    assert (await refused(nobody.auth_test()))["error"] == "not_authed"
    assert (await refused(nobody.auth_test(token="xoxb-other")))["error"] == "invalid_auth"
    assert (await refused(nobody.auth_test(token=slack.app_token)))["error"] == "not_allowed_token_type"
    wrong = nobody.apps_connections_open(app_token=slack.bot_token)
    assert (await refused(wrong))["error"] == "not_allowed_token_type"


async def test_a_missing_scope_is_named() -> None:
    async with SlackServer(app=App(scopes=frozenset({"chat:write", "channels:history"}))) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        answer = await refused(client.users_info(user="U_ANA"))
        assert (answer["error"], answer["needed"]) == ("missing_scope", "users:read")
        assert answer["provided"] == "channels:history,chat:write"
        assert (await client.conversations_history(channel="C_HELP"))["messages"] == []
        answer = await refused(client.conversations_history(channel="C_PRIVATE"))
        assert answer["needed"] == "groups:history"


async def test_unknown_methods_and_arguments(slack: SlackServer, client: AsyncWebClient) -> None:
    assert (await refused(client.api_call("chat.shout")))["error"] == "unknown_method"
    answer = await refused(client.api_call("chat.postMessage", json={"text": "hi"}))
    assert answer["error"] == "invalid_arguments"
    assert answer["response_metadata"]["messages"] == ["[ERROR] missing required field: channel"]
    await client.chat_postMessage(channel="C_HELP", text="hi", thread="1.0")
    assert [each.text for each in slack.violations] == ["chat.postMessage has no argument 'thread'"]
    assert [(each.method, each.error) for each in slack.calls[:2]] == [
        ("chat.shout", "unknown_method"),
        ("chat.postMessage", "invalid_arguments"),
    ]


async def test_a_form_is_read_as_json_is(slack: SlackServer) -> None:
    form = {"channel": "C_HELP", "text": "hi", "blocks": '[{"type": "divider"}]', "token": slack.bot_token}
    async with aiohttp.ClientSession() as session:
        async with session.post(slack.api_url + "chat.postMessage", data=form) as response:
            assert (await response.json())["ok"]
        async with session.post(slack.api_url + "chat.postMessage", data=form | {"blocks": "[{"}) as response:
            assert (await response.json())["error"] == "invalid_arguments"
    assert slack.messages("C_HELP")[0].blocks == [{"type": "divider"}]
    assert "token" not in slack.calls[0].arguments


# Where it may write


@pytest.mark.parametrize(
    ("channel", "error"),
    [
        ("C_NOWHERE", "channel_not_found"),
        ("C_SECRET", "channel_not_found"),
        ("C_LOBBY", "not_in_channel"),
        ("C_ARCHIVED", "is_archived"),
        ("U_OTHERBOT", "cannot_dm_bot"),
    ],
)
async def test_channels_that_refuse_a_post(client: AsyncWebClient, channel: str, error: str) -> None:
    assert (await refused(client.chat_postMessage(channel=channel, text="hi")))["error"] == error


async def test_a_post_to_a_person_is_a_direct_message(slack: SlackServer, client: AsyncWebClient) -> None:
    assert (await client.chat_postMessage(channel="U_ANA", text="hi"))["channel"] == "D_ANA"
    assert (await client.conversations_open(users="U_ANA"))["channel"]["id"] == "D_ANA"
    assert [each.text for each in slack.messages("D_ANA")] == ["hi"]


async def test_a_thread_that_never_was_is_a_broken_rule_and_a_deleted_one_is_not(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    ts = await slack.say("U_ANA", "C_HELP", "hello")
    await slack.delete("C_HELP", ts)
    for thread in (ts, "1.000000"):
        answer = await refused(client.chat_postMessage(channel="C_HELP", text="hi", thread_ts=thread))
        assert answer["error"] == "thread_not_found"
    assert [each.kind for each in slack.violations] == ["unknown_thread"]


async def test_a_post_to_a_reply_lands_in_its_thread_and_is_a_broken_rule(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    root = await slack.say("U_ANA", "C_HELP", "hello")
    reply = await slack.say("U_SAM", "C_HELP", "yes?", thread_ts=root)
    await client.chat_postMessage(channel="C_HELP", text="hi", thread_ts=reply)
    assert [each.text for each in slack.messages("C_HELP", root)] == ["hello", "yes?", "hi"]
    assert [each.kind for each in slack.violations] == ["reply_as_thread"]


async def test_an_ephemeral_message_is_seen_by_one_person(slack: SlackServer, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(channel="C_HELP", user="U_ANA", text="only you")
    assert [each.text for each in slack.ephemerals("U_ANA")] == ["only you"]
    assert slack.ephemerals("U_SAM") == slack.messages("C_HELP") == []
    answer = await refused(client.chat_postEphemeral(channel="C_HELP", user="U_EXT", text="only you"))
    assert answer["error"] == "user_not_in_channel"


# What a message may hold


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"text": "a", "markdown_text": "b"}, "markdown_text_conflict"),
        ({"markdown_text": "a" * 12_001}, "msg_too_long"),
        ({"text": "a", "metadata": {"event_type": "answer"}}, "invalid_metadata_format"),
        ({"text": "a", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "poem"}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "section"}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "section", "text": text("a" * 3001)}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "section", "text": text("")}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "header", "text": text("a", "mrkdwn")}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "context", "elements": [text("a")] * 11}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "actions", "elements": []}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "markdown", "text": "# a\n" * 51}]}, "invalid_blocks"),
        ({"text": "a", "blocks": [{"type": "markdown", "text": "a" * 6_001}] * 2}, "msg_blocks_too_long"),
        (
            {"text": "a", "blocks": [{"type": "section", "text": text("a" * 2_700)}] * 5},
            "msg_blocks_too_long",
        ),
    ],
)
async def test_contents_that_are_refused(
    slack: SlackServer, client: AsyncWebClient, content: dict[str, Any], error: str
) -> None:
    assert (await refused(client.chat_postMessage(channel="C_HELP", **content)))["error"] == error
    assert slack.messages("C_HELP") == []


async def test_a_message_of_nothing_is_refused(client: AsyncWebClient) -> None:
    # Not by chat_postMessage: the SDK warns of it.
    assert (await refused(client.api_call("chat.postMessage", json={"channel": "C_HELP"})))[
        "error"
    ] == "no_text"


async def test_a_refused_block_is_pointed_at(client: AsyncWebClient) -> None:
    button = {
        "type": "button",
        "text": text("a" * 76, "plain_text"),
        "value": "b" * 2001,
        "action_id": "c" * 256,
    }
    blocks: list[dict[str, object]] = [{"type": "divider"}, {"type": "actions", "elements": [button]}]
    answer = await refused(client.chat_postMessage(channel="C_HELP", text="a", blocks=blocks))
    assert answer["errors"] == [
        "must be less than 256 characters [json-pointer:/blocks/1/elements/0/action_id]",
        "must be less than 76 characters [json-pointer:/blocks/1/elements/0/text/text]",
        "must be less than 2001 characters [json-pointer:/blocks/1/elements/0/value]",
    ]


async def test_every_layout_of_an_answer_passes(client: AsyncWebClient) -> None:
    thumbs = {
        f"{name}_button": {"text": text(name, "plain_text"), "value": name}
        for name in ("positive", "negative")
    }
    more = {"type": "button", "text": text("More", "plain_text"), "action_id": "more"}
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": text("Title", "plain_text")},
        {"type": "markdown", "text": "**Yes** [1]\n\n- a\n- b"},
        {"type": "context", "elements": [text("[1] <https://example.com|Terms>")]},
        {
            "type": "context_actions",
            "elements": [{"type": "feedback_buttons", "action_id": "rate", **thumbs}],
        },
        {"type": "actions", "elements": [more]},
        {"type": "section", "fields": [text("a"), text("b")], "accessory": more},
        {"type": "container", "title": text("Tried", "plain_text"), "child_blocks": [{"type": "divider"}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}]]},
    ]
    assert (await client.chat_postMessage(channel="C_HELP", text="Yes", blocks=blocks))["ok"]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("", 0),
        ("one\ntwo", 1),
        ("one\n\ntwo", 2),
        ("# a\n# b\ntext", 3),
        ("- a\n- b\n\n1. c", 2),
        ("| a |\n|---|\n| b |", 1),
        ("```\n# not a heading\n\n- nor a list\n```\nafter", 2),
        ("> a\n> b", 1),
    ],
)
def test_what_markdown_expands_to(words: str, count: int) -> None:
    assert expansion(words) == count


async def test_a_text_over_the_limit_is_cut_and_a_broken_rule(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    await client.chat_postMessage(channel="C_HELP", text="a" * 40_001)
    assert len(slack.messages("C_HELP")[0].text) == 40_000
    assert [each.kind for each in slack.violations] == ["text_cut"]


# Reading


async def test_metadata_comes_back_only_when_asked_for(slack: SlackServer, client: AsyncWebClient) -> None:
    metadata = {"event_type": "answer", "event_payload": {"id": "7"}}
    root = await slack.say("U_ANA", "C_HELP", "hello")
    await client.chat_postMessage(channel="C_HELP", text="hi", thread_ts=root, metadata=metadata)
    shown = (await client.conversations_replies(channel="C_HELP", ts=root, include_all_metadata=True))[
        "messages"
    ]
    assert [each.get("metadata") for each in shown] == [None, metadata]
    assert shown[0]["reply_count"] == 1
    hidden = (await client.conversations_replies(channel="C_HELP", ts=root))["messages"]
    assert all("metadata" not in each for each in hidden)


async def test_a_thread_is_read_in_pages_oldest_first(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("U_ANA", "C_HELP", "0")
    for number in range(1, 5):
        last = await slack.say("U_ANA", "C_HELP", str(number), thread_ts=root)
    pages = []
    async for page in await client.conversations_replies(channel="C_HELP", ts=root, limit=2):
        pages.append([each["text"] for each in page["messages"]])
    assert pages == [["0", "1"], ["2", "3"], ["4"]]
    newest = await client.conversations_replies(channel="C_HELP", ts=root, oldest=last, inclusive=True)
    assert [each["text"] for each in newest["messages"]] == ["0", "4"]
    before = await client.conversations_replies(channel="C_HELP", ts=root, latest=last)
    assert [each["text"] for each in before["messages"]] == ["0", "1", "2", "3"]
    assert (await refused(client.conversations_replies(channel="C_HELP", ts="1.0")))[
        "error"
    ] == "thread_not_found"


async def test_a_channel_is_read_newest_first_without_its_threads(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    root = await slack.say("U_ANA", "C_HELP", "one")
    await slack.say("U_ANA", "C_HELP", "reply", thread_ts=root)
    await slack.say("U_ANA", "C_HELP", "two")
    shown = (await client.conversations_history(channel="C_HELP"))["messages"]
    assert [each["text"] for each in shown] == ["two", "one"]
    assert (await refused(client.conversations_history(channel="C_LOBBY")))["error"] == "not_in_channel"


async def test_what_is_told_of_people_and_channels(client: AsyncWebClient) -> None:
    users = {
        each: (await client.users_info(user=each))["user"]
        for each in ("U_ADMIN", "U_GUEST", "U_EXT", "U_OTHERBOT", "U_ANA")
    }
    assert users["U_ADMIN"]["is_admin"]
    assert users["U_GUEST"]["is_restricted"]
    assert not users["U_GUEST"]["is_ultra_restricted"]
    assert users["U_EXT"]["team_id"] == "T_OTHER"
    # Whom the app meets in a channel is no stranger to it, whatever their organisation.
    assert [users[each]["is_stranger"] for each in users] == [False] * len(users)
    assert "enterprise_user" not in users["U_ANA"]
    assert users["U_OTHERBOT"]["is_bot"]
    assert (await refused(client.users_info(user="U_NOBODY")))["error"] == "user_not_found"
    assert (await client.conversations_info(channel="C_SHARED"))["channel"]["is_ext_shared"]
    assert (await client.conversations_info(channel="D_ANA"))["channel"]["user"] == "U_ANA"
    assert not (await client.conversations_info(channel="C_LOBBY"))["channel"]["is_member"]
    members = (await client.conversations_members(channel="C_SHARED"))["members"]
    assert members == ["U_ADMIN", "U_ANA", "U_BOT", "U_EXT", "U_SAM"]
    assert (await client.usergroups_users_list(usergroup="S_SUPPORT"))["users"] == ["U_ADMIN", "U_SAM"]
    assert (await refused(client.usergroups_users_list(usergroup="S_NONE")))["error"] == "no_such_subteam"


async def test_an_account_is_shown_as_it_is_now(slack: SlackServer, client: AsyncWebClient) -> None:
    async def shown(user: str) -> dict[str, Any]:
        found: dict[str, Any] = (await client.users_info(user=user))["user"]
        return found

    slack.change("U_ANA", guest="single-channel")
    assert (await shown("U_ANA"))["is_restricted"]
    assert (await shown("U_ANA"))["is_ultra_restricted"]
    slack.change("U_ANA", deleted=True)
    assert (await shown("U_ANA"))["deleted"]
    assert "is_restricted" not in await shown("U_ANA")
    for place in ("C_SHARED", "D_EXT"):
        slack.state.members[place].discard("U_EXT")
    assert (await shown("U_EXT"))["is_stranger"]


async def test_the_workspaces_of_a_grid_are_one_organisation() -> None:
    async with SlackServer(Workspace.grid()) as slack:
        client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_url)
        assert (await client.auth_test())["enterprise_id"] == "E_ORG"
        sibling = (await client.users_info(user="U_SIB"))["user"]
        assert (sibling["team_id"], sibling["is_stranger"]) == ("T_SIBLING", False)
        assert sibling["enterprise_user"]["enterprise_id"] == "E_ORG"
        assert "enterprise_user" not in (await client.users_info(user="U_EXT"))["user"]
        organisation = (await client.conversations_info(channel="C_ORG"))["channel"]
        assert (organisation["is_org_shared"], organisation["is_ext_shared"]) == (True, False)
        assert (await client.conversations_info(channel="C_SHARED"))["channel"]["is_ext_shared"]
        await slack.say("U_SIB", "C_ORG", "<@U_BOT> hello")
        mention = slack.deliveries[-1].payload
        assert not mention["is_ext_shared_channel"]
        assert mention["authorizations"][0]["enterprise_id"] == "E_ORG"


async def test_a_permalink_names_the_thread(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("U_ANA", "C_HELP", "hello")
    reply = await slack.say("U_ANA", "C_HELP", "again", thread_ts=root)
    link = (await client.chat_getPermalink(channel="C_HELP", message_ts=reply))["permalink"]
    assert (
        link
        == f"https://sample.slack.com/archives/C_HELP/p{reply.replace('.', '')}?thread_ts={root}&cid=C_HELP"
    )


# Changing


async def test_the_app_changes_and_deletes_only_its_own(slack: SlackServer, client: AsyncWebClient) -> None:
    theirs = await slack.say("U_ANA", "C_HELP", "hello")
    own = (await client.chat_postMessage(channel="C_HELP", text="hi", blocks=[{"type": "divider"}]))["ts"]
    await client.chat_update(channel="C_HELP", ts=own, text="changed")
    message = slack.messages("C_HELP")[1]
    assert (message.text, message.blocks) == ("changed", [{"type": "divider"}])
    assert (await refused(client.chat_update(channel="C_HELP", ts=theirs, text="x")))[
        "error"
    ] == "cant_update_message"
    assert (await refused(client.chat_update(channel="C_HELP", ts=own, text="a" * 4001)))[
        "error"
    ] == "msg_too_long"
    assert (await refused(client.chat_delete(channel="C_HELP", ts=theirs)))["error"] == "cant_delete_message"
    await client.chat_delete(channel="C_HELP", ts=own)
    assert (await refused(client.chat_update(channel="C_HELP", ts=own, text="x")))[
        "error"
    ] == "message_not_found"


async def test_a_reaction_is_added_once(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await slack.say("U_ANA", "C_HELP", "hello")
    await client.reactions_add(channel="C_HELP", timestamp=ts, name="eyes")
    assert slack.messages("C_HELP")[0].reactions == {"eyes": ["U_BOT"]}
    again = client.reactions_add(channel="C_HELP", timestamp=ts, name="eyes")
    assert (await refused(again))["error"] == "already_reacted"
    await client.reactions_remove(channel="C_HELP", timestamp=ts, name="eyes")
    assert slack.messages("C_HELP")[0].reactions == {}
    again = client.reactions_remove(channel="C_HELP", timestamp=ts, name="eyes")
    assert (await refused(again))["error"] == "no_reaction"


async def test_more_than_a_short_burst_is_a_broken_rule() -> None:
    clock = Clock()
    async with SlackServer(monotonic=clock) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        for _ in range(5):
            await client.chat_postMessage(channel="C_HELP", text="hi")
        await client.chat_postMessage(channel="C_PRIVATE", text="hi")
        clock.at += 1.0
        await client.chat_postMessage(channel="C_HELP", text="hi")
        assert slack.violations == []
        ts = (await client.chat_postMessage(channel="C_HELP", text="hi"))["ts"]
        await client.chat_update(channel="C_HELP", ts=ts, text="a")
        await client.chat_update(channel="C_HELP", ts=ts, text="b")
        assert [each.kind for each in slack.violations] == ["post_rate", "update_rate"]


# What the app is doing


async def test_a_status_goes_with_the_answer_with_no_text_or_with_time() -> None:
    clock = Clock()
    async with SlackServer(now=clock) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        one = await slack.say("U_ANA", "C_HELP", "one")
        two = await slack.say("U_ANA", "C_HELP", "two")

        async def status(ts: str, words: str) -> None:
            await client.assistant_threads_setStatus(channel_id="C_HELP", thread_ts=ts, status=words)

        await status(one, "is searching")
        await status(two, "is reading")
        assert slack.status == {("C_HELP", one): "is searching", ("C_HELP", two): "is reading"}
        assert [each.kind for each in slack.unfinished()] == ["status_left", "status_left"]
        await client.chat_postMessage(channel="C_HELP", thread_ts=one, text="done")
        await status(two, "")
        assert slack.status == {}
        await status(two, "is reading")
        clock.at += 120.0
        assert slack.status == {}
        bad = client.assistant_threads_setStatus(channel_id="C_HELP", thread_ts="1.0", status="is lost")
        assert (await refused(bad))["error"] == "invalid_thread_ts"


async def test_what_is_left_open_is_a_broken_rule_at_the_end() -> None:
    async with SlackServer() as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        ts = await slack.say("U_ANA", "D_ANA", "hello")
        await client.agents_sessions_setStatus(channel_id="D_ANA", thread_ts=ts, status="processing")
        await client.chat_startStream(channel="D_ANA", thread_ts=ts, markdown_text="a")
        await client.assistant_threads_setStatus(channel_id="D_ANA", thread_ts=ts, status="is searching")
        assert slack.violations == []
    assert {each.kind for each in slack.violations} == {"status_left", "session_left", "stream_left"}


async def test_the_life_of_a_session(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await slack.say("U_ANA", "D_ANA", "hello")
    key = {"channel_id": "D_ANA", "thread_ts": ts}
    assert (await refused(client.agents_sessions_rename(**key, title="x")))["error"] == "session_not_found"
    made = await client.agents_sessions_setStatus(**key, status="processing", title="hello")
    assert (made["agent_status"], made["title"]) == ("processing", "hello")
    assert "warning" not in made.data
    await client.agents_sessions_rename(**key, title="greeting")
    await client.agents_sessions_setStatus(**key, status="closed", title="ignored")
    assert slack.state.sessions["D_ANA", ts].title == "greeting"
    assert (await refused(client.agents_sessions_setStatus(**key, status="active")))[
        "error"
    ] == "session_closed"


async def test_a_session_without_the_stop_event_is_warned_about() -> None:
    async with SlackServer(app=App(events=frozenset({"message.im"}))) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        ts = await slack.say("U_ANA", "D_ANA", "hello")
        made = await client.agents_sessions_setStatus(channel_id="D_ANA", thread_ts=ts, status="processing")
        assert made["warning"] == "missing_agent_session_stopped_event_subscription"
        await client.agents_sessions_setStatus(channel_id="D_ANA", thread_ts=ts, status="active")


async def test_suggested_prompts_are_kept(slack: SlackServer, client: AsyncWebClient) -> None:
    prompts = [{"title": "Refund", "message": "Can I have a refund?"}]
    await client.assistant_threads_setSuggestedPrompts(channel_id="D_ANA", prompts=prompts)
    assert slack.state.prompts == {("D_ANA", None): prompts}
    many = client.assistant_threads_setSuggestedPrompts(channel_id="D_ANA", prompts=prompts * 5)
    assert (await refused(many))["error"] == "invalid_arguments"


async def test_a_home_tab_is_published_against_its_hash(slack: SlackServer, client: AsyncWebClient) -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    made = await client.views_publish(user_id="U_ANA", view=home)
    await client.views_publish(user_id="U_ANA", view=home, hash=made["view"]["hash"])
    late = client.views_publish(user_id="U_ANA", view=home, hash=made["view"]["hash"])
    assert (await refused(late))["error"] == "hash_conflict"
    wrong = client.views_publish(
        user_id="U_ANA", view={"type": "home", "blocks": [{"type": "divider"}] * 101}
    )
    assert (await refused(wrong))["error"] == "invalid_arguments"


async def test_a_trigger_is_old_after_three_seconds() -> None:
    clock = Clock()
    async with SlackServer(monotonic=clock) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        view = {"type": "modal", "title": text("Title", "plain_text"), "blocks": []}
        sent = await slack.command("U_ANA", "C_HELP", "/twohop")
        opened = await client.views_open(trigger_id=sent.payload["trigger_id"], view=view)
        await client.views_update(view_id=opened["view"]["id"], view=view)
        late = await slack.command("U_ANA", "C_HELP", "/twohop")
        clock.at += 3.1
        call = client.views_open(trigger_id=late.payload["trigger_id"], view=view)
        assert (await refused(call))["error"] == "expired_trigger_id"


# Streams


async def test_a_stream_becomes_one_message(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("U_ANA", "C_HELP", "hello")
    stream = await client.chat_stream(
        channel="C_HELP", thread_ts=root, recipient_team_id="T_HOME", recipient_user_id="U_ANA", buffer_size=4
    )
    task = {"type": "task_update", "id": "1", "title": "Search", "status": "in_progress"}
    await stream.append(chunks=[task])
    await stream.append(markdown_text="**Yes** ")
    conflict = client.chat_update(channel="C_HELP", ts=str(stream.ts), text="x")
    assert (await refused(conflict))["error"] == "streaming_state_conflict"
    mixed = client.chat_appendStream(channel="C_HELP", ts=str(stream.ts), markdown_text="x")
    assert (await refused(mixed))["error"] == "streaming_mode_mismatch"
    await stream.stop(markdown_text="[1]", blocks=[{"type": "divider"}])
    message = slack.messages("C_HELP", root)[1]
    assert (message.text, message.blocks) == ("**Yes** [1]", [{"type": "divider"}])
    assert message.stream is not None
    assert message.stream.tasks == [task]
    assert slack.unfinished() == []
    late = client.chat_appendStream(channel="C_HELP", ts=message.ts, markdown_text="x")
    assert (await refused(late))["error"] == "message_not_in_streaming_state"


async def test_a_stream_outside_a_direct_message_names_its_reader(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    root = await slack.say("U_ANA", "C_HELP", "hello")
    call = client.chat_startStream(channel="C_HELP", thread_ts=root)
    assert (await refused(call))["error"] == "missing_recipient_team_id"
    call = client.chat_startStream(channel="C_HELP", thread_ts=root, recipient_team_id="T_HOME")
    assert (await refused(call))["error"] == "missing_recipient_user_id"


async def test_a_stream_ends_after_five_minutes() -> None:
    clock = Clock()
    async with SlackServer(now=clock) as slack:
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        root = await slack.say("U_ANA", "D_ANA", "hello")
        ts = (await client.chat_startStream(channel="D_ANA", thread_ts=root, markdown_text="a"))["ts"]
        clock.at += 301.0
        for call in (
            client.chat_appendStream(channel="D_ANA", ts=ts, markdown_text="b"),
            client.chat_stopStream(channel="D_ANA", ts=ts),
        ):
            assert (await refused(call))["error"] == "message_not_in_streaming_state"
        await client.chat_update(channel="D_ANA", ts=ts, text="all of it")
        assert slack.messages("D_ANA", root)[1].text == "all of it"


async def test_stop_closes_the_stream_and_tells_the_app(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say("U_ANA", "D_ANA", "hello")
    await client.agents_sessions_setStatus(channel_id="D_ANA", thread_ts=root, status="processing")
    ts = (await client.chat_startStream(channel="D_ANA", thread_ts=root, markdown_text="a"))["ts"]
    await slack.stop("U_ANA", "D_ANA", root)
    told = slack.deliveries[-1].payload["event"]
    assert (told["type"], told["streaming_message_ts"]) == ("agent_session_stopped", [ts])
    late = client.chat_appendStream(channel="D_ANA", ts=ts, markdown_text="b")
    assert (await refused(late))["error"] == "stopped_by_user"
    await client.agents_sessions_setStatus(channel_id="D_ANA", thread_ts=root, status="active")


# Faults


async def test_429_says_how_long_to_wait(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", retry_after=7)
    with pytest.raises(SlackApiError, match="ratelimited") as caught:
        await client.chat_postMessage(channel="C_HELP", text="hi")
    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "7")
    client.retry_handlers.append(AsyncRateLimitErrorRetryHandler())
    slack.fail("chat.postMessage", retry_after=0)
    await client.chat_postMessage(channel="C_HELP", text="hi")
    assert [each.error for each in slack.calls] == ["ratelimited", "ratelimited", ""]
    assert [each.text for each in slack.messages("C_HELP")] == ["hi"]


async def test_a_call_can_fail_in_every_way(slack: SlackServer, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", "fatal_error", times=2)
    for _ in range(2):
        assert (await refused(client.chat_postMessage(channel="C_HELP", text="hi")))["error"] == "fatal_error"
    slack.fail("chat.postMessage", "internal_error", status=503)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C_HELP", text="hi")
    assert caught.value.response.status_code == 503
    assert slack.messages("C_HELP") == []
    client.retry_handlers.clear()
    slack.fail("chat.postMessage", "lost", applied=True, cut=True)
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.chat_postMessage(channel="C_HELP", text="it was posted")
    assert [each.text for each in slack.messages("C_HELP")] == ["it was posted"]


async def test_a_call_is_held_until_it_is_let_go(slack: SlackServer, client: AsyncWebClient) -> None:
    let_go = slack.hold("chat.postMessage")
    slack.slow("auth.test", 0.01)
    post = asyncio.create_task(client.chat_postMessage(channel="C_HELP", text="hi"))
    await client.auth_test()
    await slack.wait_for(lambda: len(slack.calls) == 2)
    assert {each.method: each.answered for each in slack.calls} == {
        "auth.test": True,
        "chat.postMessage": False,
    }
    assert slack.messages("C_HELP") == []
    let_go.set()
    await post
    assert [each.text for each in slack.messages("C_HELP")] == ["hi"]
