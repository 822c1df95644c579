"""The sample company: where its documents, tickets and questions are, and its settings."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from bot.config import Settings, load


def sample() -> Path:
    """Return the folder of the sample company inside the package."""
    return Path(str(resources.files("bot") / "demo"))


def demo_settings(settings: Settings) -> Settings:
    """Return the sample company's settings, with its data beside the user's own and never in a cluster."""
    ours = load(sample() / "twohop.toml")
    kept = settings.model_fields_set & {
        "access",
        "slack",
        "model",
        "chat",
        "limits",
        "sync",
        "words",
        "retrieval",
        "health",
        "log",
    }
    sources = ours.sources.model_copy(update={"paths": (sample() / "docs",)})
    tickets = ours.tickets.model_copy(update={"csv": (sample() / "tickets.csv",)})
    return ours.model_copy(
        update={
            **{name: getattr(settings, name) for name in kept},
            "index": "sqlite",
            "data": settings.data / "demo",
            "company": "Albarán",
            "sources": sources,
            "tickets": tickets,
        }
    )
