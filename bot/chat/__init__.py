"""The language model behind an OpenAI-compatible server: Chat Completions over the openai client."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from bot import prompts
from bot.chat.fault import LATE, UNREACHABLE, Fault, of_error
from bot.chat.prompt import estimate, tool_json, tools_as_text, written
from bot.chat.reply import read
from bot.types import Budget, Message, Reply, Tool, Usage
from ingest.errors import ConfigError, ModelError

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
ATTEMPTS = 3
"""Most attempts at one call, where trying again may help."""
ATTEMPTS_TO_CONNECT = 2
"""Most attempts at one call where nobody listens: only a restart of the server is worth the wait."""
LEFT_ALONE_SECONDS = 30.0
"""How long nobody asks a server that could not be connected to, so that not every question waits for it."""
MORE_ROOM = 4
"""How many times longer a reply may get where all of it went into reasoning."""

_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|exceed_context_size|prompt is too long", re.IGNORECASE
)
Rung = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class _Line:
    """What belongs to one event loop: a client is bound to the loop that it was first used on."""

    client: openai.AsyncOpenAI
    free: asyncio.Semaphore


class OpenAIModel:
    """A ChatModel over Chat Completions; what the server does not take is learnt from its refusals, once a process.

    `context_tokens` is the model's window, prompt and reply together; `at_once` the most requests in flight.
    """

    note = ""

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        api_key: str = "",
        context_tokens: int = 16_000,
        at_once: int = 4,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not base_url and not api_key:
            raise ConfigError(
                f"TWOHOP_MODEL = {name!r} needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own; set one, "
                "or unset TWOHOP_MODEL to answer without a language model"
            )
        self.name = name
        self.base_url = base_url or OPENAI
        self._key = api_key
        self.window = context_tokens
        self._at_once = at_once
        self._sleep = sleep
        self._clock = clock
        self._alone_until = 0.0
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        # Servers of one's own know the old name of the limit; OpenAI's newer models refuse it.
        self._limit_name = "max_tokens" if base_url else "max_completion_tokens"
        self._temperature = True
        self.refused_tools = ""
        """What the server said when it refused tools."""
        self.rung: Rung = "json_schema"
        self._learnt: set[str] = set()

    @property
    def takes_tools(self) -> bool:
        """Tell whether the server takes tools, as far as is known."""
        return not self.refused_tools

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Return the next message, trying again inside the question's budget where that may help.

        A failed attempt is spent from the budget at once; the reply's own usage is the caller's to add.
        Raises ModelError, with plain words for whoever asked.
        """
        if tools and schema is not None:
            raise ValueError("tools and schema are never given together")
        self._refuse_left_alone()
        failed, longest = 0, max_tokens
        while True:
            request = self.request(messages, tools, schema, longest)
            prompt = estimate(json.dumps(request))
            _afford(prompt, budget)
            try:
                raw = await self.send(request, budget)
                reply = read(raw, tools=tools, schema=schema is not None, prompt=prompt)
            except Fault as fault:
                budget.add(Usage(calls=1))
                if self._learn(fault, tools, schema):
                    continue
                failed += 1
                most = ATTEMPTS_TO_CONNECT if fault.no_server else ATTEMPTS
                wait = (0.5 * 2**failed) * random.uniform(0.75, 1.0) if fault.wait is None else fault.wait  # noqa: S311 - jitter, no secret
                # A wait must leave at least as long for the answer.
                if not fault.again or failed >= most or wait > _left(budget) / 2:
                    if fault.no_server:
                        self._alone_until = self._clock() + LEFT_ALONE_SECONDS
                    raise ModelError(
                        f"the model {self.name!r} at {self.base_url}: {self._masked(fault.detail)}",
                        plainly=fault.plainly,
                    ) from fault
                await self._sleep(wait)
                continue
            self._alone_until = 0.0
            if reply.finish == "length" and not reply.left_out and longest == max_tokens:
                # Reasoning ate the whole reply.
                budget.add(reply.usage)
                longest = min(MORE_ROOM * max_tokens, self.window // 2)
                continue
            return reply

    async def close(self) -> None:
        """Close the running event loop's connections."""
        line = self._lines.pop(asyncio.get_running_loop(), None)
        if line is not None:
            await line.client.close()

    def line(self) -> _Line:
        """Return the running event loop's client."""
        loop = asyncio.get_running_loop()
        if loop not in self._lines:
            import openai

            client = openai.AsyncOpenAI(
                # A server of one's own wants no key, and the client refuses to start without one.
                api_key=self._key or "none",
                base_url=self.base_url,
                max_retries=0,
            )
            self._lines[loop] = _Line(client, asyncio.Semaphore(self._at_once))
        return self._lines[loop]

    def request(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        longest: int = 1024,
    ) -> dict[str, Any]:
        """Return the request's JSON, as far as is known what the server takes. Raises ModelError where it cannot fit."""
        appendix = ""
        if tools and not self.takes_tools:
            appendix = tools_as_text(tools)
        elif schema is not None and self.rung != "json_schema":
            appendix = f"{prompts.SCHEMA_AS_TEXT}\n{json.dumps(schema)}"
        native = tools if self.takes_tools else ()
        longest = min(longest, self.window // 2)
        request: dict[str, Any] = {
            "model": self.name,
            "messages": written(messages, tools=native, appendix=appendix, room=self.window - longest),
            self._limit_name: longest,
        }
        if self._temperature:
            request["temperature"] = 0
        if native:
            request["tools"] = [tool_json(tool) for tool in native]
        if schema is not None and self.rung == "json_schema":
            form = {"name": "reply", "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None and self.rung == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    async def send(self, request: dict[str, Any], budget: Budget) -> str:
        """Send one request and return the body's text; bounded by the deadline as a whole, however slowly it trickles."""
        import openai

        line = self.line()
        left = _left(budget)
        try:
            async with asyncio.timeout(max(0.0, left)), line.free:
                # Half of the question's time for one silence leaves the other half for another attempt.
                timeout = openai.Timeout(
                    budget.limits.seconds / 2, connect=min(5.0, budget.limits.seconds / 2)
                )
                raw = await line.client.chat.completions.with_raw_response.create(**request, timeout=timeout)
                return str(raw.text)
        except TimeoutError as error:
            raise Fault("the time of the question is used up", plainly=LATE, again=False) from error
        except openai.OpenAIError as error:
            raise of_error(error) from error

    def _refuse_left_alone(self) -> None:
        """Raise ModelError while the server is left alone."""
        left = self._alone_until - self._clock()
        if left > 0:
            raise ModelError(
                f"the model {self.name!r} at {self.base_url} could not be connected to; it is asked again in {left:.0f} s",
                plainly=UNREACHABLE,
            )

    def _learn(self, fault: Fault, tools: Sequence[Tool], schema: Mapping[str, Any] | None) -> bool:
        """Note what the server refuses, and tell whether to ask again without it."""
        if fault.status not in (400, 404, 422, 500, 501):
            return False
        said = fault.detail.casefold()
        if _CONTEXT.search(said):
            self.window //= 2
            return self.window >= 1000
        if "max_tokens" in said or "max_completion_tokens" in said:
            self._limit_name = {"max_tokens": "max_completion_tokens"}.get(self._limit_name, "max_tokens")
            return self._once("limit")
        if "temperature" in said:
            self._temperature = False
            return self._once("temperature")
        if tools and "tool" in said:
            self.refused_tools = self._masked(fault.detail)
            return self._once("tools")
        if schema is not None and self.rung != "text" and (fault.status in (400, 422) or "schema" in said):
            self.rung = "json_object" if self.rung == "json_schema" else "text"
            return True
        return False

    def _once(self, what: str) -> bool:
        first = what not in self._learnt
        self._learnt.add(what)
        return first

    def _masked(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _left(budget: Budget) -> float:
    return budget.model_deadline - time.monotonic()


def _afford(prompt: int, budget: Budget) -> None:
    """Refuse a call that the question's limits do not cover; raises ModelError."""
    spent = budget.spent.input_tokens + budget.spent.output_tokens
    if spent + prompt > budget.limits.tokens:
        raise ModelError(
            f"a prompt of about {prompt} tokens, after {spent} spent, is over limits.tokens = {budget.limits.tokens}",
            plainly=f"the limit of {budget.limits.tokens} tokens for one question is reached",
        )
    if _left(budget) <= 0:
        raise ModelError(
            f"limits.seconds = {budget.limits.seconds:g} is used up",
            plainly=f"the limit of {budget.limits.seconds:g} seconds for one question is reached",
        )
