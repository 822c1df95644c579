"""Reads what a server sent: a Chat Completions body, or whatever came in its place, becomes a Reply or a Fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from bot.chat.fault import Fault, of_body
from bot.chat.prompt import estimate
from bot.tools import TOOLS
from bot.types import Reply, Tool, ToolCall, Usage

FINISHED = frozenset({"stop", "tool_calls", "function_call"})
"""How a complete reply ends; any other word may mean that something is missing."""
UNREAD_CALL = "unread call"
"""The finish of a reply that looks like a call and can be read neither as one nor as an answer."""

_THOUGHTS = re.compile(
    r"<(think|thinking|thought|reasoning)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|thought|reasoning)\s*>", re.DOTALL | re.IGNORECASE)
_NAMES = "|".join(re.escape(tool.name) for tool in TOOLS)
_TOOL_SHAPED = re.compile(
    r"</?\s*(?:tool|function|invoke|parameter)(?:_?(?:call|use|response|result)s?)?\b|<function=|<[|｜]|\[/?(?:TOOL|ARGS)"
    r"|[\"'](?:arguments|parameters|tool_calls?|tool_name|function(?:_call)?)[\"']\s*:"
    rf"|\b(?:{_NAMES})\s*[({{\[]|\b(?:{'|'.join(re.escape(t.name) for t in TOOLS if '_' in t.name)})\b",
    re.IGNORECASE,
)


def read(raw: str, *, tools: Sequence[Tool] = (), schema: bool = False, prompt: int) -> Reply:
    """Return the reply of a response's text; `prompt` is the prompt's estimated tokens, for a server that counts none.

    Truncated text and tool-shaped text that is no call stay out of `text`, and are kept in `left_out` for the trace.
    Raises Fault where the response is no completion or does not say that it is whole.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Fault(f"the server sent no JSON: {raw.strip()[:80]!r}") from error
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise of_body(body, raw)
    said = _content(message.get("content"))
    finish = choice.get("finish_reason")
    usage = _usage(body.get("usage"), prompt, said + json.dumps(message.get("tool_calls") or ""))
    text = _THOUGHT_END.sub("", _THOUGHTS.sub("", said)).strip()
    if finish == "length":
        return Reply("", (), usage, "length", left_out=text)
    if finish == "content_filter" or message.get("refusal"):
        raise Fault(
            f"the reply was withheld by the provider ({message.get('refusal') or finish!r:.80})",
            plainly="the language model declined to answer",
            again=False,
        )
    if finish not in FINISHED:
        raise Fault(f"the reply does not say that it is whole: finish_reason is {finish!r:.40}")
    calls = _distinct(_native(message))
    if calls:
        return Reply(text, calls, usage, "tool_calls")
    if schema:
        return Reply(next((json.dumps(o) for o in objects(text)), ""), (), usage, "stop", left_out=text)
    if tools and (calls := _distinct(_spoken(text, {tool.name for tool in tools}))):
        return Reply("", calls, usage, "tool_calls", left_out=text)
    if _TOOL_SHAPED.search(text):
        return Reply("", (), usage, UNREAD_CALL, left_out=text)
    return Reply(text, (), usage, "stop")


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, whatever stands around them: fences, tags, prose."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _content(content: object) -> str:
    """Return a message's text; some servers send it in parts."""
    if isinstance(content, list):
        return "".join(
            str(p.get("text") or "") for p in content if isinstance(p, dict) and p.get("type") == "text"
        )
    return content if isinstance(content, str) else ""


def _usage(usage: object, prompt: int, said: str) -> Usage:
    found = usage if isinstance(usage, dict) else {}
    counted = [found.get("prompt_tokens"), found.get("completion_tokens")]
    if isinstance(counted[0], int) and isinstance(counted[1], int) and counted[0] > 0 and counted[1] >= 0:
        return Usage(1, 0, counted[0], counted[1])
    return Usage(1, 0, prompt, estimate(said), estimated=True)


def _native(message: dict[str, Any]) -> Iterator[ToolCall]:
    """Yield the calls of a message; arguments may be text, an object, nothing, or several objects glued together."""
    made = message.get("tool_calls") or message.get("function_call") or ()
    for call in made if isinstance(made, list) else [made]:
        if not isinstance(call, dict):
            continue
        function = call.get("function", call)
        name = str(function.get("name") or "") if isinstance(function, dict) else ""
        arguments = function.get("arguments") if isinstance(function, dict) else ""
        for one in _apart(_json_text(arguments)):
            yield ToolCall("", name, one)


def _apart(arguments: str) -> list[str]:
    """Return the objects of glued arguments one by one; anything else as it is."""
    found = [json.dumps(one, ensure_ascii=False) for one in objects(arguments)] if "}{" in arguments else []
    return found if len(found) > 1 else [arguments]


def _json_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def _spoken(text: str, known: set[str]) -> Iterator[ToolCall]:
    """Yield the calls of known tools that a text spells out as JSON, as small local models do."""
    for value in objects(text):
        inner = value.get("tool_calls") or value.get("calls") or [value]
        for one in inner if isinstance(inner, list) else [inner]:
            if not isinstance(one, dict):
                continue
            function = one.get("function")
            call = function if isinstance(function, dict) else one
            name = call.get("name") or call.get("tool") or call.get("tool_name") or function
            given = next((call[k] for k in ("arguments", "parameters", "args", "input") if k in call), None)
            if isinstance(name, str) and name in known and isinstance(given, dict | str):
                yield ToolCall("", name, _json_text(given))


def _distinct(calls: Iterator[ToolCall]) -> tuple[ToolCall, ...]:
    """Give each call an id of its own: some servers send none, or the same for all."""
    return tuple(ToolCall(f"call-{i}", call.name, call.arguments) for i, call in enumerate(calls, start=1))
