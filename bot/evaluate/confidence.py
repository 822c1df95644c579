"""How sure an answer may be of itself."""

from __future__ import annotations

from bot.types import Answer
from ingest.words import stems


def confidence(answer: Answer) -> float:
    """Return an order of answers, from 0 to 1, for the risk-coverage curve; it is no probability.

    It takes only what an answer carries: who decided (code, by a rule or a row, is worth 0.5, a counted table 0.3, a
    quotation nothing), whether it is whole (0.2, `partial` is not), and which share of the question's content words
    the quoted sources hold (up to 0.3).
    """
    decided = answer.verdict is not None and answer.verdict.decision != "undecided"
    counted = any(item.kind == "table" for item in answer.used)
    asked = set(stems(answer.standalone))
    quoted = {stem for citation in answer.citations for stem in stems(citation.quote)}
    shared = len(asked & quoted) / len(asked) if asked else 0.0
    return round(
        (0.5 if decided else 0.3 if counted else 0.0) + 0.2 * (answer.shape == "answered") + 0.3 * shared, 4
    )
