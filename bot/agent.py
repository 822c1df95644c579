"""The bounded loop: the model picks tools, code runs them, and every end has a reason and an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot import prompts
from bot.evidence import Evidence
from bot.tools import TOOLS, Toolbox
from bot.types import Budget, ChatModel, Message, Reply
from ingest.errors import ModelError


@dataclass(frozen=True, slots=True)
class Draft:
    """What the loop ends with: unchecked text, why it stopped, and the model's recorded outputs."""

    text: str
    stop: str
    replies: tuple[Reply, ...]


async def run(asked: Message, evidence: Evidence, model: ChatModel, tools: Toolbox, budget: Budget) -> Draft:
    """Let the model search until it answers or a limit is met, then ask once more without tools.

    The request is built anew each turn from the evidence pool, so that it is bounded; `asked` is the user's message.
    Raises ModelError.
    """
    replies: list[Reply] = []
    transcript: list[Message] = []
    stalled = 0
    while True:
        stop = budget.exhausted()
        if stop:
            break
        budget.turns += 1
        user = _with(asked, evidence)
        reply = await _ask(
            model, [Message("system", prompts.AGENT), user, *transcript[-6:]], budget, tools=True
        )
        replies.append(reply)
        if not reply.calls:
            if reply.text.strip() and reply.finish == "stop":
                return Draft(reply.text, "answered", tuple(replies))
            stop = "the model had nothing to add"
            break
        gained, repeats = tools.gained, tools.repeats
        results = await asyncio.gather(*(tools.call(call) for call in reply.calls[:8]))
        transcript.append(Message("assistant", reply.text, calls=reply.calls))
        transcript += [
            Message("tool", result.error or result.text, call_id=call.id)
            for call, result in zip(reply.calls, results, strict=False)
        ]
        transcript += [
            Message("tool", "not run: too many calls at once", call_id=call.id) for call in reply.calls[8:]
        ]
        if tools.gained == gained:
            stalled += 1
            if stalled == 2:
                stop = "repeated searches" if tools.repeats > repeats else "no new evidence"
                break
        else:
            stalled = 0
    last = await final(_with(asked, evidence), model, budget)
    return Draft(last.text, stop, (*replies, last))


async def final(user: Message, model: ChatModel, budget: Budget) -> Reply:
    """Ask for the answer in a fresh request, built from the evidence, with no tools in it."""
    reply = await _ask(model, [Message("system", prompts.ANSWER), user], budget, tools=False)
    # A call where no tool was offered is no text either: some servers answer one all the same.
    return Reply("", (), reply.usage, reply.finish) if reply.calls or reply.finish == "length" else reply


async def repair(
    draft: str, problems: Sequence[str], user: Message, model: ChatModel, budget: Budget
) -> Reply:
    """Ask once more, naming what was wrong with the draft."""
    told = prompts.REPAIR.format(problems="; ".join(problems[:6]))
    messages = [Message("system", prompts.ANSWER), user, Message("assistant", draft), Message("user", told)]
    reply = await _ask(model, messages, budget, tools=False)
    return Reply("", (), reply.usage, reply.finish) if reply.calls or reply.finish == "length" else reply


def _with(user: Message, evidence: Evidence) -> Message:
    return replace(user, evidence=evidence.shown)


async def _ask(model: ChatModel, messages: Sequence[Message], budget: Budget, *, tools: bool) -> Reply:
    left = max(0.05, budget.deadline - asyncio.get_running_loop().time())
    try:
        async with asyncio.timeout(left):
            reply = await model.complete(messages, tools=TOOLS if tools else (), budget=budget)
    except TimeoutError as error:
        raise ModelError(f"the model {model.name!r} did not answer in time") from error
    budget.add(reply.usage)
    return reply
