"""Answers to meta requests: greetings, what Twohop is and can read, what was asked in a thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bot import gate
from bot.parts import Parts
from bot.types import Answer, PastTurn, Question, Route
from bot.unanswered import sentence
from ingest.dates import format_date
from ingest.errors import IndexingError
from ingest.types import Where

_log = logging.getLogger(__name__)


async def reply(meta: gate.Meta, question: Question, parts: Parts) -> Answer:
    """Answer a meta request from what is known without a search."""
    company = f" at {parts.company}" if parts.company else ""
    route = Route("none", (f"meta request: {meta}",))
    text = ""
    match meta:
        case "greeting":
            text = f"Hello. Ask me about the documents or the tickets{company}, for example “How long is the refund window?”"
        case "thanks":
            text = "You are welcome."
        case "goodbye":
            text = "Goodbye."
        case "prompt":
            text = "I cannot do that. I answer questions from the documents and the tickets, with sources."
        case "about":
            text = (
                f"I am Twohop, the support-desk bot{company}. I answer from the documents and the tickets, with sources, best in "
                "English. I only read: I change nothing, and nothing that is asked teaches me anything; questions and answers are "
                f"kept, so that they can be traced. If an answer of mine looks wrong, look at its sources and tell {parts.words.contact}."
            )
        case "help":
            text = (
                f"Ask me about the documents or the tickets{company}: rules (“is the customer on ticket … entitled to …?”), "
                "look-ups, comparisons, counts, similar tickets. I cite what I use, and say so when I find nothing. "
                "“What do you know?” lists my sources; “summarise this thread” sums up what was asked here."
            )
        case "sources":
            text = await _sources(question, parts)
        case "summary":
            text = _summary(question.history)
    return Answer("chat", text, route, question.text, stop="no search needed")


async def _sources(question: Question, parts: Parts) -> str:
    where = Where(readers=question.asker.readers)
    try:
        documents = await parts.compute(lambda: parts.retriever.documents(where))
    except IndexingError as error:
        _log.warning("the documents could not be listed: %s", error)
        return f"I cannot list my sources now, because the index does not answer. Please ask again in a few minutes, or ask {parts.words.contact}."
    lines = [
        f"- {d.title} ({d.uri.partition(':')[2]}"
        + (f", in force from {format_date(d.effective_from)}" if d.effective_from else "")
        + (f", superseded on {format_date(d.superseded_on)}" if d.superseded_on else "")
        + f", read {format_date(d.indexed_at)})"
        for d in documents
    ]
    as_of = await parts.store(parts.tickets.as_of)
    if question.asker.readers & set(parts.tickets.settings.readers):
        if parts.tickets.settings.table:
            newest = f"; the newest change there is of {format_date(as_of)}" if as_of else ""
            lines.append(f"- the tickets, from their database as it is when you ask{newest}")
        elif as_of:
            lines.append(f"- the tickets, as of {format_date(as_of)}")
    told = "I can read:\n" + "\n".join(lines) if lines else "There is nothing that I can read for you yet."
    unread = await parts.store(parts.unread)
    return f"{told}\n\n{sentence(unread)}" if unread else told


def _summary(history: Sequence[PastTurn]) -> str:
    if not history:
        return "Nothing has been asked in this thread yet."
    lines = [f"- {turn.question} → {(turn.verdict or turn.text).splitlines()[0][:300]}" for turn in history]
    return "In this thread:\n" + "\n".join(lines)
