"""The page of the local Slack: what it serves, what it lets a person do, and whom it refuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.page import Page
from bot.playground.server import SlackServer


@pytest.fixture
async def browser(slack: SlackServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(slack.url, headers={"Sec-Fetch-Site": "same-origin"}) as session:
        yield session


NOTHING_SAID = (200, '{"ts": ""}')


async def do(browser: aiohttp.ClientSession, **request: Any) -> tuple[int, str]:
    async with browser.post("/page/do", json={"user": "U_ANA", "channel": "C_HELP", **request}) as response:
        return response.status, await response.text()


async def test_the_page_comes_with_its_files_and_runs_no_others(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/") as response:
        assert response.status == 200
        assert "/static/page.js" in await response.text()
        policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in ("page.js", "page.css"):
        async with browser.get(f"/static/{name}") as response:
            assert response.status == 200
    async with browser.get("/static/server.py") as response:
        assert response.status == 404


async def test_a_text_never_becomes_markup(browser: aiohttp.ClientSession) -> None:
    async with browser.get("/static/page.js") as response:
        script = await response.text()
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in script


async def test_a_person_talks_edits_deletes_and_runs_commands(
    slack: SlackServer, browser: aiohttp.ClientSession
) -> None:
    status, said = await do(browser, do="say", text="@Twohop is 1 < 2 & 3?")
    message = slack.messages("C_HELP")[0]
    assert (status, json.loads(said)) == (200, {"ts": message.ts})
    assert message.text == "<@U_BOT> is 1 &lt; 2 &amp; 3?"
    assert (await do(browser, do="say", text="again", thread_ts=message.ts))[0] == 200
    assert await do(browser, do="edit", ts=message.ts, text="@Twohop hello") == NOTHING_SAID
    assert [each.text for each in slack.messages("C_HELP", message.ts)] == ["<@U_BOT> hello", "again"]
    reply = slack.messages("C_HELP", message.ts)[1]
    assert await do(browser, do="delete", ts=reply.ts) == NOTHING_SAID
    assert len(slack.messages("C_HELP", message.ts)) == 1
    assert await do(browser, do="command", command="/twohop", text="reindex") == NOTHING_SAID
    assert slack.deliveries[-1].payload["text"] == "reindex"
    assert await do(browser, do="home") == NOTHING_SAID
    assert slack.deliveries[-1].what == "app_home_opened"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"do": "dance"}, "cannot do 'dance'"),
        ({"do": "say"}, "missing 'text'"),
        ({"do": "say", "text": "hi", "channel": "C_NOWHERE"}, "no channel 'C_NOWHERE'"),
        ({"do": "say", "text": "hi", "user": "U_NOBODY"}, "no user 'U_NOBODY'"),
        ({"do": "delete", "ts": "1.0"}, "no message '1.0'"),
        ({"do": "command", "command": "/other", "text": ""}, "no command '/other'"),
    ],
)
async def test_a_wrong_request_is_refused_with_the_reason(
    browser: aiohttp.ClientSession, request_: dict[str, str], reason: str
) -> None:
    status, text = await do(browser, **request_)
    assert status == 400
    assert reason in text


async def test_a_person_changes_only_what_is_theirs(
    slack: SlackServer, browser: aiohttp.ClientSession
) -> None:
    ts = await slack.say("U_SAM", "C_HELP", "mine")
    for request in ({"do": "edit", "text": "yours"}, {"do": "delete"}):
        status, reason = await do(browser, ts=ts, **request)
        assert (status, reason) == (400, "only U_SAM can change this message")
    assert [each.text for each in slack.messages("C_HELP")] == ["mine"]


async def test_each_change_is_sent_to_the_page(slack: SlackServer, browser: aiohttp.ClientSession) -> None:
    async with browser.get("/page/events", params={"user": "U_ANA"}) as response:

        async def view() -> Any:
            line = await response.content.readline()
            while not line.startswith(b"data: "):
                line = await response.content.readline()
            return json.loads(line.removeprefix(b"data: "))

        assert (await view())["connections"] == 0
        await slack.say("U_SAM", "C_HELP", "<b>hello</b>")
        seen = await view()
        while not seen["channels"][0]["messages"]:
            seen = await view()
        assert seen["channels"][0]["messages"][0]["text"] == "<b>hello</b>"


async def test_a_person_sees_only_their_own(slack: SlackServer, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(channel="C_HELP", user="U_ANA", text="for Ana")
    page = Page(slack)
    seen = {user: page.view(user) for user in ("U_ANA", "U_SAM", "U_EXT")}
    shown = {user: [each["text"] for each in view["channels"][0]["messages"]] for user, view in seen.items()}
    assert shown == {"U_ANA": ["for Ana"], "U_SAM": [], "U_EXT": []}
    assert [each["id"] for each in seen["U_EXT"]["channels"]] == ["C_SHARED", "D_EXT"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/page/events?user=U_ANA"),
        ("POST", "/page/do"),
        ("GET", "/api/auth.test"),
        ("GET", "/link"),
        ("POST", "/response/x"),
    ],
)
async def test_another_web_page_is_refused(
    slack: SlackServer, method: str, path: str, headers: dict[str, str]
) -> None:
    async with (
        aiohttp.ClientSession(slack.url) as session,
        session.request(method, path, headers=headers) as response,
    ):
        assert response.status == 403


async def test_a_form_of_another_page_cannot_speak_for_a_person(slack: SlackServer) -> None:
    body = json.dumps({"user": "U_ANA", "channel": "C_HELP", "do": "say", "text": "hi"})
    async with (
        aiohttp.ClientSession(slack.url, headers={"Content-Type": "text/plain"}) as session,
        session.post("/page/do", data=body) as response,
    ):
        assert response.status == 415
    assert slack.messages("C_HELP") == []
