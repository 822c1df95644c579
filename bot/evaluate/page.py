"""The page: one self-contained HTML file with plots, tables and what was not right."""

from __future__ import annotations

from bot.evaluate.record import Run


def render(run: Run) -> str:
    """Return the page."""
    return str(run.seed)
