"""When sources are read by themselves: the plans that the settings name."""

from __future__ import annotations

from collections.abc import Collection
from datetime import tzinfo
from typing import TYPE_CHECKING

from bot.config import SyncSettings
from ingest.errors import ConfigError

if TYPE_CHECKING:
    from ingest.schedule import Plan


def plans_of(settings: SyncSettings) -> tuple[Plan, ...]:
    """Return the plans of sources that have one of their own, then that of all others."""
    if not settings.schedule and not settings.every_minutes:
        return ()
    from ingest.schedule import EVERYTHING, Plan

    own = tuple(Plan(name, when) for name, when in settings.schedule.items())
    return (*own, Plan(EVERYTHING, str(settings.every_minutes))) if settings.every_minutes else own


def check_plans(settings: SyncSettings, sources: Collection[str], zone: tzinfo) -> tuple[Plan, ...]:
    """Return when what is read; raises ConfigError for a time that is none, and for a source that is not there."""
    if unknown := sorted(settings.schedule.keys() - set(sources)):
        raise ConfigError(
            f"sync.schedule names {unknown[0]!r}; the sources are {', '.join(sources)}: name one of them"
        )
    if plans := plans_of(settings):
        from ingest.schedule import check

        check(plans, zone)
    return plans
