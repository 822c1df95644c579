"""Writes messages with their typed evidence as the prompt of a Chat Completions request, inside the context window."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from bot import prompts
from bot.types import EvidenceItem, Message, Tool, ToolCall
from ingest.dates import format_date
from ingest.errors import ModelError

_SPECIAL = re.compile(
    r"<(?=[|｜]|/?s>|/?(?:start|end)_of_turn>|(?:bos|eos|pad|unk)>)|\[(?=/?INST\])", re.IGNORECASE
)
"""What a chat template would read as its own: servers tokenize the written-out prompt as a whole."""


def clean(text: str) -> str:
    """Return untrusted text without control and format characters, lone surrogates and a template's special tokens."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(c for c in plain if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return _SPECIAL.sub(lambda match: f"{match[0]} ", kept)


def estimate(text: str) -> int:
    """Estimate the tokens of a text from above: a third of its UTF-8 bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


def written(
    messages: Sequence[Message], *, tools: Sequence[Tool] = (), appendix: str = "", room: int
) -> list[dict[str, str]]:
    """Return the request's messages: system and user texts, at most `room` tokens with the tools' descriptions.

    Earlier calls and their results are told in the user's message, so that no transcript of calls has to be accepted
    by the server's template. Where it gets narrow, the lowest evidence is left out; never the system prompt or the
    question. `appendix` ends the system prompt. Raises ModelError where those alone do not fit.
    """
    done = "\n".join(_calls(messages))
    spoken = [message for message in messages if message.role != "tool" and not message.calls]
    texts = [_text(message, done, appendix, ()) for message in spoken]
    left = (
        room
        - sum(estimate(text) + 8 for text in texts)
        - sum(estimate(json.dumps(tool_json(t))) for t in tools)
    )
    if left < 0:
        raise ModelError(
            f"the instructions and the question need about {room - left} tokens and {room} are left for them; "
            "raise chat.context_tokens if the model can read more",
            plainly="the question is too long for the language model",
        )
    for i, message in enumerate(spoken):
        if message.evidence:
            texts[i] = _text(message, done, appendix, _fitting(message.evidence, left))
    return [{"role": message.role, "content": text} for message, text in zip(spoken, texts, strict=True)]


def tool_json(tool: Tool) -> Mapping[str, Any]:
    """Return a tool as Chat Completions describes it."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        },
    }


def tools_as_text(tools: Sequence[Tool]) -> str:
    """Describe the tools in words, for a server that takes none."""
    lines = [
        json.dumps({"name": t.name, "description": t.description, "arguments": t.parameters}) for t in tools
    ]
    return "\n".join([prompts.TOOLS_AS_TEXT, *lines])


def _calls(messages: Sequence[Message]) -> list[str]:
    lines: list[str] = []
    made: dict[str, ToolCall] = {}
    for message in messages:
        if message.calls:
            # Ids are unique within a turn, not across turns.
            made = {call.id: call for call in message.calls}
        elif message.role == "tool" and message.call_id in made:
            call = made[message.call_id]
            lines.append(clean(f"- {call.name} {call.arguments[:400]}: {message.text}".replace("\n", " ")))
    return lines


def _text(message: Message, done: str, appendix: str, evidence: Sequence[str]) -> str:
    if message.role == "system":
        return f"{message.text}\n\n{appendix}" if appendix else message.text
    if message.names is None:
        return clean(message.text)
    parts = []
    if message.now is not None:
        now = message.now
        parts.append(
            prompts.CLOCK.format(
                weekday=f"{now:%A}", day=format_date(now.date()), time=f"{now:%H:%M}", zone=now.tzinfo
            )
        )
    values = {**message.names.vocabulary, "status": message.names.status}
    known = [f"- {name}: {', '.join(options)}" for name, options in values.items() if options]
    if known:
        parts.append(clean("\n".join([prompts.NAMES, *known])))
    parts.append("\n\n".join([prompts.EVIDENCE, *evidence]) if evidence else prompts.NO_EVIDENCE)
    if done:
        parts.append(f"{prompts.CALLS}\n{done}")
    parts.append(prompts.QUESTION.format(text=clean(message.text)))
    return "\n\n".join(parts)


def _fitting(evidence: Sequence[EvidenceItem], room: int) -> list[str]:
    """Write the evidence out in its order until the room is used up; no item takes more than a third of it."""
    blocks: list[str] = []
    most = room // 3
    for item in evidence:
        block = _block(item)
        if estimate(block) > most:
            block = block.encode()[: 3 * most].decode("utf-8", "ignore").rpartition("\n")[0]
        room -= estimate(block) + 2
        if room < 0 or not block:
            break
        blocks.append(block)
    return blocks


def _block(item: EvidenceItem) -> str:
    """Write one item: its number and place, then its text with a mark before each line that no text can take away."""
    place = " > ".join(part for part in (item.title, item.section) if part)
    head = f"[{item.n}] " + " ".join(clean(f"{place} ({item.source})").split())
    return "\n".join([head, *(f"> {line}" for line in clean(item.text).splitlines() if line.strip())])
