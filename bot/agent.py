"""The bounded loop: the model picks tools, code runs them, and every end has a reason and an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot import prompts
from bot.evidence import Evidence
from bot.tools import TOOLS, Toolbox
from bot.types import Budget, ChatModel, Message, Reply, ToolCall
from ingest.errors import ModelError

MOST_CALLS = 8
"""Calls of one reply that are run."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the loop ends with: unchecked text, why it stopped, and the model's recorded outputs."""

    text: str
    stop: str
    replies: tuple[Reply, ...]
    error: ModelError | None = None
    """Why the model could not go on."""


_UNREAD = [
    Message("assistant", "", calls=(ToolCall("unread", "your last message", ""),)),
    Message("tool", prompts.UNREAD, call_id="unread"),
]

_QUOTING_SECONDS = 10.0


async def run(asked: Message, evidence: Evidence, model: ChatModel, tools: Toolbox, budget: Budget) -> Draft:
    """Let the model search until it answers or a limit is met, then ask once more without tools.

    The request is built anew each turn from the evidence pool, so that it is bounded; `asked` is the user's message.
    """
    replies: list[Reply] = []
    past: list[list[Message]] = []
    stalled = 0
    try:
        while True:
            # This turn and the last call cost about what the turn before did.
            stop = budget.exhausted(keep=2 * _cost(replies[-1]) if replies else 0)
            if stop:
                break
            budget.turns += 1
            told = [message for exchange in past[-3:] for message in exchange]
            messages = [Message("system", prompts.AGENT), _with(asked, evidence), *told]
            reply = await _ask(model, messages, budget, tools=True)
            replies.append(reply)
            if reply.text.strip() and not reply.calls and reply.finish == "stop":
                return Draft(reply.text, "answered", tuple(replies))
            gained, repeats = tools.gained, tools.repeats
            if reply.calls:
                past.append(await _called(reply, tools))
            elif reply.finish == "length" or not reply.left_out:
                stop = "the model had nothing to add"
                break
            else:
                past.append(_UNREAD)
            if tools.gained > gained:
                stalled = 0
                continue
            stalled += 1
            if stalled == 2:
                stop = "repeated searches" if tools.repeats > repeats else "no new evidence"
                break
        replies.append(await final(_with(asked, evidence), model, budget))
    except ModelError as error:
        return Draft("", "the model could not be used", tuple(replies), error)
    return Draft(replies[-1].text, stop, tuple(replies))


async def _called(reply: Reply, tools: Toolbox) -> list[Message]:
    """Run a reply's calls and return the whole exchange: every call is answered, also those that are not run."""
    results = await asyncio.gather(*(tools.call(call) for call in reply.calls[:MOST_CALLS]))
    answers = [result.error or result.text for result in results]
    answers += ["not run: too many calls at once"] * (len(reply.calls) - len(results))
    return [
        Message("assistant", reply.text, calls=reply.calls),
        *(Message("tool", text, call_id=call.id) for call, text in zip(reply.calls, answers, strict=True)),
    ]


def _cost(reply: Reply) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens


async def final(user: Message, model: ChatModel, budget: Budget) -> Reply:
    """Ask for the answer in a fresh request, built from the evidence, with no tools in it."""
    reply = await _ask(model, [Message("system", prompts.ANSWER), user], budget, tools=False)
    return _as_text(reply)


async def quoted(user: Message, fallback: ChatModel, budget: Budget) -> Reply:
    """Ask the model that needs no network, after another one failed or was not believed.

    The other one may have used up the question's time; this one has a little of its own, or nobody would be answered.
    """
    until = max(budget.deadline, time.monotonic() + _QUOTING_SECONDS)
    reply = await _ask(fallback, [Message("system", prompts.ANSWER), user], budget, tools=False, until=until)
    return _as_text(reply)


async def repair(
    draft: str, problems: Sequence[str], user: Message, model: ChatModel, budget: Budget
) -> Reply:
    """Ask once more, naming what was wrong with the draft."""
    told = prompts.REPAIR.format(problems="; ".join(problems[:6]))
    messages = [Message("system", prompts.ANSWER), user, Message("assistant", draft), Message("user", told)]
    reply = await _ask(model, messages, budget, tools=False)
    return _as_text(reply)


def _as_text(reply: Reply) -> Reply:
    """Return a reply as an answer: truncated text is none, nor is a call, which some servers make though no tool is offered."""
    if reply.calls or reply.finish == "length":
        return replace(reply, text="", calls=(), left_out=reply.left_out or reply.text)
    return reply


def _with(user: Message, evidence: Evidence) -> Message:
    return replace(user, evidence=evidence.shown)


async def _ask(
    model: ChatModel,
    messages: Sequence[Message],
    budget: Budget,
    *,
    tools: bool,
    until: float | None = None,
) -> Reply:
    left = max(0.05, (until or budget.model_deadline) - time.monotonic())
    try:
        async with asyncio.timeout(left):
            reply = await model.complete(messages, tools=TOOLS if tools else (), budget=budget)
    except TimeoutError as error:
        raise ModelError(
            f"the model {model.name!r} did not answer in time",
            plainly="the language model did not answer in time",
        ) from error
    budget.add(reply.usage)
    return reply
