"""What `doctor` asks of a language model's server: each probe returns a line or raises ModelError with the next step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from bot.chat import OpenAIModel
from bot.chat.fault import Fault, of_error
from bot.chat.prompt import estimate
from bot.chat.reply import read
from bot.types import Budget, Limits, Message, Tool
from ingest.errors import ModelError

SECONDS = 30.0
"""Longest silence of the server in one probe; no probe takes longer than twice as long for each of its calls."""
_TOOL = Tool(
    "get_ticket",
    "Read one ticket by its number.",
    {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
)
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}


class NoServer(ModelError):
    """Nobody listens there, so that no other probe can tell more."""


Probe = Callable[[OpenAIModel], Awaitable[str]]


async def models(model: OpenAIModel) -> str:
    """Look the model's name up in the server's list."""
    import openai

    try:
        async with asyncio.timeout(SECONDS):
            page = await model.line().client.models.list(timeout=SECONDS)
    except TimeoutError as error:
        raise ModelError(
            f"{model.base_url} did not list its models in {SECONDS:g} s; check OPENAI_BASE_URL"
        ) from error
    except openai.OpenAIError as error:
        fault = of_error(error)
        kind = NoServer if fault.no_server else ModelError
        raise kind(f"{model.base_url}: {fault.detail}") from error
    names = [str(getattr(one, "id", "")) for one in getattr(page, "data", None) or ()]
    if not names:
        return "the server lists none; the next lines tell whether it knows the name"
    if model.name not in names:
        listed = ", ".join(repr(name) for name in names[:8])
        raise ModelError(f"{model.name!r} is not among {listed}; set TWOHOP_MODEL to one of them")
    return f"{model.name!r} is one of {len(names)}"


async def call(model: OpenAIModel) -> str:
    """Ask for one token."""
    reply = await model.complete([Message("user", "Say yes.")], max_tokens=1, budget=_budget())
    counted = "estimated, as the server sends none" if reply.usage.estimated else "as the server counts"
    return f"answers; tokens {counted}"


async def tool_call(model: OpenAIModel) -> str:
    """Ask for a tool call."""
    messages = [Message("system", "Use the tool."), Message("user", "Read ticket 4812.")]
    reply = await model.complete(messages, tools=[_TOOL], max_tokens=256, budget=_budget())
    if not model.takes_tools and not reply.calls:
        raise ModelError(
            f"{model.name!r} called no tool, so it answers from what code finds; the server says: {model.refused_tools}; "
            "for more, take a model that calls tools"
        )
    if not reply.calls:
        raise ModelError(
            f"{model.name!r} called no tool, so it answers from what code finds; for more, take a model that calls tools, "
            "and start llama.cpp with --jinja, vLLM with --enable-auto-tool-choice and a parser"
        )
    if not model.takes_tools:
        return f"the server takes no tools ({model.refused_tools}); they are told in words, and calls are read from the text"
    return "calls tools" + (", spelled out in its text" if reply.left_out else "")


async def schema_call(model: OpenAIModel) -> str:
    """Ask for JSON by a schema."""
    messages = [Message("user", 'Which colour is grass? Reply as JSON: {"colour": "..."}')]
    reply = await model.complete(messages, schema=_SCHEMA, max_tokens=256, budget=_budget())
    found = json.loads(reply.text) if reply.text else {}
    if not isinstance(found.get("colour"), str):
        raise ModelError(
            f"{model.name!r} did not keep to the schema (said {(reply.text or reply.left_out)[:60]!r}); "
            "follow-ups are made standalone by rule"
        )
    kept = {
        "json_schema": "by the schema",
        "json_object": "as JSON, the schema told in words",
        "text": "as text, the schema told in words",
    }
    return f"answers {kept[model.rung]}"


async def stream(model: OpenAIModel) -> str:
    """Read a stream to its end; the last chunk, with the usage, has no choices."""
    import openai

    request = model.request([Message("user", "Count to three.")], longest=32)
    finish, usage = None, None
    try:
        async with asyncio.timeout(SECONDS):
            chunks = await model.line().client.chat.completions.create(
                **request, stream=True, stream_options={"include_usage": True}, timeout=SECONDS
            )
            async with chunks:
                async for chunk in chunks:
                    usage = chunk.usage or usage
                    finish = next((c.finish_reason for c in chunk.choices or () if c.finish_reason), finish)
    except TimeoutError as error:
        raise ModelError(f"the stream did not end in {SECONDS:g} s; check the proxies on the way") from error
    except openai.OpenAIError as error:
        raise ModelError(of_error(error).detail) from error
    if finish is None:
        raise ModelError("the stream ended without saying that it is whole; check the proxies on the way")
    return "ends as it should, " + ("with usage" if usage else "without usage")


async def window(model: OpenAIModel) -> str:
    """Send the longest prompt that a question may become, and see whether all of it was read.

    Some servers cut a prompt silently, its beginning first; their count of its tokens then stops growing.
    """
    counts = []
    for share in (0.5, 1.0):
        request = model.request([Message("user", _long(int(share * (model.window - 300))))], longest=16)
        try:
            raw = await model.send(request, _budget())
            reply = read(raw, prompt=0)
        except Fault as fault:
            raise ModelError(
                f"a prompt of about {int(share * model.window)} tokens failed: {fault.detail}; lower chat.context_tokens, "
                "give the server a larger window or, where it is only slow, raise limits.seconds"
            ) from fault
        if reply.usage.estimated:
            return (
                f"not known, as the server counts no tokens; compare chat.context_tokens = {model.window} with its "
                "own setting"
            )
        counts.append(reply.usage.input_tokens)
    half, full = counts
    if full < 1.8 * half:
        raise ModelError(
            f"of a prompt of about {2 * half} tokens the server read {full}, without saying so; set chat.context_tokens = "
            f"{max(2000, full)}, or give the server a larger window (Ollama: num_ctx in a Modelfile)"
        )
    return f"reads a prompt of {full} tokens, the longest that chat.context_tokens = {model.window} allows"


PROBES: tuple[tuple[str, Probe], ...] = (
    ("models", models),
    ("one-token call", call),
    ("tool call", tool_call),
    ("schema call", schema_call),
    ("stream with usage", stream),
    ("context window", window),
)


def _budget() -> Budget:
    return Budget.start(Limits(seconds=2 * SECONDS, tokens=1_000_000))


def _long(tokens: int) -> str:
    """Return a text of about so many tokens, by our own estimate."""
    lines: list[str] = []
    size = 0
    while size < tokens - 20:
        lines.append(f"Line {len(lines)} of a long text that says nothing more.")
        size += estimate(f"{lines[-1]}\n")
    return "\n".join([*lines, "Say yes."])
