"""The Web API methods that are spoken, as one table: arguments, scopes, and where each fact comes from.

Evidence: `docs` is the method's page under docs.slack.dev/reference/methods; `measured` was seen on a real workspace and
told in a public issue; `ours` is stricter than Slack, or a guess where its pages are silent.

| method | scope | what we hold it to | evidence |
|---|---|---|---|
| api.test, auth.test | | `x-oauth-scopes` header; a bot token | docs |
| apps.connections.open | connections:write | an app token; the URL opens one connection | docs |
| | | socket_mode_not_enabled after link_disabled | ours |
| chat.postMessage | chat:write | no_text, markdown_text_conflict, 12,000 of markdown, text cut at 40,000 | docs |
| | | thread_not_found for a root that is not there | ours |
| | | 50 blocks, their limits, 12,000 of markdown in all | docs |
| | | 13,202 characters in all, markdown expanded to 50 blocks | measured |
| | | one a second and channel, bursts of five | docs; the five is ours |
| chat.update | chat:write | only own messages; blocks stay when left out; msg_too_long over 4,000; one in 3 s | docs |
| | | streaming_state_conflict while a stream is open | measured |
| chat.delete, chat.postEphemeral, chat.getPermalink | chat:write, chat:write, none | cant_delete_message, user_not_in_channel, message_not_found | docs |
| chat.startStream, appendStream, stopStream | chat:write | recipients outside direct messages, 12,000 a call, five minutes | docs; minutes measured |
| | | streaming_mode_mismatch: text and chunks are not mixed | measured |
| conversations.info, members, history, replies | *:read, *:history by kind | private without the app is channel_not_found, not_in_channel, thread_not_found | docs |
| conversations.open | im:write | one direct message a person | docs |
| users.info, usergroups.users.list | users:read, usergroups:read | user_not_found, no_such_subteam | docs |
| | | is_stranger only of outsiders that the app meets in no channel; enterprise_user in a Grid | docs |
| | | no roles of a deactivated account | ours |
| reactions.add, remove | reactions:write | already_reacted, no_reaction, message_not_found | docs |
| assistant.threads.setStatus | chat:write or assistant:write | 10 loading messages, invalid_thread_ts, gone after two minutes | docs |
| assistant.threads.setSuggestedPrompts | assistant:write | 4 prompts with title and message | docs |
| agents.sessions.setStatus, rename | chat:write | four statuses, title 200, warning without agent_session_stopped | docs |
| | | a closed session takes no status | measured; the name session_closed is ours |
| views.open, update, publish | none | trigger ids: 3 s, once; hash_conflict; 100 blocks | docs |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.playground.blocks import MARKDOWN_CHARS, check_message, check_view
from bot.playground.events import Events
from bot.playground.socket_mode import SocketMode
from bot.playground.state import ApiError, Message, Session, State, Stream, View
from bot.playground.workspace import Channel

Arguments = Mapping[str, Any]
Answer = dict[str, Any]

TEXT_CHARS = 40_000
UPDATE_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Caller:
    """What a method works on."""

    state: State
    events: Events
    socket: SocketMode


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its scopes are alternatives, `{kind}` in them is the kind of its channel; `app_level` methods take the app's token."""

    handler: Callable[[Caller, Arguments], Awaitable[Answer]]
    required: frozenset[str]
    known: frozenset[str]
    scopes: tuple[str, ...]
    app_level: bool = False


METHODS: dict[str, Method] = {}

_Handler = Callable[[Caller, Arguments], Awaitable[Answer]]


def _method(
    name: str, required: str = "", optional: str = "", scopes: str = "", *, app_level: bool = False
) -> Callable[[_Handler], _Handler]:
    needed = frozenset(required.split())

    def keep(handler: _Handler) -> _Handler:
        METHODS[name] = Method(
            handler, needed, needed | set(optional.split()), tuple(scopes.split()), app_level
        )
        return handler

    return keep


def invalid(problem: str) -> ApiError:
    """Return the error for an argument that is missing or wrong."""
    return ApiError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {problem}"]})


# Who we are


@_method("api.test", optional="error foo")
async def _api_test(_slack: Caller, args: Arguments) -> Answer:
    if "error" in args:
        raise ApiError(str(args["error"]))
    return {"args": dict(args)}


@_method("auth.test")
async def _auth_test(slack: Caller, _args: Arguments) -> Answer:
    state = slack.state
    team = state.workspace.home
    return {
        "url": f"https://{team.domain}.slack.com/",
        "team": team.name,
        "user": state.user(state.app.user).handle,
        "team_id": team.id,
        "user_id": state.app.user,
        "bot_id": state.app.bot,
        "is_enterprise_install": False,
        **({"enterprise_id": team.enterprise} if team.enterprise else {}),
    }


@_method("apps.connections.open", scopes="connections:write", app_level=True)
async def _connections_open(slack: Caller, _args: Arguments) -> Answer:
    if slack.socket.disabled:
        raise ApiError("socket_mode_not_enabled")
    return {"url": slack.socket.new_url()}


# Messages

_CONTENT = "text blocks attachments markdown_text metadata"
_LOOK = (
    "as_user icon_emoji icon_url link_names mrkdwn parse reply_broadcast unfurl_links unfurl_media username"
)


@_method("chat.postMessage", "channel", f"{_CONTENT} {_LOOK} thread_ts", "chat:write")
async def _post_message(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel"])
    content = _content(state, args, most=TEXT_CHARS)
    thread = state.thread(channel.id, args["thread_ts"]) if args.get("thread_ts") else None
    state.count_post(channel.id)
    message = state.add(_own(state, channel.id, thread, content))
    await slack.events.posted(message)
    return {"channel": channel.id, "ts": message.ts, "message": message.as_slack()}


@_method("chat.postEphemeral", "channel user", f"{_CONTENT} {_LOOK} thread_ts", "chat:write")
async def _post_ephemeral(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel"])
    if args["user"] not in state.members[channel.id]:
        raise ApiError("user_not_in_channel")
    content = _content(state, args, most=TEXT_CHARS)
    thread = state.thread(channel.id, args["thread_ts"]) if args.get("thread_ts") else None
    message = _own(state, channel.id, thread, content)
    message.to = args["user"]
    state.add(message)
    return {"message_ts": message.ts}


@_method(
    "chat.update", "channel ts", f"{_CONTENT} as_user file_ids link_names parse reply_broadcast", "chat:write"
)
async def _update(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel"])
    message = _found(state, channel, args["ts"], "message_not_found")
    if message.user != state.app.user:
        raise ApiError("cant_update_message")
    if state.streaming(message):
        raise ApiError("streaming_state_conflict")
    if len(args.get("text") or "") > UPDATE_CHARS:
        raise ApiError("msg_too_long")
    content = _content(state, args, most=TEXT_CHARS)
    state.count_update(channel.id, message.ts)
    before = message.as_slack()
    for name, value in content.items():
        if name in args or (name == "text" and "markdown_text" in args):
            setattr(message, name, value)
    message.edited = {"user": state.app.user, "ts": state.next_ts()}
    state.touch()
    await slack.events.changed(message, before)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": message.as_slack()}


@_method("chat.delete", "channel ts", "as_user", "chat:write")
async def _delete(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel"])
    message = _found(state, channel, args["ts"], "message_not_found")
    if message.user != state.app.user:
        raise ApiError("cant_delete_message")
    state.remove(message)
    await slack.events.deleted(message)
    return {"channel": channel.id, "ts": message.ts}


@_method("chat.getPermalink", "channel message_ts")
async def _permalink(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.joined_channel(args["channel"])
    message = _found(state, channel, args["message_ts"], "message_not_found")
    link = f"https://{state.workspace.home.domain}.slack.com/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


def _content(state: State, args: Arguments, *, most: int) -> dict[str, Any]:
    """Return text, blocks, attachments and metadata of a message, checked."""
    text, markdown = args.get("text") or "", args.get("markdown_text") or ""
    blocks, attachments = args.get("blocks") or [], args.get("attachments") or []
    if markdown and (text or blocks):
        raise ApiError("markdown_text_conflict")
    if not (text or markdown or blocks or attachments):
        raise ApiError("no_text")
    if len(markdown) > MARKDOWN_CHARS:
        raise ApiError("msg_too_long")
    if len(text) > most:
        state.break_rule("text_cut", f"a text of {len(text)} characters was cut to {most}")
        text = text[:most]
    if len(attachments) > 100:
        raise ApiError("too_many_attachments")
    check_message(blocks)
    return {
        "text": text or markdown,
        "blocks": blocks or ([{"type": "markdown", "text": markdown}] if markdown else []),
        "attachments": attachments,
        "metadata": _metadata(args.get("metadata")),
    }


def _metadata(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not (
        isinstance(value, dict)
        and isinstance(value.get("event_type"), str)
        and isinstance(value.get("event_payload"), dict)
    ):
        raise ApiError("invalid_metadata_format")
    return value


def _own(state: State, channel: str, thread: str | None, content: Mapping[str, Any]) -> Message:
    app = state.app
    return Message(
        channel,
        state.next_ts(),
        app.user,
        thread_ts=thread,
        bot_id=app.bot,
        app_id=app.id,
        team=state.workspace.home.id,
        **content,
    )


def _found(state: State, channel: Channel, ts: str, error: str) -> Message:
    message = state.find(channel.id, ts)
    if message is None:
        raise ApiError(error)
    return message


# Streams

_CHUNKS = {"markdown_text": "text", "task_update": "id", "plan_update": "title", "blocks": "blocks"}


@_method(
    "chat.startStream",
    "channel",
    "thread_ts markdown_text chunks recipient_team_id recipient_user_id task_display_mode icon_emoji icon_url username",
    "chat:write",
)
async def _start_stream(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel"])
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if not args.get(name):
                raise ApiError(f"missing_{name}")
    if channel.kind == "im" and not args.get("thread_ts"):
        raise invalid("missing required field: thread_ts")
    thread = state.thread(channel.id, args["thread_ts"]) if args.get("thread_ts") else None
    stream = Stream(state.now())
    message = _own(state, channel.id, thread, {"text": ""})
    message.stream = stream
    _feed(message, stream, args)
    state.add(message)
    await slack.events.posted(message)
    return {"channel": channel.id, "ts": message.ts}


@_method("chat.appendStream", "channel ts", "markdown_text chunks", "chat:write")
async def _append_stream(slack: Caller, args: Arguments) -> Answer:
    message, stream = _stream(slack.state, args)
    _feed(message, stream, args)
    slack.state.touch()
    return {"channel": message.channel, "ts": message.ts}


@_method("chat.stopStream", "channel ts", "markdown_text chunks blocks metadata session_status", "chat:write")
async def _stop_stream(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    message, stream = _stream(state, args)
    status = args.get("session_status", "active")
    _session_status(status)
    blocks = args.get("blocks") or []
    metadata = _metadata(args.get("metadata"))
    check_message(blocks)
    _feed(message, stream, args)
    stream.open = False
    before = message.as_slack()
    message.blocks = [*message.blocks, *blocks]
    message.metadata = metadata
    if session := state.sessions.get((message.channel, message.root)):
        session.status = status
    state.touch()
    await slack.events.changed(message, before)
    return {"channel": message.channel, "ts": message.ts, "message": message.as_slack()}


def _stream(state: State, args: Arguments) -> tuple[Message, Stream]:
    channel = state.writable_channel(args["channel"])
    message = _found(state, channel, args["ts"], "message_not_found")
    if message.user != state.app.user:
        raise ApiError("message_not_owned_by_app")
    if message.stream is not None and message.stream.stopped:
        raise ApiError("stopped_by_user")
    if message.stream is None or not state.streaming(message):
        raise ApiError("message_not_in_streaming_state")
    return message, message.stream


def _feed(message: Message, stream: Stream, args: Arguments) -> None:
    """Add text or chunks to a stream; raises ApiError before anything is added."""
    text, chunks = args.get("markdown_text") or "", args.get("chunks") or []
    if not isinstance(chunks, list):
        raise ApiError("invalid_chunks")
    for chunk in chunks:
        needed = _CHUNKS.get(chunk.get("type", "")) if isinstance(chunk, dict) else None
        if needed is None or needed not in chunk:
            raise ApiError("invalid_chunks")
        if chunk["type"] == "task_update" and any(
            len(chunk.get(name) or "") > 256 for name in ("details", "output")
        ):
            raise ApiError("invalid_chunks")
        if chunk["type"] == "blocks":
            check_message(chunk["blocks"])
    mode: Literal["text", "chunks", ""] = "chunks" if chunks else "text" if text else ""
    if mode and stream.mode and mode != stream.mode:
        raise ApiError("streaming_mode_mismatch")
    told = [each["text"] for each in chunks if each["type"] == "markdown_text"]
    if len(text) + sum(map(len, told)) > MARKDOWN_CHARS:
        raise ApiError("msg_too_long")
    stream.mode = stream.mode or mode
    message.text += text + "".join(told)
    for chunk in chunks:
        if chunk["type"] == "blocks":
            message.blocks = [*message.blocks, *chunk["blocks"]]
        elif chunk["type"] != "markdown_text":
            stream.tasks.append(chunk)


# Conversations


@_method("conversations.info", "channel", "include_locale include_num_members", "{kind}:read")
async def _info(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.seen_channel(args["channel"])
    members = state.members[channel.id]
    shown: Answer = {
        "id": channel.id,
        "name": channel.name,
        "is_channel": channel.kind == "public",
        "is_group": False,
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.kind != "public",
        "is_archived": channel.id in state.archived,
        "is_member": state.app.user in members,
        "is_shared": channel.shared,
        "is_ext_shared": state.workspace.external(channel),
        "is_pending_ext_shared": False,
        "is_org_shared": channel.shared and not state.workspace.external(channel),
        "context_team_id": state.workspace.home.id,
        "shared_team_ids": sorted(channel.teams),
        "topic": {"value": ""},
        "purpose": {"value": ""},
    }
    if channel.kind == "im":
        shown["user"] = next(each for each in channel.members if each != state.app.user)
    if _true(args, "include_num_members"):
        shown["num_members"] = len(members)
    return {"channel": shown}


@_method("conversations.members", "channel", "cursor limit", "{kind}:read")
async def _members(slack: Caller, args: Arguments) -> Answer:
    channel = slack.state.joined_channel(args["channel"])
    page, cursor = _page(sorted(slack.state.members[channel.id]), args, 100)
    return {"members": page, "response_metadata": {"next_cursor": cursor}}


_RANGE = "cursor include_all_metadata inclusive latest limit oldest"


@_method("conversations.history", "channel", _RANGE, "{kind}:history")
async def _history(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.joined_channel(args["channel"])
    found = [each for each in reversed(state.messages(channel.id)) if _within(each.ts, args)]
    page, cursor = _page(found, args, 100)
    shown = [_with_replies(state, each, args) for each in page]
    return {"messages": shown, "has_more": bool(cursor), "response_metadata": {"next_cursor": cursor}}


@_method("conversations.replies", "channel ts", _RANGE, "{kind}:history")
async def _replies(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.joined_channel(args["channel"])
    message = _found(state, channel, args["ts"], "thread_not_found")
    thread = state.messages(channel.id, message.ts) if message.root == message.ts else [message]
    # The root always comes, whatever the range.
    found = [each for each in thread if each.ts == message.ts or _within(each.ts, args)]
    page, cursor = _page(found, args, 1000)
    shown = [_with_replies(state, each, args) for each in page]
    return {"messages": shown, "has_more": bool(cursor), "response_metadata": {"next_cursor": cursor}}


@_method("conversations.open", optional="channel prevent_creation return_im users", scopes="im:write")
async def _open(slack: Caller, args: Arguments) -> Answer:
    if args.get("channel"):
        return {"channel": {"id": slack.state.joined_channel(args["channel"]).id}}
    users = [each for each in str(args.get("users") or "").split(",") if each]
    if not users:
        raise ApiError("users_list_not_supplied")
    if len(users) > 1:
        raise ApiError(
            "missing_scope", needed="mpim:write", provided=",".join(sorted(slack.state.app.scopes))
        )
    return {"channel": {"id": slack.state.open_direct(users[0]).id}}


def _with_replies(state: State, message: Message, args: Arguments) -> Answer:
    shown = message.as_slack(metadata=_true(args, "include_all_metadata"))
    replies = [each for each in state.messages(message.channel, message.ts) if each is not message]
    if replies:
        shown |= {"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}
    return shown


def _within(ts: str, args: Arguments) -> bool:
    at, oldest, latest = (
        _micros(ts),
        _micros(args.get("oldest") or "0"),
        _micros(args.get("latest") or "9e12"),
    )
    if _true(args, "inclusive"):
        return oldest <= at <= latest
    return oldest < at < latest


def _micros(ts: Any) -> float:
    try:
        return float(ts)
    except ValueError:
        raise ApiError("invalid_ts_oldest") from None


def _page(items: list[Any], args: Arguments, usual: int) -> tuple[list[Any], str]:
    """Return one page and the cursor of the next, "" at the end."""
    try:
        start, limit = int(args.get("cursor") or 0), int(args.get("limit") or usual)
    except ValueError:
        raise ApiError("invalid_cursor") from None
    if not 1 <= limit <= 1000:
        raise ApiError("invalid_limit")
    return items[start : start + limit], str(start + limit) if start + limit < len(items) else ""


def _true(args: Arguments, name: str) -> bool:
    return args.get(name) in (True, "1", "true", "True")


# People


@_method("users.info", "user", "include_locale", "users:read")
async def _user(slack: Caller, args: Arguments) -> Answer:
    return {"user": slack.state.shown_user(args["user"])}


@_method("usergroups.users.list", "usergroup", "include_disabled team_id", "usergroups:read")
async def _group(slack: Caller, args: Arguments) -> Answer:
    groups = slack.state.workspace.usergroups
    if args["usergroup"] not in groups:
        raise ApiError("no_such_subteam")
    return {"users": sorted(groups[args["usergroup"]])}


@_method("reactions.add", "channel name timestamp", "", "reactions:write")
async def _react(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    message = _found(state, state.joined_channel(args["channel"]), args["timestamp"], "message_not_found")
    users = message.reactions.setdefault(args["name"], [])
    if state.app.user in users:
        raise ApiError("already_reacted")
    users.append(state.app.user)
    state.touch()
    await slack.events.reacted(state.app.user, message, args["name"])
    return {}


@_method("reactions.remove", "name", "channel timestamp file file_comment", "reactions:write")
async def _unreact(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.joined_channel(str(args.get("channel")))
    message = _found(state, channel, str(args.get("timestamp")), "message_not_found")
    users = message.reactions.get(args["name"], [])
    if state.app.user not in users:
        raise ApiError("no_reaction")
    users.remove(state.app.user)
    if not users:
        del message.reactions[args["name"]]
    state.touch()
    return {}


# What the app is doing


@_method(
    "assistant.threads.setStatus",
    "channel_id thread_ts status",
    "loading_messages icon_emoji icon_url username",
    "chat:write assistant:write",
)
async def _status(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel_id"])
    if state.find(channel.id, args["thread_ts"]) is None:
        raise ApiError("invalid_thread_ts")
    if len(args.get("loading_messages") or ()) > 10:
        raise invalid("no more than 10 items allowed [json-pointer:/loading_messages]")
    state.set_status(channel.id, args["thread_ts"], args["status"])
    return {}


@_method("assistant.threads.setSuggestedPrompts", "channel_id prompts", "thread_ts title", "assistant:write")
async def _prompts(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    channel = state.writable_channel(args["channel_id"])
    prompts = args["prompts"]
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= 4:
        raise invalid("must have 1 to 4 items [json-pointer:/prompts]")
    if any(not (isinstance(each, dict) and each.get("title") and each.get("message")) for each in prompts):
        raise invalid("missing required field: title or message [json-pointer:/prompts]")
    state.prompts[channel.id, args.get("thread_ts")] = prompts
    state.touch()
    return {}


@_method(
    "agents.sessions.setStatus",
    "status",
    "channel_id thread_ts title initiator_user_id icon_emoji icon_url username",
    "chat:write",
)
async def _session(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    _session_status(args["status"])
    key = _session_key(state, args)
    if len(args.get("title") or "") > 200:
        raise invalid("must be less than 201 characters [json-pointer:/title]")
    if (session := state.sessions.get(key)) is None:
        session = Session(args["status"], args.get("title") or "", args.get("initiator_user_id") or "")
        state.sessions[key] = session
    elif session.status == "closed":
        raise ApiError("session_closed")
    session.status = args["status"]
    state.touch()
    answer = {"status": session.status, "agent_status": session.status, "title": session.title}
    if session.status == "processing" and "agent_session_stopped" not in state.app.events:
        answer["warning"] = "missing_agent_session_stopped_event_subscription"
    return answer


@_method("agents.sessions.rename", "title", "channel_id thread_ts", "chat:write")
async def _rename(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    session = state.sessions.get(_session_key(state, args))
    if session is None:
        raise ApiError("session_not_found")
    if not 1 <= len(args["title"]) <= 200:
        raise invalid("must be 1 to 200 characters [json-pointer:/title]")
    session.title = args["title"]
    state.touch()
    return {"title": session.title}


def _session_status(status: Any) -> None:
    if status not in ("active", "processing", "suspended", "closed"):
        raise invalid(f"unknown status {status!r}")


def _session_key(state: State, args: Arguments) -> tuple[str, str]:
    for name in ("channel_id", "thread_ts"):
        if not args.get(name):
            raise invalid(f"missing required field: {name}")
    channel = state.writable_channel(args["channel_id"])
    if state.find(channel.id, args["thread_ts"]) is None:
        raise ApiError("invalid_thread_ts")
    return channel.id, args["thread_ts"]


# Views


@_method("views.open", "trigger_id view", "interactivity_pointer")
async def _view_open(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    user = state.use_trigger(args["trigger_id"])
    check_view(args["view"])
    return _show(state, View(state.next_id("V"), user, args["view"], state.next_id("h")))


@_method("views.update", "view", "view_id external_id hash")
async def _view_update(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    view = state.views.get(str(args.get("view_id")))
    if view is None:
        raise ApiError("not_found")
    if args.get("hash") and args["hash"] != view.hash:
        raise ApiError("hash_conflict")
    check_view(args["view"])
    view.view, view.hash = args["view"], state.next_id("h")
    return _show(state, view)


@_method("views.publish", "user_id view", "hash")
async def _view_publish(slack: Caller, args: Arguments) -> Answer:
    state = slack.state
    user = state.user(args["user_id"]).id
    check_view(args["view"])
    before = state.homes.get(user)
    if args.get("hash") and before is not None and args["hash"] != before.hash:
        raise ApiError("hash_conflict")
    state.homes[user] = View(state.next_id("V"), user, args["view"], state.next_id("h"))
    state.touch()
    return {"view": {"id": state.homes[user].id, "hash": state.homes[user].hash, **args["view"]}}


def _show(state: State, view: View) -> Answer:
    state.views[view.id] = view
    state.touch()
    return {"view": {"id": view.id, "hash": view.hash, **view.view}}
