"""Who somebody is: what `users.info` says decides, whatever an event says, and where it says nothing nobody is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.playground.server import SlackServer
from bot.playground.workspace import App, Workspace
from bot.slack import views
from bot.slack.access import Us
from bot.slack.app import manifest
from bot.slack.people import Kind, People, person
from bot.store import Inbound, Inbox
from bot.store.state import opened
from ingest.runs import Runs
from tests.bot.slack.conftest import ADMIN, MEMBER, PATIENCE, SUPPORT, Bot, replies, until
from tests.bot.slack.test_access import FLAGSHIP, SECRETS
from tests.bot.slack.test_delivery import FAQ, Slow
from tests.bot.slack.test_reindex import REPORT, prints, told, twohop

US = Us("U_BOT", "B_BOT", "twohop", "T_HOME", "Home")
GRID = Us("U_BOT", "B_BOT", "twohop", "T_HOME", "Home", "E_ORG")
SIBLING = {"team_id": "T_SIB", "enterprise_user": {"enterprise_id": "E_ORG", "teams": ["T_SIB"]}}
STRANGE = {"team_id": "T_OTHER", "is_stranger": False}


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """Return a local Slack that is one workspace of an Enterprise Grid."""
    async with SlackServer(Workspace.grid(), App.from_manifest(manifest()), ack_seconds=PATIENCE) as server:
        yield server
    assert [f"{one.kind}: {one.text}" for one in server.violations] == []


def asked_who(slack: SlackServer, user: str) -> int:
    return sum(call.method == "users.info" and call.arguments["user"] == user for call in slack.calls)


# --- who is answered where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({}, ""),
        ({"team": "T_SIBLING"}, ""),
        ({"guest": "multi-channel"}, "guest"),
        ({"guest": "single-channel"}, "guest"),
        ({"team": "T_SIBLING", "guest": "multi-channel"}, "guest"),
        ({"team": "T_OTHER"}, "external"),
        ({"team": "T_OTHER", "deleted": True}, "external"),
        ({"bot_id": "B_ANA"}, "bot"),
        ({"deleted": True}, "deactivated"),
        ("user_not_found", "unknown"),
        ("user_not_visible", "unknown"),
        ("missing_scope", "unknown"),
    ],
)
async def test_who_is_answered_where(
    slack: SlackServer, bot: Bot, change: dict[str, Any] | str, refusal: Any
) -> None:
    """Support's ticket in a direct message, channels, a command; the account is changed after it has written."""
    async with bot(support=(MEMBER,), shared_channels=("C_SHARED",)) as desk:
        gate = slack.hold("users.info")
        private = await slack.say(MEMBER, "D_ANA", FLAGSHIP)
        public = {
            place: await slack.say(MEMBER, place, "<@U_BOT> thanks") for place in ("C_HELP", "C_SHARED")
        }
        command = await slack.command(MEMBER, "C_PRIVATE", "/twohop", "status")
        await slack.wait_for(lambda: asked_who(slack, MEMBER))
        if isinstance(change, str):
            slack.fail("users.info", change)
        else:
            slack.change(MEMBER, **change)
        gate.set()
        inbox = Inbox(desk.store.engine, "test", 0)
        await until(lambda: inbox.counts() == {"done": 3})
        await slack.wait_for(lambda: command.acked is not None and not slack.unfinished())
        if refusal != "deactivated":
            await slack.wait_for(lambda: slack.ephemerals(MEMBER, "C_PRIVATE"))
    answers = replies(slack, "D_ANA", private)
    quiet = {place: [one.text for one in slack.ephemerals(MEMBER, place)] for place in public}
    said = [one.text for one in slack.ephemerals(MEMBER, "C_PRIVATE")]
    assert asked_who(slack, MEMBER) == 1
    if not refusal:
        assert "13 September" in answers[0]
        assert [replies(slack, *place) for place in public.items()] == [["You are welcome."]] * 2
        assert quiet == {"C_HELP": [], "C_SHARED": []}
        assert "No index run" in said[0]
        return
    reasons = [views.REFUSALS[refusal]] if refusal != "deactivated" else []
    assert answers == said == reasons
    assert quiet == {"C_HELP": reasons, "C_SHARED": reasons}
    assert [replies(slack, *place) for place in public.items()] == [[], []]
    shown = str([(one.text, one.blocks) for one in [*slack.state.log, *slack.state.ephemeral]])
    assert not [secret for secret in SECRETS if secret in shown]


async def test_a_sibling_of_the_grid_is_answered_and_an_outsider_is_not(slack: SlackServer, bot: Bot) -> None:
    async with bot(shared_channels=("C_SHARED",)):
        ts = await slack.say("U_SIB", "C_ORG", "<@U_BOT> thanks")
        private = await slack.say("U_SIB", "D_SIB", "thanks")
        await slack.say("U_EXT", "C_SHARED", "<@U_BOT> thanks")
        await slack.wait_for(lambda: replies(slack, "C_ORG", ts) and replies(slack, "D_SIB", private))
        await slack.wait_for(lambda: slack.ephemerals("U_EXT") and not slack.unfinished())
    assert replies(slack, "C_ORG", ts) == replies(slack, "D_SIB", private) == ["You are welcome."]
    assert [one.text for one in slack.ephemerals("U_EXT")] == [views.REFUSALS["external"]]


@pytest.mark.parametrize("claimed", [True, False])
async def test_what_slack_does_not_document_in_an_event_changes_nothing(
    slack: SlackServer, bot: Bot, claimed: bool
) -> None:
    profile = dict.fromkeys(("is_restricted", "is_ultra_restricted", "is_stranger"), claimed)
    async with bot(support=("U_GUEST", SUPPORT)):
        guest = await slack.say("U_GUEST", "D_GUEST", FLAGSHIP, extra={"user_profile": profile})
        member = await slack.say(MEMBER, "D_ANA", "thanks", extra={"user_profile": profile})
        await slack.wait_for(lambda: replies(slack, "D_GUEST", guest) and replies(slack, "D_ANA", member))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "D_GUEST", guest) == [views.REFUSALS["guest"]]
    assert replies(slack, "D_ANA", member) == ["You are welcome."]


async def test_in_a_shared_channel_a_guest_hears_of_being_one_and_not_of_the_channel(
    slack: SlackServer, bot: Bot
) -> None:
    slack.change(SUPPORT, guest="multi-channel")
    async with bot():
        await slack.say(SUPPORT, "C_SHARED", "<@U_BOT> thanks")
        await slack.say(MEMBER, "C_SHARED", "<@U_BOT> thanks")
        await slack.wait_for(lambda: slack.ephemerals(SUPPORT) and slack.ephemerals(MEMBER))
    assert [one.text for one in slack.ephemerals(SUPPORT)] == [views.REFUSALS["guest"]]
    assert [one.text for one in slack.ephemerals(MEMBER)] == [views.REFUSALS["shared"]]


# --- when Slack does not say -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "ratelimited", "times": 4},
        {"error": "internal_error"},
        {"error": "", "status": 503},
        {"error": "", "cut": True},
    ],
)
async def test_a_question_waits_until_slack_says_who_asks(
    slack: SlackServer, bot: Bot, fault: dict[str, Any]
) -> None:
    slack.fail("users.info", **fault)
    async with bot():
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: replies(slack, "D_ANA", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "D_ANA", ts) == ["You are welcome."]
    assert not slack.faults.calls["users.info"]


@pytest.mark.parametrize("fault", [{"error": "internal_error"}, {"error": "ratelimited", "retry_after": 600}])
@pytest.mark.parametrize("place", ["D_ANA", "C_HELP"])
async def test_at_its_deadline_a_question_is_refused_with_a_reason_and_nobody_else_waits(
    slack: SlackServer, bot: Bot, place: str, fault: dict[str, Any]
) -> None:
    slack.fail("users.info", **fault)
    async with bot(seconds=0.3):
        ts = await slack.say(MEMBER, place, "<@U_BOT> thanks")
        await slack.wait_for(lambda: not slack.faults.calls["users.info"])
        other = await slack.say(SUPPORT, "D_SAM", "thanks")
        await slack.wait_for(lambda: replies(slack, place, ts) or slack.ephemerals(MEMBER, place))
        await slack.wait_for(lambda: replies(slack, "D_SAM", other))
        await slack.wait_for(lambda: not slack.unfinished())
    seen = [one.text for one in slack.ephemerals(MEMBER, place)] or replies(slack, place, ts)
    assert seen == [views.REFUSALS["unknown"]]
    assert replies(slack, "D_SAM", other) == ["You are welcome."]


async def test_one_call_serves_many_questions_until_it_is_old(slack: SlackServer, bot: Bot) -> None:
    now = 0.0

    async def thanked() -> str:
        ts = await slack.say(MEMBER, "D_ANA", "thanks")
        await slack.wait_for(lambda: replies(slack, "D_ANA", ts))
        return replies(slack, "D_ANA", ts)[0]

    async with bot(clock=lambda: now):
        assert [await thanked() for _ in range(3)] == ["You are welcome."] * 3
        slack.change(MEMBER, guest="multi-channel")
        now = 299.0
        assert await thanked() == "You are welcome."
        assert asked_who(slack, MEMBER) == 1
        now = 301.0
        assert await thanked() == views.REFUSALS["guest"]
        assert asked_who(slack, MEMBER) == 2
        slack.change(MEMBER, guest="")
        now = 602.0
        assert await thanked() == "You are welcome."
        await slack.wait_for(lambda: not slack.unfinished())


async def test_an_answer_that_was_not_posted_is_not_for_who_has_become_a_guest(
    slack: SlackServer, bot: Bot, tmp_path: Path
) -> None:
    ts = await slack.say(SUPPORT, "D_SAM", "a question")
    dead = Inbox(opened(f"sqlite:///{tmp_path / 'state.db'}"), "dead", 0.0)
    dead.put(Inbound("Ev1", "T_HOME", "D_SAM", "im", SUPPORT, "a question", ts, ts))
    row = dead.claim()
    assert row is not None
    assert dead.sending(row, [views.line("what only support may read")[0].kept()])
    slack.change(SUPPORT, guest="multi-channel")
    async with bot():
        await slack.wait_for(lambda: replies(slack, "D_SAM", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "D_SAM", ts) == [views.REFUSALS["guest"]]


async def test_a_guest_who_cannot_be_told_in_the_channel_is_not_written_to(
    slack: SlackServer, bot: Bot
) -> None:
    slack.fail("chat.postEphemeral", "user_not_in_channel")
    async with bot() as desk:
        await slack.say("U_GUEST", "C_HELP", "<@U_BOT> thanks")
        inbox = Inbox(desk.store.engine, "test", 0)
        await until(lambda: inbox.counts() == {"failed": 1})
    assert [one for one in slack.messages("D_GUEST") if one.user == slack.app.user] == []


# --- commands, runs and the Stop button --------------------------------------------------------------------------


async def test_a_command_is_acknowledged_before_slack_says_who_sent_it(slack: SlackServer, bot: Bot) -> None:
    async with bot():
        gate = slack.hold("users.info")
        command = await slack.command(MEMBER, "C_HELP", "/twohop", "status")
        await slack.wait_for(lambda: command.acked is not None)
        assert slack.ephemerals(MEMBER) == []
        gate.set()
        await slack.wait_for(lambda: slack.ephemerals(MEMBER))
    assert "No index run" in slack.ephemerals(MEMBER)[0].text


async def test_an_admin_who_is_a_guest_starts_nothing(slack: SlackServer, bot: Bot) -> None:
    slack.change(ADMIN, guest="multi-channel")
    async with bot(reindex=prints(REPORT)) as desk:
        assert await twohop(slack, ADMIN, "reindex") == views.REFUSALS["guest"]
        assert Runs(desk.store.engine, "test", 30).latest() is None


@pytest.mark.parametrize("change", [{"deleted": True}, {"team": "T_OTHER"}, {"guest": "single-channel"}])
async def test_nobody_but_a_member_is_told_of_a_run(
    slack: SlackServer, bot: Bot, tmp_path: Path, change: dict[str, Any]
) -> None:
    go = tmp_path / "go"
    now = 0.0
    async with bot(reindex=prints(REPORT, until=go), clock=lambda: now) as desk:
        assert "has begun" in await twohop(slack, ADMIN, "reindex")
        slack.change(ADMIN, **change)
        now = 301.0
        go.touch()
        runs = Runs(desk.store.engine, "test", 30)
        await until(lambda: (run := runs.latest()) is not None and run.told)
    assert told(slack) == []


async def test_others_answers_are_stopped_by_members_only(slack: SlackServer, bot: Bot) -> None:
    slow = Slow()
    async with bot(slow):
        ts = await slack.say(MEMBER, "C_HELP", f"<@U_BOT> {FAQ}")
        await asyncio.wait_for(slow.begun.wait(), 120)
        await slack.stop("U_GUEST", "C_HELP", ts)
        await slack.wait_for(lambda: asked_who(slack, "U_GUEST") and not slack.unacked())
        assert replies(slack, "C_HELP", ts) == []
        await slack.stop(SUPPORT, "C_HELP", ts)
        await slack.wait_for(lambda: replies(slack, "C_HELP", ts))
        await slack.wait_for(lambda: not slack.unfinished())
    assert replies(slack, "C_HELP", ts) == [views.STOPPED]


# --- what users.info says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("us", "user", "kind"),
    [
        (US, {}, "member"),
        (US, {"is_app_user": True, "is_admin": True, "is_stranger": False}, "member"),
        (GRID, {}, "member"),
        (GRID, SIBLING, "member"),
        (GRID, {"team_id": "E_ORG"}, "member"),
        (US, SIBLING, "external"),
        (GRID, {**SIBLING, "enterprise_user": {"enterprise_id": "E_OTHER"}}, "external"),
        (GRID, {**SIBLING, "is_restricted": True}, "guest"),
        (US, STRANGE, "external"),
        (GRID, STRANGE, "external"),
        (US, {**STRANGE, "is_restricted": True}, "external"),
        (US, {"is_stranger": True}, "external"),
        (US, {"is_restricted": True}, "guest"),
        (US, {"is_restricted": True, "is_ultra_restricted": True}, "guest"),
        (US, {"is_ultra_restricted": True}, "guest"),
        (US, {"deleted": True}, "deactivated"),
        (US, {"deleted": True, "is_restricted": None, "is_ultra_restricted": None}, "deactivated"),
        (US, {"is_bot": True}, "bot"),
        (US, {"team_id": None}, "unknown"),
        (US, {"deleted": None}, "unknown"),
        (US, {"is_bot": None}, "unknown"),
        (US, {"is_restricted": None}, "unknown"),
        (US, {"is_ultra_restricted": None}, "unknown"),
        (US, {"is_restricted": "false"}, "guest"),
    ],
)
def test_what_slack_says_of_an_account_is_read_closed(us: Us, user: dict[str, Any], kind: Kind) -> None:
    flags = dict.fromkeys(("deleted", "is_bot", "is_restricted", "is_ultra_restricted"), False)
    shown = {"id": "U1", "team_id": "T_HOME", **flags, **user}
    assert person({name: value for name, value in shown.items() if value is not None}, us).kind == kind


def test_an_empty_answer_is_nobody() -> None:
    assert person({}, US).kind == person({}, GRID).kind == "unknown"


@pytest.fixture
async def client(slack: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.api_url)


async def test_who_asks_at_the_same_time_shares_one_call_that_outlives_the_impatient(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    people = People(client, GRID)
    gate = slack.hold("users.info")
    patient = [asyncio.create_task(people.find(MEMBER, 60)) for _ in range(5)]
    assert (await people.find(MEMBER, 0.05)).kind == "unknown"
    gate.set()
    assert {found.kind for found in await asyncio.gather(*patient)} == {"member"}
    assert (await people.find(MEMBER, 60)).kind == "member"
    assert asked_who(slack, MEMBER) == 1


async def test_what_slack_does_not_show_is_soon_asked_for_again(
    slack: SlackServer, client: AsyncWebClient
) -> None:
    now = 0.0
    people = People(client, GRID, clock=lambda: now)
    slack.fail("users.info", "user_not_found")
    assert [(await people.find(MEMBER, 60)).kind for _ in range(2)] == ["unknown"] * 2
    assert asked_who(slack, MEMBER) == 1
    now = 31.0
    assert (await people.find(MEMBER, 60)).kind == "member"


async def test_waits_grow_and_are_as_long_as_slack_asks(slack: SlackServer, client: AsyncWebClient) -> None:
    waits: list[float] = []

    async def waited(seconds: float) -> None:
        waits.append(seconds)

    people = People(client, GRID, sleep=waited)
    slack.fail("users.info", "internal_error", times=7)
    slack.fail("users.info", "ratelimited", retry_after=45)
    assert (await people.find(MEMBER, 60)).kind == "member"
    assert waits == [1, 2, 4, 8, 16, 30, 30, 45]


async def test_no_more_than_so_many_are_kept(slack: SlackServer, client: AsyncWebClient) -> None:
    people = People(client, GRID, most=2)
    for user in (MEMBER, SUPPORT, ADMIN, SUPPORT, MEMBER):
        await people.find(user, 60)
    assert [asked_who(slack, user) for user in (MEMBER, SUPPORT, ADMIN)] == [2, 1, 1]


async def test_nobody_is_not_asked_for(slack: SlackServer, client: AsyncWebClient) -> None:
    assert (await People(client, GRID).find("", 60)).kind == "unknown"
    assert slack.calls == []
