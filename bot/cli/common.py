"""What every command shares: its consoles, its settings, and the desk opened over them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from bot.config import Settings, load, unused
from bot.sample import demo_settings
from ingest.errors import IdentityMismatch, TwohopError
from ingest.types import Where

if TYPE_CHECKING:
    from bot.app import Desk, MayBeAway
    from bot.store import Store

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Config = Annotated[Path | None, typer.Option("--config", envvar="TWOHOP_CONFIG", help="Settings file.")]


def settings_for(config: Path | None) -> tuple[Settings, bool]:
    """Return the settings, and whether they are over the sample company because there is nothing else to answer from.

    The sample is used only where no source and no ticket file is named and nothing was indexed here; what else is set,
    such as who is in support or the language model, holds for it too.
    """
    settings = load(config)
    own = settings.sources.paths or settings.tickets.csv or settings.tickets.facets
    if own or settings.index == "elastic" or embedded(settings).is_file() or settings.tickets_database_url:
        return settings, False
    return demo_settings(settings), True


def embedded(settings: Settings) -> Path:
    """Return the file that is there when something was indexed into files."""
    return settings.data / "index" / "current"


@contextmanager
def opened(
    settings: Settings,
    *,
    rebuild: bool = False,
    for_rebuild: bool = False,
    may_be_away: Collection[MayBeAway] = (),
) -> Iterator[Desk]:
    """Open the desk, saying what is set and changes nothing.

    With `rebuild` an index of another identity is rebuilt first; with `for_rebuild` nobody looks at it. What
    `may_be_away` and does not answer is said, and the rest is opened.
    """
    from bot.app import build

    for line in unused(settings):
        err.print(f"note: {line}", style="dim", markup=False)
    try:
        desk = build(settings, for_rebuild=for_rebuild, may_be_away=may_be_away)
    except IdentityMismatch:
        if not rebuild:
            raise
        desk = build(settings, for_rebuild=True)
        desk.rebuild()
    for line in desk.away:
        err.print(f"note: {line}", markup=False)
    log = logging.getLogger("bot")
    level = log.level
    if desk.away and not logging.getLogger().handlers:
        # A command without a log of its own has just said it; each search would say it again.
        log.setLevel(logging.ERROR)
    try:
        yield desk
    finally:
        log.setLevel(level)
        desk.close()


def store_of(settings: Settings) -> Store:
    """Open the turns that were answered; the caller closes it."""
    from bot.store import Store

    return Store(settings.database_url or f"sqlite:///{settings.data / 'state.db'}")


def prepare(desk: Desk) -> None:
    """Index what is configured, saying what was done; quiet where nothing changed."""
    for path in desk.settings.tickets.csv:
        imported = desk.import_tickets(path, anew=False)
        if imported.added or imported.changed or imported.skipped:
            err.print(imported.summary(), markup=False)
    for report in (*desk.sync_documents(allow_removal=True), desk.sync_tickets()):
        if report.added or report.changed or report.removed or report.skipped:
            err.print(report.summary(), markup=False)


def refuse_empty(desk: Desk) -> None:
    """Refuse to search where nothing was ever read: "not found" would be no answer but a misunderstanding."""
    if desk.away:
        # Nobody can tell what is indexed.
        return
    everyone = Where(readers=desk.everyone())
    if not desk.index.documents(everyone) and desk.tickets.as_of() is None:
        how = "twohop index" if desk.settings.sources.paths else "twohop index PATH…"
        run = desk.unread.under_way()
        where = ""
        if desk.settings.index == "elastic":
            where = f" in Elasticsearch under the prefix {desk.settings.elasticsearch.prefix!r}"
        raise TwohopError(
            f"nothing is indexed yet{where}; {f'wait for the end of the {run}' if run else f'run `{how}`'}"
        )


def loading() -> None:
    """Say at once that something is happening: importing the model takes seconds."""
    err.print("loading the embedding model …", style="dim")


def version() -> str:
    """Return the installed version."""
    try:
        return metadata.version("twohop")
    except metadata.PackageNotFoundError:
        return "(not installed)"
