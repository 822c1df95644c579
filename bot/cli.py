"""The command line: demo, ask, serve, index, tickets, eval, trace, doctor."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from datetime import time as clock
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast, get_args
from zoneinfo import ZoneInfo

import typer
from pydantic_settings import SettingsError
from rich.console import Console
from sqlalchemy.exc import SQLAlchemyError
from typer.core import TyperGroup

from bot import logs
from bot.bench.command import bench_app
from bot.config import SECRETS, Settings, load, secret_values, unused
from bot.sample import demo_settings, sample
from bot.types import Mode, Step
from ingest.errors import IdentityMismatch, TicketImportError, TwohopError
from ingest.types import Where

if TYPE_CHECKING:
    from bot.app import Asked, Desk
    from bot.indexing import Order
    from bot.store import Store
    from ingest.runs import Kind, Pulse, Run, Runs
    from ingest.sources.roots import Root

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A support desk that reads twice.",
)
tickets_app = typer.Typer(no_args_is_help=True, help="Import tickets.")
app.add_typer(tickets_app, name="tickets")
app.add_typer(bench_app, name="bench")
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Config = Annotated[Path | None, typer.Option("--config", envvar="TWOHOP_CONFIG", help="Settings file.")]

TOUR = (
    ("How long after a charge can a customer ask for a refund?", False),
    ("What does error ERR_SSO-4032 mean?", False),
    ("How many tickets are open, by priority?", False),
    ("Is the customer on ticket 4812 entitled to a refund?", False),
    ("what about the one the same shop opened yesterday?", True),
)
"""The demo's questions, and whether each one follows the one before it."""
DEMO_NOW = "2026-09-26T10:00"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"twohop {_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; an error that a person can mend is one line, without a traceback."""
    try:
        app()
    except TwohopError as error:
        err.print(f"error: {error}", style="red", markup=False)
        sys.exit(2)
    except (OSError, SQLAlchemyError, SettingsError) as error:
        err.print(
            f"error: {' '.join(str(error).split())[:400]}; check the data folder and the settings",
            style="red",
            markup=False,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        # A bug: its traceback is kept for whoever mends it, and the asker gets a reference.
        reference = uuid.uuid4().hex[:8]
        log = Path(tempfile.gettempdir()) / f"twohop-{reference}.log"
        log.write_text(traceback.format_exc(), encoding="utf-8")
        err.print(
            f"error: something is wrong in Twohop itself; reference {reference}, details in {log}",
            style="red",
            markup=False,
        )
        sys.exit(3)


def settings_for(config: Path | None) -> tuple[Settings, bool]:
    """Return the settings, and whether they are over the sample company because there is nothing else to answer from.

    The sample is used only where no source and no ticket file is named and nothing was indexed here; what else is set,
    such as who is in support or the language model, holds for it too.
    """
    settings = load(config)
    own = settings.sources.paths or settings.tickets.csv or settings.tickets.facets
    if own or settings.index == "elastic" or _embedded(settings).is_file() or settings.tickets_database_url:
        return settings, False
    return demo_settings(settings), True


def _embedded(settings: Settings) -> Path:
    """Return the file that is there when something was indexed into files."""
    return settings.data / "index" / "current"


@contextmanager
def opened(
    settings: Settings,
    *,
    rebuild: bool = False,
    for_rebuild: bool = False,
) -> Iterator[Desk]:
    """Open the desk, saying what is set and changes nothing.

    With `rebuild` an index of another identity is rebuilt first; with `for_rebuild` nobody looks at it.
    """
    from bot.app import build

    for line in unused(settings):
        err.print(f"note: {line}", style="dim", markup=False)
    try:
        desk = build(settings, for_rebuild=for_rebuild)
    except IdentityMismatch:
        if not rebuild:
            raise
        desk = build(settings, for_rebuild=True)
        desk.rebuild()
    try:
        yield desk
    finally:
        desk.close()


def _store(settings: Settings) -> Store:
    from bot.store import Store

    return Store(settings.database_url or f"sqlite:///{settings.data / 'state.db'}")


def _prepare(desk: Desk) -> None:
    """Index what is configured, saying what was done; quiet where nothing changed."""
    for path in desk.settings.tickets.csv:
        imported = desk.import_tickets(path)
        if imported.added or imported.changed or imported.skipped:
            err.print(imported.summary(), markup=False)
    for report in (*desk.sync_documents(allow_removal=True), desk.sync_tickets()):
        if report.added or report.changed or report.removed or report.skipped:
            err.print(report.summary(), markup=False)


def _refuse_empty(desk: Desk) -> None:
    """Refuse to search where nothing was ever read: "not found" would be no answer but a misunderstanding."""
    everyone = Where(readers=desk.everyone())
    if not desk.index.documents(everyone) and desk.tickets.as_of() is None:
        how = "twohop index" if desk.settings.sources.paths else "twohop index PATH…"
        raise TwohopError(f"nothing is indexed yet; run `{how}`")


def _now(text: str, zone: str) -> datetime:
    """Read a date or a date with a time on the desk's clock; a bare date means noon."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise TwohopError(f"--now {text!r} is no date; write 2026-09-26 or 2026-09-26T10:00") from error
    if len(text) <= 10:
        moment = datetime.combine(moment.date(), clock(12))
    return (
        moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))
    )


def _step(step: Step) -> None:
    found = ", ".join(step.found[:4]) + (" …" if len(step.found) > 4 else "") or step.error or "nothing"
    arguments = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
    why = f"  ({step.purpose})" if step.purpose else ""
    why += f"  (no answer from {', '.join(step.failed)})" if step.failed else ""
    out.print(
        f"  {step.by}: {step.tool}({arguments}) → {found}  {step.ms} ms{why}", style="dim", markup=False
    )


def _show(asked: Asked) -> None:
    answer = asked.answer
    out.print(answer.text, markup=False)
    if answer.citations:
        out.print()
    for c in answer.citations:
        where = f"{c.title}{' > ' + c.section if c.section else ''}"
        out.print(f"  [{c.n}] {where}  ({c.source})", style="cyan", markup=False)
    out.print(
        f"  {answer.shape}; route {answer.route.path}: {'; '.join(answer.route.reasons)}; turn {asked.turn.id}; {asked.turn.ms} ms",
        style="dim",
        markup=False,
    )


def _loading() -> None:
    """Say at once that something is happening: importing the model takes seconds."""
    err.print("loading the embedding model …", style="dim")


@app.command()
def demo(config: Config = None) -> None:
    """Index the sample company and ask a tour of questions that ends with ticket 4812 and its follow-up."""
    began = time.monotonic()
    out.print(
        "Twohop: a tour on the sample company Albarán (invoicing software); the desk's clock is 26 September 2026."
    )
    _loading()
    with opened(demo_settings(load(config)), rebuild=True) as desk:
        _prepare(desk)
        now = _now(DEMO_NOW, desk.settings.calendar.zone)
        after = ""
        for i, (text, follows) in enumerate(TOUR, start=1):
            out.print(f"\n{i}. {text}", style="bold", markup=False)
            asked = desk.run(desk.answer(text, now=now, after=after if follows else "", observe=_step))
            _show(asked)
            after = asked.turn.id
            if i == 1:
                out.print(f"  first answer after {time.monotonic() - began:.1f} s", style="dim")
        if sys.stdin.isatty() and sys.stdout.isatty():
            _prompt(desk, now, after)


def _prompt(desk: Desk, now: datetime, after: str) -> None:
    out.print("\nAsk anything; an empty line ends.", style="bold")
    while True:
        try:
            text = out.input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not text:
            return
        try:
            asked = desk.run(desk.answer(text, now=now, after=after, observe=_step))
        except TwohopError as error:
            err.print(f"error: {error}", style="red", markup=False)
            continue
        _show(asked)
        after = asked.turn.id


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    mode: Annotated[Mode, typer.Option(help="naive and hybrid are baselines for comparison.")] = "gated",
    show_trace: Annotated[bool, typer.Option("--trace", help="Show the steps.")] = False,
    user: Annotated[str, typer.Option("--as", help="Ask with this user's rights.")] = "",
    now: Annotated[str, typer.Option(help="The desk's date or time, ISO.")] = "",
    after: Annotated[str, typer.Option(help="Turn id that this question follows.")] = "",
    config: Config = None,
) -> None:
    """Ask one question; on the sample company when nothing else is configured."""
    settings, is_sample = settings_for(config)
    moment = _now(now, settings.calendar.zone) if now else None
    if not question.strip():
        raise TwohopError("the question is empty; write it in quotes")
    if after:
        with closing(_store(settings)) as store:
            store.get(after)
    if is_sample:
        err.print(
            "nothing is configured: asking the sample company (twohop index PATH… takes your own folder)",
            style="dim",
        )
    _loading()
    with opened(settings, rebuild=is_sample) as desk:
        if is_sample:
            _prepare(desk)
        _refuse_empty(desk)
        observe: Callable[[Step], None] = _step if show_trace and not as_json else (lambda _: None)
        asked = desk.run(
            desk.answer(question, asker=desk.asker(user), now=moment, after=after, mode=mode, observe=observe)
        )
    if as_json:
        from bot.store import public

        shown = public(asked.answer, asked.turn.id, asked.turn.ms)
        sys.stdout.write(json.dumps(shown, ensure_ascii=False, indent=2, default=str) + "\n")
    else:
        _show(asked)


class _PathsOrCommand(TyperGroup):
    """Takes `index PATH…` beside `index status`: without the name of a command it is `index run`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["run", *args])


index_app = typer.Typer(cls=_PathsOrCommand, no_args_is_help=False, help="Keep the index up to date.")
app.add_typer(index_app, name="index")

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
        bool, typer.Option("--allow-removal", help="Let a folder lose most of its documents at once.")
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
    _loading()
    if dry_run:
        _preview(settings, order, as_json)
        return
    with _running(settings, "rebuild" if rebuild else "sync", order.only, started) as (runs, pulse):
        with opened(settings, for_rebuild=rebuild) as desk:
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


def _refuse_words(paths: Sequence[Path]) -> None:
    for path in paths:
        if str(path) in ("status", "history", "cancel", "rollback") and not path.exists():
            raise TwohopError(
                f"{str(path)!r} is a command, not a folder: write `twohop index {path}` and nothing before it"
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

    with closing(_store(settings)) as store:
        runs = _runs(settings, store)
        run = runs.get(started) if started else runs.start(kind, why="command", sources=only)
        if run is None:
            since = runs.running()
            raise TwohopError(
                f"an index run is under way{f' since {_at(settings, since.started_at)}' if since else ''}; "
                f"wait for its end (twohop index status), or stop it (twohop index cancel)"
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

    with closing(_store(settings)) as store:
        history = _runs(settings, store).history()
    with opened(settings, for_rebuild=order.rebuild) as desk:
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
        f"nothing was done; a run would embed {outcome.chunks} chunks in about {seconds:.0f} s"
        + (f" ({speed:.0f} a second)" if speed else "")
        + ("; ticket files are not read in a dry run" if settings.tickets.csv else "")
        + (
            "; before the swap the golden questions are asked"
            if order.rebuild and settings.sync.golden
            else ""
        ),
        markup=False,
    )


def _at(settings: Settings, seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, ZoneInfo(settings.calendar.zone)):%Y-%m-%d %H:%M:%S}"


@index_app.command()
def status(as_json: AsJson = False, config: Config = None) -> None:
    """Tell what runs now and how far it is, the last success, and the generations of the index."""
    from bot.app import generations

    settings = load(config)
    with closing(_store(settings)) as store:
        runs = _runs(settings, store)
        running, success, latest = runs.running(), runs.succeeded(), runs.latest()
    kept = generations(settings)
    if as_json:
        named = {"running": running, "succeeded": success, "latest": latest}
        shown = {
            **{name: run and run.model_dump(mode="json") for name, run in named.items()},
            "generations": [
                {"name": one.name, "created_at": one.created_at.isoformat(), "live": one.live} for one in kept
            ],
        }
        sys.stdout.write(json.dumps(shown) + "\n")
        return
    if running:
        out.print(f"running   {_line(settings, running)}", markup=False)
        out.print(f"          {running.stage}: {running.done} documents, {running.uri}", markup=False)
    else:
        out.print("running   nothing")
    if latest and not running:
        out.print(f"latest    {_line(settings, latest)}", markup=False)
    out.print(f"success   {_line(settings, success) if success else 'none yet'}", markup=False)
    for one in kept:
        out.print(
            f"{'live' if one.live else 'kept':9} {one.name} of {_at(settings, one.created_at.timestamp())}",
            markup=False,
        )


@index_app.command()
def history(
    most: Annotated[int, typer.Option("--most", min=1, help="Most runs to list.")] = 20,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """List the latest runs, newest first: when, what, why and by whom, how it ended, counts and errors."""
    settings = load(config)
    with closing(_store(settings)) as store:
        listed = _runs(settings, store).history(most)
    if as_json:
        sys.stdout.write(json.dumps([run.model_dump(mode="json") for run in listed]) + "\n")
        return
    for run in listed:
        out.print(_line(settings, run), markup=False)
    if not listed:
        out.print("no index run so far")


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


@index_app.command()
def cancel(config: Config = None) -> None:
    """Stop the run under way at its next document; what was indexed before goes on answering."""
    settings = load(config)
    with closing(_store(settings)) as store:
        run = _runs(settings, store).cancel("the command line")
    if run is None:
        raise TwohopError("no index run is under way; `twohop index history` lists the past ones")
    out.print(f"run {run.id} is asked to stop; `twohop index status` tells when it has", markup=False)


@index_app.command()
def rollback(config: Config = None) -> None:
    """Make the generation before the live one live again; the next run brings it up to date."""
    settings = load(config)
    _loading()
    with _running(settings, "rollback") as (_, pulse):
        with opened(settings, for_rebuild=True) as desk:
            info = desk.index.rollback()
        pulse.finish({"generation": info.name}, ())
    out.print(
        f"{info.name} of {_at(settings, info.created_at.timestamp())} answers now; `twohop index` brings it up to date",
        markup=False,
    )


def _refuse_to_lose(roots: Sequence[Root]) -> None:
    """Refuse to start the index anew while a folder is not there: what was read from it would be lost."""
    for root in roots:
        if not root.path.exists() or (root.path.is_dir() and not any(root.path.iterdir())):
            raise TwohopError(
                f"{str(root.path)!r} is missing or empty, so the index is not started anew; mount it, or take it out "
                f"of the index (--forget, or sources.paths), or add --allow-removal"
            )


@app.command()
def serve(config: Config = None) -> None:
    """Answer in Slack: mentions in channels, direct messages, and /twohop; on the sample company when nothing else is configured."""
    from bot.slack.app import check_tokens
    from bot.slack.app import serve as answer_in_slack

    settings, is_sample = settings_for(config)
    check_tokens(settings)
    with _serving(settings, is_sample, config) as (desk, reindex):
        desk.run(answer_in_slack(desk, reindex=reindex, say=_say))


@app.command()
def playground(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of 127.0.0.1.")] = 8124,
    config: Config = None,
) -> None:
    """Open a local Slack in the browser, with the bot in it: no workspace, no tokens."""
    from bot.playground.whole import joined, run

    settings, is_sample = settings_for(config)
    with _serving(joined(settings, port), is_sample, config) as (desk, reindex):
        desk.run(run(desk, port, reindex=reindex, say=_say))


def _say(line: str) -> None:
    err.print(line, markup=False)


@contextmanager
def _serving(
    settings: Settings, is_sample: bool, config: Path | None
) -> Iterator[tuple[Desk, Sequence[str]]]:
    """Open the desk for a long run, with a log, and with the command of its index runs."""
    # As the first process of a container nothing would end it before it answers.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    logs.set_up(settings.log, secret_values(settings))
    if settings.log == "json":
        err.file = cast("IO[str]", logs.Lines(logging.getLogger("bot")))
    reindex: list[str] = []
    if is_sample:
        err.print("nothing is configured: answering from the sample company", style="dim")
    else:
        reindex = [sys.executable, "-m", "bot.cli", "index", "--json"]
        reindex += ["--config", str(config.absolute())] if config else []
    _loading()
    with opened(settings, rebuild=is_sample) as desk:
        if is_sample:
            _prepare(desk)
        yield desk, reindex


@tickets_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header.")],
    config: Config = None,
) -> None:
    """Import tickets from a CSV file; bad rows are named and the rest is imported."""
    settings = load(config)
    # Before anything is made: a name that is wrong leaves no empty index behind.
    if not file.is_file():
        raise TicketImportError(f"{str(file)!r} cannot be read: there is no such file; check the name")
    _loading()
    with opened(settings) as desk:
        imported = desk.import_tickets(file)
        out.print(imported.summary(), markup=False)
        out.print(desk.sync_tickets().summary(), markup=False)
    if imported.failed:
        raise typer.Exit(1)


@app.command("eval")
def evaluate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Question sets; the sample's own without any.")
    ] = None,
    modes: Annotated[str, typer.Option(help="Modes to compare, separated by commas.")] = "gated",
    failures: Annotated[
        bool, typer.Option("--failures", help="List what was not right; the sample's blind half stays blind.")
    ] = False,
    config: Config = None,
) -> None:
    """Ask labelled questions in one or more modes and print what was right, per type."""
    from bot.evaluate import evaluate as run
    from bot.evaluate import read

    wanted = [mode.strip() for mode in modes.split(",")]
    for mode in wanted:
        if mode not in get_args(Mode):
            raise TwohopError(f"--modes {mode!r}: the modes are {', '.join(get_args(Mode))}")
    settings, is_sample = settings_for(config)
    if not files and not is_sample:
        raise TwohopError(
            "name a question set (twohop eval FILE…); the sample's own are asked only where nothing is configured or indexed"
        )
    if is_sample:
        err.print("nothing is configured or indexed here: grading the sample company", style="dim")
    chosen = [(path, read(path)) for path in files or sorted(sample().glob("questions*.jsonl"))]
    _loading()
    with opened(settings, rebuild=is_sample) as desk:
        if is_sample:
            _prepare(desk)
        _refuse_empty(desk)
        for path, questions in chosen:
            shown = failures and (bool(files) or not path.stem.endswith("-test"))
            report = run(desk, path.name, questions, cast(list[Mode], wanted), failures=shown)
            out.print(report, markup=False)


@app.command()
def trace(
    turn: Annotated[str, typer.Argument(help="Turn id or its beginning; the latest one without it.")] = "",
    config: Config = None,
) -> None:
    """Print how an answer came about."""
    settings, _ = settings_for(config)
    with closing(_store(settings)) as store:
        kept = store.get(turn)
    detail = kept.detail
    out.print(
        f"turn {kept.id}  {kept.asked_at:%Y-%m-%d %H:%M} UTC  {kept.user}  mode {kept.mode}  clock {kept.now}",
        markup=False,
    )
    out.print(f"asked     {kept.question}", markup=False)
    if kept.standalone != kept.question:
        out.print(f"searched  {kept.standalone}", markup=False)
    out.print(f"route     {detail['route']['path']}: {'; '.join(detail['route']['reasons'])}", markup=False)
    for step in detail["steps"]:
        arguments = json.dumps(step["arguments"], ensure_ascii=False)
        found = step["error"] or ", ".join(step["found"]) or "nothing"
        out.print(
            f"step      {step['by']}: {step['tool']} {arguments} → {found}  {step['ms']} ms  {step['purpose']}",
            markup=False,
        )
        # Turns that were kept by an earlier version do not tell.
        for arm, reason in step.get("failed", {}).items():
            out.print(f"          no answer from {arm}: {reason}", markup=False)
    for reply in detail["replies"]:
        said = (
            reply["text"] or ", ".join(f"{c['name']} {c['arguments']}" for c in reply["calls"]) or "(nothing)"
        )
        out.print(f"model     {said}", markup=False)
    for reason in detail["rejected"]:
        out.print(f"rejected  {reason}", markup=False)
    if detail["verdict"]:
        out.print(f"verdict   {detail['verdict']['decision']}: {detail['verdict']['text']}", markup=False)
    out.print(f"stop      {detail['stop']}", markup=False)
    out.print(f"usage     {json.dumps(detail['usage'])}  {kept.ms} ms", markup=False)
    out.print(f"answer    {kept.shape}\n{kept.text}", markup=False)
    for c in detail["citations"]:
        out.print(f"  [{c['n']}] {c['source']}: {c['quote']}", markup=False)


@app.command()
def doctor(config: Config = None) -> None:
    """Print the effective settings, what works, what does not, and the next step."""
    settings, is_sample = settings_for(config)
    out.print(f"twohop {_version()} on Python {sys.version.split()[0]}", style="bold")
    if is_sample:
        out.print("no settings, sources or index here: these are the sample company's settings")
    for name, value in settings.model_dump(mode="json").items():
        shown = "********" if name in SECRETS and value else json.dumps(value, ensure_ascii=False)
        # A password may also stand in an address.
        shown = re.sub(r"(://[^:/@\s\"]*:)[^@/\s\"]+@", r"\1********@", shown)
        out.print(f"  {name} = {shown}", markup=False)
    for line in unused(settings):
        out.print(f"note: {line}", markup=False)
    _loading()
    failed = False
    for name, probe in _probes(settings):
        try:
            out.print(f"ok    {name}: {probe()}", style="green", markup=False)
        except TwohopError as error:
            failed = True
            out.print(f"FAIL  {name}: {error}", style="red", markup=False)
    if failed:
        raise typer.Exit(1)


def _version() -> str:
    try:
        return metadata.version("twohop")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _probes(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    from ingest.embed import SentenceTransformerEmbedder

    embedder = SentenceTransformerEmbedder(settings.embedding)

    def model() -> str:
        vector = embedder.embed(["a probe"], kind="query")
        return f"{embedder.name}, {vector.shape[1]} dimensions, reads {embedder.max_tokens} tokens"

    def documents() -> str:
        if settings.index == "sqlite" and not _embedded(settings).is_file():
            raise TwohopError("nothing is indexed yet; run `twohop demo` or `twohop index PATH…`")
        from bot.app import build, indexed_roots

        desk = build(settings, embedder)
        try:
            held = desk.index.documents(Where(readers=desk.asker().readers))
            newest = max((d.indexed_at for d in held), default=None)
            if not newest:
                raise TwohopError(
                    "it holds no document; run `twohop index PATH…`, or `twohop index` for sources.paths"
                )
            folders = ", ".join(f"{root.path} as {root.name}" for root in indexed_roots(settings))
            return (
                f"{len(held)} documents, {sum(d.chunks for d in held)} chunks, last indexed {newest:%Y-%m-%d %H:%M}, "
                f"from {folders}"
            )
        finally:
            desk.close()

    def ticket_table() -> str:
        from bot.app import ticket_store

        with closing(ticket_store(settings)) as store:
            if problems := store.problems():
                raise TwohopError("; ".join(problems))
            warnings = "".join(f"; warning: {line}" for line in store.warnings())
            return (
                f"{store.place}; {len(store.customers())} customers; {'; '.join(store.describe())}{warnings}"
            )

    def elasticsearch() -> str:
        from ingest.index.elastic.wire import Wire

        wire = Wire(settings.elasticsearch)
        try:
            return f"{wire.url}, version {wire.check()}"
        finally:
            wire.close()

    yield "embedding model", model
    if settings.index == "elastic":
        yield "Elasticsearch", elasticsearch
    if settings.model:
        yield from _model_probes(settings)
    yield "index", documents
    yield "tickets", ticket_table


def _model_probes(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    from bot.app import chat_model
    from bot.chat.probe import PROBES, Probe

    def ran(probe: Probe) -> str:
        async def once() -> str:
            model = chat_model(settings)
            try:
                return await probe(model) if model else ""
            finally:
                if model:
                    await model.close()

        return asyncio.run(once())

    for name, probe in PROBES:
        yield f"language model, {name}", partial(ran, probe)


if __name__ == "__main__":
    main()
