"""A server that speaks Chat Completions by a script, over real sockets, with every fault that a real one may have."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Play:
    """Answers one request: the request, and its JSON."""

    answer: Callable[[web.Request, Json], Awaitable[web.StreamResponse]]


Line = Play | Callable[[Json], "Line"]
"""A play, or a function of the request's JSON that returns one."""

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


class OpenAIServer:
    """Plays its lines in order; with `forever` the last one is repeated. Every request's JSON is kept.

    Leaving it fails the test when it was called too often or too seldom.
    """

    def __init__(self, *script: Line, forever: bool = False, models: tuple[str, ...] = ("scripted",)) -> None:
        self.script = list(script)
        self.forever = forever
        self.models = models
        self.requests: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.too_often = 0
        self._closing = asyncio.Event()

    async def __aenter__(self) -> OpenAIServer:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()
        if error is None:
            assert not self.too_often, f"called too often: {self.too_often} times beyond the script"
            assert self.forever or not self.script, f"called too seldom: {len(self.script)} lines left"

    @property
    def prompts(self) -> str:
        """Everything that any prompt held."""
        return "\n".join(m["content"] for request in self.requests for m in request["messages"])

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
        )

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        self.requests.append(body)
        self.headers.append(request.headers)
        if not self.script:
            self.too_often += 1
            return web.json_response(
                {"error": {"message": "the script is over", "code": "script"}}, status=400
            )
        line = self.script[0] if self.forever and len(self.script) == 1 else self.script.pop(0)
        while not isinstance(line, Play):
            line = line(body)
        task = asyncio.ensure_future(line.answer(request, body))
        closing = asyncio.ensure_future(self._closing.wait())
        await asyncio.wait([task, closing], return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        if not task.done():
            task.cancel()
            return web.Response(status=503)
        return await task


def completion(message: Json, finish: str | None = "stop", usage: Json | None = USAGE, **more: Any) -> Json:
    """Return the body of a completion."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        **more,
    }
    return body if usage is None else {**body, "usage": usage}


def body(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Play:
    """Send any JSON with any status."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        return web.json_response(value, status=status, headers=headers)

    return Play(play)


def says(text: str | None, finish: str | None = "stop", **more: Any) -> Play:
    """Answer with a text."""
    return body(completion({"content": text}, finish, **more))


def calls(
    *wanted: tuple[str, Any], ids: tuple[str, ...] = (), finish: str = "tool_calls", **more: Any
) -> Play:
    """Answer with tool calls; arguments that are text are sent as they are, malformed or not."""
    made = [
        {
            "id": ids[i] if i < len(ids) else f"call_{i}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for i, (name, given) in enumerate(wanted)
    ]
    return body(completion({"content": None, "tool_calls": made}, finish, **more))


def status(
    status: int,
    message: str = "it is out of order",
    *,
    headers: Mapping[str, str] | None = None,
    **error: Any,
) -> Play:
    """Answer with an error."""
    return body({"error": {"message": message, "type": "error", "code": None, **error}}, status, headers)


def sends(text: str, content_type: str = "application/json") -> Play:
    """Answer with status 200 and any text."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return Play(play)


def hangs() -> Play:
    """Take the request and never answer."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    return Play(play)


def trickles() -> Play:
    """Send the body a blank at a time, for ever: no single read is slow."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    return Play(play)


def cuts(text: str, *, promised: int | None = None) -> Play:
    """Send the beginning of a body and drop the connection; `promised` bytes are announced, else it is chunked."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        headers = {"Content-Type": "application/json"}
        if promised:
            headers["Content-Length"] = str(promised)
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(text.encode())
        if request.transport:
            request.transport.close()
        return response

    return Play(play)


def drops() -> Play:
    """Close the connection without an answer."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        if request.transport:
            request.transport.close()
        return web.Response()

    return Play(play)


def streams(*chunks: Json, done: bool = True) -> Play:
    """Answer a streamed request with these chunks."""

    async def play(request: web.Request, asked: Json) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        if done:
            await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    return Play(play)


def chunk(text: str | None = None, finish: str | None = None, usage: Json | None = None) -> Json:
    """Return one chunk of a stream; the one with the usage has no choices."""
    choices = (
        [] if usage else [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}]
    )
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": choices,
        "usage": usage,
    }


def numbered() -> Callable[[], int]:
    """Return a counter from 0."""
    return itertools.count().__next__
