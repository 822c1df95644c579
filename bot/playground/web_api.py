"""The HTTP side of the Web API: tokens, scopes, bodies, faults, and the `response_url` of a command."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.playground.blocks import check_message
from bot.playground.faults import Fault, Faults
from bot.playground.methods import METHODS, Caller, Method, invalid
from bot.playground.state import ApiError, Call, Message

# Arguments that are structures; in a form they come as JSON text.
STRUCTURES = frozenset({"blocks", "attachments", "metadata", "chunks", "view", "prompts", "loading_messages"})
RESPONSE_USES = 5
RESPONSE_SECONDS = 1800.0


@dataclass(slots=True)
class _ResponseUrl:
    user: str
    channel: str
    until: float
    uses: int = 0
    last: Message | None = None


class WebApi:
    """Answers `/api/METHOD` and `/response/KEY` for one app."""

    def __init__(self, caller: Caller, faults: Faults, bot_token: str, app_token: str) -> None:
        self.caller = caller
        self.faults = faults
        self.bot_token = bot_token
        self.app_token = app_token
        self._responses: dict[str, _ResponseUrl] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one API call."""
        name = request.match_info["method"]
        state = self.caller.state
        try:
            arguments = await _arguments(request)
        except ApiError as error:
            return self._refused(error)
        token = _token(request, arguments)
        call = Call(name, arguments)
        state.calls.append(call)
        state.touch()
        fault = await self.faults.before(name)
        try:
            if fault is None or fault.applied:
                answer = await self._answer(name, token, arguments)
            if fault is not None:
                call.error = fault.error
                return self._faulty(request, fault)
        except ApiError as error:
            call.error = error.error
            return self._refused(error)
        finally:
            call.answered = True
            state.touch()
        return web.json_response({"ok": True, **answer}, headers=self._headers(METHODS[name]))

    def response_url(self, user: str, channel: str) -> str:
        """Return the path of a new `response_url`: five uses in half an hour."""
        key = secrets.token_hex(12)
        self._responses[key] = _ResponseUrl(user, channel, self.caller.state.now() + RESPONSE_SECONDS)
        return f"/response/{key}"

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Take one message sent to a `response_url`."""
        response = self._responses.get(request.match_info["key"])
        state = self.caller.state
        if response is None or state.now() > response.until:
            return web.Response(status=404, text="expired_url")
        if response.uses >= RESPONSE_USES:
            return web.Response(status=404, text="used_url")
        response.uses += 1
        try:
            body = await request.json()
            await self._responded(response, body)
        except (ValueError, ApiError) as error:
            return web.Response(
                status=400, text=error.error if isinstance(error, ApiError) else "invalid_payload"
            )
        return web.Response(text="ok")

    async def command_answered(self, path: str, body: dict[str, Any]) -> None:
        """Show what a command's ack carried, which is not one of the five uses."""
        try:
            await self._responded(self._responses[path.removeprefix("/response/")], body)
        except ApiError as error:
            self.caller.state.break_rule(
                "bad_answer", f"the ack of a command carried what is refused: {error.error}"
            )

    async def _responded(self, response: _ResponseUrl, body: Mapping[str, Any]) -> None:
        state = self.caller.state
        if body.get("delete_original") and response.last is not None:
            state.ephemeral.remove(response.last)
            response.last = None
            state.touch()
            return
        blocks, text = body.get("blocks") or [], body.get("text") or ""
        if not (blocks or text):
            raise ApiError("no_text")
        check_message(blocks)
        if body.get("replace_original") and response.last is not None:
            response.last.text, response.last.blocks = text, blocks
            state.touch()
            return
        message = Message(
            response.channel,
            state.next_ts(),
            state.app.user,
            text,
            thread_ts=body.get("thread_ts"),
            blocks=blocks,
            bot_id=state.app.bot,
            app_id=state.app.id,
            team=state.workspace.home.id,
        )
        if body.get("response_type") == "in_channel":
            state.add(message)
            await self.caller.events.posted(message)
        else:
            message.to = response.user
            response.last = state.add(message)

    async def _answer(self, name: str, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        method = METHODS.get(name)
        if method is None:
            raise ApiError("unknown_method", req_method=name)
        self._authorize(method, token, arguments)
        state = self.caller.state
        for missing in sorted(
            method.required - {each for each, value in arguments.items() if value is not None}
        ):
            raise invalid(f"missing required field: {missing}")
        # The SDK adds team_id to every call.
        for unknown in sorted(arguments.keys() - method.known - {"team_id"}):
            state.break_rule("unknown_argument", f"{name} has no argument {unknown!r}")
        return await method.handler(self.caller, arguments)

    def _authorize(self, method: Method, token: str, arguments: Mapping[str, Any]) -> None:
        if not token:
            raise ApiError("not_authed")
        right, other = self.bot_token, self.app_token
        if method.app_level:
            right, other = other, right
        if hmac.compare_digest(token.encode(), other.encode()):
            raise ApiError("not_allowed_token_type")
        if not hmac.compare_digest(token.encode(), right.encode()):
            raise ApiError("invalid_auth")
        if method.app_level or not method.scopes:
            return
        place = self.caller.state.channels.get(str(arguments.get("channel") or arguments.get("channel_id")))
        needed = [each.format(kind=place.scope_kind if place else "channels") for each in method.scopes]
        scopes = self.caller.state.app.scopes
        if scopes.isdisjoint(needed):
            raise ApiError("missing_scope", needed=needed[0], provided=",".join(sorted(scopes)))

    def _headers(self, method: Method | None) -> dict[str, str]:
        if method is not None and method.app_level:
            return {"x-oauth-scopes": "connections:write"}
        return {"x-oauth-scopes": ",".join(sorted(self.caller.state.app.scopes))}

    def _refused(self, error: ApiError) -> web.Response:
        return web.json_response(
            {"ok": False, "error": error.error, **error.details}, headers=self._headers(None)
        )

    def _faulty(self, request: web.Request, fault: Fault) -> web.Response:
        if fault.cut:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault.status >= 500:
            return web.Response(
                status=fault.status, text="<html>upstream error</html>", content_type="text/html"
            )
        headers = self._headers(None)
        if fault.retry_after is not None:
            headers["Retry-After"] = str(fault.retry_after)
        return web.json_response({"ok": False, "error": fault.error}, status=fault.status, headers=headers)


async def _arguments(request: web.Request) -> dict[str, Any]:
    """Return the arguments of a query, a form or a JSON body."""
    arguments: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = await request.json()
        except ValueError:
            raise ApiError("invalid_json") from None
        if not isinstance(body, dict):
            raise ApiError("json_not_object")
        return arguments | body
    arguments |= dict(await request.post())
    for name in STRUCTURES & arguments.keys():
        try:
            arguments[name] = json.loads(arguments[name])
        except ValueError:
            raise invalid(f"{name} is not JSON") from None
    return arguments


def _token(request: web.Request, arguments: dict[str, Any]) -> str:
    """Return the token of the header or of the arguments, which it is taken out of."""
    given = arguments.pop("token", "")
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if kind == "Bearer" else str(given)
