"""Who and what a workspace holds before anyone has spoken: teams, people, channels, user groups and the installed app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

ChannelKind = Literal["public", "private", "im", "mpim"]
Guest = Literal["", "multi-channel", "single-channel"]

SCOPES = frozenset(
    "app_mentions:read assistant:write channels:history channels:read chat:write commands groups:history groups:read"
    " im:history im:read im:write reactions:read reactions:write usergroups:read users:read".split()
)
EVENTS = frozenset(
    "app_home_opened app_mention message.im message.channels message.groups app_context_changed agent_session_stopped"
    " reaction_added member_joined_channel member_left_channel channel_archive channel_id_changed app_uninstalled"
    " tokens_revoked".split()
)


@dataclass(frozen=True, slots=True)
class Team:
    """One Slack workspace, by its team id."""

    id: str
    name: str
    domain: str
    enterprise: str = ""
    """The id of the Enterprise Grid that it is one workspace of."""

    @property
    def organisation(self) -> str:
        """Return whose it is: the teams of one Enterprise Grid are one organisation's."""
        return self.enterprise or self.id


@dataclass(frozen=True, slots=True)
class User:
    """One account: a person, or a bot when it has a `bot_id`."""

    id: str
    name: str
    team: str
    admin: bool = False
    guest: Guest = ""
    bot_id: str = ""
    deleted: bool = False

    @property
    def handle(self) -> str:
        """Return the name that commands and `users.info` carry."""
        return self.name.lower().replace(" ", ".")


@dataclass(frozen=True, slots=True)
class Channel:
    """One conversation with its first members; shared with other teams when it names more than one team."""

    id: str
    name: str
    kind: ChannelKind
    members: frozenset[str]
    teams: frozenset[str]
    archived: bool = False

    @property
    def shared(self) -> bool:
        """Return whether it is shared with another team, of the same organisation or of another one."""
        return len(self.teams) > 1

    @property
    def event_kind(self) -> str:
        """Return the `channel_type` of its message events."""
        return {"public": "channel", "private": "group", "im": "im", "mpim": "mpim"}[self.kind]

    @property
    def scope_kind(self) -> str:
        """Return the word its scopes and subscriptions use: `channels`, `groups`, `im` or `mpim`."""
        return {"public": "channels", "private": "groups", "im": "im", "mpim": "mpim"}[self.kind]


@dataclass(frozen=True, slots=True)
class App:
    """The installed app: who it is, what it may do, what it is told of."""

    id: str = "A_TWOHOP"
    user: str = "U_BOT"
    bot: str = "B_BOT"
    scopes: frozenset[str] = SCOPES
    events: frozenset[str] = EVENTS
    commands: frozenset[str] = frozenset({"/twohop"})

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the app that Slack would install from a manifest, with its scopes, events and commands."""
        return cls(
            scopes=frozenset(manifest["oauth_config"]["scopes"]["bot"]),
            events=frozenset(manifest["settings"].get("event_subscriptions", {}).get("bot_events", ())),
            commands=frozenset(each["command"] for each in manifest["features"].get("slash_commands", ())),
        )


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that exists before the first message; the first team is the one the app is installed in."""

    teams: tuple[Team, ...]
    users: tuple[User, ...]
    channels: tuple[Channel, ...]
    usergroups: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def home(self) -> Team:
        """Return the team the app is installed in."""
        return self.teams[0]

    def user(self, user: str) -> User | None:
        """Return the account with this id, or None."""
        return next((each for each in self.users if each.id == user), None)

    def team(self, team: str) -> Team:
        """Return the team with this id."""
        return next(each for each in self.teams if each.id == team)

    def external(self, channel: Channel) -> bool:
        """Return whether a channel is shared with another organisation."""
        return any(self.team(each).organisation != self.home.organisation for each in channel.teams)

    def with_user(self, user: User) -> Self:
        """Return the workspace with this account in the place of the one with its id."""
        return replace(self, users=tuple(user if each.id == user.id else each for each in self.users))

    @classmethod
    def sample(cls) -> Self:
        """Return a workspace with every kind of person and channel that a bot must tell apart.

        `C_HELP` public, `C_LOBBY` public without the bot, `C_PRIVATE`, `C_SECRET` private without the bot, `C_SHARED`
        with an outside team, `G_GROUP` a group message, `C_ARCHIVED`, and one direct message with the bot a person
        (`D_ANA`, `D_SAM`, `D_ADMIN`, `D_GUEST`, `D_EXT`). `S_SUPPORT` is the group of the support members.
        """
        home, other = Team("T_HOME", "Sample", "sample"), Team("T_OTHER", "Partner", "partner")
        people = (
            User("U_ANA", "Ana Member", home.id),
            User("U_SAM", "Sam Support", home.id),
            User("U_ADMIN", "Ada Admin", home.id, admin=True),
            User("U_GUEST", "Gus Guest", home.id, guest="multi-channel"),
            User("U_EXT", "Eve External", other.id),
        )
        bots = (
            User("U_BOT", "Twohop", home.id, bot_id="B_BOT"),
            User("U_OTHERBOT", "Other Bot", home.id, bot_id="B_OTHER"),
        )
        staff = frozenset({"U_ANA", "U_SAM", "U_ADMIN"})
        inside, both = frozenset({home.id}), frozenset({home.id, other.id})
        public = staff | {"U_GUEST", "U_OTHERBOT"}
        channels = (
            Channel("C_HELP", "help", "public", public | {"U_BOT"}, inside),
            Channel("C_LOBBY", "lobby", "public", public, inside),
            Channel("C_PRIVATE", "private", "private", staff | {"U_BOT"}, inside),
            Channel("C_SECRET", "secret", "private", staff, inside),
            Channel("C_SHARED", "shared", "public", staff | {"U_EXT", "U_BOT"}, both),
            Channel("C_ARCHIVED", "archived", "public", staff | {"U_BOT"}, inside, archived=True),
            Channel(
                "G_GROUP", "mpdm-ana--sam--twohop-1", "mpim", frozenset({"U_ANA", "U_SAM", "U_BOT"}), inside
            ),
            *(direct(person, bots[0]) for person in people),
        )
        return cls((home, other), (*people, *bots), channels, {"S_SUPPORT": frozenset({"U_SAM", "U_ADMIN"})})

    @classmethod
    def grid(cls) -> Self:
        """Return the sample as one workspace of an Enterprise Grid.

        `U_SIB` is a member of another one, `T_SIBLING`: in `C_ORG`, which the two share, and in `D_SIB`. `U_EXT` is
        still an outsider.
        """
        sample = cls.sample()
        home, other = sample.teams
        home, sibling = replace(home, enterprise="E_ORG"), Team("T_SIBLING", "Sibling", "sibling", "E_ORG")
        person = User("U_SIB", "Sid Sibling", sibling.id)
        shared = Channel(
            "C_ORG",
            "org",
            "public",
            frozenset({"U_ANA", "U_SIB", "U_BOT"}),
            frozenset({home.id, sibling.id}),
        )
        bot = next(each for each in sample.users if each.id == "U_BOT")
        return replace(
            sample,
            teams=(home, sibling, other),
            users=(*sample.users, person),
            channels=(*sample.channels, shared, direct(person, bot)),
        )


def direct(person: User, bot: User) -> Channel:
    """Return the direct message between a person and the bot."""
    members, teams = frozenset({person.id, bot.id}), frozenset({person.team, bot.team})
    return Channel("D_" + person.id.removeprefix("U_"), "", "im", members, teams)
