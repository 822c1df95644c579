"""What is posted: the messages of an answer, the short lines, the replies to the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bot.slack import text as texts
from bot.store import Refusal
from bot.types import Answer

MOST = 10_000
"""Characters of one message; Slack refuses some messages from about 11,000 on, over all their blocks."""
_ELEMENT = 2_900
"""Characters of one context element; Slack takes 3,000."""

HELP = (
    "Ask me about the documents or the tickets. Mention me in a channel, or write to me in a direct message; "
    "tickets are answered in direct messages only. Reply in the thread to ask on."
)
NO_FILES = "I cannot read files. Please paste what you would like me to read as text, with your question."
FILES_UNREAD = "I cannot read attachments; this answers your text alone."
STOPPED = "Stopped."
TICKETS_IN_DM = "I answer questions about tickets in a direct message only: please ask me there."
NOT_POSTED = (
    "Slack does not let me post in <#{channel}> ({why}), so your question there has no answer. "
    "Please invite me to the channel, or ask me here."
)
REFUSALS: dict[Refusal, str] = {
    "external": "I answer members of this workspace only, so I cannot answer you here.",
    "guest": "I answer full members of this workspace only, not guests. Please ask the person who invited you.",
    "bot": "I answer people only, not bots.",
    "unknown": (
        "Slack could not tell me who you are, so I cannot answer you. Please ask again in a few minutes; "
        "if this goes on, tell whoever runs this bot."
    ),
    "nobody": "I answer people only: this message names nobody as its author.",
    "shared": "Other organisations read along in this channel, so I do not answer here. Please ask me in a direct message.",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One message to be posted."""

    text: str
    """The whole message in Slack's own format, for notifications and where blocks are refused."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    ephemeral: bool = False
    """Seen by the asker alone."""

    def kept(self) -> dict[str, Any]:
        """Return it as the inbox keeps it; `Part(**kept)` is its inverse."""
        return asdict(self)


def refused(refusal: Refusal, *, ephemeral: bool = False) -> tuple[Part, ...]:
    """Return a refusal's reason; nothing is sent to an account that is deactivated."""
    return line(REFUSALS[refusal], ephemeral=ephemeral) if refusal in REFUSALS else ()


def line(text: str, *, ephemeral: bool = False) -> tuple[Part, ...]:
    """Return one short message."""
    return (Part(texts.escaped(text), ephemeral=ephemeral),)


def sorry(reference: str) -> tuple[Part, ...]:
    """Return what is said when something broke; the reference is in the log beside the error."""
    return line(
        f"Something went wrong on my side and I could not answer. Please ask again; reference {reference}."
    )


def answer(found: Answer, *notes: str) -> tuple[Part, ...]:
    """Return an answer's messages: its text, what is to be noted, and with the last one its numbered sources."""
    body = "\n\n".join([found.text.strip() or "I have no answer to that.", *notes])
    links = [citation.url for citation in found.citations]
    sources = texts.source_lines(found.citations)
    context = _context(sources)
    room = MOST - sum(len(element["text"]) for block in context for element in block["elements"])
    pieces = texts.split(texts.markdown(body, links), room)
    plains = texts.split(texts.plain(body, links), room)
    if len(plains) != len(pieces):
        # Cut at other places: each message's plain text is then made from its own piece.
        plains = tuple(texts.plain(piece, links) for piece in pieces)
    parts = [
        Part(plain, [{"type": "markdown", "text": piece}])
        for plain, piece in zip(plains, pieces, strict=True)
    ]
    if context:
        last = parts[-1]
        parts[-1] = Part("\n".join([last.text, "", "Sources", *sources]), [*last.blocks, *context])
    return tuple(parts)


def _context(sources: Sequence[str]) -> list[dict[str, Any]]:
    """Return the sources as context lines; what does not fit into one block is named by number in the text only."""
    elements: list[str] = []
    for source in ["*Sources*", *sources] if sources else []:
        if elements and len(elements[-1]) + 1 + len(source) <= _ELEMENT:
            elements[-1] += f"\n{source}"
        else:
            elements.append(source)
    made = [{"type": "mrkdwn", "text": text, "verbatim": True} for text in elements[:10]]
    return [{"type": "context", "elements": made}] if made else []
