"""`twohop index`: runs, what they would do, how they went, and the way back; and `twohop tickets import`."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
from typer.core import TyperGroup

from bot.cli.common import Config, loading, opened, out, store_of
from bot.config import Settings, load
from ingest.errors import IndexingError, TicketImportError, TwohopError

if TYPE_CHECKING:
    from bot.indexing import Order
    from bot.store import Store
    from ingest.index import GenerationInfo
    from ingest.runs import Kind, Pulse, Run, Runs
    from ingest.sources.roots import Root

tickets_app = typer.Typer(no_args_is_help=True, help="Import tickets.")


class _PathsOrCommand(TyperGroup):
    """Takes `index PATH…` beside `index status`: without the name of a command it is `index run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])


index_app = typer.Typer(cls=_PathsOrCommand, no_args_is_help=False, help="Keep the index up to date.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@index_app.command("run")
def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders or files of Markdown, text or HTML.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build a new index beside the live one, then swap.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be done and what it costs; do nothing.")
    ] = False,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Read only this source, by its name.")
    ] = None,
    forget: Annotated[
        list[Path] | None, typer.Option("--forget", help="Take an indexed folder out of the index.")
    ] = None,
    allow_removal: Annotated[
        bool,
        typer.Option(
            "--allow-removal",
            help="Let a folder lose most of its documents at once, and a ticket file its tickets.",
        ),
    ] = False,
    as_json: AsJson = False,
    started: Annotated[str, typer.Option("--run", hidden=True, help="Id of the run that this is.")] = "",
    config: Config = None,
) -> None:
    """Bring the index up to date: only what changed is read, cut and embedded.

    A folder that is named joins those that are indexed already; without one, all of them are read again.
    `twohop index status`, `history`, `cancel` and `rollback` tell of runs, stop one, and swap back.
    """
    from bot.app import indexed_roots, source_names
    from bot.indexing import Order, carry_out

    settings = load(config)
    order = Order(tuple(paths or ()), tuple(source or ()), tuple(forget or ()), rebuild, allow_removal)
    _refuse_words(order.named)
    roots = indexed_roots(settings, order.named)
    if not roots and not settings.tickets.csv and not settings.tickets_database_url and not forget:
        raise TwohopError(
            "nothing to index; name a folder (twohop index PATH…) or set sources.paths in twohop.toml"
        )
    if order.only and (order.named or rebuild):
        raise TwohopError("--source goes with neither paths nor --rebuild, which reads every source")
    if unknown := [name for name in order.only if name not in source_names(settings)]:
        raise TwohopError(f"--source {unknown[0]!r}: the sources are {', '.join(source_names(settings))}")
    if rebuild and not allow_removal:
        _refuse_to_lose(roots)
    loading()
    if dry_run:
        _preview(settings, order, as_json)
        return
    with _running(settings, "rebuild" if rebuild else "sync", order.only, started) as (runs, pulse):
        with opened(settings, for_rebuild=rebuild, may_be_away=["tickets"]) as desk:
            outcome = carry_out(desk, order, pulse, runs.history())
        pulse.finish(outcome.as_json(), outcome.failed)
    if as_json:
        # One line of ASCII, whatever the reader's encoding is.
        sys.stdout.write(json.dumps(outcome.as_json()) + "\n")
    else:
        for line in outcome.lines():
            out.print(line, markup=False)
    if outcome.failed:
        raise typer.Exit(1)


@index_app.command()
def status(as_json: AsJson = False, config: Config = None) -> None:
    """Tell what runs now and how far it is, the last success, and the generations of the index."""
    from bot.app import generations

    settings = load(config)
    with closing(store_of(settings)) as store:
        runs = _runs(settings, store)
        running, success, latest = runs.running(), runs.succeeded(), runs.latest()
        fresh = runs.freshness()
        signs = _signs(runs, running) if running else ""
    kept: Sequence[GenerationInfo] = ()
    unlisted = ""
    try:
        kept = generations(settings)
    except IndexingError as error:
        # The runs are in our own database, which tells of them all the same.
        unlisted = str(error)
    if as_json:
        named = {"running": running, "succeeded": success, "latest": latest}
        shown = {
            **{name: run and run.model_dump(mode="json") for name, run in named.items()},
            "read_at": fresh.read_at,
            "rolled_back": fresh.rolled_back,
            "generations": [
                {"name": one.name, "created_at": one.created_at.isoformat(), "live": one.live} for one in kept
            ],
            "unlisted": unlisted,
        }
        sys.stdout.write(json.dumps(shown) + "\n")
        raise typer.Exit(2 if unlisted else 0)
    if running:
        out.print(f"running   {_line(settings, running)}", markup=False)
        out.print(f"          {running.stage}: {running.done} documents, {running.uri}", markup=False)
        out.print(f"          {signs}", markup=False)
    else:
        out.print("running   nothing")
    if latest and not running:
        out.print(f"latest    {_line(settings, latest)}", markup=False)
    out.print(f"success   {_line(settings, success) if success else 'none yet'}", markup=False)
    if fresh.rolled_back:
        of = f"that of {_at(settings, fresh.read_at)}" if fresh.read_at else "an earlier one"
        out.print(f"index     rolled back to {of}; the next run brings it up to date", markup=False)
    for one in kept:
        out.print(
            f"{'live' if one.live else 'kept':9} {one.name} of {_at(settings, one.created_at.timestamp())}",
            markup=False,
        )
    if unlisted:
        out.print(f"generations cannot be listed: {unlisted}", markup=False)
        raise typer.Exit(2)


@index_app.command()
def history(
    most: Annotated[int, typer.Option("--most", min=1, help="Most runs to list.")] = 20,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """List the latest runs, newest first: when, what, why and by whom, how it ended, counts and errors."""
    settings = load(config)
    with closing(store_of(settings)) as store:
        listed = _runs(settings, store).history(most)
    if as_json:
        sys.stdout.write(json.dumps([run.model_dump(mode="json") for run in listed]) + "\n")
        return
    for run in listed:
        out.print(_line(settings, run), markup=False)
    if not listed:
        out.print("no index run so far")


@index_app.command()
def cancel(config: Config = None) -> None:
    """Stop the run under way at its next document; what was indexed before goes on answering."""
    settings = load(config)
    with closing(store_of(settings)) as store:
        run = _runs(settings, store).cancel("the command line")
    if run is None:
        raise TwohopError("no index run is under way; `twohop index history` lists the past ones")
    out.print(f"run {run.id} is asked to stop; `twohop index status` tells when it has", markup=False)


@index_app.command()
def rollback(config: Config = None) -> None:
    """Make the generation before the live one live again; the next run brings it up to date."""
    settings = load(config)
    loading()
    with _running(settings, "rollback") as (runs, pulse):
        with opened(settings, for_rebuild=True) as desk:
            before = next((one.name for one in desk.index.generations() if one.live), "")
            info = desk.index.rollback()
        read_at = runs.read_at(info.created_at)
        pulse.finish({"generation": info.name, "from": before, "read_at": read_at}, ())
    out.print(
        f"{info.name} of {_at(settings, read_at)} answers now; `twohop index` brings it up to date"
        + (f" and removes {before}" if before else ""),
        markup=False,
    )


@tickets_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.")],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Remove the tickets that this file brought before and has no more."),
    ] = False,
    allow_removal: Annotated[
        bool, typer.Option("--allow-removal", help="With --replace, even where they are most of its tickets.")
    ] = False,
    config: Config = None,
) -> None:
    """Import tickets from a CSV file; bad rows are named and the rest is imported."""
    settings = load(config)
    # Before anything is made: a name that is wrong leaves no empty index behind.
    if not file.is_file():
        raise TicketImportError(f"{str(file)!r} cannot be read: there is no such file; check the name")
    loading()
    with opened(settings) as desk:
        imported = desk.import_tickets(file, replace=replace, allow_removal=allow_removal)
        out.print(imported.summary(), markup=False)
        out.print(desk.sync_tickets().summary(), markup=False)
    if imported.failed:
        raise typer.Exit(1)


def _refuse_words(paths: Sequence[Path]) -> None:
    for path in paths:
        if str(path) in ("status", "history", "cancel", "rollback") and not path.exists():
            raise TwohopError(
                f"{str(path)!r} is a command, not a folder: write `twohop index {path}` and nothing before it"
            )


def _refuse_to_lose(roots: Sequence[Root]) -> None:
    """Refuse to start the index anew while a folder is not there: what was read from it would be lost."""
    for root in roots:
        if not root.path.exists() or (root.path.is_dir() and not any(root.path.iterdir())):
            raise TwohopError(
                f"{str(root.path)!r} is missing or empty, so the index is not started anew; mount it, or take it out "
                f"of the index (--forget, or sources.paths), or add --allow-removal"
            )


def _runs(settings: Settings, store: Store) -> Runs:
    from ingest.runs import Runs

    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
    return Runs(store.engine, owner, settings.sync.lease_seconds)


@contextmanager
def _running(
    settings: Settings, kind: Kind, only: Sequence[str] = (), started: str = ""
) -> Iterator[tuple[Runs, Pulse]]:
    """Take the lease, or the run that was started for us, and keep it; SIGTERM ends the run at its next document."""
    from ingest.runs import Pulse

    with closing(store_of(settings)) as store:
        runs = _runs(settings, store)
        run = runs.get(started) if started else runs.start(kind, why="command", sources=only)
        if run is None:
            since = runs.running()
            raise TwohopError(
                f"an index run is under way{f' since {_at(settings, since.started_at)}' if since else ''}; "
                f"wait for its end (twohop index status), or stop it (twohop index cancel)"
                f"{f'; {_signs(runs, since)}' if since else ''}"
            )
        with Pulse(runs, run, deadline_seconds=settings.sync.deadline_minutes * 60) as pulse:
            before = signal.signal(signal.SIGTERM, lambda *_: pulse.stop("it was asked to end"))
            try:
                yield runs, pulse
            finally:
                signal.signal(signal.SIGTERM, before)


def _preview(settings: Settings, order: Order, as_json: bool) -> None:
    """Print what a run would do, and what it would cost by a measured rate."""
    from bot.app import indexed_roots
    from bot.indexing import Outcome, rate

    with closing(store_of(settings)) as store:
        history = _runs(settings, store).history()
    with opened(settings, for_rebuild=order.rebuild, may_be_away=["tickets"]) as desk:
        reports = desk.preview(order.named, only=order.only, rebuild=order.rebuild)
        outcome = Outcome(reports, roots=indexed_roots(settings, order.named))
        speed = rate(history, desk.embedder) if outcome.chunks else 0.0
    seconds = outcome.chunks / speed if speed else 0.0
    if as_json:
        named = {
            name: [uri for report in reports for uri in getattr(report, name)]
            for name in ("added", "changed", "removed")
        }
        cost = {"chunks": outcome.chunks, "seconds": round(seconds, 1)}
        shown = {**outcome.as_json(), "dry_run": True, "documents": named, "cost": cost}
        sys.stdout.write(json.dumps(shown) + "\n")
        return
    for report in reports:
        for line in report.lines():
            out.print(line, markup=False)
    out.print(
        f"nothing was done; a run would embed {outcome.chunks} chunks"
        + (
            f" in about {math.ceil(seconds)} s ({speed:{'.0f' if speed >= 10 else '.2g'}} a second)"
            if speed
            else ""
        )
        + ("; ticket files are not read in a dry run" if settings.tickets.csv else "")
        + (
            "; before the swap the golden questions are asked"
            if order.rebuild and settings.sync.golden
            else ""
        ),
        markup=False,
    )


def _signs(runs: Runs, run: Run) -> str:
    ago, left = runs.signs(run)
    return (
        f"its last sign of life is {ago:.0f} s old; if its process is gone, a run may start in {left:.0f} s"
    )


def _at(settings: Settings, seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, ZoneInfo(settings.calendar.zone)):%Y-%m-%d %H:%M:%S}"


def _line(settings: Settings, run: Run) -> str:
    counts = [
        f"{run.report[name]} {name}"
        for name in ("added", "changed", "removed", "unchanged")
        if name in run.report
    ]
    parts = [
        f"{_at(settings, run.started_at)}  {run.id}  {run.kind} of {', '.join(run.sources) or 'everything'}",
        f"by {run.why}{f' ({run.who})' if run.who else ''}",
        f"{run.state}{f' after {run.seconds:.1f} s' if run.ended_at else ''}",
        ", ".join(counts),
        run.failure.partition("\n")[0],
    ]
    return "  ".join(part for part in parts if part)
