"""A ChatModel that plays a script and fails when it is called too often or too seldom."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.types import Budget, Message, Reply, Tool, ToolCall, Usage

Line = Reply | Callable[[Sequence[Message]], Reply]


class ScriptedModel:
    """Plays its replies in order; with `forever` the last one is repeated. Every request is kept."""

    name = "scripted"
    note = ""

    def __init__(self, *script: Line, forever: bool = False) -> None:
        self.script = list(script)
        self.forever = forever
        self.requests: list[tuple[tuple[Message, ...], tuple[Tool, ...]]] = []

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        budget: Budget,
    ) -> Reply:
        """Play the next line of the script."""
        assert not (tools and schema), "tools and schema are never given together"
        self.requests.append((tuple(messages), tuple(tools)))
        assert self.script, f"called too often: {len(self.requests)} times"
        line = self.script[0] if self.forever and len(self.script) == 1 else self.script.pop(0)
        return line(messages) if callable(line) else line

    def done(self) -> None:
        """Fail when the script was not played to its end."""
        assert self.forever or not self.script, f"called too seldom: {len(self.script)} lines left"

    @property
    def prompts(self) -> str:
        """Everything that any prompt held."""
        return "\n".join(
            part
            for messages, _ in self.requests
            for message in messages
            for part in (message.text, *(f"{i.title}\n{i.section}\n{i.text}" for i in message.evidence))
        )


def says(text: str) -> Reply:
    """Return a final text."""
    return Reply(text, usage=Usage(calls=1, input_tokens=100, output_tokens=20))


def calls(*wanted: tuple[str, Any]) -> Reply:
    """Return tool calls; arguments that are text are sent as they are, malformed or not."""
    made = tuple(
        ToolCall(f"c{i}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for i, (name, arguments) in enumerate(wanted)
    )
    return Reply("", made, Usage(calls=1, input_tokens=100, output_tokens=20), "tool_calls")
