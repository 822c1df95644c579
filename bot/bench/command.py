"""The commands of `twohop bench`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from bot.config import Settings, load
from ingest.errors import ConfigError

Backend = Literal["sqlite", "elastic"]
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_WIDE = 120
"""Columns of a report, also where the terminal is narrower or there is none: a number that is cut says nothing."""


class _AnswerOrCommand(TyperGroup):
    """Without the name of a benchmark it is `bench answer`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["answer", *args])


bench_app = typer.Typer(
    cls=_AnswerOrCommand,
    no_args_is_help=False,
    help="Measure, as ratios of one run. Without the name of a benchmark it is `answer`.",
)

Config = Annotated[Path | None, typer.Option("--config", envvar="TWOHOP_CONFIG", help="Settings file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Sizes = Annotated[str, typer.Option("--sizes", help="Sizes of the corpus in chunks, with commas.")]
Seed = Annotated[int, typer.Option(help="The corpus is the same for the same seed.")]


class _Report(Protocol):
    def table(self) -> Table: ...

    def notes(self) -> tuple[str, ...]: ...

    def as_json(self) -> dict[str, Any]: ...


@bench_app.command()
def answer(
    rounds: Annotated[
        int, typer.Option(min=1, help="How often each part is measured for each question.")
    ] = 3,
    most: Annotated[int, typer.Option("--questions", min=1, help="Most questions of the sample.")] = 1000,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Measure each part of answering on the sample company, as a share of one query embedding of the same run."""
    from bot.bench.answer import run
    from bot.bench.measure import apart, shown

    with shown(err) as tell, apart(_files(load(config))) as lent:
        report = run(lent, rounds=rounds, most=most, tell=tell)
    _print(report, as_json)


@bench_app.command()
def index(
    sizes: Sizes = "1000,10000,50000",
    real: Annotated[
        int,
        typer.Option("--real", min=0, help="Chunks to index with the real embedding model too; 0 for none."),
    ] = 1000,
    backend: Annotated[
        Backend | None, typer.Option("--index", help="Backend; by default that of the settings.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each sync of few changes is measured.")] = 3,
    seed: Seed = 1,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Measure indexing a generated corpus, and syncs in which nothing, one document and one in a hundred changed.

    Indexing is a multiple of only writing, or with the real model of only embedding, the same chunks.
    """
    from bot.bench.index import run
    from bot.bench.measure import shown

    settings = load(config)
    if backend:
        settings = settings.model_copy(update={"index": backend})
    with shown(err) as tell:
        report = run(settings, _numbers(sizes), real, rounds=rounds, seed=seed, tell=tell)
    _print(report, as_json)


@bench_app.command()
def search(
    sizes: Sizes = "1000,10000,50000",
    questions: Annotated[int, typer.Option(min=1, help="Questions asked.")] = 60,
    rounds: Annotated[int, typer.Option(min=1, help="How often each one is asked.")] = 3,
    seed: Seed = 1,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Measure each arm of a search, fusion and the whole, as multiples of asking the bare engine the same.

    The index is SQLite, and where ELASTICSEARCH_URL is set that Elasticsearch too.
    """
    from bot.bench.measure import shown
    from bot.bench.search import run

    with shown(err) as tell:
        report = run(load(config), _numbers(sizes), questions=questions, rounds=rounds, seed=seed, tell=tell)
    _print(report, as_json)


@bench_app.command()
def embed(
    rounds: Annotated[int, typer.Option(min=1, help="How often each runtime is started and measured.")] = 5,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Measure embedding with the bundled model in ONNX Runtime, as multiples of the same in torch."""
    from bot.bench.embed import run
    from bot.bench.measure import shown

    with shown(err) as tell:
        report = run(rounds, seed, tell)
    _print(report, as_json)


@bench_app.command()
def rebuild(
    chunks: Annotated[int, typer.Option(min=1, help="Chunks that are rebuilt.")] = 10_000,
    questions: Annotated[int, typer.Option(min=1, help="Most questions of the sample.")] = 40,
    seed: Seed = 1,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Measure answers and acknowledgements while the index is rebuilt, as multiples of those when nothing is."""
    from bot.bench.measure import apart, shown
    from bot.bench.rebuild import run

    with shown(err) as tell, apart(_files(load(config))) as lent:
        report = run(lent, chunks, questions=questions, seed=seed, tell=tell)
    _print(report, as_json)


def _files(settings: Settings) -> Settings:
    """Return the settings with an index of files."""
    return settings.model_copy(update={"index": "sqlite"})


def _numbers(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ConfigError(f"--sizes {text!r} are no sizes; write them like 1000,10000")
    return sorted(set(found))


def _print(report: _Report, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
        return
    Console(highlight=False, width=max(out.width, _WIDE)).print(report.table())
    for line in report.notes():
        out.print(line, markup=False)
