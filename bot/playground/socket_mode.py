"""Socket Mode: connections, envelopes, acks, and another delivery when an ack does not come."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSCloseCode, WSMsgType, web

from bot.playground.faults import Faults
from bot.playground.state import State

Kind = Literal["events_api", "slash_commands", "interactive"]
DisconnectReason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]

MAX_CONNECTIONS = 10
# Events are delivered again at once, after a minute and after five; commands and clicks never are.
RETRY_SECONDS = (0.0, 60.0, 300.0)


@dataclass(slots=True)
class Delivery:
    """One envelope: what was sent, when, and its ack. `acked` is seconds from send to ack, None while it is missing."""

    envelope_id: str
    kind: Kind
    payload: dict[str, Any]
    attempt: int = 0
    reason: str = ""
    sent: float | None = None
    acked: float | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def event_id(self) -> str:
        """Return the event's id, or "" for a command or a click."""
        return str(self.payload.get("event_id", ""))

    @property
    def what(self) -> str:
        """Return the event's type, the command or the kind of interaction."""
        event = self.payload.get("event", {})
        return str(event.get("type") or self.payload.get("command") or self.payload.get("type"))


class SocketMode:
    """Sends envelopes to the connected apps, one connection each, in turn; keeps them while nobody is connected."""

    def __init__(self, state: State, faults: Faults, ack_seconds: float) -> None:
        self.state = state
        self.faults = faults
        self.ack_seconds = ack_seconds
        self.deliveries: list[Delivery] = []
        self.disabled = False
        self.opened = 0
        self.address = ""
        self._waiting: deque[Delivery] = deque()
        # Those that still get envelopes, and all that are open.
        self._connections: list[web.WebSocketResponse] = []
        self._sockets: set[web.WebSocketResponse] = set()
        self._tickets: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answered: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, None]]] = {}

    @property
    def connections(self) -> int:
        """Return how many connections stand."""
        return len(self._connections)

    def new_url(self) -> str:
        """Return the URL of one connection, under the `address` that the server was given."""
        ticket = secrets.token_hex(12)
        self._tickets.add(ticket)
        return f"{self.address}?ticket={ticket}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it closes."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden(text="this URL was used before: ask apps.connections.open for a new one")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(heartbeat=30.0)
        await socket.prepare(request)
        if len(self._connections) >= MAX_CONNECTIONS:
            await self._frame(socket, {"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        self._connections.append(socket)
        self._sockets.add(socket)
        self.opened += 1
        await self._frame(
            socket,
            {
                "type": "hello",
                "num_connections": len(self._connections),
                "connection_info": {"app_id": self.state.app.id},
                "debug_info": {"host": "playground", "approximate_connection_time": 18060},
            },
        )
        self.state.touch()
        try:
            await self._flush()
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._ack(message.data)
        finally:
            self._sockets.discard(socket)
            self._leave(socket)
        return socket

    async def send(
        self,
        kind: Kind,
        payload: dict[str, Any],
        attempt: int = 0,
        reason: str = "",
        answered: Callable[[dict[str, Any]], Coroutine[Any, Any, None]] | None = None,
    ) -> Delivery:
        """Send one envelope, now or when an app connects; `answered` is called with the payload of its ack."""
        delivery = Delivery(secrets.token_hex(8), kind, payload, attempt, reason)
        self.deliveries.append(delivery)
        if answered is not None:
            self._answered[delivery.envelope_id] = answered
        self._waiting.append(delivery)
        self.state.touch()
        await self._flush()
        return delivery

    async def disconnect(self, reason: DisconnectReason) -> None:
        """Tell every connection to go; Slack closes it at once only for `link_disabled`."""
        self.disabled = reason == "link_disabled"
        for socket in list(self._connections):
            await self._frame(
                socket, {"type": "disconnect", "reason": reason, "debug_info": {"host": "playground"}}
            )
            if self.disabled:
                await socket.close()

    async def cut(self) -> None:
        """Close every connection without a word."""
        for socket in tuple(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    async def close(self) -> None:
        """Close every connection and stop delivering."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self.cut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def unacked(self) -> list[Delivery]:
        """Return the envelopes that were sent and not acked, nor acked when their event was delivered again."""
        known = {each.event_id for each in self.deliveries if each.event_id and each.acked is not None}
        return [
            each
            for each in self.deliveries
            if each.sent is not None and each.acked is None and each.event_id not in known
        ]

    def _leave(self, socket: web.WebSocketResponse) -> None:
        if socket in self._connections:
            self._connections.remove(socket)
            self.state.touch()

    async def _flush(self) -> None:
        while self._waiting and self._connections:
            delivery = self._waiting.popleft()
            socket = self._connections.pop(0)
            self._connections.append(socket)
            frame: dict[str, Any] = {
                "envelope_id": delivery.envelope_id,
                "type": delivery.kind,
                "payload": delivery.payload,
                "accepts_response_payload": delivery.kind != "events_api",
            }
            if delivery.kind == "events_api":
                frame |= {"retry_attempt": delivery.attempt, "retry_reason": delivery.reason}
            delivery.sent = self.state.monotonic()
            if self.ack_seconds:
                self._timers[delivery.envelope_id] = asyncio.get_running_loop().call_later(
                    self.ack_seconds, self._missed, delivery
                )
            await self._frame(socket, frame)

    def _ack(self, text: str) -> None:
        frame = json.loads(text)
        envelope = frame.get("envelope_id", "")
        delivery = next((each for each in self.deliveries if each.envelope_id == envelope), None)
        if delivery is None or delivery.sent is None:
            self.state.break_rule("unknown_ack", f"acked {envelope!r}, which was never sent")
            return
        if delivery.acked is not None:
            self.state.break_rule("double_ack", f"acked {delivery.what} {envelope} twice")
            return
        if timer := self._timers.pop(envelope, None):
            timer.cancel()
        delivery.acked = self.state.monotonic() - delivery.sent
        delivery.answer = frame.get("payload") or {}
        if delivery.kind == "events_api" and self.faults.lost_acks:
            self.faults.lost_acks -= 1
            self._again(delivery, "timeout")
        if (answered := self._answered.pop(envelope, None)) and delivery.answer:
            self._run(answered(delivery.answer))
        self.state.touch()

    def _missed(self, delivery: Delivery) -> None:
        self._timers.pop(delivery.envelope_id, None)
        self.state.break_rule(
            "unacked", f"{delivery.what} {delivery.envelope_id} was not acked within {self.ack_seconds:g} s"
        )
        if delivery.kind == "events_api":
            self._again(delivery, "timeout")

    def _again(self, delivery: Delivery, reason: str) -> None:
        if delivery.attempt >= len(RETRY_SECONDS):
            return

        async def again() -> None:
            await asyncio.sleep(RETRY_SECONDS[delivery.attempt])
            await self.send("events_api", delivery.payload, delivery.attempt + 1, reason)

        self._run(again())

    def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _frame(self, socket: web.WebSocketResponse, frame: dict[str, Any]) -> None:
        # A connection may go while we write to it; what was in it is delivered again when its ack stays out.
        if not socket.closed:
            try:
                await socket.send_str(json.dumps(frame))
            except ConnectionError:
                self.state.touch()
