"""The command line: demo, ask, serve, index, tickets, eval, trace, doctor."""

from __future__ import annotations

import asyncio
import json
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
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args
from zoneinfo import ZoneInfo

import typer
from pydantic_settings import SettingsError
from rich.console import Console
from sqlalchemy.exc import SQLAlchemyError

from bot.config import SECRETS, Settings, load, unused
from bot.types import Mode, Step
from ingest.errors import IdentityMismatch, IndexingError, TicketImportError, TwohopError
from ingest.types import Where

if TYPE_CHECKING:
    from bot.app import Asked, Desk
    from bot.store import Store
    from ingest.embed import Embedder
    from ingest.sources.roots import Root
    from ingest.sync import SyncReport
    from ingest.tickets import ImportReport

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A support desk that reads twice.",
)
tickets_app = typer.Typer(no_args_is_help=True, help="Import tickets.")
app.add_typer(tickets_app, name="tickets")
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


def sample() -> Path:
    """Return the folder of the sample company inside the package."""
    return Path(str(resources.files("bot") / "demo"))


def settings_for(config: Path | None) -> tuple[Settings, bool]:
    """Return the settings, and whether they are the sample company's because nothing else is configured.

    The sample is used only where there is no settings file, no source path and nothing was indexed here.
    """
    settings = load(config)
    own = config or Path("twohop.toml").is_file() or settings.sources.paths or settings.tickets.csv
    if own or (settings.data / "index" / "current").is_file() or settings.tickets_database_url:
        return settings, False
    return demo_settings(settings), True


def demo_settings(settings: Settings) -> Settings:
    """Return the sample company's settings, with its data beside the user's own."""
    ours = load(sample() / "twohop.toml")
    sources = ours.sources.model_copy(update={"paths": (sample() / "docs",)})
    tickets = ours.tickets.model_copy(update={"csv": (sample() / "tickets.csv",)})
    return ours.model_copy(
        update={"data": settings.data / "demo", "company": "Albarán", "sources": sources, "tickets": tickets}
    )


@contextmanager
def opened(
    settings: Settings,
    *,
    rebuild: bool = False,
    for_rebuild: bool = False,
    embedder: Embedder | None = None,
) -> Iterator[Desk]:
    """Open the desk, saying what is set and changes nothing.

    With `rebuild` an index of another identity is rebuilt first; with `for_rebuild` nobody looks at it.
    """
    from bot.app import build

    for line in unused(settings):
        err.print(f"note: {line}", style="dim", markup=False)
    try:
        desk = build(settings, embedder, for_rebuild=for_rebuild)
    except IdentityMismatch:
        if not rebuild:
            raise
        desk = build(settings, embedder, for_rebuild=True)
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


@app.command()
def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders or files of Markdown, text or HTML.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build a new index beside the live one, then swap.")
    ] = False,
    forget: Annotated[
        list[Path] | None, typer.Option("--forget", help="Take an indexed folder out of the index.")
    ] = None,
    allow_removal: Annotated[
        bool, typer.Option("--allow-removal", help="Let a folder lose most of its documents at once.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: Config = None,
) -> None:
    """Bring the index up to date: only what changed is read, cut and embedded.

    A folder that is named joins those that are indexed already; without one, all of them are read again.
    """
    from bot.app import indexed_roots

    began = time.monotonic()
    settings = load(config)
    named = tuple(paths or ())
    roots = indexed_roots(settings, named)
    if not roots and not settings.tickets.csv and not settings.tickets_database_url and not forget:
        raise TwohopError(
            "nothing to index; name a folder (twohop index PATH…) or set sources.paths in twohop.toml"
        )
    if rebuild and not allow_removal:
        _refuse_to_lose(roots)
    _loading()
    imported: list[ImportReport] = []
    synced: list[SyncReport] = []
    failures: list[str] = []
    with opened(settings, for_rebuild=rebuild) as desk:
        synced += [desk.forget_documents(path) for path in forget or ()]
        if named or rebuild or not forget:
            for path in settings.tickets.csv:
                try:
                    imported.append(desk.import_tickets(path))
                    if imported[-1].failed:
                        failures.append(f"{path.name}: no row is a ticket")
                except TicketImportError as error:
                    # A ticket file that cannot be read is no reason to leave the documents as they were.
                    failures.append(str(error))
            if rebuild:
                synced += _rebuilt(desk, named, allow_removal, failures)
            else:
                synced += desk.sync_documents(named, allow_removal=allow_removal)
                synced.append(desk.sync_tickets())
            if synced and not desk.index.documents(Where(readers=desk.asker().readers)):
                failures.append("nothing can be searched now: no file of these folders could be read")
    roots = indexed_roots(settings)
    if as_json:
        # One line of ASCII, whatever the reader's encoding is.
        sys.stdout.write(
            json.dumps(_indexed(imported, synced, failures, roots, time.monotonic() - began)) + "\n"
        )
    else:
        summaries = [*(report.summary() for report in imported), *(report.summary() for report in synced)]
        folders = ", ".join(f"{root.path} as {root.name}" for root in roots)
        for line in [*summaries, *failures, f"indexed folders: {folders or 'none'}"]:
            out.print(line, markup=False)
    if failures or not all(report.complete for report in synced):
        raise typer.Exit(1)


def _rebuilt(
    desk: Desk, named: Sequence[Path], allow_removal: bool, failures: list[str]
) -> Sequence[SyncReport]:
    """Rebuild; a refusal is a failure of the run like another, and what was indexed before goes on answering."""
    try:
        return desk.rebuild(named, allow_removal=allow_removal)
    except IndexingError as error:
        failures.append(str(error))
        return ()


def _refuse_to_lose(roots: Sequence[Root]) -> None:
    """Refuse to start the index anew while a folder is not there: what was read from it would be lost."""
    for root in roots:
        if not root.path.exists() or (root.path.is_dir() and not any(root.path.iterdir())):
            raise TwohopError(
                f"{str(root.path)!r} is missing or empty, so the index is not started anew; mount it, or take it out "
                f"of the index (--forget, or sources.paths), or add --allow-removal"
            )


def _indexed(
    imported: Sequence[ImportReport],
    synced: Sequence[SyncReport],
    failures: Sequence[str],
    roots: Sequence[Root],
    seconds: float,
) -> dict[str, Any]:
    """Return the stable interface of `index --json`: counts of the index by source, what was skipped and what failed.

    Rows of a ticket file are counted under `imports`, and again under the source `tickets` as far as they are searched.
    """
    failed = [*failures, *(f"{report.source}: {report.failure}" for report in synced if report.failure)]
    sources = {
        report.source: {
            "added": len(report.added),
            "changed": len(report.changed),
            "removed": len(report.removed),
            "unchanged": len(report.unchanged),
            "skipped": len(report.skipped),
            "seconds": round(report.seconds, 3),
        }
        for report in synced
    }
    rows = [(f"{report.file.name} line {line}", why) for report in imported for line, why in report.skipped]
    skipped = [*rows, *(pair for report in synced for pair in report.skipped)]
    return {
        "ok": not failed,
        **{
            name: sum(int(counts[name]) for counts in sources.values())
            for name in ("added", "changed", "removed", "unchanged")
        },
        "skipped": [{"uri": uri, "reason": reason} for uri, reason in skipped],
        "failures": failed,
        "seconds": round(seconds, 3),
        "sources": sources,
        "folders": {root.name: str(root.path) for root in roots},
        "imports": {
            report.file.name: {
                "added": report.added,
                "changed": report.changed,
                "unchanged": report.unchanged,
                "skipped": len(report.skipped),
                "seconds": round(report.seconds, 3),
            }
            for report in imported
        },
    }


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
    import logging

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("apscheduler", "httpx", "sentence_transformers"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
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
def bench(
    rounds: Annotated[
        int, typer.Option(min=1, help="How often each part is measured for each question.")
    ] = 3,
    most: Annotated[int, typer.Option("--questions", min=1, help="Most questions of the sample.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: Config = None,
) -> None:
    """Measure each part of answering on the sample company, as a share of one query embedding of the same run."""
    from bot import bench as benchmark
    from bot.evaluate import read
    from bot.types import Asker, Question
    from ingest.embed import SentenceTransformerEmbedder

    settings = demo_settings(load(config)).model_copy(update={"model": ""})
    # A follow-up needs its thread answered first, which is no part of what is measured.
    labelled = [q for path in sorted(sample().glob("questions*.jsonl")) for q in read(path) if not q.history]
    step = max(1, len(labelled) // most)
    questions = [
        Question(
            q.text,
            Asker("bench", frozenset(q.asker_readers)),
            datetime.combine(q.now, clock(12), ZoneInfo(settings.calendar.zone)),
        )
        for q in labelled[::step][:most]
    ]
    memory = {"at the start": benchmark.resident_mb()}
    _loading()
    embedder = benchmark.TimedEmbedder(SentenceTransformerEmbedder(settings.embedding), time.perf_counter)
    embedder.embed(["loads the model"], kind="query")
    memory["with the model"] = benchmark.resident_mb()
    with opened(settings, rebuild=True, embedder=embedder) as desk:
        _prepare(desk)
        memory["with the desk"] = benchmark.resident_mb()
        err.print(
            f"measuring {len(questions)} questions in {rounds} rounds and one before them …", style="dim"
        )
        samples = asyncio.run(
            benchmark.measure(desk, embedder, questions, rounds=rounds, clock=time.perf_counter)
        )
    memory["after the run"] = benchmark.resident_mb()
    rows = benchmark.rows(samples)
    report = benchmark.Report(rows, rounds, len(questions), benchmark.machine(embedder), memory)
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
        return
    out.print(report.table())
    for line in report.notes():
        out.print(line, markup=False)


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
    from ingest.tickets import TicketStore

    embedder = SentenceTransformerEmbedder(settings.embedding)

    def model() -> str:
        vector = embedder.embed(["a probe"], kind="query")
        return f"{embedder.name}, {vector.shape[1]} dimensions, reads {embedder.max_tokens} tokens"

    def documents() -> str:
        if not (settings.data / "index" / "current").is_file():
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
        url = settings.tickets_database_url or f"sqlite:///{settings.data / 'tickets.db'}"
        store = TicketStore(url, settings.tickets, settings.calendar)
        try:
            if missing := store.missing():
                raise TwohopError(
                    f"no imported file had the {'; or the '.join(missing)}; mend the settings, then `twohop index` or "
                    f"`twohop tickets import FILE`"
                )
            return f"{len(store.customers())} customers; {'; '.join(store.describe())}"
        finally:
            store.close()

    yield "embedding model", model
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
