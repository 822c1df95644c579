"""The Slack side from a desk: tokens are checked, the app is built, connected, and closed without losing a question."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib import resources
from typing import Any

from aiohttp import ClientSession
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient

from bot import health
from bot.app import Desk, Executor
from bot.config import Settings
from bot.metrics import Metrics, Part, slack_error
from bot.slack.access import Us
from bot.slack.calls import UNREACHABLE, code
from bot.slack.listeners import Command, register
from bot.slack.people import People
from bot.slack.reindex import IndexRuns
from bot.slack.thread import LoopThread
from bot.slack.worker import Worker
from bot.store import Inbox
from ingest.errors import ConfigError
from ingest.runs import Runs
from ingest.types import Where

_WATCH_SECONDS = 5.0
_UNCONNECTED_SECONDS = 60.0
"""How long the client may try by itself before it is replaced: it never asks for a new address within one attempt."""
_REINSTALL = "then reinstall the app (OAuth & Permissions > Reinstall)"
_BOT_FIX = "set SLACK_BOT_TOKEN to the Bot User OAuth Token (xoxb-…) of OAuth & Permissions"
_APP_FIX = (
    "set SLACK_APP_TOKEN to an app-level token (xapp-…) with the scope connections:write, "
    "from Basic Information > App-Level Tokens"
)

_log = logging.getLogger(__name__)


def manifest() -> dict[str, Any]:
    """Return the app manifest that the listeners are written for."""
    text = (resources.files("bot") / "slack-manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def check_tokens(settings: Settings) -> None:
    """Raise ConfigError where a token is missing or of the wrong kind; a token's value is never shown."""
    for name, token, prefix, fix in (
        ("SLACK_BOT_TOKEN", settings.slack_bot_token, "xoxb-", _BOT_FIX),
        ("SLACK_APP_TOKEN", settings.slack_app_token, "xapp-", _APP_FIX),
    ):
        if not token:
            raise ConfigError(f"{name} is not set; {fix}")
        if not token.startswith(prefix):
            kind = token[:5] if token.startswith("x") else "something else"
            raise ConfigError(f"{name} begins with {kind!r}, not {prefix!r}; {fix}")


async def who_are_we(client: AsyncWebClient) -> Us:
    """Ask Slack whose token this is; raises ConfigError with the fix."""
    try:
        found = await client.auth_test()
    except UNREACHABLE as error:
        raise _refused("SLACK_BOT_TOKEN", _BOT_FIX, error, client) from error
    if not found.get("bot_id"):
        raise ConfigError(f"SLACK_BOT_TOKEN belongs to a person, not to a bot; {_BOT_FIX}")
    headers = {name.lower(): value for name, value in (found.headers or {}).items()}
    granted = {scope.strip() for scope in str(headers.get("x-oauth-scopes", "")).split(",")} - {""}
    missing = set(manifest()["oauth_config"]["scopes"]["bot"]) - granted
    if granted and missing:
        raise ConfigError(
            f"SLACK_BOT_TOKEN lacks the scopes {', '.join(sorted(missing))} (missing_scope); "
            f"add them under OAuth & Permissions, {_REINSTALL}"
        )
    return Us(
        user=found["user_id"],
        bot=found["bot_id"],
        name=found.get("user") or "",
        team=found["team_id"],
        team_name=found.get("team") or "",
        enterprise=found.get("enterprise_id") or "",
    )


async def socket_address(client: AsyncWebClient, app_token: str) -> str:
    """Ask Slack for an address to connect to, good for one connection; raises ConfigError with the fix."""
    try:
        return str((await client.apps_connections_open(app_token=app_token))["url"])
    except UNREACHABLE as error:
        raise _refused("SLACK_APP_TOKEN", _APP_FIX, error, client) from error


def _refused(name: str, fix: str, error: Exception, client: AsyncWebClient) -> ConfigError:
    if not isinstance(error, SlackApiError):
        return ConfigError(
            f"Slack cannot be reached at {client.base_url!r}: {code(error)}; check the network and slack.api_url"
        )
    why = code(error)
    hints = {
        "not_allowed_token_type": f"it is a token of another kind; {fix}",
        "missing_scope": f"it lacks the scope {error.response.get('needed', '?')}; {fix}",
        "ratelimited": "Slack asks for a pause; wait a minute and start again",
    }
    return ConfigError(f"Slack refused {name} ({why}): {hints.get(why, fix)}")


def create_app(
    us: Us,
    client: AsyncWebClient,
    worker: Worker,
    command: Command,
    shared_channels: Sequence[str] = (),
) -> AsyncApp:
    """Build the bolt app: listeners answer to nobody, they write to the inbox."""
    authorized = AuthorizeResult(
        enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user, bot_id=us.bot
    )

    async def authorize(**_: Any) -> AuthorizeResult:
        # Known from the start: bolt's own way asks Slack before the first ack.
        return authorized

    logger = logging.getLogger("bot.slack.bolt")
    # Below an error it only tells that the tokens of the environment are not read by it.
    logger.setLevel(logging.ERROR)
    app = AsyncApp(
        name="twohop", client=client, authorize=authorize, logger=logger, process_before_response=True
    )
    register(app, us, frozenset(shared_channels), receive=worker.receive, stop=worker.stop, command=command)
    return app


class _Errors(AsyncRetryHandler):
    """Counts the calls that did not work: the SDK asks it, as the first, whether to try again, and it never does."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    async def can_retry_async(
        self,
        *,
        state: RetryState,  # noqa: ARG002 - the SDK names its arguments
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        found = slack_error(response.status_code, response.body or {}) if response else None
        if error is not None:
            found = "unreachable"
        if found:
            self._metrics.slack(request.url.rpartition("/")[2], found)
        return False


class Connection:
    """The Socket Mode connection; it is built anew when it does not come back by itself."""

    def __init__(self, app: AsyncApp, app_token: str) -> None:
        self._app = app
        self._token = app_token
        self._handler: AsyncSocketModeHandler | None = None
        self._alive = time.time()
        """When it last gave a sign of life, in Unix seconds as the SDK keeps them."""

    async def open(self, address: str | None = None) -> None:
        """Connect, to an address that Slack has just given if there is one."""
        handler = AsyncSocketModeHandler(
            self._app, self._token, logger=logging.getLogger("bot.slack.socket"), ping_interval=10
        )
        self._handler = handler
        handler.client.wss_uri = address
        async with asyncio.timeout(_UNCONNECTED_SECONDS):
            await handler.connect_async()  # type: ignore[no-untyped-call]  # the SDK does not annotate it
        self._alive = time.time()

    def look(self) -> Part:
        """Return how the connection is: Slack answers a ping at least every ten seconds."""
        heard = self._handler.client.last_ping_pong_time if self._handler else None
        self._alive = max(self._alive, heard or 0.0)
        silent = max(0.0, time.time() - self._alive)
        return Part(
            silent <= _UNCONNECTED_SECONDS,
            f"last sign of life {silent:.0f} s ago",
            {"slack_silence_seconds": silent},
        )

    async def watch(self) -> None:
        """Look after the connection; ends when cancelled."""
        clock = asyncio.get_running_loop().time
        seen = clock()
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if self._handler is not None and await self._handler.client.is_connected():
                seen = clock()
            elif clock() - seen > _UNCONNECTED_SECONDS:
                _log.error("not connected for %.0f s: connecting anew", clock() - seen)
                await self.close()
                with suppress(*UNREACHABLE):
                    await self.open()
                seen = clock()

    async def close(self) -> None:
        """Close the connection; what it did not acknowledge, Slack delivers again."""
        if self._handler is not None:
            client = self._handler.client
            await self._handler.close_async()  # type: ignore[no-untyped-call]  # the SDK does not annotate it
            tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
            await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
            self._handler = None


@asynccontextmanager
async def connected(
    desk: Desk,
    *,
    reindex: Sequence[str] = (),
    say: Callable[[str], None] = _log.info,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[asyncio.Task[None]]:
    """Connect the desk to Slack and answer; on leaving, drain what runs and give back the rest.

    Yields a task that fails when something that must not end has ended. `reindex` is the command of an index run,
    `clock` tells how long it is known who somebody is (monotonic seconds).
    Raises ConfigError where a token is missing or refused.
    """
    settings = desk.settings
    check_tokens(settings)
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
    inbox = Inbox(desk.store.engine, owner, settings.slack.lease_seconds)
    index_runs = Runs(desk.store.engine, owner, settings.sync.lease_seconds)
    metrics = Metrics()
    if desk.parts.model is not desk.parts.fallback:
        desk.parts = replace(desk.parts, model=metrics.heard(desk.parts.model))
    async with ClientSession() as session:

        def client(token: str | None) -> AsyncWebClient:
            # Only rate limits are tried again inside a call: a post whose answer was lost may have arrived,
            # and whoever tries again looks first.
            return AsyncWebClient(
                token=token,
                base_url=settings.slack.api_url.rstrip("/") + "/",
                session=session,
                retry_handlers=[_Errors(metrics), AsyncRateLimitErrorRetryHandler(max_retry_count=2)],
            )

        web = client(settings.slack_bot_token)
        us = await who_are_we(web)
        address = await socket_address(web, settings.slack_app_token)
        run = Executor("inbox", 2)
        think = LoopThread("answers")
        people = People(web, us, clock=clock)
        worker = Worker(
            desk,
            inbox,
            web,
            us,
            people,
            run=run,
            think=think,
            parallel=settings.slack.parallel,
            metrics=metrics,
        )

        async def documents() -> int:
            return len(await desk.parts.compute(lambda: desk.index.documents(Where(desk.everyone()))))

        runs = IndexRuns(
            web,
            people,
            inbox,
            index_runs,
            run,
            argv=reindex,
            sources=desk.sources,
            documents=documents,
            admins=settings.slack.admins,
            settings=settings.sync,
            zone=desk.zone,
        )
        app = create_app(us, client(None), worker, runs.command, settings.slack.shared_channels)
        connection = Connection(app, settings.slack_app_token)
        tasks: list[asyncio.Task[None]] = []
        try:
            await connection.open(address)
            say(f"connected to {us.team_name} ({us.team}) as @{us.name} ({us.user})")
            empty = not desk.index.documents(Where(readers=desk.asker().readers))
            await runs.start(now=empty)
            tasks = [
                asyncio.create_task(worker.run(), name="worker"),
                asyncio.create_task(runs.keep(), name="index runs"),
                asyncio.create_task(connection.watch(), name="connection"),
            ]
            looks = {"slack": connection.look, **health.looks(desk, inbox, index_runs, metrics)}
            async with health.answering(settings.health, looks, metrics, say):
                yield asyncio.create_task(_first_end(tasks))
        finally:
            await connection.close()
            left = await worker.drain(settings.slack.drain_seconds)
            if left:
                say(f"{left} questions were not finished and wait for the next start")
            await runs.stop()
            await people.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await think(desk.release())
            think.close()
            run.close()


async def _first_end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for the first task to end, which none does by itself; raises what ended it."""
    ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        if not task.cancelled():
            task.result()


async def serve(desk: Desk, *, reindex: Sequence[str], say: Callable[[str], None]) -> None:
    """Answer in Slack until SIGTERM or SIGINT; raises ConfigError or ModelError where it cannot start."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with connected(desk, reindex=reindex, say=say) as failed:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        waiting = asyncio.create_task(stop.wait())
        # It takes seconds, for which the first question would wait.
        loaded = asyncio.ensure_future(
            desk.parts.compute(lambda: desk.remembered.embed(["a question"], kind="query"))
        )
        await asyncio.wait((loaded, waiting, failed), return_when=asyncio.FIRST_COMPLETED)
        if loaded.done():
            loaded.result()
            say("answering mentions and direct messages; Ctrl-C or SIGTERM ends it")
        await asyncio.wait((waiting, failed), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if failed.done():
            failed.result()
        say(f"stopping: no new questions; up to {desk.settings.slack.drain_seconds:g} s for those under way")
