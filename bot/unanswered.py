"""What is said where there is no answer: why, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_QUERY = 80
"""Characters of a query that are shown."""


def sentence(clause: str) -> str:
    """Return a clause as a sentence; an empty one stays empty."""
    return f"{clause[0].upper()}{clause[1:]}." if clause else ""


def not_found(searched: Sequence[str], gaps: Sequence[str], stopped: str, contact: str) -> str:
    """Tell what is missing, or the limit that the question stopped at, and what was searched for."""
    if gaps:
        said = sentence("; ".join(gaps))
    elif stopped:
        said = f"I stopped before I had an answer, at the {stopped}; it may be in the sources all the same."
    else:
        said = "I could not find that in the sources I can read."
    queries = ", ".join(dict.fromkeys(f"“{_shortened(query)}”" for query in searched))
    where = f" I searched the documents for {queries}." if queries else ""
    return f"{said}{where} Please ask {contact}."


def _shortened(query: str) -> str:
    return query if len(query) <= _LONGEST_QUERY else f"{query[: _LONGEST_QUERY - 1]}…"


def unavailable(lack: str, contact: str) -> str:
    """Tell what did not answer, and that what was asked may be in the sources all the same."""
    return (
        f"{lack}, so that I cannot answer this now; it may be in the sources all the same. "
        f"Please ask again in a few minutes, or ask {contact}."
    )


def not_yet(unread: str, gaps: Sequence[str], contact: str) -> str:
    """Tell that what was not found may be in what was not read yet."""
    why = sentence(f"{unread}, so that I cannot answer this now; it may be in them all the same")
    said = " ".join(part for part in (sentence("; ".join(gaps)), why) if part)
    return f"{said} Please ask again when they have been, or ask {contact}."
